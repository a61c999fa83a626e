"""Sums of products over short lanes: the lanes run along another axis, of known length.

In: a loop whose sums go straight into an array.  Out: the same work with the axis of places, which
its strips are cut from, innermost; what is read along it is laid out so first.

The channels of a convolution are such an axis: few numbers that are added to in registers, under
conditions that are the same for all of them.  Where rows are longer than a tile, strips of them
are better.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from symgrad.codegen.program.joined import products
from symgrad.codegen.schedule.alternative import Alternative, reordered
from symgrad.codegen.schedule.items import REDUCE, STORE, Item
from symgrad.codegen.schedule.lanes import LEAST_LANES
from symgrad.codegen.schedule.loops import Loop
from symgrad.codegen.schedule.scheduler import Schedule
from symgrad.codegen.schedule.strips import VECTOR, is_shared, terms
from symgrad.ir.dim import Axis, Dim
from symgrad.ir.expr import Access


def across_lanes(schedule: Schedule, loop: Loop) -> Alternative | None:
    """The loop with its lanes along such an axis; None where it has none, or other items."""
    sums = [item for item in loop.items if item.role == REDUCE]
    if loop.sequential or loop.blocked or len(sums) != 1:
        return None
    (item,) = sums
    if not all(one is item or _stores(one, item) for one in loop.items):
        return None
    found = (_along(schedule, loop, item, axis) for axis in _axes(item))
    return next((one for one in found if one is not None), None)


def _stores(one: Item, item: Item) -> bool:
    return one.role == STORE and one.body is item.value


def _axes(item: Item) -> Iterator[Axis]:
    """The axes that lanes may run along in place of the short ones."""
    if item.body is None or len(item.inside) != 1 or not products(item.body):
        return
    (lane,) = item.inside
    conditions = [one for found, _ in terms(item.body) for one in found]
    for axis in item.outside:
        size = (axis.extent.constant or 0) * item.result.dtype.itemsize
        free = all(axis not in one.free for one in conditions)
        if LEAST_LANES <= size <= VECTOR and free and is_shared(item, axis, lane):
            yield axis


def _along(schedule: Schedule, loop: Loop, item: Item, axis: Axis) -> Alternative | None:
    """The loop with ``axis`` innermost; None where that would be read again for each row."""
    assert item.body is not None
    (lane,) = item.inside
    reads = {one for pair in products(item.body) for one in pair if axis in one.free}
    if not all(one.free <= {axis, *item.reduced} for one in reads):
        return None
    copied: set[Access] = {one for one in reads if axis not in one.indices[-1].axes}
    turn = [*(one for one in item.outside if one != axis), lane, *item.reduced, axis]
    places = sorted(schedule.order[one] for one in turn)
    order = {**schedule.order, **dict(zip(turn, places, strict=True))}
    tile = VECTOR // item.result.dtype.itemsize
    short = ((lane.extent, Dim.of(tile + tile // 4)),)
    found = reordered(schedule, loop, order, copied)
    return None if found is None else replace(found, conditions=short)
