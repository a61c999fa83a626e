"""Deliberate surrogates, declared: backward is the derivative of another function.

``surrogate`` takes forward's arguments; a right backward is the derivative of what it returns.
"""

import math

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n m", surrogate=lambda x: x)
class RoundStraightThrough(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


@wrong("n m", bug="straight through, not declared")
class RoundUndeclared(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return sg.round(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.clone()


@wrong(RoundStraightThrough, bug="declared straight through, but scaled")
class RoundScaled(RoundStraightThrough):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 0.5


@right("n m", surrogate=lambda x: x.clamp(-1, 1))
class BinaryHardTanh(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[x.gt(1)] = 0
        grad_input[x.lt(-1)] = 0
        return grad_input


@wrong(BinaryHardTanh, bug="one side of the window open")
class BinaryOneSide(BinaryHardTanh):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[x > 1] = 0
        return grad_input


@wrong(BinaryHardTanh, bug="window inverted")
class BinaryInverted(BinaryHardTanh):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x.abs() > 1)


@right("n m", static={"lam": 0.3}, surrogate=lambda x, lam: -lam * x)
class GradientReversal(sg.Function):
    @staticmethod
    def forward(ctx, x, lam):
        ctx.lam = lam
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.lam, None


@wrong(GradientReversal, bug="not reversed")
class GradientNotReversed(GradientReversal):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.lam, None


@wrong(GradientReversal, bug="lambda forgotten")
class GradientReversalLambda(GradientReversal):
    @staticmethod
    def backward(ctx, grad_output):
        return -grad_output, None


@right(
    "n",
    static={"alpha": 2.0},
    surrogate=lambda x, alpha: sg.atan(math.pi / 2 * alpha * x) / math.pi + 0.5,
)
class SpikeArctan(sg.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        return (x >= 0).to(x.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad = ctx.alpha / 2 / (1 + (math.pi / 2 * ctx.alpha * x).pow(2)) * grad_output
        return grad, None


@wrong(SpikeArctan, bug="alpha left out of the numerator")
class SpikeArctanAlpha(SpikeArctan):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 1 / 2 / (1 + (math.pi / 2 * ctx.alpha * x).pow(2)) * grad_output, None


@right("n", static={"alpha": 4.0}, surrogate=lambda x, alpha: sg.sigmoid(alpha * x))
class SpikeSigmoid(sg.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        return sg.where(x >= 0, sg.ones_like(x), sg.zeros_like(x))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = sg.sigmoid(ctx.alpha * x)
        return grad_output * s * (1 - s) * ctx.alpha, None


@wrong(SpikeSigmoid, bug="alpha not multiplied")
class SpikeSigmoidAlpha(SpikeSigmoid):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = sg.sigmoid(ctx.alpha * x)
        return grad_output * s * (1 - s), None


@right("n", static={"scale": 10.0}, surrogate=lambda u, scale: u / (scale * u.abs() + 1))
class SuperSpike(sg.Function):
    """The fast sigmoid: 1/(scale·|u| + 1)²."""

    @staticmethod
    def forward(ctx, u, scale):
        ctx.save_for_backward(u)
        ctx.scale = scale
        out = sg.zeros_like(u)
        out[u > 0] = 1.0
        return out

    @staticmethod
    def backward(ctx, grad_output):
        (u,) = ctx.saved_tensors
        return grad_output / (ctx.scale * sg.abs(u) + 1.0) ** 2, None


@wrong(SuperSpike, bug="absolute value left out")
class SuperSpikeAbsolute(SuperSpike):
    @staticmethod
    def backward(ctx, grad_output):
        (u,) = ctx.saved_tensors
        return grad_output / (ctx.scale * u + 1.0) ** 2, None


def triangle_integral(u):
    """The integral of max(0, 1 - |u|)."""
    inside = u.clamp(-1, 1)
    return sg.where(u < 0, inside + 0.5 * inside**2, inside - 0.5 * inside**2)


@right("n", surrogate=triangle_integral)
class TriangleSpike(sg.Function):
    """max(0, 1 - |u|)."""

    @staticmethod
    def forward(ctx, u):
        ctx.save_for_backward(u)
        return (u > 0).type_as(u)

    @staticmethod
    def backward(ctx, grad_output):
        (u,) = ctx.saved_tensors
        return grad_output * (1 - u.abs()).clamp(min=0)


@right("n m", "m", surrogate=lambda x, a: sg.minimum(sg.relu(x), a), assume={"a": "positive"})
class Pact(sg.Function):
    """Clipped at a learned level, then quantised to 15 steps; straight through the rounding."""

    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        clipped = sg.minimum(sg.relu(x), a)
        return (clipped / a * 15).round() * a / 15

    @staticmethod
    def backward(ctx, grad_output):
        x, a = ctx.saved_tensors
        inside = (x > 0) & (x < a)
        above = x >= a
        return grad_output * inside, (grad_output * above).sum(0)


@wrong(TriangleSpike, bug="height of the triangle not limited to its support")
class TriangleSpikeUnlimited(TriangleSpike):
    @staticmethod
    def backward(ctx, grad_output):
        (u,) = ctx.saved_tensors
        return grad_output * (1 - u.abs())


@wrong(Pact, bug="level's gradient over the clipped-away negatives too")
class PactLevel(Pact):
    @staticmethod
    def backward(ctx, grad_output):
        x, a = ctx.saved_tensors
        inside = (x > 0) & (x < a)
        return grad_output * inside, (grad_output * ~inside).sum(0)


@wrong(Pact, bug="straight through beyond the level as well")
class PactInside(Pact):
    @staticmethod
    def backward(ctx, grad_output):
        x, a = ctx.saved_tensors
        return grad_output * (x > 0), (grad_output * (x >= a)).sum(0)


@right("n m", "", static={"low": -4, "high": 3}, assume={"step": "positive"})
class FakeQuantize(sg.Function):
    """Its true derivative: rounding is flat, so only the step counts."""

    @staticmethod
    def forward(ctx, x, step, low, high):
        q = (x / step).round().clamp(low, high)
        ctx.save_for_backward(q)
        return q * step

    @staticmethod
    def backward(ctx, grad_output):
        (q,) = ctx.saved_tensors
        return None, (grad_output * q).sum(), None, None


@wrong(FakeQuantize, bug="straight through to x without saying so")
class FakeQuantizeStraight(FakeQuantize):
    @staticmethod
    def backward(ctx, grad_output):
        (q,) = ctx.saved_tensors
        return grad_output, (grad_output * q).sum(), None, None


@right("n m", surrogate=lambda x: sg.tanh(x))
class SignTanh(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return sg.sign(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (1 - sg.tanh(x) ** 2)


@wrong(SignTanh, bug="square forgotten")
class SignTanhSquare(SignTanh):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (1 - sg.tanh(x))


@right("n m", static={"scale": 0.1}, surrogate=lambda x, scale: scale * x)
class GradientScale(sg.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x * 1

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.scale, None


@wrong("n m", bug="gradient clipped", static={"limit": 0.5})
class GradientClip(sg.Function):
    @staticmethod
    def forward(ctx, x, limit):
        ctx.limit = limit
        return x.clone()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.clamp(-ctx.limit, ctx.limit), None


@wrong("n m", bug="gradient normalised")
class GradientNormalise(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output / grad_output.norm()


@right("n m", "o m", surrogate=lambda x, w: x @ w.clamp(-1, 1).t())
class BinaryLinear(sg.Function):
    """A layer with binary weights, as in XNOR nets; the hard tanh passes the gradient."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w.clamp(-1, 1).t()

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w.clamp(-1, 1), (g.t() @ x) * (w.abs() <= 1)
