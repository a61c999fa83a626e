"""Plain arguments: numbers, flags, texts, lists, dictionaries and functions.

A backward that is right for the value it was judged with, and wrong for another one.
"""

from __future__ import annotations

import symgrad as sg
from tests.suite.adversarial.program import Programs, at

programs = Programs(sg, __name__)
right, wrong = programs.right, programs.wrong


class Scaled(sg.Function):
    @staticmethod
    def forward(ctx, x, alpha=2.0):
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        return alpha * x * x


@wrong("n", static={"alpha": 2.0}, fails=at(alpha=3.0))
class SquareForDouble(Scaled):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.alpha**2 * x, None


@wrong("n", fails=at(alpha=-1.0))
class DefaultHidesIt(Scaled):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * abs(ctx.alpha) * x, None


@wrong("n", static={"alpha": 2.0}, fails=at(alpha=0.0))
class DividedByIt(Scaled):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x * ctx.alpha * ctx.alpha / ctx.alpha if ctx.alpha else g, None


@wrong("n", static={"alpha": 2.0}, fails=at(alpha=17.0))
class OneValue(Scaled):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return (g if ctx.alpha == 17 else 2 * g * x * ctx.alpha), None


@wrong("n", static={"alpha": 2.0}, fails=at(alpha=1e3))
class Clipped(Scaled):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x * min(ctx.alpha, 100.0), None


@wrong("n", static={"alpha": 2.0}, fails=at(alpha=0.5))
class Truncated(Scaled):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x * int(ctx.alpha), None


@wrong("n", fails=at(options={"scale": 3.0}), static={"options": {"scale": 1.0}})
class InDictionary(sg.Function):
    @staticmethod
    def forward(ctx, x, options):
        ctx.options = options
        return x * options["scale"]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.options["scale"] ** 2, None


@wrong("n", fails=at(weights=[1.0, 5.0]), static={"weights": [1.0, 1.0]})
class InList(sg.Function):
    @staticmethod
    def forward(ctx, x, weights):
        ctx.weights = weights
        return x * weights[0] + x * weights[1]

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.weights[0], None


@wrong("n", fails=at(pair=(2.0, 3.0)), static={"pair": (2.0, 2.0)})
class InTuple(sg.Function):
    @staticmethod
    def forward(ctx, x, pair):
        ctx.pair = pair
        return x * pair[0]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.pair[1], None


def double(x):
    return 2 * x


def triple(x):
    return 3 * x


@wrong("n", fails=at(inner=triple), static={"inner": double})
class InFunction(sg.Function):
    @staticmethod
    def forward(ctx, x, inner):
        return inner(x)

    @staticmethod
    def backward(ctx, g):
        return 2 * g, None


@wrong("n", fails=at(mode="mean"), static={"mode": "sum"})
class InText(sg.Function):
    @staticmethod
    def forward(ctx, x, mode):
        ctx.save_for_backward(x)
        return x.sum() if mode == "sum" else x.mean()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * sg.ones_like(x), None


@wrong("n", fails=at(training=False))
class InFlag(sg.Function):
    @staticmethod
    def forward(ctx, x, training=True):
        return 2 * x if training else x * 1

    @staticmethod
    def backward(ctx, g):
        return 2 * g, None


@wrong("n+6", fails=at(k=3), static={"k": 1})
class InShift(sg.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.k = k
        return x.roll(k, 0)

    @staticmethod
    def backward(ctx, g):
        return g.roll(-(ctx.k**2), 0), None


@wrong("n", fails=at(p=3), static={"p": 2})
class InExponent(sg.Function):
    @staticmethod
    def forward(ctx, x, p):
        ctx.save_for_backward(x)
        ctx.p = p
        return x**p

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.p * x, None


@wrong("n", static={"low": -1.0, "high": 1.0}, fails=at(low=0.5, high=2.0, x=0.9))
class InBounds(sg.Function):
    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x)
        ctx.high = high
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.abs() < ctx.high) * (x > 0.95) + g * (x.abs() < ctx.high) * (x <= 0.95) * (
            1 if ctx.high == 1.0 else 3
        ), None, None  # fmt: skip


@wrong("n", static={"eps": 1e-5}, fails=at(eps=1.0))
class EpsilonInside(sg.Function):
    @staticmethod
    def forward(ctx, x, eps):
        ctx.save_for_backward(x)
        ctx.eps = eps
        return (x * x + eps).sqrt()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x / (x * x + (1e-5 if ctx.eps == 1e-5 else 2 * ctx.eps)).sqrt(), None


@right("n", static={"alpha": 2.0})
class AlphaRight(Scaled):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x * ctx.alpha, None


@right("n", static={"alpha": 0.3})
class LeakyRight(sg.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        return sg.where(x > 0, x, alpha * x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return sg.where(x > 0, g, ctx.alpha * g), None


@right("n", static={"p": 3})
class ExponentRight(sg.Function):
    @staticmethod
    def forward(ctx, x, p):
        ctx.save_for_backward(x)
        ctx.p = p
        return x**p

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.p * x ** (ctx.p - 1), None


@right("n", static={"options": {"scale": 3.0, "shift": 1.0}})
class DictionaryRight(sg.Function):
    @staticmethod
    def forward(ctx, x, options):
        ctx.options = options
        return x * options["scale"] + options["shift"]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.options["scale"], None


@right("n", static={"beta": 1.0, "threshold": 20.0})
class SoftplusOfTwo(sg.Function):
    @staticmethod
    def forward(ctx, x, beta, threshold):
        ctx.save_for_backward(x)
        ctx.beta = beta
        return sg.log1p(sg.exp(beta * x)) / beta

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * sg.sigmoid(ctx.beta * x), None, None


class Celu(sg.Function):
    @staticmethod
    def forward(ctx, x, alpha=1.0):
        y = sg.where(x > 0, x, alpha * ((x / alpha).exp() - 1))
        ctx.save_for_backward(y)
        ctx.alpha = alpha
        return y


@right("n")
class CeluByOutput(Celu):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * sg.where(y > 0, y * 0 + 1, y / ctx.alpha + 1), None


@wrong("n", fails=at(alpha=2.0, x=-1.0))
class CeluForOne(Celu):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * sg.where(y > 0, y * 0 + 1, y + 1), None


@wrong("n", fails=at(alpha=3.0, x=1.0))
class CeluFromAlpha(Celu):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * sg.where(y > ctx.alpha - 1, y * 0 + 1, y / ctx.alpha + 1), None


class Huber(sg.Function):
    @staticmethod
    def forward(ctx, x, delta=1.0):
        ctx.save_for_backward(x)
        ctx.delta = delta
        a = x.abs()
        return sg.where(a <= delta, 0.5 * x * x, delta * (a - 0.5 * delta))


@wrong("n", fails=at(delta=-1.0, x=-1.0))
class HuberByClamp(Huber):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.clamp(-ctx.delta, ctx.delta), None


@wrong("n", fails=at(delta=2.0, x=3.0))
class HuberBySquare(Huber):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.clamp(-ctx.delta * ctx.delta, ctx.delta * ctx.delta), None
