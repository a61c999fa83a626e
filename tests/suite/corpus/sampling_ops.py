"""Interpolation, pooling and dynamic programming: grids, warps, windows, forward algorithms."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("k c", "n", assume={"position": "(0, 1)"})
class LinearInterpolation(sg.Function):
    """A table read between two rows; positions in (0, 1) span its first two."""

    @staticmethod
    def forward(ctx, table, position):
        low = table[0]
        high = table[-1]
        t = position[:, None]
        ctx.save_for_backward(low, high, position)
        ctx.rows = table.shape[0]
        return low * (1 - t) + high * t

    @staticmethod
    def backward(ctx, g):
        low, high, position = ctx.saved_tensors
        t = position[:, None]
        grad = sg.zeros(ctx.rows, g.shape[1], dtype=g.dtype)
        grad[0] += (g * (1 - t)).sum(0)
        grad[-1] += (g * t).sum(0)
        return grad, (g * (high - low)).sum(1)


@wrong(LinearInterpolation, bug="weights of the two rows exchanged")
class InterpolationExchanged(LinearInterpolation):
    @staticmethod
    def backward(ctx, g):
        low, high, position = ctx.saved_tensors
        t = position[:, None]
        grad = sg.zeros(ctx.rows, g.shape[1], dtype=g.dtype)
        grad[0] += (g * t).sum(0)
        grad[-1] += (g * (1 - t)).sum(0)
        return grad, (g * (high - low)).sum(1)


@wrong(LinearInterpolation, bug="assigned, not added: wrong for a table of one row")
class InterpolationAssigned(LinearInterpolation):
    @staticmethod
    def backward(ctx, g):
        low, high, position = ctx.saved_tensors
        t = position[:, None]
        grad = sg.zeros(ctx.rows, g.shape[1], dtype=g.dtype)
        grad[0] = (g * (1 - t)).sum(0)
        grad[-1] = (g * t).sum(0)
        return grad, (g * (high - low)).sum(1)


@right("v c", "i64[n]", "n", assume={"cell": "index v"})
class GridLookup(sg.Function):
    """Rows mixed by a smoothstep weight, as in a hash grid."""

    @staticmethod
    def forward(ctx, table, cell, t):
        w = t * t * (3 - 2 * t)
        ctx.save_for_backward(table, cell, t)
        return table[cell] * w.unsqueeze(1)

    @staticmethod
    def backward(ctx, g):
        table, cell, t = ctx.saved_tensors
        w = t * t * (3 - 2 * t)
        grad_table = sg.zeros_like(table).index_add_(0, cell, g * w.unsqueeze(1))
        return grad_table, None, (g * table[cell]).sum(1) * 6 * t * (1 - t)


@wrong(GridLookup, bug="smoothstep's derivative without its 6")
class GridLookupSmoothstep(GridLookup):
    @staticmethod
    def backward(ctx, g):
        table, cell, t = ctx.saved_tensors
        w = t * t * (3 - 2 * t)
        grad_table = sg.zeros_like(table).index_add_(0, cell, g * w.unsqueeze(1))
        return grad_table, None, (g * table[cell]).sum(1) * t * (1 - t)


@wrong(GridLookup, bug="weight left out of the table's gradient")
class GridLookupWeight(GridLookup):
    @staticmethod
    def backward(ctx, g):
        table, cell, t = ctx.saved_tensors
        grad_table = sg.zeros_like(table).index_add_(0, cell, g)
        return grad_table, None, (g * table[cell]).sum(1) * 6 * t * (1 - t)


@right("n 2*m")
class AveragePairs(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return 0.5 * (x[:, ::2] + x[:, 1::2])

    @staticmethod
    def backward(ctx, g):
        half = 0.5 * g
        return sg.stack([half, half], dim=2).flatten(1)


@wrong(AveragePairs, bug="halves laid side by side, not interleaved", right_if="m == 1")
class AveragePairsCat(AveragePairs):
    @staticmethod
    def backward(ctx, g):
        half = 0.5 * g
        return sg.cat([half, half], dim=1)


@wrong(AveragePairs, bug="not halved")
class AveragePairsSum(AveragePairs):
    @staticmethod
    def backward(ctx, g):
        return sg.stack([g, g], dim=2).flatten(1)


@right("n c 2*h 2*w")
class MaxPool(sg.Function):
    """2x2 windows by reshape."""

    @staticmethod
    def forward(ctx, x):
        n, c, h, w = x.shape
        windows = x.reshape(n, c, h // 2, 2, w // 2, 2)
        y = windows.amax(dim=(3, 5), keepdim=True)
        ctx.mask = windows == y
        ctx.shape = x.shape
        return y.reshape(n, c, h // 2, w // 2)

    @staticmethod
    def backward(ctx, g):
        return (ctx.mask * g[:, :, :, None, :, None]).reshape(ctx.shape)


@wrong(MaxPool, bug="every element of the window gets the gradient")
class MaxPoolEverywhere(MaxPool):
    @staticmethod
    def backward(ctx, g):
        spread = sg.ones_like(ctx.mask) * g[:, :, :, None, :, None]
        return spread.reshape(ctx.shape)


@right("t+2 c", "3 c")
class DepthwiseConvolution(sg.Function):
    """Three taps along the first axis, valid part only."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x[:-2] * w[0] + x[1:-1] * w[1] + x[2:] * w[2]

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        grad_x = sg.zeros_like(x)
        grad_x[:-2] += g * w[0]
        grad_x[1:-1] += g * w[1]
        grad_x[2:] += g * w[2]
        grad_w = sg.stack([(g * x[:-2]).sum(0), (g * x[1:-1]).sum(0), (g * x[2:]).sum(0)])
        return grad_x, grad_w


