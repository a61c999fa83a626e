"""Dead code: a graph with nothing but what its outputs need, and all of its inputs.

In: a graph.  Out: another.
"""

from __future__ import annotations

from symgrad.ir.graph import Graph, ancestors, copy_into


def eliminate_dead_code(graph: Graph) -> Graph:
    """A copy of what the outputs need.  Inputs stay, in their order, used or not."""
    result = Graph()
    inputs = list(graph.inputs.values())
    new = copy_into(result, [*inputs, *ancestors(graph.outputs.values())], {})
    for name, node in graph.outputs.items():
        result.output(name, new[node])
    return result
