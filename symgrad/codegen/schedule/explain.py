"""The schedule as text: the loops, and what is done in each.

In: a graph.  Out: lines, indented by loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from symgrad.codegen.program.definitions import KernelProgram, build_program
from symgrad.codegen.schedule.items import KEEP, PRODUCT, REDUCE, Item
from symgrad.codegen.schedule.loops import Entry, Loop
from symgrad.codegen.schedule.scheduler import schedule
from symgrad.index.text import IndexText
from symgrad.ir.expr import Expr, Reduce
from symgrad.ir.graph import Graph

INDENT = "    "


def schedule_text(graph: Graph) -> str:
    """What the scheduler makes of a graph, before loops are split among threads."""
    found = schedule(build_program(graph))
    return "\n".join(_Explainer(found.program).lines(found.entries, 0)) + "\n"


class _Explainer:
    """Letters for axes and names for values, the same throughout."""

    def __init__(self, program: KernelProgram) -> None:
        self.program = program
        tensors = {
            definition.tensor: definition.outputs[0]
            if definition.outputs
            else program.names.get(definition.body, definition.tensor)
            for definition in program.definitions
        }
        self.text = IndexText((), tensors)
        self.done: dict[int, str] = {}

    def lines(self, entries: Sequence[Entry], depth: int) -> Iterator[str]:
        for entry in entries:
            if isinstance(entry, Loop):
                letter = self.text.axis(entry.axis)
                downwards = ", downwards" if entry.downwards else ""
                blocks = "blocks of " if entry.blocked else ""
                yield f"{INDENT * depth}for {blocks}{letter} in {entry.axis.extent}{downwards}:"
                yield from self.lines(entry.body, depth + 1)
            else:
                yield INDENT * depth + self._item(entry)

    def _item(self, item: Item) -> str:
        if item.role == REDUCE and isinstance(item.value, Reduce):
            name = self.program.names.get(item.value, f"{item.value.kind}_{item.number}")
            inner = item.value.body
            while isinstance(inner, Reduce) and inner.axis in item.reduced:
                inner = inner.body
            line = f"{name} <- {item.value.kind} {self.text.whole(inner, self.done)}"
            self.done[item.value.number] = name
            return line
        if item.role == PRODUCT and item.definition is not None and item.value is not None:
            name = self.program.names.get(item.definition.body, f"product_{item.number}")
            line = f"{name} <- product {self.text.whole(item.definition.body, self.done)}"
            self.done[item.value.number] = name
            return line
        if item.role == KEEP and item.value is not None:
            name = self.program.names.get(item.value, f"kept_{item.number}")
            line = f"{name} <- {self.text.whole(item.value, self.done)}"
            self.done[item.value.number] = name
            return line
        if item.check is not None:
            return f"check 0 <= {self.text.dim(item.check.index)} < {item.check.bound}"
        assert item.definition is not None
        definition = item.definition
        target = self.text.names.get(definition.tensor, definition.tensor)
        indices = ", ".join(map(self.text.dim, definition.indices))
        left = f"{target}[{indices}]" if indices else target
        body: Expr = item.body if item.body is not None else definition.body
        return f"{left} = {self.text.whole(body, self.done)}"
