"""Losses under torch's names, each with its hand-written backward.

In: predictions and targets.  Out: losses, their mean or their sum; and the Functions that
differentiate the operations.

``reduction``: "none", "mean" over all elements, or "sum"; ``size_average`` and ``reduce`` are
torch's old way to say it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

from symgrad.errors import DTypeError, ShapeError
from symgrad.frontend.caller import here, warn_user
from symgrad.frontend.function import assume, backward_of, own_backward
from symgrad.frontend.functions.activations import xlogy
from symgrad.frontend.functions.arithmetic import add, div, mul, neg, sub
from symgrad.frontend.functions.comparisons import holds, where
from symgrad.frontend.functions.composed import broadcast_tensors
from symgrad.frontend.functions.gathering import gather
from symgrad.frontend.functions.mathematics import clamp, clamp_min
from symgrad.frontend.functions.normalization import log_softmax
from symgrad.frontend.functions.reductions import mean, sum
from symgrad.frontend.lift import as_tensor, elementwise
from symgrad.frontend.session import active, current
from symgrad.frontend.sizes import Shape, size_text
from symgrad.frontend.table import OperationCallError, OperationValueError, operation
from symgrad.frontend.table import functions as sg
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import int64, uint8

Tensor = SymbolicTensor
Each = Annotated[Any, "f32[*s]"]
Scores = Annotated[Any, "f32[n c]"]
Labels = Annotated[Any, "i64[n]"]
REDUCTIONS = ("none", "mean", "sum")


def chosen(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> str:
    """The reduction that the arguments say.  Raises OperationValueError for unknown names."""
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        session = active()
        (warn_user if session is None else session.warn)(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{reduction}' instead."
        )
    if reduction not in REDUCTIONS:
        raise OperationValueError(
            f"{reduction} is not a valid value for reduction", location=here()
        )
    return reduction


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    """The losses, their mean or their sum."""
    if reduction == "none":
        return losses
    return mean(losses) if reduction == "mean" else sum(losses)


def _spread(grad: Any, count: Any, reduction: str) -> Any:
    """The gradient of each loss from that of what they were reduced to."""
    return grad / count if reduction == "mean" else grad


def _weighted(losses: Tensor, weight: Tensor, reduction: str, share: bool) -> Tensor:
    """Weighted losses; ``share``: their mean is divided by the sum of the weights."""
    scaled = mul(losses, weight)
    if reduction != "mean" or not share:
        return _reduced(scaled, reduction)
    return div(sum(scaled), sum(weight))


def _pair(input: Any, target: Any) -> tuple[Tensor, Tensor]:
    """Both in one shape, with torch's warning where that is not theirs."""
    first, second = as_tensor(input), as_tensor(target)
    if first.node.shape == second.node.shape:
        return first, second
    current().warn(
        f"Using a target size ({size_text(second.shape)}) that is different to the input size "
        f"({size_text(first.shape)}). This will likely lead to incorrect results due to "
        "broadcasting. Please ensure they have the same size."
    )
    one, other = broadcast_tensors(first, second)
    return one, other


def _of_pair(
    loss: Callable[..., Tensor], input: Any, target: Any, weight: Any, reduction: str,
    *parameters: float, share: bool = True,
) -> Tensor:  # fmt: skip
    """``loss`` of a pair in one shape, weighted where there is a weight.

    ``share``: the mean of weighted losses is divided by the sum of the weights.
    """
    pair = _pair(input, target)
    if weight is None:
        return loss(*pair, *parameters, reduction)
    weights = as_tensor(weight)
    if weights.node.shape != (wanted := as_tensor(input).node.shape):
        raise ShapeError(
            "Weights and input must have the same size.", location=here(),
            equal=_pairs(wanted, weights.node.shape),
        )  # fmt: skip
    return _weighted(loss(*pair, *parameters, "none"), weights, reduction, share)


