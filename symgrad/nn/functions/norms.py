"""Normalisations, with optional weights and biases.

In: tensors in which the normalised axes are apart from the others.  Out: ``symgrad.Function``
classes.

Backward computes the statistics again from the input: what is neither an input nor an output would
be a constant when backward is differentiated.
"""

import symgrad as sg


def _normalized(x, axes, eps):
    """``(x - mean) / deviation`` over the axes, and ``1 / deviation``."""
    centred = x - x.mean(axes, keepdim=True)
    inverse_deviation = sg.rsqrt((centred * centred).mean(axes, keepdim=True) + eps)
    return centred * inverse_deviation, inverse_deviation


def _grad_normalized(grad, normalized, inverse_deviation, axes):
    """The gradient of what was normalised, from that of the normal form."""
    mean = grad.mean(axes, keepdim=True)
    projection = (grad * normalized).mean(axes, keepdim=True)
    return (grad - mean - normalized * projection) * inverse_deviation


class LayerNorm(sg.Function):
    """Each row centred and scaled to unit variance, then ``y = x̂ w + b``."""

    @staticmethod
    def forward(ctx, x: "f32[n m]", weight: "f32[m]" = None, bias: "f32[m]" = None, eps=1e-5):
        ctx.save_for_backward(x, weight)
        ctx.eps, ctx.has_bias = eps, bias is not None
        y, _ = _normalized(x, -1, eps)
        y = y if weight is None else y * weight
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx, grad_y):
        x, weight = ctx.saved_tensors
        normalized, inverse_deviation = _normalized(x, -1, ctx.eps)
        grad = grad_y if weight is None else grad_y * weight
        grad_x = _grad_normalized(grad, normalized, inverse_deviation, -1)
        grad_weight = None if weight is None else (grad_y * normalized).sum(0)
        return grad_x, grad_weight, grad_y.sum(0) if ctx.has_bias else None, None


class RMSNorm(sg.Function):
    """Each row divided by the root of its mean square, then ``y = x̂ w``; eps: float32's."""

    @staticmethod
    def forward(ctx, x: "f32[n m]", weight: "f32[m]" = None, eps=2.0**-23):
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        y = x * sg.rsqrt((x * x).mean(-1, keepdim=True) + eps)
        return y if weight is None else y * weight

    @staticmethod
    def backward(ctx, grad_y):
        x, weight = ctx.saved_tensors
        inverse_root = sg.rsqrt((x * x).mean(-1, keepdim=True) + ctx.eps)
        normalized = x * inverse_root
        grad = grad_y if weight is None else grad_y * weight
        projection = (grad * normalized).mean(-1, keepdim=True)
        grad_x = (grad - normalized * projection) * inverse_root
        return grad_x, None if weight is None else (grad_y * normalized).sum(0), None


class GroupNorm(sg.Function):
    """Groups of channels normalised for each example.

    ``x`` is (examples, groups, channels, places).  The weight and the bias are
    (groups, channels).  With one channel a group it is InstanceNorm.
    """

    @staticmethod
    def forward(
        ctx, x: "f32[n g c s]", weight: "f32[g c]" = None, bias: "f32[g c]" = None, eps=1e-5
    ):
        ctx.save_for_backward(x, weight)
        ctx.eps, ctx.has_bias = eps, bias is not None
        y, _ = _normalized(x, (2, 3), eps)
        y = y if weight is None else y * weight.unsqueeze(-1)
        return y if bias is None else y + bias.unsqueeze(-1)

    @staticmethod
    def backward(ctx, grad_y):
        x, weight = ctx.saved_tensors
        normalized, inverse_deviation = _normalized(x, (2, 3), ctx.eps)
        grad = grad_y if weight is None else grad_y * weight.unsqueeze(-1)
        grad_x = _grad_normalized(grad, normalized, inverse_deviation, (2, 3))
        grad_weight = None if weight is None else (grad_y * normalized).sum((0, 3))
        return grad_x, grad_weight, grad_y.sum((0, 3)) if ctx.has_bias else None, None


class BatchNorm(sg.Function):
    """Channels normalised over the batch: ``x`` is (examples, channels, places).

    Also returns the mean and the variance (divided by the number of values), for running averages;
    no gradient goes through these.
    """

    @staticmethod
    def forward(ctx, x: "f32[n c s]", weight: "f32[c]" = None, bias: "f32[c]" = None, eps=1e-5):
        ctx.save_for_backward(x, weight)
        ctx.eps, ctx.has_bias = eps, bias is not None
        mean = x.mean((0, 2))
        centred = x - mean.unsqueeze(-1)
        variance = (centred * centred).mean((0, 2))
        y = centred * sg.rsqrt(variance + eps).unsqueeze(-1)
        y = y if weight is None else y * weight.unsqueeze(-1)
        y = y if bias is None else y + bias.unsqueeze(-1)
        ctx.mark_non_differentiable(mean, variance)
        return y, mean, variance

    @staticmethod
    def backward(ctx, grad_y, grad_mean, grad_variance):
        x, weight = ctx.saved_tensors
        normalized, inverse_deviation = _normalized(x, (0, 2), ctx.eps)
        grad = grad_y if weight is None else grad_y * weight.unsqueeze(-1)
        grad_x = _grad_normalized(grad, normalized, inverse_deviation, (0, 2))
        grad_weight = None if weight is None else (grad_y * normalized).sum((0, 2))
        return grad_x, grad_weight, grad_y.sum((0, 2)) if ctx.has_bias else None, None


@sg.assume(variance="nonnegative")
class BatchNormInference(sg.Function):
    """``(x - mean) / sqrt(variance + eps) w + b`` with given statistics of each channel."""

    @staticmethod
    def forward(
        ctx, x: "f32[n c s]", mean: "f32[c]", variance: "f32[c]", weight: "f32[c]" = None,
        bias: "f32[c]" = None, eps=1e-5,
    ):  # fmt: skip
        ctx.save_for_backward(x, mean, variance, weight)
        ctx.eps, ctx.has_bias = eps, bias is not None
        scale = sg.rsqrt(variance + eps)
        y = (x - mean.unsqueeze(-1)) * scale.unsqueeze(-1)
        y = y if weight is None else y * weight.unsqueeze(-1)
        return y if bias is None else y + bias.unsqueeze(-1)

    @staticmethod
    def backward(ctx, grad_y):
        x, mean, variance, weight = ctx.saved_tensors
        scale = sg.rsqrt(variance + ctx.eps)
        normalized = (x - mean.unsqueeze(-1)) * scale.unsqueeze(-1)
        grad = grad_y if weight is None else grad_y * weight.unsqueeze(-1)
        grad_x = grad * scale.unsqueeze(-1)
        grad_variance = -0.5 * scale * scale * (grad * normalized).sum((0, 2))
        grad_weight = None if weight is None else (grad_y * normalized).sum((0, 2))
        grad_bias = grad_y.sum((0, 2)) if ctx.has_bias else None
        return grad_x, -grad_x.sum((0, 2)), grad_variance, grad_weight, grad_bias, None
