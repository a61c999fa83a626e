"""Normalisations under torch's names and with its arguments.

In: tensors.  Out: tensors; running averages are written in place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from symgrad.frontend.dtypes import finfo
from symgrad.nn import functions
from symgrad.nn.errors import ModuleCallError, ModuleShapeError, ModuleSizeError
from symgrad.nn.functional.shapes import places
from symgrad.tensor.modes import no_grad


def _normalized_rows(input: Any, normalized_shape: Sequence[int], *params: Any) -> tuple[Any, ...]:
    """The input as a matrix of the normalised rows, and the parameters as vectors."""
    wanted = list(normalized_shape)
    rank = len(wanted)
    if not rank or input.ndim < rank or list(input.shape[input.ndim - rank :]) != wanted:
        words = ", ".join(str(size) for size in ("*", *wanted))
        raise ModuleShapeError(
            f"Given normalized_shape={wanted}, expected input with shape [{words}], but got input "
            f"of size{list(input.shape)}"
        )
    rows = math.prod(input.shape[: input.ndim - rank])
    flat = input if (rank, input.ndim) == (1, 2) else input.reshape(rows, math.prod(wanted))
    return flat, *(one if one is None or rank == 1 else one.flatten() for one in params)


def layer_norm(
    input: Any, normalized_shape: Sequence[int], weight: Any = None, bias: Any = None,
    eps: float = 1e-5,
) -> Any:  # fmt: skip
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last axes."""
    flat, scale, shift = _normalized_rows(input, normalized_shape, weight, bias)
    found = functions.LayerNorm.apply(flat, scale, shift, eps)
    return found if flat is input else found.reshape(input.shape)


def rms_norm(
    input: Any, normalized_shape: Sequence[int], weight: Any = None, eps: float | None = None
) -> Any:
    """``x / sqrt(mean(x²) + eps) * weight`` over the last axes."""
    flat, scale = _normalized_rows(input, normalized_shape, weight)
    small = finfo(input.dtype).eps if eps is None else eps
    found = functions.RMSNorm.apply(flat, scale, float(small))
    return found if flat is input else found.reshape(input.shape)


def _more_than_one(input: Any, count: int) -> None:
    if count == 1:
        raise ModuleSizeError(
            f"Expected more than 1 value per channel when training, got input size {input.shape}"
        )


def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Each group of channels of each example normalised, then scaled and shifted by channel."""
    if input.ndim < 2:
        raise ModuleShapeError(f"Expected at least 2 dimensions for input tensor but received "
                               f"{input.ndim}")  # fmt: skip
    examples, channels = input.shape[:2]
    if num_groups <= 0 or channels % num_groups:
        raise ModuleShapeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(input.shape)} and num_groups={num_groups}"
        )
    inner = channels // num_groups
    rest = math.prod(input.shape[2:])
    _more_than_one(input, examples * inner * rest)
    scale, shift = (
        None if one is None else one.reshape(num_groups, inner) for one in (weight, bias)
    )
    parts = input.reshape(examples, num_groups, inner, rest)
    return functions.GroupNorm.apply(parts, scale, shift, eps).reshape(input.shape)


def _update(running: Any, found: Any, momentum: float) -> None:
    """Move a running average towards what was found."""
    if running is not None:
        with no_grad():
            running.copy_(running * (1 - momentum) + found.detach() * momentum)


def batch_norm(
    input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Each channel (axis 1) normalised: over the batch in training, else by running averages.

    In training the running averages, where given, are moved towards the statistics of the batch,
    the variance divided by one less than the number of values.
    """
    flat = places(input)
    if not training:
        if running_mean is None or running_var is None:
            raise ModuleCallError(
                "Expected running_mean and running_var to be defined when training=False"
            )
        found = functions.BatchNormInference.apply(
            flat, running_mean, running_var, weight, bias, eps
        )
        return found.reshape(input.shape)
    count = flat.shape[0] * flat.shape[2]
    _more_than_one(input, count)
    found, mean, variance = functions.BatchNorm.apply(flat, weight, bias, eps)
    _update(running_mean, mean, momentum)
    if running_var is not None:
        _update(running_var, variance * (count / (count - 1)), momentum)
    return found.reshape(input.shape)


def instance_norm(
    input: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None,
    bias: Any = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Each channel of each example normalised; by running averages if not ``use_input_stats``."""
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    flat = places(input)
    count = flat.shape[2]
    if count == 1:
        raise ModuleSizeError(
            f"Expected more than 1 spatial element when training, got input size {input.shape}"
        )
    scale, shift = (None if one is None else one.unsqueeze(-1) for one in (weight, bias))
    found = functions.GroupNorm.apply(flat.unsqueeze(2), scale, shift, eps)
    if running_mean is not None or running_var is not None:
        with no_grad():
            mean = flat.mean(2)
            variance = ((flat - mean.unsqueeze(-1)) ** 2).sum(2) / (count - 1)
            _update(running_mean, mean.mean(0), momentum)
            _update(running_var, variance.mean(0), momentum)
    return found.reshape(input.shape)
