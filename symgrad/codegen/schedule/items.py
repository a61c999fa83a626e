"""What is to be done: stores, reductions, running reductions, scatters, checks.

In: a program and the order of its axes.  Out: ``Item`` records, each after those it needs.

Elementwise expressions are no items: they are evaluated wherever they are needed, unless the
schedule decides to keep one (role ``keep``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from symgrad.codegen.program.definitions import Check, Definition, KernelProgram
from symgrad.codegen.program.equations import elements_of
from symgrad.codegen.program.patterns import Contraction, Scan, Scatter
from symgrad.codegen.schedule.contraction import Operand, address, is_small, plan_gemm
from symgrad.ir.dim import Axis, Dim
from symgrad.ir.expr import Access, Expr, Reduce, free_axes

STORE, REDUCE, KEEP, SCAN, SCATTER = "store", "reduce", "keep", "scan", "scatter"
PRODUCT, CHECK = "product", "check"
_WRITING = (STORE, SCAN, SCATTER)
_P = TypeVar("_P", Contraction, Scan, Scatter)


@dataclass(frozen=True)
class Need:
    """An item that must come before; on the axes ``kept`` only its own iteration is needed."""

    item: Item
    kept: frozenset[Axis]


@dataclass(frozen=True, eq=False, repr=False)
class Item:
    """One thing to be done in a nest of loops over ``axes``, outermost first.

    A PRODUCT is called for a range of its one axis, at once.

    ``reduced``: those of the axes that it reduces, next to each other.  ``value``: the expression
    whose value it gives (REDUCE, KEEP, PRODUCT).  ``body``: what is evaluated in the innermost
    loop.  ``definition``: the array that it writes (STORE, SCAN, SCATTER, PRODUCT); ``output`` its
    name where it is not the array of the definition's tensor but a copy.  ``operands``: the
    factors of a PRODUCT.
    """

    number: int
    role: str
    axes: tuple[Axis, ...]
    reduced: tuple[Axis, ...] = ()
    value: Expr | None = None
    body: Expr | None = None
    definition: Definition | None = None
    operands: tuple[Expr, ...] = ()
    output: str = ""
    check: Check | None = None
    needs: tuple[Need, ...] = ()

    def __repr__(self) -> str:
        return f"<{self.role} {self.number}>"

    @property
    def target(self) -> Definition:
        """The definition of an item that writes an array."""
        assert self.definition is not None
        return self.definition

    @property
    def result(self) -> Expr:
        """The value of an item that gives one."""
        assert self.value is not None
        return self.value

    def pattern(self, kind: type[_P]) -> _P:
        """The pattern of the definition that it writes, which is of this kind."""
        found = self.target.pattern
        assert isinstance(found, kind)
        return found

    @property
    def key(self) -> tuple[object, ...]:
        """What it does: the same in each arrangement of one program."""
        tensor = self.definition.tensor if self.definition is not None else ""
        return self.role, self.value, tensor, self.output

    @property
    def finds_place(self) -> bool:
        """Is it an argmax or argmin?"""
        return isinstance(self.value, Reduce) and self.value.kind.startswith("arg")

    @property
    def outside(self) -> tuple[Axis, ...]:
        """The axes that are opened before any reduced one."""
        first = self.axes.index(self.reduced[0]) if self.reduced else len(self.axes)
        return self.axes[:first]

    @property
    def inside(self) -> tuple[Axis, ...]:
        """The axes after the reduced ones: what is accumulated is an array over them."""
        last = self.axes.index(self.reduced[-1]) + 1 if self.reduced else len(self.axes)
        return self.axes[last:]


def roots_of(item: Item) -> list[Expr]:
    """The expressions that an item evaluates."""
    if item.role == SCATTER:
        pattern = item.pattern(Scatter)
        return [pattern.condition, pattern.body]
    return [item.body] if item.body is not None else []


def batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Items in the same order, in runs of which none reads an array that another one writes."""
    found: list[Item] = []
    for item in items:
        if any(need.item in found and need.item.role in _WRITING for need in item.needs):
            yield found
            found = []
        found.append(item)
    yield found


