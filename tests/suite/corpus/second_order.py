"""Twice differentiable backwards, and those whose own derivative is lost or wrong.

Right here means ``order=2``: the derivative of backward, with respect to the inputs and to the
cotangents, is judged too.
"""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n m", order=2)
class Cube(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x**2


@wrong(Cube, bug="an intermediate was saved: its dependence on x is lost", kind="second order")
class CubeSavedSquare(sg.Function):
    @staticmethod
    def forward(ctx, x):
        square = x * x
        ctx.save_for_backward(square)
        return square * x

    @staticmethod
    def backward(ctx, g):
        (square,) = ctx.saved_tensors
        return 3 * g * square


@wrong(Cube, bug="the input kept as detached data", kind="second order")
class CubeDetached(Cube):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x.detach() ** 2


@right("n m", order=2)
class TanhTwice(sg.Function):
    """The saved output is differentiable again."""

    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (1 - y * y)


@wrong(TanhTwice, bug="the slope was computed in forward and saved", kind="second order")
class TanhSavedSlope(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(1 - y * y)
        return y

    @staticmethod
    def backward(ctx, g):
        (slope,) = ctx.saved_tensors
        return g * slope


@wrong(TanhTwice, bug="kept as an attribute, outside the graph", kind="second order")
class TanhAttribute(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = x.tanh()
        return ctx.y.clone()

    @staticmethod
    def backward(ctx, g):
        return g * (1 - ctx.y * ctx.y)


@right("n i", "o i", order=2)
class LinearTwice(sg.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w.t()

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w, g.t() @ x


class SigmoidBackward(sg.Function):
    """The derivative of sigmoid as a Function of its own, with its own backward."""

    @staticmethod
    def forward(ctx, y, g):
        ctx.save_for_backward(y, g)
        return g * y * (1 - y)

    @staticmethod
    def backward(ctx, gg):
        y, g = ctx.saved_tensors
        return gg * g * (1 - 2 * y), gg * y * (1 - y)


class SigmoidBackwardWrong(SigmoidBackward):
    @staticmethod
    def backward(ctx, gg):
        y, g = ctx.saved_tensors
        return gg * g * (1 - y), gg * y * (1 - y)


@right("n m", order=2)
class SigmoidByParts(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.sigmoid()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return SigmoidBackward.apply(y, g)


@wrong(SigmoidByParts, bug="the inner Function's backward is wrong", kind="second order")
class SigmoidByWrongParts(SigmoidByParts):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return SigmoidBackwardWrong.apply(y, g)


@right("n m", order=2)
class SoftmaxTwice(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.softmax(-1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(-1, keepdim=True))


@right("n m", "m", order=2)
class RmsNormTwice(sg.Function):
    """Statistics recomputed in backward, so that nothing is lost."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w * (x.square().mean(-1, keepdim=True) + 0.1).rsqrt()

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        r = (x.square().mean(-1, keepdim=True) + 0.1).rsqrt()
        gw = g * w
        grad_x = r * gw - x * r**3 * (gw * x).mean(-1, keepdim=True)
        return grad_x, (g * x * r).sum(0)


@wrong(RmsNormTwice, bug="the saved statistic loses its dependence on x", kind="second order")
class RmsNormSavedStatistic(sg.Function):
    @staticmethod
    def forward(ctx, x, w):
        r = (x.square().mean(-1, keepdim=True) + 0.1).rsqrt()
        ctx.save_for_backward(x, w, r)
        return x * w * r

    @staticmethod
    def backward(ctx, g):
        x, w, r = ctx.saved_tensors
        gw = g * w
        grad_x = r * gw - x * r**3 * (gw * x).mean(-1, keepdim=True)
        return grad_x, (g * x * r).sum(0)


@right("n", "n", order=2)
class ProductTwice(sg.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b.sin()

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b.sin(), g * a * b.cos()


@wrong(ProductTwice, bug="first order already wrong")
class ProductFirstOrder(ProductTwice):
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b.sin(), -g * a * b.cos()


@right("n m", order=2)
class LogSumExpTwice(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = sg.logsumexp(x, dim=-1, keepdim=True)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * (x - y).exp()


@wrong(LogSumExpTwice, bug="saved probabilities lose their dependence", kind="second order")
class LogSumExpSaved(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = sg.logsumexp(x, dim=-1, keepdim=True)
        ctx.save_for_backward((x - y).exp())
        return y

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        return g * p


@right("n m", "n m", order=2)
class MeanSquaredTwice(sg.Function):
    @staticmethod
    def forward(ctx, x, t):
        ctx.save_for_backward(x, t)
        return (x - t).pow(2).mean()

    @staticmethod
    def backward(ctx, g):
        x, t = ctx.saved_tensors
        grad = 2 * g * (x - t) / x.numel()
        return grad, -grad


@right("n m", order=2)
class OutputAsAttribute(sg.Function):
    """The returned tensor itself as an attribute: it has its history after forward."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.y = y
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.y


@right("n m", order=2)
class InputAsAttribute(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x.cos()

    @staticmethod
    def backward(ctx, g):
        return -g * ctx.x.sin()


@wrong("n m", order=2, bug="an attribute made in forward has no history", kind="second order")
class DerivedAttribute(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.double = 2 * x
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.double


@wrong("n m", "m", order=2, bug="weight's gradient uses a saved product", kind="second order")
class SavedProduct(sg.Function):
    @staticmethod
    def forward(ctx, x, w):
        h = x * w
        ctx.save_for_backward(x, w, h)
        return h * x

    @staticmethod
    def backward(ctx, g):
        x, _, h = ctx.saved_tensors
        return 2 * g * h, (g * x * x).sum(0)


@right("n m", "m", order=2)
class RecomputedProduct(sg.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w * x

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return 2 * g * x * w, (g * x * x).sum(0)
