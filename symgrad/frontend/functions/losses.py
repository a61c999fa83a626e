"""Losses under torch's names.

In: predictions and targets.  Out: a number, or with ``reduction="none"`` one for each element.
"""

from __future__ import annotations

from typing import Any

from symgrad.errors import UnsupportedOpError
from symgrad.frontend.functions.arithmetic import add, div, mul, neg, sub
from symgrad.frontend.functions.comparisons import where
from symgrad.frontend.functions.gathering import gather
from symgrad.frontend.functions.mathematics import clamp, clamp_min
from symgrad.frontend.functions.normalization import log_softmax
from symgrad.frontend.functions.reductions import mean, sum
from symgrad.frontend.lift import as_tensor, elementwise
from symgrad.frontend.session import here
from symgrad.frontend.table import operation
from symgrad.frontend.tensor import SymbolicTensor

Tensor = SymbolicTensor


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return losses
    if reduction not in ("mean", "sum"):
        raise UnsupportedOpError(f"a loss with reduction={reduction!r}", location=here())
    return mean(losses) if reduction == "mean" else sum(losses)


@operation("mse_loss", method=False)
def mse_loss(input: Any, target: Any, *, reduction: str = "mean") -> Tensor:
    """The squared difference."""
    return _reduced(elementwise("square", sub(input, target)), reduction)


@operation("l1_loss", method=False)
def l1_loss(input: Any, target: Any, *, reduction: str = "mean") -> Tensor:
    """The absolute difference."""
    return _reduced(elementwise("abs", sub(input, target)), reduction)


@operation("huber_loss", method=False)
def huber_loss(
    input: Any, target: Any, *, reduction: str = "mean", delta: float = 1.0
) -> Tensor:  # fmt: skip
    """Half the square up to ``delta``, linear beyond."""
    size = elementwise("abs", sub(input, target))
    near = mul(elementwise("square", size), 0.5)
    far = mul(sub(size, 0.5 * delta), delta)
    return _reduced(where(elementwise("lt", size, delta), near, far), reduction)


@operation("smooth_l1_loss", method=False)
def smooth_l1_loss(
    input: Any, target: Any, *, reduction: str = "mean", beta: float = 1.0
) -> Tensor:  # fmt: skip
    """Half the square over ``beta`` up to ``beta``, linear beyond."""
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    size = elementwise("abs", sub(input, target))
    near = div(mul(elementwise("square", size), 0.5), beta)
    return _reduced(where(elementwise("lt", size, beta), near, sub(size, 0.5 * beta)), reduction)


@operation("binary_cross_entropy", method=False)
def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, *, reduction: str = "mean"
) -> Tensor:  # fmt: skip
    """``-t log(p) - (1 - t) log(1 - p)``, the logarithms no less than -100."""
    log_p = clamp(elementwise("log", input), min=-100.0)
    log_q = clamp(elementwise("log1p", neg(input)), min=-100.0)
    losses = neg(add(mul(target, log_p), mul(sub(1, target), log_q)))
    return _reduced(losses if weight is None else mul(losses, weight), reduction)


@operation("binary_cross_entropy_with_logits", method=False)
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, *, reduction: str = "mean"
) -> Tensor:  # fmt: skip
    """Binary cross entropy of ``sigmoid(x)``: ``softplus(-x) + (1 - t) x``."""
    losses = sub(mul(sub(1, target), input), elementwise("log_sigmoid", input))
    return _reduced(losses if weight is None else mul(losses, weight), reduction)


@operation("nll_loss", method=False)
def nll_loss(input: Any, target: Any, *, reduction: str = "mean") -> Tensor:
    """Minus the entry of each row (axis 1) that the target names."""
    scores, labels = as_tensor(input), as_tensor(target)
    if scores.ndim == 1:
        return _reduced(neg(scores[labels]), reduction)
    return _reduced(neg(gather(scores, 1, labels.unsqueeze(1)).squeeze(1)), reduction)


@operation("cross_entropy", method=False)
def cross_entropy(
    input: Any, target: Any, *, reduction: str = "mean", label_smoothing: float = 0.0
) -> Tensor:  # fmt: skip
    """``nll_loss(log_softmax(x))``; the target names classes, or holds their probabilities."""
    scores, labels = as_tensor(input), as_tensor(target)
    axis = 0 if scores.ndim == 1 else 1
    if label_smoothing:
        raise UnsupportedOpError("cross_entropy with label_smoothing", location=here())
    logs = log_softmax(scores, axis)
    if not labels.dtype.is_float:
        return nll_loss(logs, labels, reduction=reduction)
    return _reduced(neg(sum(mul(logs, labels), axis)), reduction)


@operation("kl_div", method=False)
def kl_div(
    input: Any, target: Any, *, reduction: str = "mean", log_target: bool = False
) -> Tensor:  # fmt: skip
    """``t (log(t) - x)``, 0 where t is 0."""
    goal = as_tensor(target)
    if log_target:
        losses = mul(elementwise("exp", goal), sub(goal, input))
    else:
        safe = where(elementwise("gt", goal, 0), goal, 1.0)
        losses = mul(goal, sub(elementwise("log", safe), input))
    if reduction == "batchmean":
        return div(sum(losses), losses.shape[0])
    return _reduced(losses, reduction)


@operation("hinge_embedding_loss", method=False)
def hinge_embedding_loss(
    input: Any, target: Any, *, reduction: str = "mean", margin: float = 1.0
) -> Tensor:  # fmt: skip
    """``x`` where the target is 1, ``max(0, margin - x)`` where it is -1."""
    far = clamp_min(sub(margin, input), 0.0)
    losses = add(
        where(elementwise("ne", target, 1), far, 0.0),
        where(elementwise("ne", target, -1), input, 0.0),
    )
    return _reduced(losses, reduction)
