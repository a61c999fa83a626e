"""What limits a value: clips, and the integers that limit what is rounded.

In: nodes.  Out: what is limited, and by what; the same as choices of what is rounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.proof.altered import literal_value

UPWARD = {"gt": True, "ge": True, "lt": False, "le": False}
"""Does a comparison hold for greater values?"""


def limit_of(node: Node) -> tuple[Node, Node, bool] | None:
    """What a clip limits, the limit, a tensor maybe, and whether it is the least value.

    Of two tensors the limit is the one that less was computed for, or else the second.
    """
    if node.op == "relu":
        return node.args[0], node.graph.lift(0, node.args[0]), True
    if node.op in ("maximum", "minimum"):
        first, second = node.args
        sizes = [len(ancestors([unexpanded(one)])) for one in node.args]
        swapped = sizes[0] < sizes[1]
        value, limit = (second, first) if swapped else (first, second)
        return value, limit, node.op == "maximum"
    if node.op == "where" and node.args[0].op in UPWARD:
        compared, *arms = node.args
        value, limit = compared.args
        if {*arms} == {value, limit} and value is not limit:
            greater = arms[0] is (value if UPWARD[compared.op] else limit)
            return value, limit, greater
    return None


def unexpanded(node: Node) -> Node:
    """What is expanded, cast or reshaped in a node."""
    while node.op in ("expand", "cast", "reshape"):
        node = node.args[0]
    return node


class IntegerLimits:
    """A rule: what was rounded is limited by integers as what is rounded is.

    ``u.round().clamp(-8, 7)`` is -8 where ``u < -8``, 7 where ``u > 7``, and ``u.round()`` between.
    ``known``: which plain argument is meant by a node; one is taken for an integer there.  None:
    it is not.
    """

    def __init__(self, graph: Graph, known: Mapping[Node, Node] | None = None) -> None:
        self.graph, self.known = graph, known
        self.rounded: dict[Node, Node] = {}
        self.bounds: dict[Node, tuple[Node, bool]] = {}
        self.plain: dict[str, None] = {}

    def __call__(self, node: Node, args: Sequence[Node]) -> Node | None:
        """What stands for a node, whose arguments are ``args``."""
        if node.op in ("round", "floor", "ceil") and node.args[0].dtype.is_float:
            made = self.graph.copy(node, args)
            self.rounded[made] = args[0]
            return made
        if limit_of(node) is None:
            return None
        own = self.graph.copy(node, args)
        found = limit_of(own)
        if found is None or found[0] not in self.rounded or not self._is_integer(found[1]):
            return own
        value, limit, below = found
        inside, outer = self.rounded[value], self.bounds.get(value)
        if outer is not None:
            low, high = (limit, outer[0]) if below else (outer[0], limit)
            least, greatest = literal_value(low), literal_value(high)
            known = least is not None and greatest is not None
            if outer[1] is below or (known and least > greatest):  # type: ignore[operator]
                return own
        compared = self.graph.apply("lt" if below else "gt", inside, limit)
        made = self.graph.apply("where", compared, limit, value)
        self.rounded[made], self.bounds[made] = inside, (limit, below)
        return made

    def _is_integer(self, limit: Node) -> bool:
        """Is it one, or a plain argument that is taken for one?"""
        value = literal_value(limit)
        if value is not None:
            return value == int(value)
        if self.known is None:
            return False
        plain = unexpanded(limit)
        plain = self.known.get(plain, plain)
        if plain.op == "input" and not plain.rank:
            self.plain[plain.label] = None
            return True
        return False

    def said(self) -> str:
        """What is taken for granted of plain arguments."""
        if not self.plain:
            return ""
        kind = "integers" if len(self.plain) > 1 else "an integer"
        return f", for {kind} {' and '.join(self.plain)}"
