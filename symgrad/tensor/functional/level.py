"""Levels of differentiation: what a derivative of a function is taken by, and what outlives it.

In: the tensors that a derivative is taken by; later, what it gives.  Out: the same tensors, each
behind an ``Entrance`` of its own; results, which keep a history exactly if something outside of the
level is differentiated, too.

A gradient by such a tensor counts what passes its entrance and nothing else, so that derivatives by
the same value at different levels are never taken for one another, however functions close over
them.  An entrance leads on to where its tensor came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from symgrad.interpreters import interpreter_of
from symgrad.tensor import errors
from symgrad.tensor.batched import changed, innermost
from symgrad.tensor.modes import enable_grad, state
from symgrad.tensor.tape.node import AccumulateGrad, Edge, Grad, Node, edge_of
from symgrad.tensor.tensor import Tensor
from symgrad.tensor.trace.symbolic import is_symbolic, is_tensor


class Level:
    """One derivative of a function; a block in which the function runs, and is recorded.

    ``recorded``: were operations recorded outside when it began?  ``live``: is the block entered?
    """

    def __init__(self) -> None:
        self.recorded = state.grad_enabled
        self.live = False
        self._recording = enable_grad()

    def __enter__(self) -> Level:
        self.live = True
        state.levels = (*state.levels, self)
        self._recording.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._recording.__exit__(*error)
        state.levels = state.levels[:-1]
        self.live = False

    def begin(self, value: Any) -> Any:
        """The same tensor, to differentiate by.  Raises AutogradError where it has no floats."""
        if not value.is_floating_point():
            raise errors.AutogradError("only Tensors of floating point dtype can require gradients")
        return interpreter_of((value,)).leaf(value, self)

    def enter(self, value: Tensor) -> Tensor:
        """An array's tensor as a leaf inside, whose history outside is behind an entrance."""
        entrance = Entrance(self, value)
        found = value.detach().requires_grad_()
        found._accumulator = lambda: entrance
        return found


class Entrance(Node):
    """Where a level begins: a leaf inside, whose gradient is passed on to the value outside."""

    __slots__ = ("level",)

    def __init__(self, level: Level, value: Tensor) -> None:
        edge = edge_of(value) if level.recorded else None
        super().__init__((edge,), ((value._array.shape, value._array.dtype),))
        self.level = level

    def backward(self, grads: list[Grad], needed: Sequence[bool], record: bool) -> Sequence[Grad]:
        """The gradient itself."""
        return grads


def leads_out(values: Iterable[Any], *, perhaps: bool = False) -> bool:
    """Do the values depend on a leaf, or on what a level in progress is taken by?

    ``perhaps``: may their gradients depend on one?  A hand-written backward may read anything.
    """
    edges: list[Edge | None] = []
    for value in values:
        if is_symbolic(value):
            return True
        edges.append(edge_of(innermost(value)))
    seen: set[Node] = set()
    while edges:
        edge = edges.pop()
        if edge is None or edge[0] in seen:
            continue
        node = edge[0]
        seen.add(node)
        if isinstance(node, AccumulateGrad) or (isinstance(node, Entrance) and node.level.live):
            return True
        if perhaps and node.opaque:
            return True
        edges.extend(node.edges)
    return False


def settled(value: Any) -> Any:
    """A result as it is outside of its level: with its history where that leads out."""
    if not is_tensor(value) or not value.requires_grad:
        return value
    if not state.grad_enabled or not leads_out([value]):
        return value.detach()
    return value if is_symbolic(value) else changed(_left, value)


def _left(value: Tensor) -> Tensor:
    """The tensor; what a level is taken by is outside no leaf, but what came in there."""
    edge = edge_of(value)
    if edge is None or not isinstance(edge[0], Entrance) or not value.is_leaf:
        return value
    found = value.detach()
    found._grad_fn, found._output_number = edge
    return found
