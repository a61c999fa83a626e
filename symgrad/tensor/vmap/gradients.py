"""Gradients inside ``vmap``: those of all elements of a batch at once.

In: batched outputs, inputs and vectors.  Out: batched gradients.

An element of the outputs depends on the same element of the inputs only, so that one backward of
the whole batch gives the gradients of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.tensor import errors
from symgrad.tensor.batched import (
    BatchedTensor,
    Level,
    VmapError,
    batched,
    deepest,
    enclosed,
    physical,
)
from symgrad.tensor.tape import gradients
from symgrad.tensor.tensor import Tensor, wrap


def batched_grad(
    roots: Sequence[Any], wanted: Sequence[Any], given: Sequence[Any], *, keep: bool, create: bool,
    unused: bool | None, zeros: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """``gradients.grad`` where a tensor is batched.  Raises VmapError, AutogradError."""
    level = deepest([*roots, *wanted])
    if level is None:  # vectors alone: they are carried through a backward that is recorded
        found = _ordinary(roots, wanted, given, True, True, unused, zeros)
        return found if create else tuple(_detached(one) for one in found)
    starts = [_vector(root, vector, level) for root, vector in zip(roots, given, strict=True)]
    whole_roots = [physical(root, level) for root in roots]
    whole_wanted = [physical(one, level) for one in wanted]
    if any(has for _, has in whole_roots) and not all(has for _, has in whole_wanted):
        raise VmapError(
            "vmap: a gradient by a tensor that is the same for all elements of the batch, of an "
            "output that is not",
            hint="use sg.grad or sg.vjp, or pass the tensor with in_dims",
        )
    found = _ordinary(
        [one for one, _ in whole_roots], [one for one, _ in whole_wanted], starts, keep, create,
        unused, zeros,
    )  # fmt: skip
    return tuple(
        enclosed(one, level) if isinstance(one, Tensor) and has else one
        for one, (_, has) in zip(found, whole_wanted, strict=True)
    )


def _ordinary(
    roots: Sequence[Any], wanted: Sequence[Any], given: Sequence[Any], keep: bool, create: bool,
    unused: bool | None, zeros: bool,
) -> tuple[Any, ...]:  # fmt: skip
    if deepest([*roots, *wanted]) is None and any(isinstance(v, BatchedTensor) for v in given):
        return gradients.recorded_grad(roots, wanted, given, unused, zeros)
    return gradients.grad(
        roots, wanted, given, retain_graph=keep, create_graph=create, allow_unused=unused,
        materialize_grads=zeros,
    )  # fmt: skip


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value


def _vector(root: Tensor, vector: Any, level: Level) -> Any:
    """The vector for the whole batch of an output."""
    _, has = physical(root, level)
    if vector is None:
        if root.numel() != 1:
            raise errors.AutogradError(errors.NOT_SCALAR)
        shape = ((level.size,) if has else ()) + tuple(root.shape)
        return wrap(np.ones(shape, str(root.dtype)))
    if tuple(vector.shape) != tuple(root.shape):
        raise errors.AutogradError(
            f"Mismatch in shape: a vector of shape {vector.shape} for an output of shape "
            f"{root.shape}."
        )
    found, vector_has = physical(vector, level)
    if has and not vector_has:
        return _repeated(vector, level)
    if vector_has and not has:
        raise VmapError(
            "vmap: a vector that differs from element to element for an output that does not, "
            "beside other outputs",
            hint="call sg.vjp inside of vmap",
        )
    return found


def _repeated(vector: Tensor, level: Level) -> Any:
    """A vector that is the same for all elements, once for each, below deeper levels."""
    if isinstance(vector, BatchedTensor) and vector._level.depth > level.depth:
        inner = _repeated(vector._value, level)
        return batched(inner.movedim(1, 0), vector._level)
    return vector.expand((level.size, *vector.shape))
