"""The schedule: which loops there are, and what is done in each of them.

In: items.  Out: a tree of ``Loop`` records with items as leaves.

A schedule is a longest path.  Among the items of one scope, each goes into a loop over the first
of its axes that is not open yet, at the lowest level its dependences allow: the same level as
what it needs where that is done in the same iteration of the same loop, one more where the whole
loop must be over.  Items at one level with one axis share a loop; inside it the same is done again.
Legal by construction, without search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Union

from symgrad.codegen.program.patterns import Scan
from symgrad.codegen.schedule.items import PRODUCT, SCAN, SCATTER, Item
from symgrad.ir.dim import Axis

Entry = Union["Loop", Item]
Token = tuple[Axis, bool, int]  # axis, downwards, the item that must have the loop to itself or -1


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop over ``axis``; ``sequential`` where one iteration builds on those before.

    A ``blocked`` loop runs over blocks of the axis and fixes nothing: its entries are products of
    matrices, each for the whole block, and loops over the rows of the block.  ``unrolled``: how
    often it is surely run, all of it at once; 0 where that is not asked for.
    """

    axis: Axis
    body: tuple[Entry, ...]
    downwards: bool = False
    sequential: bool = False
    blocked: bool = False
    unrolled: int = 0

    @property
    def items(self) -> list[Item]:
        """All items in it, in order."""
        return in_turn(self.body)


def in_turn(entries: Sequence[Entry]) -> list[Item]:
    """All items in entries, in the order in which they are done."""
    found: list[Item] = []
    for entry in entries:
        found += in_turn(entry.body) if isinstance(entry, Loop) else [entry]
    return found


def arrange(items: Sequence[Item], opened: frozenset[Axis] = frozenset()) -> tuple[Entry, ...]:
    """The entries of a scope in which the axes ``opened`` are fixed."""
    tokens = {item: _token(item, opened) for item in items}
    levels: dict[Item, int] = {}
    for item in items:
        found = [
            levels[need.item] + _waits(tokens[item], tokens[need.item], need.kept)
            for need in item.needs
            if need.item in levels
        ]
        levels[item] = max(found, default=0)
    # At one level first what needs no loop, then the loops in the order of their first items.
    groups: dict[tuple[int, bool, Token | None], list[Item]] = {}
    for item in sorted(items, key=lambda item: (levels[item], tokens[item] is not None)):
        groups.setdefault((levels[item], tokens[item] is not None, tokens[item]), []).append(item)
    entries: list[Entry] = []
    for (_, _, token), members in groups.items():
        if token is None:
            entries.extend(members)
        else:
            axis, downwards, alone = token
            if any(item.role == PRODUCT for item in members):
                entries.append(Loop(axis, _phases(members, axis), blocked=True))
                continue
            body = arrange(members, opened | {axis})
            entries.append(Loop(axis, body, downwards, sequential=alone >= 0))
    return tuple(entries)


def _phases(items: Sequence[Item], axis: Axis) -> tuple[Entry, ...]:
    """Products and loops over rows in turn: a product waits for what it multiplies."""
    phases: dict[Item, int] = {}
    for item in items:
        waits = (
            phases[need.item] + (item.role == PRODUCT and need.item.role != PRODUCT)
            for need in item.needs
            if need.item in phases
        )
        phases[item] = max(waits, default=0)
    entries: list[Entry] = []
    for phase in sorted(set(phases.values())):
        entries += [i for i in items if phases[i] == phase and i.role == PRODUCT]
        rows = [i for i in items if phases[i] == phase and i.role != PRODUCT]
        if rows:
            entries.append(Loop(axis, arrange(rows, frozenset((axis,)))))
    return tuple(entries)


def _token(item: Item, opened: frozenset[Axis]) -> Token | None:
    """The loop that an item goes into."""
    axis = next((axis for axis in item.axes if axis not in opened), None)
    if axis is None:
        return None
    if item.role == SCAN and (pattern := item.pattern(Scan)).axis == axis:
        return axis, pattern.reverse, item.number
    if axis in item.reduced and (item.role == SCATTER or item.finds_place):
        return axis, False, item.number
    return axis, False, -1


def _waits(mine: Token | None, other: Token | None, kept: frozenset[Axis]) -> int:
    """0 where an item can follow another in the same scope, 1 where it needs its loop to end."""
    return int(other is not None and (mine != other or other[0] not in kept))


# -- the loops around items

Path = tuple[Loop, ...]


def paths_of(entries: Sequence[Entry]) -> dict[Item, Path]:
    """The loops around every item."""
    paths: dict[Item, Path] = {}
    todo: list[tuple[Entry, Path]] = [(entry, ()) for entry in entries]
    while todo:
        entry, path = todo.pop()
        if isinstance(entry, Item):
            paths[entry] = path
        else:
            todo.extend((inner, (*path, entry)) for inner in entry.body)
    return paths


def common(first: Path, second: Path) -> int:
    """How many loops two paths have in common."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], pairs))
