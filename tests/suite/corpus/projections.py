"""Projections onto the simplex, whose threshold is found in the sorted row: sparsemax and kin."""

import symgrad as sg
from tests.suite.marks import right, wrong


def threshold(x, radius=1.0):
    """How many elements are left, and what is taken off them."""
    ordered = sg.sort(x, -1, True)[0]
    above = ordered.cumsum(-1) - radius
    places = sg.arange(1, x.shape[-1] + 1).to(x.dtype)
    count = (places * ordered > above).sum(-1, keepdim=True)
    return count, above.gather(-1, count - 1) / count


@right("n m")
class Sparsemax(sg.Function):
    """Shifted by the greatest element; the gradient from the output alone."""

    @staticmethod
    def forward(ctx, x):
        x = x - x.amax(-1, keepdim=True)
        count, tau = threshold(x)
        y = (x - tau).clamp(min=0)
        ctx.save_for_backward(count, y)
        return y

    @staticmethod
    def backward(ctx, g):
        count, y = ctx.saved_tensors
        g = g.clone()
        g[y == 0] = 0
        mean = g.sum(-1, keepdim=True) / count
        return sg.where(y != 0, g - mean, g)


@wrong(Sparsemax, bug="the mean is taken over the whole row")
class SparsemaxRow(Sparsemax):
    @staticmethod
    def backward(ctx, g):
        _count, y = ctx.saved_tensors
        kept = sg.where(y != 0, g, sg.zeros_like(g))
        return sg.where(y != 0, g - kept.mean(-1, keepdim=True), kept)


@wrong(Sparsemax, bug="what is outside of the support counts for the mean")
class SparsemaxOutside(Sparsemax):
    @staticmethod
    def backward(ctx, g):
        count, y = ctx.saved_tensors
        return sg.where(y != 0, g - g.sum(-1, keepdim=True) / count, sg.zeros_like(g))


@wrong(Sparsemax, bug="the mean is taken off outside of the support, too")
class SparsemaxUnmasked(Sparsemax):
    @staticmethod
    def backward(ctx, g):
        count, y = ctx.saved_tensors
        kept = sg.where(y != 0, g, sg.zeros_like(g))
        return kept - kept.sum(-1, keepdim=True) / count


@wrong(Sparsemax, bug="one element too few is counted")
class SparsemaxCount(Sparsemax):
    @staticmethod
    def backward(ctx, g):
        count, y = ctx.saved_tensors
        kept = sg.where(y != 0, g, sg.zeros_like(g))
        return sg.where(y != 0, g - kept.sum(-1, keepdim=True) / (count + 1), kept)


@wrong(Sparsemax, bug="the threshold is taken for a constant")
class SparsemaxThreshold(Sparsemax):
    @staticmethod
    def backward(ctx, g):
        _count, y = ctx.saved_tensors
        return sg.where(y != 0, g, sg.zeros_like(g))


@wrong(Sparsemax, bug="the gradient of softmax")
class SparsemaxSoft(Sparsemax):
    @staticmethod
    def backward(ctx, g):
        _count, y = ctx.saved_tensors
        return y * (g - (g * y).sum(-1, keepdim=True))


@right("n m")
class SparsemaxBySums(sg.Function):
    """The number of elements as a maximum, the threshold as a sum under the mask."""

    @staticmethod
    def forward(ctx, x):
        ordered = sg.sort(x, -1, True)[0]
        places = sg.arange(1, x.shape[-1] + 1).to(x.dtype)
        kept = (1 + places * ordered > ordered.cumsum(-1)).to(x.dtype)
        count = (kept * places).amax(-1, keepdim=True)
        tau = ((kept * ordered).sum(-1, keepdim=True) - 1) / count
        y = sg.maximum(sg.zeros_like(x), x - tau)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        kept = (y != 0).to(g.dtype)
        mean = (g * kept).sum(-1, keepdim=True) / kept.sum(-1, keepdim=True)
        return kept * (g - mean)


@wrong(SparsemaxBySums, bug="elements of the simplex below one half are left out")
class SparsemaxBySumsHalf(SparsemaxBySums):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        kept = (y > 0.5).to(g.dtype)
        mean = (g * kept).sum(-1, keepdim=True) / (y != 0).to(g.dtype).sum(-1, keepdim=True)
        return kept * (g - mean)


