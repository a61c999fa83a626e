"""Running sums and products in C.

In: items that scan.  Out: statements.
"""

from __future__ import annotations

from symgrad.codegen.accumulate import Reduction
from symgrad.codegen.context import Context
from symgrad.codegen.ctree import Assign, Binary, Choice, Declare, Expression, name, number
from symgrad.codegen.evaluate import Evaluator
from symgrad.codegen.items import Item
from symgrad.codegen.patterns import Scan
from symgrad.codegen.program import Definition
from symgrad.ir.dim import Atom, Dim


class Running:
    """What scans carry along: in a variable where their own loop is the innermost one."""

    def __init__(self, context: Context, evaluator: Evaluator) -> None:
        self._context = context
        self._evaluator = evaluator
        self._variables: dict[Item, str] = {}

    def start(self, item: Item) -> None:
        """Declare what a running reduction carries along: of a sum, its total."""
        definition, pattern = _scan(item)
        self._variables[item] = self._evaluator.fresh("running")
        reduction = Reduction(pattern.kind, definition.dtype)
        self._evaluator.add(
            Declare(reduction.total.c, self._variables[item], reduction.total_start)
        )  # fmt: skip

    def take(self, item: Item, value: Expression, target: Expression) -> None:
        """Take one element, and store what there is so far."""
        definition, pattern = _scan(item)
        operator = "+" if pattern.kind == "sum" else "*"
        if item in self._variables:
            running = name(self._variables[item])
            self._evaluator.add(Assign(running, value, f"{operator}="))
            so_far = Reduction(pattern.kind, definition.dtype).rounded(running)
            self._evaluator.add(Assign(target, so_far))
            return
        context = self._context
        index = name(context.variable(pattern.axis))
        step = 1 if pattern.reverse else -1
        moved: dict[Atom, Dim] = {pattern.axis: Dim.of(pattern.axis) + step}
        before = tuple(one.substitute(moved) for one in definition.indices)
        array = context.arrays[definition.tensor]
        last = context.dim(pattern.axis.extent - 1)
        begun = Binary("<", index, last) if pattern.reverse else Binary(">", index, number(0))
        further = Binary(operator, self._evaluator.element(array, before), value)
        self._evaluator.add(Assign(target, Choice(begun, further, value)))


def _scan(item: Item) -> tuple[Definition, Scan]:
    assert item.definition is not None
    assert isinstance(item.definition.pattern, Scan)
    return item.definition, item.definition.pattern
