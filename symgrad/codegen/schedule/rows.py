"""Which loops are run as one.

In: the outermost loops of a schedule, the shapes of arrays.  Out: ``Rows`` for each of them.

Where every array is read as it lies, all loops down to the innermost are one; otherwise those
above it are (batch, head and position are then one row), so that there is enough to share out
among threads however short the first axis is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from symgrad.codegen.schedule.items import REDUCE, STORE, Item
from symgrad.codegen.schedule.loops import Entry, Loop
from symgrad.ir.dim import Axis, Dim, product
from symgrad.ir.expr import Access, Expr, IntValue, Reduce

Shapes = Mapping[str, tuple[Dim, ...]]


@dataclass(frozen=True)
class Rows:
    """The loops that are run as one: ``axes``, and what is done for each of their values.

    ``flat``: the arrays that are read by one index over all axes, as they lie; empty where each
    axis has an index of its own.
    """

    axes: tuple[Axis, ...]
    body: tuple[Entry, ...]
    loop: Loop
    flat: frozenset[str] = frozenset()

    @property
    def leaf(self) -> bool:
        """Are there no loops inside?"""
        return all(isinstance(entry, Item) for entry in self.body)

    @property
    def single(self) -> bool:
        """Does one index run over all rows?"""
        return len(self.axes) == 1 or bool(self.flat)

    @property
    def last(self) -> Loop:
        """The loop over the last of the axes."""
        loop = self.loop
        for _ in self.axes[1:]:
            (loop,) = (entry for entry in loop.body if isinstance(entry, Loop))
        return loop

    @property
    def inner(self) -> frozenset[Axis]:
        """The axes of the loops inside."""
        return frozenset(axis for item in self.loop.items for axis in item.axes) - {*self.axes}

    @property
    def extent(self) -> Dim:
        """How many rows there are."""
        return product([axis.extent for axis in self.axes])


def plan_rows(entries: Iterable[Entry], shapes: Shapes) -> dict[Loop, Rows]:
    """The rows of every outermost loop."""
    loops = [entry for entry in entries if isinstance(entry, Loop)]
    return {loop: _rows(loop, shapes) for loop in loops}


def _rows(loop: Loop, shapes: Shapes) -> Rows:
    if loop.blocked:
        return Rows((loop.axis,), loop.body, loop)
    axes, entries, chain = [loop.axis], loop.body, [loop]
    while len(entries) == 1 and isinstance(inner := entries[0], Loop):
        if inner.sequential or inner.downwards or not _reduced_alike(loop, axes, inner):
            break
        axes.append(inner.axis)
        chain.append(inner)
        entries = inner.body
    if len(axes) == 1 or not all(isinstance(entry, Item) for entry in entries):
        return Rows(tuple(axes), entries, loop)
    tensors = _flat_tensors(tuple(axes), loop.items, shapes)
    if tensors is not None:
        return Rows(tuple(axes), entries, loop, tensors)
    return Rows(tuple(axes[:-1]), chain[-2].body, loop)


def _reduced_alike(loop: Loop, axes: Sequence[Axis], inner: Loop) -> bool:
    """Is all that is reduced over the inner axis reduced over the outer ones, and the reverse?"""
    together = {*axes, inner.axis}
    return all(
        together.issubset(item.reduced) or together.isdisjoint(item.reduced) for item in loop.items
    )


def _flat_tensors(
    axes: tuple[Axis, ...], items: Sequence[Item], shapes: Shapes
) -> frozenset[str] | None:
    """The arrays that are read; None unless each lies as the axes run, or is free of them."""
    found: set[str] = set()
    for item in items:
        if item.role not in (STORE, REDUCE) or item.body is None:
            return None
        if item.definition is not None:
            if item.definition.axes != axes:
                return None
            found.add(item.definition.tensor)
        for expr in evaluated(item.body):
            if expr.free.isdisjoint(axes):
                continue
            if isinstance(expr, (IntValue, Reduce)):
                return None
            if isinstance(expr, Access):
                if not _lies_flat(expr, axes, shapes[expr.tensor]):
                    return None
                found.add(expr.tensor)
    return frozenset(found)


def evaluated(root: Expr) -> list[Expr]:
    """What is evaluated for ``root``, up to reductions."""
    found: dict[Expr, None] = {}
    todo = [root]
    while todo:
        expr = todo.pop()
        if expr not in found:
            found[expr] = None
            todo.extend(() if isinstance(expr, Reduce) else expr.args)
    return list(found)


def _lies_flat(expr: Access, axes: tuple[Axis, ...], shape: tuple[Dim, ...]) -> bool:
    own = tuple(index.atom for index in expr.indices if index != 0)
    return own == axes and product(list(shape)) == product([axis.extent for axis in axes])
