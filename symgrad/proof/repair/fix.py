"""A repair that has the right numbers, and how graphs are changed to make one.

In: nodes.  Out: ``Fix``, changed nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from symgrad.errors import SymgradError
from symgrad.ir.graph import Node, ancestors


@dataclass(frozen=True)
class Fix:
    """A node with the right numbers, and what was wrong.

    ``blamed``: the nodes whose code is to be put for ``{}`` in the words.
    """

    node: Node
    words: str
    blamed: tuple[Node, ...] = ()


def replaced(root: Node, old: Node, new: Node) -> Node | None:
    """``root`` with ``old`` replaced by ``new``."""
    if new.shape != old.shape or new.dtype != old.dtype:
        return None
    made: dict[Node, Node] = {old: new}
    for node in ancestors([root], stop=[old]):
        if node is old:
            continue
        args = [made.get(arg, arg) for arg in node.args]
        if any(a is not b for a, b in zip(args, node.args, strict=True)):
            made[node] = node.graph.apply(node.op, *args, **node.attributes)
            made[node].location = made[node].location or node.location
    return made.get(root)


def attempt(make: Callable[[], Node | None]) -> Node | None:
    """What ``make`` makes; None where shapes or types do not fit."""
    try:
        return make()
    except (SymgradError, ValueError, TypeError):
        return None


def complexity(node: Node) -> int:
    """How many nodes an expression has; expansions do not count, fractions count twice."""
    count = 0
    for part in ancestors([node]):
        if part.op == "constant":
            count += part.attributes["value"].value not in (0, 1, 2, -1)
        elif part.op not in ("expand", "input"):
            count += 1
    return count
