"""Products that are read transposed alone are made transposed.

In: a graph.  Out: another, of the same value; sums may round differently.

The derivative of ``x @ w.t()`` by ``w`` is the transpose of a product: a matrix of the BLAS, and a
copy of it with its axes exchanged.  The product with its factors exchanged is that at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from symgrad.ir.graph import Graph, Node
from symgrad.ir.rewrite import extract, rewrite
from symgrad.ops.contraction import parse


def turned(graph: Graph) -> Graph:
    """The graph without permutations of contractions that nothing else reads."""
    result = Graph()
    readers = Counter(arg for node in graph.nodes for arg in node.args)
    readers.update(graph.outputs.values())

    def rule(node: Node, args: Sequence[Node]) -> Node | None:
        if node.op != "permute" or readers[node.args[0]] > 1:
            return None
        return at_once(result.apply(node.op, *args, **node.attributes))

    new = rewrite(result, graph.nodes, rule=rule, inputs=graph.inputs.values())
    outputs = {name: new[node] for name, node in graph.outputs.items()}
    return extract(outputs, result.inputs.values())


def at_once(node: Node) -> Node:
    """A permuted contraction as one with its axes in that order; any other node as it is."""
    if node.op != "permute" or node.args[0].op != "einsum":
        return node
    (product,) = node.args
    left, right, labels = parse(product.attributes["spec"])
    made = "".join(labels[axis] for axis in node.attributes["axes"])
    return node.graph.apply("einsum", *product.args, spec=f"{left},{right}->{made}")
