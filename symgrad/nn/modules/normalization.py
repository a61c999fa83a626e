"""Normalisations of rows, of channels and of groups of channels, as modules.

In: sizes.  Out: modules; running averages are buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import symgrad as sg
from symgrad.nn import functional as F
from symgrad.nn import init
from symgrad.nn.errors import ModuleSizeError, ModuleValueError
from symgrad.nn.modules.module import Module
from symgrad.nn.parameter import Parameter
from symgrad.tensor import Tensor
from symgrad.tensor.modes import no_grad


class _Affine(Module):
    """Holds a weight that begins as 1 and a bias that begins as 0; each may be None."""

    weight: Parameter | None
    bias: Parameter | None

    def _make(self, shape: Sequence[int], dtype: Any, **wanted: bool) -> None:
        """Register a parameter of this shape under each name that is wanted, else None."""
        for name, there in wanted.items():
            made = Parameter(sg.empty(*shape, dtype=dtype)) if there else None
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
        self._make(
            self.normalized_shape, dtype, weight=elementwise_affine,
            bias=elementwise_affine and bias,
        )  # fmt: skip

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
        self._make(self.normalized_shape, dtype, weight=elementwise_affine)

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
        self._make((num_channels,), dtype, weight=affine, bias=affine and bias)

    def forward(self, input: Any) -> Any:
        """The same shape."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


# -- channels, with running averages


class _ChannelNorm(_Affine):
    """The settings, the parameters and the running averages."""

    ranks: tuple[int, ...] = ()
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, device: Any = None,
        dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        for name, begin in (
            ("running_mean", sg.zeros(num_features, dtype=dtype)),
            ("running_var", sg.ones(num_features, dtype=dtype)),
            ("num_batches_tracked", sg.tensor(0)),
        ):
            self.register_buffer(name, begin if track_running_stats else None)
        self._make((num_features,), dtype, weight=affine, bias=affine and bias)

    def reset_running_stats(self) -> None:
        """Set the running averages to their initial values."""
        if self.running_mean is not None and self.running_var is not None:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.zero_()

    def _check_input_dim(self, input: Any) -> None:
        if input.ndim not in self.ranks:
            words = " or ".join(f"{rank}D" for rank in self.ranks)
            raise ModuleSizeError(f"expected {words} input (got {input.ndim}D input)")

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_ChannelNorm):
    def forward(self, input: Any) -> Any:
        """The same shape."""
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        update = self.training and self.track_running_stats
        if update and self.num_batches_tracked is not None:
            with no_grad():
                self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        seen = not self.training or self.track_running_stats
        batch = self.training or (self.running_mean is None and self.running_var is None)
        return F.batch_norm(
            input, self.running_mean if seen else None, self.running_var if seen else None,
            self.weight, self.bias, batch, factor, self.eps,
        )  # fmt: skip


class BatchNorm1d(_BatchNorm):
    """(examples, channels) or (examples, channels, places), normalised for each channel."""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """(examples, channels, height, width), normalised for each channel."""

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """(examples, channels, depth, height, width), normalised for each channel."""

    ranks = (5,)


class _InstanceNorm(_ChannelNorm):
    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: Any = None, dtype: Any = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, dtype=dtype, bias=bias
        )

    def forward(self, input: Any) -> Any:
        """The same shape; the axis of the examples may be missing."""
        self._check_input_dim(input)
        alone = input.ndim == self.ranks[0]
        batch = input.unsqueeze(0) if alone else input
        found = F.instance_norm(
            batch, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats, self.momentum or 0.0, self.eps,
        )  # fmt: skip
        return found.squeeze(0) if alone else found


class InstanceNorm1d(_InstanceNorm):
    """(examples, channels, places), normalised for each channel of each example."""

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """(examples, channels, height, width), normalised for each channel of each example."""

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """(examples, channels, depth, height, width), normalised for each channel of each example."""

    ranks = (4, 5)
