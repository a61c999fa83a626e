"""Initial values of parameters, under torch's names.

In: a tensor.  Out: the same, filled in place; ``sg.manual_seed`` makes it reproducible.

Xavier: Glorot and Bengio (2010).  Kaiming: He and others (2015).
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

import symgrad as sg
from symgrad.nn.errors import ModuleValueError
from symgrad.tensor import Tensor
from symgrad.tensor.modes import no_grad

_GAINS = {
    "linear": 1.0,
    "sigmoid": 1.0,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The gain for an activation.  Raises ModuleValueError for names that it does not know."""
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ModuleValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def _filled(tensor: Tensor, values: Any) -> Tensor:
    with no_grad():
        tensor.copy_(values)
    return tensor


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Uniform from ``a`` to ``b``."""
    return _filled(tensor, sg.rand(tensor.shape, dtype="float64") * (b - a) + a)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Normally distributed."""
    return _filled(tensor, sg.randn(tensor.shape, dtype="float64") * std + mean)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0
) -> Tensor:
    """Normally distributed between ``a`` and ``b``: what falls outside is drawn again."""
    found = np.full(tensor.shape, np.inf)
    if not a < b:
        raise ModuleValueError(f"trunc_normal_ needs a < b, got a={a}, b={b}")
    while (outside := (found < a) | (found > b)).any():
        found[outside] = sg.randn(int(outside.sum()), dtype="float64").numpy() * std + mean
    return _filled(tensor, sg.from_numpy(found))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """The same number everywhere."""
    return _filled(tensor, sg.full(tensor.shape, val, dtype=tensor.dtype))


def ones_(tensor: Tensor) -> Tensor:
    """1 everywhere."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """0 everywhere."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """1 on the diagonal, 0 elsewhere.  Raises ModuleValueError for what is no matrix."""
    if tensor.ndim != 2:
        raise ModuleValueError("Only tensors with 2 dimensions are supported")
    return _filled(tensor, sg.from_numpy(np.eye(*tensor.shape)))


def _fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs and outputs a weight has."""
    if tensor.ndim < 2:
        raise ModuleValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Uniform, of variance ``2 gain² / (inputs + outputs)``."""
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Normally distributed, of variance ``2 gain² / (inputs + outputs)``."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))))


def _kaiming_deviation(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    fans = dict(zip(("fan_in", "fan_out"), _fans(tensor), strict=True))
    if mode.lower() not in fans:
        raise ModuleValueError(
            f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']"
        )
    return calculate_gain(nonlinearity, a) / math.sqrt(fans[mode.lower()])


def _nothing(tensor: Tensor) -> bool:
    """Has it no elements?  Then torch warns, and so do we."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", UserWarning, stacklevel=3)
        return True
    return False


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Tensor:
    """Uniform, of deviation ``gain / sqrt(inputs)``."""
    if _nothing(tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_deviation(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Tensor:
    """Normally distributed, of deviation ``gain / sqrt(inputs)``."""
    if _nothing(tensor):
        return tensor
    return normal_(tensor, 0.0, _kaiming_deviation(tensor, a, mode, nonlinearity))
