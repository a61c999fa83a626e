"""Fused layers of language models: losses with projections, capped logits, policy losses."""

import math

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n d", "v d", "i64[n]", assume={"target": "index v"})
class FusedLinearCrossEntropy(sg.Function):
    """Projection and loss in one; gradients of both made from the same probabilities."""

    @staticmethod
    def forward(ctx, x, weight, target):
        logits = x @ weight.t()
        lse = sg.logsumexp(logits, dim=-1)
        loss = (lse - logits.gather(1, target.unsqueeze(1)).squeeze(1)).sum() / x.shape[0]
        p = sg.exp(logits - lse.unsqueeze(1))
        one_hot = sg.zeros_like(p).scatter(1, target.unsqueeze(1), 1.0)
        grad_logits = (p - one_hot) / x.shape[0]
        ctx.save_for_backward(grad_logits @ weight, grad_logits.t() @ x)
        return loss

    @staticmethod
    def backward(ctx, grad_output):
        grad_x, grad_weight = ctx.saved_tensors
        return grad_output * grad_x, grad_output * grad_weight, None


@wrong(FusedLinearCrossEntropy, bug="gradients made in forward, upstream gradient dropped")
class FusedLinearUpstream(FusedLinearCrossEntropy):
    @staticmethod
    def backward(ctx, grad_output):
        grad_x, grad_weight = ctx.saved_tensors
        return grad_x, grad_weight, None


@wrong(FusedLinearCrossEntropy, bug="upstream gradient applied to one of the two")
class FusedLinearOne(FusedLinearCrossEntropy):
    @staticmethod
    def backward(ctx, grad_output):
        grad_x, grad_weight = ctx.saved_tensors
        return grad_output * grad_x, grad_weight, None


@right("n v", "i64[n]", static={"ignore": 0}, assume={"target": "index v"})
class IgnoringCrossEntropy(sg.Function):
    """Rows whose target is the ignored index do not count."""

    @staticmethod
    def forward(ctx, logits, target, ignore):
        keep = (target != ignore).to(logits.dtype)
        log_p = sg.log_softmax(logits, dim=-1)
        count = keep.sum().clamp(min=1)
        ctx.save_for_backward(log_p, target, keep / count)
        picked = log_p.gather(1, target[:, None])[:, 0]
        return -(picked * keep).sum() / count

    @staticmethod
    def backward(ctx, g):
        log_p, target, weight = ctx.saved_tensors
        grad = log_p.exp()
        grad = grad.scatter_add(1, target[:, None], -sg.ones_like(grad[:, :1]))
        return g * grad * weight[:, None], None, None


@wrong(IgnoringCrossEntropy, bug="divided by all rows, not by those that count")
class IgnoringCount(IgnoringCrossEntropy):
    @staticmethod
    def backward(ctx, g):
        log_p, target, weight = ctx.saved_tensors
        grad = log_p.exp()
        grad = grad.scatter_add(1, target[:, None], -sg.ones_like(grad[:, :1]))
        kept = (weight > 0).to(grad.dtype)[:, None]
        return g * grad * kept / grad.shape[0], None, None


@wrong(IgnoringCrossEntropy, bug="ignored rows get a gradient")
class IgnoringLeak(IgnoringCrossEntropy):
    @staticmethod
    def backward(ctx, g):
        log_p, target, weight = ctx.saved_tensors
        grad = log_p.exp()
        grad = grad.scatter_add(1, target[:, None], -sg.ones_like(grad[:, :1]))
        return g * grad * weight.sum() / grad.shape[0], None, None


@right("n m", static={"cap": 5.0})
class SoftCap(sg.Function):
    @staticmethod
    def forward(ctx, x, cap):
        t = sg.tanh(x / cap)
        ctx.save_for_backward(t)
        return cap * t

    @staticmethod
    def backward(ctx, g):
        (t,) = ctx.saved_tensors
        return g * (1 - t * t), None


@wrong(SoftCap, bug="cap not cancelled")
class SoftCapFactor(SoftCap):
    @staticmethod
    def backward(ctx, g):
        (t,) = ctx.saved_tensors
        return 5.0 * g * (1 - t * t), None


