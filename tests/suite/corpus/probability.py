"""Distributions: reparametrised samples, divergences, log-densities, special functions."""

import math

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n d", "n d", "n d", assume={"noise": "constant"})
class GaussianSample(sg.Function):
    """mu + exp(logvar/2)·noise."""

    @staticmethod
    def forward(ctx, mu, logvar, noise):
        std = (0.5 * logvar).exp()
        ctx.save_for_backward(std, noise)
        return mu + std * noise

    @staticmethod
    def backward(ctx, g):
        std, noise = ctx.saved_tensors
        return g, 0.5 * g * std * noise, None


@wrong(GaussianSample, bug="half of the exponent left out")
class GaussianSampleHalf(GaussianSample):
    @staticmethod
    def backward(ctx, g):
        std, noise = ctx.saved_tensors
        return g, g * std * noise, None


@wrong(GaussianSample, bug="deviation left out")
class GaussianSampleStd(GaussianSample):
    @staticmethod
    def backward(ctx, g):
        _, noise = ctx.saved_tensors
        return g, 0.5 * g * noise, None


@right("n d", "n d")
class StandardNormalKl(sg.Function):
    @staticmethod
    def forward(ctx, mu, logvar):
        ctx.save_for_backward(mu, logvar)
        return -0.5 * sg.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1)

    @staticmethod
    def backward(ctx, g):
        mu, logvar = ctx.saved_tensors
        g = g.unsqueeze(1)
        return g * mu, 0.5 * g * (logvar.exp() - 1)


@wrong(StandardNormalKl, bug="sign of the variance's gradient")
class StandardNormalKlSign(StandardNormalKl):
    @staticmethod
    def backward(ctx, g):
        mu, logvar = ctx.saved_tensors
        g = g.unsqueeze(1)
        return g * mu, 0.5 * g * (1 - logvar.exp())


@wrong(StandardNormalKl, bug="the square's 2 not cancelled by the half")
class StandardNormalKlTwo(StandardNormalKl):
    @staticmethod
    def backward(ctx, g):
        mu, logvar = ctx.saved_tensors
        g = g.unsqueeze(1)
        return 2 * g * mu, 0.5 * g * (logvar.exp() - 1)


@right("n", "n", "n", assume={"sigma": "positive"})
class NormalLogDensity(sg.Function):
    @staticmethod
    def forward(ctx, x, mu, sigma):
        z = (x - mu) / sigma
        ctx.save_for_backward(z, sigma)
        return -0.5 * z * z - sigma.log() - 0.5 * math.log(2 * math.pi)

    @staticmethod
    def backward(ctx, g):
        z, sigma = ctx.saved_tensors
        grad_mu = g * z / sigma
        return -grad_mu, grad_mu, g * (z * z - 1) / sigma


@wrong(NormalLogDensity, bug="the normaliser's derivative left out")
class NormalDensityNormaliser(NormalLogDensity):
    @staticmethod
    def backward(ctx, g):
        z, sigma = ctx.saved_tensors
        grad_mu = g * z / sigma
        return -grad_mu, grad_mu, g * z * z / sigma


@wrong(NormalLogDensity, bug="z not divided by sigma again")
class NormalDensityScale(NormalLogDensity):
    @staticmethod
    def backward(ctx, g):
        z, sigma = ctx.saved_tensors
        return -g * z, g * z, g * (z * z - 1) / sigma


