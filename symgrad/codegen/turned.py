"""Short rows: loops turned inside out.

In: an outermost loop over rows with one loop inside.  Out: the same work with the rows innermost.

Where rows are shorter than a vector, lanes run over a tile of rows: what was a number for each row
becomes a small array, a reduction over a row accumulates such arrays, and a reduction over the rows
becomes one of lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symgrad.codegen.arrange import Loop, arrange
from symgrad.codegen.context import Array
from symgrad.codegen.ctree import Binary, Declare, Expression, For, Line, Statement, name, number
from symgrad.codegen.groups import Groups
from symgrad.codegen.items import KEEP, REDUCE, STORE, Item, Items
from symgrad.codegen.keep import choose_kept
from symgrad.codegen.layout import Layout, Place, lay_out, paths_of
from symgrad.codegen.nests import Nests
from symgrad.codegen.printer import least
from symgrad.codegen.rows import Rows
from symgrad.codegen.schedule import Schedule, guards_of
from symgrad.codegen.sums import reduction_of
from symgrad.codegen.work import parallel_clause
from symgrad.ir.dim import Axis, Dim
from symgrad.ir.expr import Expr

SHORT_ROW = 32  # elements: rows of fewer are turned
TILE = 64  # rows side by side


@dataclass(frozen=True)
class Turned:
    """The turned loop, and the items it was made of by those that stand for them in it."""

    loop: Loop
    lane: Axis
    items: dict[Item, Item]

    @property
    def shared(self) -> list[Item]:
        """What the rows reduce into."""
        return [item for item in self.loop.items if self.loop.axis in item.reduced]


def turn(schedule: Schedule, loop: Loop) -> Turned | None:
    """The loop turned; None where it is no loop over rows of one kind, or they are surely long."""
    lane = _lane(loop)
    if lane is None:
        return None
    order = dict(schedule.order) | {loop.axis: len(schedule.order)}
    wanted = {_key(item): item for item in loop.items}
    kept: list[Expr] = list(schedule.kept)
    for _ in range(2):
        items = Items(schedule.program, order, kept)
        mine = [one for one in items.found if _key(one) in wanted or _is_new(one, schedule, kept)]
        turned = Loop(loop.axis, arrange(mine), blocked=True)
        stands_for = {wanted[_key(one)]: one for one in mine if _key(one) in wanted}
        if not all(old in stands_for and _same(old, stands_for[old]) for old in loop.items):
            return None
        found = choose_kept(items, paths_of([turned]), guards_of(items))
        if set(found) <= set(kept):
            break
        kept += [expr for expr in found if expr not in kept]
    return Turned(turned, lane, stands_for)


def _same(old: Item, new: Item) -> bool:
    """Do two items the same work?  In another order, runs of reduced axes may be others."""
    return set(old.axes) == set(new.axes) and set(old.reduced) == set(new.reduced)


def _lane(loop: Loop) -> Axis | None:
    """The one axis of the rows, where the loop can be turned."""
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


def _key(item: Item) -> tuple[object, ...]:
    tensor = item.definition.tensor if item.definition is not None else ""
    return item.role, item.value, tensor, item.output


def _is_new(item: Item, schedule: Schedule, kept: Sequence[Expr]) -> bool:
    """Is it a value that only the turned loop keeps?"""
    return item.role == KEEP and item.value in kept and item.value not in schedule.kept


def turned_layout(turned: Turned, whole: Layout) -> Layout:
    """Where values live: as in the whole kernel where others read them, else in tiles."""
    local = lay_out([turned.loop])
    places = dict(local.places)
    for old, new in turned.items.items():
        place = whole.places.get(old)
        shared = turned.loop.axis in new.reduced
        if place is not None and place.shared == 0 and (shared or place.definition is None):
            places[new] = place
    return Layout(local.paths, places, local.dropped, local.overwrites)


class Tiles(Groups):
    """Writes a turned loop, tile by tile, in groups where the rows share something."""

    sums_rows = False

    def __init__(self, nests: Nests, turned: Turned) -> None:
        self.turned = turned
        rows = Rows((turned.loop.axis,), turned.loop.body, turned.loop)
        super().__init__(nests, rows, turned.shared, [], _no_rows)

    def _limits(self) -> tuple[object, int]:
        return TILE, 32

    def _has_blocks(self) -> bool:
        return False

    def _array_axes(self, item: Item) -> tuple[Axis, ...]:
        return item.outside

    def _start_part(self, item: Item) -> None:
        """The variable of the group, which those of tiles are taken into."""
        reduction = reduction_of(item)
        variable = self.evaluator.fresh(self.nests.name_of(item))
        kind = reduction.total.c if reduction.in_blocks else reduction.variable_type
        self.evaluator.add(Declare(kind, variable, reduction.total_start))
        self.nests.variables[item] = variable

    def write_tiles(self) -> None:
        """Write the loop without groups: no row shares anything with another."""
        variable = self.context.variable(self.rows.loop.axis)
        low = self.evaluator.fresh(f"{variable}0")
        extent = self.context.dim(self.rows.extent)
        body = self.nests.inside(frozenset(), lambda: self._tile(low, extent))
        pragma = parallel_clause(self.rows.loop, self.context)
        self.evaluator.add(For(low, number(0), extent, tuple(body), pragma, step=str(TILE)))

    def _blocks(self, start: str, stop: str) -> None:
        """All tiles of a group."""
        whole = dict(self.nests.variables)
        for item in self.shared:
            array = self.nests.arrays.get(item) if item.outside else None
            self.nests.joins[item] = (
                self.context.element(*array) if array else name(self.nests.variables.pop(item))
            )
        variable = self.context.variable(self.rows.loop.axis)
        low = self.evaluator.fresh(f"{variable}2")
        body = self.nests.inside(frozenset(), lambda: self._tile(low, name(stop)))
        self.evaluator.add(For(low, name(start), name(stop), tuple(body), step=str(TILE)))
        for item in self.shared:
            for inner in (self.nests.joins, self.nests.variables, self.nests.flags):
                inner.pop(item, None)
        self.nests.variables.update(whole)

    def _tile(self, low: str, extent: Expression) -> None:
        axis = self.rows.loop.axis
        high = self.evaluator.fresh(f"{self.context.variable(axis)}3")
        end = Binary("+", name(low), number(TILE))
        self.evaluator.add(Declare("const int64_t", high, least(extent, end)))
        self.nests.ranges[axis] = (self.context.symbol(low), self.context.symbol(high))
        places = self.nests.layout.places
        for item, place in places.items():
            if place.shared and place.alias is None and place.definition is None:
                self.nests.arrays[item] = self._local(item, place)
        for item in reversed(list(places)):
            alias = places[item].alias
            if alias is not None:
                self.nests.arrays[item] = self.nests.arrays[alias]
        self.nests.entries(self.turned.loop.body, self.nests.loop)
        del self.nests.ranges[axis]

    def _local(self, item: Item, place: Place) -> tuple[Array, tuple[Dim, ...]]:
        """A small array for a value of each row of the tile."""
        assert item.value is not None
        axis, lane = self.rows.loop.axis, self.turned.lane
        count = TILE * (SHORT_ROW if lane in place.axes else 1)
        c_name = self.evaluator.fresh(self.nests.name_of(item))
        self.evaluator.add(Line(f"{item.value.dtype.c} {c_name}[{count}];"))
        shape = tuple(Dim.of(TILE) if a == axis else a.extent for a in place.axes)
        start = self.nests.ranges[axis][0]
        origin = tuple(start if a == axis else Dim.of(0) for a in place.axes)
        array = Array(c_name, item.value.dtype, shape, constant=False, origin=origin)
        return array, tuple(Dim.of(a) for a in place.axes)


def _no_rows(*_: object, **__: object) -> list[Statement]:
    raise AssertionError("a turned loop has no rows")
