"""Normalisations: softmax, layer, RMS, batch, group, weight norm, cosine; and lost cross terms."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n m")
class Softmax(sg.Function):
    @staticmethod
    def forward(ctx, x):
        e = sg.exp(x - x.max(dim=-1, keepdim=True)[0])
        y = e / e.sum(dim=-1, keepdim=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return y * (grad_y - (grad_y * y).sum(dim=-1, keepdim=True))


@wrong(Softmax, bug="diagonal of the Jacobian only")
class SoftmaxDiagonal(Softmax):
    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return grad_y * y * (1 - y)


@wrong(Softmax, bug="summed over the batch")
class SoftmaxAxis(Softmax):
    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return y * (grad_y - (grad_y * y).sum(dim=0, keepdim=True))


@wrong(Softmax, bug="upstream gradient summed without the probabilities")
class SoftmaxPlainSum(Softmax):
    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return y * (grad_y - grad_y.sum(dim=-1, keepdim=True))


@right("n m", static={"dim": -1})
class LogSoftmax(sg.Function):
    @staticmethod
    def forward(ctx, x, dim):
        y = x - sg.logsumexp(x, dim=dim, keepdim=True)
        ctx.dim = dim
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return grad_y - y.exp() * grad_y.sum(dim=ctx.dim, keepdim=True), None


@wrong(LogSoftmax, bug="right only for gradients whose rows sum to 1")
class LogSoftmaxSum(LogSoftmax):
    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return grad_y - y.exp(), None


@wrong(LogSoftmax, bug="softmax's gradient for log-softmax's")
class LogSoftmaxConfused(LogSoftmax):
    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        p = y.exp()
        return p * (grad_y - (grad_y * p).sum(dim=ctx.dim, keepdim=True)), None


@right("n m", "m", "m", static={"eps": 1e-5})
class LayerNorm(sg.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        mean = x.mean(-1, keepdim=True)
        var = (x - mean).pow(2).mean(-1, keepdim=True)
        rstd = 1 / sg.sqrt(var + eps)
        xhat = (x - mean) * rstd
        ctx.save_for_backward(xhat, rstd, weight)
        return weight * xhat + bias

    @staticmethod
    def backward(ctx, grad_output):
        xhat, rstd, weight = ctx.saved_tensors
        grad_xhat = grad_output * weight
        c1 = grad_xhat.mean(-1, keepdim=True)
        c2 = (grad_xhat * xhat).mean(-1, keepdim=True)
        grad_x = rstd * (grad_xhat - c1 - xhat * c2)
        return grad_x, (grad_output * xhat).sum(0), grad_output.sum(0), None


@wrong(LayerNorm, bug="mean and deviation treated as constants")
class LayerNormConstants(LayerNorm):
    @staticmethod
    def backward(ctx, grad_output):
        xhat, rstd, weight = ctx.saved_tensors
        return grad_output * weight * rstd, (grad_output * xhat).sum(0), grad_output.sum(0), None


@wrong(LayerNorm, bug="cross term of the variance left out")
class LayerNormCross(LayerNorm):
    @staticmethod
    def backward(ctx, grad_output):
        xhat, rstd, weight = ctx.saved_tensors
        grad_xhat = grad_output * weight
        grad_x = rstd * (grad_xhat - grad_xhat.mean(-1, keepdim=True))
        return grad_x, (grad_output * xhat).sum(0), grad_output.sum(0), None


@wrong(LayerNorm, bug="weight applied after the means instead of before")
class LayerNormWeightLate(LayerNorm):
    @staticmethod
    def backward(ctx, grad_output):
        xhat, rstd, weight = ctx.saved_tensors
        c1 = grad_output.mean(-1, keepdim=True)
        c2 = (grad_output * xhat).mean(-1, keepdim=True)
        grad_x = weight * rstd * (grad_output - c1 - xhat * c2)
        return grad_x, (grad_output * xhat).sum(0), grad_output.sum(0), None


@wrong(LayerNorm, bug="sums for means")
class LayerNormSums(LayerNorm):
    @staticmethod
    def backward(ctx, grad_output):
        xhat, rstd, weight = ctx.saved_tensors
        grad_xhat = grad_output * weight
        c1 = grad_xhat.sum(-1, keepdim=True)
        c2 = (grad_xhat * xhat).sum(-1, keepdim=True)
        grad_x = rstd * (grad_xhat - c1 - xhat * c2)
        return grad_x, (grad_output * xhat).sum(0), grad_output.sum(0), None


@right("b t m", "m", static={"eps": 1e-6})
class RmsNorm(sg.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        rstd = sg.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, weight, rstd)
        return x * rstd * weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight, rstd = ctx.saved_tensors
        scaled = grad_output * weight
        dot = (scaled * x).sum(-1, keepdim=True)
        grad_x = rstd * scaled - x * rstd**3 * dot / x.shape[-1]
        return grad_x, (grad_output * x * rstd).sum((0, 1)), None


@wrong(RmsNorm, bug="rstd² for rstd³ in the second term")
class RmsNormPower(RmsNorm):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight, rstd = ctx.saved_tensors
        scaled = grad_output * weight
        dot = (scaled * x).sum(-1, keepdim=True)
        grad_x = rstd * scaled - x * rstd**2 * dot / x.shape[-1]
        return grad_x, (grad_output * x * rstd).sum((0, 1)), None


@wrong(RmsNorm, bug="weight's gradient summed over the wrong axes", kind="shape")
class RmsNormAxes(RmsNorm):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight, rstd = ctx.saved_tensors
        scaled = grad_output * weight
        dot = (scaled * x).sum(-1, keepdim=True)
        grad_x = rstd * scaled - x * rstd**3 * dot / x.shape[-1]
        return grad_x, (grad_output * x * rstd).sum(1).sum(1), None


@wrong(RmsNorm, bug="the mean's 1/m left out")
class RmsNormMean(RmsNorm):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight, rstd = ctx.saved_tensors
        scaled = grad_output * weight
        grad_x = rstd * scaled - x * rstd**3 * (scaled * x).sum(-1, keepdim=True)
        return grad_x, (grad_output * x * rstd).sum((0, 1)), None


@right("n m", "m", "m", static={"eps": 1e-3})
class BatchNorm(sg.Function):
    @staticmethod
    def forward(ctx, x, gamma, beta, eps):
        mu = x.mean(0)
        var = x.var(0, unbiased=False)
        ctx.save_for_backward(x, gamma, mu, var)
        ctx.eps = eps
        return gamma * (x - mu) / sg.sqrt(var + eps) + beta

    @staticmethod
    def backward(ctx, grad_output):
        x, gamma, mu, var = ctx.saved_tensors
        n = x.shape[0]
        std = sg.sqrt(var + ctx.eps)
        xhat = (x - mu) / std
        grad_gamma = (grad_output * xhat).sum(0)
        grad_beta = grad_output.sum(0)
        grad_x = gamma / (n * std) * (n * grad_output - grad_beta - xhat * grad_gamma)
        return grad_x, grad_gamma, grad_beta, None


@wrong(BatchNorm, bug="eps left out of the deviation in backward")
class BatchNormEps(BatchNorm):
    @staticmethod
    def backward(ctx, grad_output):
        x, gamma, mu, var = ctx.saved_tensors
        n = x.shape[0]
        xhat = (x - mu) / sg.sqrt(var + ctx.eps)
        grad_gamma = (grad_output * xhat).sum(0)
        grad_beta = grad_output.sum(0)
        grad_x = gamma / (n * sg.sqrt(var)) * (n * grad_output - grad_beta - xhat * grad_gamma)
        return grad_x, grad_gamma, grad_beta, None


@wrong(BatchNorm, bug="eps outside the root")
class BatchNormEpsOutside(BatchNorm):
    @staticmethod
    def backward(ctx, grad_output):
        x, gamma, mu, var = ctx.saved_tensors
        n = x.shape[0]
        std = sg.sqrt(var) + ctx.eps
        xhat = (x - mu) / std
        grad_gamma = (grad_output * xhat).sum(0)
        grad_beta = grad_output.sum(0)
        grad_x = gamma / (n * std) * (n * grad_output - grad_beta - xhat * grad_gamma)
        return grad_x, grad_gamma, grad_beta, None


@wrong(BatchNorm, bug="sign of the mean's term")
class BatchNormSign(BatchNorm):
    @staticmethod
    def backward(ctx, grad_output):
        x, gamma, mu, var = ctx.saved_tensors
        n = x.shape[0]
        std = sg.sqrt(var + ctx.eps)
        xhat = (x - mu) / std
        grad_gamma = (grad_output * xhat).sum(0)
        grad_beta = grad_output.sum(0)
        grad_x = gamma / (n * std) * (n * grad_output + grad_beta - xhat * grad_gamma)
        return grad_x, grad_gamma, grad_beta, None


@right("n 2*c s", static={"groups": 2, "eps": 1e-5})
class GroupNorm(sg.Function):
    """Of two groups; the specs say that the channels divide."""

    @staticmethod
    def forward(ctx, x, groups, eps):
        n, channels, s = x.shape
        grouped = x.view(n, groups, channels // groups * s)
        mean = grouped.mean(-1, keepdim=True)
        rstd = (grouped.var(-1, unbiased=False, keepdim=True) + eps).rsqrt()
        y = (grouped - mean) * rstd
        ctx.save_for_backward(y, rstd)
        return y.view(n, channels, s)

    @staticmethod
    def backward(ctx, grad_output):
        y, rstd = ctx.saved_tensors
        grad = grad_output.reshape(y.shape)
        mean = grad.mean(-1, keepdim=True)
        grad_x = rstd * (grad - mean - y * (grad * y).mean(-1, keepdim=True))
        return grad_x.view(grad_output.shape), None, None


@wrong(GroupNorm, bug="cross term of the variance left out")
class GroupNormCross(GroupNorm):
    @staticmethod
    def backward(ctx, grad_output):
        y, rstd = ctx.saved_tensors
        grad = grad_output.reshape(y.shape)
        return (rstd * (grad - grad.mean(-1, keepdim=True))).view(grad_output.shape), None, None
