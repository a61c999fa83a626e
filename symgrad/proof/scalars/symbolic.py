"""What sympy says of elementwise ops: bodies, partial derivatives, functions of numbers.

In: records.  Out: sympy expressions, the same as terms, the text of ``tables``.

Only what ``tables`` does not hold is computed while something is proved: ops that users define, and
constants that stand for long literals.

The partials come from ``sympy.diff`` of the body, never from the op's VJP, so that a proof that
uses them also judges the VJP.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
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
    SYMBOL,
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
    """The derivative of the op's body by one operand, zero where it is constant but for jumps.

    Of a greatest or least of two, what is equal is the second one: both derivatives are the same
    there, but on a null set.
    """
    if position == 1 and body(op, arity).func in (sympy.Max, sympy.Min):
        return 1 - partial(op, arity, 0)
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


def as_sympy(found: Term) -> Any:
    """A term as a sympy expression."""
    if found.number is not None:
        return sympy.Rational(*found.number.as_integer_ratio())
    if found.kind == SYMBOL:
        return SYMBOLS[OPERANDS.index(found)]
    for known, same in _CONSTANTS:
        if found == same:
            return known
    return getattr(sympy, found.kind)(*map(as_sympy, found.args))


def of_operands(expression: Callable[..., Any], operands: tuple[Term, ...]) -> Term:
    """A constraint or a kink of a record, applied to numbers and operands."""
    given = [
        SYMBOLS[OPERANDS.index(one)] if one in OPERANDS else _number(one) for one in operands
    ]  # fmt: skip
    return as_term(expression(sympy, *given))


def _number(one: Term) -> Any:
    assert one.number is not None
    return sympy.Rational(*one.number.as_integer_ratio())


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
0, and its text.  ``CONSTANTS``: numbers that people round, with 40 digits, the simplest first.
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
        f"FUNCTIONS: dict[str, Any] = {pformat(functions, width=98, sort_dicts=False)}\n\n"
        f"CONSTANTS: list[tuple[str, Any, str]] = {pformat(list(_constants()), width=98)}\n"
    )


def _said(op: Op) -> Iterator[tuple[Code, str | None]]:
    arity = op.arity or 1
    for found in (body(op, arity), *(partial(op, arity, place) for place in range(arity))):
        yield encoded(as_term(found)), text_of(found, arity)


def _facts(kind: str) -> tuple[int, tuple[int, int] | None, str | None]:
    zero = at_zero(kind)
    return parity(kind), None if zero is None else zero.as_integer_ratio(), number_text(kind)


def _constants() -> Iterator[tuple[str, Code, str]]:
    """Numbers that people round, simplest first, each once."""
    known = set()
    for name, expression in _named():
        if expression not in known:
            known.add(expression)
            yield name, encoded(as_term(expression)), str(sympy.N(expression, 40))


def _named() -> list[tuple[str, Any]]:
    sqrt, pi, log, e = sympy.sqrt, sympy.pi, sympy.log, sympy.E
    return [
        ("pi", pi), ("e", e), ("sqrt(2)", sqrt(2)), ("1/sqrt(2)", 1 / sqrt(2)),
        ("sqrt(pi)", sqrt(pi)), ("1/sqrt(pi)", 1 / sqrt(pi)), ("2/sqrt(pi)", 2 / sqrt(pi)),
        ("sqrt(2/pi)", sqrt(2 / pi)), ("sqrt(pi/2)", sqrt(pi / 2)), ("sqrt(2*pi)", sqrt(2 * pi)),
        ("1/sqrt(2*pi)", 1 / sqrt(2 * pi)), ("sqrt(pi)/2", sqrt(pi) / 2), ("1/pi", 1 / pi),
        ("2/pi", 2 / pi), ("pi/2", pi / 2), ("pi/3", pi / 3), ("pi/4", pi / 4), ("pi/6", pi / 6),
        ("2*pi", 2 * pi), ("4*pi", 4 * pi), ("1/(2*pi)", 1 / (2 * pi)), ("pi/180", pi / 180),
        ("180/pi", 180 / pi), ("pi**2", pi**2), ("pi**2/6", pi**2 / 6), ("log(2)", log(2)),
        ("log(3)", log(3)), ("log(10)", log(10)), ("log(pi)", log(pi)), ("log(pi)/2", log(pi) / 2),
        ("log(2*pi)", log(2 * pi)), ("log(2*pi)/2", log(2 * pi) / 2), ("1/log(2)", 1 / log(2)),
        ("1/log(10)", 1 / log(10)), ("log(2)/2", log(2) / 2), ("1/e", 1 / e),
        ("sqrt(3)", sqrt(3)), ("1/sqrt(3)", 1 / sqrt(3)), ("sqrt(3)/2", sqrt(3) / 2),
        ("sqrt(5)", sqrt(5)), ("1/sqrt(5)", 1 / sqrt(5)), ("sqrt(6)", sqrt(6)),
        ("sqrt(10)", sqrt(10)), ("(1+sqrt(5))/2", (1 + sqrt(5)) / 2), ("sqrt(8/pi)", sqrt(8 / pi)),
        ("4/pi", 4 / pi), ("1/3", sympy.Rational(1, 3)), ("2/3", sympy.Rational(2, 3)),
        ("4/3", sympy.Rational(4, 3)), ("5/3", sympy.Rational(5, 3)),
        ("1/6", sympy.Rational(1, 6)), ("5/6", sympy.Rational(5, 6)),
        ("1/7", sympy.Rational(1, 7)), ("1/9", sympy.Rational(1, 9)),
        ("1/12", sympy.Rational(1, 12)), ("1/15", sympy.Rational(1, 15)),
        ("2**(1/3)", sympy.cbrt(2)),
        ("0.5*sqrt(2/pi)", sqrt(2 / pi) / 2),
    ]  # fmt: skip