def _one_float_dtype(input: Any, target: Any, name: str) -> None:
    """Raises what torch raises where the two are not of one float dtype."""
    first, second = as_tensor(input).dtype, as_tensor(target).dtype
    if not first.is_float:
        raise OperationCallError(
            f"\"{name}_cpu\" not implemented for '{first.scalar_type}'", location=here()
        )
    if first != second:
        raise OperationCallError(
            f"Found dtype {second.scalar_type} but expected {first.scalar_type}", location=here(),
            hint=f"convert the target with .to(sg.{first})",
        )  # fmt: skip


def _no_integers(words: str, *tensors: Any) -> None:
    """Raises what torch raises for tensors of integers or bools."""
    for one in tensors:
        kind = as_tensor(one).dtype
        if not kind.is_float:
            raise OperationCallError(
                words.format(kind=kind.scalar_type), location=here(),
                hint="convert it with .float()",
            )  # fmt: skip


# -- of differences


@backward_of("mse_loss")
def MSELoss(grad: Any, x: Each, target: Each, reduction: Any = "mean") -> Any:
    """``(x - t)²``."""
    grad_x = _spread(grad, x.numel(), reduction) * 2 * (x - target)
    return grad_x, -grad_x


@own_backward(MSELoss)
def _mse_loss(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    return _reduced(elementwise("square", sub(input, target)), reduction)


@operation("mse_loss", method=False)
def mse_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """``(x - t)²``; the mean is divided by the sum of the weights, where there are any."""
    reduction = chosen(reduction, size_average, reduce)
    return _of_pair(_mse_loss, input, target, weight, reduction)


@backward_of("l1_loss")
def L1Loss(grad: Any, x: Each, target: Each, reduction: Any = "mean") -> Any:
    """``|x - t|``; its derivative at 0 is 0."""
    grad_x = _spread(grad, x.numel(), reduction) * sg.sign(x - target)
    return grad_x, -grad_x


@own_backward(L1Loss)
def _l1_loss(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    return _reduced(elementwise("abs", sub(input, target)), reduction)


@operation("l1_loss", method=False)
def l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """``|x - t|``; the mean is divided by the sum of the weights, where there are any."""
    reduction = chosen(reduction, size_average, reduce)
    return _of_pair(_l1_loss, input, target, weight, reduction)


def _scaled_huber(x: Any, target: Any, delta: Any, scale: Any, reduction: str) -> Any:
    if scale == delta:
        return sg.smooth_l1_loss(x, target, reduction=reduction, beta=delta)
    return sg.huber_loss(x, target, reduction, delta) / scale


@backward_of(_scaled_huber)
def HuberLoss(
    grad: Any, x: Each, target: Each, delta: Any = 1.0, scale: Any = 1.0, reduction: Any = "mean"
) -> Any:
    """``d²/2`` where ``|d| <= delta``, else ``delta (|d| - delta/2)``, with ``d = x - t``.

    Divided by ``scale``: SmoothL1Loss is that with ``scale = delta``.
    """
    each = _spread(grad, x.numel(), reduction)
    grad_x = each * sg.clamp(x - target, -delta, delta) / scale
    return grad_x, -grad_x


@own_backward(HuberLoss)
def _huber_loss(input: Tensor, target: Tensor, delta: Any, scale: Any, reduction: str) -> Tensor:
    size = elementwise("abs", sub(input, target))
    near, far = mul(elementwise("square", size), 0.5), sub(size, 0.5 * delta)
    if scale == delta:
        near = div(near, scale)
    else:
        far = mul(far, delta)
    return _reduced(where(elementwise("lt", size, delta), near, far), reduction)


@operation("huber_loss", method=False)
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """``d² / 2`` where ``|d| <= delta``, else ``delta (|d| - delta / 2)``.

    The mean is one over the elements, weighted or not.
    """
    reduction = chosen(reduction)
    if not holds("gt", delta, 0):
        raise OperationValueError(
            "huber_loss does not support non-positive values for delta.", location=here()
        )
    _one_float_dtype(input, target, "huber")
    return _of_pair(
        _huber_loss, input, target, weight, reduction, delta, 1.0, share=False
    )  # fmt: skip


@operation("smooth_l1_loss", method=False)
def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", beta: float = 1.0,
) -> Tensor:  # fmt: skip
    """``d² / (2 beta)`` where ``|d| < beta``, else ``|d| - beta / 2``."""
    reduction = chosen(reduction, size_average, reduce)
    if beta < 0:
        raise OperationCallError(
            "smooth_l1_loss does not support negative values for beta.", location=here()
        )
    pair = _pair(input, target)
    if beta and not any(one.dtype.is_float for one in pair):
        _no_integers("\"smooth_l1_cpu\" not implemented for '{kind}'", *pair)
    return _huber_loss(*pair, beta, beta, reduction) if beta else _l1_loss(*pair, reduction)


# -- of probabilities


def _must_match(input: Any, target: Any, words: str) -> tuple[Tensor, Tensor]:
    """Both as tensors.  Raises ShapeError where their shapes differ."""
    first, second = as_tensor(input), as_tensor(target)
    if first.node.shape != second.node.shape:
        words = words.format(target=size_text(second.shape), input=size_text(first.shape))
        raise ShapeError(words, location=here(), equal=_pairs(first.node.shape, second.node.shape))
    return first, second


def _each_weighted(losses: Tensor, weight: Any) -> Tensor:
    """Losses with weights, which torch broadcasts to their shape.  Raises ShapeError."""
    found = mul(losses, weight)
    if found.node.shape != losses.node.shape:
        whole, own = size_text(found.shape), size_text(losses.shape)
        said = f"output with shape {own} doesn't match the broadcast shape {whole}"
        raise ShapeError(said, location=here(), equal=_pairs(found.node.shape, losses.node.shape))
    return found


@assume(x="(0, 1)")
@backward_of("binary_cross_entropy")
def BCELoss(grad: Any, x: Each, target: Each, reduction: Any = "mean") -> Any:
    """``-t log(x) - (1 - t) log(1 - x)``; logarithms are at least -100, flat below.

    At 0 and 1, where there is no derivative, the gradient is torch's.
    """
    each = _spread(grad, x.numel(), reduction)
    inside, outside = sg.log(x), sg.log1p(-x)
    slope_in = sg.where(inside > -100, target / x, 0.0)
    slope_out = sg.where(outside > -100, (1 - target) / (1 - x), 0.0)
    grad_target = each * (sg.clamp(outside, min=-100) - sg.clamp(inside, min=-100))
    slope = sg.where((x > 0) & (x < 1), slope_out - slope_in, (x - target) * 1e12)
    return each * slope, grad_target


@own_backward(BCELoss)
def _binary_cross_entropy(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    log_p = clamp(elementwise("log", input), min=-100.0)
    log_q = clamp(elementwise("log1p", neg(input)), min=-100.0)
    return _reduced(neg(add(mul(target, log_p), mul(sub(1, target), log_q))), reduction)


@operation("binary_cross_entropy", method=False)
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``-t log(x) - (1 - t) log(1 - x)``, probabilities between 0 and 1.

    Logarithms are cut off at -100 as in torch; beyond that the gradient is that of the flat loss.
    """
    reduction = chosen(reduction, size_average, reduce)
    pair = _must_match(
        input, target, "Using a target size ({target}) that is different to the input size "
        "({input}) is deprecated. Please ensure they have the same size.",
    )  # fmt: skip
    _one_float_dtype(*pair, "binary_cross_entropy")
    if weight is None:
        return _binary_cross_entropy(*pair, reduction)
    return _reduced(_each_weighted(_binary_cross_entropy(*pair, "none"), weight), reduction)


@backward_of("binary_cross_entropy_with_logits")
def BCEWithLogitsLoss(grad: Any, x: Each, target: Each, reduction: Any = "mean") -> Any:
    """``-t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x))``, without overflow."""
    each = _spread(grad, x.numel(), reduction)
    return each * (sg.sigmoid(x) - target), -each * x


@own_backward(BCEWithLogitsLoss)
def _with_logits(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    losses = sub(mul(sub(1, target), input), elementwise("log_sigmoid", input))
    return _reduced(losses, reduction)


@operation("binary_cross_entropy_with_logits", method=False)
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Binary cross-entropy of ``sigmoid(x)``: ``(1 - t) x + softplus(-x)``, without overflow."""
    reduction = chosen(reduction, size_average, reduce)
    x, t = _must_match(
        input, target, "Target size ({target}) must be the same as input size ({input})"
    )
    if x.dtype.is_float:
        words = f"result type {x.dtype.scalar_type} can't be cast to the desired output type "
        _no_integers(words + "{kind}", t)
    if pos_weight is not None:
        scale = add(_each_weighted(t, sub(pos_weight, 1)), 1)
        losses = sub(mul(sub(1, t), x), mul(scale, elementwise("log_sigmoid", x)))
    else:
        losses = _with_logits(x, t, reduction if weight is None else "none")
    if weight is not None:
        losses = _each_weighted(losses, weight)
    if weight is not None or pos_weight is not None:
        losses = _reduced(losses, reduction)
    narrow = t.dtype.is_float and losses.dtype == x.dtype != t.dtype
    return losses.to(t.dtype) if narrow else losses


