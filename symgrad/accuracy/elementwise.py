"""Elementwise kernels over the whole range of their inputs, and at special values.

In: a ``Subject`` whose results are elementwise.  Out: ``Measured`` and ``Special`` records.

A sweep goes over all exponents, then looks closer around the worst points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from symgrad.accuracy.floats import Array, around, errors, sweep
from symgrad.accuracy.records import ULP, Measured, Place, Special
from symgrad.accuracy.subject import Subject, name_of
from symgrad.accuracy.truth import KNOWN, NO_VALUE
from symgrad.budgets import ACCURACY_POINTS

ROUNDS, WORST, CLOSE = 4, 10, 48
"""Rounds of a closer look; how many points of each result are looked at, and how many there."""
APART = 4
"""Of so many first digits of the mantissa, one point is looked at closely."""
LIMITS = (70, 95)
"""Powers of 2 (and, near 0, of 1/2) at which a formula is looked at for its limit."""


class _Found:
    """All points of one result so far."""

    def __init__(self) -> None:
        self.points: list[dict[str, Array]] = []
        self.columns: list[tuple[Array, ...]] = []

    def joined(self) -> tuple[dict[str, Array], list[Array]]:
        """The inputs, and errors, broken, kernel, true."""
        points = {
            name: np.concatenate([one[name] for one in self.points]) for name in self.points[0]
        }
        return points, [np.concatenate(parts) for parts in zip(*self.columns, strict=True)]


def measured(subject: Subject, count: int = ACCURACY_POINTS) -> list[Measured]:
    """The worst errors of all results."""
    found = [_Found() for _ in subject.results]
    names = [name_of(node) for node in subject.tensors]
    _take(subject, found, dict(zip(names, sweep(subject.form, count, len(names)), strict=True)))
    for number in range(ROUNDS):
        closer: list[dict[str, Array]] = []
        for one in found:
            points, (error, broken, _, _) = one.joined() if one.points else ({}, [np.zeros(0)] * 4)
            for place in _apart(subject, points, np.where(broken, -1, error)):
                center = [float(points[name][place]) for name in names]
                near = around(subject.form, center, CLOSE, number)
                closer.append(dict(zip(names, near, strict=True)))
        if closer:
            _take(subject, found, {n: np.concatenate([one[n] for one in closer]) for n in names})
    return [_summary(subject, place, one) for place, one in enumerate(found)]


def _apart(subject: Subject, points: Mapping[str, Array], error: Array) -> list[int]:
    """The places of the worst points of which no two have nearly the same inputs."""
    cells = [
        subject.form.to_order(array) >> (subject.form.digits - 1 - APART)
        for array in points.values()
    ]
    found: dict[tuple[int, ...], int] = {}
    for place in np.argsort(error)[::-1]:
        if len(found) == WORST:
            break
        found.setdefault(tuple(int(cell[place]) for cell in cells), int(place))
    return [*found.values()]


def _take(subject: Subject, found: list[_Found], points: Mapping[str, Array]) -> None:
    """Measure at points, where the inputs are as declared and the true value is known."""
    admitted = subject.admitted(points)
    points = {name: array[admitted] for name, array in points.items()}
    count = int(admitted.sum())
    if not count:
        return
    feeds, _ = subject.lay(points)
    computed = subject.run(feeds)
    true = subject.truth().at_each(subject.lay, points)
    for one, given, values in zip(found, computed, true, strict=True):
        known = values.state == KNOWN
        given, high, low = given[:count][known], values.high[known], values.low[known]
        error, broken = errors(subject.form, given, high, low)
        one.points.append({name: array[known] for name, array in points.items()})
        one.columns.append((error, broken, given.astype(np.float64), high))


def _summary(subject: Subject, place: int, found: _Found) -> Measured:
    result, dtype = subject.results[place], subject.form.dtype
    if not found.points or not sum(map(len, (one[0] for one in found.columns))):
        return Measured(result.name, result.kernel, dtype, ULP, 0, None)
    points, (error, broken, kernel, true) = found.joined()

    def at(number: int) -> Place:
        inputs = {name: float(array[number]) for name, array in points.items()}
        return Place(float(error[number]), inputs, float(kernel[number]), float(true[number]))

    first = next(iter(points.values()))
    sound = np.flatnonzero(~broken)
    ill = np.flatnonzero(broken)
    return Measured(
        result.name, result.kernel, dtype, ULP, len(error),
        at(int(sound[np.argmax(error[sound])])) if sound.size else None,
        int(ill.size), at(int(ill[np.argmin(np.abs(first[ill]))])) if ill.size else None,
        tuple(_curve(first[sound], error[sound])),
    )  # fmt: skip


def _curve(inputs: Array, error: Array) -> Iterator[tuple[int, int, float]]:
    """The worst error for each sign and exponent of an input."""
    with np.errstate(divide="ignore"):
        exponents = np.floor(np.log2(np.abs(inputs.astype(np.float64))))
    for sign in (-1, 1):
        chosen = (np.sign(inputs) == sign) & np.isfinite(exponents)
        for exponent in np.unique(exponents[chosen]):
            yield sign, int(exponent), float(error[chosen & (exponents == exponent)].max())


# -- special values


def special(subject: Subject) -> list[Special]:
    """Each special value of each input, beside ones: the kernel, and the limit of the formula."""
    form, found = subject.form, []
    names = [name_of(node) for node in subject.tensors]
    values = {
        "0": 0.0, "-0": -0.0, "inf": math.inf, "-inf": -math.inf, "nan": math.nan,
        "least": form.subnormal, "-least": -form.subnormal,
        "largest": form.largest, "-largest": -form.largest,
    }  # fmt: skip
    for name in names:
        given = np.asarray([*values.values()], dtype=form.dtype)
        points = {other: np.ones(given.size, form.dtype) for other in names} | {name: given}
        admitted = subject.admitted(points) | np.isnan(given)
        computed = subject.run(subject.lay(points)[0])
        limits = [_limits(subject, name, names, value) for value in values.values()]
        for place, result in enumerate(subject.results):
            found += [
                Special(result.name, form.dtype, name, text, float(computed[place][number]),
                        limits[number][place])
                for number, text in enumerate(values) if admitted[number]
            ]  # fmt: skip
    return found


def _limits(subject: Subject, name: str, names: list[str], value: float) -> list[float]:
    """The limit of each result: its value where there is one, else by points nearer and nearer."""
    if math.isnan(value):
        return [math.nan] * len(subject.results)
    far = [value] * 2
    if math.isinf(value):
        far = [math.copysign(2.0**power, value) for power in LIMITS]
    elif value == 0:
        far = [0.0, *(math.copysign(2.0**-power, value) for power in LIMITS)]
    points = {other: np.ones(len(far)) for other in names} | {name: np.asarray(far)}

    def lay(chosen: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, int]]:
        feeds, sizes = subject.lay(chosen)
        doubles = {key: np.asarray(array, dtype=np.float64) for key, array in feeds.items()}
        wide = np.resize(chosen[name], feeds[name].shape)  # beyond the largest float32
        return {**doubles, name: wide}, sizes

    return [
        _limit(one.high, one.state, subject.form.largest, value)
        for one in subject.truth().at_each(lay, points)
    ]


def _limit(high: Array, state: Array, largest: float, value: float) -> float:
    """What two far values approach; NaN where they do not tell."""
    if value == 0 and state[0] == KNOWN:
        return _in_format(float(high[0]), largest)
    before, after = float(high[-2]), float(high[-1])
    if (state[-2:] != KNOWN).any():
        return before if (state[-2:] == NO_VALUE).all() and before == after else math.nan
    if math.isfinite(value) and value != 0:
        return _in_format(after, largest)
    if before == after or math.isclose(before, after, rel_tol=1e-9):
        return after
    if abs(after) > 1e9 * abs(before) or abs(after) > 2.0 ** (LIMITS[1] // 2):
        return math.copysign(math.inf, after)
    return 0.0 if abs(after) < 1e-9 and abs(after) < abs(before) else math.nan


def _in_format(value: float, largest: float) -> float:
    return value if abs(value) <= largest else math.copysign(math.inf, value)