@right("m n")
class SimplexColumns(sg.Function):
    """Columns projected onto a simplex of radius 2."""

    @staticmethod
    def forward(ctx, v):
        ordered = sg.sort(v, 0, True)[0]
        total = ordered.cumsum(0)
        places = sg.arange(v.shape[0]).to(v.dtype).unsqueeze(-1) + 1
        last = (ordered - (total - 2) / places > 0).sum(0, keepdim=True) - 1
        theta = (total.gather(0, last) - 2) / (last + 1)
        w = (v - theta).relu()
        ctx.save_for_backward(w)
        return w

    @staticmethod
    def backward(ctx, g):
        (w,) = ctx.saved_tensors
        kept = (w > 0).to(g.dtype)
        return kept * (g - (kept * g).sum(0) / kept.sum(0))


@wrong(SimplexColumns, bug="means of rows")
class SimplexColumnsRows(SimplexColumns):
    @staticmethod
    def backward(ctx, g):
        (w,) = ctx.saved_tensors
        kept = (w > 0).to(g.dtype)
        return kept * (g - (kept * g).sum(1, keepdim=True) / kept.sum(1, keepdim=True))


@right("n m", "n m")
class SparsemaxLoss(sg.Function):
    """The loss whose gradient is the projection less the target."""

    @staticmethod
    def forward(ctx, x, target):
        _, tau = threshold(x)
        p = (x - tau).clamp(min=0)
        ctx.save_for_backward(x, target, p)
        inside = (p > 0).to(x.dtype) * (x * x - tau * tau)
        return inside.sum(-1) / 2 + 0.5 - (target * x).sum(-1)

    @staticmethod
    def backward(ctx, g):
        x, target, p = ctx.saved_tensors
        g = g.unsqueeze(-1)
        return g * (p - target), -g * x


@wrong(SparsemaxLoss, bug="a step function for the projection")
class SparsemaxLossStep(SparsemaxLoss):
    @staticmethod
    def backward(ctx, g):
        x, target, p = ctx.saved_tensors
        g = g.unsqueeze(-1)
        return g * ((p > 0).to(g.dtype) - target), -g * x


@right("n m")
class Entmax(sg.Function):
    """1.5-entmax: the threshold solves a quadratic equation in the elements above it."""

    @staticmethod
    def forward(ctx, x):
        x = (x - x.amax(-1, keepdim=True)) / 2
        ordered = sg.sort(x, -1, True)[0]
        places = sg.arange(1, x.shape[-1] + 1).to(x.dtype)
        mean = ordered.cumsum(-1) / places
        spread = places * ((ordered**2).cumsum(-1) / places - mean**2)
        tau = mean - sg.sqrt(((1 - spread) / places).clamp(min=0))
        count = (tau <= ordered).sum(-1, keepdim=True)
        y = (x - tau.gather(-1, count - 1)).clamp(min=0) ** 2
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        root = y.sqrt()
        return g * root - root * ((g * root).sum(-1, keepdim=True) / root.sum(-1, keepdim=True))


@wrong(Entmax, bug="the output itself for its root")
class EntmaxSquare(Entmax):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y - y * ((g * y).sum(-1, keepdim=True) / y.sum(-1, keepdim=True))


@wrong(Entmax, bug="the number of elements for the sum of their roots")
class EntmaxCount(Entmax):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        root = y.sqrt()
        count = (y > 0).to(g.dtype).sum(-1, keepdim=True)
        return g * root - root * ((g * root).sum(-1, keepdim=True) / count)


@wrong(Entmax, bug="the gradient is weighted twice in the mean")
class EntmaxWeighted(Entmax):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        root = y.sqrt()
        return g * root - root * ((g * y).sum(-1, keepdim=True) / root.sum(-1, keepdim=True))


@wrong(Entmax, bug="the mean is taken off everywhere")
class EntmaxEverywhere(Entmax):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        root = y.sqrt()
        return g * root - (g * root).sum(-1, keepdim=True) / root.sum(-1, keepdim=True)


@wrong(Entmax, bug="the gradient of sparsemax")
class EntmaxLinear(Entmax):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        kept = (y > 0).to(g.dtype)
        return kept * (g - (g * kept).sum(-1, keepdim=True) / kept.sum(-1, keepdim=True))


@wrong(Entmax, bug="twice the gradient, as without the division by 2")
class EntmaxTwice(Entmax):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        root = 2 * y.sqrt()
        return g * root - root * ((g * root).sum(-1, keepdim=True) / root.sum(-1, keepdim=True))
