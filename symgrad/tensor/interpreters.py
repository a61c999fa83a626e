"""The interpreters of tensors: arrays with a tape, whole batches, tensors of a trace.

In: calls with tensors.  Out: what they return.  See ``symgrad.interpreters``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.frontend.session import current
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.interpreters import ATTRIBUTE
from symgrad.tensor import errors
from symgrad.tensor.apply import apply
from symgrad.tensor.batched import BatchedTensor, changed, spread
from symgrad.tensor.compiledop import call_op, inline_op
from symgrad.tensor.functional.level import Level
from symgrad.tensor.gradients import Asked, add_to_leaves, of_arrays, of_batches
from symgrad.tensor.plans.dispatch import in_trace, invoke, invoke_batched
from symgrad.tensor.plans.run import renew_history
from symgrad.tensor.tensor import Tensor, wrap
from symgrad.tensor.trace import symbolic
from symgrad.tensor.vmap.apply import apply_batched


class Eager:
    """Arrays: operations are plans that NumPy or kernels compute, and the tape records them."""

    level = 0
    operation = staticmethod(invoke)
    function = staticmethod(apply)
    compiled = staticmethod(call_op)
    gradients = staticmethod(of_arrays)
    backward = staticmethod(add_to_leaves)

    renew_history = staticmethod(renew_history)

    def constant(self, value: Tensor) -> Any:
        """Its array."""
        return value._array

    def filled(self, like: Tensor, number: int) -> Tensor:
        """The same for every element of a batch."""
        return wrap(np.full(like._array.shape, number, like._array.dtype))

    def basis(self, like: Tensor) -> list[Tensor]:
        """The same for every element of a batch."""
        rows = np.eye(like.numel(), dtype=like._array.dtype)
        return [wrap(row.reshape(like._array.shape)) for row in rows]

    def leaf(self, value: Tensor, level: Level | None = None) -> Tensor:
        """A leaf of the tape, or of the level; an element of every batch in progress."""
        if level is None:
            return spread(value).requires_grad_()  # type: ignore[no-any-return]
        return changed(level.enter, spread(value))


class Batched(Eager):
    """Elements of a batch: the plan of one element, over the whole batch."""

    level = 1
    operation = staticmethod(invoke_batched)
    function = staticmethod(apply_batched)
    gradients = staticmethod(of_batches)

    @staticmethod
    def backward(*arguments: Any) -> None:
        """Raises AutogradError."""
        raise errors.AutogradError(
            "vmap: backward() adds to .grad, which elements of a batch do not have",
            hint="use sg.grad or sg.vjp inside of vmap",
        )


class Traced:
    """Tensors of a trace: calls become nodes of its graph, Functions and ops are inlined."""

    level = 2
    compiled = staticmethod(inline_op)
    filled = staticmethod(symbolic.filled)
    basis = staticmethod(symbolic.basis)
    leaf = staticmethod(symbolic.leaf)

    def operation(self, name: str, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Apply an operation in the trace in progress."""
        return in_trace(call, args, kwargs)

    def function(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Raises ProtocolError: a trace in progress would have applied the Function itself."""
        current()
        raise AssertionError("a trace applies Functions itself")

    def gradients(
        self, roots: Sequence[Any], wanted: Sequence[Any], given: Sequence[Any], asked: Asked
    ) -> tuple[Any, ...]:
        """The gradients in the graph so far."""
        return symbolic.grad(
            roots, wanted, given, unused=bool(asked.unused), zeros=asked.zeros, create=asked.create
        )

    def backward(
        self, roots: Sequence[Any], given: Sequence[Any], inputs: Any, keep: bool, create: bool
    ) -> None:
        """Add them to the leaves of the trace."""
        symbolic.backward(roots, given, inputs, create=create)

    def constant(self, value: SymbolicTensor) -> Any:
        """Itself."""
        return value


for _kind, _interpreter in (
    (Tensor, Eager()),
    (BatchedTensor, Batched()),
    (SymbolicTensor, Traced()),
):
    setattr(_kind, ATTRIBUTE, _interpreter)
