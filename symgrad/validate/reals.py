"""Arithmetic on the reals, exact where it can be: what bounded execution computes with.

In: rationals.  Out: rationals where the operation is rational, else balls that hold the result.

A number is an ``fmpq``, a ``Ball``, or one of Python's floats ``inf``, ``-inf`` and ``nan``; nan
stands for what has no value (a division by zero, a logarithm of zero), and signs of zeros are not
told apart.  The same operation on the same operands gives the same ball, and one ball is equal to
itself: what is computed twice may be compared.  Two other balls that overlap cannot be told apart,
which raises ``Undecided``; more bits may help.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from operator import methodcaller
from typing import Any

from flint import arb, ctx, fmpq, fmpz

Number = Any  # fmpq, Ball, or a float that is not finite
NAN, INFINITY = math.nan, math.inf
ZERO, ONE = fmpq(0), fmpq(1)


class Undecided(Exception):
    """Two numbers are too close to be told apart with so many bits."""


class Ball:
    """A real in an enclosure.  Compared by identity."""

    __slots__ = ("value",)

    def __init__(self, value: arb) -> None:
        self.value = value

    def __repr__(self) -> str:
        return str(self.value)


def precision(bits: int) -> AbstractContextManager[Any]:
    """The precision of balls, as a context."""
    found: AbstractContextManager[Any] = ctx.workprec(bits)
    return found


def shown(number: Number) -> str:
    """A number for a reader."""
    if isinstance(number, Ball):
        return str(number.value.str(12))
    return str(number)


_EXACT: dict[str, dict[int, int]] = {
    "exp": {0: 1}, "exp2": {0: 1, 1: 2, 2: 4}, "expm1": {0: 0}, "log": {1: 0},
    "log1p": {0: 0}, "log2": {1: 0, 2: 1, 4: 2}, "log10": {1: 0, 10: 1}, "sin": {0: 0},
    "cos": {0: 1}, "tan": {0: 0}, "asin": {0: 0}, "acos": {1: 0}, "atan": {0: 0}, "sinh": {0: 0},
    "cosh": {0: 1}, "tanh": {0: 0}, "asinh": {0: 0}, "acosh": {1: 0}, "atanh": {0: 0},
    "erf": {0: 0}, "erfc": {0: 1}, "erfinv": {0: 0}, "lgamma": {1: 0, 2: 0},
}  # fmt: skip
_AT_INFINITY: dict[str, tuple[float, float]] = {  # at -inf, at inf
    "exp": (0, INFINITY), "exp2": (0, INFINITY), "expm1": (-1, INFINITY), "log": (NAN, INFINITY),
    "log1p": (NAN, INFINITY), "log2": (NAN, INFINITY), "log10": (NAN, INFINITY), "tanh": (-1, 1),
    "erf": (-1, 1), "erfc": (2, 0), "sqrt": (NAN, INFINITY), "fabs": (INFINITY, INFINITY),
}  # fmt: skip
_DOMAIN: dict[str, Callable[[Any], bool]] = {
    "log": lambda x: x > 0, "log2": lambda x: x > 0, "log10": lambda x: x > 0,
    "log1p": lambda x: x > -1, "asin": lambda x: -1 <= x <= 1, "acos": lambda x: -1 <= x <= 1,
    "acosh": lambda x: x >= 1, "atanh": lambda x: -1 < x < 1, "erfinv": lambda x: -1 < x < 1,
}  # fmt: skip
_POLES = ("lgamma", "digamma", "trigamma", "tetragamma")
_BALLS: dict[str, Callable[[arb], arb]] = {
    **{
        name: methodcaller(name)
        for name in (
            "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
            "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "erfinv", "digamma",
        )
    },
    "exp2": lambda x: arb(2) ** x,
    "log2": lambda x: x.log() / arb.const_log2(),
    "log10": lambda x: x.log() / arb.const_log10(),
    "lgamma": lambda x: abs(x.gamma()).log(),
    "trigamma": lambda x: arb(2).zeta(x),
    "tetragamma": lambda x: -2 * arb(3).zeta(x),
}  # fmt: skip
_STEPS: dict[str, Callable[[Any], Any]] = {
    "floor": lambda x: x.floor(),
    "ceil": lambda x: x.ceil(),
}


class Reals:
    """Arithmetic in which equal operations give the same ball; for one precision."""

    def __init__(self) -> None:
        self._made: dict[tuple[Any, ...], Ball] = {}

    def _ball(self, key: tuple[Any, ...], make: Callable[..., arb]) -> Ball:
        """The result of an operation on numbers of which one is a ball, or that is irrational."""
        found = self._made.get(key)
        if found is None:
            value = make(*map(_enclosed, key[1:]))
            if not value.is_finite():
                raise Undecided(f"{key[0]} of {', '.join(map(shown, key[1:]))}")
            found = self._made[key] = Ball(value)
        return found

    # -- order

    def compare(self, x: Number, y: Number) -> int | None:
        """-1, 0 or 1; None where one of them has no value.  Raises Undecided."""
        if type(x) is fmpq and type(y) is fmpq:
            return (x > y) - (x < y)
        if isinstance(x, float) or isinstance(y, float):
            left, right = _extended(x), _extended(y)
            return None if left != left or right != right else (left > right) - (left < right)
        if x is y:
            return 0
        low, high = _enclosed(x), _enclosed(y)
        if low < high:
            return -1
        if low > high:
            return 1
        raise Undecided(f"{shown(x)} or {shown(y)}")

    def sign(self, x: Number) -> int | None:
        """Its sign; None where it has no value."""
        return self.compare(x, ZERO)

    # -- arithmetic

    def neg(self, x: Number) -> Number:
        """The negative."""
        if isinstance(x, Ball):
            return self._ball(("neg", x), lambda a: -a)
        return -x

    def add(self, x: Number, y: Number) -> Number:
        """The sum."""
        if type(x) is fmpq and type(y) is fmpq:
            return x + y
        if isinstance(x, float) or isinstance(y, float):
            return _extended(x) + _extended(y)
        if x == ZERO:
            return y
        if y == ZERO:
            return x
        return self._ball(("add", x, y), lambda a, b: a + b)

    def sub(self, x: Number, y: Number) -> Number:
        """The difference."""
        if type(x) is fmpq and type(y) is fmpq:
            return x - y
        if isinstance(x, float) or isinstance(y, float):
            return _extended(x) - _extended(y)
        if x is y:
            return ZERO
        if y == ZERO:
            return x
        return self._ball(("sub", x, y), lambda a, b: a - b)

    def mul(self, x: Number, y: Number) -> Number:
        """The product."""
        if type(x) is fmpq and type(y) is fmpq:
            return x * y
        if isinstance(x, float) or isinstance(y, float):
            left, right = self.sign(x), self.sign(y)
            return NAN if left is None or right is None or not left * right else (
                left * right * INFINITY
            )  # fmt: skip
        if x == ZERO or y == ZERO:
            return ZERO
        if x == ONE:
            return y
        if y == ONE:
            return x
        return self._ball(("mul", x, y), lambda a, b: a * b)

    def div(self, x: Number, y: Number) -> Number:
        """The quotient; no value where y is zero."""
        if isinstance(x, float) or isinstance(y, float):
            return self._div_extended(x, y)
        if type(y) is fmpq and y == ZERO:
            return NAN
        if type(x) is fmpq and type(y) is fmpq:
            return x / y
        if x is y:
            return ONE
        if x == ZERO:
            self._sure(y)
            return ZERO
        if y == ONE:
            return x
        return self._ball(("div", x, y), lambda a, b: a / b)

    def _sure(self, y: Ball) -> None:
        """That a divisor is not zero."""
        self.compare(y, ZERO)

    def _div_extended(self, x: Number, y: Number) -> Number:
        left, right = self.sign(x), self.sign(y)
        if left is None or right is None or right == 0:
            return NAN
        if isinstance(y, float):
            return NAN if isinstance(x, float) else ZERO
        return left * right * INFINITY

    def maximum(self, x: Number, y: Number) -> Number:
        """The greater; no value where one of them has none."""
        order = self.compare(x, y)
        return NAN if order is None else x if order >= 0 else y

    def minimum(self, x: Number, y: Number) -> Number:
        """The lesser; no value where one of them has none."""
        order = self.compare(x, y)
        return NAN if order is None else x if order <= 0 else y

    # -- functions

    def apply(self, name: str, *operands: Number) -> Number:
        """A function of ``math.h`` by its name.  Raises KeyError for one that is not known."""
        if len(operands) == 2:
            return self._of_two(name, *operands)
        (x,) = operands
        if name == "fabs":
            sign = self.sign(x)
            return NAN if sign is None else self.neg(x) if sign < 0 else x
        if isinstance(x, float):
            low, high = _AT_INFINITY.get(name, (NAN, NAN))
            found = NAN if math.isnan(x) else high if x > 0 else low
            return found if not math.isfinite(found) else fmpq(int(found))
        if name in ("floor", "ceil", "trunc", "rint"):
            return self._whole(name, x)
        if name in ("sqrt", "cbrt"):
            return self._root(name, x)
        if type(x) is fmpq and x.q == 1 and int(x) in _EXACT.get(name, ()):
            return fmpq(_EXACT[name][int(x)])
        if name in _POLES and type(x) is fmpq and x.q == 1 and x <= 0:
            return NAN
        if name in _DOMAIN and not self._inside(name, x):
            return NAN
        make = _BALLS[name]
        return self._ball((name, x), make)

    def _inside(self, name: str, x: Number) -> bool:
        """Is a number in the domain of a function?"""
        value: Any = x if type(x) is fmpq else x.value
        if _DOMAIN[name](value):
            return True
        if type(x) is fmpq or not _BALLS[name](value).is_finite():
            if type(x) is not fmpq and value.overlaps(arb(0)) | value.overlaps(arb(1)):
                raise Undecided(f"{name} at the end of its domain")
            return False
        return True

    def _whole(self, name: str, x: Number) -> fmpq:
        """Rounded to an integer."""
        if type(x) is not fmpq:
            low = x.value.floor().unique_fmpz()
            high = x.value.ceil().unique_fmpz()
            if low is None or high is None:
                raise Undecided(f"{name} of {shown(x)}")
            if name == "rint":
                half = fmpq(1, 2)
                up = self.compare(self.sub(x, fmpq(low)), half)
                return fmpq(high if up == 1 else low)
            down = name == "floor" or (name == "trunc" and low >= 0)
            return fmpq(low if down else high)
        if name == "trunc":
            return fmpq(x.floor() if x >= 0 else x.ceil())
        if name == "rint":
            low = x.floor()
            rest = x - low
            up = rest > fmpq(1, 2) or (rest == fmpq(1, 2) and int(low) % 2)
            return fmpq(low + 1 if up else low)
        return fmpq(_STEPS[name](x))

    def _root(self, name: str, x: Number) -> Number:
        """A square or cubic root: exact where it is rational."""
        power = 2 if name == "sqrt" else 3
        sign = self.sign(x)
        if sign == 0:
            return ZERO
        if sign is None or sign < 0:
            return NAN if power == 2 or sign is None else self.neg(self._root(name, self.neg(x)))
        if type(x) is fmpq:
            above, below = _integer_root(x.p, power), _integer_root(x.q, power)
            if above is not None and below is not None:
                return fmpq(above, below)
        return self._ball((name, x), lambda a: a.sqrt() if power == 2 else a.root(3))

    def _of_two(self, name: str, x: Number, y: Number) -> Number:
        if name == "pow":
            return self._power(x, y)
        if name == "hypot":
            return self.apply("sqrt", self.add(self.mul(x, x), self.mul(y, y)))
        if name == "fmod":
            quotient = self.div(x, y)
            if isinstance(quotient, float):
                return NAN
            return self.sub(x, self.mul(y, self.apply("trunc", quotient)))
        if name == "copysign":
            sign, size = self.sign(y), self.apply("fabs", x)
            return NAN if sign is None else self.neg(size) if sign < 0 else size
        if name in ("fmax", "fmin"):
            return self.maximum(x, y) if name == "fmax" else self.minimum(x, y)
        if name != "atan2":
            raise KeyError(name)
        if isinstance(x, float) or isinstance(y, float) or (self.sign(x) == 0 == self.sign(y)):
            return NAN
        if self.sign(x) == 0 and self.sign(y) == 1:
            return ZERO
        return self._ball((name, x, y), arb.atan2)

    def _power(self, x: Number, y: Number) -> Number:
        if isinstance(x, float) or isinstance(y, float):
            return NAN
        base, sign = self.sign(x), self.sign(y)
        if sign == 0 or (type(x) is fmpq and x == ONE):
            return ONE
        if base == 0:
            return ZERO if sign == 1 else NAN
        if type(y) is fmpq and y.q == 1 and abs(y) <= 64:
            if type(x) is fmpq:
                return x ** int(y)
            return self._ball(("pow", x, y), lambda a, b: a ** int(y))
        if base == -1:
            return NAN
        if type(y) is fmpq and y == fmpq(1, 2):
            return self._root("sqrt", x)
        return self._ball(("pow", x, y), lambda a, b: a**b)


def _integer_root(value: fmpz, power: int) -> fmpz | None:
    """The root of a positive integer where it is an integer."""
    found = value.isqrt() if power == 2 else value.root(power)
    return found if found**power == value else None


def _enclosed(x: Number) -> arb:
    return x.value if isinstance(x, Ball) else arb(x)


def _extended(x: Number) -> float:
    """A number as one of the extended reals, where another one is infinite: its size is lost."""
    if isinstance(x, float):
        return x
    return 0.0