@right("n v", static={"weight": 0.01})
class ZLoss(sg.Function):
    """weight·logsumexp², averaged."""

    @staticmethod
    def forward(ctx, logits, weight):
        lse = logits.logsumexp(-1)
        ctx.save_for_backward(logits, lse)
        ctx.weight = weight
        return weight * lse.square().mean()

    @staticmethod
    def backward(ctx, g):
        logits, lse = ctx.saved_tensors
        p = (logits - lse[:, None]).exp()
        return g * 2 * ctx.weight * lse[:, None] * p / logits.shape[0], None


@wrong(ZLoss, bug="the square's 2·lse left out")
class ZLossSquare(ZLoss):
    @staticmethod
    def backward(ctx, g):
        logits, lse = ctx.saved_tensors
        p = (logits - lse[:, None]).exp()
        return g * ctx.weight * p / logits.shape[0], None


@right("n m", "m", "bool[n m]", static={"p": 0.25})
class BiasGeluDropout(sg.Function):
    """With a given mask; kept elements scaled up."""

    @staticmethod
    def forward(ctx, x, bias, mask, p):
        a = x + bias
        ctx.save_for_backward(a, mask)
        ctx.scale = 1 / (1 - p)
        return 0.5 * a * (1 + sg.erf(a / math.sqrt(2.0))) * mask * ctx.scale

    @staticmethod
    def backward(ctx, g):
        a, mask = ctx.saved_tensors
        cdf = 0.5 * (1 + sg.erf(a / math.sqrt(2.0)))
        pdf = sg.exp(-0.5 * a * a) / math.sqrt(2 * math.pi)
        grad = g * mask * ctx.scale * (cdf + a * pdf)
        return grad, grad.sum(0), None, None


@wrong(BiasGeluDropout, bug="dropout's scale forgotten")
class DropoutScale(BiasGeluDropout):
    @staticmethod
    def backward(ctx, g):
        a, mask = ctx.saved_tensors
        cdf = 0.5 * (1 + sg.erf(a / math.sqrt(2.0)))
        pdf = sg.exp(-0.5 * a * a) / math.sqrt(2 * math.pi)
        grad = g * mask * (cdf + a * pdf)
        return grad, grad.sum(0), None, None


@wrong(BiasGeluDropout, bug="the activation's derivative at x, not at x + bias")
class DropoutBiasPoint(BiasGeluDropout):
    @staticmethod
    def forward(ctx, x, bias, mask, p):
        ctx.save_for_backward(x, mask)
        ctx.scale = 1 / (1 - p)
        a = x + bias
        return 0.5 * a * (1 + sg.erf(a / math.sqrt(2.0))) * mask * ctx.scale


@right("n d", "f d", "f d", "d f")
class SwiGluMlp(sg.Function):
    """Gate, up and down projections in one."""

    @staticmethod
    def forward(ctx, x, w_gate, w_up, w_down):
        gate = x @ w_gate.t()
        up = x @ w_up.t()
        ctx.save_for_backward(x, w_gate, w_up, w_down, gate, up)
        return (gate * gate.sigmoid() * up) @ w_down.t()

    @staticmethod
    def backward(ctx, g):
        x, w_gate, w_up, w_down, gate, up = ctx.saved_tensors
        s = gate.sigmoid()
        silu = gate * s
        grad_h = g @ w_down
        grad_gate = grad_h * up * (s + silu * (1 - s))
        grad_up = grad_h * silu
        grad_x = grad_gate @ w_gate + grad_up @ w_up
        return grad_x, grad_gate.t() @ x, grad_up.t() @ x, g.t() @ (silu * up)


@wrong(SwiGluMlp, bug="only one of the two paths to x")
class SwiGluMlpPath(SwiGluMlp):
    @staticmethod
    def backward(ctx, g):
        x, _, w_up, w_down, gate, up = ctx.saved_tensors
        s = gate.sigmoid()
        silu = gate * s
        grad_h = g @ w_down
        grad_gate = grad_h * up * (s + silu * (1 - s))
        grad_up = grad_h * silu
        return grad_up @ w_up, grad_gate.t() @ x, grad_up.t() @ x, g.t() @ (silu * up)


