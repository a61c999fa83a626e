"""Rows in groups: what they share is accumulated by each group and joined in order.

In: the rows of an outermost loop.  Out: statements, pieces of the workspace.

The number of groups depends on the number of rows alone, so that results have the same bits for
any number of threads.  Where matrices are multiplied, a group goes through its rows in blocks: as
many rows as keep in cache what the products leave for the loops after them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from symgrad.codegen.emit.accumulators import reduction_of
from symgrad.codegen.emit.context import Array, EmitContext
from symgrad.codegen.emit.ctree import (
    SUM,
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
    expression_text,
    least,
    name,
    number,
    within,
)
from symgrad.codegen.emit.gemm import multiply
from symgrad.codegen.emit.nests import Nests
from symgrad.codegen.emit.spelling import truth
from symgrad.codegen.program.equations import scalar_cost
from symgrad.codegen.program.patterns import Contraction
from symgrad.codegen.schedule.interchange import SHORT_ROW, TILE, Interchanged
from symgrad.codegen.schedule.items import PRODUCT, Item
from symgrad.codegen.schedule.loops import Loop
from symgrad.codegen.schedule.owned import MOST_SUMS
from symgrad.codegen.schedule.rows import Rows, evaluated
from symgrad.codegen.schedule.storage import Place
from symgrad.errors import CodegenError
from symgrad.ir.dim import Axis, Dim, product
from symgrad.ir.dtype import DType

BLOCK = 4096  # elements of a flat loop: vectors end at the same places for any number of threads
SUM_ROWS = 256  # rows whose sums are added to doubles together
_LEAST_ROWS, _MOST_GROUPS = 4, 32
_MOST_BLOCKS = 64
_LEAST_PRODUCT_ROWS = 32
_MULTIPLICATION = 0.01  # ns, of one in a product of matrices

RowLoop = Callable[..., list[Statement]]


class Groups:
    """Writes one outermost loop as a loop over groups of its rows.

    ``shared``: what all rows reduce into; ``buffered``: values that need memory in each group;
    ``summed``: arrays that sums of some rows at a time are added to.
    """

    sums_rows = True

    def __init__(
        self, nests: Nests, rows: Rows, shared: list[Item], buffered: list[Item], row_loop: RowLoop
    ) -> None:
        self.nests = nests
        self.context = nests.context
        self.scalars = nests.scalars
        self.rows = rows
        self.shared = shared
        self.buffered = buffered
        self.row_loop = row_loop
        self.declared: dict[Item, str] = {}
        self.summed: dict[Item, Array] = {}
        fresh = self.scalars.fresh
        self.groups, self.size, self.group = fresh("groups"), fresh("rows"), fresh("group")
        extent = self.context.dim(rows.extent)
        self.products = [item for item in rows.loop.items if item.role == PRODUCT]
        self.shared_out = bool(self.products) and not self._heavy()
        if self.shared_out:
            work = expression_text(self.context.dim(self._work()))
            most = MOST_SUMS if any(item.reduced for item in self.products) else _MOST_GROUPS
            self.count = f"product_groups({expression_text(extent)}, {work}, {most})"
        else:
            fewest, most = self._limits()
            self.count = f"row_groups({expression_text(extent)}, {fewest}, {most})"
        self.block = ""
        self.block_count = ""

    def _limits(self) -> tuple[object, int]:
        """The fewest rows of a group, and the most groups."""
        if self.rows.loop.blocked:
            return 1, _MOST_GROUPS
        return ("BLOCK", _MOST_BLOCKS) if self.rows.leaf else (_LEAST_ROWS, _MOST_GROUPS)

    def _work(self) -> Dim:
        """What a row takes, in multiplications of products."""
        total = Dim.of(0)
        for item in self.rows.loop.items:
            count = _size(item, without=self.rows.loop.axis)
            price = 1 if item.role == PRODUCT else round(_cost(item) / _MULTIPLICATION)
            total = total + count * price
        return total

    def _packed(self) -> Dim:
        """How many numbers the products of a block read that are not its own."""
        sizes = [_size(item, without=self.rows.loop.axis) for item in self.products]
        return sum(sizes, Dim.of(0)) if self.shared_out else Dim.of(0)

    def _heavy(self) -> bool:
        """Is each row a product of matrices by itself?"""
        axis = self.rows.loop.axis
        return any(axis in item.pattern(Contraction).batch for item in self.products)

    def write(self) -> None:
        """Write the loop, and what joins the parts after it."""
        extent = self.context.dim(self.rows.extent)
        add = self.scalars.add
        add(Declare("const int64_t", self.groups, name(self.count)))
        rounded = Binary("-", Binary("+", extent, name(self.groups)), number(1))
        add(Declare("const int64_t", self.size, Binary("/", rounded, name(self.groups))))
        if self._has_blocks():
            self.block = self.scalars.fresh("block")
            fewest = _LEAST_PRODUCT_ROWS if self.shared_out else 1
            left, packed = (
                expression_text(self.context.dim(one)) for one in (self._reals(), self._packed())
            )
            self.block_count = f"block_rows({left}, {packed}, {fewest})"
            add(Declare("const int64_t", self.block, name(self.block_count)))
        parts = {item: self._part(item) for item in self.shared}
        body = self.nests.inside(frozenset(), lambda: self._one_group(parts))
        several = f"#pragma omp parallel for schedule(static) if(parallel: {self.groups} > 1)"
        pragma = several if self.shared_out else parallel_clause(self.rows.loop, self.context)
        add(For(self.group, number(0), name(self.groups), tuple(body), pragma))
        for item in self.shared:
            self._combine(item, parts[item])

    # -- memory

    def _array_axes(self, item: Item) -> tuple[Axis, ...]:
        """The axes of what an item accumulates."""
        return item.target.axes if item.role == PRODUCT else item.inside

    def _part(self, item: Item) -> str:
        """Memory for what each group accumulates."""
        count = self.context.count(self._array_axes(item))
        wanted = f"{self.nests.name_of(item)}_part"
        return self.context.workspace(wanted, reduction_of(item).total, count, self.count)

    def _own(
        self, slot: str, item: Item, count: Expression, dtype: DType, suffix: str = "own"
    ) -> str:  # fmt: skip
        """A pointer to what belongs to the group."""
        start = Binary("+", name(slot), Binary("*", name(self.group), count))
        wanted = f"{self.nests.name_of(item)}_{suffix}"
        return self.scalars.variable(f"{dtype.c} *restrict", wanted, start)

    def _buffer(self, item: Item) -> None:
        """Memory of the group for a value: for one row, or for a block of rows."""
        axes = self.nests.storage.places[item].axes
        local = self.rows.loop.blocked and axes[0] == self.rows.loop.axis
        rest = self.context.count(axes[1:] if local else axes)
        groups = f"{self.count} * {self.block_count}" if local else self.count
        wanted = f"{self.nests.name_of(item)}_{'block' if local else 'row'}s"
        dtype = item.result.dtype
        slot = self.context.workspace(wanted, dtype, rest, groups)
        count = self.context.dim(rest)
        whole = Binary("*", name(self.block), count) if local else count
        pointer = self._own(slot, item, whole, dtype)
        if item.role == PRODUCT:
            shape, indices = item.target.shape, item.target.indices
        else:
            shape, indices = tuple(a.extent for a in axes), tuple(map(Dim.of, axes))
        self.nests.arrays[item] = Array(pointer, dtype, shape, constant=False), indices

    def _share_all(self) -> None:
        """Let values live in the memory of those that take their places."""
        for item in reversed(self.buffered):
            alias = self.nests.storage.places[item].alias
            if alias is not None:
                self._share(item, alias)

    def _share(self, item: Item, other: Item) -> None:
        array, indices = self.nests.arrays[other]
        held = {axis for index in indices for axis in index.axes}
        if not held.issuperset(self.nests.storage.places[item].axes):
            raise CodegenError(f"{array.name} is too small for the values of {item!r} as well")
        if item.role == PRODUCT:
            start = sum(array.origin, Dim.of(0))
            indices = item.target.indices
            origin = self._origin(indices, start) if array.origin else ()
            array = replace(array, shape=item.target.shape, origin=origin)
        self.nests.arrays[item] = (array, indices)

    def _origin(self, indices: tuple[Dim, ...], start: Dim) -> tuple[Dim, ...]:
        """The first indices of an array that begins at the row ``start``."""
        axis = self.rows.loop.axis
        return tuple(start if index.atom == axis else Dim.of(0) for index in indices)

    # -- one group

    def _one_group(self, parts: dict[Item, str]) -> None:
        variable = self.context.variable(self.rows.axes[0]) if self.rows.single else "row"
        ends = ("first", "last") if self.block else (f"{variable}0", f"{variable}1")
        start, stop = (self.scalars.fresh(end) for end in ends)
        extent = self.context.dim(self.rows.extent)
        first = Binary("*", name(self.group), name(self.size))
        self.scalars.add(Declare("const int64_t", start, first))
        end = Binary("+", name(start), name(self.size))
        self.scalars.add(Declare("const int64_t", stop, least(extent, end)))
        for item in self.buffered:
            if self.nests.storage.places[item].alias is None:
                self._buffer(item)
        self._share_all()
        whole = {i: self.nests.arrays[i] for i in parts if self._array_axes(i)}
        for item, slot in parts.items():
            if item in whole:
                self._open_part(item, slot)
            else:
                self._start_part(item)
        if self.rows.loop.blocked:
            self._blocks(start, stop)
        else:
            self._rows(start, stop)
        for item, slot in parts.items():
            if item not in whole:
                self._keep_part(item, slot)
        self.nests.arrays.update(whole)

    def _rows(self, start: str, stop: str) -> None:
        """All rows of the group; what they sum up into arrays, some rows at a time."""

        def run(first: str, last: str) -> None:
            for statement in self.row_loop(self.rows, name(first), name(last), simd=True):
                self.scalars.add(self._unless_empty(statement))

        if not self.summed:
            run(start, stop)
            return
        low, high = (self.scalars.fresh(f"{end}_row") for end in ("first", "last"))

        def write() -> None:
            end = Binary("+", name(low), name("SUM_ROWS"))
            self.scalars.add(Declare("const int64_t", high, least(name(stop), end)))
            self._summed(lambda: run(low, high))

        body = self.nests.inside(frozenset(), write)
        self.scalars.add(For(low, name(start), name(stop), tuple(body), step="SUM_ROWS"))

    def _unless_empty(self, loop: Statement) -> Statement:
        """A loop over rows that only adds up what lies in them: not gone through for nothing."""
        items = self.rows.loop.items
        if self.rows.flat or any(self.rows.loop.axis not in item.reduced for item in items):
            return loop
        inner = frozenset.intersection(*(frozenset(item.axes) for item in items))
        sizes = {axis.extent for axis in inner - {*self.rows.axes} if axis.extent.constant is None}
        tests = [
            f"{within(self.context.dim(size), SUM)} != 0"
            for size in sorted(sizes, key=lambda size: size.key)
        ]
        return If(Text(" && ".join(tests)), (loop,)) if tests else loop

    def _summed(self, write: Callable[[], None]) -> None:
        """Write what some rows do; then add what they sum up to the arrays of the group."""
        for item in self.summed:
            array, indices = self.nests.arrays[item]
            self.nests.fill(array, indices, self._array_axes(item), reduction_of(item).start)
        write()
        for item, own in self.summed.items():
            count = self.context.dim(self.context.count(self._array_axes(item)))
            variable = self.scalars.fresh("u")
            part = Element(self.nests.arrays[item][0].name, name(variable))
            added = Assign(Element(own.name, name(variable)), part, "+=")
            self.scalars.add(For(variable, number(0), count, (added,), "#pragma omp simd"))

    def _open_part(self, item: Item, slot: str) -> None:
        """Begin to accumulate an array."""
        axes = self._array_axes(item)
        reduction, count = reduction_of(item), self.context.count(axes)
        pointer = self._own(slot, item, self.context.dim(count), reduction.total)
        array, indices = self.nests.arrays[item]
        own = Array(pointer, reduction.total, array.shape, constant=False)
        self.nests.arrays[item] = own, indices
        self.nests.fill(own, indices, axes, reduction.total_start)
        if reduction.in_blocks and self.sums_rows:
            wanted = f"{self.nests.name_of(item)}_rows_part"
            slot = self.context.workspace(wanted, array.dtype, count, self.count)
            pointer = self._own(slot, item, self.context.dim(count), array.dtype, "rows")
            self.summed[item] = own
            self.nests.arrays[item] = replace(own, name=pointer, dtype=array.dtype), indices

    def _start_part(self, item: Item) -> None:
        """Begin to accumulate a number."""
        self.nests.start_variable(item)

    def _keep_part(self, item: Item, slot: str) -> None:
        """Store a group's number among the parts."""
        totals, variables = self.nests.sums.totals, self.nests.variables
        variable = (totals if item in totals else variables).pop(item)
        flag = self.nests.flags.pop(item, None)
        if flag is not None:
            self.scalars.add(If(name(flag), (Assign(name(variable), Text("NAN")),)))
        target = Element(slot, name(self.group))
        self.scalars.add(Assign(target, truth(name(variable), item.result.dtype)))

    def _combine(self, item: Item, slot: str) -> None:
        """Join the parts of all groups, in order."""
        reduction = reduction_of(item)
        self.context.combines.add(reduction)
        axes = self._array_axes(item)
        count = expression_text(self.context.dim(self.context.count(axes)))
        if axes:
            target = self.nests.arrays[item][0].name
        else:
            target = f"&{self.declared.get(item) or self.nests.declare(item)}"
        self.scalars.add(Line(f"{reduction.combine}({self.groups}, {count}, {slot}, {target});"))
        self.nests.finish(item)

    # -- blocks of rows

    def _has_blocks(self) -> bool:
        """Does anything follow the products that should find them in cache, or their block?

        Where rows are cut evenly, the last groups may have none, not even for a product.
        """
        loop = self.rows.loop
        follows = bool(self.buffered) or any(isinstance(entry, Loop) for entry in loop.body)
        return loop.blocked and (follows or not self.shared_out)

    def _reals(self) -> Dim:
        """How many numbers a row of a block leaves behind."""
        total = Dim.of(0)
        for item in self.rows.loop.items:
            place = self.nests.storage.places.get(item)
            made = not item.reduced and place is not None and self.rows.loop.axis in place.axes
            if place is not None and (made or item in self.buffered):
                total = total + product(
                    [axis.extent for axis in place.axes if axis != self.rows.loop.axis]
                )
        return total

    def _blocks(self, start: str, stop: str) -> None:
        if not self.block:
            self._one_block(start, stop)
            return
        variable = self.context.variable(self.rows.loop.axis)
        low, high = (self.scalars.fresh(f"{variable}{end}") for end in (0, 1))

        def write() -> None:
            end = Binary("+", name(low), name(self.block))
            self.scalars.add(Declare("const int64_t", high, least(name(stop), end)))
            self._summed(lambda: self._one_block(low, high))

        body = self.nests.inside(frozenset(), write)
        self.scalars.add(For(low, name(start), name(stop), tuple(body), step=self.block))

    def _one_block(self, low: str, high: str) -> None:
        axis = self.rows.loop.axis
        ranges = {axis: (self.context.symbol(low), self.context.symbol(high))}
        for item in self.buffered:
            if self.nests.storage.places[item].alias is not None:
                continue
            array, indices = self.nests.arrays[item]
            origin = self._origin(indices, ranges[axis][0])
            self.nests.arrays[item] = replace(array, origin=origin), indices
        self._share_all()
        for item in self.buffered:
            if item.role == PRODUCT:
                self.context.arrays[item.target.tensor] = self.nests.arrays[item][0]
        for entry in self.rows.body:
            if isinstance(entry, Item):
                multiply(self.nests, entry, ranges)
            else:
                part = Rows((axis,), entry.body, entry)
                for statement in self.row_loop(part, name(low), name(high), simd=True):
                    self.scalars.add(statement)


