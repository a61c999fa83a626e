"""Elementwise ops as scalar functions: their meaning, partial derivatives, 60-digit values.

In: names of registered elementwise ops.  Out: terms (each made once), the same as index notation,
and functions of mpmath numbers.

What sympy says of symgrad's own ops is kept in ``tables``; sympy is imported only for the ops that
users define.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from symgrad.errors import GraphError
from symgrad.ir.dtype import DType, bool_
from symgrad.ir.expr import Expr, ExprPool
from symgrad.ir.graph import Node
from symgrad.ir.registry import changes, in_order
from symgrad.ops.record import Op, get, is_own
from symgrad.proof.scalars import tables, terms
from symgrad.proof.scalars.terms import OPERANDS, Term, decoded
from symgrad.proof.scalars.values import function_of

if TYPE_CHECKING:
    from types import ModuleType

P = ParamSpec("P")
T = TypeVar("T")

PREFIX = "custom_"
"""What the sympy class of a function with a declared derivative begins with."""


def _symbolic() -> ModuleType:
    """What needs sympy, which takes longer to import than most proofs take."""
    from symgrad.proof.scalars import symbolic

    return symbolic


def _by_record(compute: Callable[Concatenate[Op, P], T]) -> Callable[Concatenate[str, P], T]:
    """What is computed of an op, called by its name, and kept with its record."""
    kept: Callable[..., T] = cache(compute)

    @wraps(compute)
    def named(function: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return kept(get(function), *args, **kwargs)

    return named


def _kept(op: Op, arity: int) -> Sequence[tuple[terms.Code, str | None]] | None:
    """What the table says of an op of symgrad's."""
    if op.arity != arity or not is_own(op):
        return None
    found: Sequence[tuple[terms.Code, str | None]] | None = tables.MEANINGS.get(op.name)
    return found


@_by_record
def body(op: Op, arity: int) -> Term:
    """The op's meaning in ``u0``, ``u1``, ...  Raises GraphError."""
    kept = _kept(op, arity)
    return decoded(kept[0][0]) if kept else _of_sympy(_symbolic().body(op, arity))


@_by_record
def partial(op: Op, arity: int, position: int) -> Term:
    """The derivative of the op's body by one operand, zero where it is constant but for jumps."""
    kept = _kept(op, arity)
    if kept is not None:
        return decoded(kept[1 + position][0])
    return _of_sympy(_symbolic().partial(op, arity, position))


def _of_sympy(expression: Any) -> Term:
    found: Term = _symbolic().as_term(expression)
    return found


def of_operands(op: Op, expression: Callable[..., Any], operands: Sequence[Term]) -> Term:
    """A constraint or a kink of the record of an op, applied to numbers and operands."""
    if is_own(op):
        return terms.term(expression(terms.FUNCTIONS, *operands))
    found: Term = _symbolic().of_operands(expression, tuple(operands))
    return found


@_by_record
def restricted_operands(op: Op) -> Sequence[tuple[int, str]]:
    """Operands that themselves have to be positive, nonnegative or nonzero: places and which."""
    found = []
    for constraint in op.scalar.domain if op.scalar is not None else ():
        where = of_operands(op, constraint.expression, OPERANDS[: op.arity])
        if where in OPERANDS:
            found.append((OPERANDS.index(where), constraint.kind))
    return found


@_by_record
def asked(op: Op) -> Sequence[tuple[int, int | None]]:
    """The operands whose order an op asks for, or whose sign: at its kinks they are equal, or 0.

    Where a domain ends, nothing is asked.
    """
    found: list[tuple[int, int | None]] = []
    operands = OPERANDS[: op.arity]
    for kink in op.scalar.kinks if op.scalar is not None and not op.scalar.domain else ():
        at = of_operands(op, kink.expression, operands)
        if at in operands:
            found.append((operands.index(at), None))
        elif op.arity == 2 and at == operands[0] - operands[1]:
            found.append((0, 1))
    return found


@_by_record
def bends_at_ends(op: Op) -> bool:
    """Are the kinks of an op where its domain ends, as that of a root is?"""
    scalar, operands = op.scalar, OPERANDS[: op.arity]
    if scalar is None or not scalar.kinks:
        return False
    ends = {of_operands(op, one.expression, operands) for one in scalar.domain}
    return all(of_operands(op, one.expression, operands) in ends for one in scalar.kinks)


