"""What an elementwise backward multiplies the incoming gradient by.

In: a gradient, the incoming gradient, the input.  Out: a node, or None where the gradient is not
made of one product for each element.
"""

from __future__ import annotations

from symgrad.ir.graph import Node, ancestors
from symgrad.ops.record import get
from symgrad.proof.judge.protocol import is_zero


def multiplier(gradient: Node, weight: Node, given: Node) -> Node | None:
    """``c`` of ``gradient == c * weight``, each element of it computed from that of ``given``."""
    found = _Factor(weight).of(gradient) if gradient.shape == weight.shape == given.shape else None
    if found is None or not _is_elementwise(found, given):
        return None
    return found


def _is_elementwise(node: Node, given: Node) -> bool:
    """Is each element computed from one element of ``given``, and from numbers?"""
    below = ancestors([node])
    moving = {given}
    for one in below:
        alien = one.op == "input" and one.rank and one != given
        if alien or (one.op == "draw" and one.shape != given.shape):
            return False
        if any(arg in moving for arg in one.args):
            moving.add(one)
            if get(one.op).kind != "elementwise" or one.shape != given.shape:
                return False
    return given in below


class _Factor:
    """The factors of nodes that are linear in a weight, for how they are built."""

    def __init__(self, weight: Node) -> None:
        self.weight = weight

    def of(self, node: Node) -> Node | None:
        """The factor of the weight in a node; None where it does not show."""
        if node == self.weight:
            return node.graph.lift(1, node)
        if node.shape != self.weight.shape:
            return None
        if node.op in ("neg", "cast"):
            inner = self.of(node.args[0])
            return inner if inner is None or node.op == "cast" else -inner
        if node.op in ("mul", "div"):
            return self._of_product(node)
        if node.op in ("add", "sub"):
            left, right = map(self.of, node.args)
            if left is None or right is None:
                return None
            return left + right if node.op == "add" else left - right
        return self._of_choice(node) if node.op == "where" else None

    def _depends(self, node: Node) -> bool:
        return self.weight in ancestors([node])

    def _of_product(self, node: Node) -> Node | None:
        left, right = node.args
        if self._depends(right):
            swapped = node.op == "mul" and not self._depends(left)
            left, right = (right, left) if swapped else (left, right)
        if self._depends(right):
            return None
        inner = self.of(left)
        if inner is None:
            return None
        if node.op == "div":
            return inner / right
        return right if left == self.weight else inner * right

    def _of_choice(self, node: Node) -> Node | None:
        asked, *arms = node.args
        if self._depends(asked):
            return None
        found = [arm if is_zero(arm) else self.of(arm) for arm in arms]
        if found[0] is None or found[1] is None:
            return None
        return node.graph.apply("where", asked, found[0], found[1])
