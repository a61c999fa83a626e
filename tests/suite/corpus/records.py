"""What PyTorch records of a backward: which values keep their history, and which are constants.

Each is right to first order; ``order=2`` asks whether the derivative of backward is right too.
"""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n m", order=2)
class CubeOfSaved(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x * x


@wrong(CubeOfSaved, bug="the input as data", kind="second order")
class CubeOfData(CubeOfSaved):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x * x.data


@wrong(CubeOfSaved, bug="the cotangent is detached", kind="second order")
class CubeOfDetachedCotangent(CubeOfSaved):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g.detach() * x * x


@wrong(CubeOfSaved, bug="a copy is saved, not the input", kind="second order")
class CubeOfCopy(CubeOfSaved):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.clone())
        return x**3


@wrong(CubeOfSaved, bug="a view that forward made is saved", kind="second order")
class CubeOfView(CubeOfSaved):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.t())
        return x**3

    @staticmethod
    def backward(ctx, g):
        (turned,) = ctx.saved_tensors
        return 3 * g * turned.t() ** 2


@right(CubeOfSaved)
class CubeOfRecomputedView(CubeOfSaved):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        turned = x.t()
        return 3 * g * (turned * turned).t()


@wrong(CubeOfSaved, bug="computed without recording", kind="second order")
class CubeUnrecorded(CubeOfSaved):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with sg.no_grad():
            slope = 3 * x * x
        return g * slope


@wrong(CubeOfSaved, bug="recording is switched off in a decorator", kind="second order")
class CubeUnrecordedHelper(CubeOfSaved):
    @staticmethod
    @sg.no_grad()
    def slope(x):
        return 3 * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * CubeUnrecordedHelper.slope(x)


@right(CubeOfSaved)
class CubeRecordedAgain(CubeOfSaved):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with sg.no_grad(), sg.enable_grad():
            slope = 3 * x * x
        return g * slope


@right(CubeOfSaved)
class CubeIntoBuffer(CubeOfSaved):
    """The buffer is made under no_grad, but what is written into it is recorded."""

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with sg.no_grad():
            grad = sg.zeros_like(x)
        grad += 3 * g * x * x
        return grad


@wrong(CubeOfSaved, bug="written into the buffer under no_grad", kind="second order")
class CubeIntoBufferUnrecorded(CubeOfSaved):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        grad = sg.zeros_like(x)
        with sg.no_grad():
            grad += 3 * x * x
        return g * grad


@wrong(CubeOfSaved, bug="one of two saved in a list", kind="second order")
class CubeInList(CubeOfSaved):
    @staticmethod
    def forward(ctx, x):
        ctx.parts = [x, {"square": x * x}]
        return x**3

    @staticmethod
    def backward(ctx, g):
        return 3 * g * ctx.parts[1]["square"]


@right(CubeOfSaved)
class CubeInListUnused(CubeOfSaved):
    @staticmethod
    def forward(ctx, x):
        ctx.parts = [x, {"square": x * x}]
        return x**3

    @staticmethod
    def backward(ctx, g):
        x = ctx.parts[0]
        return 3 * g * x * x


@right("n m", order=2)
class SquareBySetup(sg.Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


@wrong(SquareBySetup, bug="computed in setup_context", kind="second order")
class SquareSlopeBySetup(SquareBySetup):
    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.save_for_backward(2 * x)

    @staticmethod
    def backward(ctx, g):
        (slope,) = ctx.saved_tensors
        return g * slope


@right("n m", order=2)
class SoftplusSlopeReturned(sg.Function):
    """The slope is an output, so that it keeps its history."""

    @staticmethod
    def forward(ctx, x):
        slope = x.sigmoid()
        ctx.save_for_backward(slope)
        return (1 + x.exp()).log(), slope

    @staticmethod
    def backward(ctx, g_value, g_slope):
        (slope,) = ctx.saved_tensors
        return g_value * slope + g_slope * slope * (1 - slope)


@right("n m", order=2)
class ReluMaskSaved(sg.Function):
    """A saved mask is a constant, and that is right: its derivative is zero."""

    @staticmethod
    def forward(ctx, x):
        mask = (x > 0).to(x.dtype)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * mask


@right("n m", "m", order=2)
class CentredByConstant(sg.Function):
    """Linear in x: the saved mean is a constant of the second derivative by right."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(w, x.mean(0))
        ctx.x = x
        return (x - x.mean(0)) * w

    @staticmethod
    def backward(ctx, g):
        w, _ = ctx.saved_tensors
        scaled = g * w
        return scaled - scaled.mean(0), (g * (ctx.x - ctx.x.mean(0))).sum(0)


@wrong(CentredByConstant, bug="the saved mean is used for the weight", kind="second order")
class CentredBySavedMean(CentredByConstant):
    @staticmethod
    def backward(ctx, g):
        w, mean = ctx.saved_tensors
        scaled = g * w
        return scaled - scaled.mean(0), (g * (ctx.x - mean)).sum(0)


@right("n", "n", order=2)
class GuardedRight(sg.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        grad_x = 2 * g * x * y if ctx.needs_input_grad[0] else None
        grad_y = g * x * x if ctx.needs_input_grad[1] else None
        return grad_x, grad_y


@wrong("n m", order=2, bug="the statistic that is saved is also the output's", kind="second order")
class StandardisedSaved(sg.Function):
    @staticmethod
    def forward(ctx, x):
        rstd = (x.var(1, unbiased=False, keepdim=True) + 0.1).rsqrt()
        y = (x - x.mean(1, keepdim=True)) * rstd
        ctx.save_for_backward(y, rstd)
        return y

    @staticmethod
    def backward(ctx, g):
        y, rstd = ctx.saved_tensors
        return rstd * (g - g.mean(1, keepdim=True) - y * (g * y).mean(1, keepdim=True))


@right("n m", order=2)
class StandardisedRecomputed(sg.Function):
    """Uses the output, and computes the statistic again."""

    @staticmethod
    def forward(ctx, x):
        rstd = (x.var(1, unbiased=False, keepdim=True) + 0.1).rsqrt()
        y = (x - x.mean(1, keepdim=True)) * rstd
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        rstd = (x.var(1, unbiased=False, keepdim=True) + 0.1).rsqrt()
        return rstd * (g - g.mean(1, keepdim=True) - y * (g * y).mean(1, keepdim=True))
