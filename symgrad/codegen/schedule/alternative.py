"""Another arrangement of one loop, for some sizes.

In: a loop, the storage of the whole kernel.  Out: ``Alternative``, and where its values live.

Which of the two runs is tested when the kernel is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from symgrad.codegen.schedule.items import Item
from symgrad.codegen.schedule.loops import Entry
from symgrad.codegen.schedule.storage import Storage, allocate
from symgrad.ir.dim import Dim


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


def alternative_storage(alternative: Alternative, whole: Storage) -> Storage:
    """Where values live: as in the whole kernel where others read them."""
    items = alternative.items
    needs = (need.item for item in whole.paths if item not in items for need in item.needs)
    elsewhere = {item: items[item] for item in needs if item in items}
    local = allocate(alternative.entries, elsewhere.values())
    places = {new: whole.places[old] for old, new in elsewhere.items() if old in whole.places}
    return Storage(local.paths, {**local.places, **places}, local.dropped, local.overwrites)
