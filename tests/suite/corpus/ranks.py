"""Any number of leading axes: specs with ``*batch``."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("*batch m")
class CubeAnyRank(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


@wrong(CubeAnyRank, bug="exponent not lowered")
class CubeExponent(CubeAnyRank):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x**3 * g


@right("*batch m")
class SoftmaxAnyRank(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.softmax(-1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        gy = g * y
        return gy - y * gy.sum(-1, keepdim=True)


@wrong(SoftmaxAnyRank, bug="summed over all axes")
class SoftmaxAllAxes(SoftmaxAnyRank):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        gy = g * y
        return gy - y * gy.sum()


@right("*batch m", "m")
class AffineAnyRank(sg.Function):
    """The weight's gradient over all leading axes at once."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, (g * x).reshape(-1, x.shape[-1]).sum(0)


@wrong(AffineAnyRank, bug="summed over the first axis: wrong where there is none", kind="shape")
class AffineFirstAxis(AffineAnyRank):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, (g * x).sum(0)


@right("*batch m", "m", "m", static={"eps": 1e-5})
class LayerNormAnyRank(sg.Function):
    @staticmethod
    def forward(ctx, x, w, b, eps):
        centred = x - x.mean(-1, keepdim=True)
        rstd = (centred.square().mean(-1, keepdim=True) + eps).rsqrt()
        y = centred * rstd
        ctx.save_for_backward(y, rstd, w)
        return y * w + b

    @staticmethod
    def backward(ctx, g):
        y, rstd, w = ctx.saved_tensors
        gw = g * w
        inner = gw - gw.mean(-1, keepdim=True) - y * (gw * y).mean(-1, keepdim=True)
        m = g.shape[-1]
        return rstd * inner, (g * y).reshape(-1, m).sum(0), g.reshape(-1, m).sum(0), None


@wrong(LayerNormAnyRank, bug="bias's gradient averaged")
class LayerNormAnyRankMean(LayerNormAnyRank):
    @staticmethod
    def backward(ctx, g):
        y, rstd, w = ctx.saved_tensors
        gw = g * w
        inner = gw - gw.mean(-1, keepdim=True) - y * (gw * y).mean(-1, keepdim=True)
        m = g.shape[-1]
        return rstd * inner, (g * y).reshape(-1, m).sum(0), g.reshape(-1, m).mean(0), None


@right("*batch i", "o i")
class LinearAnyRank(sg.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w.T

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        flat = g.reshape(-1, g.shape[-1])
        return g @ w, flat.T @ x.reshape(-1, x.shape[-1])


@wrong(LinearAnyRank, bug="divided by the number of rows")
class LinearAnyRankMean(LinearAnyRank):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        flat = g.reshape(-1, g.shape[-1])
        return g @ w, flat.T @ x.reshape(-1, x.shape[-1]) / flat.shape[0]
