"""Floating-point numbers as integers in their order, and errors in units of the last place.

In: dtypes, arrays.  Out: sweeps over all exponents, errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

BAND = (-14, 10)
"""Exponents between which most functions are neither linear nor saturated: half of a sweep."""
NEAR_OVERFLOW = 16
"""Ulps below the largest number within which an infinity counts as that error."""


@dataclass(frozen=True)
class Format:
    """A binary format: ``digits`` of the mantissa, ``least`` and ``greatest`` normal exponent."""

    dtype: str
    digits: int
    least: int
    greatest: int

    @cached_property
    def largest(self) -> float:
        """The largest finite number."""
        return float(np.finfo(self.dtype).max)

    @cached_property
    def subnormal(self) -> float:
        """The least positive number."""
        return float(np.finfo(self.dtype).smallest_subnormal)

    @property
    def unit(self) -> float:
        """The unit roundoff: half the distance from 1 to the next number."""
        return float(2.0**-self.digits)

    def from_order(self, places: Array) -> Array:
        """The finite numbers at places in their order; 0 is at 0."""
        most = self.place(self.largest)
        clipped = np.clip(places, -most, most)
        bits = np.abs(clipped).astype(f"i{np.dtype(self.dtype).itemsize}")
        found: Array = np.where(clipped < 0, -1, 1).astype(self.dtype) * bits.view(self.dtype)
        return found

    def to_order(self, values: Array) -> Array:
        """The places of numbers."""
        values = np.ascontiguousarray(values, dtype=self.dtype)
        bits = np.abs(values).view(f"i{values.itemsize}").astype(np.int64)
        found: Array = np.where(np.signbit(values), -bits, bits)
        return found

    def place(self, value: float) -> int:
        """The place of one number."""
        return int(self.to_order(np.asarray([value]))[0])

    def ulp(self, values: Array) -> Array:
        """The distance between the numbers of the format around reals."""
        sizes = np.clip(np.abs(values), self.subnormal, self.largest)
        exponents = np.frexp(sizes)[1] - 1
        found: Array = np.ldexp(1.0, np.maximum(exponents, self.least) - (self.digits - 1))
        return found


FORMATS = {
    "float32": Format("float32", 24, -126, 127),
    "float64": Format("float64", 53, -1022, 1023),
}


def sweep(form: Format, count: int, inputs: int) -> list[Array]:
    """So many points for each of several inputs: half over all exponents, half over ``BAND``.

    One input: evenly by exponent and mantissa, both signs.  Several: an additive sequence with
    irrational steps, which fills their product.
    """
    low, high = (form.place(2.0**end) for end in BAND)
    half = count // 2
    wide = [form.place(form.largest) * (2 * part - 1) for part in _fractions(half, inputs)]
    found = []
    for whole, part in zip(wide, _fractions(count - half, inputs), strict=True):
        inside = (2 * part - 1) * (high - low)
        inside = inside + np.where(inside < 0, -low, low)
        places = np.concatenate([whole, inside]).astype(np.int64)
        found.append(form.from_order(places))
    return found


def _fractions(count: int, inputs: int) -> list[Array]:
    """Points of the unit cube, by coordinates."""
    numbers = np.arange(count, dtype=np.float64)
    if inputs == 1:
        return [(numbers + 0.5 + 0.4 * np.sin(numbers)) / count]
    root = 2.0
    for _ in range(60):  # the root of x**(inputs + 1) == x + 1
        root = (1 + root) ** (1 / (inputs + 1))
    return [(0.5 + numbers * root ** -(place + 1.0)) % 1.0 for place in range(inputs)]


def around(form: Format, point: Sequence[float], count: int, seed: int) -> list[Array]:
    """So many points around one: its next neighbours, and farther ones in all coordinates."""
    random = np.random.default_rng(seed)
    steps = np.exp2(random.random((len(point), count)) * (form.digits - 1))
    moves = np.round(steps * random.choice([-1, 1], steps.shape)).astype(np.int64)
    if len(point) == 1:
        near = np.arange(-(count // 4), count // 4)
        moves[0, : len(near)] = near
    return [
        form.from_order(form.place(value) + move) for value, move in zip(point, moves, strict=True)
    ]


def errors(form: Format, computed: Array, high: Array, low: Array) -> tuple[Array, Array]:
    """Errors in ulps, and where the result is no number though the true one is.

    The true value is ``high + low``.  What is beyond the largest number has to become infinite.
    """
    with np.errstate(all="ignore"):
        given = computed.astype(np.float64)
        beyond = np.abs(high) >= form.largest + form.ulp(np.asarray(form.largest)) / 2
        end = np.copysign(form.largest, high)
        found = np.abs((given - high) - low) / form.ulp(high)
        short = (form.largest - np.abs(high)) / form.ulp(high) + 1
        infinite = np.isinf(given) & (np.sign(given) == np.sign(high))
        found = np.where(infinite & ~beyond, short, found)
        short_of_infinity = np.abs(given - end) / form.ulp(end) + 1
        found = np.where(beyond, np.where(infinite, 0.0, short_of_infinity), found)
        broken = ~np.isfinite(given) & ~beyond & ~(infinite & (short <= NEAR_OVERFLOW))
        broken |= np.isnan(given) & beyond
    return found, broken
