"""The ops of the demo, each with its backward written by hand, as in PyTorch.

In: nothing.  Out: `symgrad.Function` classes; the annotations say dtype and shape, for every
size of the named axes.
"""

import math

import symgrad as sg


class Linear(sg.Function):
    """``y = x Wᵀ + b``."""

    @staticmethod
    def forward(ctx, x: "f32[n k]", weight: "f32[m k]", bias: "f32[m]"):
        ctx.save_for_backward(x, weight)
        return x @ weight.t() + bias

    @staticmethod
    def backward(ctx, grad_y):
        x, weight = ctx.saved_tensors
        return grad_y @ weight, grad_y.t() @ x, grad_y.sum(0)


class Tanh(sg.Function):
    """``y = tanh(x)``; its derivative is a function of y alone."""

    @staticmethod
    def forward(ctx, x: "f32[n m]"):
        y = sg.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return grad_y * (1 - y * y)


class Gelu(sg.Function):
    """``y = x Φ(x)``, Φ the distribution function of the standard normal."""

    @staticmethod
    def forward(ctx, x: "f32[n m]"):
        ctx.save_for_backward(x)
        return 0.5 * x * (1 + sg.erf(x / math.sqrt(2)))

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        distribution = 0.5 * (1 + sg.erf(x / math.sqrt(2)))
        density = sg.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        return grad_y * (distribution + x * density)


class LayerNorm(sg.Function):
    """Each row centred and scaled to unit variance, then ``y = x̂ w + b``."""

    @staticmethod
    def forward(ctx, x: "f32[n m]", weight: "f32[m]", bias: "f32[m]", eps=1e-5):
        centred = x - x.mean(-1, keepdim=True)
        inverse_deviation = sg.rsqrt((centred * centred).mean(-1, keepdim=True) + eps)
        normalized = centred * inverse_deviation
        ctx.save_for_backward(normalized, inverse_deviation, weight)
        return normalized * weight + bias

    @staticmethod
    def backward(ctx, grad_y):
        normalized, inverse_deviation, weight = ctx.saved_tensors
        grad_normalized = grad_y * weight
        mean = grad_normalized.mean(-1, keepdim=True)
        projection = (grad_normalized * normalized).mean(-1, keepdim=True)
        grad_x = (grad_normalized - mean - normalized * projection) * inverse_deviation
        return grad_x, (grad_y * normalized).sum(0), grad_y.sum(0), None


class SoftmaxCrossEntropy(sg.Function):
    """The mean of ``-log softmax(logits)[label]`` over the rows, without overflow."""

    @staticmethod
    def forward(ctx, logits: "f32[n c]", labels: "i64[n]"):
        shifted = logits - logits.amax(-1, keepdim=True)
        log_probabilities = shifted - sg.log(sg.exp(shifted).sum(-1, keepdim=True))
        ctx.save_for_backward(log_probabilities, labels)
        return -log_probabilities.gather(1, labels.unsqueeze(1)).mean()

    @staticmethod
    def backward(ctx, grad_loss):
        log_probabilities, labels = ctx.saved_tensors
        rows, classes = log_probabilities.shape
        one_hot = labels.unsqueeze(1) == sg.arange(classes)
        return grad_loss * (sg.exp(log_probabilities) - one_hot) / rows, None
