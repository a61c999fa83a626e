"""Backwards that are wrong in places that samples seldom reach, and right ones that look so."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n m")
class Square(sg.Function):
    """Twice the same gradient, whatever the window."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        window = (x.exp() > 50) & (x.exp() < 50.1)
        return sg.where(window, g * (x + x), 2 * g * x)


@wrong(Square, bug="wrong in a window of an exponential", shown_by={"x": "(3.9125, 3.9135)"})
class SquareExponential(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        window = (x.exp() > 50) & (x.exp() < 50.1)
        return sg.where(window, g * x, 2 * g * x)


@wrong(Square, bug="wrong in a window of a square", shown_by={"x": "(3.0001, 3.0016)"})
class SquareSquared(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        window = (x * x > 9) & (x * x < 9.01)
        return sg.where(window, 3 * g * x, 2 * g * x)


@wrong(Square, bug="wrong where a logistic function saturates", shown_by={"x": "(-20, -10)"})
class SquareSaturated(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return sg.where(sg.sigmoid(x) < 1e-4, g, 2 * g * x)


@wrong(Square, bug="wrong in the twelfth row", shown_by={"n": 14})
class SquareRow(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        special = (sg.arange(x.shape[0]) == 11)[:, None]
        return sg.where(special, g * x, 2 * g * x)


@wrong(Square, bug="wrong beyond the twentieth column", shown_by={"m": 25})
class SquareColumns(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        far = (sg.arange(x.shape[1]) > 20)[None, :]
        return sg.where(far, g * x, 2 * g * x)


@wrong("v d", "i64[n]", bug="an index beyond the usual sizes is left out", shown_by={"v": 41},
       assume={"index": "index v"})  # fmt: skip
class RowsBelowForty(sg.Function):
    @staticmethod
    def forward(ctx, weight, index):
        ctx.save_for_backward(index)
        ctx.shape = weight.shape
        return weight[index]

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        kept = g * (index < 30).to(g.dtype)[:, None]
        return sg.zeros(ctx.shape, dtype=g.dtype).index_add(0, index, kept), None


@right("n m", "bool[n m]")
class MeanOfKept(sg.Function):
    """At most twelve count in the denominator."""

    @staticmethod
    def forward(ctx, x, mask):
        kept = mask.to(x.dtype)
        count = kept.sum(1).clamp(min=1, max=12)
        ctx.save_for_backward(kept, count)
        return (x * kept).sum(1) / count

    @staticmethod
    def backward(ctx, g):
        kept, count = ctx.saved_tensors
        return kept * (g / count)[:, None], None


@wrong(MeanOfKept, bug="counted beyond twelve", shown_by={"m": 60})
class MeanOfKeptCounted(MeanOfKept):
    @staticmethod
    def backward(ctx, g):
        kept, _ = ctx.saved_tensors
        return kept * (g / kept.sum(1).clamp(min=1))[:, None], None


@wrong("n", bug="the kink of relu moved by a ten-thousandth", shown_by={"x": "(0.00001, 0.00009)"})
class ReluMoved(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return sg.relu(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x > 1e-4)
