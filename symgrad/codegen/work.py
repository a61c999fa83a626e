"""How much work a loop is, and whether to do it in parallel.

In: a loop of the schedule.  Out: an OpenMP pragma.

Two threads that are awake break even at about three microseconds of work.
"""

from __future__ import annotations

from symgrad.codegen.arrange import Loop
from symgrad.codegen.context import Context
from symgrad.codegen.ctree import SUM
from symgrad.codegen.equations import scalar_cost
from symgrad.codegen.items import PRODUCT, Item
from symgrad.codegen.patterns import Contraction
from symgrad.codegen.printer import within
from symgrad.ir.dim import Dim, product
from symgrad.ir.expr import Expr, Reduce

_BREAK_EVEN = 3000.0  # ns
_LEAST, _MOST = 256, 65536


def parallel_clause(loop: Loop, context: Context) -> str:
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


def _size(item: Item) -> Dim:
    pattern = item.definition.pattern if item.definition is not None else None
    if item.role == PRODUCT and isinstance(pattern, Contraction):
        axes = (*pattern.batch, *pattern.rows, *pattern.columns, *pattern.summed)
        return product([axis.extent for axis in axes])
    return product([axis.extent for axis in item.axes])


def _cost(item: Item) -> float:
    """Ns for one element of an item."""
    total = 0.05
    seen: set[Expr] = set()
    todo = [item.body] if item.body is not None else []
    while todo:
        expr = todo.pop()
        if expr not in seen:
            seen.add(expr)
            total += scalar_cost(expr)
            todo.extend(() if isinstance(expr, Reduce) else expr.args)
    return total
