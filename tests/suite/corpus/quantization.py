"""Quantisers and discrete codes: declared surrogates with learned steps, scales and codebooks."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n m", static={"bits": 4}, surrogate=lambda x, bits: sg.tanh(x))
class TanhQuantize(sg.Function):
    """Quantised on a grid after tanh; straight through the rounding."""

    @staticmethod
    def forward(ctx, x, bits):
        t = sg.tanh(x)
        ctx.save_for_backward(t)
        levels = 2**bits - 1
        return (t * levels).round() / levels

    @staticmethod
    def backward(ctx, g):
        (t,) = ctx.saved_tensors
        return g * (1 - t**2), None


@wrong(TanhQuantize, bug="straight through tanh as well")
class TanhQuantizeThrough(TanhQuantize):
    @staticmethod
    def backward(ctx, g):
        return g, None


@wrong(TanhQuantize, bug="scaled by the number of levels")
class TanhQuantizeLevels(TanhQuantize):
    @staticmethod
    def backward(ctx, g):
        (t,) = ctx.saved_tensors
        return 15 * g * (1 - t**2), None


@right("o i", "o", surrogate=lambda w, scale: w * scale[:, None])
class ScaledSign(sg.Function):
    """Binary weights with one scale a row; the sign passed straight through."""

    @staticmethod
    def forward(ctx, w, scale):
        ctx.save_for_backward(w, scale)
        return w.sign() * scale[:, None]

    @staticmethod
    def backward(ctx, g):
        w, scale = ctx.saved_tensors
        return g * scale.view(-1, 1), (g * w).sum(dim=1)


@wrong(ScaledSign, bug="scale's gradient from the sign, as in the quantised forward")
class ScaledSignOfWeight(ScaledSign):
    @staticmethod
    def backward(ctx, g):
        w, scale = ctx.saved_tensors
        return g * scale.view(-1, 1), (g * w.sign()).sum(dim=1)


@right("n", static={"threshold": 0.6}, surrogate=lambda x, threshold: x)
class Ternary(sg.Function):
    @staticmethod
    def forward(ctx, x, threshold):
        out = sg.zeros_like(x)
        out[x > threshold] = 1
        out[x < -threshold] = -1
        return out

    @staticmethod
    def backward(ctx, g):
        return g, None


@wrong(Ternary, bug="masked although declared straight through")
class TernaryMasked(Ternary):
    @staticmethod
    def forward(ctx, x, threshold):
        ctx.mask = x.abs() <= threshold
        return x.sign() * (x.abs() > threshold)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.mask, None


def frozen_codes(x, codebook, index):
    """Straight through to the encoder: the codebook gets the whole gradient too."""
    return x + codebook[index]


@right("n d", "k d", "i64[n]", surrogate=frozen_codes, assume={"index": "index k"})
class VectorQuantize(sg.Function):
    """Nearest codes (found elsewhere): the output is the code, both parts get the gradient."""

    @staticmethod
    def forward(ctx, x, codebook, index):
        ctx.save_for_backward(index)
        ctx.codes = codebook.shape[0]
        return codebook[index]

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        grad = sg.zeros(ctx.codes, g.shape[1], dtype=g.dtype).index_add(0, index, g)
        return g, grad, None


@wrong(VectorQuantize, bug="codes that are used twice keep the last gradient")
class VectorQuantizeOverwrites(VectorQuantize):
    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        grad = sg.zeros(ctx.codes, g.shape[1], dtype=g.dtype)
        grad[index] = g
        return g, grad, None


@wrong(VectorQuantize, bug="encoder's gradient stopped")
class VectorQuantizeStopped(VectorQuantize):
    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        grad = sg.zeros(ctx.codes, g.shape[1], dtype=g.dtype).index_add(0, index, g)
        return g * 0, grad, None


@right("n m", "m", "m", assume={"scale": "positive", "zero": "constant"})
class Dequantize(sg.Function):
    """(x - zero)·scale, each column its own."""

    @staticmethod
    def forward(ctx, x, scale, zero):
        ctx.save_for_backward(x, scale, zero)
        return (x - zero) * scale

    @staticmethod
    def backward(ctx, g):
        x, scale, zero = ctx.saved_tensors
        return g * scale, (g * (x - zero)).sum(0), None


@wrong(Dequantize, bug="zero point left out of the scale's gradient")
class DequantizeZero(Dequantize):
    @staticmethod
    def backward(ctx, g):
        x, scale, _ = ctx.saved_tensors
        return g * scale, (g * x).sum(0), None


@right("n m", "n m", surrogate=lambda x, noise: x, assume={"noise": "constant"})
class StochasticRound(sg.Function):
    """Rounded up with the fraction's probability, by given noise."""

    @staticmethod
    def forward(ctx, x, noise):
        return (x + noise).floor()

    @staticmethod
    def backward(ctx, g):
        return g, None