# -- short rows: the rows innermost


class Tiles(Groups):
    """Writes an interchanged loop, tile by tile, in groups where the rows share something."""

    sums_rows = False

    def __init__(self, nests: Nests, interchanged: Interchanged) -> None:
        self.interchanged = interchanged
        rows = Rows((interchanged.loop.axis,), interchanged.loop.body, interchanged.loop)
        super().__init__(nests, rows, interchanged.shared, [], _no_rows)

    def _limits(self) -> tuple[object, int]:
        return TILE, 32

    def _has_blocks(self) -> bool:
        return False

    def _array_axes(self, item: Item) -> tuple[Axis, ...]:
        return item.outside

    def _start_part(self, item: Item) -> None:
        """The variable of the group, which those of tiles are taken into."""
        reduction = reduction_of(item)
        kind = reduction.total.c if reduction.in_blocks else reduction.variable_type
        self.nests.variables[item] = self.scalars.variable(
            kind, self.nests.name_of(item), reduction.total_start
        )

    def write_tiles(self) -> None:
        """Write the loop without groups: no row shares anything with another."""
        variable = self.context.variable(self.rows.loop.axis)
        low = self.scalars.fresh(f"{variable}0")
        extent = self.context.dim(self.rows.extent)
        body = self.nests.inside(frozenset(), lambda: self._tile(low, extent))
        pragma = parallel_clause(self.rows.loop, self.context)
        self.scalars.add(For(low, number(0), extent, tuple(body), pragma, step=str(TILE)))

    def _blocks(self, start: str, stop: str) -> None:
        """All tiles of a group."""
        whole = dict(self.nests.variables)
        for item in self.shared:
            array = self.nests.arrays.get(item) if item.outside else None
            self.nests.joins[item] = (
                self.context.element(*array) if array else name(self.nests.variables.pop(item))
            )
        variable = self.context.variable(self.rows.loop.axis)
        low = self.scalars.fresh(f"{variable}2")
        body = self.nests.inside(frozenset(), lambda: self._tile(low, name(stop)))
        self.scalars.add(For(low, name(start), name(stop), tuple(body), step=str(TILE)))
        for item in self.shared:
            for inner in (self.nests.joins, self.nests.variables, self.nests.flags):
                inner.pop(item, None)
        self.nests.variables.update(whole)

    def _tile(self, low: str, extent: Expression) -> None:
        axis = self.rows.loop.axis
        high = self.scalars.fresh(f"{self.context.variable(axis)}3")
        end = Binary("+", name(low), number(TILE))
        self.scalars.add(Declare("const int64_t", high, least(extent, end)))
        self.nests.ranges[axis] = (self.context.symbol(low), self.context.symbol(high))
        places = self.nests.storage.places
        for item, place in places.items():
            if place.shared and place.alias is None and place.definition is None:
                self.nests.arrays[item] = self._local(item, place)
        for item in reversed(list(places)):
            alias = places[item].alias
            if alias is not None:
                self.nests.arrays[item] = self.nests.arrays[alias]
        self.nests.entries(self.interchanged.loop.body, self.nests.loop)
        del self.nests.ranges[axis]

    def _local(self, item: Item, place: Place) -> tuple[Array, tuple[Dim, ...]]:
        """A small array for a value of each row of the tile."""
        axis, lane = self.rows.loop.axis, self.interchanged.lane
        count = TILE * (SHORT_ROW if lane in place.axes else 1)
        c_name = self.scalars.fresh(self.nests.name_of(item))
        self.scalars.add(Line(f"{item.result.dtype.c} {c_name}[{count}];"))
        shape = tuple(Dim.of(TILE) if a == axis else a.extent for a in place.axes)
        start = self.nests.ranges[axis][0]
        origin = tuple(start if a == axis else Dim.of(0) for a in place.axes)
        array = Array(c_name, item.result.dtype, shape, constant=False, origin=origin)
        return array, tuple(map(Dim.of, place.axes))


