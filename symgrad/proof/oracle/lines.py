"""Values beside a point: power series along a line, each coefficient enclosed.

In: the operators of Python and ``ELEMENTWISE`` on ``Line`` elements.  Out: what a node is at
``t -> 0`` from one side, with its derivative, also where it divides by what vanishes at 0
(``sin(t) / t``).

A coefficient is a rational, which is exact, or a ball.  A leading coefficient that may be 0 decides
nothing: ``Uncertain``.  What has no series (``log(t)``) is undefined, which matters only where it
is read.  Use inside ``sharing``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from symgrad.proof.oracle import balls
from symgrad.proof.oracle.balls import Jet, Number, Uncertain
from symgrad.proof.oracle.flint import arb_series, fmpq

TERMS = 8
"""How many coefficients are computed."""
ZERO, ONE = fmpq(0), fmpq(1)


# -- numbers that are computed alike are the same object, so that they are equal for certain

_KEPT: ContextVar[dict[Any, Any]] = ContextVar("numbers that were computed")


@contextmanager
def sharing() -> Iterator[None]:
    """Inside, what is computed twice from the same numbers is computed once."""
    token = _KEPT.set({})
    try:
        yield
    finally:
        _KEPT.reset(token)


def _key(x: Number) -> Any:
    return (0, x) if type(x) is fmpq else (1, id(x))


def _shared(name: Any, compute: Callable[..., Number], *operands: Number) -> Number:
    kept = _KEPT.get()
    key = (name, *map(_key, operands))
    if key not in kept:
        kept[key] = compute(*operands), operands
    return kept[key][0]


def _plus(x: Number, y: Number) -> Number:
    if x == 0 or y == 0:
        return y if x == 0 else x
    if type(x) is fmpq and type(y) is fmpq:
        return balls.add(x, y)
    if _minus(x) is y:
        return ZERO
    return _shared("+", balls.add, x, y)


def _times(x: Number, y: Number) -> Number:
    if x == 0 or y == 0:
        return ZERO
    if x == 1 or y == 1:
        return y if x == 1 else x
    if type(x) is fmpq and type(y) is fmpq:
        return balls.mul(x, y)
    if x == -1 or y == -1:
        return _minus(y if x == -1 else x)
    return _shared("*", balls.mul, x, y)


def _minus(x: Number) -> Number:
    if type(x) is fmpq:
        return -x
    found = _shared("-", balls.neg, x)
    _KEPT.get().setdefault(("-", _key(found)), (x, (found,)))
    return found


def _inverse(x: Number) -> Number:
    return _shared("1/", balls.inverse, x)


def _value(function: Callable[[Number], Number], x: Number) -> Number:
    return _shared(function, function, x)


class Line:
    """``sum_k parts[k] t**(low + k)``; None in place of the parts is undefined.

    ``whole``: these are all terms, without a rest.  ``infinite``: the sign of a literal infinity,
    which is undefined but where it is compared.
    """

    __slots__ = ("infinite", "low", "parts", "whole")

    def __init__(self, parts: Sequence[Number] | None, low: int = 0, whole: bool = False) -> None:
        if parts is not None and len(parts) > TERMS:
            parts, whole = parts[:TERMS], False
        if parts is not None and any(balls.is_special(part) for part in parts):
            parts = None
        while parts and parts[0] == 0:
            parts, low = parts[1:], low + 1
        self.parts, self.whole, self.infinite = parts, whole, 0
        self.low = 0 if whole and not parts else low

    @property
    def known(self) -> Sequence[Number]:
        """The coefficients.  Raises Uncertain."""
        if self.parts is None:
            raise Uncertain("it has no series there")
        return self.parts

    @property
    def end(self) -> int:
        """The first power that is not known."""
        return self.low + len(self.known)

    def at(self, power: int) -> Number:
        """A coefficient.  Raises Uncertain."""
        if power < self.low or (self.whole and power >= self.end):
            return ZERO
        if power >= self.end:
            raise Uncertain("too few terms are known")
        return self.known[power - self.low]

    def __add__(self, other: Any) -> Line:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return _add(self, line(other))

    __radd__ = __add__

    def __neg__(self) -> Line:
        parts = None if self.parts is None else [_minus(part) for part in self.parts]
        return Line(parts, self.low, self.whole)

    def __sub__(self, other: Any) -> Line:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return _add(self, -line(other))

    def __rsub__(self, other: Any) -> Line:
        return (-self).__add__(other)

    def __mul__(self, other: Any) -> Line:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return _mul(self, line(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Line:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return _mul(self, inverse(line(other)))


UNDEFINED = Line(None)


def literal(value: Number) -> Line:
    """A number that does not move; an infinity."""
    found = Line([value], whole=True)
    if balls.is_special(value) and math.isinf(value):
        found.infinite = 1 if value > 0 else -1
    return found


def line(value: Any) -> Line:
    """A number, a jet or a line as a line; a jet with a derivative moves."""
    if type(value) is Line:
        return value
    jet = value if type(value) is Jet else balls.constant(value)
    return Line([jet.v] if jet.d is None else [jet.v, jet.d], whole=True)


def _add(left: Line, right: Line) -> Line:
    if left.parts is None or right.parts is None:
        return UNDEFINED
    if not left.parts and left.whole:
        return right
    if not right.parts and right.whole:
        return left
    low = min(left.low, right.low)
    ends = [one.end for one in (left, right) if not one.whole]
    end = min(ends, default=max(left.end, right.end))
    parts = [_plus(left.at(k), right.at(k)) for k in range(low, min(end, low + TERMS))]
    whole = not ends and end <= low + TERMS
    return Line(parts, low, whole)


def _mul(left: Line, right: Line) -> Line:
    for one in (left, right):
        if one.parts is not None and not one.parts and one.whole:
            other = right if one is left else left
            return UNDEFINED if other.parts is None else one
    if left.parts is None or right.parts is None:
        return UNDEFINED
    low, whole = left.low + right.low, left.whole and right.whole
    counts = [len(one.parts) for one in (left, right) if not one.whole and one.parts is not None]
    full = len(left.parts) + len(right.parts) - 1
    count = min([*counts, TERMS]) if not whole else full
    if whole and full > TERMS:
        whole, count = False, TERMS
    parts = []
    for k in range(max(count, 0)):
        total: Number = ZERO
        for i in range(k + 1):
            pair = left.at(left.low + i), right.at(right.low + k - i)
            total = _plus(total, _times(*pair))
        parts.append(total)
    return Line(parts, low, whole)


def inverse(one: Line) -> Line:
    """The reciprocal; undefined for 0.  Raises Uncertain where the leading coefficient may be 0."""
    if one.parts is None or (not one.parts and one.whole):
        return UNDEFINED
    if not one.parts:
        raise Uncertain("a divisor that may vanish")
    first = one.parts[0]
    if balls.sign(first) == 0:
        raise Uncertain("a divisor that may vanish")
    if len(one.parts) == 1 and one.whole:
        return Line([_inverse(first)], -one.low, whole=True)
    found = [_inverse(first)]
    for k in range(1, TERMS if one.whole else len(one.parts)):
        total: Number = ZERO
        for i in range(1, k + 1):
            total = _plus(total, _times(one.at(one.low + i), found[k - i]))
        found.append(_times(_minus(total), found[0]))
    return Line(found, -one.low)


# -- functions


def _is_constant(one: Line) -> bool:
    return one.whole and one.low + len(one.known) <= 1 and one.low >= 0


def composed(taylor: Callable[[Any], Any], value: Callable[[Number], Number], x: Line) -> Line:
    """A function of a line.  ``taylor``: of a series of FLINT's; ``value``: of a number."""
    if x.parts is None:
        return UNDEFINED
    if _is_constant(x):
        return Line([_value(value, x.at(0))], whole=True)
    if x.low < 0:
        return UNDEFINED
    start = x.at(0)
    first = _value(value, start)
    if balls.is_special(first):
        return UNDEFINED
    found = taylor(arb_series([balls.ball(start), 1]))
    parts = [balls._checked(found[k]) for k in range(TERMS)]
    change = Line([x.at(k) for k in range(1, min(x.end, 1 + TERMS) if not x.whole else x.end)], 1,
                  x.whole)  # fmt: skip
    total, power = Line([first], whole=True), Line([ONE], whole=True)
    for k in range(1, TERMS):
        power = _mul(power, change)
        if parts[k] != 0:
            total = _add(total, _mul(Line([parts[k]], whole=True), power))
    ends = [one.end for one in (x, total) if not one.whole]
    return Line([total.at(k) for k in range(total.low, min([TERMS, *ends]))], total.low)


