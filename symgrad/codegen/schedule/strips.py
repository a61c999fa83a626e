"""Sums side by side for several places of another axis: a strip of places and a tile of lanes.

In: a loop whose sums go straight into an array, each of products of one factor that does not vary
along the loop and one that does not vary along the lanes.  Out: ``Strip``: how many places of both
are done together, and the same work with what is summed up outside of both.

So much is accumulated in registers, and what is read along the lanes serves all places of the
strip.  What is left of both axes is done by the loop as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce

from symgrad.codegen.program.joined import products
from symgrad.codegen.program.rewrite import conjuncts
from symgrad.codegen.schedule.items import REDUCE, Item
from symgrad.codegen.schedule.loops import Loop
from symgrad.codegen.schedule.storage import Storage
from symgrad.ir.dim import Axis
from symgrad.ir.expr import Call, Expr, ExprPool

_LEAST, _MOST = 4, 7  # places of a strip, where there are as many
VECTOR = 64  # bytes of the lanes of a tile: one vector, or two


@dataclass(frozen=True)
class Strip:
    """``count`` places of the axis of ``loop`` and ``width`` of ``lane`` are one piece of work.

    ``item``: what is done there.
    """

    loop: Loop
    count: int
    lane: Axis
    width: int
    item: Item


@dataclass(frozen=True)
class Piece:
    """The loops of one piece of work, for ``items`` that add up to one item.

    ``conditions``: of the loops in ``loops`` that are run under some, or in those inside of them.
    """

    loops: tuple[Loop, ...]
    items: tuple[Item, ...]
    conditions: dict[Loop, tuple[Expr, ...]]


def find_strip(loop: Loop, storage: Storage) -> Strip | None:
    """How a loop is cut; None where nothing would be read less often."""
    items = [item for item in loop.items if item not in storage.dropped]
    if len(items) != 1 or loop.sequential or loop.downwards or loop.blocked:
        return None
    (item,) = items
    if not is_plain_sum(item, storage) or item.outside[-1:] != (loop.axis,):
        return None
    (lane,) = item.inside
    width, extent = VECTOR // item.result.dtype.itemsize, lane.extent.constant
    if not is_shared(item, loop.axis, lane) or (extent is not None and extent <= width):
        return None
    count = _count(loop.axis)
    return Strip(loop, count, lane, width, item) if count > 1 else None


def is_even(strip: Strip, body: Expr) -> bool:
    """Are conditions in ``body`` the same for all of a piece?"""
    within = {strip.loop.axis, strip.lane}
    return all(within.isdisjoint(one.free) for found, _ in terms(body) for one in found)


def cut(strip: Strip, body: Expr, pool: ExprPool) -> Piece:
    """One piece: what is summed up outside of the places and the lanes, conditions around both."""
    item, axis = strip.item, strip.loop.axis
    axes = (*item.outside[:-1], *item.reduced, axis, strip.lane)
    made = _by_conditions(replace(item, axes=axes), body, pool)
    loops = {
        Loop(axis, (Loop(strip.lane, (one,)),), unrolled=strip.count): conditions
        for one, conditions in made.items()
    }
    whole = Loop(item.reduced[-1], tuple(loops))
    for one in reversed(item.reduced[:-1]):
        whole = Loop(one, (whole,))
    return Piece((whole,), tuple(made), loops)


def parted(loop: Loop, item: Item, body: Expr, pool: ExprPool) -> Piece | None:
    """An innermost loop, once for each of the conditions in it; None where these vary in it."""
    if not all(loop.axis not in one.free for found, _ in terms(body) for one in found):
        return None
    made = _by_conditions(item, body, pool)
    loops = {Loop(loop.axis, (one,)): conditions for one, conditions in made.items()}
    return Piece(tuple(loops), tuple(made), loops) if any(loops.values()) else None


def _by_conditions(item: Item, body: Expr, pool: ExprPool) -> dict[Item, tuple[Expr, ...]]:
    """What is added up under the same conditions, as one item each."""
    found: dict[tuple[Expr, ...], list[Expr]] = {}
    for conditions, term in terms(body):
        found.setdefault(conditions, []).append(term)
    made: dict[Item, tuple[Expr, ...]] = {}
    for conditions, added in found.items():
        total = reduce(lambda one, other: pool.call("add", one, other, dtype=one.dtype), added)
        made[replace(item, body=total)] = conditions
    return made


def terms(expr: Expr) -> Iterator[tuple[tuple[Expr, ...], Expr]]:
    """What is added up, each with the conditions that it stands under."""
    todo: list[tuple[tuple[Expr, ...], Expr]] = [((), expr)]
    while todo:
        conditions, one = todo.pop()
        assert isinstance(one, Call)
        if one.function == "add":
            todo += [(conditions, operand) for operand in reversed(one.operands)]
        elif one.function == "where":
            todo.append(((*conditions, *conjuncts(one.operands[0])), one.operands[1]))
        else:
            yield conditions, one


def is_plain_sum(item: Item, storage: Storage) -> bool:
    """Is it a sum of products that goes straight into the array where it stays?"""
    place = storage.places.get(item)
    if item.role != REDUCE or place is None or place.definition is None:
        return False
    return item.body is not None and bool(products(item.body)) and len(item.inside) == 1


def is_shared(item: Item, axis: Axis, lane: Axis) -> bool:
    """Has each product a factor for the lanes alone, and one for the places alone?"""
    assert item.body is not None
    kinds = [
        {(axis in factor.free, lane in factor.free) for factor in pair}
        for pair in products(item.body)
    ]
    return all(kind == {(True, False), (False, True)} for kind in kinds)


def _count(axis: Axis) -> int:
    """The places of a strip: the least number of those that leave the fewest over."""
    extent = axis.extent.constant
    if extent is None or extent < _LEAST:
        return _LEAST if extent is None else extent
    return min(range(_LEAST, _MOST + 1), key=lambda count: extent % count)
