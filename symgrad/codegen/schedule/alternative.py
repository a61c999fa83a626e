"""Another arrangement of one loop, for some sizes.

In: a loop, the storage of the whole kernel.  Out: ``Alternative``, and where its values live.

Which of the two runs is tested when the kernel is called.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from symgrad.codegen.schedule.items import Item, Items
from symgrad.codegen.schedule.loops import Entry, Loop, arrange
from symgrad.codegen.schedule.scheduler import Schedule, guards_of
from symgrad.codegen.schedule.storage import Storage, allocate
from symgrad.ir.dim import Axis, Dim
from symgrad.ir.expr import Access


@dataclass(frozen=True)
class Alternative:
    """The entries that take the place of a loop, and its items by those that stand for them.

    They are the better choice where of each pair of ``conditions`` the first number is at most the
    second, and where the numbers ``short`` are less than ``SHORT_ROW``.
    """

    entries: tuple[Entry, ...]
    items: Mapping[Item, Item]
    conditions: tuple[tuple[Dim, Dim], ...] = ()
    short: tuple[Dim, ...] = ()


def reordered(
    schedule: Schedule, loop: Loop, order: Mapping[Axis, int], copied: Collection[Access]
) -> Alternative | None:
    """The loop with its axes in another order, and these reads laid out first.

    None where one of them is guarded, or some work of the loop has no counterpart.
    """
    items = Items(schedule.program, order, {*schedule.kept, *copied})
    guards = guards_of(items)
    if any(guards.guarded(read) for read in copied):
        return None
    wanted = {one.key: one for one in loop.items}
    found = [one for one in items.found if one.key in wanted or one.value in copied]
    stands_for = {wanted[one.key]: one for one in found if one.key in wanted}
    if len(stands_for) != len(loop.items):
        return None
    return Alternative(arrange(found), stands_for)


def alternative_storage(alternative: Alternative, whole: Storage) -> Storage:
    """Where values live: as in the whole kernel where others read them."""
    items = alternative.items
    needs = (need.item for item in whole.paths if item not in items for need in item.needs)
    elsewhere = {item: items[item] for item in needs if item in items}
    local = allocate(alternative.entries, elsewhere.values())
    places = {new: whole.places[old] for old, new in elsewhere.items() if old in whole.places}
    return Storage(local.paths, {**local.places, **places}, local.dropped, local.overwrites)
