"""Losses of classification and of distributions: cross entropy, focal, KL, dice, contrastive."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n c", "i64[n]", assume={"target": "index c"})
class CrossEntropy(sg.Function):
    @staticmethod
    def forward(ctx, logits, target):
        log_p = sg.log_softmax(logits, dim=1)
        ctx.save_for_backward(log_p, target)
        return -log_p.gather(1, target.unsqueeze(1)).mean()

    @staticmethod
    def backward(ctx, grad_output):
        log_p, target = ctx.saved_tensors
        grad = log_p.exp()
        grad[sg.arange(grad.shape[0]), target] -= 1
        return grad * grad_output / grad.shape[0], None


@right(CrossEntropy)
class CrossEntropyOneHot(CrossEntropy):
    @staticmethod
    def backward(ctx, grad_output):
        log_p, target = ctx.saved_tensors
        one_hot = sg.zeros_like(log_p).scatter_(1, target.view(-1, 1), 1.0)
        return (log_p.exp() - one_hot) * (grad_output / log_p.size(0)), None


@wrong(CrossEntropy, bug="not divided by the batch", right_if="n == 1 or c == 1")
class CrossEntropySum(CrossEntropy):
    @staticmethod
    def backward(ctx, grad_output):
        log_p, target = ctx.saved_tensors
        grad = log_p.exp()
        grad[sg.arange(grad.shape[0]), target] -= 1
        return grad * grad_output, None


@wrong(CrossEntropy, bug="divided by the classes, not the batch", right_if="n == c or c == 1")
class CrossEntropyClasses(CrossEntropy):
    @staticmethod
    def backward(ctx, grad_output):
        log_p, target = ctx.saved_tensors
        grad = log_p.exp()
        grad[sg.arange(grad.shape[0]), target] -= 1
        return grad * grad_output / grad.shape[1], None


@wrong(CrossEntropyOneHot, bug="the cotangent is ignored")
class CrossEntropyUpstream(CrossEntropyOneHot):
    @staticmethod
    def backward(ctx, grad_output):
        log_p, target = ctx.saved_tensors
        one_hot = sg.zeros_like(log_p).scatter_(1, target.view(-1, 1), 1.0)
        return (log_p.exp() - one_hot) / log_p.size(0), None


@wrong(CrossEntropyOneHot, bug="one-hot not subtracted")
class CrossEntropyNoTarget(CrossEntropyOneHot):
    @staticmethod
    def backward(ctx, grad_output):
        log_p, _ = ctx.saved_tensors
        return log_p.exp() * (grad_output / log_p.size(0)), None


@right("n c", "i64[n]", assume={"target": "index c"}, static={"smoothing": 0.1})
class LabelSmoothing(sg.Function):
    @staticmethod
    def forward(ctx, logits, target, smoothing):
        log_p = logits - sg.logsumexp(logits, 1, keepdim=True)
        uniform = sg.full_like(log_p, 1.0) * (smoothing / logits.shape[1])
        q = uniform.scatter_add(1, target[:, None], sg.full_like(log_p[:, :1], 1 - smoothing))
        ctx.save_for_backward(log_p, q)
        return -(q * log_p).sum(1)

    @staticmethod
    def backward(ctx, grad_output):
        log_p, q = ctx.saved_tensors
        return (log_p.exp() - q) * grad_output[:, None], None, None


@wrong(LabelSmoothing, bug="sign of the loss")
class LabelSmoothingSign(LabelSmoothing):
    @staticmethod
    def backward(ctx, grad_output):
        log_p, q = ctx.saved_tensors
        return (q - log_p.exp()) * grad_output[:, None], None, None


@wrong(LabelSmoothing, bug="each row gets another row's upstream gradient", kind="error")
class LabelSmoothingRow(LabelSmoothing):
    @staticmethod
    def backward(ctx, grad_output):
        log_p, q = ctx.saved_tensors
        return (log_p.exp() - q) * grad_output[None, :], None, None


@right("n", "n", assume={"target": "constant"})
class BceWithLogits(sg.Function):
    """The stable form max(x, 0) - x·t + log(1 + exp(-|x|))."""

    @staticmethod
    def forward(ctx, x, target):
        ctx.save_for_backward(x, target)
        return (x.clamp(min=0) - x * target + sg.log1p(sg.exp(-x.abs()))).mean()

    @staticmethod
    def backward(ctx, grad_output):
        x, target = ctx.saved_tensors
        return grad_output * (sg.sigmoid(x) - target) / x.numel(), None


@wrong(BceWithLogits, bug="sigmoid's derivative multiplied once more")
class BceExtraSigmoid(BceWithLogits):
    @staticmethod
    def backward(ctx, grad_output):
        x, target = ctx.saved_tensors
        s = sg.sigmoid(x)
        return grad_output * (s - target) * s * (1 - s) / x.numel(), None


@right("n", "n", assume={"p": "(0, 1)", "t": "(0, 1)"})
class BinaryCrossEntropy(sg.Function):
    @staticmethod
    def forward(ctx, p, t):
        ctx.save_for_backward(p, t)
        return -(t * p.log() + (1 - t) * (1 - p).log())

    @staticmethod
    def backward(ctx, g):
        p, t = ctx.saved_tensors
        return g * (p - t) / (p * (1 - p)), g * ((1 - p).log() - p.log())


@wrong(BinaryCrossEntropy, bug="sign of the second logarithm's derivative")
class BinaryCrossEntropySign(BinaryCrossEntropy):
    @staticmethod
    def backward(ctx, g):
        p, t = ctx.saved_tensors
        return -g * (t / p + (1 - t) / (1 - p)), g * ((1 - p).log() - p.log())


@right("n", "n", static={"gamma": 2.0}, assume={"target": "{0, 1}"}, needed=True)
class FocalLoss(sg.Function):
    """(1 - p_t)^gamma of the binary cross entropy; right for targets that are 0 or 1."""

    @staticmethod
    def forward(ctx, logits, target, gamma):
        p = sg.sigmoid(logits)
        pt = sg.where(target > 0.5, p, 1 - p)
        ctx.save_for_backward(target, pt)
        ctx.gamma = gamma
        return -((1 - pt) ** gamma) * pt.log()

    @staticmethod
    def backward(ctx, grad_output):
        target, pt = ctx.saved_tensors
        gamma = ctx.gamma
        inner = gamma * (1 - pt) ** gamma * pt * pt.log() - (1 - pt) ** (gamma + 1)
        return grad_output * inner * (2 * target - 1), None, None


@wrong(FocalLoss, bug="derivative of the modulating factor left out")
class FocalModulation(FocalLoss):
    @staticmethod
    def backward(ctx, grad_output):
        target, pt = ctx.saved_tensors
        return -grad_output * (1 - pt) ** (ctx.gamma + 1) * (2 * target - 1), None, None


@wrong(FocalLoss, bug="(1 - p)^(gamma - 1) not restored to gamma")
class FocalPower(FocalLoss):
    @staticmethod
    def backward(ctx, grad_output):
        target, pt = ctx.saved_tensors
        gamma = ctx.gamma
        inner = gamma * (1 - pt) ** (gamma - 1) * pt * pt.log() - (1 - pt) ** (gamma + 1)
        return grad_output * inner * (2 * target - 1), None, None


@right("n c", "n c", assume={"q": "positive"})
class KlDivergence(sg.Function):
    """Σ q (log q - log_softmax(x)): q need not sum to one."""

    @staticmethod
    def forward(ctx, x, q):
        log_p = x.log_softmax(-1)
        ctx.save_for_backward(log_p, q)
        return (q * (q.log() - log_p)).sum(-1)

    @staticmethod
    def backward(ctx, g):
        log_p, q = ctx.saved_tensors
        g = g.unsqueeze(-1)
        grad_x = g * (log_p.exp() * q.sum(-1, keepdim=True) - q)
        return grad_x, g * (q.log() + 1 - log_p)


@wrong(KlDivergence, bug="right only where q sums to one")
class KlUnnormalised(KlDivergence):
    @staticmethod
    def backward(ctx, g):
        log_p, q = ctx.saved_tensors
        g = g.unsqueeze(-1)
        return g * (log_p.exp() - q), g * (q.log() + 1 - log_p)


@right("n m", "n m", static={"smooth": 1.0}, assume={"target": "constant"})
class DiceLoss(sg.Function):
    @staticmethod
    def forward(ctx, p, target, smooth):
        overlap = (p * target).sum(1)
        total = (p * p).sum(1) + (target * target).sum(1) + smooth
        ctx.save_for_backward(p, target, overlap, total)
        ctx.smooth = smooth
        return 1 - (2 * overlap + smooth) / total

    @staticmethod
    def backward(ctx, g):
        p, target, overlap, total = ctx.saved_tensors
        top = (2 * overlap + ctx.smooth) / total
        grad = 2 * (p * top[:, None] - target) * (g / total)[:, None]
        return grad, None, None


@wrong(DiceLoss, bug="smooth forgotten in the numerator")
class DiceSmooth(DiceLoss):
    @staticmethod
    def backward(ctx, g):
        p, target, overlap, total = ctx.saved_tensors
        top = 2 * overlap / total
        return 2 * (p * top[:, None] - target) * (g / total)[:, None], None, None


@wrong(DiceLoss, bug="quotient rule half done")
class DiceQuotient(DiceLoss):
    @staticmethod
    def backward(ctx, g):
        _, target, _, total = ctx.saved_tensors
        return -2 * target * (g / total)[:, None], None, None


@right("n c", "i64[n]", static={"margin": 1.0}, assume={"target": "index c"})
class MultiMargin(sg.Function):
    @staticmethod
    def forward(ctx, scores, target, margin):
        own = scores.gather(1, target[:, None])
        active = (scores - own + margin > 0).to(scores.dtype)
        active = active.scatter(1, target[:, None], 0.0)
        ctx.save_for_backward(active, target)
        return ((scores - own + margin) * active).sum(1)

    @staticmethod
    def backward(ctx, g):
        active, target = ctx.saved_tensors
        grad = active.scatter(1, target[:, None], -active.sum(1, keepdim=True))
        return grad * g[:, None], None, None


@wrong(MultiMargin, bug="the true class counted once, not once for each violation")
class MultiMarginOnce(MultiMargin):
    @staticmethod
    def backward(ctx, g):
        active, target = ctx.saved_tensors
        grad = active.scatter(1, target[:, None], -1.0)
        return grad * g[:, None], None, None


@right("n d", "n d", static={"tau": 0.5})
class InfoNce(sg.Function):
    """Each query against all keys; its own is the positive."""

    @staticmethod
    def forward(ctx, q, k, tau):
        logits = q @ k.T / tau
        p = logits.softmax(1)
        ctx.save_for_backward(q, k, p)
        ctx.tau = tau
        return (sg.logsumexp(logits, 1) - logits.diagonal()).mean()

    @staticmethod
    def backward(ctx, g):
        q, k, p = ctx.saved_tensors
        n = q.shape[0]
        grad = g * (p - sg.eye(n)) / (n * ctx.tau)
        return grad @ k, grad.T @ q, None


@wrong(InfoNce, bug="keys' gradient not transposed")
class InfoNceTransposed(InfoNce):
    @staticmethod
    def backward(ctx, g):
        q, k, p = ctx.saved_tensors
        n = q.shape[0]
        grad = g * (p - sg.eye(n)) / (n * ctx.tau)
        return grad @ k, grad @ q, None


@wrong(InfoNce, bug="multiplied by the temperature")
class InfoNceTemperature(InfoNce):
    @staticmethod
    def backward(ctx, g):
        q, k, p = ctx.saved_tensors
        n = q.shape[0]
        grad = g * (p - sg.eye(n)) * ctx.tau / n
        return grad @ k, grad.T @ q, None
