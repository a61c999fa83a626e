"""Kernels with reductions, at random inputs of stated sizes.

In: a ``Subject``.  Out: ``Measured`` records.

An error is divided by the sum of magnitudes (``records.MEASURES``): relative to the value it would
be as large as the terms happen to cancel.  Inputs are also taken 32 and 1,024 times as large, which
shows kernels that overflow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np

from symgrad.accuracy.floats import Array, Format
from symgrad.accuracy.records import OF_SUM, Measured, Place
from symgrad.accuracy.subject import Subject, name_of, sizes_of
from symgrad.accuracy.truth import KNOWN, Values
from symgrad.budgets import ACCURACY_WORK
from symgrad.proof.oracle.audit import elements
from symgrad.proof.oracle.sample import MODES, Sampler, Style, Unsatisfiable
from symgrad.proof.oracle.values import DomainError

LENGTHS = (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
SEEDS = 3
SCALES = (1, 32, 1024)


def measured(
    subject: Subject, sizes: Sequence[Mapping[str, int]] = ()
) -> tuple[list[Measured], list[dict[str, int]]]:
    """The worst errors of all results, and the sizes they were looked for at.

    ``sizes``: these, instead of all sizes alike, as large as the work allows.
    """
    draws = Draws(subject)
    chosen = [dict(one) for one in sizes] or draws.sizes()
    found = [_Worst() for _ in subject.results]
    for one in chosen:
        for seed in range(SEEDS):
            for scale in SCALES:
                _take(subject, found, draws, one, seed, scale)
    return [_summary(subject, place, one) for place, one in enumerate(found)], chosen


class _Worst:
    """The worst of one result so far."""

    def __init__(self) -> None:
        self.points = self.broken = 0
        self.worst: Place | None = None
        self.first_broken: Place | None = None
        self.curve: dict[int, float] = {}

    def take(self, at: dict[str, float], given: Array, true: Values, form: Format) -> None:
        """Take the elements at one point; the curve is over the largest size."""
        known = true.state == KNOWN
        high, low, weight = true.high[known], true.low[known], true.weight[known]
        kernel = given.astype(np.float64)[known]
        self.points += kernel.size
        ill = np.flatnonzero(~np.isfinite(kernel) & (np.abs(high) <= form.largest))
        self.broken += ill.size
        if ill.size and self.first_broken is None:
            self.first_broken = Place(math.inf, at, float(kernel[ill[0]]), float(high[ill[0]]))
        with np.errstate(all="ignore"):
            error = np.abs((kernel - high) - low) / (weight * form.unit + form.subnormal)
        error = np.where(np.isfinite(kernel), np.nan_to_num(error, nan=0.0), 0.0)
        if not error.size:
            return
        place = int(np.argmax(error))
        worst = Place(float(error[place]), at, float(kernel[place]), float(high[place]))
        if self.worst is None or worst.error > self.worst.error:
            self.worst = worst
        if at["scale"] == 1:
            length = max((int(size) for name, size in at.items() if name != "scale"), default=1)
            power = length.bit_length() - 1
            self.curve[power] = max(self.curve.get(power, 0.0), worst.error)


class Draws:
    """Points of one subject, as floats of its precision."""

    def __init__(self, subject: Subject) -> None:
        self.subject, one = subject, subject.case.case
        self.given = [*subject.tensors, *(c for c in subject.cotangents if c not in one.tensors)]
        conditions, assumptions = one.conditions, subject.plan.graphs.assumptions
        self.sampler = Sampler(
            self.given, subject.nodes, conditions, assumptions, subject.cotangents
        )
        self.sampler.most = ACCURACY_WORK
        self.names = sizes_of(one)

    def sizes(self) -> list[dict[str, int]]:
        """All sizes alike, up to what may be worked; else those that the conditions allow."""
        alike = [dict.fromkeys(self.names, length) for length in LENGTHS]
        allowed = [one for one in alike if self.fits(one)]
        return allowed or [one for one in islice(self.sampler.size_choices(), 3) if self.fits(one)]

    def fits(self, sizes: Mapping[str, int], most: int = ACCURACY_WORK) -> bool:
        """Do the conditions allow sizes, and is the work at most so many elements?"""
        try:
            work = sum(elements(node, sizes) for node in self.subject.nodes)
        except (ZeroDivisionError, KeyError):
            return False
        return work <= most and self.sampler.allows(sizes)

    def point(self, sizes: Mapping[str, int], seed: int, mode: str) -> dict[str, Array]:
        """The inputs at one point."""
        style = Style(dict.fromkeys(self.sampler.modes, mode), thresholds=0.0)
        values = self.sampler.point(sizes, seed, style).doubles()
        return {
            name_of(node): np.asarray(values[name_of(node)], dtype=str(node.dtype))
            for node in self.given
        }


def _take(
    subject: Subject, found: Sequence[_Worst], draws: Draws, sizes: Mapping[str, int], seed: int,
    scale: int,
) -> None:  # fmt: skip
    """Measure at one point: of the first mode of drawing in which all true values are known."""
    for mode in MODES:
        try:
            feeds = draws.point(sizes, seed, mode)
            for node in subject.tensors if scale > 1 else ():
                if node.dtype.is_float and not subject.plan.graphs.assumptions:
                    feeds[name_of(node)] = feeds[name_of(node)] * scale
            true = subject.truth(weights=True).at(subject.full(feeds), sizes)
        except (Unsatisfiable, DomainError):
            continue
        if any((one.state != KNOWN).any() for one in true):
            continue
        at = {**{name: float(size) for name, size in sizes.items()}, "scale": float(scale)}
        for one, given, values in zip(found, subject.run(feeds), true, strict=True):
            one.take(at, given, values, subject.form)
        return


def _summary(subject: Subject, place: int, found: _Worst) -> Measured:
    result = subject.results[place]
    curve = tuple((1, power, error) for power, error in sorted(found.curve.items()))
    return Measured(
        result.name, result.kernel, subject.form.dtype, OF_SUM, found.points, found.worst,
        found.broken, found.first_broken, curve,
    )  # fmt: skip
