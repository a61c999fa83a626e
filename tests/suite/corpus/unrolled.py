"""Long recurrences written as Python loops over lists of saved tensors."""

import symgrad as sg
from tests.suite.marks import right
from tests.suite.twins import twins


@twins(
    ReluRnnMask=("hs[t + 1] > 0", "hs[t] > 0", "mask of the step below"),
    ReluRnnState=("d.t() @ hs[t]", "d.t() @ hs[t + 1]", "state of the step above"),
    ReluRnnTranspose=("d @ u", "d @ u.t()", "transposed"),
)
@right("5 b i", "h i", "h h", "h")
class ReluRnn(sg.Function):
    """Five steps of a relu cell; the backward reads the masks off the states."""

    @staticmethod
    def forward(ctx, x, w, u, bias):
        h = sg.zeros(x.shape[1], u.shape[0], dtype=x.dtype)
        hs = [h]
        for t in range(5):
            h = sg.relu(x[t] @ w.t() + h @ u.t() + bias)
            hs.append(h)
        ctx.save_for_backward(x, w, u, *hs)
        return h

    @staticmethod
    def backward(ctx, g):
        x, w, u, *hs = ctx.saved_tensors
        dw, du = sg.zeros_like(w), sg.zeros_like(u)
        db = sg.zeros(u.shape[0], dtype=w.dtype)
        dx = []
        for t in reversed(range(5)):
            d = g * (hs[t + 1] > 0)
            dw = dw + d.t() @ x[t]
            du = du + d.t() @ hs[t]
            db = db + d.sum(0)
            dx.append(d @ w)
            g = d @ u
        return sg.stack(dx[::-1]), dw, du, db


@twins(
    ReluMlpMask=("hs[i + 1] <= 0", "hs[i] <= 0", "mask of the layer below"),
    ReluMlpInput=("d.t() @ hs[i]", "d.t() @ hs[i + 1]", "output for input"),
    ReluMlpOpen=("hs[i + 1] <= 0, 0", "hs[i + 1] <= 0, 0.1", "leaks"),
)
@right("n d", *["d d"] * 5)
class ReluMlp(sg.Function):
    @staticmethod
    def forward(ctx, x, *weights):
        hs = [x]
        for weight in weights:
            hs.append(sg.relu(hs[-1] @ weight.t() + 1))
        ctx.save_for_backward(*hs)
        ctx.weights = weights
        return hs[-1]

    @staticmethod
    def backward(ctx, g):
        hs, weights = ctx.saved_tensors, ctx.weights
        grads = []
        for i in reversed(range(len(weights))):
            d = g.masked_fill(hs[i + 1] <= 0, 0)
            grads.insert(0, d.t() @ hs[i])
            g = d @ weights[i]
        return g, *grads


@twins(
    LeakyDeepSlope=("slope * g", "g", "slope 1"),
    LeakyDeepSkip=("g = g + d @ w", "g = d @ w", "skip left out"),
    LeakyDeepSign=("dw + ", "dw - ", "sign"),
)
@right("n d", "d d", static={"slope": 0.2})
class LeakyResidual(sg.Function):
    """Ten residual layers that share one weight, leaky relu by its output."""

    @staticmethod
    def forward(ctx, x, w, slope):
        xs, ys = [x], []
        for _ in range(10):
            z = xs[-1] @ w.t()
            ys.append(sg.where(z > 0, z, slope * z))
            xs.append(xs[-1] + ys[-1])
        ctx.save_for_backward(w, *xs, *ys)
        ctx.slope = slope
        return xs[-1]

    @staticmethod
    def backward(ctx, g):
        w, *rest = ctx.saved_tensors
        xs, ys = rest[:11], rest[11:]
        slope, dw = ctx.slope, 0
        for x, y in zip(reversed(xs[:-1]), reversed(ys), strict=True):
            d = sg.where(y > 0, g, slope * g)
            dw = dw + d.t() @ x
            g = g + d @ w
        return g, dw, None