def kink_node(node: Node) -> Node:
    """What is 0 where a node has its first kink, as a node of the same graph."""
    op = get(node.op)
    assert op.scalar is not None
    at = of_operands(op, op.scalar.kinks[0].expression, OPERANDS[: len(node.args)])
    found: Node = translated(Nodes(node), at, node.args, node.dtype)
    return found


class Nodes:
    """Makes nodes of one shape where ``translated`` asks for expressions."""

    def __init__(self, like: Node) -> None:
        self.like = like

    def call(self, name: str, *operands: Node, dtype: object) -> Node:
        """An elementwise op."""
        return self.like.graph.apply(name, *operands)

    def literal(self, value: float, dtype: object) -> Node:
        """A number."""
        return self.like.graph.lift(value, self.like)

    def select(self, condition: Node, chosen: Node, other: Node) -> Node:
        """A choice."""
        return self.like.graph.apply("where", condition, chosen, other)


# -- functions of sympy's: called by their class, polygamma also by its order


def op_of(kind: str) -> Op | None:
    """The op that is a function of sympy's: ``"erf"``, ``"polygamma1"``; None: there is none."""
    return _ops(changes()).get(kind)


@cache
def _ops(number: int) -> Mapping[str, Op]:
    found = {kind: get(name) for kind, (name, *_) in tables.FUNCTIONS.items()}
    for op in map(get, in_order()):
        if op.scalar is not None and not is_own(op) and (kind := _symbolic().kind_of(op)):
            found.setdefault(kind, op)
    return found


@cache
def parity(kind: str) -> int:
    """1 for an even function of sympy's, -1 for an odd one, 0 for others."""
    found: int = tables.FUNCTIONS[kind][1] if kind in tables.FUNCTIONS else _symbolic().parity(kind)
    return found


@cache
def at_zero(kind: str) -> Fraction | None:
    """The value at 0 of a function of sympy's where it is rational."""
    if kind in tables.FUNCTIONS:
        ratio = tables.FUNCTIONS[kind][2]
        return None if ratio is None else Fraction(*ratio)
    found: Fraction | None = _symbolic().at_zero(kind)
    return found


@cache
def number_function(kind: str) -> Callable[[Any], Any] | None:
    """A function of sympy's on mpmath numbers, NaN at a pole; None where sympy has no such."""
    kept = kind in tables.FUNCTIONS
    text = tables.FUNCTIONS[kind][3] if kept else _symbolic().number_text(kind)
    return None if text is None else function_of(text, 1)


def partial_expr(
    pool: ExprPool, function: str, operands: Sequence[Expr], position: int, dtype: DType
) -> Expr | None:
    """The partial derivative as index notation; None where it is zero."""
    derivative = partial(function, len(operands), position)
    if derivative == 0:
        return None
    return _Translation(pool, tuple(operands), dtype).of(derivative)


def translated(pool: Any, expression: Term, operands: Sequence[Any], dtype: DType) -> Any:
    """A term in ``u0``, ``u1``, ... made of what ``pool`` makes.

    ``pool`` has the methods ``call``, ``literal`` and ``select`` of ``ExprPool``.  Raises
    GraphError for what has no form over the registry.
    """
    return _Translation(pool, tuple(operands), dtype).of(expression)