@wrong(DepthwiseConvolution, bug="kernel not flipped against the input: taps in reverse")
class DepthwiseFlipped(DepthwiseConvolution):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        grad_x = sg.zeros_like(x)
        grad_x[:-2] += g * w[2]
        grad_x[1:-1] += g * w[1]
        grad_x[2:] += g * w[0]
        grad_w = sg.stack([(g * x[:-2]).sum(0), (g * x[1:-1]).sum(0), (g * x[2:]).sum(0)])
        return grad_x, grad_w


@wrong(DepthwiseConvolution, bug="the border's contributions lost")
class DepthwiseBorder(DepthwiseConvolution):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        grad_x = sg.zeros_like(x)
        grad_x[1:-1] = g * (w[0] + w[1] + w[2])
        grad_w = sg.stack([(g * x[:-2]).sum(0), (g * x[1:-1]).sum(0), (g * x[2:]).sum(0)])
        return grad_x, grad_w


@right("s", "s s", "s")
class ForwardAlgorithmStep(sg.Function):
    """One step of a CRF: logsumexp over the previous tags, plus the emission."""

    @staticmethod
    def forward(ctx, alpha, transition, emission):
        scores = alpha.unsqueeze(1) + transition
        out = sg.logsumexp(scores, dim=0)
        ctx.save_for_backward(scores, out)
        return out + emission

    @staticmethod
    def backward(ctx, g):
        scores, out = ctx.saved_tensors
        grad = sg.exp(scores - out) * g
        return grad.sum(1), grad, g


@wrong(ForwardAlgorithmStep, bug="normalised over the next tags, not the previous ones")
class ForwardStepAxis(ForwardAlgorithmStep):
    @staticmethod
    def backward(ctx, g):
        scores, _ = ctx.saved_tensors
        grad = sg.softmax(scores, dim=1) * g
        return grad.sum(1), grad, g


@wrong(ForwardAlgorithmStep, bug="the previous scores' gradient summed along the wrong axis")
class ForwardStepSum(ForwardAlgorithmStep):
    @staticmethod
    def backward(ctx, g):
        scores, out = ctx.saved_tensors
        grad = sg.exp(scores - out) * g
        return grad.sum(0), grad, g


@right("b h w+1")
class TotalVariation(sg.Function):
    """Squared horizontal differences."""

    @staticmethod
    def forward(ctx, image):
        dx = image[..., 1:] - image[..., :-1]
        ctx.save_for_backward(dx)
        return dx.square().sum((1, 2))

    @staticmethod
    def backward(ctx, g):
        (dx,) = ctx.saved_tensors
        scaled = 2 * g[:, None, None] * dx
        return sg.pad(scaled, (1, 0)) - sg.pad(scaled, (0, 1))


@wrong(TotalVariation, bug="the two shifts exchanged")
class TotalVariationSign(TotalVariation):
    @staticmethod
    def backward(ctx, g):
        (dx,) = ctx.saved_tensors
        scaled = 2 * g[:, None, None] * dx
        return sg.pad(scaled, (0, 1)) - sg.pad(scaled, (1, 0))


@wrong(TotalVariation, bug="only one of the two neighbours")
class TotalVariationOne(TotalVariation):
    @staticmethod
    def backward(ctx, g):
        (dx,) = ctx.saved_tensors
        return sg.pad(2 * g[:, None, None] * dx, (1, 0))
