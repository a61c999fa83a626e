"""Activations and softmax as modules.

In: settings.  Out: modules.
"""

from __future__ import annotations

from typing import Any

import symgrad as sg
from symgrad.nn import functional as F
from symgrad.nn import init
from symgrad.nn.modules.module import Module
from symgrad.nn.parameter import Parameter


class _Activation(Module):
    """One operation of ``nn.functional``, given the ``settings`` in order."""

    operation: str
    settings: tuple[str, ...] = ()

    def forward(self, input: Any) -> Any:
        """The same shape."""
        return getattr(F, self.operation)(input, *map(self.__dict__.__getitem__, self.settings))


class _InPlace(_Activation):
    """An activation that may work in place; ``inplace`` is its last setting."""

    settings: tuple[str, ...] = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        """The settings."""
        words = [f"{name}={getattr(self, name)}" for name in self.settings if name != "inplace"]
        return ", ".join([*words, "inplace=True"] if self.inplace else words)


class ReLU(_InPlace):
    """``max(x, 0)``."""

    operation = "relu"


class ReLU6(_InPlace):
    """``clamp(x, 0, 6)``."""

    operation = "relu6"


class Hardtanh(_InPlace):
    """``clamp(x, min_val, max_val)``."""

    operation = "hardtanh"
    settings = ("min_val", "max_val", "inplace")

    def __init__(
        self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
    ) -> None:  # fmt: skip
        super().__init__(inplace)
        self.min_val, self.max_val = min_val, max_val


class LeakyReLU(_InPlace):
    """``x`` above 0, ``negative_slope x`` elsewhere."""

    operation = "leaky_relu"
    settings = ("negative_slope", "inplace")

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope


class ELU(_InPlace):
    """``x`` above 0, ``alpha (exp(x) - 1)`` elsewhere."""

    operation = "elu"
    settings = ("alpha", "inplace")

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha


class SELU(_InPlace):
    """The scaled ELU of Klambauer and others (2017)."""

    operation = "selu"


class SiLU(_InPlace):
    """``x sigmoid(x)``."""

    operation = "silu"


class Mish(_InPlace):
    """``x tanh(softplus(x))``."""

    operation = "mish"


class Hardsigmoid(_InPlace):
    """``clamp(x + 3, 0, 6) / 6``."""

    operation = "hardsigmoid"
    extra_repr = Module.extra_repr


class Hardswish(_InPlace):
    """``x clamp(x + 3, 0, 6) / 6``."""

    operation = "hardswish"
    extra_repr = Module.extra_repr


class Sigmoid(_Activation):
    """``1 / (1 + exp(-x))``."""

    operation = "sigmoid"


class LogSigmoid(_Activation):
    """``log(sigmoid(x))``."""

    operation = "logsigmoid"


class Tanh(_Activation):
    """``tanh(x)``."""

    operation = "tanh"


class Softsign(_Activation):
    """``x / (1 + |x|)``."""

    operation = "softsign"


class GELU(_Activation):
    """``x Φ(x)``, or its approximation by tanh."""

    operation = "gelu"

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        """The same shape."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """The approximation."""
        return f"approximate={self.approximate!r}"


class Softplus(_Activation):
    """``log(1 + exp(beta x)) / beta``; ``x`` where ``beta x`` is above the threshold."""

    operation = "softplus"
    _shown = settings = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold


class PReLU(Module):
    """``x`` above 0, ``weight x`` elsewhere; the weights are parameters."""

    _shown = ("num_parameters",)

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(sg.empty(num_parameters, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weights to their initial value."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Any) -> Any:
        """The same shape."""
        return F.prelu(input, self.weight)


class _AlongAxis(_Activation):
    _shown = settings = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim


class Softmax(_AlongAxis):
    """``exp(x) / sum(exp(x))`` along ``dim``."""

    operation = "softmax"


class LogSoftmax(_AlongAxis):
    """The logarithm of softmax along ``dim``."""

    operation = "log_softmax"


class Softmin(_AlongAxis):
    """``softmax(-x)`` along ``dim``."""

    operation = "softmin"
