"""Where the ops of a formula are defined, as the records of the ops say.

In: a call in index notation.  Out: its ``Need``s: what has to hold of its operands.

A division by a product needs each factor not to be 0.  An op whose record says nothing of the
reals (a user's own) needs to be one that the other formula calls too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any

from symgrad.errors import UnsupportedOpError
from symgrad.ir.dtype import DType
from symgrad.ir.expr import Call, Expr, Literal, Reduce
from symgrad.ops.record import Scalar, get, is_own
from symgrad.validate.symbolic.normal import SAME
from symgrad.validate.symbolic.values import Values

STRUCTURAL = frozenset((
    "wrap_i8", "wrap_i16", "wrap_i32", "wrap_u8", "where", "logical_or", "logical_and",
    "logical_not", "logical_xor", "cbrt",
))  # fmt: skip
"""What is defined for all operands, and is no op of the registry by that name, or a choice."""


@dataclass(frozen=True)
class Need:
    """``operands`` are ``positive``, ``nonnegative``, ``nonzero``, ``regular`` or ``whole``.

    Or, where ``kind`` is ``op NAME``, a user's op takes them.  ``function``: what needs it.
    """

    kind: str
    operands: tuple[Expr, ...]
    function: str


class _Number(Fraction):
    """A literal operand, as the records ask about it."""

    is_number = True


class _Formula:
    """An operand, with the operators that records apply."""

    is_number = False

    def __init__(self, values: Values, expr: Expr) -> None:
        self._values, self.expr = values, expr

    def _made(self, function: str, *operands: Any) -> _Formula:
        dtype = self.expr.dtype
        parts = [_expression(self._values, one, dtype) for one in operands]
        return _Formula(self._values, self._values.call(function, *parts, dtype=dtype))

    def __add__(self, other: Any) -> _Formula:
        return self._made("add", self, other)

    def __radd__(self, other: Any) -> _Formula:
        return self._made("add", other, self)

    def __sub__(self, other: Any) -> _Formula:
        return self._made("sub", self, other)

    def __rsub__(self, other: Any) -> _Formula:
        return self._made("sub", other, self)

    def called(self, function: str) -> _Formula:
        """A function of it."""
        return self._made(function, self)


class _Functions:
    """What records take from sympy."""

    @staticmethod
    def Integer(value: int) -> _Number:
        return _Number(value)

    @staticmethod
    def cos(value: Any) -> Any:
        return value.called("cos")


def _expression(values: Values, value: Any, dtype: DType) -> Expr:
    if isinstance(value, _Formula):
        return value.expr
    return values.pool.literal(float(value), dtype)


def _operand(values: Values, expr: Expr) -> _Number | _Formula:
    if isinstance(expr, Literal) and isfinite(expr.value):
        return _Number(expr.value)
    return _Formula(values, expr)


def of_literal(expr: Literal) -> tuple[Need, ...]:
    """A literal that is no real number has to be one of the other formula's."""
    if isfinite(expr.value):
        return ()
    return (Need(f"number {expr.value}", (expr,), "a literal"),)


def of_reduction(values: Values, expr: Reduce) -> tuple[Need, ...]:
    """The greatest and the least of nothing are no real numbers."""
    if expr.kind not in ("max", "min") or not expr.dtype.is_float:
        return ()
    return (Need("positive", (values.pool.integer(expr.axis.extent),), expr.kind),)


def needs(values: Values, call: Call) -> tuple[Need, ...]:
    """What has to hold of the operands of a call for it to be a real number."""
    operands, name = call.operands, SAME.get(call.function, call.function)
    if not any(one.dtype.is_float for one in (call, *operands)) or name in STRUCTURAL:
        return ()
    if name == "cast":
        turned = operands[0].dtype.is_float and not call.dtype.is_float
        return (Need("whole", operands, name),) if turned else ()
    scalar = _scalar(name)
    if scalar is None:
        return (Need(f"op {name}", operands, name),)
    return tuple(_constrained(values, scalar, call))


def _scalar(name: str) -> Scalar | None:
    try:
        op = get(name)
    except UnsupportedOpError:
        return None
    return op.scalar if is_own(op) else None


def _constrained(values: Values, scalar: Scalar, call: Call) -> Iterator[Need]:
    operands = [_operand(values, one) for one in call.operands]
    for one in scalar.domain if scalar.defined is None else scalar.defined:
        found = one.expression(_Functions, *operands)
        if isinstance(found, _Formula):
            for part in factors(found.expr) if one.kind == "nonzero" else (found.expr,):
                yield Need(one.kind, (part,), call.function)
        elif not _holds(one.kind, Fraction(found)):
            nothing = values.pool.literal(float(found), call.dtype)
            yield Need(one.kind, (nothing,), call.function)


def _holds(kind: str, value: Fraction) -> bool:
    if kind == "regular":
        return value > 0 or value.denominator != 1
    return {"positive": value > 0, "nonnegative": value >= 0, "nonzero": value != 0}[kind]


def factors(expr: Expr) -> Iterator[Expr]:
    """What must not be 0 for ``expr`` not to be 0."""
    if isinstance(expr, Call) and expr.function in _FACTORS:
        for one in expr.operands[: _FACTORS[expr.function]]:
            yield from factors(one)
    else:
        yield expr


_FACTORS = {"mul": 2, "div": 1, "neg": 1, "square": 1, "sqrt": 1, "root": 1, "abs": 1}
"""How many of its operands an op has as factors: it is 0 where one of them is, and only there."""
