"""Normalisations of channels with running averages, as modules.

In: the number of channels.  Out: modules; running averages are buffers.
"""

from __future__ import annotations

from typing import Any

import symgrad as sg
from symgrad.nn import functional as F
from symgrad.nn import init
from symgrad.nn.errors import ModuleSizeError
from symgrad.nn.modules.normalization import _Affine
from symgrad.tensor import Tensor
from symgrad.tensor.modes import no_grad


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
        tracked = track_running_stats
        self.register_buffer(
            "running_mean", sg.zeros(num_features, dtype=dtype) if tracked else None
        )
        self.register_buffer("running_var", sg.ones(num_features, dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", sg.tensor(0) if tracked else None)
        self._make((num_features,), affine, affine and bias, dtype)

    def reset_running_stats(self) -> None:
        """Let the running averages begin anew."""
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
    """(examples, channels, depth, height, width), likewise."""

    ranks = (4, 5)