@wrong(SwiGluMlp, bug="gate's and up's weights exchanged in the gradient of x")
class SwiGluMlpExchanged(SwiGluMlp):
    @staticmethod
    def backward(ctx, g):
        x, w_gate, w_up, w_down, gate, up = ctx.saved_tensors
        s = gate.sigmoid()
        silu = gate * s
        grad_h = g @ w_down
        grad_gate = grad_h * up * (s + silu * (1 - s))
        grad_up = grad_h * silu
        grad_x = grad_gate @ w_up + grad_up @ w_gate
        return grad_x, grad_gate.t() @ x, grad_up.t() @ x, g.t() @ (silu * up)


@right("n", "n", "n", static={"epsilon": 0.2}, assume={"old": "constant"})
class ClippedPolicyLoss(sg.Function):
    """min(ratio·A, clip(ratio)·A), as in proximal policy optimisation."""

    @staticmethod
    def forward(ctx, log_p, old, advantage, epsilon):
        ratio = (log_p - old).exp()
        clipped = ratio.clamp(1 - epsilon, 1 + epsilon)
        free = ratio * advantage <= clipped * advantage
        ctx.save_for_backward(ratio, clipped, advantage, free)
        return -sg.where(free, ratio * advantage, clipped * advantage).mean()

    @staticmethod
    def backward(ctx, g):
        ratio, clipped, advantage, free = ctx.saved_tensors
        scale = -g / ratio.shape[0]
        grad_advantage = scale * sg.where(free, ratio, clipped)
        return scale * advantage * ratio * free, None, grad_advantage, None


@wrong(ClippedPolicyLoss, bug="clipped samples keep their gradient")
class PolicyUnclipped(ClippedPolicyLoss):
    @staticmethod
    def backward(ctx, g):
        ratio, clipped, advantage, free = ctx.saved_tensors
        scale = -g / ratio.shape[0]
        grad_advantage = scale * sg.where(free, ratio, clipped)
        return scale * advantage * ratio, None, grad_advantage, None


@wrong(ClippedPolicyLoss, bug="derivative of the ratio is the ratio: left out")
class PolicyRatio(ClippedPolicyLoss):
    @staticmethod
    def backward(ctx, g):
        ratio, clipped, advantage, free = ctx.saved_tensors
        scale = -g / ratio.shape[0]
        grad_advantage = scale * sg.where(free, ratio, clipped)
        return scale * advantage * free, None, grad_advantage, None


@right("n", "n", static={"beta": 0.1})
class PreferenceLoss(sg.Function):
    """-log sigmoid(beta (chosen - rejected))."""

    @staticmethod
    def forward(ctx, chosen, rejected, beta):
        s = sg.sigmoid(beta * (chosen - rejected))
        ctx.save_for_backward(s)
        ctx.beta = beta
        return -s.log()

    @staticmethod
    def backward(ctx, g):
        (s,) = ctx.saved_tensors
        grad = -g * ctx.beta * (1 - s)
        return grad, -grad, None


@wrong(PreferenceLoss, bug="s for 1 - s")
class PreferenceComplement(PreferenceLoss):
    @staticmethod
    def backward(ctx, g):
        (s,) = ctx.saved_tensors
        grad = -g * ctx.beta * s
        return grad, -grad, None


@right("n v", "n v", static={"temperature": 2.0}, assume={"teacher": "constant"})
class DistillationLoss(sg.Function):
    """KL of softened distributions, times the temperature squared."""

    @staticmethod
    def forward(ctx, student, teacher, temperature):
        log_q = sg.log_softmax(student / temperature, dim=-1)
        p = sg.softmax(teacher / temperature, dim=-1)
        ctx.save_for_backward(log_q.exp(), p)
        ctx.temperature = temperature
        return temperature**2 * (p * (p.log() - log_q)).sum(-1).mean()

    @staticmethod
    def backward(ctx, g):
        q, p = ctx.saved_tensors
        return g * ctx.temperature * (q - p) / q.shape[0], None, None


@wrong(DistillationLoss, bug="temperature squared, its inner derivative forgotten")
class DistillationTemperature(DistillationLoss):
    @staticmethod
    def backward(ctx, g):
        q, p = ctx.saved_tensors
        return g * ctx.temperature**2 * (q - p) / q.shape[0], None, None