@wrong("n m", bug="floor's gradient passed on, not declared")
class FloorUndeclared(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x.floor() + 0.5 * x

    @staticmethod
    def backward(ctx, g):
        return 1.5 * g


@right("n m")
class FloorPart(sg.Function):
    """The flat part contributes nothing; the fraction has slope one."""

    @staticmethod
    def forward(ctx, x):
        return x - x.floor()

    @staticmethod
    def backward(ctx, g):
        return g


@wrong(FloorPart, bug="zero, as if everything were flat")
class FloorPartZero(FloorPart):
    @staticmethod
    def backward(ctx, g):
        return g * 0


@right("n m", static={"period": 1.7})
class Wrap(sg.Function):
    """Remainder after division by a period."""

    @staticmethod
    def forward(ctx, x, period):
        return x % period

    @staticmethod
    def backward(ctx, g):
        return g, None


@wrong(Wrap, bug="divided by the period")
class WrapDivided(Wrap):
    @staticmethod
    def backward(ctx, g):
        return g / 1.7, None


def leaky_membrane(v, x, tau, threshold):
    h = v + (x - v) / tau
    return sg.sigmoid(4 * (h - threshold)), h


@right("n", "n", static={"tau": 2.0, "threshold": 1.0}, surrogate=leaky_membrane)
class LeakyIntegrateFire(sg.Function):
    """Membrane step with a spike; sigmoid surrogate for the spike, none for the membrane."""

    @staticmethod
    def forward(ctx, v, x, tau, threshold):
        h = v + (x - v) / tau
        ctx.save_for_backward(h)
        ctx.tau, ctx.threshold = tau, threshold
        return (h >= threshold).to(h.dtype), h

    @staticmethod
    def backward(ctx, grad_spike, grad_h):
        (h,) = ctx.saved_tensors
        s = sg.sigmoid(4 * (h - ctx.threshold))
        total = grad_h + grad_spike * 4 * s * (1 - s)
        return total * (1 - 1 / ctx.tau), total / ctx.tau, None, None


@wrong(LeakyIntegrateFire, bug="decay 1/tau for 1 - 1/tau", static={"tau": 3.0, "threshold": 1.0})
class LeakyDecay(LeakyIntegrateFire):
    @staticmethod
    def backward(ctx, grad_spike, grad_h):
        (h,) = ctx.saved_tensors
        s = sg.sigmoid(4 * (h - ctx.threshold))
        total = grad_h + grad_spike * 4 * s * (1 - s)
        return total / ctx.tau, total / ctx.tau, None, None


@wrong(LeakyIntegrateFire, bug="threshold left out of the surrogate")
class LeakyThreshold(LeakyIntegrateFire):
    @staticmethod
    def backward(ctx, grad_spike, grad_h):
        (h,) = ctx.saved_tensors
        s = sg.sigmoid(4 * h)
        total = grad_h + grad_spike * 4 * s * (1 - s)
        return total * (1 - 1 / ctx.tau), total / ctx.tau, None, None
