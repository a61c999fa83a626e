"""Activations and softmax under torch's names and with its arguments.

In: tensors of any rank.  Out: tensors.
"""

from __future__ import annotations

import warnings
from typing import Any

from symgrad.nn import functions
from symgrad.nn.errors import ModuleShapeError, ModuleValueError
from symgrad.nn.functional.shapes import columns, on_rows


def _elementwise(function: Any, input: Any, *args: Any, inplace: bool = False) -> Any:
    if not inplace:
        return function.apply(input, *args)
    return input.copy_(function.apply(input.clone(), *args))


def relu(input: Any, inplace: bool = False) -> Any:
    """``max(x, 0)``."""
    return _elementwise(functions.ReLU, input, inplace=inplace)


def relu6(input: Any, inplace: bool = False) -> Any:
    """``clamp(x, 0, 6)``."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardtanh(
    input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Any:  # fmt: skip
    """``clamp(x, min_val, max_val)``.  Raises ModuleValueError where they are out of order."""
    if min_val > max_val:
        raise ModuleValueError("min_val cannot be greater than max_val")
    return _elementwise(functions.Hardtanh, input, min_val, max_val, inplace=inplace)


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """``x`` above 0, ``negative_slope x`` elsewhere."""
    return _elementwise(functions.LeakyReLU, input, negative_slope, inplace=inplace)


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """``x`` above 0, ``alpha (exp(x) - 1)`` elsewhere."""
    return _elementwise(functions.ELU, input, alpha, inplace=inplace)


def selu(input: Any, inplace: bool = False) -> Any:
    """The scaled ELU of Klambauer and others (2017)."""
    return _elementwise(functions.SELU, input, inplace=inplace)


def sigmoid(input: Any) -> Any:
    """``1 / (1 + exp(-x))``."""
    return functions.Sigmoid.apply(input)


def logsigmoid(input: Any) -> Any:
    """``log(sigmoid(x))``."""
    return functions.LogSigmoid.apply(input)


def tanh(input: Any) -> Any:
    """``tanh(x)``."""
    return functions.Tanh.apply(input)


def gelu(input: Any, approximate: str = "none") -> Any:
    """``x Φ(x)``, or its approximation by tanh.  Raises ModuleValueError for other names."""
    if approximate not in ("none", "tanh"):
        raise ModuleValueError("approximate argument must be either none or tanh.")
    return (functions.GELU if approximate == "none" else functions.GELUTanh).apply(input)


def silu(input: Any, inplace: bool = False) -> Any:
    """``x sigmoid(x)``."""
    return _elementwise(functions.SiLU, input, inplace=inplace)


def mish(input: Any, inplace: bool = False) -> Any:
    """``x tanh(softplus(x))``."""
    return _elementwise(functions.Mish, input, inplace=inplace)


def softplus(input: Any, beta: float = 1, threshold: float = 20) -> Any:
    """``log(1 + exp(beta x)) / beta``; ``x`` where ``beta x`` is above the threshold."""
    return functions.Softplus.apply(input, beta, threshold)


def softsign(input: Any) -> Any:
    """``x / (1 + |x|)``."""
    return functions.Softsign.apply(input)


def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """``clamp(x + 3, 0, 6) / 6``."""
    return _elementwise(functions.Hardsigmoid, input, inplace=inplace)


def hardswish(input: Any, inplace: bool = False) -> Any:
    """``x clamp(x + 3, 0, 6) / 6``."""
    return _elementwise(functions.Hardswish, input, inplace=inplace)


def prelu(input: Any, weight: Any) -> Any:
    """``x`` above 0, ``weight x`` elsewhere; one weight, or one for each index of axis 1."""
    if weight.numel() == 1:
        flat = functions.PReLU.apply(input.reshape(input.numel(), 1), weight.reshape(1))
        return flat.reshape(input.shape)
    if input.ndim < 2 or input.shape[1] != weight.numel():
        raise ModuleShapeError(
            "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
            f"{weight.numel()} and channel size = {input.shape[1] if input.ndim > 1 else 1}."
        )
    return columns(lambda rows: functions.PReLU.apply(rows, weight), input)


# -- softmax


def _axis(name: str, input: Any, dim: int | None) -> int:
    """The axis; without one, that which torch takes, with its warning."""
    if dim is None:
        warnings.warn(
            f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
            "dim=X as an argument.",
            UserWarning,
            stacklevel=3,
        )
        return 0 if input.ndim in (0, 1, 3) else 1
    return dim


def softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """``exp(x) / sum(exp(x))`` along an axis."""
    place = _axis("softmax", input, dim)
    return on_rows(functions.Softmax.apply, input if dtype is None else input.to(dtype), place)


def softmin(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """``softmax(-x)``."""
    return softmax(-input, _axis("softmin", input, dim), dtype=dtype)


def log_softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """The logarithm of softmax."""
    place = _axis("log_softmax", input, dim)
    return on_rows(functions.LogSoftmax.apply, input if dtype is None else input.to(dtype), place)