def _function(name: str, value: Callable[[Number], Number]) -> Callable[[Any, Line], Line]:
    method = getattr(arb_series, name)
    return lambda asking, x: composed(method, value, x)


def _exp(asking: Any, x: Line) -> Line:
    """Each coefficient is a multiple of the first."""
    if x.parts is None or x.low < 0:
        return UNDEFINED
    first = _value(balls.exp, x.at(0))
    if balls.is_special(first) or _is_constant(x):
        return Line([first], whole=True)
    change = Line([x.at(k) for k in range(1, x.end)], 1, x.whole)
    total = power = _constant(ONE)
    for k in range(1, TERMS):
        power = power * change * _constant(fmpq(1, k))
        total = total + power
    ends = [one.end for one in (x, total) if not one.whole]
    parts = [total.at(k) for k in range(total.low, min([TERMS, *ends]))]
    return Line(parts, total.low) * _constant(first)


_log = _function("log", balls.log)
_root = _function("sqrt", balls.sqrt)


def _sqrt(asking: Beside, x: Line) -> Line:
    """Of what vanishes as an even power of t: ``|t|`` to half of that, times another root."""
    if x.parts is None or not x.parts or x.low <= 0 or x.low % 2:
        return _root(asking, x)
    half = x.low // 2
    sign = asking.side**half
    asking.asked.append(sign)
    power = Line([fmpq(sign)], half, whole=True)
    return power * _root(asking, Line(x.parts, whole=x.whole))


