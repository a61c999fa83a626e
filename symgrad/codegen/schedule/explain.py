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


def schedule_text(graph: Graph, *, derived: bool = False) -> str:
    """What the scheduler makes of a graph, before loops are split among threads."""
    found = schedule(build_program(graph), derived=derived)
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
            inner = item.value.body
            while isinstance(inner, Reduce) and inner.axis in item.reduced:
                inner = inner.body
            return self._value(item, item.value, item.value.kind, inner)
        if item.role == PRODUCT:
            return self._value(item, item.target.body, "product", item.target.body)
        if item.role == KEEP:
            return self._value(item, item.result, "", item.result)
        if item.check is not None:
            return f"check 0 <= {self.text.dim(item.check.index)} < {item.check.bound}"
        definition = item.target
        target = self.text.names.get(definition.tensor, definition.tensor)
        indices = ", ".join(map(self.text.dim, definition.indices))
        left = f"{target}[{indices}]" if indices else target
        body: Expr = item.body if item.body is not None else definition.body
        return f"{left} = {self.text.whole(body, self.done)}"

    def _value(self, item: Item, named: Expr, kind: str, body: Expr) -> str:
        """``name <- sum ...``: a value under the user's name for it, which later lines use."""
        name = self.program.names.get(named, f"{kind or 'kept'}_{item.number}")
        line = f"{name} <- {kind} {self.text.whole(body, self.done)}".replace("  ", " ", 1)
        self.done[item.result.number] = name
        return line
