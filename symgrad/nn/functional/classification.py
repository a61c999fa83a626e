"""Losses of labels under torch's names and with its arguments.

In: scores and the numbers, or the probabilities, of the right classes.  Out: losses, their mean or
their sum.
"""

from __future__ import annotations

from typing import Any

import symgrad as sg
from symgrad.nn import functions
from symgrad.nn.errors import (
    ModuleCallError,
    ModuleDTypeError,
    ModuleIndexError,
    ModuleShapeError,
    ModuleSizeError,
)
from symgrad.nn.functional.loss import chosen
from symgrad.nn.functional.shapes import rows_of
from symgrad.tensor import Tensor
from symgrad.tensor.batched import real_array


def _with_classes_last(input: Any) -> Any:
    """(examples, classes, …) as a matrix with a row for each label."""
    return input if input.ndim <= 2 else rows_of(input.movedim(1, -1))


def _check_labels(input: Any, target: Any, ignore_index: int) -> None:
    """Labels of the right shape and dtype that are classes.  Raises what torch raises."""
    if target.dtype not in (sg.int64, sg.uint8):
        raise ModuleDTypeError(
            f"expected target dtype to be Long or Byte, but got {target.dtype.scalar_type}",
            hint="convert it with .long()",
        )
    batch = (*input.shape[:1], *input.shape[2:]) if input.ndim > 1 else ()
    if tuple(target.shape) != tuple(batch):
        if input.ndim > 1 and target.ndim and input.shape[0] != target.shape[0]:
            raise ModuleSizeError(
                f"Expected input batch_size ({input.shape[0]}) to match target batch_size "
                f"({target.shape[0]})."
            )
        raise ModuleShapeError(f"Expected target size {list(batch)}, got {list(target.shape)}")
    if isinstance(target, Tensor):
        classes = input.shape[1] if input.ndim > 1 else input.shape[0]
        array = real_array(target)
        wrong = array[(array != ignore_index) & ((array < 0) | (array >= classes))]
        if wrong.size:
            raise ModuleIndexError(f"Target {int(wrong[0])} is out of bounds.")


def _shaped(losses: Any, target: Any, reduction: str) -> Any:
    return losses.reshape(target.shape) if reduction == "none" else losses


def _weighted(
    losses: Any, labels: Any, weight: Any, ignore_index: int, reduction: str
) -> Any:  # fmt: skip
    """Losses weighed by class; the mean is divided by the sum of the weights."""
    valid = labels != ignore_index
    each = sg.where(valid, weight.detach()[sg.where(valid, labels, 0)], 0.0)
    if reduction == "none":
        return losses * each
    total = (losses * each).sum()
    return total / each.sum() if reduction == "mean" else total


def nll_loss(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """``-weight[label] x[label]``: ``input`` are logarithms of probabilities.

    ``input``: (classes), (n, classes) or (n, classes, …); ``target``: int64 or uint8, the same
    without the classes.  Raises ModuleIndexError for labels that are no classes.
    """
    reduction = chosen(reduction, size_average, reduce)
    _check_labels(input, target, ignore_index)
    rows, labels = rows_of(_with_classes_last(input)), target.flatten().long()
    if weight is None:
        found = functions.NLLLoss.apply(rows, labels, ignore_index, reduction)
    else:
        losses = functions.NLLLoss.apply(rows, labels, ignore_index, "none")
        found = _weighted(losses, labels, weight, ignore_index, reduction)
    return _shaped(found, target, reduction)


def cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """``-log softmax(x)[label]``, or against probabilities if the target has the input's shape.

    Shapes as for ``nll_loss``.  Raises ModuleIndexError for labels that are no classes.
    """
    reduction = chosen(reduction, size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ModuleCallError(
            f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}"
        )
    if target.is_floating_point():
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing)
    _check_labels(input, target, ignore_index)
    rows, labels = rows_of(_with_classes_last(input)), target.flatten().long()
    if weight is None:
        found = functions.CrossEntropyLoss.apply(
            rows, labels, ignore_index, reduction, label_smoothing
        )
        return _shaped(found, target, reduction)
    logarithms = functions.LogSoftmax.apply(rows)
    losses = functions.NLLLoss.apply(logarithms, labels, ignore_index, "none")
    found = _weighted(losses, labels, weight, ignore_index, reduction)
    if label_smoothing:
        classes = rows.shape[1]
        valid = labels != ignore_index
        smooth = sg.where(valid, -(logarithms * weight.detach()).sum(-1), 0.0)
        if reduction != "none":
            smooth = smooth.sum()
        if reduction == "mean":
            smooth = (
                smooth / sg.where(valid, weight.detach()[sg.where(valid, labels, 0)], 0.0).sum()
            )
        found = (1 - label_smoothing) * found + (label_smoothing / classes) * smooth
    return _shaped(found, target, reduction)


def _soft_cross_entropy(
    input: Any, target: Any, weight: Any, reduction: str, label_smoothing: float
) -> Any:
    """Against probabilities of the classes."""
    if tuple(input.shape) != tuple(target.shape):
        raise ModuleShapeError(
            f"Expected floating point type for target with class probabilities of the input's "
            f"shape {list(input.shape)}, got {list(target.shape)}"
        )
    shape = (*input.shape[:1], *input.shape[2:]) if input.ndim > 1 else ()
    rows = rows_of(_with_classes_last(input))
    wanted = rows_of(_with_classes_last(target))
    if label_smoothing:
        wanted = wanted * (1 - label_smoothing) + label_smoothing / rows.shape[1]
    if weight is not None:
        wanted = wanted * weight.detach()
    found = functions.SoftTargetCrossEntropyLoss.apply(rows, wanted, reduction)
    return found.reshape(shape) if reduction == "none" else found
