"""Loop interchange for short rows.

In: an outermost loop over rows with one loop inside.  Out: the same work with the rows innermost.

Where rows are shorter than a vector, lanes run over a tile of rows: what was a number for each row
becomes a small array, a reduction over a row accumulates such arrays, and a reduction over the rows
becomes one of lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symgrad.codegen.schedule.items import KEEP, REDUCE, STORE, Item, Items
from symgrad.codegen.schedule.loops import Loop, arrange, paths_of
from symgrad.codegen.schedule.rematerialise import choose_kept
from symgrad.codegen.schedule.scheduler import Schedule, guards_of
from symgrad.codegen.schedule.storage import Storage, allocate
from symgrad.ir.dim import Axis
from symgrad.ir.expr import Expr

SHORT_ROW = 32  # elements: of fewer, loops are interchanged
TILE = 64  # rows side by side


@dataclass(frozen=True)
class Interchanged:
    """The interchanged loop, and the items it was made of by those that stand for them in it."""

    loop: Loop
    lane: Axis
    items: dict[Item, Item]

    @property
    def shared(self) -> list[Item]:
        """What the rows reduce into."""
        return [item for item in self.loop.items if self.loop.axis in item.reduced]


def interchange(schedule: Schedule, loop: Loop) -> Interchanged | None:
    """The loop interchanged; None where its rows differ in kind, or are surely long."""
    lane = _lane(loop)
    if lane is None:
        return None
    order = dict(schedule.order) | {loop.axis: len(schedule.order)}
    wanted = {item.key: item for item in loop.items}
    kept: list[Expr] = list(schedule.kept)
    for _ in range(2):
        items = Items(schedule.program, order, kept)
        mine = [one for one in items.found if one.key in wanted or _is_new(one, schedule, kept)]
        interchanged = Loop(loop.axis, arrange(mine), blocked=True)
        stands_for = {wanted[one.key]: one for one in mine if one.key in wanted}
        if not all(old in stands_for and _same(old, stands_for[old]) for old in loop.items):
            return None
        found = choose_kept(items, paths_of([interchanged]), guards_of(items))
        if set(found) <= set(kept):
            break
        kept += [expr for expr in found if expr not in kept]
    return Interchanged(interchanged, lane, stands_for)


def _same(old: Item, new: Item) -> bool:
    """Do two items the same work?  In another order, runs of reduced axes may be others."""
    return set(old.axes) == set(new.axes) and set(old.reduced) == set(new.reduced)


def _lane(loop: Loop) -> Axis | None:
    """The one axis of the rows, where the loop can be interchanged."""
    lanes = {axis for item in loop.items for axis in item.axes} - {loop.axis}
    if loop.sequential or loop.blocked or len(lanes) != 1:
        return None
    (lane,) = lanes
    if lane.extent.constant is not None and lane.extent.constant >= SHORT_ROW:
        return None
    for item in loop.items:
        plain = item.role in (STORE, REDUCE, KEEP) and not item.finds_place
        if not plain or {loop.axis, lane} <= set(item.reduced):
            return None
    return lane


def _is_new(item: Item, schedule: Schedule, kept: Sequence[Expr]) -> bool:
    """Is it a value that only the interchanged loop keeps?"""
    return item.role == KEEP and item.value in kept and item.value not in schedule.kept


def interchanged_storage(interchanged: Interchanged, whole: Storage) -> Storage:
    """Where values live: as in the whole kernel where others read them, else in tiles."""
    local = allocate([interchanged.loop])
    places = dict(local.places)
    for old, new in interchanged.items.items():
        place = whole.places.get(old)
        shared = interchanged.loop.axis in new.reduced
        if place is not None and place.shared == 0 and (shared or place.definition is None):
            places[new] = place
    return Storage(local.paths, places, local.dropped, local.overwrites)
