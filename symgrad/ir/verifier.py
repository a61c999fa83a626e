"""The rules that every graph keeps, checked.

In: a graph.  Out: nothing, or GraphError.

    1. A node's index is its place in its graph, and it belongs to that graph.
    2. Arguments belong to the same graph and come first.
    3. Attributes are sorted by name and hashable.
    4. The op is registered, and infers the type that the node has.
    5. No two nodes are equal, and looking a node up finds that very node.
    6. Inputs are known by the name in their attribute; no name is given twice.
    7. Outputs belong to the graph.
"""

from __future__ import annotations

from symgrad.errors import GraphError, SymgradError
from symgrad.ir.graph import Graph, Node, intern_key
from symgrad.ir.registry import lookup


def verify(graph: Graph) -> None:
    """Check every rule.  Raises GraphError at the first breach, naming the node."""
    seen: dict[object, Node] = {}
    for place, node in enumerate(graph.nodes):
        _check_place(graph, place, node)
        _check_attributes(node)
        _check_type(node)
        key = intern_key(node.op, node.args, node.attrs)
        if (other := seen.setdefault(key, node)) is not node:
            raise GraphError(f"{node!r} equals {other!r}", location=node.location)
        if graph.find(node.op, node.args, node.attrs) is not node:
            raise GraphError(f"{node!r} is not interned", location=node.location)
    _check_inputs(graph)
    for name, node in graph.outputs.items():
        _check_member(graph, node, f"the output {name!r}")


def _check_member(graph: Graph, node: Node, what: str) -> None:
    inside = 0 <= node.index < len(graph.nodes) and graph.nodes[node.index] is node
    if node.graph is not graph or not inside:
        raise GraphError(f"{what} is {node!r} of another graph", location=node.location)


def _check_place(graph: Graph, place: int, node: Node) -> None:
    if node.index != place or node.graph is not graph:
        raise GraphError(f"{node!r} has index {node.index} at place {place}")
    for arg in node.args:
        _check_member(graph, arg, f"an argument of {node!r}")
        if arg.index >= place:
            raise GraphError(f"{node!r} comes before its argument {arg!r}", location=node.location)


def _check_attributes(node: Node) -> None:
    names = [name for name, _ in node.attrs]
    if names != sorted(set(names)):
        raise GraphError(f"the attributes of {node!r} are out of order: {names}")
    for name, value in node.attrs:
        try:
            hash(value)
        except TypeError:
            raise GraphError(f"the attribute {name!r} of {node!r} is not hashable") from None


def _check_type(node: Node) -> None:
    try:
        found = lookup(node.op).infer([arg.type for arg in node.args], node.attributes)
    except SymgradError as error:
        raise GraphError(f"{node!r} has no type: {error}", location=node.location) from error
    if found != node.type:
        raise GraphError(f"{node!r} should be {found}", location=node.location)


def _check_inputs(graph: Graph) -> None:
    stated = [node for node in graph.nodes if node.op == "input"]
    for node in stated:
        name = node.attributes["name"]
        if graph.inputs.get(name) is not node:
            raise GraphError(f"{node!r} is not known as the input {name!r}")
    if len(stated) != len(graph.inputs):
        raise GraphError(f"{len(graph.inputs)} inputs are known, {len(stated)} are there")
