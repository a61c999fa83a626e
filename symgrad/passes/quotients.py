"""A derived backward reads quotients that forward computed, where it would make them anew.

In: a node of a gradient whose arguments are rewritten.  Out: a node of the same value over the
reals.

The derivative of ``y = e/s``, where ``s`` is computed from ``e``, is ``e*(g/s - ...)`` by the rules
of differentiation: ``y*(g - ...)``, which needs no ``e``.  The bits are others, so that each step
has to be proved (``proof.judge.same``) before it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from symgrad.ir.dim import Dim
from symgrad.ir.graph import Node, ancestors
from symgrad.passes.rules import build

_DEEPEST = 24
"""How many operations between a product and what it is divided by are looked through."""
_LINEAR = {"neg": 1, "div": 1, "mul": 2}
"""How many arguments of an operation, the first ones, it is linear in, each by itself."""
_MOVES = ("expand", "reshape", "sum")


class Quotients:
    """Finds what is put for nodes.

    ``outputs``: of forward, which stays as it is.  ``admits``: may the second node be put for the
    first?  ``steps``: takes what is put for what.
    """

    def __init__(
        self, outputs: Iterable[Node], admits: Callable[[Node, Node], bool], steps: dict[Node, Node]
    ) -> None:  # fmt: skip
        self._forward = frozenset(ancestors(outputs))
        self._admits = admits
        self._steps = steps

    def __call__(self, node: Node, readers: Mapping[Node, int]) -> Node:
        """What is put for a simple node of rewritten arguments."""
        if node.op != "mul" or node in self._forward or node in self._steps:
            return self._steps.get(node, node)
        found = next(self._candidates(node), None)
        if found is None or not self._admits(node, found):
            return node
        self._steps[node] = found
        return found

    def _candidates(self, node: Node) -> Iterator[Node]:
        """``(e/s)*g`` for ``e*(g/s)``."""
        for e, rest in (node.args, node.args[::-1]):
            for divisor in self._divisors(rest):
                quotient = node.graph.find("div", (e, divisor), ())
                if quotient is None or quotient not in self._forward:
                    continue
                if (undivided := self._undivided(rest, divisor)) is not None:
                    yield build("mul", quotient, undivided)

    def _divisors(self, node: Node, depth: int = 0) -> Iterator[Node]:
        """What forward computes and the first term of a sum of products is divided by."""
        if node in self._forward or depth == _DEEPEST:
            return
        if node.op == "div":
            yield node.args[1]
        for arg in node.args[: 1 if node.op in ("add", "sub") else _LINEAR.get(node.op, 0)]:
            yield from self._divisors(arg, depth + 1)

    def _undivided(self, node: Node, by: Node, depth: int = 0) -> Node | None:
        """A sum of products that are all divided by ``by``, without that; else None."""
        if node in self._forward or depth == _DEEPEST:
            return None
        args = node.args
        if node.op == "div" and args[1] is by:
            return args[0]
        if node.op in _MOVES:
            moved = _before(node, by)
            found = None if moved is None else self._undivided(args[0], moved, depth + 1)
            return None if found is None else build(node.op, found, **node.attributes)
        if node.op in ("add", "sub"):
            terms = [self._undivided(arg, by, depth + 1) for arg in args]
            both = [term for term in terms if term is not None]
            return build(node.op, *both) if len(both) == 2 else None
        for place, arg in enumerate(args[: _LINEAR.get(node.op, 0)]):
            if (found := self._undivided(arg, by, depth + 1)) is not None:
                return build(node.op, *args[:place], found, *args[place + 1 :])
        return None


def _before(node: Node, by: Node) -> Node | None:
    """What ``by``, which has the shape of a move, is for the argument of that move."""
    shape = node.args[0].shape
    if node.op == "reshape":
        return build("reshape", by, shape=shape)
    if node.op == "expand":
        wide = by.op == "expand" and by.args[0].shape == shape
        return by.args[0] if wide else None
    axes = node.attributes["axes"]
    kept = tuple(Dim.of(1) if axis in axes else size for axis, size in enumerate(shape))
    return by.graph.expand(build("reshape", by, shape=kept), shape)
