"""Simpler graphs of the same value, to the bit.

In: a graph.  Out: another.
"""

from __future__ import annotations

from collections.abc import Sequence

from symgrad.ir.graph import Graph, Node
from symgrad.ir.rewrite import extract, rewrite
from symgrad.passes.rules import simplest


def simplify(graph: Graph) -> Graph:
    """Rewrite by ``passes.rules`` until none applies; what is then dead goes.

    Inputs, outputs and their names stay.
    """
    result = Graph()

    def rule(node: Node, args: Sequence[Node]) -> Node | None:
        if node.op == "input":
            return None
        return simplest(result.apply(node.op, *args, **node.attributes))

    new = rewrite(result, graph.nodes, rule=rule, inputs=graph.inputs.values())
    outputs = {name: new[node] for name, node in graph.outputs.items()}
    return extract(outputs, result.inputs.values())
