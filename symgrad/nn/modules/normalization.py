"""Normalisations of rows and of groups of channels, as modules.

In: sizes.  Out: modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import symgrad as sg
from symgrad.nn import functional as F
from symgrad.nn import init
from symgrad.nn.errors import ModuleValueError
from symgrad.nn.modules.module import Module
from symgrad.nn.parameter import Parameter


class _Affine(Module):
    """Holds a weight that begins as 1 and a bias that begins as 0; each may be None."""

    weight: Parameter | None
    bias: Parameter | None

    def _make(self, shape: Sequence[int], weight: bool, bias: bool, dtype: Any) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            made = Parameter(sg.empty(*shape, dtype=dtype)) if wanted else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if "bias" in self._parameters and self.bias is not None:
            init.zeros_(self.bias)


def _shape(normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(normalized_shape, int):
        return (normalized_shape,)
    return tuple(normalized_shape)


class LayerNorm(_Affine):
    """The last axes, of ``normalized_shape``, centred and scaled to unit variance."""

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-5,
        elementwise_affine: bool = True, bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._make(self.normalized_shape, elementwise_affine, elementwise_affine and bias, dtype)

    def forward(self, input: Any) -> Any:
        """The same shape."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine="
            f"{self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(_Affine):
    """The last axes, of ``normalized_shape``, divided by the root of their mean square."""

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float | None = None,
        elementwise_affine: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        made = Parameter(sg.empty(*self.normalized_shape, dtype=dtype))
        self.register_parameter("weight", made if elementwise_affine else None)
        self.reset_parameters()

    def forward(self, input: Any) -> Any:
        """The same shape."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(_Affine):
    """Groups of channels (axis 1) of each example normalised."""

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
        device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_channels % num_groups:
            raise ModuleValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        self._make((num_channels,), affine, affine and bias, dtype)

    def forward(self, input: Any) -> Any:
        """The same shape."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )
