"""Losses under torch's names and with its arguments.

In: predictions and targets.  Out: losses, their mean or their sum.

``size_average`` and ``reduce`` are torch's old way to say ``reduction``.
"""

from __future__ import annotations

import warnings
from typing import Any

import symgrad as sg
from symgrad.nn import functions
from symgrad.nn.errors import ModuleCallError, ModuleSizeError, ModuleValueError
from symgrad.nn.functional.activation import logsigmoid

REDUCTIONS = ("none", "mean", "sum")


def chosen(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> str:
    """The reduction that the arguments say.  Raises ModuleValueError for unknown names."""
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        warnings.warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{reduction}' instead.",
            UserWarning,
            stacklevel=4,
        )
    if reduction not in REDUCTIONS:
        raise ModuleValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def _reduced(losses: Any, reduction: str) -> Any:
    if reduction == "none":
        return losses
    return losses.mean() if reduction == "mean" else losses.sum()


def _same_shape(input: Any, target: Any) -> tuple[Any, Any]:
    """Both in one shape, with torch's warning where that is not theirs."""
    if tuple(input.shape) == tuple(target.shape):
        return input, target
    warnings.warn(
        f"Using a target size ({target.shape}) that is different to the input size "
        f"({input.shape}). This will likely lead to incorrect results due to broadcasting. Please "
        "ensure they have the same size.",
        UserWarning,
        stacklevel=4,
    )
    first, second = sg.broadcast_tensors(input, target)
    return first, second


def mse_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Any = None,
) -> Any:  # fmt: skip
    """``(x - t)²``; the mean is divided by the sum of the weights, where there are any."""
    reduction = chosen(reduction, size_average, reduce)
    input, target = _same_shape(input, target)
    if weight is None:
        return functions.MSELoss.apply(input, target, reduction)
    losses = functions.MSELoss.apply(input, target, "none") * weight
    if reduction == "mean":
        return losses.sum() / weight.expand(losses.shape).sum()
    return _reduced(losses, reduction)


def l1_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """``|x - t|``."""
    reduction = chosen(reduction, size_average, reduce)
    return functions.L1Loss.apply(*_same_shape(input, target), reduction)


def smooth_l1_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", beta: float = 1.0,
) -> Any:  # fmt: skip
    """``d² / (2 beta)`` where ``|d| < beta``, else ``|d| - beta / 2``."""
    reduction = chosen(reduction, size_average, reduce)
    if beta < 0:
        raise ModuleCallError("smooth_l1_loss does not support negative values for beta.")
    input, target = _same_shape(input, target)
    if beta == 0:
        return functions.L1Loss.apply(input, target, reduction)
    return functions.HuberLoss.apply(input, target, beta, beta, reduction)


def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Any:
    """``d² / 2`` where ``|d| <= delta``, else ``delta (|d| - delta / 2)``."""
    reduction = chosen(reduction)
    if delta <= 0:
        raise ModuleValueError("huber_loss does not support non-positive values for delta.")
    input, target = _same_shape(input, target)
    if weight is None:
        return functions.HuberLoss.apply(input, target, delta, 1.0, reduction)
    losses = functions.HuberLoss.apply(input, target, delta, 1.0, "none") * weight
    if reduction == "mean":
        return losses.sum() / weight.expand(losses.shape).sum()
    return _reduced(losses, reduction)


def _must_match(input: Any, target: Any, words: str) -> None:
    if tuple(input.shape) != tuple(target.shape):
        raise ModuleSizeError(words.format(target=target.shape, input=input.shape))


def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """``-t log(x) - (1 - t) log(1 - x)``, probabilities between 0 and 1.

    Logarithms are cut off at -100 as in torch; beyond that the gradient is that of the flat loss.
    """
    reduction = chosen(reduction, size_average, reduce)
    _must_match(
        input, target, "Using a target size ({target}) that is different to the input size "
        "({input}) is deprecated. Please ensure they have the same size.",
    )  # fmt: skip
    if weight is None:
        return functions.BCELoss.apply(input, target, reduction)
    return _reduced(functions.BCELoss.apply(input, target, "none") * weight, reduction)


def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", pos_weight: Any = None,
) -> Any:  # fmt: skip
    """Binary cross-entropy of ``sigmoid(x)``, without overflow."""
    reduction = chosen(reduction, size_average, reduce)
    _must_match(
        input, target, "Target size ({target}) must be the same as input size ({input})"
    )  # fmt: skip
    if pos_weight is None:
        if weight is None:
            return functions.BCEWithLogitsLoss.apply(input, target, reduction)
        losses = functions.BCEWithLogitsLoss.apply(input, target, "none")
    else:
        losses = (1 - target) * input - (1 + (pos_weight - 1) * target) * logsigmoid(input)
    return _reduced(losses if weight is None else losses * weight, reduction)


def kl_div(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", log_target: bool = False,
) -> Any:  # fmt: skip
    """``t (log(t) - x)``; ``input`` are logarithms, and so is ``target`` if ``log_target``."""
    batch_mean = reduction == "batchmean"
    if not batch_mean:
        reduction = chosen(reduction, size_average, reduce)
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next major "
            "release.",
            UserWarning,
            stacklevel=2,
        )
    if tuple(input.shape) != tuple(target.shape):
        input, target = sg.broadcast_tensors(input, target)
    function = functions.KLDivLogLoss if log_target else functions.KLDivLoss
    found = function.apply(input, target, "sum" if batch_mean else reduction)
    return found / input.shape[0] if batch_mean and input.ndim else found
