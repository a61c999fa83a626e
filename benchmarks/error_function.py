"""The numbers of ``erf`` in C, found again; and its error at every number of f32.

    python -m benchmarks.error_function [--every]

Out: the two polynomials of ``symgrad/ops/erf_c.py`` that are nearest to what they
stand for, by the algorithm of Remez, measured by what is left of their errors in ``erf``.
``--every`` compiles the function with and without fused instructions, and compares it with that of
doubles at all numbers of f32, a minute each on two cores.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Sequence

import mpmath
import numpy as np

from benchmarks.exponential import every
from symgrad.ops.erf_c import BORDER, FAR, FAR_CENTRE, FURTHEST, NEAR, NEAR_CENTRE

Real = Callable[[mpmath.mpf], mpmath.mpf]
GRID = 400


def c(square: mpmath.mpf) -> mpmath.mpf:
    """What x is multiplied with and added to x."""
    x = mpmath.sqrt(square)
    return mpmath.erf(x) / x - 1 if x else 2 / mpmath.sqrt(mpmath.pi) - 1


def scaled(t: mpmath.mpf) -> mpmath.mpf:
    """The complement without the exponential that it falls with."""
    return mpmath.erfc(t) * mpmath.exp(t**2)


def nearest(
    true: Real, weight: Real, ends: tuple[float, float], centre: float, count: int
) -> tuple[list[mpmath.mpf], mpmath.mpf]:
    """The ``count`` coefficients of a polynomial of ``x - centre``, and its worst error.

    The error times ``weight`` is as large as that ``count + 1`` times, now above, now below.
    """
    low, high = map(mpmath.mpf, ends)
    turns = [mpmath.cos(mpmath.pi * place / GRID) for place in range(GRID + 1)]
    grid = [(low + high - (high - low) * turn) / 2 for turn in turns]
    values, weights = list(map(true, grid)), list(map(weight, grid))
    powers = [[(x - centre) ** power for power in range(count)] for x in grid]
    points: list[int] = [place * GRID // count for place in range(count + 1)]
    while True:
        rows = [
            [*powers[point], (-1) ** place / weights[point]] for place, point in enumerate(points)
        ]
        wanted = mpmath.matrix([values[point] for point in points])
        *terms, _ = mpmath.lu_solve(mpmath.matrix(rows), wanted)
        errors = [
            (mpmath.fdot(terms, power) - value) * one
            for power, value, one in zip(powers, values, weights, strict=True)
        ]
        peaks = [  # the worst one between two zeros
            max(run, key=lambda place: abs(errors[place]))
            for run in _runs([error > 0 for error in errors])
        ]
        while len(peaks) > count + 1:
            peaks.remove(min(peaks[0], peaks[-1], key=lambda place: abs(errors[place])))
        if len(peaks) <= count or peaks == points:
            return terms, max(map(abs, errors))
        points = peaks


def _runs(signs: Sequence[bool]) -> list[list[int]]:
    groups = itertools.groupby(range(len(signs)), key=signs.__getitem__)
    return [list(run) for _, run in groups]


def main() -> None:
    """Print the numbers, and with ``--every`` the errors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--every", action="store_true", help="compare at all numbers of f32")
    options = parser.parse_args()
    mpmath.mp.dps = 40
    # Far from 0, rounding loses the most at the border: the polynomial is better there.
    pieces = (
        ("near", c, lambda s: 1 / (1 + c(s)), (0.0, BORDER**2), NEAR_CENTRE, NEAR),
        ("far", scaled, lambda t: mpmath.exp(-(t**2)) / t**2, (BORDER, FURTHEST), FAR_CENTRE, FAR),
    )
    for name, true, weight, ends, centre, known in pieces:
        terms, worst = nearest(true, weight, ends, centre, len(known))
        found = [np.float32(str(term)) for term in terms]
        same = "as" if found == [np.float32(one) for one in known] else "not as"
        print(name, *found, f"2**{float(mpmath.log(worst, 2)):.2f}, {same} in the source")
    if options.every:
        every("erf")


if __name__ == "__main__":
    main()
