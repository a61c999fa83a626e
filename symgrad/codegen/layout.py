"""Where values live: in a variable, in an array, in an output.

In: the tree of loops and its items.  Out: a ``Place`` for every value that is an array.
Imports: ``symgrad.ir`` and its neighbours in ``symgrad.codegen``.

A value whose readers are all in the scope where it is complete, and that is one number there, is
a variable.  Otherwise it is an array over the axes that are not fixed in the innermost scope
that holds it and all of its readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symgrad.codegen.arrange import Entry, Loop
from symgrad.codegen.items import KEEP, REDUCE, STORE, Item
from symgrad.codegen.program import Definition
from symgrad.ir.dim import Axis

Path = tuple[Loop, ...]


@dataclass(frozen=True)
class Place:
    """An array that holds the value of an item.

    ``axes``: its dimensions; ``shared``: how many of the outermost loops it lives inside of (0:
    one array for the whole kernel, otherwise one for each group of rows); ``definition``: it
    is the array of that definition, indexed as that is.
    """

    axes: tuple[Axis, ...]
    shared: int
    definition: Definition | None = None


@dataclass(frozen=True)
class Layout:
    """The loops around every item, the places of values, and the stores that are not needed."""

    paths: dict[Item, Path]
    places: dict[Item, Place]
    dropped: frozenset[Item]


def lay_out(entries: Sequence[Entry]) -> Layout:
    """Find a place for every value."""
    paths: dict[Item, Path] = {}
    todo: list[tuple[Entry, Path]] = [(entry, ()) for entry in entries]
    while todo:
        entry, path = todo.pop()
        if isinstance(entry, Item):
            paths[entry] = path
        else:
            todo.extend((inner, (*path, entry)) for inner in entry.body)
    items = sorted(paths, key=lambda item: item.number)
    readers = _readers(items)
    homes = _homes(items)
    places: dict[Item, Place] = {}
    dropped: set[Item] = set()
    for item in items:
        if item.role in (REDUCE, KEEP):
            place = _place(item, readers.get(item, []), paths, homes.get(item))
            if place is not None:
                places[item] = place
                if place.definition is not None and item.inside and item.role == REDUCE:
                    dropped.add(homes[item])
    return Layout(paths, places, frozenset(dropped))


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
    item: Item, readers: Sequence[Item], paths: dict[Item, Path], home: Item | None
) -> Place | None:
    own = paths[item][: len(item.outside)]
    shared = len(own)
    for reader in readers:
        shared = min(shared, _common(own, paths[reader]))
    missing = (*item.outside[shared:], *item.inside)
    if not missing:
        return None
    if home is not None and home.definition is not None and _same_axes(item, home.definition):
        return Place(missing, 0, home.definition)
    return Place(missing, shared)


def _same_axes(item: Item, definition: Definition) -> bool:
    return set(definition.axes) == {*item.outside, *item.inside}


def _common(first: Path, second: Path) -> int:
    count = 0
    for one, other in zip(first, second, strict=False):
        if one is not other:
            break
        count += 1
    return count
