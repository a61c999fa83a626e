"""Losses of numbers: squares, absolute values, entropies, element by element and reduced.

In: predictions and targets of the same shape.  Out: ``symgrad.Function`` classes.

``reduction``: "none", "mean" over all elements, or "sum".
"""

import symgrad as sg


def reduced(losses, reduction):
    """The losses, their mean or their sum."""
    if reduction == "none":
        return losses
    return losses.mean() if reduction == "mean" else losses.sum()


def spread(grad, count, reduction):
    """The gradient of each loss from that of what they were reduced to."""
    return grad / count if reduction == "mean" else grad


class MSELoss(sg.Function):
    """``(x - t)²``."""

    @staticmethod
    def forward(ctx, x: "f32[*s]", target: "f32[*s]", reduction="mean"):
        ctx.save_for_backward(x, target)
        ctx.reduction = reduction
        difference = x - target
        return reduced(difference * difference, reduction)

    @staticmethod
    def backward(ctx, grad):
        x, target = ctx.saved_tensors
        grad_x = spread(grad, x.numel(), ctx.reduction) * 2 * (x - target)
        return grad_x, -grad_x if ctx.needs_input_grad[1] else None, None


class L1Loss(sg.Function):
    """``|x - t|``; its derivative at 0 is 0."""

    @staticmethod
    def forward(ctx, x: "f32[*s]", target: "f32[*s]", reduction="mean"):
        ctx.save_for_backward(x, target)
        ctx.reduction = reduction
        return reduced(sg.abs(x - target), reduction)

    @staticmethod
    def backward(ctx, grad):
        x, target = ctx.saved_tensors
        grad_x = spread(grad, x.numel(), ctx.reduction) * sg.sign(x - target)
        return grad_x, -grad_x if ctx.needs_input_grad[1] else None, None


class HuberLoss(sg.Function):
    """``d²/2`` where ``|d| <= delta``, else ``delta (|d| - delta/2)``, with ``d = x - t``.

    Divided by ``scale``: SmoothL1Loss is that with ``scale = delta``.
    """

    @staticmethod
    def forward(ctx, x: "f32[*s]", target: "f32[*s]", delta=1.0, scale=1.0, reduction="mean"):
        ctx.save_for_backward(x, target)
        ctx.delta, ctx.scale, ctx.reduction = delta, scale, reduction
        size = sg.abs(x - target)
        losses = sg.where(size < delta, 0.5 * size * size, delta * (size - 0.5 * delta))
        return reduced(losses / scale, reduction)

    @staticmethod
    def backward(ctx, grad):
        x, target = ctx.saved_tensors
        each = spread(grad, x.numel(), ctx.reduction)
        grad_x = each * sg.clamp(x - target, -ctx.delta, ctx.delta) / ctx.scale
        return grad_x, -grad_x if ctx.needs_input_grad[1] else None, None, None, None


@sg.assume(x="(0, 1)")
class BCELoss(sg.Function):
    """``-t log(x) - (1 - t) log(1 - x)``; logarithms are at least -100, flat below.

    At 0 and 1, where there is no derivative, the gradient is torch's.
    """

    @staticmethod
    def forward(ctx, x: "f32[*s]", target: "f32[*s]", reduction="mean"):
        ctx.save_for_backward(x, target)
        ctx.reduction = reduction
        inside, outside = sg.clamp(sg.log(x), min=-100), sg.clamp(sg.log1p(-x), min=-100)
        return reduced(-target * inside - (1 - target) * outside, reduction)

    @staticmethod
    def backward(ctx, grad):
        x, target = ctx.saved_tensors
        each = spread(grad, x.numel(), ctx.reduction)
        inside, outside = sg.log(x), sg.log1p(-x)
        slope_in = sg.where(inside > -100, target / x, 0.0)
        slope_out = sg.where(outside > -100, (1 - target) / (1 - x), 0.0)
        grad_target = None
        if ctx.needs_input_grad[1]:
            grad_target = each * (sg.clamp(outside, min=-100) - sg.clamp(inside, min=-100))
        slope = sg.where((x > 0) & (x < 1), slope_out - slope_in, (x - target) * 1e12)
        return each * slope, grad_target, None


class BCEWithLogitsLoss(sg.Function):
    """``-t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x))``, without overflow."""

    @staticmethod
    def forward(ctx, x: "f32[*s]", target: "f32[*s]", reduction="mean"):
        ctx.save_for_backward(x, target)
        ctx.reduction = reduction
        return reduced((1 - target) * x - sg.logsigmoid(x), reduction)

    @staticmethod
    def backward(ctx, grad):
        x, target = ctx.saved_tensors
        each = spread(grad, x.numel(), ctx.reduction)
        grad_target = -each * x if ctx.needs_input_grad[1] else None
        return each * (sg.sigmoid(x) - target), grad_target, None


@sg.assume(target="positive")
class KLDivLoss(sg.Function):
    """``t (log(t) - x)``: ``x`` are logarithms; terms with ``t = 0`` are 0."""

    @staticmethod
    def forward(ctx, x: "f32[*s]", target: "f32[*s]", reduction="mean"):
        ctx.save_for_backward(x, target)
        ctx.reduction = reduction
        return reduced(sg.xlogy(target, target) - target * x, reduction)

    @staticmethod
    def backward(ctx, grad):
        x, target = ctx.saved_tensors
        each = spread(grad, x.numel(), ctx.reduction)
        wanted = ctx.needs_input_grad[1]
        grad_target = each * (sg.log(target) + 1 - x) if wanted else None
        return -each * target, grad_target, None


class KLDivLogLoss(sg.Function):
    """``exp(t) (t - x)``: both are logarithms."""

    @staticmethod
    def forward(ctx, x: "f32[*s]", target: "f32[*s]", reduction="mean"):
        ctx.save_for_backward(x, target)
        ctx.reduction = reduction
        return reduced(sg.exp(target) * (target - x), reduction)

    @staticmethod
    def backward(ctx, grad):
        x, target = ctx.saved_tensors
        each = spread(grad, x.numel(), ctx.reduction) * sg.exp(target)
        grad_target = each * (target - x + 1) if ctx.needs_input_grad[1] else None
        return -each, grad_target, None
