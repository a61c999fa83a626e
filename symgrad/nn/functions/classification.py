"""Losses of labels: negative log-likelihood and cross-entropy.

In: scores and the numbers of the right classes.  Out: ``symgrad.Function`` classes.

Rows whose label is ``ignore_index`` do not count: neither their loss nor their number.
"""

import symgrad as sg


def _valid(labels, ignore_index):
    """Which rows count, and a column of labels that are classes in every row."""
    column = labels.unsqueeze(1)
    return labels != ignore_index, sg.where(column != ignore_index, column, 0)


def _reduced(losses, valid, reduction):
    """The losses of the rows that count, their mean or their sum."""
    kept = sg.where(valid, losses, 0.0)
    if reduction == "none":
        return kept
    return kept.sum() / valid.sum() if reduction == "mean" else kept.sum()


def _each(grad, valid, reduction):
    """The gradient of the loss of each row."""
    each = grad / valid.sum() if reduction == "mean" else grad
    return sg.where(valid, each, 0.0).unsqueeze(-1)


def _targets(labels, x, smoothing):
    """The probabilities that a column of labels stands for, for each class."""
    classes = x.shape[1]
    one_hot = (labels == sg.arange(classes)).to(x.dtype)
    return one_hot * (1 - smoothing) + smoothing / classes if smoothing else one_hot


@sg.assume(labels="index c")
class NLLLoss(sg.Function):
    """``-x[label]`` of each row: ``x`` are logarithms of probabilities."""

    @staticmethod
    def forward(ctx, x: "f32[n c]", labels: "i64[n]", ignore_index=-100, reduction="mean"):
        ctx.save_for_backward(x, labels)
        ctx.ignore_index, ctx.reduction = ignore_index, reduction
        valid, safe = _valid(labels, ignore_index)
        losses = -x.gather(1, safe).squeeze(1)
        return _reduced(losses, valid, reduction)

    @staticmethod
    def backward(ctx, grad):
        x, labels = ctx.saved_tensors
        valid, safe = _valid(labels, ctx.ignore_index)
        grad_x = -_each(grad, valid, ctx.reduction) * _targets(safe, x, 0.0)
        return grad_x, None, None, None


@sg.assume(labels="index c")
class CrossEntropyLoss(sg.Function):
    """``-log softmax(x)[label]`` of each row, without overflow.

    With ``label_smoothing`` s, the target is ``(1 - s) one_hot(label) + s / classes``.
    """

    @staticmethod
    def forward(
        ctx, x: "f32[n c]", labels: "i64[n]", ignore_index=-100, reduction="mean",
        label_smoothing=0.0,
    ):  # fmt: skip
        ctx.save_for_backward(x, labels)
        ctx.ignore_index, ctx.reduction = ignore_index, reduction
        ctx.label_smoothing = label_smoothing
        valid, safe = _valid(labels, ignore_index)
        y = sg.log_softmax(x, -1)
        losses = -y.gather(1, safe).squeeze(1)
        if label_smoothing:
            losses = (1 - label_smoothing) * losses - label_smoothing * y.mean(-1)
        return _reduced(losses, valid, reduction)

    @staticmethod
    def backward(ctx, grad):
        x, labels = ctx.saved_tensors
        valid, safe = _valid(labels, ctx.ignore_index)
        probabilities = sg.softmax(x, -1)
        targets = _targets(safe, x, ctx.label_smoothing)
        grad_x = _each(grad, valid, ctx.reduction) * (probabilities - targets)
        return grad_x, None, None, None, None


class SoftTargetCrossEntropyLoss(sg.Function):
    """``-sum(t log softmax(x))`` of each row: the targets are probabilities."""

    @staticmethod
    def forward(ctx, x: "f32[n c]", target: "f32[n c]", reduction="mean"):
        ctx.save_for_backward(x, target)
        ctx.reduction = reduction
        y = sg.log_softmax(x, -1)
        losses = -(target * y).sum(-1)
        if reduction == "none":
            return losses
        return losses.mean() if reduction == "mean" else losses.sum()

    @staticmethod
    def backward(ctx, grad):
        x, target = ctx.saved_tensors
        each = grad / x.shape[0] if ctx.reduction == "mean" else grad
        each = each.unsqueeze(-1)
        y = sg.log_softmax(x, -1)
        grad_x = each * (sg.exp(y) * target.sum(-1, keepdim=True) - target)
        return grad_x, -each * y if ctx.needs_input_grad[1] else None, None
