"""Scores and metric losses: correlations, overlaps, similarity of images, margins, transport."""

import math

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n m", "n m")
class PearsonCorrelation(sg.Function):
    @staticmethod
    def forward(ctx, x, y):
        xc = x - x.mean(1, keepdim=True)
        yc = y - y.mean(1, keepdim=True)
        xn = (xc * xc).sum(1, keepdim=True).sqrt()
        yn = (yc * yc).sum(1, keepdim=True).sqrt()
        r = (xc * yc).sum(1, keepdim=True) / (xn * yn)
        ctx.save_for_backward(xc, yc, xn, yn, r)
        return r.squeeze(1)

    @staticmethod
    def backward(ctx, g):
        xc, yc, xn, yn, r = ctx.saved_tensors
        g = g.unsqueeze(1)
        grad_x = g * (yc / (xn * yn) - r * xc / xn**2)
        grad_y = g * (xc / (xn * yn) - r * yc / yn**2)
        return grad_x, grad_y


@right(PearsonCorrelation)
class PearsonCentredAgain(PearsonCorrelation):
    """The gradients' means are zero already: taking them off changes nothing."""

    @staticmethod
    def backward(ctx, g):
        xc, yc, xn, yn, r = ctx.saved_tensors
        g = g.unsqueeze(1)
        grad_x = g * (yc / (xn * yn) - r * xc / xn**2)
        grad_y = g * (xc / (xn * yn) - r * yc / yn**2)
        return grad_x - grad_x.mean(1, keepdim=True), grad_y


@wrong(PearsonCorrelation, bug="norms treated as constants")
class PearsonNorms(PearsonCorrelation):
    @staticmethod
    def backward(ctx, g):
        xc, yc, xn, yn, _ = ctx.saved_tensors
        g = g.unsqueeze(1) / (xn * yn)
        return g * yc, g * xc


@wrong(PearsonCorrelation, bug="r squared")
class PearsonSquare(PearsonCorrelation):
    @staticmethod
    def backward(ctx, g):
        xc, yc, xn, yn, r = ctx.saved_tensors
        g = g.unsqueeze(1)
        grad_x = g * (yc / (xn * yn) - r * r * xc / xn**2)
        grad_y = g * (xc / (xn * yn) - r * r * yc / yn**2)
        return grad_x, grad_y


@right("n m", "n m", static={"alpha": 0.3, "beta": 0.7}, assume={"p": "(0, 1)", "t": "constant"})
class TverskyLoss(sg.Function):
    @staticmethod
    def forward(ctx, p, t, alpha, beta):
        tp = (p * t).sum(1)
        fp = (p * (1 - t)).sum(1)
        fn = ((1 - p) * t).sum(1)
        total = tp + alpha * fp + beta * fn + 1
        ctx.save_for_backward(t, tp, total)
        ctx.alpha, ctx.beta = alpha, beta
        return 1 - (tp + 1) / total

    @staticmethod
    def backward(ctx, g):
        t, tp, total = ctx.saved_tensors
        slope = t + ctx.alpha * (1 - t) - ctx.beta * t
        ratio = (tp + 1) / total
        grad = (ratio[:, None] * slope - t) / total[:, None]
        return g[:, None] * grad, None, None, None


@wrong(TverskyLoss, bug="the false negatives' sign")
class TverskySign(TverskyLoss):
    @staticmethod
    def backward(ctx, g):
        t, tp, total = ctx.saved_tensors
        slope = t + ctx.alpha * (1 - t) + ctx.beta * t
        ratio = (tp + 1) / total
        grad = (ratio[:, None] * slope - t) / total[:, None]
        return g[:, None] * grad, None, None, None


@right("n m", "n m", static={"c1": 0.01, "c2": 0.03})
class Similarity(sg.Function):
    """The structural similarity of whole rows."""

    @staticmethod
    def forward(ctx, x, y, c1, c2):
        mx, my = x.mean(1, keepdim=True), y.mean(1, keepdim=True)
        vx = (x * x).mean(1, keepdim=True) - mx * mx
        vy = (y * y).mean(1, keepdim=True) - my * my
        cov = (x * y).mean(1, keepdim=True) - mx * my
        a, b = 2 * mx * my + c1, 2 * cov + c2
        c, d = mx * mx + my * my + c1, vx + vy + c2
        ctx.save_for_backward(x, y, mx, my, a, b, c, d)
        return (a * b / (c * d)).squeeze(1)

    @staticmethod
    def backward(ctx, g):
        x, y, mx, my, a, b, c, d = ctx.saved_tensors
        n = x.shape[1]
        s = a * b / (c * d)
        g = g.unsqueeze(1)

        def side(p, q, mp, mq):
            by_mean = 2 * (mq * b / (c * d) - mp * s / c) / n
            by_cov = 2 * a / (c * d) * (q - mq) / n
            by_var = -s / d * 2 * (p - mp) / n
            return g * (by_mean + by_cov + by_var)

        return side(x, y, mx, my), side(y, x, my, mx), None, None


@wrong(Similarity, bug="variance's derivative without its 2")
class SimilarityVariance(Similarity):
    @staticmethod
    def backward(ctx, g):
        x, y, mx, my, a, b, c, d = ctx.saved_tensors
        n = x.shape[1]
        s = a * b / (c * d)
        g = g.unsqueeze(1)

        def side(p, q, mp, mq):
            by_mean = 2 * (mq * b / (c * d) - mp * s / c) / n
            by_cov = 2 * a / (c * d) * (q - mq) / n
            by_var = -s / d * (p - mp) / n
            return g * (by_mean + by_cov + by_var)

        return side(x, y, mx, my), side(y, x, my, mx), None, None


