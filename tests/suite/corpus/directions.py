"""Normalised directions: unit vectors, cosine similarity, weight norm, instance statistics."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n m")
class Normalize(sg.Function):
    @staticmethod
    def forward(ctx, x):
        norm = sg.sqrt((x * x).sum(1, keepdim=True))
        y = x / norm
        ctx.save_for_backward(y, norm)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        y, norm = ctx.saved_tensors
        return (grad_y - y * (grad_y * y).sum(1, keepdim=True)) / norm


@wrong(Normalize, bug="the norm treated as a constant")
class NormalizeConstant(Normalize):
    @staticmethod
    def backward(ctx, grad_y):
        _, norm = ctx.saved_tensors
        return grad_y / norm


@wrong(Normalize, bug="projection onto x, not onto the direction")
class NormalizeProjection(Normalize):
    @staticmethod
    def backward(ctx, grad_y):
        y, norm = ctx.saved_tensors
        x = y * norm
        return (grad_y - x * (grad_y * x).sum(1, keepdim=True)) / norm


@wrong(Normalize, bug="elementwise product for the inner product")
class NormalizeElementwise(Normalize):
    @staticmethod
    def backward(ctx, grad_y):
        y, norm = ctx.saved_tensors
        return (grad_y - y * grad_y * y) / norm


@right("n m", static={"eps": 1e-3})
class NormalizeWithEps(sg.Function):
    """Divided by the norm plus eps: the cross term then has both."""

    @staticmethod
    def forward(ctx, x, eps):
        norm = x.norm(dim=1, keepdim=True)
        ctx.save_for_backward(x, norm)
        ctx.eps = eps
        return x / (norm + eps)

    @staticmethod
    def backward(ctx, grad_y):
        x, norm = ctx.saved_tensors
        d = norm + ctx.eps
        return grad_y / d - x * (grad_y * x).sum(1, keepdim=True) / (norm * d * d), None


@wrong(NormalizeWithEps, bug="eps ignored in the cross term")
class NormalizeEpsCross(NormalizeWithEps):
    @staticmethod
    def backward(ctx, grad_y):
        x, norm = ctx.saved_tensors
        d = norm + ctx.eps
        return grad_y / d - x * (grad_y * x).sum(1, keepdim=True) / d**3, None


@right("n m", "n m")
class CosineSimilarity(sg.Function):
    @staticmethod
    def forward(ctx, a, b):
        a_norm = a.norm(dim=1, keepdim=True)
        b_norm = b.norm(dim=1, keepdim=True)
        cosine = ((a / a_norm) * (b / b_norm)).sum(1, keepdim=True)
        ctx.save_for_backward(a, b, a_norm, b_norm, cosine)
        return cosine.squeeze(1)

    @staticmethod
    def backward(ctx, grad_output):
        a, b, a_norm, b_norm, cosine = ctx.saved_tensors
        g = grad_output.unsqueeze(1)
        grad_a = g * (b / (a_norm * b_norm) - cosine * a / a_norm**2)
        grad_b = g * (a / (a_norm * b_norm) - cosine * b / b_norm**2)
        return grad_a, grad_b


@wrong(CosineSimilarity, bug="norms treated as constants")
class CosineConstantNorms(CosineSimilarity):
    @staticmethod
    def backward(ctx, grad_output):
        a, b, a_norm, b_norm, _ = ctx.saved_tensors
        g = grad_output.unsqueeze(1) / (a_norm * b_norm)
        return g * b, g * a


@wrong(CosineSimilarity, bug="second term divided by the norm once, not squared")
class CosineNormPower(CosineSimilarity):
    @staticmethod
    def backward(ctx, grad_output):
        a, b, a_norm, b_norm, cosine = ctx.saved_tensors
        g = grad_output.unsqueeze(1)
        grad_a = g * (b / (a_norm * b_norm) - cosine * a / a_norm)
        grad_b = g * (a / (a_norm * b_norm) - cosine * b / b_norm)
        return grad_a, grad_b


@right("o i", "o")
class WeightNorm(sg.Function):
    """w = gain·v/|v|, a row at a time."""

    @staticmethod
    def forward(ctx, v, gain):
        norm = sg.sqrt((v**2).sum(1))
        ctx.save_for_backward(v, gain, norm)
        return v * (gain / norm)[:, None]

    @staticmethod
    def backward(ctx, grad_w):
        v, gain, norm = ctx.saved_tensors
        grad_gain = (grad_w * v).sum(1) / norm
        scale = (gain / norm)[:, None]
        grad_v = scale * grad_w - (gain * grad_gain / norm**2)[:, None] * v
        return grad_v, grad_gain


@wrong(WeightNorm, bug="gain's gradient not divided by the norm")
class WeightNormGain(WeightNorm):
    @staticmethod
    def backward(ctx, grad_w):
        v, gain, norm = ctx.saved_tensors
        grad_gain = (grad_w * v).sum(1)
        scale = (gain / norm)[:, None]
        grad_v = scale * grad_w - (gain * grad_gain / norm**3)[:, None] * v
        return grad_v, grad_gain


@wrong(WeightNorm, bug="gain missing in the second term")
class WeightNormSecondTerm(WeightNorm):
    @staticmethod
    def backward(ctx, grad_w):
        v, gain, norm = ctx.saved_tensors
        grad_gain = (grad_w * v).sum(1) / norm
        grad_v = (gain / norm)[:, None] * grad_w - (grad_gain / norm**2)[:, None] * v
        return grad_v, grad_gain


@right("b c s")
class CentreOverSpace(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x - x.mean(dim=2, keepdim=True)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output - grad_output.mean(dim=2, keepdim=True)


@wrong(CentreOverSpace, bug="identity: the mean taken for a constant")
class CentreIdentity(CentreOverSpace):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


@wrong(CentreOverSpace, bug="mean over the wrong axis")
class CentreAxis(CentreOverSpace):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output - grad_output.mean(dim=1, keepdim=True)


@right("n m", assume={"x": "positive"})
class L1Normalize(sg.Function):
    """Rows divided by their sums."""

    @staticmethod
    def forward(ctx, x):
        total = x.sum(-1, keepdim=True)
        ctx.save_for_backward(x, total)
        return x / total

    @staticmethod
    def backward(ctx, grad_y):
        x, total = ctx.saved_tensors
        return (grad_y - (grad_y * x / total).sum(-1, keepdim=True)) / total


@wrong(L1Normalize, bug="cross term divided by the sum once too few")
class L1NormalizeOnce(L1Normalize):
    @staticmethod
    def backward(ctx, grad_y):
        x, total = ctx.saved_tensors
        return (grad_y - (grad_y * x).sum(-1, keepdim=True)) / total


@right("b c h w", static={"eps": 1e-5})
class InstanceNorm(sg.Function):
    @staticmethod
    def forward(ctx, x, eps):
        dims = (2, 3)
        centred = x - x.mean(dims, keepdim=True)
        rstd = (centred.square().mean(dims, keepdim=True) + eps).rsqrt()
        y = centred * rstd
        ctx.save_for_backward(y, rstd)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        y, rstd = ctx.saved_tensors
        dims = (2, 3)
        inner = grad_y - grad_y.mean(dims, keepdim=True)
        return rstd * (inner - y * (grad_y * y).mean(dims, keepdim=True)), None


@wrong(InstanceNorm, bug="statistics of one spatial axis only")
class InstanceNormAxis(InstanceNorm):
    @staticmethod
    def backward(ctx, grad_y):
        y, rstd = ctx.saved_tensors
        inner = grad_y - grad_y.mean(3, keepdim=True)
        return rstd * (inner - y * (grad_y * y).mean(3, keepdim=True)), None


@wrong(InstanceNorm, bug="rstd squared")
class InstanceNormPower(InstanceNorm):
    @staticmethod
    def backward(ctx, grad_y):
        y, rstd = ctx.saved_tensors
        dims = (2, 3)
        inner = grad_y - grad_y.mean(dims, keepdim=True)
        return rstd * rstd * (inner - y * (grad_y * y).mean(dims, keepdim=True)), None


@right("n m", "n m", "m", static={"eps": 1e-6})
class AddRmsNorm(sg.Function):
    """Residual added before the norm; both the norm and the sum are returned."""

    @staticmethod
    def forward(ctx, x, residual, weight, eps):
        total = x + residual
        rstd = (total.pow(2).mean(-1, keepdim=True) + eps).rsqrt()
        ctx.save_for_backward(total, weight, rstd)
        return total * rstd * weight, total

    @staticmethod
    def backward(ctx, grad_y, grad_total):
        total, weight, rstd = ctx.saved_tensors
        normed = total * rstd
        scaled = grad_y * weight
        grad = rstd * (scaled - normed * (scaled * normed).mean(-1, keepdim=True)) + grad_total
        return grad, grad, (grad_y * normed).sum(0), None


@wrong(AddRmsNorm, bug="the residual's gradient pushed through the norm")
class AddRmsNormResidual(AddRmsNorm):
    @staticmethod
    def backward(ctx, grad_y, grad_total):
        total, weight, rstd = ctx.saved_tensors
        normed = total * rstd
        scaled = (grad_y + grad_total) * weight
        grad = rstd * (scaled - normed * (scaled * normed).mean(-1, keepdim=True))
        return grad, grad, (grad_y * normed).sum(0), None


@wrong(AddRmsNorm, bug="gradient of the second output dropped")
class AddRmsNormDropped(AddRmsNorm):
    @staticmethod
    def backward(ctx, grad_y, grad_total):
        total, weight, rstd = ctx.saved_tensors
        normed = total * rstd
        scaled = grad_y * weight
        grad = rstd * (scaled - normed * (scaled * normed).mean(-1, keepdim=True))
        return grad, grad, (grad_y * normed).sum(0), None