def _constant(value: Number) -> Line:
    return Line([value], whole=True)


def _sinh(asking: Any, x: Line) -> Line:
    return (_exp(asking, x) - _exp(asking, -x)) * _constant(balls.HALF)


def _cosh(asking: Any, x: Line) -> Line:
    return (_exp(asking, x) + _exp(asking, -x)) * _constant(balls.HALF)


def _sigmoid(asking: Any, x: Line) -> Line:
    return inverse(_exp(asking, -x) + 1)


def _softplus(asking: Any, x: Line) -> Line:
    return _log(asking, _exp(asking, x) + 1)


def _power(asking: Any, x: Line, y: Line) -> Line:
    if _is_constant(y):
        exponent = y.at(0)
        if type(exponent) is fmpq and exponent.q == 1 and abs(int(exponent.p)) < TERMS:
            result = _constant(ONE)
            for _ in range(abs(int(exponent.p))):
                result = result * (x if exponent > 0 else inverse(x))
            return result
        if exponent == balls.HALF:
            return _sqrt(asking, x)
    return _exp(asking, y * _log(asking, x))


def _chosen(asking: Beside, x: Line) -> int:
    return asking.order(x, _constant(ZERO))


def _abs(asking: Beside, x: Line) -> Line:
    return -x if _chosen(asking, x) < 0 else x


def _extreme(asking: Beside, x: Line, y: Line, *, least: bool) -> Line:
    return (x, y)[asking.greatest((x, y), least)]


def _floor(asking: Beside, x: Line) -> Line:
    return _constant(fmpq(asking.whole(x)))


def _ceil(asking: Beside, x: Line) -> Line:
    return -_floor(asking, -x)


def _trunc(asking: Beside, x: Line) -> Line:
    return (_ceil if _chosen(asking, x) < 0 else _floor)(asking, x)


def _round(asking: Beside, x: Line) -> Line:
    near = asking.whole(x + _constant(balls.HALF))
    tied = asking.order(x, _constant(fmpq(2 * near - 1, 2))) == 0
    return _constant(fmpq(near - near % 2 if tied else near))


def _scaled(number: Number) -> Callable[[Any, Line], Line]:
    return lambda asking, x: _log(asking, x) * _constant(_inverse(balls.log(number)))


