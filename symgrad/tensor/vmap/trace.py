"""``vmap`` while something is traced: one element is traced, its graph is then batched.

In: a function and symbolic tensors.  Out: symbolic tensors.

The element is traced into the graph in progress, so that derivatives inside are those of the
graph so far.  A Function with a backward of its own is not batched here: the record of the trace
would not know it any more.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from symgrad.frontend.session import Session, active
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.ir.dim import Dim
from symgrad.ir.graph import Node
from symgrad.ir.types import TensorType
from symgrad.passes.batch import Batched, batch, moved, widened
from symgrad.tensor import errors
from symgrad.tensor.errors import VmapError
from symgrad.tensor.modes import state
from symgrad.tensor.trace.lifting import LiftingSession, Untraceable
from symgrad.tensor.vmap import structures

_numbers = itertools.count()


def traced_vmap(
    func: Callable[..., Any], in_dims: Any, out_dims: Any, args: Sequence[Any], kwargs: Any
) -> Any:
    """What ``vmap(func, in_dims, out_dims)(*args, **kwargs)`` is in a trace.

    Raises Untraceable, VmapError for what has no graph over batches.
    """
    session: Any = active()
    assert isinstance(session, Session)
    axes, named_axes = structures.axes_of(in_dims, args), structures.first_axes(kwargs)
    elements = _Elements(session)
    given = structures.mapped(elements.take, args, axes)
    named = structures.mapped(elements.take, kwargs, named_axes)
    size = elements.size
    if size is None:
        raise errors.TensorValueError("vmap: at least one of in_dims must be a number")
    before = session.demanded.count
    result = func(*given, **named)
    out_axes = structures.broadcast(out_dims, result, "out_dims")
    nodes = [_node(value) for value, _ in structures.leaves(result, out_axes)]
    elements.check_unwritten()
    inputs = {element: Batched(whole, True) for element, whole in elements.whole.items()}
    demanded = session.demanded.taken_since(before)
    every = [*nodes, *(demand.node for demand, _ in demanded)]
    batched = batch(every, inputs, size, {"applied": partial(_unmarked, session)})
    for (demand, location), one in zip(demanded, batched[len(nodes) :], strict=True):
        session.demanded.note(demand._replace(node=one.node), location)
    found = iter(batched[: len(nodes)])

    def leave(value: Any, axis: int | None) -> SymbolicTensor:
        one = next(found)
        if axis is None and one.whole:
            raise errors.TensorValueError(
                "vmap: out_dims=None for a result that differs from element to element"
            )
        if axis is None:
            return fresh(one.node)
        whole = widened(one, size)
        return fresh(moved(whole, 0, axis % whole.rank))

    return structures.mapped(leave, result, out_axes)


class _Elements:
    """The inputs of one element, and the whole batches behind them."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.size: Dim | None = None
        self.whole: dict[Node, Node] = {}
        self.tensors: list[tuple[SymbolicTensor, Node]] = []

    def take(self, value: Any, axis: int | None) -> Any:
        """The element of an argument; what is not mapped over is itself."""
        if state.lifting:
            value = self.session.taken(value)
        if axis is None:
            return value
        node = _node(value)
        if not -node.rank <= axis < node.rank:
            raise errors.TensorValueError(
                f"vmap: got in_dim={axis} for an input, but that is a tensor of {node.rank} "
                "dimensions"
            )
        whole = moved(node, axis % node.rank, 0)
        if self.size is None:
            self.size = whole.shape[0]
        if whole.shape[0] != self.size:
            raise errors.TensorValueError(
                "vmap: Expected all tensors to have the same size in the mapped dimension, got "
                f"sizes {self.size} and {whole.shape[0]} for the mapped dimension"
            )
        name = f"element {next(_numbers)}"
        element = self.session.graph.input(name, TensorType(node.dtype, whole.shape[1:]))
        del self.session.graph.inputs[name]
        self.whole[element] = whole
        self.session.demanded.stands_for(name, whole)
        found = fresh(element)
        self.tensors.append((found, element))
        return found

    def check_unwritten(self) -> None:
        """Raises VmapError where an argument was written in place."""
        for tensor, element in self.tensors:
            if tensor.storage.node is not element:
                raise VmapError(
                    "vmap: in a trace, an argument cannot be written in place", hint="clone() it"
                )


def _node(value: Any) -> Node:
    if not isinstance(value, SymbolicTensor):
        raise errors.TensorValueError(
            f"vmap: tensors of the trace are needed, not a {type(value).__name__}"
        )
    return value.node


def _unmarked(session: Session, node: Node, args: Sequence[Batched], size: Dim) -> Node:
    """The value of a renewed tensor, whose mark is left out.

    A mark that does not depend on the elements is of a derivative outside, and is kept.  Raises
    Untraceable where the record says more of a node than its graph.
    """
    rule = None
    if isinstance(session, LiftingSession):
        rule = session.history.rule(node.attributes["rule"])
    if rule is None or rule.name != "renewed":
        raise Untraceable("vmap over a Function in a trace: its backward is written by hand")
    return widened(args[0], size)
