"""Where values live: in a variable, in an array, in an output.

In: the tree of loops and its items.  Out: a ``Place`` for every value that is an array.

A value whose readers are all in the scope where it is complete, and that is one number there, is
a variable.  Otherwise it is an array over the axes that are not fixed in the innermost scope
that holds it and all of its readers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from symgrad.codegen.program.definitions import Definition
from symgrad.codegen.schedule.items import KEEP, PRODUCT, REDUCE, STORE, Item
from symgrad.codegen.schedule.loops import Entry, Path, common, in_turn, paths_of
from symgrad.ir.dim import Axis


@dataclass(frozen=True)
class Place:
    """An array that holds the value of an item.

    ``axes``: its dimensions; ``shared``: how many of the outermost loops it lives inside of (0:
    one array for the whole kernel, otherwise one for each group of rows); ``definition``: it
    is the array of that definition, indexed as that is; ``alias``: the memory is that of another
    item, which has all of these axes and is written where this one is read last.
    """

    axes: tuple[Axis, ...]
    shared: int
    definition: Definition | None = None
    alias: Item | None = None


@dataclass(frozen=True)
class Storage:
    """The loops around every item, the places of values, and the stores that are not needed.

    ``overwrites``: stores to outputs that until then hold the value of another item.
    """

    paths: dict[Item, Path]
    places: dict[Item, Place]
    dropped: frozenset[Item]
    overwrites: dict[Item, Item]


def allocate(entries: Sequence[Entry], elsewhere: Collection[Item] = ()) -> Storage:
    """Find a place for every value; ``elsewhere``: those that are read outside of the entries."""
    paths = paths_of(entries)
    items = sorted(paths, key=lambda item: item.number)
    readers = _readers(items)
    homes = _homes(items)
    places: dict[Item, Place] = {}
    dropped: set[Item] = set()
    for item in items:
        if item.role in (REDUCE, KEEP, PRODUCT):
            reading = [paths[reader] for reader in readers.get(item, [])]
            reading += [()] if item in elsewhere else []
            place = _place(item, reading, paths, homes.get(item))
            if place is not None:
                places[item] = place
                if place.definition is not None and (item.inside or item.role == KEEP):
                    dropped.add(homes[item])
    overwrites = _share_outputs(in_turn(entries), paths, places, readers, dropped)
    return Storage(paths, places, frozenset(dropped), overwrites)


def _share_outputs(
    items: Sequence[Item],
    paths: dict[Item, Path],
    places: dict[Item, Place],
    readers: dict[Item, list[Item]],
    dropped: set[Item],
) -> dict[Item, Item]:
    """Let values live in outputs that are written by the loop that reads them last."""
    turn = {item: position for position, item in enumerate(items)}
    writers = [i for i in items if i.role == STORE and i not in dropped and not i.output]
    writers += [item for item in items if item in places and item.role == KEEP]
    found: dict[Item, Item] = {}
    for item, place in list(places.items()):
        if item.role not in (KEEP, PRODUCT) or place.definition is not None or not place.shared:
            continue
        last = paths[max(readers[item], key=lambda reader: turn[reader])]
        if _read_elsewhere(item, [reader for reader in readers[item] if paths[reader] == last]):
            continue
        for writer in writers:
            if writer in found or writer is item or paths[writer] != last:
                continue
            in_order = item in found or any(r.role == PRODUCT for r in readers[item])
            shared = _shared_place(item, place, writer, places.get(writer), in_order=in_order)
            if shared is not None:
                places[item] = shared
                found[writer] = item
                break
    return found


def _read_elsewhere(item: Item, readers: Sequence[Item]) -> bool:
    """Does an iteration read elements of a product that another iteration could overwrite?"""
    if item.role != PRODUCT or item.value is None:
        return False
    needs = [need for reader in readers if reader.role != PRODUCT for need in reader.needs]
    return any(need.item is item and not need.kept >= item.value.free for need in needs)


def _shared_place(
    item: Item, place: Place, writer: Item, other: Place | None, *, in_order: bool
) -> Place | None:
    """The place of what ``writer`` writes, where the value of ``item`` fits in."""
    definition = writer.definition
    if writer.role != STORE:
        definition = other.definition if other is not None else None
    if definition is not None:
        fits = definition.outputs and _fits(item, definition, in_order=in_order)
        return Place(place.axes, 0, definition) if fits else None
    if other is None or not other.shared or item.value is None or writer.value is None:
        return None
    wanted = item.target.axes if item.role == PRODUCT else item.axes
    same = writer.axes == wanted and item.value.dtype == writer.value.dtype
    holds = same and set(place.axes) <= set(other.axes)
    return Place(place.axes, other.shared, alias=writer) if holds else None


def _fits(item: Item, definition: Definition, *, in_order: bool) -> bool:
    """Can a value lie in the array of a definition?  Products want axes in their order, too."""
    if item.value is None or definition.dtype != item.value.dtype:
        return False
    if item.role == PRODUCT:
        return item.target.axes == definition.axes
    return _same_axes(item, definition) and (not in_order or definition.axes == item.axes)


def _readers(items: Sequence[Item]) -> dict[Item, list[Item]]:
    found: dict[Item, list[Item]] = {}
    for item in items:
        for need in item.needs:
            found.setdefault(need.item, []).append(item)
    return found


def _homes(items: Sequence[Item]) -> dict[Item, Item]:
    """The store that writes just the value of an item, for those that have one."""
    values = {item.value: item for item in items if item.value is not None}
    found: dict[Item, Item] = {}
    for item in items:
        if item.role == STORE and item.body in values and not item.output:
            found.setdefault(values[item.body], item)
    return found


def _place(
    item: Item, reading: Sequence[Path], paths: dict[Item, Path], home: Item | None
) -> Place | None:
    if item.role == PRODUCT and item.target.outputs:
        return Place(item.target.axes, 0, item.target)
    own = _complete_in(item, paths[item])
    shared = min((common(own, path) for path in reading), default=len(own))
    if item.role == PRODUCT:  # a block of rows where no other rows are read
        local = shared and item.target.axes[0] == item.axes[0]
        return Place(item.target.axes, 1 if local else 0)
    fixed = {loop.axis for loop in own[:shared] if not loop.blocked}
    missing = tuple(axis for axis in (*item.outside, *item.inside) if axis not in fixed)
    if not missing:
        return None
    if home is not None and _same_axes(item, home.target):
        return Place(missing, 0, home.target)
    return Place(missing, shared)


def _complete_in(item: Item, path: Path) -> Path:
    """The loops inside of which the value of an item is complete."""
    if item.role == PRODUCT:
        return () if item.reduced else path
    if path and path[0].blocked and path[0].axis in item.reduced:
        return ()
    fixed = set(item.outside)
    count = int(bool(path) and path[0].blocked)
    while fixed - {loop.axis for loop in path[:count] if not loop.blocked}:
        count += 1
    return path[:count]


def _same_axes(item: Item, definition: Definition) -> bool:
    return set(definition.axes) == {*item.outside, *item.inside}
