"""Activations, each an elementwise Function of tensors of any rank.

In: tensors.  Out: ``symgrad.Function`` classes.

What backward reads are inputs or outputs, never intermediates, so that each may be differentiated
twice.  Exponentials take only what cannot overflow, so that second derivatives have no ``0 * inf``.
"""

import math

import symgrad as sg

SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805


class ReLU(sg.Function):
    """``max(x, 0)``; its derivative at 0 is 0."""

    @staticmethod
    def forward(ctx, x: "f32[*s]"):
        y = sg.relu(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return sg.where(y <= 0, 0.0, grad_y)


class LeakyReLU(sg.Function):
    """``x`` above 0, ``negative_slope x`` elsewhere."""

    @staticmethod
    def forward(ctx, x: "f32[*s]", negative_slope=0.01):
        ctx.save_for_backward(x)
        ctx.negative_slope = negative_slope
        return sg.where(x > 0, x, x * negative_slope)

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        return sg.where(x > 0, grad_y, grad_y * ctx.negative_slope), None


class ELU(sg.Function):
    """``x`` above 0, ``alpha (exp(x) - 1)`` elsewhere."""

    @staticmethod
    def forward(ctx, x: "f32[*s]", alpha=1.0):
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        return sg.where(x > 0, x, alpha * sg.expm1(sg.clamp(x, max=0)))

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        below = grad_y * (ctx.alpha * sg.exp(sg.clamp(x, max=0)))
        return sg.where(x > 0, grad_y, below), None


class SELU(sg.Function):
    """The scaled ELU of Klambauer and others, Self-normalizing neural networks (2017)."""

    @staticmethod
    def forward(ctx, x: "f32[*s]"):
        ctx.save_for_backward(x)
        below = SELU_ALPHA * sg.expm1(sg.clamp(x, max=0))
        return SELU_SCALE * sg.where(x > 0, x, below)

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        below = SELU_ALPHA * sg.exp(sg.clamp(x, max=0))
        return grad_y * (SELU_SCALE * sg.where(x > 0, 1.0, below))


class Sigmoid(sg.Function):
    """``1 / (1 + exp(-x))``."""

    @staticmethod
    def forward(ctx, x: "f32[*s]"):
        y = sg.sigmoid(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return grad_y * (1 - y) * y


class LogSigmoid(sg.Function):
    """``log(sigmoid(x))``, without overflow."""

    @staticmethod
    def forward(ctx, x: "f32[*s]"):
        ctx.save_for_backward(x)
        return -sg.softplus(-x)

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        return grad_y * sg.sigmoid(-x)


class Tanh(sg.Function):
    """``tanh(x)``."""

    @staticmethod
    def forward(ctx, x: "f32[*s]"):
        y = sg.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return grad_y * (1 - y * y)


class GELU(sg.Function):
    """``x Φ(x)``, Φ the distribution function of the standard normal."""

    @staticmethod
    def forward(ctx, x: "f32[*s]"):
        ctx.save_for_backward(x)
        return 0.5 * x * (1 + sg.erf(x / math.sqrt(2)))

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        distribution = 0.5 * (1 + sg.erf(x / math.sqrt(2)))
        density = sg.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        return grad_y * (distribution + x * density)


class GELUTanh(sg.Function):
    """The approximation of GELU by tanh (Hendrycks and Gimpel, 2016)."""

    @staticmethod
    def forward(ctx, x: "f32[*s]"):
        ctx.save_for_backward(x)
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1 + sg.tanh(inner))

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
        t = sg.tanh(inner)
        return grad_y * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)


class SiLU(sg.Function):
    """``x sigmoid(x)``."""

    @staticmethod
    def forward(ctx, x: "f32[*s]"):
        ctx.save_for_backward(x)
        return x * sg.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        s = sg.sigmoid(x)
        return grad_y * (s * (1 + x * (1 - s)))


class Mish(sg.Function):
    """``x tanh(softplus(x))`` (Misra, 2019)."""

    @staticmethod
    def forward(ctx, x: "f32[*s]"):
        ctx.save_for_backward(x)
        return x * sg.tanh(sg.softplus(x))

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        t = sg.tanh(sg.softplus(x))
        return grad_y * (t + x * (1 - t * t) * sg.sigmoid(x))


class Softplus(sg.Function):
    """``log(1 + exp(beta x)) / beta``; ``x`` where ``beta x`` is above the threshold."""

    @staticmethod
    def forward(ctx, x: "f32[*s]", beta=1.0, threshold=20.0):
        ctx.save_for_backward(x)
        ctx.beta, ctx.threshold = beta, threshold
        return sg.where(x * beta > threshold, x, sg.softplus(x * beta) / beta)

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        scaled = x * ctx.beta
        return sg.where(scaled > ctx.threshold, grad_y, grad_y * sg.sigmoid(scaled)), None, None


class Softsign(sg.Function):
    """``x / (1 + |x|)``."""

    @staticmethod
    def forward(ctx, x: "f32[*s]"):
        ctx.save_for_backward(x)
        return x / (1 + sg.abs(x))

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        root = 1 + sg.abs(x)
        return grad_y / (root * root)


class Hardtanh(sg.Function):
    """``clamp(x, min_val, max_val)``; its derivative at both ends is 0."""

    @staticmethod
    def forward(ctx, x: "f32[*s]", min_val=-1.0, max_val=1.0):
        ctx.save_for_backward(x)
        ctx.ends = min_val, max_val
        return sg.clamp(x, min_val, max_val)

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        low, high = ctx.ends
        return sg.where((x > low) & (x < high), grad_y, 0.0), None, None


class Hardsigmoid(sg.Function):
    """``clamp(x + 3, 0, 6) / 6``."""

    @staticmethod
    def forward(ctx, x: "f32[*s]"):
        ctx.save_for_backward(x)
        return sg.clamp(x + 3, 0, 6) / 6

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        return sg.where((x > -3) & (x < 3), grad_y / 6, 0.0)


class Hardswish(sg.Function):
    """``x clamp(x + 3, 0, 6) / 6`` (Howard and others, Searching for MobileNetV3, 2019)."""

    @staticmethod
    def forward(ctx, x: "f32[*s]"):
        ctx.save_for_backward(x)
        return x * sg.clamp(x + 3, 0, 6) / 6

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        inside = grad_y * (x / 3 + 0.5)
        return sg.where(x <= -3, 0.0, sg.where(x < 3, inside, grad_y))


class PReLU(sg.Function):
    """``x`` above 0, ``weight x`` elsewhere; one weight for each column."""

    @staticmethod
    def forward(ctx, x: "f32[n c]", weight: "f32[c]"):
        ctx.save_for_backward(x, weight)
        return sg.where(x > 0, x, x * weight)

    @staticmethod
    def backward(ctx, grad_y):
        x, weight = ctx.saved_tensors
        grad_x = sg.where(x > 0, grad_y, grad_y * weight)
        return grad_x, sg.where(x > 0, 0.0, grad_y * x).sum(0)
