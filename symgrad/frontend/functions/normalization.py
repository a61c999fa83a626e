"""Softmax and normalisations, composed of simpler operations.

In: tensors and axes.  Out: tensors.
"""

from __future__ import annotations

from typing import Any

from symgrad.errors import ShapeError
from symgrad.frontend.dtypes import as_dtype, finfo
from symgrad.frontend.functions.arithmetic import add, div, mul, neg, sub
from symgrad.frontend.functions.casting import converted
from symgrad.frontend.functions.reductions import mean, shift, sum
from symgrad.frontend.lift import as_tensor, elementwise
from symgrad.frontend.session import here
from symgrad.frontend.sizes import as_dim
from symgrad.frontend.table import operation
from symgrad.frontend.tensor import SymbolicTensor

Tensor = SymbolicTensor


def _in(dtype: Any, input: Any) -> Tensor:
    source = as_tensor(input)
    return source if dtype is None else converted(source, as_dtype(dtype))


@operation("softmax")
def softmax(input: Any, dim: Any = None, *, dtype: Any = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` along an axis, shifted by the greatest element."""
    place = _axis(dim)
    shifted = sub(_in(dtype, input), shift(_in(dtype, input), place))
    powers = elementwise("exp", shifted)
    return div(powers, sum(powers, place, True))


@operation("log_softmax")
def log_softmax(input: Any, dim: Any = None, *, dtype: Any = None) -> Tensor:
    """The logarithm of softmax."""
    place = _axis(dim)
    shifted = sub(_in(dtype, input), shift(_in(dtype, input), place))
    total = sum(elementwise("exp", shifted), place, True)
    return sub(shifted, elementwise("log", total))


@operation("softmin", method=False)
def softmin(input: Any, dim: Any = None) -> Tensor:
    """``softmax(-x)``."""
    return softmax(neg(input), _axis(dim))


def _axis(dim: Any) -> int:
    if not isinstance(dim, int):
        raise ShapeError("softmax needs an axis: dim=-1", location=here())
    return dim


def _last_axes(name: str, input: Tensor, normalized_shape: Any) -> tuple[int, ...]:
    """The axes that ``normalized_shape`` covers.  Raises ShapeError when it does not fit."""
    given = normalized_shape if isinstance(normalized_shape, (tuple, list)) else (normalized_shape,)
    wanted = tuple(map(as_dim, given))
    if input.node.shape[input.ndim - len(wanted) :] != wanted:
        raise ShapeError(
            f"{name} over {list(given)} of a tensor of shape {list(input.shape)}", location=here()
        )
    return tuple(range(input.ndim - len(wanted), input.ndim))


@operation("layer_norm", method=False)
def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:  # fmt: skip
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last axes."""
    source = as_tensor(input)
    axes = _last_axes("layer_norm", source, normalized_shape)
    centred = sub(source, mean(source, axes, True))
    spread = mean(elementwise("square", centred), axes, True)
    result = mul(centred, elementwise("rsqrt", add(spread, eps)))
    result = result if weight is None else mul(result, weight)
    return result if bias is None else add(result, bias)


@operation("rms_norm", method=False)
def rms_norm(
    input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None
) -> Tensor:  # fmt: skip
    """``x / sqrt(mean(x²) + eps) * weight`` over the last axes."""
    source = as_tensor(input)
    axes = _last_axes("rms_norm", source, normalized_shape)
    small = finfo(source.dtype).eps if eps is None else eps
    spread = mean(elementwise("square", source), axes, True)
    result = mul(source, elementwise("rsqrt", add(spread, small)))
    return result if weight is None else mul(result, weight)
