"""Simpler graphs of the same value, to the bit.

In: a graph.  Out: another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from symgrad.ir.graph import Graph, Node, current_location
from symgrad.passes.dce import eliminate_dead_code
from symgrad.passes.rules import simplest


def simplify(graph: Graph) -> Graph:
    """Rewrite by ``passes.rules`` until none applies; what is then dead goes.

    Inputs, outputs and their names stay.
    """
    result = Graph()
    new = rewrite(result, [*graph.inputs.values(), *graph.nodes], {})
    for name, node in graph.outputs.items():
        result.output(name, new[node])
    return eliminate_dead_code(result)


def rewrite(
    target: Graph, nodes: Iterable[Node], known: Mapping[Node, Node]
) -> dict[Node, Node]:  # fmt: skip
    """Rebuild ``nodes`` (arguments first) in ``target``, simplified; where each has gone.

    ``known`` gives nodes already there.  Names and places in the source go with the values.
    """
    new = dict(known)
    for node in nodes:
        if node in new:
            continue
        token = current_location.set(node.location)
        built = target.apply(node.op, *(new[arg] for arg in node.args), **node.attributes)
        if node.op == "input":
            target.inputs.setdefault(node.attributes["name"], built)
        built = simplest(built)
        current_location.reset(token)
        if (built.name is None and built.args) or node.op == "input":
            built.name = node.name
        new[node] = built
    return new
