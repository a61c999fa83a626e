"""Products that add up over the rows of a loop, by rows of their own results.

In: a blocked loop.  Out: the same work, in loops of which none adds up matrices.

Where a product is reduced over the rows of a loop, each group of rows needs a whole result of its
own, and all of these are joined.  Where results are large beside what they are added up from, that
is kept instead, and a loop of its own multiplies it, by blocks of the rows of the result.
"""

from __future__ import annotations

from collections.abc import Iterable

from symgrad.codegen.program.patterns import Contraction
from symgrad.codegen.schedule.alternative import Alternative
from symgrad.codegen.schedule.items import PRODUCT, Items
from symgrad.codegen.schedule.loops import Loop, arrange
from symgrad.codegen.schedule.scheduler import Schedule
from symgrad.ir.dim import Axis, Dim, product

MOST_SUMS = 4  # results that groups of rows add up to


def own_rows(schedule: Schedule, loop: Loop) -> Alternative | None:
    """The loop without reduced products; None where it has none, or they stay."""
    summed = [item for item in loop.items if item.role == PRODUCT and item.reduced]
    if not summed:
        return None
    wanted = {item.key: item for item in loop.items}
    every = Items(schedule.program, schedule.order, schedule.kept, own_rows=True)
    as_now = Items(schedule.program, schedule.order, schedule.kept)
    if {one.key for one in every.found} != {one.key for one in as_now.found}:
        return None
    mine = [one for one in every.found if one.key in wanted]
    items = {wanted[one.key]: one for one in mine}
    conditions: dict[tuple[Dim, Dim], None] = {}
    for item in summed:
        conditions.update(dict.fromkeys(_conditions(item.pattern(Contraction))))
    return Alternative(arrange(mine), items, tuple(conditions))


def _conditions(pattern: Contraction) -> Iterable[tuple[Dim, Dim]]:
    """Are the results of all groups more than what is kept?  Are its rows many enough to share?"""
    length = _count(pattern.summed)
    if length.constant is None or length.constant > MOST_SUMS:
        one, other = (MOST_SUMS * _count(axes) for axes in (pattern.rows, pattern.columns))
        if not one.at_least(other):
            yield length, one
        if not other.at_least(one) or one == other:
            yield length, other


def _count(axes: Iterable[Axis]) -> Dim:
    return product([axis.extent for axis in axes])
