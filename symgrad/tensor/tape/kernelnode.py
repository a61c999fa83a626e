"""Compiled kernels behind the tape: an op called with tensors, and the node of its backward.

In: an op of kernels (compiled, or on NumPy), the tensors it is called with.  Out: tensors whose
backward runs the op's backward kernel.

The kernel for exactly the wanted gradients is chosen by the op itself.  Where the backward is to
be differentiated again, ``Kernels.differentiate`` computes the gradients as tensors with history.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from symgrad.errors import KernelArgumentError, KernelTypeError
from symgrad.ir.dtype import LISTED
from symgrad.runtime.batches import OverBatch
from symgrad.runtime.residuals import Residuals
from symgrad.tensor import errors
from symgrad.tensor.modes import state
from symgrad.tensor.tape.node import Grad, Node, SavedTensor, edge_of, named
from symgrad.tensor.tensor import DTYPES, Tensor, wrap

Mask = tuple[bool, ...]


class Kernels(Protocol):
    """An op on arrays, and how its backward is differentiated.

    ``op``: has ``inference``, ``forward`` and ``backward``; ``caller``: the careful way to call
    it; ``differentiable``: the inputs that have a gradient.
    """

    label: str
    op: Any
    differentiable: Mask

    def differentiate(
        self, inputs: Sequence[Tensor], cotangents: Sequence[Tensor | None], mask: Mask
    ) -> Sequence[Tensor | None]:
        """The gradients of the inputs in ``mask``, with histories; None for zero."""


def call(kernels: Kernels, tensors: Sequence[Tensor]) -> list[Tensor]:
    """The outputs of the op for these tensors, with a node behind them where one is needed."""
    arrays = [tensor._array for tensor in tensors]
    if not state.grad_enabled or not any(
        able and tensor.requires_grad
        for able, tensor in zip(kernels.differentiable, tensors, strict=True)
    ):
        return list(map(wrap, _several(kernels.op.inference(*arrays))))
    found, residuals = kernels.op.forward(*arrays)
    node = named(KernelNode, kernels.label)(kernels, tensors, residuals)
    results = list(map(wrap, _several(found)))
    for number, result in enumerate(results):
        if result._array.dtype.kind == "f":
            result._grad_fn, result._output_number = node, number
    node.save(tensors, results)
    return results


class KernelNode(Node):
    """One use of an op of kernels."""

    __slots__ = ("checked", "freed", "inputs", "kernels", "residuals")

    def __init__(
        self, kernels: Kernels, tensors: Sequence[Tensor], residuals: Residuals
    ) -> None:  # fmt: skip
        edges = tuple(
            edge_of(tensor) if able else None
            for able, tensor in zip(kernels.differentiable, tensors, strict=True)
        )
        super().__init__(edges, ())
        self.kernels = kernels
        self.residuals: Residuals | None = residuals
        self.inputs: tuple[SavedTensor, ...] = ()
        self.checked: tuple[SavedTensor, ...] = ()
        self.freed = False

    def save(self, tensors: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Note the inputs, and what of inputs and outputs backward reads."""
        self.outputs = tuple(
            (one._array.shape, one._array.dtype) if one._grad_fn is self else None
            for one in results
        )
        self.inputs = tuple([SavedTensor(tensor) for tensor in tensors])
        caller = self.kernels.op.caller
        case = caller.case_of(caller.op.name, self.residuals)
        checked = []
        for residual in case.residuals:
            if residual.source == "input":
                checked.append(self.inputs[residual.position])
            elif residual.source == "output":
                checked.append(SavedTensor(results[residual.position], is_output=True))
        self.checked = tuple(checked)

    def backward(self, grads: list[Grad], needed: Sequence[bool], record: bool) -> Sequence[Grad]:
        """The gradients of the inputs, by the backward kernel."""
        if self.freed:
            raise errors.FreedGraphError(errors.SECOND_BACKWARD)
        able = self.kernels.differentiable
        mask = tuple([bool(one and asked) for one, asked in zip(able, needed, strict=True)])
        if record and isinstance(self.residuals, OverBatch):
            name = self.kernels.op.caller.op.name
            raise KernelArgumentError(
                f"{name}: its backward over leading axes is not differentiated",
                hint="call it under sg.vmap, an axis at a time",
            )
        if record:
            inputs = [saved.tensor() for saved in self.inputs]
            return self.kernels.differentiate(inputs, grads, mask)
        for saved in self.checked:
            saved.checked()
        cotangents = [None if grad is None else np.asarray(grad) for grad in grads]
        found: Sequence[Grad] = self.kernels.op.backward(
            self.residuals, *cotangents, needs_input_grad=mask
        )
        return found

    def release(self) -> None:
        """Free what was saved."""
        self.freed = True
        self.residuals = None
        self.inputs = self.checked = ()


def as_tensors(where: str, values: Sequence[Any]) -> list[Tensor]:
    """Tensors, arrays among them as constants.  Raises KernelTypeError for anything else."""
    found = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (np.ndarray, np.generic)) and value.dtype in DTYPES:
            found.append(wrap(np.asarray(value)))
        else:
            raise KernelTypeError(
                f"{where} is called with a {type(value).__name__} beside a Tensor",
                hint=f"pass tensors, or arrays of {LISTED}",
            )
    return found


def _several(found: Any) -> Sequence[Any]:
    return found if isinstance(found, tuple) else (found,)
