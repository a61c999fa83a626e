"""Which values an integer input can take: found from how it is used as an index.

In: the nodes of a graph.  Out: for each integer input the extents it indexes, and the numbers it
is compared with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType, int64
from symgrad.ir.graph import Node

_CARRIERS = frozenset(("expand", "reshape", "permute", "slice", "concat", "diagonal", "cast"))
_RELATIONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))


@dataclass
class IntegerUse:
    """How one integer input is used.

    ``dtype``: whose range it keeps to.  ``extents``: the sizes that it indexes as it is, so that
    it must stay below them.  ``likely``: sizes that it indexes after a choice, or whose ramp it is
    compared with.  ``literals``: numbers it is compared with.
    """

    dtype: DType = int64
    extents: list[Dim] = field(default_factory=list)
    likely: list[Dim] = field(default_factory=list)
    literals: list[int] = field(default_factory=list)

    @property
    def bounds(self) -> list[Dim]:
        """The extents that may be taken for its range: the likely ones unless it has marks.

        An input that is compared with numbers, such as an index to be ignored, may well have
        values outside.
        """
        if self.extents or any(number < 0 for number in self.literals):
            return self.extents
        return self.likely


def integer_uses(nodes: Iterable[Node]) -> dict[str, IntegerUse]:
    """The uses of every integer input, by name.  ``nodes``: arguments first."""
    order = list(nodes)
    direct: dict[Node, frozenset[str]] = {}
    chosen: dict[Node, frozenset[str]] = {}
    found: dict[str, IntegerUse] = {}
    for node in order:
        if not node.dtype.is_integer:
            continue
        if node.op == "input":
            name = node.attributes["name"]
            direct[node] = chosen[node] = frozenset((name,))
            found[name] = IntegerUse(node.dtype)
        if node.op in _CARRIERS:
            direct[node] = _union(direct, node.args)
        if node.op in _CARRIERS or node.op in _CHOICES:
            chosen[node] = _union(chosen, node.args)
    for node in order:
        for name, extent in _indexed(node, direct):
            found[name].extents.append(extent)
        for name, extent in _indexed(node, chosen):
            found[name].likely.append(extent)
        if node.op in _RELATIONS:
            _compared(node, chosen, found)
    return found


_CHOICES = frozenset(("where", "maximum", "minimum", "mod", "mul"))


def _union(sources: dict[Node, frozenset[str]], args: Iterable[Node]) -> frozenset[str]:
    return frozenset[str]().union(*(sources.get(arg, frozenset()) for arg in args))


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
                found[name].likely.append(Dim.of(origin.attributes["length"]))
            elif origin.op == "constant":
                found[name].literals.append(int(origin.attributes["value"].value))


def _origin(node: Node) -> Node:
    """What a node was broadcast or reshaped from."""
    while node.op in ("expand", "reshape", "permute", "cast"):
        node = node.args[0]
    return node
