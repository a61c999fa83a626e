"""Choices within choices of which the first one decides the second.

In: nodes.  Out: the same over the reals, with each condition asked once.

``y[x <= t] = 0; y[x > t] = 1`` writes every element, so that nothing is left of what y was:
``where(x > t, 1, where(x <= t, 0, y))`` is ``where(x > t, 1, 0)``.
"""

from __future__ import annotations

from collections.abc import Sequence

from symgrad.ir.expr import OPPOSITE, TURNED
from symgrad.ir.graph import Node
from symgrad.ir.rewrite import rewrite
from symgrad.ops.movement import bare


def asked_once(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes, in their graph, without branches that no real number leads to."""
    new = rewrite(nodes[0].graph, nodes, None, _rule) if nodes else {}
    return tuple(new[node] for node in nodes)


def _rule(node: Node, args: Sequence[Node]) -> Node | None:
    if node.op != "where":
        return None
    condition, *branches = args
    left = [
        _under(branch, condition, holds)
        for branch, holds in zip(branches, (True, False), strict=True)
    ]
    if all(one is other for one, other in zip(left, branches, strict=True)):
        return None
    return node.graph.apply("where", condition, *left)


def _under(node: Node, condition: Node, holds: bool) -> Node:
    """What a branch is where a condition holds, or does not."""
    while node.op == "where" and node.shape == condition.shape:
        known = _implied(node.args[0], condition)
        if known is None:
            break
        node = node.args[1 if known == holds else 2]
    return node


def _implied(asked: Node, known: Node) -> bool | None:
    """Does one condition hold where another one does, and only there (False: only elsewhere)?"""
    if asked is known:
        return True
    if asked.op not in OPPOSITE or known.op not in OPPOSITE:
        return None
    sides, others = ([bare(arg) for arg in one.args] for one in (asked, known))
    if sides == others:
        return False if asked.op == OPPOSITE[known.op] else None
    if sides == others[::-1]:
        turned = TURNED[known.op]
        return True if asked.op == turned else False if asked.op == OPPOSITE[turned] else None
    return None
