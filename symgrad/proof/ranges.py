"""Which values an integer input can take: found from how it is used as an index.

In: the nodes of a graph.  Out: for each integer input the extents it indexes, and the numbers it
is compared with.  Imports: ``symgrad.ir``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from symgrad.ir.dim import Dim
from symgrad.ir.dtype import int64
from symgrad.ir.graph import Node

_CARRIERS = frozenset(
    ("expand", "reshape", "permute", "slice", "concat", "where", "diagonal", "cast")
)
_RELATIONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))


@dataclass
class IntegerUse:
    """How one integer input is used: the sizes it must stay below, the numbers it meets."""

    extents: list[Dim] = field(default_factory=list)
    literals: list[int] = field(default_factory=list)


def integer_uses(nodes: Iterable[Node]) -> dict[str, IntegerUse]:
    """The uses of every integer input, by name.  ``nodes``: arguments first."""
    order = list(nodes)
    sources: dict[Node, frozenset[str]] = {}
    found: dict[str, IntegerUse] = {}
    for node in order:
        if node.op == "input" and node.dtype == int64:
            name = node.attributes["name"]
            sources[node] = frozenset((name,))
            found[name] = IntegerUse()
        elif node.op in _CARRIERS and node.dtype == int64:
            sources[node] = frozenset[str]().union(
                *(sources.get(a, frozenset()) for a in node.args)
            )
    for node in order:
        for name, extent in _indexed(node, sources):
            found[name].extents.append(extent)
        if node.op in _RELATIONS:
            _compared(node, sources, found)
    return found


def _indexed(node: Node, sources: dict[Node, frozenset[str]]) -> list[tuple[str, Dim]]:
    """The integer inputs that ``node`` reads as indices, each with the extent it indexes."""
    if node.op == "index":
        shape = node.args[0].shape
    elif node.op == "index_add":
        shape = tuple(Dim.of(size) for size in node.attributes["shape"])
    else:
        return []
    return [
        (name, shape[axis])
        for axis, arg in enumerate(node.args[1:])
        for name in sorted(sources.get(arg, ()))
    ]


def _compared(
    node: Node, sources: dict[Node, frozenset[str]], found: dict[str, IntegerUse]
) -> None:
    for this, other in (node.args, node.args[::-1]):
        for name in sorted(sources.get(this, ())):
            origin = _origin(other)
            if origin.op == "iota":
                found[name].extents.append(Dim.of(origin.attributes["length"]))
            elif origin.op == "constant":
                found[name].literals.append(int(origin.attributes["value"].value))


def _origin(node: Node) -> Node:
    """What a node was broadcast or reshaped from."""
    while node.op in ("expand", "reshape", "permute", "cast"):
        node = node.args[0]
    return node