class Items:
    """Makes the items of a program.

    ``kept``: elementwise values that get an item of their own; ``own_rows``: products are called
    for rows of their results, never for a part of what they add up.
    """

    def __init__(
        self, program: KernelProgram, order: Mapping[Axis, int], kept: Iterable[Expr] = (), *,
        own_rows: bool = False,
    ) -> None:  # fmt: skip
        self.program = program
        self.order = order
        self.kept = set(kept)
        self.own_rows = own_rows
        self.found: list[Item] = []
        self.values: dict[Expr, Item] = {}
        self._producers: dict[str, Item] = {}
        self._checking: dict[str, list[Item]] = {}
        waiting = self._add_checks(list(program.checks))
        for definition in program.definitions:
            self._define(definition)
            waiting = self._add_checks(waiting)

    def sort(self, axes: Iterable[Axis]) -> tuple[Axis, ...]:
        """Axes in the order of their loops."""
        return tuple(sorted(set(axes), key=lambda axis: self.order[axis]))

    def _add(self, item: Item) -> Item:
        self.found.append(item)
        return item

    def _new(self, role: str, axes: Iterable[Axis], body: Expr | None, **rest: object) -> Item:
        needs = self.needs([body]) if body is not None else ()
        axes = tuple(axes)
        needs = tuple(Need(n.item, n.kept - _ahead(n.item, axes)) for n in needs)
        return Item(len(self.found), role, axes, body=body, needs=needs, **rest)  # type: ignore[arg-type]

    def _add_checks(self, waiting: list[Check]) -> list[Check]:
        """Add the checks for which everything is computed; return the others."""
        computed = {d.tensor for d in self.program.definitions}
        left = []
        for check in waiting:
            if any(t in computed and t not in self._producers for t in check.tensors):
                left.append(check)
                continue
            producers = [self._producers[t] for t in check.tensors if t in self._producers]
            needs = tuple(Need(producer, frozenset()) for producer in producers)
            item = self._add(Item(len(self.found), CHECK, (), check=check, needs=needs))
            for tensor in check.tensors:
                self._checking.setdefault(tensor, []).append(item)
        return left

    def _define(self, definition: Definition) -> None:
        pattern = definition.pattern
        if isinstance(pattern, Scan):
            self._require([pattern.body])
            item = self._new(SCAN, self.sort(definition.axes), pattern.body, definition=definition)
        elif isinstance(pattern, Scatter):
            item = self._scatter(definition, pattern)
        elif isinstance(pattern, Contraction) and (product := self._product(definition, pattern)):
            item = product
        else:
            self._require([definition.body])
            item = self._new(
                STORE, self.sort(definition.axes), definition.body, definition=definition
            )
        self._producers[definition.tensor] = self._add(item)
        for output in definition.outputs[1:]:
            self._copy(definition, output)

    def _copy(self, definition: Definition, output: str) -> None:
        """A node that is two outputs is written twice."""
        body: Expr = definition.body
        if definition.pattern is not None:
            tensor, dtype = definition.tensor, definition.dtype
            body = self.program.pool.access(tensor, definition.indices, dtype)
        item = self._new(
            STORE, self.sort(definition.axes), body, definition=definition, output=output
        )
        self._add(item)

    def _scatter(self, definition: Definition, pattern: Scatter) -> Item:
        targets = [index for _, index in pattern.targets]
        pool = self.program.pool
        reads = [pattern.condition, pattern.body, *(pool.integer(index) for index in targets)]
        self._require(reads)
        written = {axis for axis, _ in pattern.targets}
        axes = self.sort({*definition.axes, *pattern.axes} - written)
        # Everything from the first summed axis on is one block of loops.
        first = min(axes.index(axis) for axis in pattern.axes)
        return Item(
            len(self.found), SCATTER, axes, reduced=axes[first:], body=pattern.body,
            definition=definition, needs=self.needs(reads),
        )  # fmt: skip

    def _product(self, definition: Definition, pattern: Contraction) -> Item | None:
        """A call of the BLAS; None where loops do as well, or nothing lies as it should."""
        if is_small(pattern):
            return None
        axes = pattern.batch + pattern.rows + pattern.columns if self.own_rows else pattern.axes
        first = self.sort(axes)[0]
        ranges = {first: (Dim.of(0), first.extent)}
        result = Operand("", address(definition.shape, definition.indices))
        for copies in ((False, False), (True, False), (False, True), (True, True)):
            pairs = zip((pattern.left, pattern.right), copies, strict=True)
            operands = [self._operand(factor, copy=copy) for factor, copy in pairs]
            if None in operands:
                continue
            left, right = (operand for operand in operands if operand is not None)
            if plan_gemm(pattern, left, right, result, ranges) is not None:
                break
        else:
            return None
        factors = (pattern.left, pattern.right)
        self.kept.update(f for f, copy in zip(factors, copies, strict=True) if copy)
        self._require(factors)
        value = self.program.pool.access(definition.tensor, definition.indices, definition.dtype)
        item = Item(
            len(self.found), PRODUCT, (first,), value=value, definition=definition,
            reduced=(first,) if first in pattern.summed else (), operands=factors,
            needs=self.needs(factors),
        )  # fmt: skip
        self.values[value] = item
        return item

    def _operand(self, factor: Expr, *, copy: bool) -> Operand | None:
        """How a factor lies in memory, as it is or when it is put there."""
        if isinstance(factor, Access) and not copy:
            return Operand("", address(self.program.arrays[factor.tensor][1], factor.indices))
        if not copy and not isinstance(factor, Reduce) and factor not in self.kept:
            return None
        home = next((d for d in self.program.definitions if d.body is factor), None)
        if home is not None:
            return Operand("", address(home.shape, home.indices))
        axes = self.sort(factor.free)
        return Operand("", address([a.extent for a in axes], [Dim.of(a) for a in axes]))

    def _require(self, roots: Iterable[Expr]) -> None:
        """Items for all values under ``roots`` that have none yet, inner ones first."""
        todo: list[tuple[Expr, bool]] = [(root, False) for root in roots]
        seen: set[Expr] = set()
        while todo:
            expr, entered = todo.pop()
            if entered:
                if isinstance(expr, Reduce) or expr in self.kept:
                    self._value(expr)
            elif expr not in seen and expr not in self.values:
                seen.add(expr)
                todo.append((expr, True))
                inner = self.run(expr)[1] if isinstance(expr, Reduce) else None
                todo.extend((arg, False) for arg in ((inner,) if inner else expr.args))

    def _value(self, expr: Expr) -> None:
        if isinstance(expr, Reduce):
            reduced, body = self.run(expr)
            axes = self.sort({*expr.free, *reduced})
            if expr.kind.startswith("arg"):  # value and place go together: nothing runs inside
                axes = (*self.sort(expr.free), *reduced)
            item = self._new(REDUCE, axes, body, value=expr, reduced=self.sort(reduced))
        else:
            item = self._new(KEEP, self.sort(expr.free), expr, value=expr)
        self.values[expr] = self._add(item)

    def run(self, expr: Reduce) -> tuple[list[Axis], Expr]:
        """The axes that are reduced together with that of ``expr``, and what is reduced."""
        axes, body = [expr.axis], expr.body
        while (
            isinstance(body, Reduce) and body.kind == expr.kind and not body.kind.startswith("arg")
            and body.axis not in axes and body.axis not in expr.free
        ):  # fmt: skip
            wider = self.sort({*expr.free, *axes, body.axis})
            places = sorted(wider.index(axis) for axis in (*axes, body.axis))
            if places[-1] - places[0] != len(places) - 1:
                break
            axes.append(body.axis)
            body = body.body
        return axes, body

    # -- dependences

    def needs(self, roots: Iterable[Expr]) -> tuple[Need, ...]:
        """The items that evaluating ``roots`` needs."""
        found: dict[tuple[int, frozenset[Axis]], Need] = {}
        for expr in self.evaluated(roots):
            for need in self._needs_of(expr):
                found[need.item.number, need.kept] = need
        return tuple(
            found[key] for key in sorted(found, key=lambda k: (k[0], sorted(a.key for a in k[1])))
        )

    def evaluated(self, roots: Iterable[Expr]) -> list[Expr]:
        """What is evaluated for ``roots``: all under them up to values that have an item."""
        found: dict[int, Expr] = {}
        todo = list(roots)
        while todo:
            expr = todo.pop()
            if expr.number not in found:
                found[expr.number] = expr
                if expr not in self.values:
                    todo.extend(expr.args)
        return [found[number] for number in sorted(found)]

    def _needs_of(self, expr: Expr) -> Iterable[Need]:
        if expr in self.values:
            yield Need(self.values[expr], expr.free)
            return
        reads = [(element.tensor, element.indices) for element in elements_of(expr)]
        if isinstance(expr, Access):
            reads.append((expr.tensor, expr.indices))
        for tensor, indices in reads:
            # An index may be computed in this kernel: nothing is read by it before it is checked.
            yield from (Need(check, frozenset()) for check in self._checking.get(tensor, ()))
            if (producer := self._producers.get(tensor)) is not None:
                yield Need(producer, _kept(producer, indices))


def _ahead(item: Item, axes: tuple[Axis, ...]) -> frozenset[Axis]:
    """The axis of the loop of its own that a kept value gets ahead of what has loops inside it."""
    around = item.role == KEEP and len(item.axes) > 1 and item.axes == axes[: len(item.axes)]
    if not around or len(item.axes) == len(axes):
        return frozenset()
    innermost = frozenset(item.axes[-1:])
    return frozenset() if any(need.kept & innermost for need in item.needs) else innermost


def _kept(producer: Item, indices: tuple[Dim, ...]) -> frozenset[Axis]:
    """The axes on which an array is read in the very iteration that writes it."""
    pairs = zip(producer.target.indices, indices, strict=True)
    same = free_axes(wanted for wanted, index in pairs if index == wanted)
    return same & set(producer.outside)