def _no_rows(*_: object, **__: object) -> list[Statement]:
    raise AssertionError("an interchanged loop has no rows")


# -- how much work a loop is, and whether to share it out

_BREAK_EVEN = 3000.0  # ns
_LEAST, _MOST = 256, 65536


def parallel_clause(loop: Loop, context: EmitContext) -> str:
    """The pragma of a loop whose iterations are independent."""
    size = max(
        (_size(item) for item in loop.items), key=lambda dim: len(dim.key), default=Dim.of(1)
    )
    spent = sum(_cost(item) for item in loop.items if _size(item) == size)
    threshold = _LEAST
    while threshold < _MOST and threshold * spent < _BREAK_EVEN:
        threshold *= 2
    if size.constant is not None and size.constant <= threshold:
        return ""
    work = within(context.dim(size), SUM)
    return f"#pragma omp parallel for schedule(static) if(parallel: {work} > {threshold})"


def _size(item: Item, without: Axis | None = None) -> Dim:
    axes = item.pattern(Contraction).axes if item.role == PRODUCT else item.axes
    return product([axis.extent for axis in axes if axis != without])


def _cost(item: Item) -> float:
    """Ns for one element of an item."""
    found = evaluated(item.body) if item.body is not None else []
    return sum(map(scalar_cost, found), 0.05)
