"""Joint graph -> forward graph and backward graphs, cut at what forward saves.

In: a graph that holds both directions.  Out: ``Split``.

The backward graph's inputs are the residuals and the cotangents that its gradients need; values
that are cheap and were not saved are computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.printer import fresh_name
from symgrad.ir.rewrite import extract, rewrite


@dataclass(frozen=True)
class ResidualNode:
    """A node of the joint graph that backward reads.

    ``source``: ``"input"``, ``"output"`` or ``"number"`` when it is one of the op's own, which
    ``position`` tells; else ``"kernel"``.
    """

    name: str
    node: Node
    source: str
    position: int


@dataclass(frozen=True)
class BackwardGraph:
    """One backward: ``gradients`` names its outputs by input position; the rest are positions."""

    graph: Graph
    mask: tuple[bool, ...]
    gradients: tuple[int, ...]
    residuals: tuple[int, ...]
    cotangents: tuple[int, ...]


@dataclass(frozen=True)
class Split:
    """Both directions of an op.

    ``forward`` yields the outputs, then the residuals of source kernel; ``inference`` the
    outputs alone.
    """

    inference: Graph
    forward: Graph
    residuals: tuple[ResidualNode, ...]
    backward: tuple[BackwardGraph, ...]


@dataclass(frozen=True)
class Joint:
    """What there is to split.

    ``gradients``: one for each input, None where there is none; ``cotangents``: one for each
    output, None where it has none; ``saved``: what forward keeps for backward; ``numbers``: the
    inputs of rank 0 that plain numbers are.
    """

    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    output_names: tuple[str, ...]
    cotangents: tuple[Node | None, ...]
    gradients: tuple[Node | None, ...]
    saved: tuple[Node, ...]
    numbers: tuple[Node, ...] = ()


def split(joint: Joint, masks: Sequence[tuple[bool, ...]]) -> Split:
    """Cut ``joint`` for each mask (one entry an input: is its gradient wanted?).

    The residuals are those of all masks together: a forward serves every backward.
    """
    residuals = _residuals(joint)
    extra = [residual for residual in residuals if residual.source == "kernel"]
    return Split(
        inference=_forward(joint, []),
        forward=_forward(joint, extra),
        residuals=residuals,
        backward=tuple(_backward(joint, residuals, mask) for mask in masks),
    )


def gradient_name(node: Node) -> str:
    """What the gradient of an input is called."""
    return f"grad_{node.name}"


def cotangent_names(joint: Joint) -> list[str]:
    """What the cotangent of each output is called: by its position, whatever the trace calls it."""
    taken = _own_names(joint)
    return [_fresh(f"grad_{name}", taken) for name in joint.output_names]


def _own_names(joint: Joint) -> set[str | None]:
    """The names of inputs, outputs and gradients."""
    inputs = {name for node in joint.inputs for name in (node.name, gradient_name(node))}
    return {*inputs, *joint.output_names, *(node.name for node in joint.numbers)}


def _residuals(joint: Joint) -> tuple[ResidualNode, ...]:
    """What the gradients reach first: saved nodes and inputs."""
    roots = [node for node in joint.gradients if node is not None]
    border = {*joint.saved, *joint.inputs, *joint.numbers}
    reached = [node for node in ancestors(roots, stop=border) if node in border]
    taken = {*_own_names(joint), *cotangent_names(joint)}
    found: list[ResidualNode] = []
    for node in reached:
        if node in joint.inputs:
            position = joint.inputs.index(node)
            found.append(ResidualNode(str(node.name), node, "input", position))
        elif node in joint.numbers:
            position = joint.numbers.index(node)
            found.append(ResidualNode(str(node.name), node, "number", position))
        elif node in joint.outputs:
            position = joint.outputs.index(node)
            found.append(ResidualNode(joint.output_names[position], node, "output", position))
        elif node.args:
            name = _fresh(node.name or f"residual_{len(found)}", taken)
            found.append(ResidualNode(name, node, "kernel", len(found)))
    return tuple(found)


def _fresh(wanted: str, taken: set[str | None]) -> str:
    """A fresh name, which is taken from now on."""
    name = fresh_name(wanted, taken)
    taken.add(name)
    return name


def _forward(joint: Joint, extra: Sequence[ResidualNode]) -> Graph:
    """A graph of the outputs and the extra residuals; every tensor input stays, used or not."""
    outputs = dict(zip(joint.output_names, joint.outputs, strict=True))
    outputs |= {one.name: one.node for one in extra}
    read = set(ancestors(outputs.values()))
    return extract(outputs, (*joint.inputs, *(node for node in joint.numbers if node in read)))


def _backward(
    joint: Joint, residuals: tuple[ResidualNode, ...], mask: tuple[bool, ...]
) -> BackwardGraph:  # fmt: skip
    wanted = {
        position: node
        for position, node in enumerate(joint.gradients)
        if mask[position] and node is not None
    }
    needed = ancestors(wanted.values(), stop=[residual.node for residual in residuals])
    there = set(needed)
    used = [i for i, residual in enumerate(residuals) if residual.node in there]
    cotangents = [i for i, node in enumerate(joint.cotangents) if node in there]
    given = [(residuals[i].name, residuals[i].node) for i in used]
    given += [
        (name, node)
        for name, node in zip(cotangent_names(joint), joint.cotangents, strict=True)
        if node is not None and node in there
    ]
    graph, known = Graph(), {}
    for name, node in given:
        known[node] = graph.input(name, node.type)
        known[node].location = node.location
    new = rewrite(graph, wanted.values(), known)
    for position, node in wanted.items():
        graph.output(_fresh(gradient_name(joint.inputs[position]), set(graph.inputs)), new[node])
    return BackwardGraph(graph, mask, tuple(wanted), tuple(used), tuple(cotangents))
