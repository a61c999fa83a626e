"""Sums for each pair of two axes: the lanes run along one of these.

In: a loop whose innermost loops reduce.  Out: the same work, with the reduced axis outside of the
one next to it; what is read across the lanes is transposed first.

Distances of all pairs of rows are of this kind: each is a sum over a few coordinates.  So are the
gradients of the weights of a convolution.  Where the lanes are known to be many and the sums few
enough for registers, this is better for long sums as well: they are not taken out of lanes.
"""

from __future__ import annotations

from dataclasses import replace

from symgrad.codegen.schedule.alternative import Alternative, reordered
from symgrad.codegen.schedule.interchange import SHORT_ROW
from symgrad.codegen.schedule.items import KEEP, REDUCE, STORE, Item
from symgrad.codegen.schedule.loops import Loop
from symgrad.codegen.schedule.rows import evaluated
from symgrad.codegen.schedule.scheduler import Schedule
from symgrad.ir.dim import Axis, Dim
from symgrad.ir.expr import Access

LEAST_LANES = 32  # bytes: half of a vector
_VECTOR, _MOST_SUMS = 64, 24  # bytes; vectors that are accumulated side by side
_MOST_COPIED = 1 << 22  # bytes that are transposed for a row


def along_lanes(schedule: Schedule, loop: Loop) -> Alternative | None:
    """The loop with its sums taken side by side; None where it has others, or nothing is reused."""
    if loop.sequential or loop.blocked:
        return None
    pairs = dict.fromkeys(item.axes[-2:] for item in loop.items if _sums(item, item.axes[-2:]))
    swapped = (_swapped(schedule, loop, pair) for pair in pairs)
    return next((one for one in swapped if one is not None), None)


def _swapped(schedule: Schedule, loop: Loop, pair: tuple[Axis, ...]) -> Alternative | None:
    """The loop with the lanes along the first axis of a pair, of which it reduces the second."""
    lane, reduced = pair
    most = _longest(loop, pair)
    constant = reduced.extent.constant
    if lane == loop.axis or (constant is not None and constant > (most or SHORT_ROW - 1)):
        return None
    reads: set[Access] = set()
    for item in loop.items:
        if item.role not in (STORE, REDUCE, KEEP) or item.finds_place:
            return None
        if reduced not in item.axes:
            continue
        mine = {read for read in _reads(item) if read.free.issuperset(pair)}
        reused = not any(read.free.issuperset(item.axes) for read in mine)
        if not (_sums(item, pair) and mine and reused):
            return None
        reads |= mine
    across = {read for read in reads if lane not in read.indices[-1].axes}
    if len({read.tensor for read in across}) < len(across):
        return None  # windows: each element would be copied for each place
    order = dict(schedule.order)
    order[lane], order[reduced] = sorted((order[lane], order[reduced]), reverse=True)
    found = reordered(schedule, loop, order, across)
    if found is None:
        return None
    if most is None:
        return replace(found, short=(reduced.extent,))
    return replace(found, conditions=((reduced.extent, Dim.of(most)),))


def _longest(loop: Loop, pair: tuple[Axis, ...]) -> int | None:
    """The longest sums that are taken side by side; None where only short ones are."""
    lanes = pair[0].extent.constant
    sums = [item.result.dtype.itemsize for item in loop.items if _sums(item, pair)]
    if lanes is None or not sums or lanes * min(sums) < LEAST_LANES:
        return None
    vectors = sum(-(-lanes * size // _VECTOR) for size in sums)
    return _MOST_COPIED // (lanes * max(sums)) if vectors <= _MOST_SUMS else None


def _sums(item: Item, pair: tuple[Axis, ...]) -> bool:
    """Does it reduce the second axis of a pair, its innermost ones, for each value of others?"""
    innermost = item.axes[-2:] == pair and item.reduced == item.axes[-1:]
    return item.role == REDUCE and len(item.axes) > 2 and innermost


def _reads(item: Item) -> list[Access]:
    """The elements of arrays that an item reads."""
    assert item.body is not None
    return [expr for expr in evaluated(item.body) if isinstance(expr, Access)]
