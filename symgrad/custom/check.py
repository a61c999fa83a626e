"""Compares the C of a custom op with its declaration at sampled points of the domain.

In: the compiled function, its meaning and its derivative as functions of mpmath numbers.
Out: nothing; CustomOpError names the point where they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np

from symgrad.budgets import CUSTOM_OP_POINTS
from symgrad.custom.source import CustomOpError

Interval = tuple[float, float]
Precise = Callable[..., Any]

DIGITS = 30
SINGLE_TOLERANCE = 1e-4
SLOPE_TOLERANCE = 1e-4
STEP = 2.0**-16
_WIDE, _NEAR = 6.0, 1e-3


def sampled(domain: Sequence[Interval]) -> list[np.ndarray[Any, Any]]:
    """Points of the domain, a column of doubles for each operand: near, wide, and at the ends."""
    random = np.random.default_rng(20)
    columns = []
    for low, high in domain:
        start = low if np.isfinite(low) else (high - _WIDE if np.isfinite(high) else -_WIDE)
        end = high if np.isfinite(high) else start + 2 * _WIDE
        wide = random.uniform(start, end, CUSTOM_OP_POINTS)
        middle = 0.0 if start < 0.0 < end else start
        near = middle + np.abs(random.normal(0.0, _NEAR * (end - start), CUSTOM_OP_POINTS // 4))
        columns.append(np.concatenate([wide, np.clip(near, start, end), [start, middle, end]]))
    for column in columns[1:]:
        random.shuffle(column)
    return columns


def check_values(
    name: str, function: Callable[..., Any], meaning: Precise, domain: Sequence[Interval],
    tolerance: float, single: bool,
) -> None:  # fmt: skip
    """Compare the C with its meaning, in doubles and, where it has a variant, in floats."""
    columns = sampled(domain)
    for dtype in ("float64", "float32"):
        limit = tolerance if dtype == "float64" else max(tolerance, SINGLE_TOLERANCE)
        if dtype == "float32" and not single:
            continue
        given = [column.astype(dtype) for column in columns]
        found = function(*given)
        compared = 0
        for place, value in enumerate(found):
            point = [float(column[place]) for column in given]
            wanted = _real(meaning, point)
            if wanted is None:
                continue
            compared += 1
            if not _close(float(value), wanted, limit):
                raise CustomOpError(
                    f"{name}{_shown(point)} is {float(value)!r} in C ({dtype}), but its meaning "
                    f"is {wanted!r} there",
                    hint="fix one of them, or state where they agree: domain=(low, high)",
                )
        if not compared:
            raise CustomOpError(
                f"the meaning of {name!r} has no value at any of the sampled points",
                hint="say where it is defined: domain=(low, high)",
            )


def check_derivatives(
    name: str, derivatives: Sequence[Precise], truth: Sequence[Precise],
    domain: Sequence[Interval], tolerance: float,
) -> None:  # fmt: skip
    """Compare the declared derivatives with those of the meaning."""
    columns = sampled(domain)
    for number, (declared, true) in enumerate(zip(derivatives, truth, strict=True)):
        for point in zip(*(map(float, column) for column in columns), strict=True):
            found, wanted = _real(declared, point), _real(true, point)
            if found is None or wanted is None:
                continue
            if not _close(found, wanted, tolerance):
                raise _wrong_derivative(name, number, point, found, wanted, "its meaning's")


def check_slope(
    name: str, function: Callable[..., Any], derivative: Precise, domain: Sequence[Interval]
) -> None:
    """Compare a declared derivative with difference quotients of the C, in doubles."""
    (points,) = sampled(domain)
    (interval,) = domain
    steps = STEP * (1 + np.abs(points))
    quotients = (function(points + steps) - function(points - steps)) / (2 * steps)
    finer = (function(points + steps / 4) - function(points - steps / 4)) / (steps / 2)
    for point, quotient, fine, step in zip(points, quotients, finer, steps, strict=True):
        inside = interval[0] < point - step and point + step < interval[1]
        wanted = float(fine)
        settled = _close(float(quotient), wanted, SLOPE_TOLERANCE)
        found = _real(derivative, [float(point)])
        if not inside or found is None or not settled:
            continue
        if not _close(found, wanted, 10 * SLOPE_TOLERANCE):
            raise _wrong_derivative(name, 0, [float(point)], found, wanted, "the C's")


def _close(found: float, wanted: float, tolerance: float) -> bool:
    return abs(found - wanted) <= tolerance * (1 + abs(wanted))


def _wrong_derivative(
    name: str, number: int, point: Sequence[float], found: float, wanted: float, whose: str
) -> CustomOpError:
    return CustomOpError(
        f"the declared derivative of {name!r} by operand {number + 1} is {found!r} at "
        f"{_shown(point)}, {whose} is {wanted!r}",
        hint="fix it, or state where it holds: domain=(low, high)",
    )


def _real(function: Precise, point: Sequence[float]) -> float | None:
    """The value as a double; None where there is no finite real one."""
    with mpmath.workdps(DIGITS):
        value = function(*(mpmath.mpf(x) for x in point))
        if isinstance(value, mpmath.mpc):
            value = value.real if abs(value.imag) < 1e-25 * (1 + abs(value.real)) else mpmath.nan
        found = float(value)
    return found if np.isfinite(found) else None


def _shown(point: Sequence[float]) -> str:
    return f"({', '.join(map(repr, point))})"
