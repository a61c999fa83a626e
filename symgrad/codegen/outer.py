"""The outermost loops: what runs in parallel.

In: the entries of the schedule's outermost scope.  Out: statements, pieces of the workspace.
Imports: ``symgrad.ir`` and its neighbours in ``symgrad.codegen``.

Results have the same bits for any number of threads: rows are cut into groups, and elementwise
loops into blocks, whose number depends on the sizes alone; parts are joined in their order.

- blocks: one flat loop without anything that is carried along;
- rows: each row by itself;
- groups: rows that reduce into something that they share, or that need memory of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symgrad.codegen.arrange import Entry, Loop
from symgrad.codegen.context import Array, Flat
from symgrad.codegen.ctree import (
    Assign,
    Binary,
    Declare,
    Element,
    Expression,
    For,
    If,
    Line,
    Statement,
    Text,
    name,
    number,
)
from symgrad.codegen.items import REDUCE, Item
from symgrad.codegen.nests import Nests, reduction_of
from symgrad.codegen.printer import expression_text
from symgrad.codegen.rows import Rows
from symgrad.codegen.spelling import truth
from symgrad.codegen.work import parallel_clause
from symgrad.ir.dim import Axis, Dim

_LEAST_ROWS, _MOST_GROUPS = 4, 32
_MOST_BLOCKS = 64


class OuterLoops:
    """Writes the outermost scope of a kernel."""

    def __init__(self, nests: Nests, rows: Mapping[Loop, Rows]) -> None:
        self._rows = rows
        self.nests = nests
        self.context = nests.context
        self.evaluator = nests.evaluator

    def write(self, entries: Sequence[Entry]) -> list[Statement]:
        """The statements of the kernel's body."""
        self._allocate(entries)
        return self.nests.inside(
            frozenset(), lambda: self.nests.entries(entries, self._outermost)
        )  # fmt: skip

    # -- memory

    def _allocate(self, entries: Sequence[Entry]) -> None:
        """Arrays for the values that the whole kernel shares."""
        for item, place in self.nests.layout.places.items():
            if place.definition is not None:
                array = self.context.arrays[place.definition.tensor]
                self.nests.arrays[item] = (array, place.definition.indices)
            elif place.shared == 0:
                self.nests.arrays[item] = self._array(item, place.axes, "")

    def _array(
        self, item: Item, axes: tuple[Axis, ...], groups: str
    ) -> tuple[Array, tuple[Dim, ...]]:
        assert item.value is not None
        count = self.context.count(axes)
        wanted = f"{self.nests.name_of(item)}_{'rows' if groups else 'all'}"
        c_name = self.context.workspace(wanted, item.value.dtype, count, groups)
        if groups:
            c_name = self._own_part(c_name, item, count)
        shape = tuple(axis.extent for axis in axes)
        array = Array(c_name, item.value.dtype, shape, constant=False)
        return array, tuple(Dim.of(axis) for axis in axes)

    def _own_part(self, slot: str, item: Item, count: Dim) -> str:
        """A pointer to what belongs to the group."""
        assert item.value is not None
        pointer = self.context.names.fresh(f"{self.nests.name_of(item)}_own")
        offset = Binary("*", name(self._group), self.context.dim(count))
        start = Binary("+", name(slot), offset)
        self.evaluator.add(Declare(f"{item.value.dtype.c} *restrict", pointer, start))
        return pointer

    # -- one outermost loop

    def _outermost(self, loop: Loop) -> None:
        if loop.sequential:
            self.nests.loop(loop)
            return
        rows = self._rows[loop]
        shared = [item for item in loop.items if item.role == REDUCE and not item.outside]
        buffered = [
            item
            for item in loop.items
            if (place := self.nests.layout.places.get(item)) and place.shared > 0
        ]
        if rows.flat:
            self._open_flat(rows)
        if shared or buffered:
            self._groups(rows, shared, buffered)
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
        start, stop, bounds = self._range(rows, "BLOCK")
        body = self._row_loop(rows, name(start), name(stop), simd=True)
        extent = self.context.dim(rows.extent)
        pragma = parallel_clause(rows.loop, self.context)
        self.evaluator.add(
            For(start, number(0), extent, (*bounds, *body), pragma, step="BLOCK")
        )  # fmt: skip

    def _range(self, rows: Rows, step: str) -> tuple[str, str, list[Statement]]:
        variable = self._row_variable(rows)
        start = self.context.names.fresh(f"{variable}0")
        stop = self.context.names.fresh(f"{variable}1")
        end = Binary("+", name(start), name(step))
        return start, stop, [Declare("const int64_t", stop, self._least(end, rows))]

    def _least(self, end: Expression, rows: Rows) -> Expression:
        extent = expression_text(self.context.dim(rows.extent))
        return name(f"MIN({extent}, {expression_text(end)})")

    def _each_row(self, rows: Rows) -> None:
        extent = self.context.dim(rows.extent)
        (loop,) = self._row_loop(rows, number(0), extent, simd=False)
        assert isinstance(loop, For)
        pragma = parallel_clause(rows.loop, self.context)
        self.evaluator.add(For(loop.variable, loop.start, loop.stop, loop.body, pragma))

    def _groups(self, rows: Rows, shared: list[Item], buffered: list[Item]) -> None:
        least, most = ("BLOCK", _MOST_BLOCKS) if rows.leaf else (_LEAST_ROWS, _MOST_GROUPS)
        extent = self.context.dim(rows.extent)
        count = f"row_groups({expression_text(extent)}, {least}, {most})"
        groups, size = self.context.names.fresh("groups"), self.context.names.fresh("rows")
        self.evaluator.add(Declare("const int64_t", groups, name(count)))
        rounded = Binary("-", Binary("+", extent, name(groups)), number(1))
        self.evaluator.add(Declare("const int64_t", size, Binary("/", rounded, name(groups))))
        self._group = self.context.names.fresh("group")
        parts = {item: self._part(item, count) for item in shared}
        body = self.nests.inside(
            frozenset(), lambda: self._one_group(rows, size, parts, buffered, count)
        )
        pragma = parallel_clause(rows.loop, self.context)
        loop = For(self._group, number(0), name(groups), tuple(body), pragma)
        self.evaluator.add(loop)
        for item in shared:
            self._combine(item, parts[item], groups)

    def _part(self, item: Item, count: str) -> str:
        """Memory for what each group accumulates."""
        assert item.value is not None
        wanted = f"{self.nests.name_of(item)}_part"
        return self.context.workspace(
            wanted, item.value.dtype, self.context.count(item.inside), count
        )

    def _one_group(
        self, rows: Rows, size: str, parts: dict[Item, str], buffered: list[Item], count: str
    ) -> None:
        variable = self._row_variable(rows)
        start, stop = (self.context.names.fresh(f"{variable}{end}") for end in (0, 1))
        first = Binary("*", name(self._group), name(size))
        self.evaluator.add(Declare("const int64_t", start, first))
        end = Binary("+", name(start), name(size))
        self.evaluator.add(Declare("const int64_t", stop, self._least(end, rows)))
        for item in buffered:
            axes = self.nests.layout.places[item].axes
            self.nests.arrays[item] = self._array(item, axes, count)
        whole = {item: self.nests.arrays[item] for item in parts if item.inside}
        for item, slot in parts.items():
            if item.inside:
                pointer = self._own_part(slot, item, self.context.count(item.inside))
                array, indices = whole[item]
                own = Array(pointer, array.dtype, array.shape, constant=False)
                self.nests.arrays[item] = own, indices
                self.nests.fill(own, indices, item.inside, reduction_of(item).start)
            else:
                self.nests.start_variable(item)
        for statement in self._row_loop(rows, name(start), name(stop), simd=True):
            self.evaluator.add(statement)
        for item, slot in parts.items():
            if not item.inside:
                self._keep_part(item, slot)
        self.nests.arrays.update(whole)

    def _keep_part(self, item: Item, slot: str) -> None:
        """Store a group's number among the parts."""
        variable = self.nests.variables.pop(item)
        flag = self.nests.flags.pop(item, None)
        if flag is not None:
            self.evaluator.add(If(name(flag), (Assign(name(variable), Text("NAN")),)))
        assert item.value is not None
        target = Element(slot, name(self._group))
        self.evaluator.add(Assign(target, truth(name(variable), item.value.dtype)))

    def _combine(self, item: Item, slot: str, groups: str) -> None:
        reduction = reduction_of(item)
        self.context.used.combines.add(reduction)
        assert item.value is not None
        if item.inside:
            target = self.nests.arrays[item][0].name
            count = expression_text(self.context.dim(self.context.count(item.inside)))
        else:
            variable, count = self.context.names.fresh(self.nests.name_of(item)), "1"
            self.evaluator.add(Line(f"{item.value.dtype.c} {variable};"))
            self.evaluator.scope.known[item.value] = name(variable)
            target = f"&{variable}"
        self.evaluator.add(Line(f"{reduction.combine}({groups}, {count}, {slot}, {target});"))
        self.nests.finish(item)

    # -- the loop over rows

    def _row_variable(self, rows: Rows) -> str:
        if len(rows.axes) == 1 or rows.flat:
            return self.context.variable(rows.axes[0])
        return "row"

    def _row_loop(
        self, rows: Rows, start: Expression, stop: Expression, *, simd: bool
    ) -> list[Statement]:
        """The loop over some of the rows; where there are several axes, each is worked out."""
        variable = self._row_variable(rows)
        together = len(rows.axes) > 1 and not rows.flat
        if together:
            variable = self.context.names.fresh(variable)

        def write() -> None:
            if together:
                self._take_apart(rows.axes, variable)
            self.nests.entries(rows.body, self.nests.loop)

        body = self.nests.inside(frozenset(rows.axes), write)
        pragma = ""
        if rows.leaf and simd and not together:
            pragma = self.nests.simd(Loop(rows.axes[-1], rows.body))
        return [For(variable, start, stop, tuple(body), pragma)]

    def _take_apart(self, axes: Sequence[Axis], variable: str) -> None:
        """Work out single indices from the number of a row."""
        rest: Expression = name(variable)
        for place in range(len(axes) - 1, -1, -1):
            extent = self.context.dim(axes[place].extent)
            value = rest if place == 0 else Binary("%", rest, extent)
            self.evaluator.add(Declare("const int64_t", self.context.variable(axes[place]), value))
            rest = Binary("/", rest, extent)
