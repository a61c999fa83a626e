"""What sympy says of elementwise ops: bodies, partial derivatives, functions of numbers.

In: records.  Out: sympy expressions, the same as terms, the text of ``tables``.

Only what ``tables`` does not hold is computed while something is proved: ops that users define, and
constants that stand for long literals.

The partials come from ``sympy.diff`` of the body, never from the op's VJP, so that a proof that
uses them also judges the VJP.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from pprint import pformat
from typing import Any

import sympy

from symgrad.errors import GraphError
from symgrad.ir.registry import in_order
from symgrad.ops.record import Op, get, is_own
from symgrad.proof.scalars import values
from symgrad.proof.scalars.terms import (
    FALSE,
    OPERANDS,
    PI,
    TRUE,
    Code,
    E,
    Term,
    encoded,
    symbol,
    term,
)

SYMBOLS: tuple[Any, ...] = tuple(sympy.Symbol(str(one.value), real=True) for one in OPERANDS)
"""The operands of every body."""


@cache
def body(op: Op, arity: int) -> Any:
    """The op's meaning as a sympy expression in ``u0``, ``u1``, ...  Raises GraphError."""
    if op.scalar is None:
        raise GraphError(f"the op {op.name!r} is not elementwise")
    return sympy.sympify(op.scalar.sympy(sympy, *SYMBOLS[:arity]))


@cache
def partial(op: Op, arity: int, position: int) -> Any:
    """The derivative of the op's body by one operand, zero where it is constant but for jumps."""
    derivative = sympy.diff(body(op, arity), SYMBOLS[position])
    jumps = (sympy.DiracDelta, sympy.Derivative, sympy.Subs)
    return derivative.replace(lambda part: isinstance(part, jumps), lambda part: sympy.Integer(0))


def as_term(expression: Any) -> Term:
    """A sympy expression as a term."""
    found = sympy.sympify(expression)
    if found.is_Rational:
        return term(Fraction(int(found.p), int(found.q)))
    if found.is_Symbol:
        return symbol(found.name)
    for known, same in _CONSTANTS:
        if found is known:
            return same
    return Term(type(found).__name__, tuple(map(as_term, found.args)))


_CONSTANTS = ((sympy.pi, PI), (sympy.E, E), (sympy.true, TRUE), (sympy.false, FALSE))


def of_operands(expression: Callable[..., Any], operands: tuple[Term, ...]) -> Term:
    """A constraint or a kink of a record, applied to numbers and operands."""
    given = [
        SYMBOLS[OPERANDS.index(one)] if one in OPERANDS else _number(one) for one in operands
    ]  # fmt: skip
    return as_term(expression(sympy, *given))


def _number(one: Term) -> Any:
    assert one.number is not None
    return sympy.Rational(*one.number.as_integer_ratio())


def left_side(expression: Callable[..., Any], texts: Sequence[str]) -> str:
    """What is 0 at a kink, for operands that are given as texts."""
    return str(expression(sympy, *map(sympy.Symbol, texts)))


# -- functions of sympy's, called by their class, polygamma also by its order


def kind_of(op: Op) -> str | None:
    """The function of sympy's that an op is: ``"erf"``, ``"polygamma1"``; None: it is no such."""
    if op.scalar is None or op.arity is None:
        return None
    meaning, symbols = body(op, op.arity), SYMBOLS[: op.arity]
    orders = len(meaning.args) - op.arity
    if not isinstance(meaning, sympy.Function) or meaning.args[max(orders, 0) :] != symbols:
        return None
    return called(as_term(meaning), orders)


def called(function: Term, orders: int) -> str:
    """What a function is called: its class, and the numbers that stand before its operands."""
    return function.kind + "_".join(str(arg.number) for arg in function.args[:orders])


def parity(kind: str) -> int:
    """1 for an even function of sympy's, -1 for an odd one, 0 for others."""
    function, (x, *_) = getattr(sympy, kind, None), SYMBOLS
    if function is None:
        return 0
    return 1 if function(-x) == function(x) else -1 if function(-x) == -function(x) else 0


def at_zero(kind: str) -> Fraction | None:
    """The value at 0 of a function of sympy's where it is rational."""
    function = getattr(sympy, kind, None)
    value: Any = sympy.nan if function is None else function(sympy.Integer(0))
    return Fraction(int(value.p), int(value.q)) if value.is_Rational else None


def number_text(kind: str) -> str | None:
    """A function of sympy's as text, as ``text_of`` gives it; None where sympy has no such."""
    name, order = kind.rstrip("0123456789"), kind[len(kind.rstrip("0123456789")) :]
    function = getattr(sympy, name, None)
    if function is None:
        return None
    return text_of(function(*([int(order)] if order else []), SYMBOLS[0]), 1)


# -- functions of mpmath numbers


def lambdified(expression: Any, arity: int) -> Callable[..., Any]:
    """An expression in ``u0``, ... as a function of mpmath numbers; NaN where it has a pole."""
    return values.guarded(_lambdified(expression, arity))


def _lambdified(expression: Any, arity: int) -> Any:
    return sympy.lambdify(SYMBOLS[:arity], expression, modules=[values.OWN, "mpmath"])


def text_of(expression: Any, arity: int) -> str | None:
    """An expression as text over mpmath's names; None where sympy writes none."""
    try:
        function = _lambdified(expression, arity)
    except SyntaxError:
        return None
    _, line = inspect.getsource(function).splitlines()
    return line.strip().removeprefix("return ")


# -- the text of ``tables``

_HEAD = '''"""What sympy says of symgrad's own ops; written by ``symgrad regen``, compared by tests.

``MEANINGS``: by op, of its body and of each partial derivative, the term and its text over mpmath's
names.  ``FUNCTIONS``: by function of sympy's, the op that is the function, its parity, its value at
0, and its text.
"""

# fmt: off
from typing import Any

'''


def tables() -> str:
    """The text of ``symgrad/proof/scalars/tables.py``."""
    ops = [op for op in map(get, in_order()) if is_own(op)]
    meanings = {op.name: tuple(_said(op)) for op in ops}
    functions = {}
    for op in ops:
        kind = kind_of(op)
        if kind is not None and kind not in functions:
            functions[kind] = (op.name, *(_facts(kind) if op.arity == 1 else (0, None, None)))
    return (
        f"{_HEAD}MEANINGS: dict[str, Any] = {pformat(meanings, width=98, sort_dicts=False)}\n\n"
        f"FUNCTIONS: dict[str, Any] = {pformat(functions, width=98, sort_dicts=False)}\n"
    )


def _said(op: Op) -> Iterator[tuple[Code, str | None]]:
    arity = op.arity or 1
    for found in (body(op, arity), *(partial(op, arity, place) for place in range(arity))):
        yield encoded(as_term(found)), text_of(found, arity)


def _facts(kind: str) -> tuple[int, tuple[int, int] | None, str | None]:
    zero = at_zero(kind)
    return parity(kind), None if zero is None else zero.as_integer_ratio(), number_text(kind)
