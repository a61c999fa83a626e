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


class _InPlace(Module):
    """A module of one function that may work in place, and its settings in order."""

    settings: tuple[str, ...] = ()

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        """The settings."""
        words = [f"{name}={getattr(self, name)}" for name in self.settings]
        return ", ".join([*words, "inplace=True"] if self.inplace else words)


class ReLU(_InPlace):
    """``max(x, 0)``."""

    def forward(self, input: Any) -> Any:
        """Elementwise."""
        return F.relu(input, self.inplace)


class ReLU6(_InPlace):
    """``clamp(x, 0, 6)``."""

    def forward(self, input: Any) -> Any:
        """Elementwise."""
        return F.relu6(input, self.inplace)


class Hardtanh(_InPlace):
    """``clamp(x, min_val, max_val)``."""

    settings = ("min_val", "max_val")

    def __init__(
        self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
    ) -> None:  # fmt: skip
        super().__init__(inplace)
        self.min_val, self.max_val = min_val, max_val

    def forward(self, input: Any) -> Any:
        """Elementwise."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class LeakyReLU(_InPlace):
    """``x`` above 0, ``negative_slope x`` elsewhere."""

    settings = ("negative_slope",)

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Any) -> Any:
        """Elementwise."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class ELU(_InPlace):
    """``x`` above 0, ``alpha (exp(x) - 1)`` elsewhere."""

    settings = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Any) -> Any:
        """Elementwise."""
        return F.elu(input, self.alpha, self.inplace)


class SELU(_InPlace):
    """The scaled ELU of Klambauer and others (2017)."""

    def forward(self, input: Any) -> Any:
        """Elementwise."""
        return F.selu(input, self.inplace)


class SiLU(_InPlace):
    """``x sigmoid(x)``."""

    def forward(self, input: Any) -> Any:
        """Elementwise."""
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    """``x tanh(softplus(x))``."""

    def forward(self, input: Any) -> Any:
        """Elementwise."""
        return F.mish(input, self.inplace)


class Hardsigmoid(Module):
    """``clamp(x + 3, 0, 6) / 6``."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """Elementwise."""
        return F.hardsigmoid(input, self.inplace)


class Hardswish(Module):
    """``x clamp(x + 3, 0, 6) / 6``."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """Elementwise."""
        return F.hardswish(input, self.inplace)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``."""

    def forward(self, input: Any) -> Any:
        """Elementwise."""
        return F.sigmoid(input)


class LogSigmoid(Module):
    """``log(sigmoid(x))``."""

    def forward(self, input: Any) -> Any:
        """Elementwise."""
        return F.logsigmoid(input)


class Tanh(Module):
    """``tanh(x)``."""

    def forward(self, input: Any) -> Any:
        """Elementwise."""
        return F.tanh(input)


class Softsign(Module):
    """``x / (1 + |x|)``."""

    def forward(self, input: Any) -> Any:
        """Elementwise."""
        return F.softsign(input)


class GELU(Module):
    """``x Φ(x)``, or its approximation by tanh."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        """Elementwise."""
        return F.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        """The approximation."""
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """``log(1 + exp(beta x)) / beta``; ``x`` where ``beta x`` is above the threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Any) -> Any:
        """Elementwise."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """The settings."""
        return f"beta={self.beta}, threshold={self.threshold}"


class PReLU(Module):
    """``x`` above 0, ``weight x`` elsewhere; the weights are parameters."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(sg.empty(num_parameters, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weights to what they begin with."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Any) -> Any:
        """Elementwise."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of weights."""
        return f"num_parameters={self.num_parameters}"


class _AlongAxis(Module):
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        """The axis."""
        return f"dim={self.dim}"


class Softmax(_AlongAxis):
    """``exp(x) / sum(exp(x))`` along ``dim``."""

    def forward(self, input: Any) -> Any:
        """The same shape."""
        return F.softmax(input, self.dim)


class LogSoftmax(_AlongAxis):
    """The logarithm of softmax along ``dim``."""

    def forward(self, input: Any) -> Any:
        """The same shape."""
        return F.log_softmax(input, self.dim)


class Softmin(_AlongAxis):
    """``softmax(-x)`` along ``dim``."""

    def forward(self, input: Any) -> Any:
        """The same shape."""
        return F.softmin(input, self.dim)
