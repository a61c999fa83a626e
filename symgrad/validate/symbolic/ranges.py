"""Between which numbers a formula lies.

In: index notation, and what is known of parts of it.  Out: ``Range``s, by interval arithmetic.

The bounds of functions are those of the records of the ops.  All ops in the formula are taken to
be defined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite

from symgrad.errors import UnsupportedOpError
from symgrad.ir.dtype import bool_
from symgrad.ir.expr import Call, Expr, IntValue, Literal, Reduce, fold
from symgrad.ops.record import get
from symgrad.validate.symbolic.values import Values

Number = Fraction | float
"""A fraction, or an infinity."""


@dataclass(frozen=True)
class Range:
    """``low <= x <= high``; ``<`` where that end is ``open``."""

    low: Number = -inf
    high: Number = inf
    low_open: bool = False
    high_open: bool = False

    def meets(self, kind: str) -> bool:
        """Are all its numbers ``positive``, ``nonnegative``, or ``nonzero``?"""
        above = self.low > 0 or (self.low == 0 and self.low_open)
        below = self.high < 0 or (self.high == 0 and self.high_open)
        if kind == "nonnegative":
            return self.low >= 0
        return above or (kind == "nonzero" and below)

    def __neg__(self) -> Range:
        return Range(-self.high, -self.low, self.high_open, self.low_open)

    def __add__(self, other: Range) -> Range:
        return Range(
            self.low + other.low, self.high + other.high,
            self.low_open or other.low_open, self.high_open or other.high_open,
        )  # fmt: skip

    def joined(self, other: Range) -> Range:
        """The numbers of both."""
        low, low_open = min((self.low, self.low_open), (other.low, other.low_open))
        high, closed = max((self.high, not self.high_open), (other.high, not other.high_open))
        return Range(low, high, low_open, not closed)

    def within(self, other: Range) -> Range:
        """The numbers that are in both."""
        low, low_open = max((self.low, self.low_open), (other.low, other.low_open))
        high, closed = min((self.high, not self.high_open), (other.high, not other.high_open))
        return Range(low, high, low_open, not closed)

    def __mul__(self, other: Range) -> Range:
        if self.low >= 0 and other.low >= 0:
            low = _times(self.low, other.low)
            if low:
                strict = self.low_open or other.low_open
            else:
                strict = self.meets("positive") and other.meets("positive")
            return Range(low, _times(self.high, other.high), strict)
        if self.high <= 0 and self.low < 0:
            return -(-self * other)
        if other.high <= 0 and other.low < 0:
            return -(self * -other)
        ends = [_times(x, y) for x in (self.low, self.high) for y in (other.low, other.high)]
        return Range(min(ends), max(ends))

    def square(self) -> Range:
        """Of each number its square."""
        if self.low >= 0 or self.high <= 0:
            return self * self
        greatest = _absolute(self)
        high = _times(greatest.high, greatest.high)
        return Range(Fraction(0), high, high_open=greatest.high_open)

    def inverse(self) -> Range:
        """Of each number one over it."""
        if self.low >= 0:
            if self.high == inf:
                return Range(Fraction(0), low_open=True)
            return Range(1 / Fraction(self.high), low_open=self.high_open) if self.high else Range()
        return -(-self).inverse() if self.high <= 0 else Range()


def _times(x: Number, y: Number) -> Number:
    return Fraction(0) if x == 0 or y == 0 else x * y


ALL = Range()
NATURAL = Range(Fraction(0))
POSITIVE = Range(Fraction(0), low_open=True)
TRUTH = Range(Fraction(0), Fraction(1))


class Ranges:
    """The ranges of formulas, in one place of a program.

    ``known``: ranges of some parts there.  What holds of integers there is asked of ``values``.
    """

    def __init__(self, values: Values, known: Mapping[Expr, Range]) -> None:
        self._integers, self._known = values.integers, known
        self._done: dict[Expr, Range] = {}

    def of(self, expr: Expr) -> Range:
        """The range of a formula."""
        return fold([expr], self._range, self._done)[expr]

    def _range(self, expr: Expr, inner: Mapping[Expr, Range]) -> Range:
        found = self._plain(expr, inner)
        known = self._known.get(expr)
        return found if known is None else found.within(known)

    def _plain(self, expr: Expr, inner: Mapping[Expr, Range]) -> Range:
        if isinstance(expr, Literal):
            return Range(number := Fraction(expr.value), number) if isfinite(expr.value) else ALL
        if isinstance(expr, IntValue):
            least = next((n for n in (1, 0) if self._integers.entails(expr.value - n)), None)
            return ALL if least is None else Range(Fraction(least))
        if expr.dtype == bool_:
            return TRUTH
        if isinstance(expr, Reduce):
            return self._reduced(expr, inner[expr.body])
        if not isinstance(expr, Call):
            return ALL
        operands = [inner[one] for one in expr.operands]
        if expr.function == "cast" and expr.dtype.is_float < expr.operands[0].dtype.is_float:
            return ALL
        if expr.function == "mul" and expr.operands[0] is expr.operands[1]:
            return operands[0].square()
        if expr.function == "pow" and isinstance(power := expr.operands[1], Literal):
            return _power(operands[0], power)
        made = _CALLS.get(expr.function)
        return made(*operands) if made is not None else _recorded(expr.function)

    def _reduced(self, expr: Reduce, body: Range) -> Range:
        kind = expr.kind
        if kind.startswith("arg"):
            return NATURAL
        if kind in ("sum", "prod") and body.low >= 0:
            strict = kind == "prod" or self._integers.entails(expr.axis.extent - 1)
            return Range(Fraction(0), low_open=strict and body.meets("positive"))
        if kind in ("max", "min") and self._integers.entails(expr.axis.extent - 1):
            return body
        return ALL


def _power(base: Range, power: Literal) -> Range:
    if power.value == 2:
        return base.square()
    if base.meets("positive"):
        return POSITIVE
    even = isfinite(power.value) and float(power.value) % 2 == 0
    return NATURAL if even or base.low >= 0 else ALL


def _recorded(function: str) -> Range:
    try:
        scalar = get(function).scalar
    except UnsupportedOpError:
        return ALL
    bounds = None if scalar is None else scalar.bounds
    if bounds is None:
        return ALL
    low = -inf if bounds.low is None else Fraction(bounds.low)
    high = inf if bounds.high is None else Fraction(bounds.high)
    return Range(low, high, bounds.open, bounds.open)


def _greatest(x: Range, y: Range) -> Range:
    low, low_open = max((x.low, x.low_open), (y.low, y.low_open))
    high, closed = max((x.high, not x.high_open), (y.high, not y.high_open))
    return Range(low, high, low_open, not closed)


def _absolute(x: Range) -> Range:
    if x.low >= 0 or x.high <= 0:
        return x if x.low >= 0 else -x
    return _greatest(x, -x).within(NATURAL)


def _like(x: Range) -> Range:
    """Of a function that is 0 at 0 and grows."""
    low = POSITIVE if x.meets("positive") else NATURAL if x.low >= 0 else ALL
    high = -POSITIVE if (-x).meets("positive") else -NATURAL if x.high <= 0 else ALL
    return low.within(high)


def _log(x: Range) -> Range:
    return _like(x + Range(Fraction(-1), Fraction(-1)))


def _exponential(x: Range) -> Range:
    low = Fraction(1) if x.low >= 0 else Fraction(0)
    high = Fraction(1) if x.high <= 0 else inf
    return Range(low, high, low_open=x.low < 0 or (x.low == 0 and x.low_open))


_CALLS: dict[str, Callable[..., Range]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x + -y, "neg": lambda x: -x,
    "mul": lambda x, y: x * y, "div": lambda x, y: x * y.inverse(), "square": Range.square,
    "reciprocal": Range.inverse, "rsqrt": lambda x: POSITIVE, "abs": _absolute,
    "where": lambda condition, x, y: x.joined(y), "cast": lambda x: x, "shift": lambda x: x,
    "maximum": _greatest, "minimum": lambda x, y: -_greatest(-x, -y),
    "relu": lambda x: _greatest(x, Range(Fraction(0), Fraction(0))),
    "sqrt": lambda x: POSITIVE if x.meets("positive") else NATURAL,
    "root": lambda x: POSITIVE if x.meets("positive") else NATURAL,
    "hypot": lambda x, y: NATURAL, "exp": _exponential, "exp2": lambda x: POSITIVE,
    "softplus": lambda x: POSITIVE, "log_sigmoid": lambda x: -POSITIVE,
    "sigmoid": lambda x: Range(Fraction(0), Fraction(1), low_open=True, high_open=True),
    "log1p": _like, "expm1": _like, "log": _log,
}  # fmt: skip
"""The ranges of the results."""
