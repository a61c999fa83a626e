"""Loops in C: the tree of the schedule, written out.

In: entries of the schedule, the storage, the context.  Out: statements.

The outermost loops are written by ``symgrad.codegen.emit.outer``: they run in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from symgrad.abi import OUT_OF_RANGE, STATUSES
from symgrad.codegen.emit.accumulators import Bounds, Scans, Sums, reduction_of
from symgrad.codegen.emit.context import Array, EmitContext
from symgrad.codegen.emit.ctree import (
    SUM,
    Assign,
    Binary,
    Block,
    Declare,
    Element,
    Expression,
    For,
    If,
    Line,
    Statement,
    Text,
    least,
    name,
    number,
    within,
)
from symgrad.codegen.emit.reductions import DEFAULT_NAMES, Reduction
from symgrad.codegen.emit.scalars import ScalarWriter
from symgrad.codegen.emit.spelling import truth
from symgrad.codegen.program.definitions import Definition, KernelProgram
from symgrad.codegen.program.patterns import Scan, Scatter
from symgrad.codegen.program.rewrite import conjuncts
from symgrad.codegen.schedule.items import (
    CHECK,
    KEEP,
    PRODUCT,
    REDUCE,
    SCAN,
    SCATTER,
    STORE,
    Item,
    batches,
    roots_of,
)
from symgrad.codegen.schedule.loops import Entry, Loop
from symgrad.codegen.schedule.scheduler import bodies
from symgrad.codegen.schedule.storage import Storage
from symgrad.codegen.schedule.strips import (
    Piece,
    Strip,
    cut,
    find_strip,
    is_even,
    is_plain_sum,
    parted,
)
from symgrad.ir.dim import Atom, Axis, Dim
from symgrad.ir.expr import Access, Call, Expr, Literal, Reduce, postorder, rebuild

IN_REGISTERS = 64  # numbers that a loop accumulates in registers


class Nests:
    """Writes the loops of one kernel.

    ``arrays``: where the values that are arrays lie; ``variables`` and ``flags``: what reductions
    accumulate in; ``ranges``: of axes of which only a part is run through; ``joins``: what a
    reduction of such a part is taken into; ``piece``: of a strip, that is being written;
    ``assumed``: conditions that hold where it is written.
    """

    def __init__(self, context: EmitContext, program: KernelProgram, storage: Storage) -> None:
        self.context = context
        self.program = program
        self.storage = storage
        self.hints = _hints(program)
        self.scalars = ScalarWriter(context, program.names, self.hints, self._stored)
        self.arrays: dict[Item, tuple[Array, tuple[Dim, ...]]] = {}
        self.variables: dict[Item, str] = {}
        self.flags: dict[Item, str] = {}
        self.ranges: dict[Axis, tuple[Dim, Dim]] = {}
        self.sums = Sums(self.scalars, self.ranges)
        self.running = Scans(context, self.scalars)
        self.joins: dict[Item, Expression] = {}
        self.piece: Piece | None = None
        self.assumed: frozenset[Expr] = frozenset()
        self.items = {item.value: item for item in storage.paths if item.value is not None}
        self._complete: set[Item] = set()
        self._whole: dict[Item, tuple[Array, tuple[Dim, ...]]] = {}

    def _stored(self, expr: Expr) -> Expression | None:
        item = self.items.get(expr)
        if item is None or item not in self._complete or item not in self.arrays:
            return None
        return self.scalars.element(*self.arrays[item])

    def complete(self, item: Item) -> None:
        """From here on the value of an item can be read from its array."""
        self._complete.add(item)

    def place_of(self, expr: Expr) -> tuple[Array, tuple[Dim, ...]] | None:
        """The array that holds a value, and its indices there."""
        item = self.items.get(expr)
        return self.arrays.get(item) if item is not None else None

    # -- entries

    def entries(self, entries: Sequence[Entry], loop: Callable[[Loop], None]) -> None:
        """Write entries into the innermost scope; ``loop`` writes those that are loops."""
        waiting: list[Item] = []
        for entry in entries:
            if isinstance(entry, Item):
                waiting.append(entry)
            elif not self.storage.dropped.issuperset(entry.items):
                self._statements(waiting)
                waiting = []
                loop(entry)
        self._statements(waiting)

    def loop(self, loop: Loop) -> None:
        """Write a loop that runs in sequence, with what starts before and ends after it."""
        if self.piece is not None and self.piece.conditions.get(loop):
            self._under(self.piece.conditions[loop], loop)
            return
        parts = None if self.piece is not None else self._parts(loop)
        if parts is not None:
            self._side_by_side(parts)
            return
        strip = None if self.piece is not None else find_strip(loop, self.storage)
        if strip is None or self._is_short(strip) or not is_even(strip, self._body(strip)):
            self._as_it_is(loop)
        elif loop.axis in self.ranges:
            self._tiles(strip)
        else:
            self._strips(strip)

    def _body(self, strip: Strip) -> Expr:
        assert strip.item.body is not None
        return self._decided(strip.item.body)

    def _under(self, conditions: Sequence[Expr], loop: Loop) -> None:
        """A loop where conditions hold, which do not vary in it."""
        (test,) = self.scalars.write([self.program.pool.conjunction(conditions)])
        body = self.inside(frozenset(), lambda: self._as_it_is(loop))
        self.scalars.add(If(test, tuple(body)))

    def _as_it_is(self, loop: Loop) -> None:
        started = self.start(loop)
        start, stop = (self.context.dim(end) for end in self.range_of(loop.axis))
        variable = self.context.variable(loop.axis)
        short = self.sums.in_one_block([loop.axis])
        self.scalars.add(self.run(
            loop, (variable, start, stop), frozenset((loop.axis,)),
            lambda: self.entries(loop.body, self.loop), short=short,
        ))  # fmt: skip
        for item in started:
            self.finish(item)

    def run(
        self, loop: Loop, bounds: Bounds, axes: frozenset[Axis], write: Callable[[], None], *,
        short: bool, simd: bool = True,
    ) -> Statement:  # fmt: skip
        """A loop that fixes ``axes``; ``short``: it is no longer than a block of a sum."""

        def whole(bounds: Bounds) -> For:
            begins = self.range_of(loop.axis)[0] != 0
            if self.piece is not None and begins and simd and self.simd(loop):
                return self._lanes(loop, write)
            body = tuple(self.inside(axes, write))
            pragma = self.simd(loop) if simd else ""
            if loop.unrolled:
                pragma = f"#pragma GCC unroll {loop.unrolled}"
            return For(*bounds, body, pragma, downwards=loop.downwards)

        summed = [item for item in loop.body if isinstance(item, Item) and item in self.sums.totals]
        if not (summed and simd and self.simd(loop)):
            return whole(bounds)
        blocks = {item: self.name_of(item) for item in summed}
        return self.sums.in_blocks(blocks, bounds, whole, self.variables, short=short)

    # -- strips of places, tiles of lanes

    def _is_short(self, strip: Strip) -> bool:
        start, stop = self.range_of(strip.lane)
        length = (stop - start).constant
        return length is not None and length < strip.width

    def pieces_of(self, axis: Axis, wanted: str, count: int) -> Dim:
        """How many pieces of ``count`` places an axis has, in a variable where it is not known."""
        start, stop = self.range_of(axis)
        length = stop - start
        if length.constant is not None:
            return length // count
        end = self.context.dim(stop)
        whole = end if start == 0 else Binary("-", end, self.context.dim(start))
        value = Binary("/", whole, number(count))
        return self.context.symbol(self.scalars.variable("const int64_t", wanted, value))

    def _strips(self, strip: Strip) -> None:
        """A loop by strips of places; and those that are left, as they are."""
        axis, count = strip.loop.axis, strip.count
        strips = self.pieces_of(axis, "strips", count)
        one = self.scalars.fresh("strip")

        def write() -> None:
            wanted, first = f"{self.context.variable(axis)}0", Binary("*", name(one), number(count))
            begin = self.context.symbol(self.scalars.variable("const int64_t", wanted, first))
            self.ranges[axis] = begin, begin + count
            self._tiles(strip)

        body = tuple(self.inside(frozenset(), write))
        self.scalars.add(For(one, number(0), self.context.dim(strips), body))
        if strips * count != axis.extent:
            self.ranges[axis] = strips * count, axis.extent
            self._as_it_is(strip.loop)
        del self.ranges[axis]

    def _tiles(self, strip: Strip) -> None:
        """A strip, by tiles of lanes; as it is where there are too few lanes for a tile."""
        start, stop = self.range_of(strip.lane)
        length = stop - start
        whole = self.inside(frozenset(), lambda: self._each_tile(strip))
        if length.constant is not None:
            self.scalars.add(Block(tuple(whole)))
        else:
            few = Binary("<", self.context.dim(length), number(strip.width))
            plain = self.inside(frozenset(), lambda: self._as_it_is(strip.loop))
            self.scalars.add(If(few, tuple(plain), tuple(whole)))
        self.complete(strip.item)

    def _each_tile(self, strip: Strip) -> None:
        """The tiles.  The last of them ends with the lanes, and begins where some are done."""
        start, stop = map(self.context.dim, self.range_of(strip.lane))
        variable = self.context.variable(strip.lane)
        low, high, begin = (self.scalars.fresh(f"{variable}{end}") for end in (0, 1, 2))

        def write() -> None:
            end = least(stop, Binary("+", name(low), number(strip.width)))
            self.scalars.add(Declare("const int64_t", high, end))
            first = Binary("-", name(high), number(strip.width))
            self.scalars.add(Declare("const int64_t", begin, first))
            done = self.context.symbol(low), self.context.symbol(high)
            self._piece(strip, self.context.symbol(begin), done)

        body = tuple(self.inside(frozenset(), write))
        self.scalars.add(For(low, start, stop, body, step=str(strip.width)))

    def _piece(self, strip: Strip, begin: Dim, done: tuple[Dim, Dim]) -> None:
        """One tile: its lanes from ``begin`` on, of which those that are not there are stored."""
        item, lane, count = strip.item, strip.lane, strip.count * strip.width
        axis, dtype = strip.loop.axis, item.result.dtype
        c_name, place = self.scalars.fresh(f"{self.name_of(item)}_sums"), self.range_of(axis)[0]
        self.scalars.add(Line(f"{dtype.c} {c_name}[{count}];"))
        one = self.scalars.fresh("u")
        zero = Assign(Element(c_name, name(one)), reduction_of(item).start)
        self.scalars.add(For(one, number(0), number(count), (zero,)))
        shape = Dim.of(strip.count), Dim.of(strip.width)
        sums = Array(c_name, dtype, shape, constant=False, origin=(place, begin))
        indices = Dim.of(axis), Dim.of(lane)
        self.piece, kept = cut(strip, self._body(strip), self.program.pool), self.ranges.get(lane)
        self.arrays.update(dict.fromkeys(self.piece.items, (sums, indices)))
        self.ranges[lane] = begin, begin + strip.width
        self._each(self.piece)
        few = self.context.element(sums, indices)
        self.fill(*self.arrays[item], (axis, lane), few, {lane: done})
        del self.ranges[lane]
        if kept is not None:
            self.ranges[lane] = kept

    def _each(self, piece: Piece) -> None:
        """The loops of a piece, which is over then."""
        for one in piece.loops:
            self.loop(one)
        self.piece = None

    def _parts(self, loop: Loop) -> Piece | None:
        """A loop that adds to numbers in registers, parted by its conditions where it has some."""
        (item, *others) = loop.body
        if others or not isinstance(item, Item) or item.inside != (loop.axis,):
            return None
        if not is_plain_sum(item, self.storage) or not self.is_few(item):
            return None
        assert item.body is not None
        return parted(loop, item, self._decided(item.body), self.program.pool)

    def _side_by_side(self, parts: Piece) -> None:
        (item,) = {self.items[one.result] for one in parts.items}
        self.arrays.update(dict.fromkeys(parts.items, self.arrays[item]))
        self.piece = parts
        self._each(parts)

    def _lanes(self, loop: Loop, write: Callable[[], None]) -> For:
        """The lanes of a tile: so many iterations that the compiler sees how many."""
        one, (start, stop) = self.scalars.fresh("u"), self.range_of(loop.axis)

        def whole() -> None:
            place = Binary("+", self.context.dim(start), name(one))
            self.scalars.add(Declare("const int64_t", self.context.variable(loop.axis), place))
            write()

        body = tuple(self.inside(frozenset((loop.axis,)), whole))
        return For(one, number(0), self.context.dim(stop - start), body, self.simd(loop))

    def range_of(self, axis: Axis) -> tuple[Dim, Dim]:
        """The values that an axis runs through: all, or those of a tile."""
        return self.ranges.get(axis, (Dim.of(0), axis.extent))

    def inside(self, axes: frozenset[Axis], write: Callable[[], None]) -> list[Statement]:
        """What ``write`` writes into a new scope in which ``axes`` are fixed."""
        self.scalars.open(axes)
        write()
        return self.scalars.close()

    def simd(self, loop: Loop) -> str:
        """The pragma of a loop whose iterations may be done side by side."""
        items = [entry for entry in loop.body if isinstance(entry, Item)]
        if len(items) < len(loop.body) or any(self._in_sequence(item, loop) for item in items):
            return ""
        clauses: dict[str, list[str]] = {}
        for item in items:
            if item in self.variables:
                clauses.setdefault(reduction_of(item).clause, []).append(self.variables[item])
            if item in self.flags:
                clauses.setdefault("|", []).append(self.flags[item])
        text = "".join(f" reduction({o}:{','.join(names)})" for o, names in clauses.items())
        return f"#pragma omp simd{text}"

    def _in_sequence(self, item: Item, loop: Loop) -> bool:
        if item.role == SCATTER:
            return loop.axis in item.pattern(Scatter).axes
        return item.finds_place or (item.role == SCAN and item.pattern(Scan).axis == loop.axis)

    # -- what starts before a loop and ends after it

    def start(self, loop: Loop) -> list[Item]:
        """Begin the reductions that run over this loop first."""
        if self.piece is not None:  # what it adds to has been started
            return []
        started = [item for item in loop.items if self._starts(item, loop)]
        for item in started:
            if item.role == SCATTER:
                self._clear(item)
            elif item.role == SCAN:
                self.running.start(item)
            elif item.finds_place:
                self._start_place(item)
            elif item.inside:
                self._open_few(item)
                array, indices = self.arrays[item]
                self.fill(array, indices, item.inside, reduction_of(item).start)
            else:
                self.start_variable(item)
        return started

    def _starts(self, item: Item, loop: Loop) -> bool:
        path = [one for one in self.storage.paths[item] if not one.blocked]
        if item.role == SCAN:
            return path[-1] is loop and item.pattern(Scan).axis == loop.axis
        return bool(item.reduced) and path[len(item.outside)] is loop

    def is_few(self, item: Item) -> bool:
        """Does a reduction accumulate so few numbers that they can stay in registers?"""
        count = self.context.count(item.inside).constant
        return (
            item.role == REDUCE
            and bool(item.inside)
            and (count or IN_REGISTERS + 1) <= IN_REGISTERS
        )

    def is_local(self, item: Item) -> bool:
        """Are these numbers read in the scope alone in which they are accumulated?"""
        places = self.storage.places
        place = places[item]
        own = place.definition is None and place.shared > 0 and place.axes == item.inside
        free = place.alias is None and all(other.alias is not item for other in places.values())
        return own and free and self.is_few(item)

    def _open_few(self, item: Item) -> None:
        """Let a reduction accumulate in an array of this scope.

        The compiler cannot tell that nothing else writes to the array that the value is for.
        """
        if not self.is_few(item):
            return
        local = self.is_local(item)
        wanted = self.name_of(item) if local else f"{self.name_of(item)}_sums"
        c_name, count = self.scalars.fresh(wanted), self.context.count(item.inside)
        self.scalars.add(Line(f"{item.result.dtype.c} {c_name}[{count}];"))
        shape = tuple(axis.extent for axis in item.inside)
        if not local:
            self._whole[item] = self.arrays[item]
        own = Array(c_name, item.result.dtype, shape, constant=False)
        self.arrays[item] = own, tuple(map(Dim.of, item.inside))

    def start_variable(self, item: Item) -> None:
        """Declare the variable that a reduction accumulates in."""
        reduction = reduction_of(item)
        if reduction.in_blocks and not self.sums.in_one_block(item.reduced):
            self.sums.start(item, self.name_of(item))
            return
        variable = self.scalars.variable(
            reduction.variable_type, self.name_of(item), reduction.start
        )
        self.variables[item] = variable
        if reduction.keeps_nan:
            self.flags[item] = self.scalars.variable("int", f"{variable}_nan", number(0))

    def name_of(self, item: Item) -> str:
        """What a value is called: as the user calls it, or by what it is."""
        place = self.storage.places.get(item)
        definition = place.definition if place is not None and item.role == REDUCE else None
        if definition is not None and definition.outputs:
            return definition.outputs[0]
        if item.role == PRODUCT:
            return self._product_name(item.target)
        value = item.result
        if isinstance(value, Access):
            return f"{self._array_name(value.tensor)}_copy"
        default = DEFAULT_NAMES[value.kind] if isinstance(value, Reduce) else "kept"
        return self.program.names.get(value) or self.hints.get(value, default)

    def _array_name(self, tensor: str) -> str:
        """The name of an array; of a product's that has no memory yet, the product's."""
        if tensor in self.context.arrays:
            return self.context.arrays[tensor].name
        return self._product_name(next(d for d in self.program.definitions if d.tensor == tensor))

    def _product_name(self, definition: Definition) -> str:
        return self.program.names.get(definition.body, "product")

    def declare(self, item: Item) -> str:
        """Declare the variable of a value that a later block assigns."""
        variable = self.scalars.fresh(self.name_of(item))
        self.scalars.add(Line(f"{item.result.dtype.c} {variable};"))
        self.scalars.scope.known[item.result] = name(variable)
        return variable

    def _start_place(self, item: Item) -> None:
        assert isinstance(item.value, Reduce)
        best = self.scalars.fresh("best")
        place = self.scalars.fresh(self.name_of(item))
        assert item.body is not None
        kind = "max" if item.value.kind == "argmax" else "min"
        start = Reduction(kind, item.body.dtype).start
        self.scalars.add(Declare(item.body.dtype.c, best, start))
        self.scalars.add(Declare("int64_t", place, number(0)))
        self.variables[item], self.flags[item] = place, best

    def _clear(self, item: Item) -> None:
        """Put zeros where a scatter will add."""
        definition = item.target
        axes = tuple(axis for axis in definition.axes if axis not in item.outside)
        zero = Reduction("sum", definition.dtype).start
        self.fill(self.context.arrays[definition.tensor], definition.indices, axes, zero)

    def fill(
        self,
        array: Array,
        indices: tuple[Dim, ...],
        axes: Sequence[Axis],
        value: Expression,
        ranges: Mapping[Axis, tuple[Dim, Dim]] | None = None,
    ) -> None:
        """Set all elements along ``axes`` to ``value``; of some axes only a part."""
        statement: Statement = Assign(self.context.element(array, indices), value)
        for axis in reversed(axes):
            start, stop = (ranges or {}).get(axis) or self.range_of(axis)
            variable = self.context.variable(axis)
            statement = For(variable, self.context.dim(start), self.context.dim(stop), (statement,))
        self.scalars.add(statement)

    def finish(self, item: Item) -> None:
        """End a reduction: put its value where readers find it."""
        if item.role not in (REDUCE, PRODUCT):
            return
        self.complete(item)
        if item in self._whole:
            few = self.context.element(*self.arrays[item])
            self.arrays[item] = self._whole.pop(item)
            self.fill(*self.arrays[item], item.inside, few)
        if item in self.sums.totals:
            self.variables[item] = self.sums.finish(
                item, self.name_of(item), rounded=item not in self.joins
            )
        if item not in self.variables:
            return
        variable = self.variables[item]
        if not item.finds_place and item in self.flags:
            nan = Text("NAN")
            self.scalars.add(If(name(self.flags[item]), (Assign(name(variable), nan),)))
        if item in self.joins:
            self.scalars.add(reduction_of(item).take_stored(self.joins[item], name(variable)))
            return
        self.scalars.scope.known[item.result] = name(variable)
        place = self.storage.places.get(item)
        if place is not None and place.definition is None:
            target = self.scalars.element(*self.arrays[item])
            self.scalars.add(Assign(target, truth(name(variable), item.result.dtype)))

    # -- statements

    def _statements(self, items: Sequence[Item]) -> None:
        """Write items at which all loops are open; what they share is computed once."""
        for todo in batches(item for item in items if item not in self.storage.dropped):
            self._batch(todo)

    def _batch(self, todo: Sequence[Item]) -> None:
        for item in todo:
            if item.role == CHECK:
                self._check(item)
        for item in todo:
            if item in self.storage.overwrites:
                self._load_before(self.storage.overwrites[item])
        roots = [(item, self._decided(root)) for item in todo for root in roots_of(item)]
        found = iter(self.scalars.write([root for _, root in roots]) if roots else ())
        for item in todo:
            values = [next(found) for _ in roots_of(item)]
            self._statement(item, values)

    def _decided(self, root: Expr) -> Expr:
        """An expression without the conditions that are known to hold."""
        pool = self.program.pool

        def rule(expr: Expr, new: Mapping[Expr, Expr]) -> Expr | None:
            if not isinstance(expr, Call) or expr.function != "where":
                return None
            parts = conjuncts(expr.operands[0])
            rest = [one for one in parts if one not in self.assumed]
            chosen, other = (new[one] for one in expr.operands[1:])
            if len(rest) == len(parts):
                return None
            return pool.select(pool.conjunction(rest), chosen, other)

        return rebuild(pool, [root], rule)[root] if self.assumed else root

    def _load_before(self, item: Item) -> None:
        """Load a value that lives in an output which is about to be written."""
        value = self.scalars.element(*self.arrays[item])
        kind = f"const {item.result.dtype.c}"
        variable = self.scalars.variable(kind, self.name_of(item), value)
        self.scalars.scope.known[item.result] = name(variable)

    def _statement(self, item: Item, values: list[Expression]) -> None:
        if item.role == STORE:
            target = self._target(item.target, item.output)
            self.scalars.add(Assign(target, truth(values[0], item.target.dtype)))
        elif item.role == REDUCE:
            self._take(item, values[0])
        elif item.role == SCAN:
            self.running.take(item, values[0], self._target(item.target))
        elif item.role == SCATTER:
            self._scatter(item, *values)
        elif item.role == KEEP:
            if item in self.storage.places:
                target = self.scalars.element(*self.arrays[item])
                self.scalars.add(Assign(target, truth(values[0], item.result.dtype)))
            self.complete(item)

    def _target(self, definition: Definition, output: str = "") -> Expression:
        array = self.context.arrays[f"={output}" if output else definition.tensor]
        return self.scalars.element(array, definition.indices)

    def _take(self, item: Item, value: Expression) -> None:
        if item.finds_place:
            self._take_place(item, value)
            return
        reduction = reduction_of(item)
        if item in self.sums.totals and item not in self.variables:
            self.sums.add(item, value)
            return
        if item not in self.variables:
            target = self.scalars.element(*self.arrays[item])
            self.scalars.add(reduction.take_stored(target, self._once(value, reduction)))
            return
        target = name(self.variables[item])
        value = self._once(value, reduction)
        self.scalars.add(reduction.take(target, value))
        if item in self.flags:
            self.scalars.add(
                Assign(name(self.flags[item]), Binary("!=", value, value), "|=")
            )  # fmt: skip

    def _once(self, value: Expression, reduction: Reduction) -> Expression:
        """A name for a value that a reduction reads several times."""
        if reduction.kind not in ("max", "min") or isinstance(value, Text):
            return value
        return name(self.scalars.variable(f"const {reduction.variable_type}", "value", value))

    def _take_place(self, item: Item, value: Expression) -> None:
        """Keep the first of the best; NaN is better than every number."""
        assert isinstance(item.value, Reduce)
        assert item.body is not None
        best, place = name(self.flags[item]), name(self.variables[item])
        kind = "max" if item.value.kind == "argmax" else "min"
        value = self._once(value, Reduction(kind, item.body.dtype))
        better: Expression = Binary(">" if kind == "max" else "<", value, best)
        if item.body.dtype.is_float:
            met = Binary("&&", Binary("!=", value, value), Binary("==", best, best))
            better = Binary("||", better, met)
        index = name(self.context.variable(item.reduced[0]))
        self.scalars.add(If(better, (Assign(best, value), Assign(place, index))))

    def _scatter(self, item: Item, condition: Expression, value: Expression) -> None:
        pattern = item.pattern(Scatter)
        put: dict[Atom, Dim] = dict(pattern.targets)
        indices = tuple(index.substitute(put) for index in item.target.indices)
        array = self.context.arrays[item.target.tensor]
        added: Statement = Assign(self.scalars.element(array, indices), value, "+=")
        if not (isinstance(pattern.condition, Literal) and pattern.condition.value):
            added = If(condition, (added,))
        self.scalars.add(added)

    def _check(self, item: Item) -> None:
        """Leave the kernel where an index is out of range."""
        check = item.check
        assert check is not None
        axes = check.index.axes
        index, bound = (within(self.context.dim(one), SUM) for one in (check.index, check.bound))
        flag = self.scalars.fresh("outside")
        statement: Statement = Line(f"{flag} |= ({index} < 0) | ({index} >= {bound});")
        if check.count != 1:
            statement = If(Binary(">", self.context.dim(check.count), number(0)), (statement,))
        for axis in reversed(axes):
            stop, variable = self.context.dim(axis.extent), self.context.variable(axis)
            statement = For(variable, number(0), stop, (statement,))
        self.context.forget(axes)
        self.scalars.add(Declare("int", flag, number(0)))
        self.scalars.add(statement)
        self.scalars.add(If(name(flag), (Line(f"return {STATUSES.index(OUT_OF_RANGE) + 1};"),)))


def _hints(program: KernelProgram) -> dict[Expr, str]:
    """The output that a value is, and ``mean_total`` for the sum that is divided to ``mean``."""
    found: dict[Expr, str] = {}
    for definition in program.definitions:
        if definition.outputs and isinstance(definition.body, (Call, Reduce)):
            found.setdefault(definition.body, definition.outputs[0])
    named = {**found, **program.names}
    roots = [root for definition in program.definitions for root in bodies(definition)]
    for expr in postorder(roots):
        for arg in expr.args if isinstance(expr, Call) else ():
            if isinstance(arg, Reduce) and arg not in named and expr in named:
                found.setdefault(arg, f"{named[expr]}_{DEFAULT_NAMES[arg.kind]}")
    return found
