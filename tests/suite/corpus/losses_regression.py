"""Losses of regression, robust statistics and metric learning."""

import math

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n m", "n m")
class MseLoss(sg.Function):
    @staticmethod
    def forward(ctx, input, target):
        diff = input - target
        ctx.save_for_backward(diff)
        return (diff**2).mean()

    @staticmethod
    def backward(ctx, grad_output):
        (diff,) = ctx.saved_tensors
        grad = grad_output * 2 * diff / diff.numel()
        return grad, -grad


@wrong(MseLoss, bug="divided by the batch, not by all elements", right_if="m == 1")
class MseBatch(MseLoss):
    @staticmethod
    def backward(ctx, grad_output):
        (diff,) = ctx.saved_tensors
        grad = grad_output * 2 * diff / diff.shape[0]
        return grad, -grad


@wrong(MseLoss, bug="target's gradient has the input's sign")
class MseSign(MseLoss):
    @staticmethod
    def backward(ctx, grad_output):
        (diff,) = ctx.saved_tensors
        grad = grad_output * 2 * diff / diff.numel()
        return grad, grad


@wrong(MseLoss, bug="not multiplied by the upstream gradient")
class MseUpstream(MseLoss):
    @staticmethod
    def backward(ctx, grad_output):
        (diff,) = ctx.saved_tensors
        grad = 2 * diff / diff.numel()
        return grad, -grad


@wrong(MseLoss, bug="None for a target that has a gradient")
class MseTargetNone(MseLoss):
    @staticmethod
    def backward(ctx, grad_output):
        (diff,) = ctx.saved_tensors
        return grad_output * 2 * diff / diff.numel(), None


@right("n m", "n m", assume={"target": "constant"})
class L1Loss(sg.Function):
    @staticmethod
    def forward(ctx, input, target):
        ctx.save_for_backward(input, target)
        return (input - target).abs().sum()

    @staticmethod
    def backward(ctx, grad_output):
        input, target = ctx.saved_tensors
        return grad_output * sg.sign(input - target), None


@wrong(L1Loss, bug="sign of the difference the other way round")
class L1Sign(L1Loss):
    @staticmethod
    def backward(ctx, grad_output):
        input, target = ctx.saved_tensors
        return grad_output * sg.sign(target - input), None


@wrong(L1Loss, bug="sign of the input, not of the difference")
class L1InputSign(L1Loss):
    @staticmethod
    def backward(ctx, grad_output):
        input, _ = ctx.saved_tensors
        return grad_output * sg.sign(input), None


@right("n", "n", static={"delta": 0.8})
class HuberLoss(sg.Function):
    @staticmethod
    def forward(ctx, x, y, delta):
        r = x - y
        ctx.save_for_backward(r)
        ctx.delta = delta
        a = r.abs()
        return sg.where(a <= delta, 0.5 * r * r, delta * (a - 0.5 * delta)).mean()

    @staticmethod
    def backward(ctx, grad_output):
        (r,) = ctx.saved_tensors
        grad = r.clamp(-ctx.delta, ctx.delta) * grad_output / r.shape[0]
        return grad, -grad, None


@wrong(HuberLoss, bug="sign instead of delta·sign beyond delta")
class HuberTail(HuberLoss):
    @staticmethod
    def backward(ctx, grad_output):
        (r,) = ctx.saved_tensors
        grad = sg.where(r.abs() <= ctx.delta, r, r.sign()) * grad_output / r.shape[0]
        return grad, -grad, None


@wrong(HuberLoss, bug="clipped on one side only")
class HuberOneSide(HuberLoss):
    @staticmethod
    def backward(ctx, grad_output):
        (r,) = ctx.saved_tensors
        grad = r.clamp(max=ctx.delta) * grad_output / r.shape[0]
        return grad, -grad, None


@right("n", static={"beta": 0.5})
class SmoothL1(sg.Function):
    @staticmethod
    def forward(ctx, d, beta):
        ctx.save_for_backward(d)
        ctx.beta = beta
        small = d.abs() < beta
        return sg.where(small, 0.5 * d**2 / beta, d.abs() - 0.5 * beta)

    @staticmethod
    def backward(ctx, g):
        (d,) = ctx.saved_tensors
        grad = g * d.sign()
        small = d.abs() < ctx.beta
        grad[small] = (g * d / ctx.beta)[small]
        return grad, None


@wrong(SmoothL1, bug="beta forgotten in the quadratic region")
class SmoothL1Beta(SmoothL1):
    @staticmethod
    def backward(ctx, g):
        (d,) = ctx.saved_tensors
        return g * sg.where(d.abs() < ctx.beta, d, d.sign()), None


@right("n m", "n m", static={"eps": 1e-3})
class CharbonnierLoss(sg.Function):
    @staticmethod
    def forward(ctx, prediction, target, eps):
        diff = prediction - target
        loss = sg.sqrt(diff * diff + eps * eps)
        ctx.save_for_backward(diff, loss)
        return loss.sum()

    @staticmethod
    def backward(ctx, grad_output):
        diff, loss = ctx.saved_tensors
        grad = grad_output * diff / loss
        return grad, -grad, None


@wrong(CharbonnierLoss, bug="the 2 of the square not cancelled by the root")
class CharbonnierFactor(CharbonnierLoss):
    @staticmethod
    def backward(ctx, grad_output):
        diff, loss = ctx.saved_tensors
        grad = grad_output * 2 * diff / loss
        return grad, -grad, None


