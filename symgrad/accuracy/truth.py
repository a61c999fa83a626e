"""The values of a graph at points, enclosed: what kernels are compared with.

In: nodes, inputs as floats, sizes.  Out: for each element the nearest double and what is left.

The evaluator is the one of the audit (``proof/oracle/enclosure.py``).  Literals are the decimals
that are written.  Where a ball is too wide, the same is computed with more bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from symgrad.accuracy.floats import Format
from symgrad.ir.graph import Node, Scalar
from symgrad.ops.record import Op
from symgrad.proof.oracle import balls
from symgrad.proof.oracle.balls import Asking, Jet, Number, Uncertain
from symgrad.proof.oracle.enclosure import Balls, applied, literal
from symgrad.proof.oracle.flint import arb, fmpq
from symgrad.proof.oracle.numbers import Array, SizeOf, as_object
from symgrad.proof.oracle.values import DomainError, Evaluator

PRECISIONS = (160, 480, 1400)
"""Bits of balls: the exponentials of the largest doubles need over 1024."""
SPARE_DIGITS = 8
"""How many binary digits more than the format an enclosure has to have."""
KNOWN, NO_VALUE, UNKNOWN = 0, 1, 2
_LOST = Jet(arb("nan"))


@dataclass
class Values:
    """True values: ``high + low`` where ``state`` is KNOWN; ``weight``: sums of magnitudes.

    Where there is none, ``high`` is what the extended reals give: inf, -inf or nan.
    """

    high: Array
    low: Array
    state: Array
    weight: Array


class Pointwise(Balls):
    """An element whose enclosure is lost is lost alone."""

    def __init__(self) -> None:
        super().__init__(slack=_as_written)

    def elementwise(self, op: Op, values: Sequence[Array]) -> Array:
        """An elementwise op on reals."""
        function = partial(_applied, op.name, self.asking)
        return as_object(np.frompyfunc(function, len(values), 1)(*values))


def _as_written(value: Scalar) -> Fraction:
    return Fraction(0)


def _applied(name: str, asking: Asking, *operands: Jet) -> Jet:
    try:
        return applied(name, asking, *operands)
    except Uncertain:
        return _LOST


# -- sums of magnitudes


class Weighed:
    """A value, and the sum of the magnitudes that it was computed from.

    A sum has the sum of its terms' magnitudes, a product the product.
    """

    __slots__ = ("m", "v")
    d = None

    def __init__(self, v: Number, m: float) -> None:
        self.v, self.m = v, m

    def __add__(self, other: Any) -> Weighed:
        other = weighed(other)
        return Weighed(balls.add(self.v, other.v), self.m + other.m)

    __radd__ = __add__

    def __neg__(self) -> Weighed:
        return Weighed(-self.v, self.m)

    def __sub__(self, other: Any) -> Weighed:
        return self + -weighed(other)

    def __rsub__(self, other: Any) -> Weighed:
        return weighed(other) + -self

    def __mul__(self, other: Any) -> Weighed:
        other = weighed(other)
        return Weighed(balls.mul(self.v, other.v), self.m * other.m)

    __rmul__ = __mul__


def weighed(value: Any) -> Weighed:
    """A number as an element with its own magnitude."""
    if type(value) is Weighed:
        return value
    number = value.v if type(value) is Jet else balls.constant(value).v
    return Weighed(number, _size(number))


def _size(number: Number) -> float:
    return abs(float(number if balls.is_special(number) else balls.ball(number)))


class Weights(Pointwise):
    """Nodes over ``Weighed`` elements."""

    def number(self, value: Scalar) -> Any:
        """A float literal, as it is written."""
        return weighed(Jet(literal(value, self.slack)))

    def elements(self, value: Any) -> Array:
        """An array whose numbers are elements."""
        array = value if isinstance(value, np.ndarray) else np.asarray(value, dtype=object)
        return as_object(np.frompyfunc(weighed, 1, 1)(array))

    def elementwise(self, op: Op, values: Sequence[Array]) -> Array:
        """An elementwise op on reals."""
        linear = _LINEAR.get(op.name)
        if linear is not None:
            return as_object(np.frompyfunc(linear, len(values), 1)(*values))
        function = partial(_with_weight, op.name, self.asking)
        return as_object(np.frompyfunc(function, len(values), 1)(*values))

    def structural(
        self, op: Op, values: Sequence[Array], size: SizeOf, attributes: dict[str, Any], node: Node
    ) -> Array:
        """Any other op; what a matrix is made into has its own magnitude."""
        if op.kind != "linalg":
            return super().structural(op, values, size, attributes, node)
        bare = [_bare(one) if one.dtype == object else one for one in values]
        return self.elements(Pointwise().structural(op, bare, size, attributes, node))


_LINEAR: dict[str, Callable[..., Weighed]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
    "neg": lambda x: -x, "shift": lambda x: x,
}  # fmt: skip


def _bare(array: Array) -> Array:
    return as_object(np.frompyfunc(lambda one: Jet(one.v), 1, 1)(array))


def _with_weight(name: str, asking: Asking, *operands: Weighed) -> Weighed:
    """A function has its own magnitude, and what its operands have lost, times its derivatives."""
    found = _applied(name, asking, *(Jet(one.v) for one in operands))
    weight = _size(found.v)
    for place, one in enumerate(operands):
        lost = one.m - _size(one.v)
        if not lost > 1e-9 * one.m or not math.isfinite(lost):
            continue
        moved = [Jet(other.v) for other in operands]
        moved[place] = Jet(one.v, fmpq(*lost.as_integer_ratio()))
        slope = _applied(name, asking, *moved).d
        weight += 0.0 if slope is None else _size(slope)
    return Weighed(found.v, weight)


# -- runs


Lay = Callable[[Mapping[str, Array]], tuple[dict[str, Array], dict[str, int]]]
"""Points as the inputs of a graph, and its sizes."""


def _nothing(count: int) -> Values:
    state = np.full(count, UNKNOWN, dtype=np.int8)
    return Values(np.full(count, math.nan), np.zeros(count), state, np.zeros(count))


def exact(array: Array) -> Array:
    """Floats as rationals; infinities and NaN stay."""
    return as_object(np.frompyfunc(lambda x: balls.constant(float(x)), 1, 1)(array))


class Truth:
    """Some nodes, evaluated at many points.  ``weights``: with sums of magnitudes."""

    def __init__(self, nodes: Sequence[Node], form: Format, *, weights: bool = False) -> None:
        self.nodes, self.form = tuple(nodes), form
        self.arithmetic = Weights if weights else Pointwise
        self._program = Evaluator(self.nodes)

    def at(self, feeds: Mapping[str, Array], sizes: Mapping[str, int]) -> list[Values]:
        """The values of the nodes, with the fewest bits that enclose all of them."""
        found: list[Values] | None = None
        for bits in PRECISIONS:
            now = self._once(feeds, sizes, bits)
            found = now or found
            if now is not None and not any((one.state == UNKNOWN).any() for one in now):
                break
        if found is None:
            raise DomainError("no precision encloses what is computed")
        return found

    def at_each(self, lay: Lay, points: Mapping[str, Array]) -> list[Values]:
        """The values of elementwise nodes at points, each with as many bits as it needs."""
        count = len(next(iter(points.values())))
        found = [_nothing(count) for _ in self.nodes]
        left = np.arange(count)
        for bits in PRECISIONS:
            self._fill(found, lay, points, left, bits)
            unknown = np.any([one.state == UNKNOWN for one in found], axis=0)
            left = np.flatnonzero(unknown)
            if not left.size:
                break
        return found

    def _fill(
        self, found: list[Values], lay: Lay, points: Mapping[str, Array], places: Array, bits: int
    ) -> None:
        """The values at some of the points; by halves where a comparison is not decided."""
        feeds, sizes = lay({name: array[places] for name, array in points.items()})
        now = self._once(feeds, sizes, bits)
        if now is None and places.size > 1:
            half = places.size // 2
            self._fill(found, lay, points, places[:half], bits)
            self._fill(found, lay, points, places[half:], bits)
            return
        for old, new in zip(found, now or (), strict=now is not None):
            for name in ("high", "low", "state"):
                getattr(old, name)[places] = getattr(new, name)[: places.size]

    def _once(
        self, feeds: Mapping[str, Array], sizes: Mapping[str, int], bits: int
    ) -> list[Values] | None:
        """The values with so many bits; None where a comparison is not decided."""
        arithmetic = self.arithmetic()
        given = {
            name: arithmetic.elements(exact(array)) if array.dtype.kind == "f" else array
            for name, array in feeds.items()
        }
        with balls.working(bits):
            try:
                values = self._program.run(arithmetic, given, sizes)
            except Uncertain:
                return None
            return [self._split(values[node]) for node in self.nodes]

    def _split(self, array: Array) -> Values:
        flat = array.ravel()
        high, low, weight = (np.zeros(flat.size) for _ in range(3))
        state = np.zeros(flat.size, dtype=np.int8)
        for place, element in enumerate(flat):
            high[place], low[place], state[place] = self._doubles(element.v)
            weight[place] = getattr(element, "m", 0.0)
        return Values(high, low, state, weight)

    def _doubles(self, number: Number) -> tuple[float, float, int]:
        """The nearest double, what is left, and whether it is known."""
        if balls.is_special(number):
            return number, 0.0, NO_VALUE
        ball = balls.ball(number)
        if not ball.is_finite():
            return math.nan, 0.0, UNKNOWN
        high = float(ball)
        if math.isinf(high):
            return high, 0.0, KNOWN if ball.abs_lower() > self.form.largest else UNKNOWN
        radius, form = float(ball.rad()), self.form
        spare = 2.0**-SPARE_DIGITS
        enough = max(abs(high) * 2.0**-form.digits * spare, form.subnormal * spare)
        return high, float(ball - high), KNOWN if radius <= enough else UNKNOWN
