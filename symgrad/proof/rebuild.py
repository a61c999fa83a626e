"""Copies of graphs: with zeros for missing gradients, with sizes replaced, with another forward.

In: nodes.  Out: the same nodes in a new graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from symgrad.ir.dim import Atom, Dim
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.types import TensorType


def copied(
    roots: Iterable[Node], sizes: Mapping[Atom, Dim] | None = None
) -> tuple[Graph, dict[Node, Node]]:
    """What ``roots`` need, in a new graph, and where each node went.

    ``sizes``: size symbols replaced.  Raises ShapeError where a shape then does not fit.
    """
    graph = Graph()
    new: dict[Node, Node] = {}
    for node in ancestors(roots):
        attributes = {
            key: substituted(value, sizes) if sizes else value
            for key, value in node.attributes.items()
        }
        made = graph.apply(node.op, *(new[arg] for arg in node.args), **attributes)
        made.name = made.name or node.name
        made.location = made.location or node.location
        if node.op == "input":
            graph.inputs.setdefault(node.attributes["name"], made)
        new[node] = made
    return graph, new


def substituted(value: Any, sizes: Mapping[Atom, Dim]) -> Any:
    """An attribute with size symbols replaced in all Dims that it holds."""
    if isinstance(value, Dim):
        return value.substitute(sizes)
    if isinstance(value, TensorType):
        return replace(value, shape=tuple(size.substitute(sizes) for size in value.shape))
    if isinstance(value, tuple):
        return tuple(substituted(item, sizes) for item in value)
    return value


def zero_like(graph: Graph, node: Node) -> Node:
    """Zeros of the shape of a float node."""
    return graph.expand(graph.constant(0.0, node.dtype), node.shape)


def transplant(
    graph: Graph, outputs: Sequence[Node], inputs: Mapping[str, Node]
) -> tuple[Node, ...]:
    """``outputs`` of another graph rebuilt in ``graph``, reading its inputs by name."""
    new: dict[Node, Node] = {}
    for node in ancestors(outputs):
        if node.op == "input":
            new[node] = inputs[node.attributes["name"]]
        else:
            new[node] = graph.apply(node.op, *(new[arg] for arg in node.args), **node.attributes)
            new[node].name = new[node].name or node.name
    return tuple(new[node] for node in outputs)
