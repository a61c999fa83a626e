"""Gradients inside a trace of a function of tensors: differentiation of the graph so far.

In: symbolic tensors.  Out: symbolic tensors: what ``tape.gradients.grad`` gives outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.autodiff import recorded_vjp
from symgrad.budgets import MOST_UNROLLED
from symgrad.errors import UnsupportedOpError
from symgrad.frontend.history import GRADIENT, History, unlinked
from symgrad.frontend.lift import as_node
from symgrad.frontend.session import NeedsHistories, Session, active
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.ir.graph import Node
from symgrad.tensor import errors
from symgrad.tensor.tensor import Tensor
from symgrad.tensor.trace.lifting import LiftingSession, NeedsNumbers, Untraceable


def is_symbolic(value: Any) -> bool:
    """Is it a tensor of a trace?"""
    return isinstance(value, SymbolicTensor)


def is_tensor(value: Any) -> bool:
    """Is it a tensor, eager or of a trace?"""
    return isinstance(value, (Tensor, SymbolicTensor))


def recorded_trace() -> tuple[Session, History]:
    """The trace in progress, of a function of tensors or of a backward, and its history.

    Raises NeedsHistories where it has none, UnsupportedOpError in forward.
    """
    session = active()
    assert session is not None
    if session.history is None:
        raise NeedsHistories
    if not session.history.following:
        raise UnsupportedOpError("gradients are asked for in forward, which is not recorded")
    return session, session.history


def leaf(value: SymbolicTensor, level: object = None) -> SymbolicTensor:
    """The same value to differentiate by, at whatever level of derivatives."""
    _, history = recorded_trace()
    return fresh(history.renewed(value.node))


def filled(like: SymbolicTensor, number: int) -> SymbolicTensor:
    """A constant in the shape and dtype of a tensor."""
    session, _ = recorded_trace()
    return fresh(session.graph.lift(number, like.node))


def basis(value: SymbolicTensor) -> list[SymbolicTensor]:
    """For each element a tensor that is 1 there and 0 elsewhere.

    Raises NeedsNumbers where sizes are symbols, Untraceable where there are too many, or for a
    trace that is not one of a function of tensors.
    """
    session = active()
    if not isinstance(session, LiftingSession):
        raise Untraceable("gradients are asked for while a Function is traced")
    names = {name for size in value.node.shape for name in size.sizes}
    if names:
        raise NeedsNumbers(frozenset(session.sizes[name] for name in names))
    shape = tuple(int(size) for size in value.shape)
    count = int(np.prod(shape))
    if count > MOST_UNROLLED:
        raise Untraceable(f"a Jacobian of {count} rows inside")
    rows = np.eye(count, dtype=str(value.dtype))
    return [fresh(as_node(row.reshape(shape))) for row in rows]


def grad(
    outputs: Sequence[Any], inputs: Sequence[Any], vectors: Sequence[Any], *, unused: bool,
    zeros: bool, create: bool = True,
) -> tuple[Any, ...]:  # fmt: skip
    """The gradients of ``outputs`` by ``inputs``; ``vectors``: None for a number's, which is 1.

    ``unused``: None for an input that is not used; ``zeros``: zeros; ``create``: in a backward,
    they have a history themselves.  Raises AutogradError, UnsupportedOpError.
    """
    session, history = recorded_trace()
    nodes = [as_node(output) for output in outputs]
    cotangents = [
        _cotangent(session, node, vector) for node, vector in zip(nodes, vectors, strict=True)
    ]
    wanted = [_leaf(one) for one in inputs]
    found = recorded_vjp(nodes, cotangents, wanted, history.rule)
    results: list[Any] = []
    for number, (gradient, node) in enumerate(zip(found, wanted, strict=True)):
        if gradient is None and not unused and not zeros:
            raise errors.AutogradError(errors.UNUSED.format(number=number))
        if gradient is None and zeros:
            gradient = session.graph.lift(0, node)
        results.append(None if gradient is None else _result(session, gradient, create))
    return tuple(results)


def backward(
    outputs: Sequence[Any], vectors: Sequence[Any], inputs: Sequence[Any] | None, *, create: bool
) -> None:  # fmt: skip
    """Add the gradients of ``outputs`` to ``inputs``, or to the leaves that backward made.

    Raises AutogradError, UnsupportedOpError.
    """
    _, history = recorded_trace()
    leaves = history.leaves if inputs is None else list(inputs)
    if not leaves:
        raise UnsupportedOpError("backward is called without a tensor that is a leaf of the trace")
    found = grad(outputs, leaves, vectors, unused=True, zeros=False, create=create)
    for leaf, gradient in zip(leaves, found, strict=True):
        if gradient is not None:
            leaf.grad = gradient if leaf.grad is None else leaf.grad + gradient


def _result(session: Session, gradient: Node, create: bool) -> SymbolicTensor:
    found = fresh(gradient)
    return found if create or isinstance(session, LiftingSession) else unlinked(found, GRADIENT)


def _cotangent(session: Session, node: Node, vector: Any) -> Node:
    if vector is None:
        if node.type.size != 1:
            raise errors.AutogradError(errors.NOT_SCALAR)
        return session.graph.lift(1, node)
    found = as_node(vector, node.dtype)
    if found.shape != node.shape:
        raise errors.AutogradError(
            f"a vector of shape {list(found.shape)} for an output of shape {list(node.shape)}"
        )
    return found


def _leaf(value: Any) -> Node:
    """The node of something to differentiate by, which nothing else computes."""
    node = value.node if isinstance(value, SymbolicTensor) else None
    if node is None or node.op not in ("input", "applied"):
        if isinstance(active(), LiftingSession):
            raise Untraceable("it differentiates by something that it computes")
        raise UnsupportedOpError("backward differentiates by something that it computes")
    return node
