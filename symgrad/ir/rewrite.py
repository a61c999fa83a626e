"""Graph rewriting: nodes copied or replaced, into another graph or into their own.

In: nodes, what is known of them, a rule.  Out: the node that stands for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from symgrad.ir.dim import Atom, Dim
from symgrad.ir.graph import Follow, Graph, Node, all_args, ancestors, current_location
from symgrad.ir.types import TensorType

Rule = Callable[[Node, Sequence[Node]], "Node | None"]
"""What stands for a node, given what stands for its arguments; None: a copy of it does."""


def rewrite(
    target: Graph, roots: Iterable[Node], known: Mapping[Node, Node] | None = None,
    rule: Rule | None = None, *, inputs: Iterable[Node] = (), follow: Follow = all_args,
    sizes: Mapping[Atom, Dim] | None = None, named: bool = True,
) -> dict[Node, Node]:  # fmt: skip
    """What stands in ``target`` for ``roots`` and all that they need, arguments first.

    ``target`` may be the graph that the nodes are in; what does not change is then shared.
    ``known``: what stands for some nodes; what only these need is not visited.
    ``inputs``: nodes that come first, needed or not.
    ``follow``: the arguments of a node that are needed, which a rule gets.
    ``sizes``: symbols replaced in all attributes.  Raises ShapeError where a shape does not fit.
    ``named``: what stands for a node takes its name, unless it has one.
    """
    new = dict(known or {})
    put = sizes or {}
    for node in (*inputs, *ancestors(roots, stop=new, follow=follow)):
        if node in new:
            continue
        args = [new[arg] for arg in follow(node)]
        token = current_location.set(node.location or current_location.get())
        try:
            made = None if rule is None else rule(node, args)
            if made is None:
                made = _copied(target, node, args, put)
        finally:
            current_location.reset(token)
        if named:
            made.name = made.name or node.name
        made.location = made.location or node.location
        new[node] = made
    return new


def extract(outputs: Mapping[str, Node], inputs: Iterable[Node] = ()) -> Graph:
    """A graph of nothing but ``inputs``, used or not, in this order, and what ``outputs`` need."""
    graph = Graph()
    new = rewrite(graph, outputs.values(), inputs=inputs)
    for name, node in outputs.items():
        graph.output(name, new[node])
    return graph


def _copied(target: Graph, node: Node, args: Sequence[Node], sizes: Mapping[Atom, Dim]) -> Node:
    if node.graph is target and not sizes and tuple(args) == node.args:
        return node
    if not sizes:
        made = target.copy(node, args)
    else:
        attributes = {name: _substituted(value, sizes) for name, value in node.attrs}
        made = target.apply(node.op, *args, **attributes)
    if node.op == "input":
        target.inputs.setdefault(made.attributes["name"], made)
    return made


def _substituted(value: Any, sizes: Mapping[Atom, Dim]) -> Any:
    """An attribute with size symbols replaced in all Dims that it holds."""
    if isinstance(value, Dim):
        return value.substitute(sizes)
    if isinstance(value, TensorType):
        return replace(value, shape=tuple(size.substitute(sizes) for size in value.shape))
    if isinstance(value, tuple):
        return tuple(_substituted(item, sizes) for item in value)
    return value
