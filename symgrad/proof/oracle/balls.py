"""Numbers that are known for certain: rationals where they are exact, balls that enclose elsewhere.

In: Python's operators and the functions of this file, on ``Jet`` elements.  Out: values and
derivatives along one line, each enclosed; ``Uncertain`` where an enclosure does not decide.

A number is a ``fmpq`` (exact), an ``arb`` (a ball that contains it), or one of the floats inf,
-inf and nan, which are meant as such: nan is what has no value.  A ``Jet`` is the value of an
element with its derivative along the line; None is the derivative of what does not depend on it.
Arithmetic carries the derivative (forward mode), so that neither sympy nor the derivatives that the
records of the ops state are used.  What asks for an order (comparisons, maxima, rounding) is
answered where the enclosures are apart or equal for certain.

FLINT's balls are rigorous.  Compared with the intervals of mpmath, at 256 bits and on the
same machine: exp 0.8 us for 15.9, and mpmath has no interval for erf, lgamma or digamma.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import numpy as np

from symgrad.proof.oracle.flint import arb, ctx, fmpq, fmpz

Number: TypeAlias = Any
"""``fmpq``, ``arb``, or one of the floats inf, -inf, nan."""

BITS = 256
MORE_BITS = 1024
LARGEST_RATIONAL = 4000
"""Bits of a rational above which it becomes a ball."""
LARGEST_POWER = 1024
NAN, INFINITY = math.nan, math.inf
ZERO, ONE, HALF = fmpq(0), fmpq(1), fmpq(1, 2)


class Uncertain(Exception):
    """An enclosure does not decide what is asked."""


class OnBoundary(Uncertain):
    """What depends on the line is on the boundary of two branches, or at a kink."""


def working(bits: int) -> AbstractContextManager[Any]:
    """The precision of balls, as a context."""
    found: AbstractContextManager[Any] = ctx.workprec(bits)
    return found


# -- numbers


def ball(x: Number) -> Any:
    """A finite number as a ball."""
    return x if type(x) is arb else arb(x)


def around(middle: fmpq, radius: fmpq) -> Number:
    """The ball around a rational."""
    return ball(middle) + ball(radius) * arb(0, 1)


def _checked(result: Any) -> Number:
    """A ball that is finite.  Raises Uncertain: its operands were, and had a result."""
    if result.is_finite():
        return result
    raise Uncertain("a ball grew beyond all bounds")


def _kept(result: Any) -> Number:
    return ball(result) if result.height_bits() > LARGEST_RATIONAL else result


def is_special(x: Number) -> bool:
    """Is it inf, -inf or nan?"""
    return type(x) is float


def is_undefined(x: Number) -> bool:
    """Has it no value?"""
    return type(x) is float and math.isnan(x)


def sign(x: Number) -> int:
    """-1, 0 or 1.  Raises Uncertain; of nan, too."""
    if type(x) is float:
        if math.isnan(x):
            raise Uncertain("the sign of what has no value")
        return 1 if x > 0 else -1
    if x > 0:
        return 1
    if x < 0:
        return -1
    if x == 0:
        return 0
    raise Uncertain("a ball contains 0")


def certainly_equal(x: Number, y: Number) -> bool:
    """Are two numbers the same for certain?"""
    if x is y:
        return not is_undefined(x)
    if type(x) is float or type(y) is float:
        return type(x) is type(y) and bool(x == y)
    return bool(x == y) if type(x) is type(y) is fmpq else bool(ball(x) == ball(y))


def order(x: Number, y: Number) -> int | None:
    """-1, 0 or 1 for less, equal, greater; None where one has no value.  Raises Uncertain."""
    if is_undefined(x) or is_undefined(y):
        return None
    if certainly_equal(x, y):
        return 0
    if type(x) is float or type(y) is float:
        left, right = (v if type(v) is float else 0.0 for v in (x, y))
        return -1 if left < right else 1
    if x < y:
        return -1
    if x > y:
        return 1
    raise Uncertain("two balls overlap")


def apart(x: Number, y: Number) -> bool:
    """Are two numbers different for certain?  What has no value differs from what has one."""
    if type(x) is float or type(y) is float:
        return not certainly_equal(x, y)
    return bool(x != y)


def _as_float(x: Number) -> float:
    """Its sign, for arithmetic with infinities."""
    return x if type(x) is float else float(sign(x))


def _from_float(x: float) -> Number:
    return x if not math.isfinite(x) else fmpq(int(x))


def add(x: Number, y: Number) -> Number:
    """The sum."""
    if type(x) is float or type(y) is float:
        left, right = (v if type(v) is float else 0.0 for v in (x, y))
        return left + right
    result = x + y
    return _kept(result) if type(result) is fmpq else _checked(result)


def mul(x: Number, y: Number) -> Number:
    """The product."""
    if type(x) is float or type(y) is float:
        if is_undefined(x) or is_undefined(y):
            return NAN
        return _from_float(_as_float(x) * _as_float(y))
    result = x * y
    return _kept(result) if type(result) is fmpq else _checked(result)


def neg(x: Number) -> Number:
    """The number with the other sign."""
    return -x


def inverse(x: Number) -> Number:
    """``1/x``; nan for 0."""
    if type(x) is float:
        return NAN if math.isnan(x) else ZERO
    side = sign(x)
    if side == 0:
        return NAN
    return 1 / x if type(x) is fmpq else _checked(1 / x)


def div(x: Number, y: Number) -> Number:
    """The quotient; nan for a quotient by 0."""
    return mul(x, inverse(y))


def integer_power(x: Number, exponent: int) -> Number:
    """``x**exponent``; ``0**0`` is 1."""
    if exponent == 0:
        return ONE
    if exponent < 0:
        return inverse(integer_power(x, -exponent))
    if type(x) is float:
        return x if exponent % 2 or math.isnan(x) else INFINITY
    if type(x) is fmpq and x.height_bits() * exponent <= LARGEST_RATIONAL:
        return x**exponent
    return _checked(ball(x) ** exponent)


def _exact_root(x: fmpq) -> fmpq | None:
    """The square root of a rational, where it is rational."""
    above, below = (math.isqrt(int(part)) for part in (x.p, x.q))
    return fmpq(above, below) if above**2 == x.p and below**2 == x.q else None


def sqrt(x: Number) -> Number:
    """The square root; nan where x is negative."""
    if type(x) is float:
        return x if x > 0 else NAN
    side = sign(x)
    if side <= 0:
        return ZERO if side == 0 else NAN
    exact = _exact_root(x) if type(x) is fmpq else None
    return exact if exact is not None else _checked(ball(x).sqrt())


def exp(x: Number) -> Number:
    """The exponential."""
    if type(x) is float:
        return ZERO if x == -INFINITY else x
    return ONE if x == 0 else _checked(ball(x).exp())


def log(x: Number) -> Number:
    """The logarithm; -inf at 0, nan where x is negative."""
    if type(x) is float:
        return x if x > 0 else NAN
    side = sign(x)
    if side <= 0:
        return -INFINITY if side == 0 else NAN
    return ZERO if x == 1 else _checked(ball(x).log())


def power(x: Number, y: Number) -> Number:
    """``x**y``; nan where x is negative and y no integer."""
    if type(y) is fmpq and y.q == 1 and abs(int(y.p)) <= LARGEST_POWER:
        return integer_power(x, int(y.p))
    if type(y) is fmpq and y.q == 2 and abs(int(y.p)) <= LARGEST_POWER:
        return integer_power(sqrt(x), int(y.p))
    if is_special(x) or is_special(y):
        return NAN if is_undefined(x) or is_undefined(y) else _infinite_power(x, y)
    side = sign(x)
    if side > 0:
        return exp(mul(y, log(x)))
    if type(y) is not fmpq or (side < 0 and y.q == 1):
        raise Uncertain("a power whose exponent may be an integer")
    return NAN if side < 0 or y < 0 else ZERO


def _infinite_power(x: Number, y: Number) -> Number:
    raise Uncertain("a power of an infinity")


def _whole(x: Number) -> int:
    """The greatest integer that is not greater.  Raises Uncertain."""
    if type(x) is fmpq:
        return int(x.floor())
    found = ball(x).floor().unique_fmpz() if not is_special(x) else None
    if not isinstance(found, fmpz):
        raise Uncertain("a ball contains an integer")
    return int(found)


def _finite(
    function: Callable[[Any], Any], at: dict[float, Number] | None = None,
    inside: Callable[[Number], bool] | None = None,
) -> Callable[[Number], Number]:  # fmt: skip
    """A function of balls.  ``at``: its limits; ``inside``: where it is defined."""

    def call(x: Number) -> Number:
        if type(x) is float:
            return NAN if math.isnan(x) else (at or {}).get(x, NAN)
        if inside is not None and not inside(x):
            return NAN
        return _exact_zero(_checked(function(ball(x))))

    return call


def _exact_zero(x: Any) -> Number:
    return ZERO if x == 0 else x


def _within(low: int | None, high: int | None, *, closed: bool) -> Callable[[Number], bool]:
    """Does a number lie between two for certain?  Raises Uncertain."""

    def inside(x: Number) -> bool:
        sides = [] if low is None else [sign(add(x, fmpq(-low)))]
        sides += [] if high is None else [sign(add(fmpq(high), neg(x)))]
        return all(side > 0 or (closed and side == 0) for side in sides)

    return inside


def _no_pole(x: Number) -> bool:
    """Is it no integer below 1?"""
    if type(x) is fmpq:
        return not (x.q == 1 and x <= 0)
    if x > 0:
        return True
    _whole(x)
    return True


def _polygamma(number: int) -> Callable[[Any], Any]:
    factor = math.factorial(number) * (-1) ** (number + 1)
    return lambda x: factor * arb(number + 1).zeta(x)


_EVERYWHERE = {INFINITY: INFINITY, -INFINITY: -INFINITY}
expm1 = _finite(arb.expm1, {INFINITY: INFINITY, -INFINITY: fmpq(-1)})
log1p = _finite(arb.log1p, {INFINITY: INFINITY}, _within(-1, None, closed=False))
sin, cos = _finite(arb.sin), _finite(arb.cos)
tan = _finite(arb.tan)
closed_unit = _within(-1, 1, closed=True)
open_unit = _within(-1, 1, closed=False)
asin, acos = _finite(arb.asin, None, closed_unit), _finite(arb.acos, None, closed_unit)
atan = _finite(arb.atan)
sinh = _finite(arb.sinh, _EVERYWHERE)
cosh = _finite(arb.cosh, {INFINITY: INFINITY, -INFINITY: INFINITY})
tanh = _finite(arb.tanh, {INFINITY: ONE, -INFINITY: fmpq(-1)})
asinh = _finite(arb.asinh, _EVERYWHERE)
acosh = _finite(arb.acosh, {INFINITY: INFINITY}, _within(1, None, closed=True))
atanh = _finite(arb.atanh, None, open_unit)
erf = _finite(arb.erf, {INFINITY: ONE, -INFINITY: fmpq(-1)})
erfc = _finite(arb.erfc, {INFINITY: ZERO, -INFINITY: fmpq(2)})
erfinv = _finite(arb.erfinv, None, open_unit)
lgamma = _finite(
    lambda x: x.lgamma() if x > 0 else abs(x.gamma()).log(), {INFINITY: INFINITY}, _no_pole
)
digamma = _finite(arb.digamma, {INFINITY: INFINITY}, _no_pole)
trigamma = _finite(_polygamma(1), {INFINITY: ZERO}, _no_pole)
tetragamma = _finite(_polygamma(2), {INFINITY: ZERO}, _no_pole)
pentagamma = _finite(_polygamma(3), {INFINITY: ZERO}, _no_pole)


def sigmoid(x: Number) -> Number:
    """``1/(1 + exp(-x))``."""
    if type(x) is float:
        return x if math.isnan(x) else (ONE if x > 0 else ZERO)
    return inverse(add(ONE, exp(neg(x))))


def softplus(x: Number) -> Number:
    """``log(1 + exp(x))``."""
    return log1p(exp(x))


# -- elements


class Jet:
    """A value, and its derivative along the line, or None."""

    __slots__ = ("d", "v")

    def __init__(self, v: Number, d: Number | None = None) -> None:
        self.v, self.d = v, d

    def __add__(self, other: Any) -> Jet:
        if type(other) is not Jet:
            if isinstance(other, np.ndarray):
                return NotImplemented
            other = constant(other)
        return Jet(add(self.v, other.v), plus(self.d, other.d))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Jet:
        if other is self and type(self.v) is not float and arb(self.v).is_finite():
            return Jet(ZERO)  # one element, whatever its value
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> Jet:
        return (-self).__add__(other)

    def __neg__(self) -> Jet:
        return Jet(-self.v, None if self.d is None else -self.d)

    def __mul__(self, other: Any) -> Jet:
        if type(other) is not Jet:
            if isinstance(other, np.ndarray):
                return NotImplemented
            other = constant(other)
        return Jet(mul(self.v, other.v), plus(times(self.d, other.v), times(other.d, self.v)))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Jet:
        return self * (other if type(other) is Jet else constant(other)).inverse()

    def __rtruediv__(self, other: Any) -> Jet:
        return constant(other) * self.inverse()

    def inverse(self) -> Jet:
        """Its reciprocal."""
        found = inverse(self.v)
        return Jet(found, None if self.d is None else mul(neg(mul(found, found)), self.d))


def constant(value: Any) -> Jet:
    """A Python number as an element; a finite float is exact."""
    if isinstance(value, float):
        return Jet(value if not math.isfinite(value) else fmpq(*value.as_integer_ratio()))
    return Jet(fmpq(int(value)))


def plus(x: Number | None, y: Number | None) -> Number | None:
    """The sum of derivatives."""
    return y if x is None else x if y is None else add(x, y)


def times(x: Number | None, factor: Number) -> Number | None:
    """A derivative times a factor."""
    return None if x is None else mul(x, factor)


def chained(value: Number, *parts: tuple[Number | None, Callable[[], Number]]) -> Jet:
    """A function's value, with its derivative: those of its operands, times the partials.

    Raises Uncertain where a partial that is needed has no value or is infinite: there is a kink.
    """
    total: Number | None = None
    for moved, partial in parts:
        if moved is not None:
            factor = NAN if is_undefined(value) else partial()
            if is_special(factor) and not is_undefined(value):
                raise OnBoundary("there is no derivative")
            total = plus(total, mul(moved, factor))
    return Jet(value, total)


class Asking:
    """What asks for an order.  ``side``: of points on the line, 1 ahead, -1 behind, 0 the point.

    At the point itself nothing that depends on the line may be on a boundary.
    """

    def __init__(self, side: int = 0) -> None:
        self.side = side

    def order(self, x: Jet, y: Jet) -> int | None:
        """-1, 0, 1, or None where one has no value."""
        found = order(x.v, y.v)
        if found != 0 or x is y or (x.d is None and y.d is None):
            return found
        if self.side == 0:
            raise OnBoundary("what is compared is equal")
        ahead = add(ZERO if x.d is None else x.d, ZERO if y.d is None else neg(y.d))
        side = sign(ahead) * self.side
        if side == 0:
            raise Uncertain("what is compared is equal, and so are the derivatives")
        return side

    def whole(self, x: Jet) -> int:
        """The greatest integer that is not greater than x."""
        found = _whole(x.v)
        if x.d is not None and certainly_equal(x.v, fmpq(found)):
            return found if self.order(x, Jet(fmpq(found))) != -1 else found - 1
        return found

    def compared(self, relation: str, x: Jet, y: Jet) -> bool:
        """A comparison, false (``ne`` true) where one has no value."""
        if relation in ("eq", "ne") and self._differ(x, y):
            return relation == "ne"
        found = self.order(x, y)
        if found is None:
            return relation == "ne"
        return _RELATIONS[relation](found)

    def _differ(self, x: Jet, y: Jet) -> bool:
        finite = not is_special(x.v) and not is_special(y.v)
        return finite and apart(x.v, y.v)

    def greatest(self, parts: Sequence[Jet], least: bool = False) -> int:
        """The place of the first greatest (or least) element; of one without a value, if any."""
        best = 0
        for place, one in enumerate(parts):
            if is_undefined(one.v):
                return place
            if place and self._beats(one, parts[best], least):
                best = place
        return best

    def _beats(self, one: Jet, other: Jet, least: bool) -> bool:
        same = order(one.v, other.v) == 0 and one.d is not None and other.d is not None
        if same and certainly_equal(one.d, other.d):
            return False
        return self.order(one, other) == (-1 if least else 1)


_RELATIONS: dict[str, Callable[[int], bool]] = {
    "eq": lambda o: o == 0, "ne": lambda o: o != 0, "lt": lambda o: o < 0, "le": lambda o: o <= 0,
    "gt": lambda o: o > 0, "ge": lambda o: o >= 0,
}  # fmt: skip