@right("n m")
class LogCosh(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return sg.log(sg.cosh(x)).mean(dim=1)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output[:, None] * sg.tanh(x) / x.shape[1]


@wrong(LogCosh, bug="1/cosh for tanh")
class LogCoshNumerator(LogCosh):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output[:, None] / sg.cosh(x) / x.shape[1]


@right("n", "n", static={"q": 0.9}, assume={"target": "constant"})
class QuantileLoss(sg.Function):
    @staticmethod
    def forward(ctx, prediction, target, q):
        error = target - prediction
        ctx.save_for_backward(error)
        ctx.q = q
        return sg.maximum(q * error, (q - 1) * error).sum()

    @staticmethod
    def backward(ctx, grad_output):
        (error,) = ctx.saved_tensors
        slope = sg.where(error > 0, -ctx.q * sg.ones_like(error), 1 - ctx.q)
        return grad_output * slope, None, None


@wrong(QuantileLoss, bug="q and 1 - q exchanged")
class QuantileExchanged(QuantileLoss):
    @staticmethod
    def backward(ctx, grad_output):
        (error,) = ctx.saved_tensors
        slope = sg.where(error > 0, ctx.q - sg.ones_like(error), sg.full_like(error, ctx.q))
        return grad_output * slope, None, None


@right("n", "n", "n", assume={"var": "positive"})
class GaussianNll(sg.Function):
    @staticmethod
    def forward(ctx, mu, target, var):
        ctx.save_for_backward(mu, target, var)
        return (0.5 * (sg.log(var) + (target - mu) ** 2 / var)).sum() + math.log(2 * math.pi)

    @staticmethod
    def backward(ctx, g):
        mu, target, var = ctx.saved_tensors
        z = (mu - target) / var
        return g * z, -g * z, 0.5 * g * (1 / var - z * z)


@wrong(GaussianNll, bug="variance's second term with the wrong sign")
class GaussianNllSign(GaussianNll):
    @staticmethod
    def backward(ctx, g):
        mu, target, var = ctx.saved_tensors
        z = (mu - target) / var
        return g * z, -g * z, 0.5 * g * (1 / var + z * z)


@wrong(GaussianNll, bug="variance taken for the deviation")
class GaussianNllDeviation(GaussianNll):
    @staticmethod
    def backward(ctx, g):
        mu, target, var = ctx.saved_tensors
        z = (mu - target) / var
        return g * z, -g * z, g * (1 / var - z * z)


@right("n d", "n d", "n d", static={"margin": 0.5})
class TripletLoss(sg.Function):
    @staticmethod
    def forward(ctx, anchor, positive, negative, margin):
        near = (anchor - positive).pow(2).sum(1)
        far = (anchor - negative).pow(2).sum(1)
        active = near - far + margin > 0
        ctx.save_for_backward(anchor, positive, negative, active)
        return sg.relu(near - far + margin)

    @staticmethod
    def backward(ctx, grad_output):
        anchor, positive, negative, active = ctx.saved_tensors
        g = 2 * (grad_output * active)[:, None]
        return g * (negative - positive), g * (positive - anchor), g * (anchor - negative), None


@wrong(TripletLoss, bug="inactive triplets get a gradient too")
class TripletInactive(TripletLoss):
    @staticmethod
    def backward(ctx, grad_output):
        anchor, positive, negative, _ = ctx.saved_tensors
        g = 2 * grad_output[:, None]
        return g * (negative - positive), g * (positive - anchor), g * (anchor - negative), None


@wrong(TripletLoss, bug="anchor's gradient with the opposite sign")
class TripletAnchor(TripletLoss):
    @staticmethod
    def backward(ctx, grad_output):
        anchor, positive, negative, active = ctx.saved_tensors
        g = 2 * (grad_output * active)[:, None]
        return g * (positive - negative), g * (positive - anchor), g * (anchor - negative), None


@right("n d", "k d", "i64[n]", assume={"label": "index k"}, static={"lambda_c": 0.1})
class CenterLoss(sg.Function):
    """Distance to the label's centre; each centre collects its samples' gradients."""

    @staticmethod
    def forward(ctx, features, centers, label, lambda_c):
        diff = features - centers[label]
        ctx.save_for_backward(diff, label, centers)
        ctx.lambda_c = lambda_c
        return lambda_c * (diff**2).sum() / 2

    @staticmethod
    def backward(ctx, grad_output):
        diff, label, centers = ctx.saved_tensors
        grad = grad_output * ctx.lambda_c * diff
        grad_centers = sg.zeros_like(centers)
        grad_centers.index_add_(0, label, -grad)
        return grad, grad_centers, None, None


@wrong(CenterLoss, bug="repeated labels overwrite each other")
class CenterLossOverwrites(CenterLoss):
    @staticmethod
    def backward(ctx, grad_output):
        diff, label, centers = ctx.saved_tensors
        grad = grad_output * ctx.lambda_c * diff
        grad_centers = sg.zeros_like(centers)
        grad_centers[label] = -grad
        return grad, grad_centers, None, None


@wrong(CenterLoss, bug="lambda forgotten for the centres")
class CenterLossLambda(CenterLoss):
    @staticmethod
    def backward(ctx, grad_output):
        diff, label, centers = ctx.saved_tensors
        grad = grad_output * diff
        grad_centers = sg.zeros_like(centers).index_add(0, label, -grad)
        return ctx.lambda_c * grad, grad_centers, None, None