def _reduced_kl(x: Any, target: Any, reduction: str, log_target: bool) -> Any:
    """``kl_div`` without the warning that it has for means."""
    losses = sg.kl_div(x, target, reduction="none", log_target=log_target)
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()


@assume(target="positive")
@backward_of(partial(_reduced_kl, log_target=False))
def KLDivLoss(grad: Any, x: Each, target: Each, reduction: Any = "mean") -> Any:
    """``t (log(t) - x)``: ``x`` are logarithms; terms with ``t = 0`` are 0."""
    each = _spread(grad, x.numel(), reduction)
    return -each * target, each * (sg.log(target) + 1 - x)


@own_backward(KLDivLoss)
def _kl_div(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    return _reduced(sub(xlogy(target, target), mul(target, input)), reduction)


@backward_of(partial(_reduced_kl, log_target=True))
def KLDivLogLoss(grad: Any, x: Each, target: Each, reduction: Any = "mean") -> Any:
    """``exp(t) (t - x)``: both are logarithms."""
    each = _spread(grad, x.numel(), reduction) * sg.exp(target)
    return -each, each * (target - x + 1)


@own_backward(KLDivLogLoss)
def _kl_div_log(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    return _reduced(mul(elementwise("exp", target), sub(target, input)), reduction)


@operation("kl_div", method=False)
def kl_div(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", log_target: bool = False,
) -> Tensor:  # fmt: skip
    """``t (log(t) - x)``; ``input`` are logarithms, and so is ``target`` if ``log_target``."""
    batch_mean = reduction == "batchmean"
    if not batch_mean:
        reduction = chosen(reduction, size_average, reduce)
    if reduction == "mean":
        current().warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next major "
            "release."
        )
    given = x = as_tensor(input)
    goal = as_tensor(target)
    _no_integers("kl_div: Integral inputs not supported.", x, goal)
    if x.node.shape != goal.node.shape:
        x, goal = broadcast_tensors(x, goal)
    found = (_kl_div_log if log_target else _kl_div)(x, goal, "sum" if batch_mean else reduction)
    return div(found, given.shape[0]) if batch_mean and given.ndim else found


@operation("hinge_embedding_loss", method=False)
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``x`` where the target is 1, ``max(0, margin - x)`` where it is -1."""
    reduction = chosen(reduction, size_average, reduce)
    far = clamp_min(sub(margin, input), 0.0)
    losses = add(
        where(elementwise("ne", target, 1), far, 0.0),
        where(elementwise("ne", target, -1), input, 0.0),
    )
    return _reduced(losses, reduction)


# -- of labels


def _valid(labels: Any, ignore_index: int) -> tuple[Any, Any]:
    """Which rows count, and a column of labels that are classes in every row."""
    column = labels.unsqueeze(1)
    return labels != ignore_index, sg.where(column != ignore_index, column, 0)


def _each(grad: Any, valid: Any, reduction: str) -> Any:
    """The gradient of the loss of each row."""
    each = grad / valid.sum() if reduction == "mean" else grad
    return sg.where(valid, each, 0.0).unsqueeze(1)


def _chosen(labels: Any, x: Any) -> Any:
    """Is a class that of the label?"""
    order = sg.arange(x.shape[1])
    if x.ndim > 2:
        order = order.reshape(-1, *[1] * (x.ndim - 2))
    return labels == order


def _targets(labels: Any, x: Any, smoothing: Any) -> Any:
    """The probabilities that a column of labels stands for, for each class."""
    one_hot = _chosen(labels, x).to(x.dtype)
    return one_hot * (1 - smoothing) + smoothing / x.shape[1] if smoothing else one_hot


@assume(labels="index c")
@backward_of("nll_loss")
def NLLLoss(
    grad: Any, x: Scores, labels: Labels, ignore_index: Any = -100, reduction: Any = "mean"
) -> Any:
    """``-x[label]`` of each row: ``x`` are logarithms of probabilities.

    Rows whose label is ``ignore_index`` do not count: neither their loss nor their number.
    """
    valid, safe = _valid(labels, ignore_index)
    return sg.where(_chosen(safe, x), -_each(grad, valid, reduction), 0.0)


def _picked(scores: Tensor, labels: Tensor, ignore_index: int) -> tuple[Tensor, Tensor]:
    """The score of each label, and which labels count."""
    valid = elementwise("ne", labels, ignore_index)
    column = labels.unsqueeze(1)
    safe = where(elementwise("ne", column, ignore_index), column, 0)
    return gather(scores, 1, safe).squeeze(1), valid


def _of_valid(losses: Tensor, valid: Tensor, reduction: str) -> Tensor:
    """The losses of the rows that count, their mean or their sum."""
    kept = where(valid, losses, 0.0)
    if reduction == "none":
        return kept
    return div(sum(kept), sum(valid)) if reduction == "mean" else sum(kept)


@own_backward(NLLLoss)
def _nll_loss(scores: Tensor, labels: Tensor, ignore_index: int, reduction: str) -> Tensor:
    picked, valid = _picked(scores, labels, ignore_index)
    return _of_valid(neg(picked), valid, reduction)


@assume(labels="index c")
@backward_of("cross_entropy")
def CrossEntropyLoss(
    grad: Any, x: Scores, labels: Labels, ignore_index: Any = -100, reduction: Any = "mean",
    label_smoothing: Any = 0.0,
) -> Any:  # fmt: skip
    """``-log softmax(x)[label]`` of each row, without overflow.

    With ``label_smoothing`` s, the target is ``(1 - s) one_hot(label) + s / classes``.  Rows whose
    label is ``ignore_index`` do not count: neither their loss nor their number.
    """
    valid, safe = _valid(labels, ignore_index)
    probabilities = sg.softmax(x, 1)
    targets = _targets(safe, x, label_smoothing)
    return _each(grad, valid, reduction) * (probabilities - targets)


@own_backward(CrossEntropyLoss)
def _cross_entropy(
    scores: Tensor, labels: Tensor, ignore_index: int, reduction: str, label_smoothing: Any
) -> Tensor:
    logs = log_softmax(scores, 1)
    picked, valid = _picked(logs, labels, ignore_index)
    losses = neg(picked)
    if label_smoothing:
        spread = mul(mean(logs, 1), label_smoothing)
        losses = sub(mul(losses, 1 - label_smoothing), spread)
    return _of_valid(losses, valid, reduction)


@backward_of("cross_entropy")
def SoftTargetCrossEntropyLoss(
    grad: Any, x: Scores, target: Scores, reduction: Any = "mean"
) -> Any:
    """``-sum(t log softmax(x))`` of each row: the targets are probabilities."""
    rows = x.numel() // x.shape[1] if x.ndim > 2 else x.shape[0]
    each = _spread(grad, rows, reduction)
    each = each.unsqueeze(1) if reduction == "none" else each
    y = sg.log_softmax(x, 1)
    grad_x = each * (sg.exp(y) * target.sum(1, keepdim=True) - target)
    return grad_x, -each * y


@own_backward(SoftTargetCrossEntropyLoss)
def _soft_cross_entropy(scores: Tensor, target: Tensor, reduction: str) -> Tensor:
    losses = neg(sum(mul(log_softmax(scores, 1), target), 1))
    return _reduced(losses, reduction)


def _check_labels(input: Tensor, target: Tensor) -> None:
    """Labels of the right shape and dtype.  Raises what torch raises."""
    if target.dtype not in (int64, uint8):
        raise DTypeError(
            f"expected target dtype to be Long or Byte, but got {target.dtype.scalar_type}",
            location=here(), hint="convert it with .long()",
        )  # fmt: skip
    scores, labels = input.node.shape, target.node.shape
    batch = (*scores[:1], *scores[2:]) if input.ndim > 1 else ()
    if labels == batch:
        return
    if input.ndim > 1 and target.ndim and scores[0] != labels[0]:
        raise ShapeError(
            f"Expected input batch_size ({scores[0]}) to match target batch_size ({labels[0]}).",
            location=here(), equal=_pairs(batch, labels),
        )  # fmt: skip
    wanted = (*input.shape[:1], *input.shape[2:]) if input.ndim > 1 else ()
    raise ShapeError(
        f"Expected target size {list(wanted)}, got {list(target.shape)}", location=here(),
        equal=_pairs(batch, labels),
    )  # fmt: skip


def _pairs(wanted: Sequence[Dim], given: Sequence[Dim]) -> list[tuple[Dim, Dim]]:
    """The sizes that have to be equal, of shapes of one rank."""
    return list(zip(wanted, given, strict=True)) if len(wanted) == len(given) else []


def _check_weight(weight: Any, input: Tensor) -> None:
    """One weight for each class.  Raises ShapeError where there are more, or less."""
    if weight is None:
        return
    classes, given = input.node.shape[min(input.ndim - 1, 1)], as_tensor(weight).node.shape
    if given != (classes,):
        raise ShapeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but "
            f"got weight tensor of shape: {list(Shape.of(given))}", location=here(),
            equal=list(zip(given, (classes,), strict=False)),
        )  # fmt: skip


def _rows(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Scores with the classes at axis 1, and their labels; those of one example as one row."""
    labels = target.to(int64)
    return (input, labels) if input.ndim > 1 else (input.unsqueeze(0), labels.unsqueeze(0))


def _shaped(losses: Tensor, input: Tensor, reduction: str) -> Tensor:
    return losses.squeeze(0) if reduction == "none" and input.ndim == 1 else losses


def _by_class(
    losses: Tensor, labels: Tensor, weight: Any, ignore_index: int, reduction: str
) -> Tensor:  # fmt: skip
    """Losses weighed by class; the mean is divided by the sum of the weights."""
    each = _class_weights(labels, weight, ignore_index)
    if reduction == "none":
        return mul(losses, each)
    total = sum(mul(losses, each))
    return div(total, sum(each)) if reduction == "mean" else total


def _class_weights(labels: Tensor, weight: Any, ignore_index: int) -> Tensor:
    valid = elementwise("ne", labels, ignore_index)
    return where(valid, as_tensor(weight)[where(valid, labels, 0)], 0.0)


@operation("nll_loss", method=False)
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``-weight[label] x[label]``: ``input`` are logarithms of probabilities.

    ``input``: (classes), (n, classes) or (n, classes, …); ``target``: int64 or uint8, the same
    without the classes.
    """
    reduction = chosen(reduction, size_average, reduce)
    source, goal = as_tensor(input), as_tensor(target)
    _check_labels(source, goal)
    _check_weight(weight, source)
    rows, labels = _rows(source, goal)
    if weight is None:
        return _shaped(_nll_loss(rows, labels, ignore_index, reduction), source, reduction)
    losses = _nll_loss(rows, labels, ignore_index, "none")
    return _shaped(_by_class(losses, labels, weight, ignore_index, reduction), source, reduction)


@operation("cross_entropy", method=False)
def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """``-log softmax(x)[label]``, or against probabilities if the target holds floats.

    Shapes as for ``nll_loss``.
    """
    reduction = chosen(reduction, size_average, reduce)
    if label_smoothing > 1.0:
        raise OperationCallError(
            f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}",
            location=here(),
        )
    if not label_smoothing > 0.0:  # as torch does
        label_smoothing = 0.0
    source, goal = as_tensor(input), as_tensor(target)
    if goal.dtype.is_float:
        return _against_probabilities(source, goal, weight, reduction, label_smoothing)
    _check_labels(source, goal)
    _check_weight(weight, source)
    rows, labels = _rows(source, goal)
    if weight is None:
        found = _cross_entropy(rows, labels, ignore_index, reduction, label_smoothing)
        return _shaped(found, source, reduction)
    logs = log_softmax(rows, 1)
    losses = _nll_loss(logs, labels, ignore_index, "none")
    found = _by_class(losses, labels, weight, ignore_index, reduction)
    if label_smoothing:
        smooth = _smooth(logs, labels, weight, ignore_index, reduction)
        share = label_smoothing / rows.shape[1]
        found = add(mul(found, 1 - label_smoothing), mul(smooth, share))
    return _shaped(found, source, reduction)


def _smooth(logs: Tensor, labels: Tensor, weight: Any, ignore_index: int, reduction: str) -> Tensor:
    """The weighted loss against every class at once."""
    scale = as_tensor(weight).reshape(-1, *[1] * (logs.ndim - 2))
    valid = elementwise("ne", labels, ignore_index)
    smooth = where(valid, neg(sum(mul(logs, scale), 1)), 0.0)
    if reduction == "none":
        return smooth
    total = sum(smooth)
    if reduction == "sum":
        return total
    return div(total, sum(_class_weights(labels, weight, ignore_index)))


def _against_probabilities(
    input: Tensor, target: Tensor, weight: Any, reduction: str, label_smoothing: float
) -> Tensor:
    """Against probabilities of the classes; a mean is one over the examples."""
    if input.node.shape != target.node.shape:
        raise ShapeError(
            "Expected floating point type for target with class probabilities of the input's "
            f"shape {list(input.shape)}, got {list(target.shape)}", location=here(),
            equal=_pairs(input.node.shape, target.node.shape),
        )  # fmt: skip
    _check_weight(weight, input)
    rows, wanted = (one.unsqueeze(0) if one.ndim == 1 else one for one in (input, target))
    if label_smoothing:
        wanted = add(mul(wanted, 1 - label_smoothing), label_smoothing / rows.shape[1])
    if weight is not None:
        wanted = mul(wanted, as_tensor(weight).reshape(-1, *[1] * (rows.ndim - 2)))
    return _shaped(_soft_cross_entropy(rows, wanted, reduction), input, reduction)
