"""Functions applied in backward: differentiated again by their own backward, right or wrong.

``order=2`` asks whether the derivative of backward is right too.
"""

import symgrad as sg
from tests.suite.marks import right, wrong


class Sine(sg.Function):
    """Differentiated by ``Cosine``, which is differentiated by this one."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * Cosine.apply(x)


class Cosine(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.cos()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return -g * Sine.apply(x)


class CosineWrong(Cosine):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.sin()


right("n m", order=2)(Sine)


@wrong(Sine, bug="the derivative of the applied cosine has the wrong sign", kind="second order")
class SineByWrongCosine(Sine):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * CosineWrong.apply(x)


@wrong(Sine, bug="the cosine is applied to a constant", kind="second order")
class SineOfDetached(Sine):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * Cosine.apply(x.detach())


@wrong(Sine, bug="the cosine is applied under no_grad", kind="second order")
class SineUnrecorded(Sine):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with sg.no_grad():
            slope = Cosine.apply(x)
        return g * slope


@right("n m", order=2)
class ExponentialOfItself(sg.Function):
    """Applies itself in its own backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ExponentialOfItself.apply(x)


class SplitParts(sg.Function):
    """Two outputs and an argument that is no tensor; the second output is not used by all."""

    @staticmethod
    def forward(ctx, x, power):
        ctx.save_for_backward(x)
        ctx.power = power
        return x**power, x.exp()

    @staticmethod
    def backward(ctx, g_power, g_exp):
        (x,) = ctx.saved_tensors
        slope = ctx.power * x ** (ctx.power - 1)
        return g_power * slope + g_exp * x.exp(), None


class SplitPartsWrong(SplitParts):
    @staticmethod
    def backward(ctx, g_power, g_exp):
        (x,) = ctx.saved_tensors
        return g_power * x ** (ctx.power - 1) + g_exp * x.exp(), None


@right("n m", order=2)
class CubeAndExponential(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3 + x.exp()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        square, exponential = SplitParts.apply(x, 2)
        return g * (3 * square + exponential)


@wrong(CubeAndExponential, bug="one of two inner derivatives is wrong", kind="second order")
class CubeAndExponentialWrong(CubeAndExponential):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        square, exponential = SplitPartsWrong.apply(x, 2)
        return g * (3 * square + exponential)


@right(CubeAndExponential)
class CubeAndExponentialOneUsed(CubeAndExponential):
    """Only the output whose derivative is right is used."""

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        _, exponential = SplitPartsWrong.apply(x, 2)
        return g * (3 * x * x + exponential)


class ScaledInPlace(sg.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(scale)
        return x * scale

    @staticmethod
    def backward(ctx, g):
        (scale,) = ctx.saved_tensors
        return g * scale, None


@wrong("n m", "m", order=2, bug="the applied product has no gradient for w", kind="second order")
class InnerWithoutGradient(sg.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        twice = 2 * g * x
        return ScaledInPlace.apply(twice, w.expand_as(x)), (g * x * x).sum(0)
