"""The outermost loops: what runs in parallel.

In: the entries of the schedule's outermost scope.  Out: statements, pieces of the workspace.

Results have the same bits for any number of threads: rows are cut into groups, and elementwise
loops into blocks, whose number depends on the sizes alone; parts are joined in their order.

- blocks: one flat loop without anything that is carried along;
- rows: each row by itself;
- groups: rows that reduce into something that they share, or that need memory of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from symgrad.codegen.emit.context import Array, Flat
from symgrad.codegen.emit.ctree import (
    Binary,
    Block,
    Declare,
    Expression,
    For,
    If,
    Statement,
    Text,
    expression_text,
    greatest,
    least,
    name,
    number,
    statements_text,
)
from symgrad.codegen.emit.groups import Groups, Tiles, parallel_clause
from symgrad.codegen.emit.nests import Nests
from symgrad.codegen.emit.reductions import SUM_BLOCK
from symgrad.codegen.schedule.alternative import Alternative, alternative_storage
from symgrad.codegen.schedule.borders import find_borders
from symgrad.codegen.schedule.interchange import Interchanged, interchanged_storage
from symgrad.codegen.schedule.items import PRODUCT, Item
from symgrad.codegen.schedule.loops import Entry, Loop
from symgrad.codegen.schedule.rows import Rows
from symgrad.codegen.schedule.strips import find_strip
from symgrad.ir.dim import Axis, Dim, product
from symgrad.ir.expr import Expr


class OuterLoops:
    """Writes the outermost scope of a kernel."""

    def __init__(
        self, nests: Nests, rows: Mapping[Loop, Rows], interchanged: Mapping[Loop, Interchanged],
        others: Mapping[Loop, Alternative],
    ) -> None:  # fmt: skip
        self._rows = rows
        self._interchanged = interchanged
        self._others = others
        self.nests = nests
        self.context = nests.context
        self.scalars = nests.scalars

    def write(self, entries: Sequence[Entry]) -> list[Statement]:
        """The statements of the kernel's body."""
        self._allocate()
        return self.nests.inside(
            frozenset(), lambda: self.nests.entries(entries, self._outermost)
        )  # fmt: skip

    # -- memory

    def _allocate(self) -> None:
        """Arrays for the values that the whole kernel shares."""
        arrays = self.nests.arrays
        for item, place in self.nests.storage.places.items():
            if item in arrays:
                continue
            if place.definition is not None:
                array = self.context.arrays[place.definition.tensor]
                arrays[item] = (array, place.definition.indices)
            elif place.shared == 0:
                arrays[item] = self._array(item, place.axes)
            if item.role == PRODUCT and item in arrays:
                array = replace(arrays[item][0], shape=item.target.shape)
                arrays[item] = (array, item.target.indices)
                self.context.arrays[item.target.tensor] = array

    def _array(self, item: Item, axes: tuple[Axis, ...]) -> tuple[Array, tuple[Dim, ...]]:
        wanted, dtype = f"{self.nests.name_of(item)}_all", item.result.dtype
        c_name = self.context.workspace(wanted, dtype, self.context.count(axes))
        shape = tuple(axis.extent for axis in axes)
        return Array(c_name, dtype, shape, constant=False), tuple(map(Dim.of, axes))

    # -- one outermost loop

    def _outermost(self, loop: Loop) -> None:
        if loop.sequential:
            self.nests.loop(loop)
            return
        if loop in self._others:
            self._either(loop, self._others[loop])
            return
        interchanged = None if self._rows[loop].flat else self._interchanged.get(loop)
        if interchanged is None:
            self._as_rows(loop, {})
            return
        shared = [item for item in loop.items if item.reduced and not item.outside]
        declared = {item: self.nests.declare(item) for item in shared if not item.inside}
        short = self.nests.inside(frozenset(), lambda: self._as_tiles(interchanged, declared))
        if interchanged.lane.extent.constant is not None:
            self.scalars.add(Block(tuple(short)))
            for item in interchanged.items:
                self.nests.complete(item)
            return
        long = self.nests.inside(frozenset(), lambda: self._as_rows(loop, declared))
        condition = Binary("<", self.context.dim(interchanged.lane.extent), name("SHORT_ROW"))
        self.scalars.add(If(condition, tuple(short), tuple(long)))

    def _as_tiles(self, interchanged: Interchanged, declared: Mapping[Item, str]) -> None:
        """The loop with its rows innermost."""
        nests, whole = self.nests, self.nests.storage
        items = dict(nests.items)
        nests.storage = interchanged_storage(interchanged, whole)
        for old, new in interchanged.items.items():
            place = nests.storage.places.get(new)
            if old in nests.arrays and place is not None and place.shared == 0:
                nests.arrays[new] = nests.arrays[old]
        for new, place in nests.storage.places.items():
            if place.definition is not None:
                array = self.context.arrays[place.definition.tensor]
                nests.arrays[new] = array, place.definition.indices
        nests.items.update({i.value: i for i in interchanged.loop.items if i.value is not None})
        tiles = Tiles(nests, interchanged)
        for old, new in interchanged.items.items():
            if old in declared:
                tiles.declared[new] = declared[old]
        if tiles.shared:
            tiles.write()
        else:
            tiles.write_tiles()
        nests.storage, nests.items = whole, items

    def _either(self, loop: Loop, other: Alternative) -> None:
        """The loop, or what takes its place for some sizes."""
        declared = {
            item: self.nests.declare(item)
            for item in loop.items
            if item.reduced and not item.outside and not item.inside and item.role != PRODUCT
        }
        if any((length - most).at_least(1) for length, most in other.conditions):
            self._as_rows(loop, declared)
            return
        tests = self._tests(other)
        first = self.nests.inside(frozenset(), lambda: self._as_other(other, declared))
        if not tests:
            self.scalars.add(Block(tuple(first)))
            for item in other.items:
                self.nests.complete(item)
            return
        second = self.nests.inside(frozenset(), lambda: self._as_rows(loop, declared))
        condition = Text(" && ".join(map(expression_text, tests)))
        self.scalars.add(If(condition, tuple(first), tuple(second)))

    def _tests(self, other: Alternative) -> list[Expression]:
        """What says which of two arrangements is better, where it is not known."""
        tests: list[Expression] = [
            Binary("<=", self.context.dim(length), self.context.dim(most))
            for length, most in other.conditions
            if not most.at_least(length)
        ]
        short = [length for length in other.short if length.constant is None]
        return tests + [Binary("<", self.context.dim(one), name("SHORT_ROW")) for one in short]

    def _as_other(self, other: Alternative, declared: Mapping[Item, str]) -> None:
        """The entries that take the place of a loop."""
        nests, whole = self.nests, self.nests.storage
        items, arrays = dict(nests.items), dict(self.context.arrays)
        nests.storage = alternative_storage(other, whole)
        for old, new in other.items.items():
            if old in nests.arrays and nests.storage.places.get(new) is whole.places.get(old):
                nests.arrays[new] = nests.arrays[old]
        self._allocate()
        nests.items.update({i.value: i for i in nests.storage.paths if i.value is not None})
        named = {other.items[old]: variable for old, variable in declared.items()}
        nests.entries(other.entries, lambda loop: self._as_rows(loop, named))
        nests.storage, nests.items = whole, items
        self.context.arrays.update(arrays)

    def _as_rows(self, loop: Loop, declared: Mapping[Item, str]) -> None:
        """The loop as it is."""
        rows = self._rows[loop]
        shared = [item for item in loop.items if item.reduced and not item.outside]
        buffered = [
            item
            for item in loop.items
            if (place := self.nests.storage.places.get(item))
            and place.shared > 0
            and not self.nests.is_local(item)
        ]
        if rows.flat:
            self._open_flat(rows)
        if shared or buffered or loop.blocked:
            groups = Groups(self.nests, rows, shared, buffered, self.row_loop)
            groups.declared.update(declared)
            groups.write()
        elif rows.leaf:
            self._blocks(rows)
        else:
            self._each_row(rows)
        self.context.flat = None

    def _open_flat(self, rows: Rows) -> None:
        variable = self.context.variable(rows.axes[0])
        self.context.flat = Flat(tuple(Dim.of(axis) for axis in rows.axes), variable)

    # -- the three ways

    def _blocks(self, rows: Rows) -> None:
        variable = self._row_variable(rows)
        start, stop = (self.context.names.fresh(f"{variable}{end}") for end in (0, 1))
        extent = self.context.dim(rows.extent)
        end = least(extent, Binary("+", name(start), name("BLOCK")))
        body = self.row_loop(rows, name(start), name(stop), simd=True)
        body.insert(0, Declare("const int64_t", stop, end))
        pragma = parallel_clause(rows.loop, self.context)
        self.scalars.add(For(start, number(0), extent, tuple(body), pragma, step="BLOCK"))
        for c_name in (start, stop):
            self.context.names.release(c_name)

    def _each_row(self, rows: Rows) -> None:
        nests, last = self.nests, rows.last
        strip = find_strip(last, nests.storage)
        if strip is None:
            self._by_itself(rows)
            return
        axis, count = last.axis, strip.count
        strips = nests.pieces_of(axis, "strips", count)
        number_of = Axis("strip", strips)
        self.context.variables[number_of] = self.scalars.fresh("strip")
        several = strips != 1 or len(rows.axes) == 1
        cut = replace(rows, axes=(*rows.axes[:-1], *([number_of] if several else [])))

        def write() -> None:
            begin = Dim.of(0)
            if several:
                first = self.context.dim(Dim.of(number_of) * count)
                wanted = f"{self.context.variable(axis)}0"
                begin = self.context.symbol(self.scalars.variable("const int64_t", wanted, first))
            nests.ranges[axis] = begin, begin + count
            self._row(rows, (last,))

        self._by_itself(cut, write)
        if axis.extent != strips * count:
            nests.ranges[axis] = strips * count, axis.extent
            self._by_itself(rows)
        del nests.ranges[axis]

    def _by_itself(self, rows: Rows, write: Callable[[], None] | None = None) -> None:
        """A loop over rows, of which each is by itself."""
        start, stop = Dim.of(0), self._extent(rows)
        if rows.single:
            start, stop = self.nests.range_of(rows.axes[0])
        first, last = self.context.dim(start), self.context.dim(stop)
        (loop,) = self.row_loop(rows, first, last, simd=False, write=write)
        assert isinstance(loop, For)
        pragma = parallel_clause(rows.loop, self.context)
        self.scalars.add(For(loop.variable, loop.start, loop.stop, loop.body, pragma))

    def _extent(self, rows: Rows) -> Dim:
        """How many rows there are, of axes of which only a part may be run through."""
        return product([self._length(axis) for axis in rows.axes])

    def _length(self, axis: Axis) -> Dim:
        start, stop = self.nests.range_of(axis)
        return stop - start

    # -- the loop over rows

    def _row_variable(self, rows: Rows) -> str:
        return self.context.variable(rows.axes[0]) if rows.single else "row"

    def row_loop(
        self, rows: Rows, start: Expression, stop: Expression, *, simd: bool,
        write: Callable[[], None] | None = None,
    ) -> list[Statement]:  # fmt: skip
        """The loop over some of the rows; where there are several axes, each is worked out."""
        variable = self._row_variable(rows)
        if not rows.single:
            variable = self.context.names.fresh(variable)

        indices = self._indices(rows.axes, variable) if not rows.single else []

        def whole() -> None:
            (write or (lambda: self._row(rows, rows.body)))()
            body = self.scalars.scope.statements
            words = set(re.findall(r"\w+", statements_text(body)))
            body[:0] = [index for index in indices if index.name in words]

        constant = rows.extent.constant
        short = constant is not None and constant <= SUM_BLOCK
        side_by_side = rows.leaf and simd and rows.single
        loop, bounds = Loop(rows.axes[-1], rows.body), (variable, start, stop)
        axes = frozenset(rows.axes)
        return [self.nests.run(loop, bounds, axes, whole, short=short, simd=side_by_side)]

    def _row(self, rows: Rows, entries: Sequence[Entry]) -> None:
        """What is done for each row: at its ends, and between these."""
        nests = self.nests
        borders = find_borders(rows, nests.storage)
        if borders is None:
            nests.entries(entries, nests.loop)
            return
        first, last = Dim.of(0), borders.lane.extent
        low = high = Dim.of(0)
        if borders.low != first:
            value = least(self.context.dim(last), self.context.dim(borders.low))
            low = self.context.symbol(self.scalars.variable("const int64_t", "low", value))
        value = greatest(self.context.dim(low), self.context.dim(borders.high))
        high = self.context.symbol(self.scalars.variable("const int64_t", "high", value))
        for start, stop, assumed in (
            (first, low, frozenset[Expr]()), (low, high, borders.conditions),
            (high, last, frozenset[Expr]()),
        ):  # fmt: skip
            if start == stop:
                continue
            nests.assumed = assumed
            if borders.few and not assumed:
                self._each_place(borders.lane, start, stop, entries)
                continue
            nests.ranges[borders.lane] = start, stop
            part = nests.inside(frozenset(), lambda: nests.entries(entries, nests.loop))
            self.scalars.add(Block(tuple(part)))
        del nests.ranges[borders.lane]
        nests.assumed = frozenset()

    def _each_place(self, lane: Axis, start: Dim, stop: Dim, entries: Sequence[Entry]) -> None:
        """What is done at a few places, one after another: conditions are tested once for each.

        Side by side, compilers multiply what they have not read: often subnormal, and so 50 times
        as slow.
        """
        nests = self.nests
        place = self.scalars.fresh("place")
        at = self.context.symbol(place)
        nests.ranges[lane] = at, at + 1
        part = nests.inside(frozenset(), lambda: nests.entries(entries, nests.loop))
        first, end = self.context.dim(start), self.context.dim(stop)
        self.scalars.add(For(place, first, end, tuple(part)))

    def _indices(self, axes: Sequence[Axis], variable: str) -> list[Declare]:
        """The single indices, from the number of a row."""
        found: list[Declare] = []
        rest: Expression = name(variable)
        for place in range(len(axes) - 1, -1, -1):
            extent = self.context.dim(self._length(axes[place]))
            value = rest if place == 0 else Binary("%", rest, extent)
            first = self.nests.range_of(axes[place])[0]
            if first != 0:
                value = Binary("+", self.context.dim(first), value)
            found.append(Declare("const int64_t", self.context.variable(axes[place]), value))
            rest = Binary("/", rest, extent)
        return found