@right("n")
class NormalCdf(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 0.5 * sg.erfc(-x / math.sqrt(2))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * sg.exp(-x * x / 2) / math.sqrt(2 * math.pi)


@wrong(NormalCdf, bug="rounded constant of another normaliser: 1/sqrt(pi)")
class NormalCdfConstant(NormalCdf):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * sg.exp(-x * x / 2) * 0.5641895835477563


@right("n", assume={"x": "positive"})
class LogGamma(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return sg.lgamma(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * sg.digamma(x)


@wrong(LogGamma, bug="Stirling's logarithm for the digamma function")
class LogGammaStirling(LogGamma):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.log() - 0.5 / x)


@right("n k", "n", assume={"a": "positive", "count": "constant"})
class DirichletNormaliser(sg.Function):
    """Σ lgamma(a) - lgamma(Σ a), weighted."""

    @staticmethod
    def forward(ctx, a, count):
        ctx.save_for_backward(a, count)
        return count * (sg.lgamma(a).sum(1) - sg.lgamma(a.sum(1)))

    @staticmethod
    def backward(ctx, g):
        a, count = ctx.saved_tensors
        scaled = (g * count)[:, None]
        return scaled * (sg.digamma(a) - sg.digamma(a.sum(1, keepdim=True))), None


@wrong(DirichletNormaliser, bug="the sum's term left out")
class DirichletSum(DirichletNormaliser):
    @staticmethod
    def backward(ctx, g):
        a, count = ctx.saved_tensors
        return (g * count)[:, None] * sg.digamma(a), None


@right("n k", "n k", static={"tau": 0.7}, assume={"noise": "constant"})
class GumbelSoftmax(sg.Function):
    @staticmethod
    def forward(ctx, logits, noise, tau):
        y = sg.softmax((logits + noise) / tau, dim=-1)
        ctx.save_for_backward(y)
        ctx.tau = tau
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(-1, keepdim=True)) / ctx.tau, None, None


@wrong(GumbelSoftmax, bug="temperature multiplied instead of divided")
class GumbelTemperature(GumbelSoftmax):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(-1, keepdim=True)) * ctx.tau, None, None


@right("n k", "n k", "n")
class MixtureLogLikelihood(sg.Function):
    """Of unit Gaussians: logsumexp of log weights and log densities."""

    @staticmethod
    def forward(ctx, logits, mean, x):
        log_w = logits.log_softmax(-1)
        diff = x[:, None] - mean
        joint = log_w - 0.5 * diff * diff
        total = joint.logsumexp(-1)
        ctx.save_for_backward(log_w.exp(), diff, (joint - total[:, None]).exp())
        return total

    @staticmethod
    def backward(ctx, g):
        w, diff, posterior = ctx.saved_tensors
        g = g[:, None]
        pull = g * posterior * diff
        return g * (posterior - w), pull, -pull.sum(-1)


@wrong(MixtureLogLikelihood, bug="prior weights for the posterior in the means")
class MixturePrior(MixtureLogLikelihood):
    @staticmethod
    def backward(ctx, g):
        w, diff, posterior = ctx.saved_tensors
        g = g[:, None]
        pull = g * w * diff
        return g * (posterior - w), pull, -pull.sum(-1)


@wrong(MixtureLogLikelihood, bug="weights' own normalisation forgotten")
class MixtureWeights(MixtureLogLikelihood):
    @staticmethod
    def backward(ctx, g):
        _, diff, posterior = ctx.saved_tensors
        g = g[:, None]
        pull = g * posterior * diff
        return g * posterior, pull, -pull.sum(-1)


@right("n", "n", assume={"x": "(-0.9, 0.9)"})
class FisherTransform(sg.Function):
    """atanh(x), weighted."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return w * sg.atanh(x)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w / (1 - x * x), g * 0.5 * sg.log((1 + x) / (1 - x))


@wrong(FisherTransform, bug="1 + x² for 1 - x²")
class FisherTransformSign(FisherTransform):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w / (1 + x * x), g * 0.5 * sg.log((1 + x) / (1 - x))


@right("n", "n", assume={"rate": "positive", "k": "constant"})
class PoissonNll(sg.Function):
    @staticmethod
    def forward(ctx, rate, k):
        ctx.save_for_backward(rate, k)
        return (rate - k * rate.log()).mean()

    @staticmethod
    def backward(ctx, g):
        rate, k = ctx.saved_tensors
        return g * (1 - k / rate) / rate.numel(), None


@wrong(PoissonNll, bug="k·log not differentiated")
class PoissonNllLog(PoissonNll):
    @staticmethod
    def backward(ctx, g):
        rate, k = ctx.saved_tensors
        return g * (1 - k * rate.log()) / rate.numel(), None
