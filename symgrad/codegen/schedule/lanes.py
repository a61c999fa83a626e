"""Short sums for each pair of two axes: the lanes run along one of these.

In: a loop whose innermost loops reduce.  Out: the same work, with the reduced axis outside of the
one next to it; what is read across the lanes is transposed first.

Distances of all pairs of rows are of this kind: each is a sum over a few coordinates.
"""

from __future__ import annotations

from collections.abc import Iterator

from symgrad.codegen.schedule.alternative import Alternative
from symgrad.codegen.schedule.interchange import SHORT_ROW
from symgrad.codegen.schedule.items import KEEP, REDUCE, STORE, Item, Items
from symgrad.codegen.schedule.loops import Loop, arrange
from symgrad.codegen.schedule.rows import evaluated
from symgrad.codegen.schedule.scheduler import Schedule
from symgrad.ir.dim import Axis
from symgrad.ir.expr import Access


def along_lanes(schedule: Schedule, loop: Loop) -> Alternative | None:
    """The loop with its sums taken side by side; None where it has others, or nothing is reused."""
    swapped = {item.axes[-2:] for item in loop.items if _is_sum(item)}
    if len(swapped) != 1 or loop.sequential or loop.blocked:
        return None
    ((lane, reduced),) = swapped
    constant = reduced.extent.constant
    if lane == loop.axis or (constant is not None and constant >= SHORT_ROW):
        return None
    if not all(_is_plain(item, lane, reduced) for item in loop.items):
        return None
    reads = {read for item in loop.items if _is_sum(item) for read in _reads(item, lane, reduced)}
    if not reads or any(read.free != {lane, reduced} for read in reads):
        return None
    across = {read for read in reads if lane not in read.indices[-1].axes}
    order = dict(schedule.order)
    order[lane], order[reduced] = sorted((order[lane], order[reduced]), reverse=True)
    items = Items(schedule.program, order, {*schedule.kept, *across})
    wanted = {item.key: item for item in loop.items}
    mine = [one for one in items.found if one.key in wanted or one.value in across]
    stands_for = {wanted[one.key]: one for one in mine if one.key in wanted}
    if len(stands_for) != len(loop.items):
        return None
    return Alternative(arrange(mine), stands_for, short=(reduced.extent,))


def _is_sum(item: Item) -> bool:
    """Does it reduce its innermost axis, for each pair of others?"""
    return item.role == REDUCE and len(item.axes) > 2 and item.reduced == item.axes[-1:]


def _is_plain(item: Item, lane: Axis, reduced: Axis) -> bool:
    """Is it such a sum, or has it nothing to do with what that reduces?"""
    if item.role not in (STORE, REDUCE, KEEP) or item.finds_place:
        return False
    return reduced not in item.axes or (_is_sum(item) and item.axes[-2:] == (lane, reduced))


def _reads(item: Item, lane: Axis, reduced: Axis) -> Iterator[Access]:
    """The elements that are others for each lane and each term of the sum."""
    assert item.body is not None
    for expr in evaluated(item.body):
        if isinstance(expr, Access) and {lane, reduced} <= expr.free:
            yield expr