@right("n", static={"margin": 0.5}, assume={"cosine": "(-1, 1)"})
class AngularMargin(sg.Function):
    """cos(θ + m) of a cosine."""

    @staticmethod
    def forward(ctx, cosine, margin):
        sine = (1 - cosine * cosine).sqrt()
        ctx.save_for_backward(cosine, sine)
        ctx.margin = margin
        return cosine * math.cos(margin) - sine * math.sin(margin)

    @staticmethod
    def backward(ctx, g):
        cosine, sine = ctx.saved_tensors
        return g * (math.cos(ctx.margin) + math.sin(ctx.margin) * cosine / sine), None


@wrong(AngularMargin, bug="the sine taken for a constant")
class AngularConstant(AngularMargin):
    @staticmethod
    def backward(ctx, g):
        return g * math.cos(ctx.margin), None


@wrong(AngularMargin, bug="sign of the sine's derivative")
class AngularSign(AngularMargin):
    @staticmethod
    def backward(ctx, g):
        cosine, sine = ctx.saved_tensors
        return g * (math.cos(ctx.margin) - math.sin(ctx.margin) * cosine / sine), None


@right("n m", static={"reg": 0.5})
class SinkhornStep(sg.Function):
    """Rows, then columns of exp(-cost/reg) normalised once."""

    @staticmethod
    def forward(ctx, cost, reg):
        k = sg.exp(-cost / reg)
        r = k / k.sum(1, keepdim=True)
        p = r / r.sum(0, keepdim=True)
        ctx.save_for_backward(r, p, r.sum(0, keepdim=True))
        ctx.reg = reg
        return p

    @staticmethod
    def backward(ctx, g):
        r, p, columns = ctx.saved_tensors
        grad_r = (g - (g * p).sum(0, keepdim=True)) / columns
        grad_log = r * (grad_r - (grad_r * r).sum(1, keepdim=True))
        return -grad_log / ctx.reg, None


@wrong(SinkhornStep, bug="column sums taken for constants")
class SinkhornColumns(SinkhornStep):
    @staticmethod
    def backward(ctx, g):
        r, _, columns = ctx.saved_tensors
        grad_r = g / columns
        grad_log = r * (grad_r - (grad_r * r).sum(1, keepdim=True))
        return -grad_log / ctx.reg, None


@wrong(SinkhornStep, bug="sign of the cost")
class SinkhornSign(SinkhornStep):
    @staticmethod
    def backward(ctx, g):
        r, p, columns = ctx.saved_tensors
        grad_r = (g - (g * p).sum(0, keepdim=True)) / columns
        grad_log = r * (grad_r - (grad_r * r).sum(1, keepdim=True))
        return grad_log / ctx.reg, None


@right("n d", "n d", static={"margin": 1.0}, assume={"same": "constant"})
class ContrastiveLoss(sg.Function):
    """Squared distance of embeddings, hinged; the first column of ``same`` labels the pairs."""

    @staticmethod
    def forward(ctx, diff, same, margin):
        label = same[:, 0]
        distance = (diff * diff).sum(1).sqrt()
        gap = (margin - distance).clamp(min=0)
        ctx.save_for_backward(diff, label, distance, gap)
        return (label * distance**2 + (1 - label) * gap**2).mean()

    @staticmethod
    def backward(ctx, g):
        diff, label, distance, gap = ctx.saved_tensors
        scale = 2 * label - 2 * (1 - label) * gap / distance
        return g * scale[:, None] * diff / diff.shape[0], None, None


@wrong(ContrastiveLoss, bug="distance not divided out in the hinged term")
class ContrastiveDistance(ContrastiveLoss):
    @staticmethod
    def backward(ctx, g):
        diff, label, _, gap = ctx.saved_tensors
        scale = 2 * label - 2 * (1 - label) * gap
        return g * scale[:, None] * diff / diff.shape[0], None, None


@right("n m", "bool[n m]")
class MaskedSoftmax(sg.Function):
    """Minus infinity where the mask is off; a row without any is out of the domain."""

    @staticmethod
    def forward(ctx, x, mask):
        scores = x.masked_fill(~mask, float("-inf"))
        p = sg.softmax(scores, dim=-1)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        return p * (g - (p * g).sum(-1, keepdim=True)), None


@wrong(MaskedSoftmax, bug="cross term not weighted by the probabilities")
class MaskedSoftmaxSum(MaskedSoftmax):
    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        return p * (g - g.sum(-1, keepdim=True)), None


@right("n m", "bool[n m]")
class MaskedMean(sg.Function):
    """Mean over the elements that a mask keeps, at least one counted."""

    @staticmethod
    def forward(ctx, x, mask):
        kept = mask.to(x.dtype)
        count = kept.sum(1).clamp(min=1)
        ctx.save_for_backward(kept, count)
        return (x * kept).sum(1) / count

    @staticmethod
    def backward(ctx, g):
        kept, count = ctx.saved_tensors
        return kept * (g / count)[:, None], None


@wrong(MaskedMean, bug="divided by the row's length")
class MaskedMeanLength(MaskedMean):
    @staticmethod
    def backward(ctx, g):
        kept, _ = ctx.saved_tensors
        return kept * g[:, None] / kept.shape[1], None


@wrong(MaskedMean, bug="elements left out get a gradient")
class MaskedMeanLeak(MaskedMean):
    @staticmethod
    def backward(ctx, g):
        kept, count = ctx.saved_tensors
        return (g / count)[:, None].expand_as(kept), None
