"""Losses, and distances of vectors, as modules.

In: settings.  Out: modules of two tensors.
"""

from __future__ import annotations

from typing import Any

from symgrad.frontend.functions.losses import chosen
from symgrad.nn import functional as F
from symgrad.nn.modules.module import Module
from symgrad.tensor import Tensor


class _Loss(Module):
    """One loss of ``nn.functional``, with torch's three ways to say how it is reduced.

    ``settings``: the attributes that it is given by name.
    """

    operation: str
    settings: tuple[str, ...] = ("reduction",)

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        old = size_average is not None or reduce is not None
        self.reduction = chosen(reduction, size_average, reduce) if old else reduction

    def forward(self, input: Any, target: Any) -> Any:
        """The loss."""
        given = {name: getattr(self, name) for name in self.settings}
        return getattr(F, self.operation)(input, target, **given)


class _WeightedLoss(_Loss):
    settings: tuple[str, ...] = ("weight", "reduction")
    weight: Tensor | None

    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None,
        reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """``|x - t|``."""

    operation = "l1_loss"


class MSELoss(_Loss):
    """``(x - t)²``."""

    operation = "mse_loss"


class SmoothL1Loss(_Loss):
    """``d² / (2 beta)`` where ``|d| < beta``, else ``|d| - beta / 2``."""

    operation = "smooth_l1_loss"
    settings = ("reduction", "beta")

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean", beta: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.beta = beta


class HuberLoss(_Loss):
    """``d² / 2`` where ``|d| <= delta``, else ``delta (|d| - delta / 2)``."""

    operation = "huber_loss"
    settings = ("reduction", "delta")

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta


class BCELoss(_WeightedLoss):
    """``-t log(x) - (1 - t) log(1 - x)``."""

    operation = "binary_cross_entropy"


class BCEWithLogitsLoss(_WeightedLoss):
    """Binary cross-entropy of ``sigmoid(x)``."""

    operation = "binary_cross_entropy_with_logits"
    settings = ("weight", "reduction", "pos_weight")
    pos_weight: Tensor | None

    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None,
        reduce: bool | None = None, reduction: str = "mean", pos_weight: Tensor | None = None,
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)


class KLDivLoss(_Loss):
    """``t (log(t) - x)`` of logarithms ``x``."""

    operation = "kl_div"
    settings = ("reduction", "log_target")

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean", log_target: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target


class NLLLoss(_WeightedLoss):
    """``-x[label]`` of logarithms ``x``."""

    operation = "nll_loss"
    settings = ("weight", "ignore_index", "reduction")

    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None,
        ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index


class CrossEntropyLoss(_WeightedLoss):
    """``-log softmax(x)[label]``, or against probabilities."""

    operation = "cross_entropy"
    settings = ("weight", "ignore_index", "reduction", "label_smoothing")

    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None,
        ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing


# -- distances and directions of vectors


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along the axis ``dim``; no length below ``eps``."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Any, x2: Any) -> Any:
        """The common shape without the axis."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of ``x1 - x2 + eps`` along the last axis."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Any, x2: Any) -> Any:
        """The common shape without the last axis."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