ELEMENTWISE: dict[str, Callable[..., Line]] = {
    "add": lambda asking, x, y: x + y,
    "sub": lambda asking, x, y: x - y,
    "mul": lambda asking, x, y: x * y,
    "div": lambda asking, x, y: x / y,
    "neg": lambda asking, x: -x,
    "shift": lambda asking, x: x,
    "square": lambda asking, x: x * x,
    "reciprocal": lambda asking, x: inverse(x),
    "exp": _exp, "log": _log, "sqrt": _sqrt, "root": _sqrt,
    "rsqrt": lambda asking, x: inverse(_sqrt(asking, x)),
    "expm1": lambda asking, x: _exp(asking, x) - 1,
    "exp2": lambda asking, x: _exp(asking, x * _constant(balls.log(fmpq(2)))),
    "log1p": lambda asking, x: _log(asking, x + 1),
    "log2": _scaled(fmpq(2)), "log10": _scaled(fmpq(10)),
    "sin": _function("sin", balls.sin), "cos": _function("cos", balls.cos),
    "tan": _function("tan", balls.tan), "atan": _function("atan", balls.atan),
    "asin": _function("asin", balls.asin), "acos": _function("acos", balls.acos),
    "erf": _function("erf", balls.erf), "erfc": _function("erfc", balls.erfc),
    "lgamma": _function("lgamma", balls.lgamma),
    "sinh": _sinh, "cosh": _cosh,
    "tanh": lambda asking, x: _sinh(asking, x) / _cosh(asking, x),
    "asinh": lambda asking, x: _log(asking, x + _sqrt(asking, x * x + 1)),
    "acosh": lambda asking, x: _log(asking, x + _sqrt(asking, x * x - 1)),
    "atanh": lambda asking, x: (_log(asking, x + 1) - _log(asking, -x + 1)) * _constant(balls.HALF),
    "sigmoid": _sigmoid, "softplus": _softplus,
    "log_sigmoid": lambda asking, x: -_softplus(asking, -x),
    "silu": lambda asking, x: x * _sigmoid(asking, x),
    "pow": _power,
    "hypot": lambda asking, x, y: _sqrt(asking, x * x + y * y),
    "logaddexp": lambda asking, x, y: x + _softplus(asking, y - x),
    "abs": _abs, "sign": lambda asking, x: _constant(fmpq(_chosen(asking, x))),
    "relu": lambda asking, x: x if _chosen(asking, x) > 0 else _constant(ZERO),
    "maximum": lambda asking, x, y: _extreme(asking, x, y, least=False),
    "minimum": lambda asking, x, y: _extreme(asking, x, y, least=True),
    "copysign": lambda asking, x, y: (
        -_abs(asking, x) if _chosen(asking, y) < 0 else _abs(asking, x)
    ),
    "floor": _floor, "ceil": _ceil, "trunc": _trunc, "round": _round,
    "floordiv": lambda asking, x, y: _floor(asking, x / y),
    "mod": lambda asking, x, y: x - y * _floor(asking, x / y),
    "fmod": lambda asking, x, y: x - y * _trunc(asking, x / y),
}  # fmt: skip
"""What elementwise ops do to lines; of others nothing is known."""


class Beside:
    """What asks for an order, just ahead of the point (``side`` 1) or just behind it (-1).

    ``asked``: the answers, in order.  Where they are the same on both sides, so are the series.
    """

    def __init__(self, side: int) -> None:
        self.side = side
        self.asked: list[int] = []

    def order(self, x: Any, y: Any) -> int:
        """-1, 0 or 1.  Raises Uncertain."""
        found = self._order(line(x), line(y))
        self.asked.append(found)
        return found

    def _order(self, x: Line, y: Line) -> int:
        if x is y:
            return 0
        if (x.infinite or y.infinite) and all(
            one.infinite or (one.parts is not None and one.low >= 0) for one in (x, y)
        ):
            return (x.infinite > y.infinite) - (x.infinite < y.infinite)
        if x.parts is None or y.parts is None:
            raise Uncertain("the order of what is undefined")
        if _is_constant(x) and _is_constant(y):
            found = balls.order(x.at(0), y.at(0))
            if found is None:
                raise Uncertain("the order of what has no value")
            return found
        away = x - y
        if not away.known:
            if away.whole:
                return 0
            raise Uncertain("what is compared may be equal")
        side = balls.sign(away.known[0])
        return side * (self.side if away.low % 2 else 1)

    def whole(self, x: Any) -> int:
        """The greatest integer that is not greater than x."""
        given = line(x)
        if given.parts is None or given.low < 0:
            raise Uncertain("the integer part of what is undefined")
        start = given.at(0)
        found = balls._whole(start)
        if not _is_constant(given) and balls.certainly_equal(start, fmpq(found)):
            found -= self.order(given, _constant(fmpq(found))) == -1
        self.asked.append(found)
        return found

    def compared(self, relation: str, x: Any, y: Any) -> bool:
        """A comparison."""
        return balls._RELATIONS[relation](self.order(x, y))

    def greatest(self, parts: Sequence[Any], least: bool = False) -> int:
        """The place of the first greatest (or least) element."""
        best = 0
        for place, one in enumerate(parts):
            if place and self.order(one, parts[best]) == (-1 if least else 1):
                best = place
        return best


def applied(name: str, asking: Beside, *operands: Any) -> Line:
    """An elementwise op on lines; undefined where nothing is known.

    Raises Uncertain where an order is asked for that is not known.
    """
    known = ELEMENTWISE.get(name)
    if known is None:
        return UNDEFINED
    given = [line(one) for one in operands]
    if any(one.parts is None for one in given):
        return UNDEFINED
    if name in _ORDERED:
        return known(asking, *given)
    try:
        return known(asking, *given)
    except Uncertain:
        return UNDEFINED


_ORDERED = frozenset((
    "abs", "sign", "relu", "maximum", "minimum", "copysign", "floor", "ceil", "trunc", "round",
    "floordiv", "mod", "fmod",
))  # fmt: skip
