"""The derivative of a number by difference quotients, with a bound on their error.

In: the outputs of a program as a function of one number, and what they are weighted with.  Out: the
derivative, and how wrong it may be; NaN where the quotients show none, as at a kink.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

STEPS = tuple(2.0**-power for power in (4, 6, 9, 12, 15, 18, 22, 26, 30))
"""Steps of difference quotients, times the size of the number."""


@dataclass(frozen=True)
class Weighted:
    """An output in float64, its cotangent, and the relative rounding of its elements."""

    value: Any
    weight: Any
    rounding: float


Outputs = Callable[[float], tuple[Sequence[Weighted], float]]
"""The outputs with the number moved to a place, and where it then is: it may be rounded."""


def by_quotients(outputs: Outputs, here: float, *, stepwise: bool = False) -> tuple[float, float]:
    """The derivative at a number, and how wrong it may be.

    ``stepwise``: what does not change over a step is constant there, and not hidden by rounding.
    """
    base, _ = outputs(here)
    rounding = sum(
        float((np.abs(one.value) * np.abs(one.weight)).sum()) * one.rounding for one in base
    )
    quotients = [
        one for share in STEPS
        if (one := _at_step(outputs, base, here, share * max(1.0, abs(here)), rounding)) is not None
    ]  # fmt: skip
    if stepwise:
        quotients = [replace(one, rounding=0.0) if one.is_flat else one for one in quotients]
    found = list(_extrapolated(quotients))
    local = [
        (value, error) for place, (value, error) in enumerate(found)
        if all(abs(value - near) <= error + around for near, around in found[place:])
    ]  # fmt: skip
    return min(local, key=lambda one: one[1], default=(math.nan, math.inf))


@dataclass(frozen=True)
class _Quotients:
    """Difference quotients of one step, each NaN where there is no value; their rounding."""

    step: float
    ahead: float
    behind: float
    rounding: float

    @property
    def is_flat(self) -> bool:
        """Does nothing change, ahead and behind?"""
        return self.ahead == self.behind == 0.0

    @property
    def central(self) -> float:
        """The mean of both, or the one there is."""
        sides = [one for one in (self.ahead, self.behind) if math.isfinite(one)]
        return sum(sides) / len(sides) if sides else math.nan


def _extrapolated(quotients: Sequence[_Quotients]) -> Iterator[tuple[float, float]]:
    """Values for two steps each, without the error that grows as the step, or as its square.

    Those of steps over which a program jumps, or turns, do not agree with those of smaller steps.
    """
    for wide, near in pairwise(quotients):
        both = math.isfinite(near.ahead - near.behind + wide.ahead - wide.behind)
        ratio = (wide.step / near.step) ** (2 if both else 1)
        value = near.central + (near.central - wide.central) / (ratio - 1)
        error = abs(near.central - wide.central) + near.rounding
        if both:  # ahead and behind of a kink remain apart
            closing = abs(near.ahead - near.behind) - near.step / wide.step * abs(
                wide.ahead - wide.behind
            )
            error += max(closing, 0.0)
        if math.isfinite(value) and math.isfinite(error):
            yield value, error


def _at_step(
    outputs: Outputs, base: Sequence[Weighted], here: float, step: float, rounding: float
) -> _Quotients | None:
    (ahead, up), (behind, down) = (outputs(here + sign * step) for sign in (1, -1))
    if up == here or down == here:
        return None
    return _Quotients(
        step, _difference(ahead, base) / (up - here), _difference(behind, base) / (down - here),
        rounding / step,
    )  # fmt: skip


def _difference(moved: Sequence[Weighted], base: Sequence[Weighted]) -> float:
    """How much the sum of outputs times cotangents changes; of infinities, NaN."""
    total = 0.0
    for one, other in zip(moved, base, strict=True):
        if one.value.shape != other.value.shape:
            return math.nan
        with np.errstate(all="ignore"):
            total += float(((one.value - other.value) * one.weight).sum())
    return total
