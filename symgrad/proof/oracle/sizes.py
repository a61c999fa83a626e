"""Sizes that meet conditions, looked for on a grid where the usual ones do not meet them.

In: names of sizes and conditions on them.  Out: choices of their values, small ones first.

``n * n - 2 * m * m == 1 and n >= 90`` holds at 99 and 70, and at no small sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from symgrad.budgets import SOUGHT_EXTENTS, SOUGHT_SIZES
from symgrad.ir.atoms import Atom, Size
from symgrad.ir.function import RELATIONS, SizeCondition

Values = tuple[int, ...]


def sought(symbols: Sequence[str], conditions: Sequence[SizeCondition]) -> Iterator[Values]:
    """Values of the sizes at which all conditions hold, those with the least sum first."""
    count = len(symbols)
    if not 0 < count <= len(SOUGHT_EXTENTS):
        return
    extent = SOUGHT_EXTENTS[count - 1]
    axes = np.meshgrid(*[np.arange(1, extent + 1)] * count, indexing="ij", sparse=True)
    grid = dict(zip(symbols, axes, strict=True))

    def lookup(atom: Atom) -> np.ndarray:
        if isinstance(atom, Size):
            return grid[atom.name]
        raise KeyError(str(atom))

    holds = np.ones((extent,) * count, dtype=bool)
    for condition in conditions:
        if {*condition.left.sizes, *condition.right.sizes} <= grid.keys():
            try:
                with np.errstate(all="ignore"):
                    left, right = (
                        side.evaluate(lookup)  # type: ignore[arg-type]
                        for side in (condition.left, condition.right)
                    )
            except (KeyError, ValueError, ZeroDivisionError):
                continue  # the one who takes the values asks again
            holds &= RELATIONS[condition.relation](left, right)
    places = np.argwhere(holds) + 1
    order = np.argsort(places.sum(axis=1), kind="stable")
    yield from (tuple(map(int, places[place])) for place in islice(order, SOUGHT_SIZES))
