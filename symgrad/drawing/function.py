"""A traced Function as a picture: forward, what is saved, backward.

In: one case of ``FunctionGraphs``.  Out: ``Picture``.

A number is shown in the box that uses it.  Broadcasts are not shown.  A node that backward computes
again is drawn twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from symgrad.drawing.picture import BACKWARD, FORWARD, SAVED, Builder, Picture, Vertex
from symgrad.ir.function import FunctionCase, FunctionGraphs
from symgrad.ir.graph import Node, ancestors
from symgrad.kernels import joint_of
from symgrad.ops.record import get

_INFIX = {"add": "+", "sub": "−", "mul": "×", "div": "÷"}


def function_picture(graphs: FunctionGraphs, number: int) -> Picture:
    """The picture of a case."""
    case = graphs.cases[number]
    return _Drawer(graphs, case).picture(_note(graphs, number))


def _note(graphs: FunctionGraphs, number: int) -> str:
    when = ", ".join(map(str, graphs.cases[number].conditions))
    parts = [f"case {number} of {len(graphs.cases)}"] if len(graphs.cases) > 1 else []
    parts += [f"for {when}"] if when else []
    parts += ["backward derived"] if graphs.derived else []
    return ", ".join(parts)


class _Drawer:
    """Draws one case."""

    def __init__(self, graphs: FunctionGraphs, case: FunctionCase) -> None:
        self.graphs = graphs
        self.case = case
        self.builder = Builder()
        self.forward: dict[Node, int] = {}
        self.backward: dict[Node, int] = {}
        self.kept: frozenset[Node] = frozenset()

    def picture(self, note: str) -> Picture:
        """Forward, then what is saved, then backward."""
        for node in _shown(ancestors(self.case.outputs)):
            self.forward[node] = self._box(node, FORWARD, self.forward)
        for node in self.case.inputs:
            if node not in self.forward:
                self.forward[node] = self._box(node, FORWARD, self.forward)
        self._mark_outputs()
        self._draw_backward()
        return self.builder.picture(self.graphs.name, note)

    def _mark_outputs(self) -> None:
        for name, node in zip(self.case.output_names, self.case.outputs, strict=True):
            place = self.forward.get(seen(node))
            label = "" if name == "output" else "output"
            output = self.builder.add(Vertex(FORWARD, "output", name, label, str(node.type), name))
            if place is not None:
                self.builder.join(place, output)

    def _draw_backward(self) -> None:
        gradients = [(one.input, one.node) for one in self.case.gradients if one.node is not None]
        kept = [node for node in (*self._saved(), *self.case.inputs) if not is_number(node)]
        self.kept = frozenset(kept)
        for node in _shown(ancestors([node for _, node in gradients], stop=kept), self.kept):
            if node in self.kept:
                self.backward[node] = self._pill(node)
            else:
                self.backward[node] = self._box(node, BACKWARD, self.backward)
        for name, node in gradients:
            label = f"= {_number(node)}" if is_number(node) else ""
            found = self.builder.add(
                Vertex(BACKWARD, "gradient", f"grad {name}", label, str(node.type))
            )
            if seen(node, self.kept) in self.backward:
                self.builder.join(self.backward[seen(node, self.kept)], found)

    def _saved(self) -> Sequence[Node]:
        """What the hand-written forward saves, or what is chosen for a derived backward."""
        return joint_of(self.graphs, self.case).saved if self.graphs.derived else self.case.saved

    def _pill(self, node: Node) -> int:
        pill = self.builder.add(
            Vertex(SAVED, "saved", node.name or operation_label(node), "", str(node.type))
        )
        source = self.forward.get(seen(node))
        if source is not None:
            self.builder.join(source, pill)
        return pill

    def _box(self, node: Node, stage: str, known: dict[Node, int]) -> int:
        place = self.builder.add(
            Vertex(
                stage, self._kind(node), node.name or "", operation_label(node),
                str(node.type), f"{node!r} {node.location or ''}".strip(),
            )
        )  # fmt: skip
        for arg in node.args:
            source = known.get(seen(arg, self.kept))
            if source is not None:
                self.builder.join(source, place)
        return place

    def _kind(self, node: Node) -> str:
        if node.op != "input":
            return "operation"
        if node in self.case.cotangents:
            return "cotangent"
        return "leaf" if node.attributes["name"] in self.graphs.differentiable else "data"


# -- what is shown of a graph


def is_number(node: Node) -> bool:
    """Is it a number, or a number broadcast to a shape?"""
    while node.op in ("expand", "cast", "reshape"):
        node = node.args[0]
    return node.op in ("constant", "size")


def seen(node: Node, stop: frozenset[Node] = frozenset()) -> Node:
    """The node whose box is drawn for this one: broadcasts are skipped, up to those in ``stop``."""
    while node not in stop and (node.op == "expand" or (node.op == "reshape" and _same_axes(node))):
        node = node.args[0]
    return node


def _same_axes(node: Node) -> bool:
    """Does a reshape only insert or remove axes of size 1?"""
    before, after = ([size for size in one.shape if size != 1] for one in (node.args[0], node))
    return before == after


def _shown(nodes: Iterable[Node], stop: frozenset[Node] = frozenset()) -> list[Node]:
    return [node for node in nodes if seen(node, stop) is node and not is_number(node)]


def operation_label(node: Node) -> str:
    """The op of a node, with its numbers and axes."""
    if node.op == "input":
        return ""
    if node.op in _INFIX and any(map(is_number, node.args)):
        first, second = (_number(arg) if is_number(arg) else "" for arg in node.args)
        return f"{first} {_INFIX[node.op]} {second}".strip()
    if node.op == "iota":
        return f"0 … {node.shape[0] - 1}"
    numbers = [_number(arg) for arg in node.args if is_number(arg)]
    return " ".join([node.op, *_attributes(node), *numbers])


def _number(node: Node) -> str:
    while node.args:
        (node,) = node.args
    if node.op == "size":
        return str(node.attributes["dim"])
    value = node.attributes["value"].value
    return f"{value:.6g}" if isinstance(value, float) else str(value)


_SHOWN: dict[str, Callable[[Any], str]] = {
    "axes": lambda axes: "(" + ", ".join(map(str, axes)) + ")",
    "axis": str,
    "spec": lambda spec: str(spec).replace("->", "→"),
    "dtype": str,
}


def _attributes(node: Node) -> list[str]:
    shown = [_SHOWN[name](value) for name, value in node.attrs if name in _SHOWN]
    return shown if get(node.op).kind != "source" else []