class _Translation:
    """Terms -> index notation, over the ops of the registry and the number ``pi``."""

    def __init__(self, pool: ExprPool, operands: tuple[Expr, ...], dtype: DType) -> None:
        self.pool, self.operands, self.dtype = pool, operands, dtype

    def of(self, expression: Term) -> Expr:
        if expression in OPERANDS:
            return self.operands[OPERANDS.index(expression)]
        if expression.number is not None:
            return self.rational(expression.number)
        kind, args = expression.kind, expression.args
        if kind == "pi":
            return self.pool.call("pi", dtype=self.dtype)
        if kind == "E":
            return self.call("exp", self.number(1))
        if kind in _FOLDED:
            return self.fold(_FOLDED[kind], [self.of(part) for part in args])
        if kind == "Pow":
            return self.power(*args)
        if kind == "Piecewise":
            return self.piecewise(args)
        if kind in _CONDITIONS:
            return self.condition(expression)
        return self.function(kind, args, expression)

    def function(self, kind: str, args: Sequence[Term], expression: Term) -> Expr:
        if kind == "Heaviside":
            above = Term("StrictGreaterThan", (args[0], terms.ZERO))
            return self.choose(above, self.number(1), self.number(0))
        orders = [str(arg.number) for arg in args[:-1] if arg.number is not None]
        op = op_of(kind + "_".join(orders))
        if op is not None:
            return self.call(op.name, *(self.of(part) for part in args[len(orders) :]))
        raise GraphError(f"{expression} has no form in index notation")

    def power(self, base: Term, exponent: Term) -> Expr:
        if base == terms.E:
            return self.call("exp", self.of(exponent))
        if exponent == -1:
            return self.call("reciprocal", self.of(base))
        if exponent == 2:
            return self.call("square", self.of(base))
        if exponent.number in (Fraction(1, 2), Fraction(-1, 2)):
            return self.call("sqrt" if exponent >= 0 else "rsqrt", self.of(base))
        return self.call("pow", self.of(base), self.of(exponent))

    def piecewise(self, pieces: Sequence[Term]) -> Expr:
        *chosen, last = (piece.args for piece in pieces)
        result = self.of(last[0])
        for value, condition in reversed(chosen):
            result = self.choose(condition, self.of(value), result)
        return result

    def choose(self, condition: Term, value: Expr, other: Expr) -> Expr:
        return self.pool.select(self.condition(condition), value, other)

    def condition(self, condition: Term) -> Expr:
        kind, args = condition.kind, condition.args
        if condition in (terms.TRUE, terms.FALSE):
            return self.pool.literal(condition == terms.TRUE, bool_)
        if kind == terms.SYMBOL:
            return self.operands[OPERANDS.index(condition)]
        if kind == "Not":
            return self.truth("logical_not", self.condition(args[0]))
        if kind in _JOINED:
            parts = [self.condition(part) for part in args]
            result = parts[0]
            for part in parts[1:]:
                result = self.truth(_JOINED[kind], result, part)
            return result
        return self.truth(_RELATIONS[kind], *map(self.of, args))

    def rational(self, value: Fraction) -> Expr:
        if value.denominator == 1:
            return self.number(int(value))
        return self.call("div", self.number(value.numerator), self.number(value.denominator))

    def number(self, value: int) -> Expr:
        return self.pool.literal(float(value), self.dtype)

    def fold(self, name: str, parts: Sequence[Expr]) -> Expr:
        result = parts[0]
        for part in parts[1:]:
            result = self.call(name, result, part)
        return result

    def call(self, name: str, *operands: Expr) -> Expr:
        return self.pool.call(name, *operands, dtype=self.dtype)

    def truth(self, name: str, *operands: Expr) -> Expr:
        return self.pool.call(name, *operands, dtype=bool_)


_FOLDED = {"Add": "add", "Mul": "mul", "Max": "maximum", "Min": "minimum"}
_JOINED = {"And": "logical_and", "Or": "logical_or", "Xor": "logical_xor"}
_RELATIONS = {
    "Equality": "eq", "Unequality": "ne", "StrictLessThan": "lt", "LessThan": "le",
    "StrictGreaterThan": "gt", "GreaterThan": "ge",
}  # fmt: skip
_CONDITIONS = frozenset((*_JOINED, *_RELATIONS, "Not", "true", "false"))


# -- values at 60 digits


@_by_record
def value_function(op: Op, arity: int) -> Callable[..., Any]:
    """The op as a function of mpmath numbers; NaN outside its domain."""
    kept = _kept(op, arity)
    return _function(kept[0] if kept else None, lambda: _symbolic().body(op, arity), arity)


@_by_record
def value_text(op: Op, arity: int) -> str | None:
    """What the op is as a text over mpmath's names; None for an op that is not symgrad's."""
    kept = _kept(op, arity)
    return kept[0][1] if kept else None


@_by_record
def partial_function(op: Op, arity: int, position: int) -> Callable[..., Any]:
    """A partial derivative of the op as a function of mpmath numbers."""
    kept = _kept(op, arity)
    return _function(
        kept[1 + position] if kept else None,
        lambda: _symbolic().partial(op, arity, position),
        arity,
    )


def _function(
    kept: tuple[terms.Code, str | None] | None, otherwise: Callable[[], Any], arity: int
) -> Callable[..., Any]:
    if kept is not None and kept[1] is not None:
        return function_of(kept[1], arity)
    found: Callable[..., Any] = _symbolic().lambdified(otherwise(), arity)
    return found
