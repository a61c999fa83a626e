"""Variables that accumulate: sums in blocks, and scans.

In: items that reduce or scan.  Out: statements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from symgrad.codegen.emit.context import EmitContext
from symgrad.codegen.emit.ctree import (
    Assign,
    Binary,
    Block,
    Choice,
    Expression,
    For,
    Statement,
    expression_text,
    least,
    name,
    number,
)
from symgrad.codegen.emit.reductions import SUM_BLOCK, Reduction
from symgrad.codegen.emit.scalars import ScalarWriter
from symgrad.codegen.program.patterns import Scan
from symgrad.codegen.schedule.items import PRODUCT, Item
from symgrad.ir.dim import Atom, Axis, Dim
from symgrad.ir.expr import Reduce

Bounds = tuple[str, Expression, Expression]
"""The variable of a loop, its start and its stop."""


class Sums:
    """The sums that are being taken.

    ``totals``: the variables that the sums of blocks are added to; ``ranges``: of axes of which
    only a tile is run through.
    """

    def __init__(self, scalars: ScalarWriter, ranges: Mapping[Axis, tuple[Dim, Dim]]) -> None:
        self.totals: dict[Item, str] = {}
        self._scalars = scalars
        self._ranges = ranges

    def in_one_block(self, axes: Sequence[Axis]) -> bool:
        """Do so few elements lie along axes, or along tiles of them, as make a block?"""
        sizes = [1 if axis in self._ranges else axis.extent.constant for axis in axes]
        known = [size for size in sizes if size is not None]
        return len(known) == len(sizes) and math.prod(known) <= SUM_BLOCK

    def start(self, item: Item, wanted: str) -> None:
        """Declare the total of a sum."""
        reduction = reduction_of(item)
        suffix = "" if reduction.total == reduction.dtype else "_sum"
        self.totals[item] = self._scalars.variable(
            reduction.total.c, wanted + suffix, reduction.total_start
        )

    def add(self, item: Item, value: Expression) -> None:
        """Add to the total of a sum."""
        self._scalars.add(Assign(name(self.totals[item]), value, "+="))

    def finish(self, item: Item, wanted: str, *, rounded: bool) -> str:
        """The variable that holds a sum, ``rounded`` to its own dtype."""
        reduction, total = reduction_of(item), self.totals.pop(item)
        if not rounded or reduction.total == reduction.dtype:
            return total
        value = reduction.rounded(name(total))
        return self._scalars.variable(f"const {reduction.dtype.c}", wanted, value)

    def in_blocks(
        self, blocks: Mapping[Item, str], bounds: Bounds, loop: Callable[[Bounds], For],
        variables: dict[Item, str], *, short: bool,
    ) -> Statement:  # fmt: skip
        """A loop that sums, block by block; ``short``: there is one.

        ``blocks``: what the variables of blocks are called; ``loop``: writes it between bounds;
        ``variables``: where it finds what it adds to.
        """
        variable, start, stop = bounds
        scalars = self._scalars
        scalars.open(frozenset())
        low, high = start, stop
        if not short:
            low = name(scalars.fresh(f"{variable}0"))
            end = least(stop, Binary("+", low, name("SUM_BLOCK")))
            high = name(scalars.variable("const int64_t", f"{variable}1", end))
        for item, wanted in blocks.items():
            reduction = reduction_of(item)
            variables[item] = scalars.variable(
                reduction.variable_type, f"{wanted}_block", reduction.start
            )
        scalars.add(loop((variable, low, high)))
        for item in blocks:
            self.add(item, name(variables.pop(item)))
        whole = tuple(scalars.close())
        if short:
            return Block(whole)
        return For(expression_text(low), start, stop, whole, step="SUM_BLOCK")


def reduction_of(item: Item) -> Reduction:
    """The kind of reduction of an item; the parts of a product are added."""
    if item.role == PRODUCT:
        return Reduction("sum", item.target.dtype, product=True)
    assert isinstance(item.value, Reduce)
    return Reduction(item.value.kind, item.value.dtype)


# -- scans


class Scans:
    """What scans carry along: in a variable where their own loop is the innermost one."""

    def __init__(self, context: EmitContext, scalars: ScalarWriter) -> None:
        self._context = context
        self._scalars = scalars
        self._variables: dict[Item, str] = {}

    def start(self, item: Item) -> None:
        """Declare what a running reduction carries along: of a sum, its total."""
        reduction = Reduction(item.pattern(Scan).kind, item.target.dtype)
        self._variables[item] = self._scalars.variable(
            reduction.total.c, "running", reduction.total_start
        )

    def take(self, item: Item, value: Expression, target: Expression) -> None:
        """Take one element, and store what there is so far."""
        definition, pattern = item.target, item.pattern(Scan)
        operator = "+" if pattern.kind == "sum" else "*"
        if item in self._variables:
            running = name(self._variables[item])
            self._scalars.add(Assign(running, value, f"{operator}="))
            so_far = Reduction(pattern.kind, definition.dtype).rounded(running)
            self._scalars.add(Assign(target, so_far))
            return
        context = self._context
        index = name(context.variable(pattern.axis))
        step = 1 if pattern.reverse else -1
        moved: dict[Atom, Dim] = {pattern.axis: Dim.of(pattern.axis) + step}
        before = tuple(one.substitute(moved) for one in definition.indices)
        array = context.arrays[definition.tensor]
        last = context.dim(pattern.axis.extent - 1)
        begun = Binary("<", index, last) if pattern.reverse else Binary(">", index, number(0))
        joined = Binary(operator, context.element(array, before), value)
        self._scalars.add(Assign(target, Choice(begun, joined, value)))
