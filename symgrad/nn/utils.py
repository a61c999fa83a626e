"""Helpers around parameters, under torch's names: gradients kept small, parameters as one vector.

In: parameters.  Out: their gradients, changed in place; vectors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

import symgrad as sg
from symgrad.nn.errors import ModuleCallError
from symgrad.tensor import Tensor
from symgrad.tensor.modes import no_grad, state
from symgrad.tensor.tensor import wrap


def _gradients(parameters: Iterable[Tensor] | Tensor) -> list[Tensor]:
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [one._grad for one in given if one._grad is not None]


def get_total_norm(
    tensors: Iterable[Tensor] | Tensor, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """The norm of the norms of tensors, of rank 0.  Raises ModuleCallError if asked to."""
    given = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not given:
        return wrap(np.zeros((), str(state.dtype)))
    norms = [np.linalg.norm(one._array.reshape(-1), norm_type) for one in given]
    dtype = np.result_type(*(one._array.dtype for one in given))
    total = wrap(np.asarray(np.linalg.norm(np.array(norms), norm_type), dtype))
    if error_if_nonfinite and not math.isfinite(float(total)):
        raise ModuleCallError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grad_norm_(
    parameters: Iterable[Tensor] | Tensor, max_norm: float, norm_type: float = 2.0,
    error_if_nonfinite: bool = False, foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """Scale all gradients so that their norm together is at most ``max_norm``; the norm before."""
    grads = _gradients(parameters)
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    factor = min(float(max_norm) / (float(total) + 1e-6), 1.0)
    with no_grad():
        for grad in grads:
            grad.mul_(factor)
    return total


def clip_grad_value_(
    parameters: Iterable[Tensor] | Tensor, clip_value: float, foreach: bool | None = None
) -> None:
    """Clamp every element of every gradient to ``±clip_value``."""
    with no_grad():
        for grad in _gradients(parameters):
            grad.clamp_(-float(clip_value), float(clip_value))


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters one after another."""
    found: Any = sg.cat([one.reshape(-1) for one in parameters])
    return found  # type: ignore[no-any-return]


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copy the elements of a vector into parameters.  Raises ModuleCallError for other counts."""
    if not isinstance(vec, Tensor):
        raise ModuleCallError(f"expected a Tensor, but got: {type(vec).__name__}")
    given = list(parameters)
    if vec.numel() != sum(one.numel() for one in given):
        raise ModuleCallError(
            f"the vector has {vec.numel()} elements, the parameters {sum(p.numel() for p in given)}"
        )
    place = 0
    with no_grad():
        for one in given:
            part = vec.detach().reshape(-1)[place : place + one.numel()]
            one.copy_(part.reshape(one.shape))
            place += one.numel()
