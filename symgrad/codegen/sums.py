"""Sums in blocks: what is added side by side is added up block by block.

In: the loops that sum, and what they sum.  Out: statements.

A block is summed in the dtype of its elements, the blocks in double: errors grow with the size of
a block, not with the number of elements, and the loop inside stays one of vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from symgrad.codegen.accumulate import SUM_BLOCK, Reduction
from symgrad.codegen.ctree import (
    Assign,
    Binary,
    Block,
    Declare,
    Expression,
    For,
    Statement,
    name,
)
from symgrad.codegen.evaluate import Evaluator
from symgrad.codegen.items import PRODUCT, Item
from symgrad.codegen.printer import expression_text, least
from symgrad.ir.dim import Axis, Dim
from symgrad.ir.expr import Reduce

Bounds = tuple[str, Expression, Expression]
"""The variable of a loop, its start and its stop."""


class Sums:
    """The sums that are being taken.

    ``totals``: the variables that the sums of blocks are added to; ``ranges``: of axes of which
    only a tile is run through.
    """

    def __init__(self, evaluator: Evaluator, ranges: Mapping[Axis, tuple[Dim, Dim]]) -> None:
        self.totals: dict[Item, str] = {}
        self._evaluator = evaluator
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
        self.totals[item] = self._evaluator.fresh(wanted + suffix)
        self._declare(reduction.total.c, self.totals[item], reduction.total_start)

    def add(self, item: Item, value: Expression) -> None:
        """Add to the total of a sum."""
        self._evaluator.add(Assign(name(self.totals[item]), value, "+="))

    def finish(self, item: Item, wanted: str, *, rounded: bool) -> str:
        """The variable that holds a sum, ``rounded`` to its own dtype."""
        reduction, total = reduction_of(item), self.totals.pop(item)
        if not rounded or reduction.total == reduction.dtype:
            return total
        variable = self._evaluator.fresh(wanted)
        value = reduction.rounded(name(total))
        self._declare(f"const {reduction.dtype.c}", variable, value)
        return variable

    def in_blocks(
        self, blocks: Mapping[Item, str], bounds: Bounds, loop: Callable[[Bounds], For],
        variables: dict[Item, str], *, short: bool,
    ) -> Statement:  # fmt: skip
        """A loop that sums, block by block; ``short``: there is one.

        ``blocks``: what the variables of blocks are called; ``loop``: writes it between bounds;
        ``variables``: where it finds what it adds to.
        """
        variable, start, stop = bounds
        evaluator = self._evaluator
        evaluator.open(frozenset())
        low, high = start, stop
        if not short:
            low, high = (name(evaluator.fresh(f"{variable}{end}")) for end in (0, 1))
            end = least(stop, Binary("+", low, name("SUM_BLOCK")))
            self._declare("const int64_t", expression_text(high), end)
        for item, wanted in blocks.items():
            reduction = reduction_of(item)
            variables[item] = evaluator.fresh(f"{wanted}_block")
            self._declare(reduction.variable_type, variables[item], reduction.start)
        evaluator.add(loop((variable, low, high)))
        for item in blocks:
            self.add(item, name(variables.pop(item)))
        whole = tuple(evaluator.close())
        if short:
            return Block(whole)
        return For(expression_text(low), start, stop, whole, step="SUM_BLOCK")

    def _declare(self, kind: str, variable: str, value: Expression) -> None:
        self._evaluator.add(Declare(kind, variable, value))


def reduction_of(item: Item) -> Reduction:
    """The kind of reduction of an item; the parts of a product are added."""
    if item.role == PRODUCT and item.definition is not None:
        return Reduction("sum", item.definition.dtype, product=True)
    assert isinstance(item.value, Reduce)
    return Reduction(item.value.kind, item.value.dtype)
