"""Rows with minus infinity, guards for rows that are masked throughout, grids, scans, windows."""

import math

import symgrad as sg
from tests.suite.marks import right
from tests.suite.twins import twins


@twins(
    CausalFillScale=("* ctx.scale", "", "scale left out"),
    CausalFillDelta=("- (dp * p).sum(-1, keepdim=True)", "", "delta left out"),
    CausalFillV=("p.transpose(-1, -2) @ g", "p @ g", "transposed"),
)
@right("b n d", "b n d", "b n e")
class CausalFillAttention(sg.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        n = q.shape[1]
        ctx.scale = 0.125
        s = q @ k.transpose(-1, -2) * ctx.scale
        mask = sg.triu(sg.ones(n, n, dtype=sg.bool), 1)
        s = s.masked_fill(mask, float("-inf"))
        p = sg.softmax(s, -1)
        ctx.save_for_backward(q, k, v, p)
        return p @ v

    @staticmethod
    def backward(ctx, g):
        q, k, v, p = ctx.saved_tensors
        dv = p.transpose(-1, -2) @ g
        dp = g @ v.transpose(-1, -2)
        ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * ctx.scale
        return ds @ k, ds.transpose(-1, -2) @ q, dv


@twins(
    CausalByHandSum=("p * (g - (g * p)", "p * (g + (g * p)", "sign"),
    CausalByHandMean=(".sum(-1, keepdim=True))", ".mean(-1, keepdim=True))", "mean"),
    CausalByHandTwice=("return p *", "return 2 * p *", "factor 2"),
)
@right("*batch n n")
class CausalSoftmaxByHand(sg.Function):
    """Softmax of a masked square, the maximum subtracted by hand."""

    @staticmethod
    def forward(ctx, x):
        n = x.shape[-1]
        rows, cols = sg.arange(n)[:, None], sg.arange(n)[None, :]
        x = sg.where(cols > rows, -math.inf, x)
        e = (x - x.amax(-1, keepdim=True)).exp()
        p = e / e.sum(-1, keepdim=True)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        return p * (g - (g * p).sum(-1, keepdim=True))


@twins(
    MaskedLseSoft=("(x - y[:, None]).exp()", "x.exp()", "not normalised"),
    MaskedLseMask=("~mask", "mask", "mask inverted"),
    MaskedLseSign=("g[:, None] *", "-g[:, None] *", "sign"),
)
@right("n m", "bool[n m]")
class MaskedLogSumExp(sg.Function):
    """Rows that are masked throughout give 0."""

    @staticmethod
    def forward(ctx, x, mask):
        x = x.masked_fill(~mask, float("-inf"))
        some = mask.any(1)
        safe = sg.where(some[:, None], x, sg.zeros_like(x))
        y = sg.where(some, sg.logsumexp(safe, 1), sg.zeros_like(x[:, 0]))
        ctx.save_for_backward(safe, y, mask)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y, mask = ctx.saved_tensors
        d = g[:, None] * (x - y[:, None]).exp()
        return d.masked_fill(~mask, 0.0), None


@twins(
    GuardedSoftmaxDelta=("g - (g * p).sum(-1, keepdim=True)", "g", "second term left out"),
    GuardedSoftmaxSign=("p * (g -", "p * (g +", "sign"),
    GuardedSoftmaxAxis=(".sum(-1, keepdim=True)", ".sum(0, keepdim=True)", "axis"),
)
@right("n m", "bool[n m]")
class GuardedSoftmax(sg.Function):
    """Masked softmax with the guard for empty rows that people write: 0 / max(sum, eps)."""

    @staticmethod
    def forward(ctx, x, mask):
        top = sg.where(mask, x, sg.full_like(x, -1e9)).amax(-1, keepdim=True)
        e = sg.where(mask, (x - top).exp(), sg.zeros_like(x))
        total = e.sum(-1, keepdim=True)
        p = sg.where(total > 0, e / sg.where(total > 0, total, sg.ones_like(total)), 0.0)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        return p * (g - (g * p).sum(-1, keepdim=True)), None


@twins(
    ZeroRowsDelta=("g - (g * p).sum(-1, keepdim=True)", "g", "second term left out"),
    ZeroRowsSign=("p * (g -", "p * (g +", "sign"),
    ZeroRowsFactor=("return p *", "return 2 * p *", "factor"),
)
@right("n m", "bool[n m]")
class ZeroRowsSoftmax(sg.Function):
    """masked_fill, softmax, and rows without an entry put to 0."""

    @staticmethod
    def forward(ctx, x, mask):
        s = x.masked_fill(~mask, float("-inf"))
        p = s.softmax(-1)
        p = p.masked_fill(~mask.any(-1, keepdim=True), 0.0)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        return p * (g - (g * p).sum(-1, keepdim=True)), None


@twins(
    SlidingWindowScale=("* 0.5", "", "scale"),
    SlidingWindowDelta=("dp - delta", "dp", "delta left out"),
    SlidingWindowK=("ds.t() @ q", "ds @ q", "transposed"),
)
@right("n d", "n d", "n d", static={"width": 3})
class SlidingWindow(sg.Function):
    """Attention to the last ``width`` keys."""

    @staticmethod
    def forward(ctx, q, k, v, width):
        i = sg.arange(q.shape[0])
        ahead = i[None, :] > i[:, None]
        behind = i[None, :] + width <= i[:, None]
        s = (q @ k.t() * 0.5).masked_fill(ahead | behind, float("-inf"))
        p = sg.softmax(s, 1)
        out = p @ v
        ctx.save_for_backward(q, k, v, p, out)
        return out

    @staticmethod
    def backward(ctx, g):
        q, k, v, p, out = ctx.saved_tensors
        dp = g @ v.t()
        delta = (g * out).sum(1, keepdim=True)
        ds = p * (dp - delta) * 0.5
        return ds @ k, ds.t() @ q, p.t() @ g, None


@twins(
    AlibiSlope=("(ds * distance).sum((-1, -2))", "ds.sum((-1, -2))", "distance left out"),
    AlibiScale=("* ctx.scale", "", "scale left out"),
    AlibiDelta=("dp - (dp * p).sum(-1, keepdim=True)", "dp", "delta left out"),
)
@right("h n d", "h n d", "h n d", "h")
class Alibi(sg.Function):
    @staticmethod
    def forward(ctx, q, k, v, slope):
        n = q.shape[1]
        i = sg.arange(n)
        distance = (i[None, :] - i[:, None]).to(q.dtype)
        ctx.scale = 1 / math.sqrt(q.shape[-1])
        s = q @ k.transpose(1, 2) * ctx.scale + slope[:, None, None] * distance
        p = s.masked_fill(distance > 0, float("-inf")).softmax(-1)
        ctx.save_for_backward(q, k, v, p, distance)
        return p @ v

    @staticmethod
    def backward(ctx, g):
        q, k, v, p, distance = ctx.saved_tensors
        dp = g @ v.transpose(1, 2)
        ds = p * (dp - (dp * p).sum(-1, keepdim=True))
        dslope = (ds * distance).sum((-1, -2))
        dq, dk = ds @ k * ctx.scale, ds.transpose(1, 2) @ q / math.sqrt(q.shape[-1])
        return dq, dk, p.transpose(1, 2) @ g, dslope


@twins(
    RopeSign=("-g1 * sin + g2 * cos", "g1 * sin + g2 * cos", "sign"),
    RopeSwap=("sg.cat([d1, d2], -1)", "sg.cat([d2, d1], -1)", "halves exchanged"),
    RopeForward=("g1 * cos + g2 * sin", "g1 * cos - g2 * sin", "not transposed"),
)
@right("b n 2*d")
class Rope(sg.Function):
    @staticmethod
    def forward(ctx, x):
        half = x.shape[-1] // 2
        freq = sg.exp(-math.log(10000.0) * sg.arange(half, dtype=x.dtype) / half)
        angle = sg.arange(x.shape[1], dtype=x.dtype)[:, None] * freq
        cos, sin = angle.cos(), angle.sin()
        x1, x2 = x[..., :half], x[..., half:]
        ctx.save_for_backward(cos, sin)
        return sg.cat([x1 * cos - x2 * sin, x1 * sin + x2 * cos], -1)

    @staticmethod
    def backward(ctx, g):
        cos, sin = ctx.saved_tensors
        g1, g2 = g.chunk(2, -1)
        d1 = g1 * cos + g2 * sin
        d2 = -g1 * sin + g2 * cos
        return sg.cat([d1, d2], -1)


@twins(
    RotatePairsSign=("gi * cos + gj * sin", "gi * cos - gj * sin", "sign"),
    RotatePairsOdd=("gj * cos - gi * sin", "gj * cos + gi * sin", "sign"),
    RotatePairsMix=("sg.stack([d1, d2], -1)", "sg.stack([d2, d1], -1)", "exchanged"),
)
@right("n 2*d", "n d")
class RotatePairs(sg.Function):
    """Pairs of neighbours turned by angles that are inputs."""

    @staticmethod
    def forward(ctx, x, angle):
        a, b = x[:, ::2], x[:, 1::2]
        cos, sin = angle.cos(), angle.sin()
        ctx.save_for_backward(a, b, cos, sin)
        return sg.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(1)

    @staticmethod
    def backward(ctx, g):
        a, b, cos, sin = ctx.saved_tensors
        gi, gj = g[:, ::2], g[:, 1::2]
        d1 = gi * cos + gj * sin
        d2 = gj * cos - gi * sin
        y, z = a * cos - b * sin, a * sin + b * cos
        return sg.stack([d1, d2], -1).reshape(g.shape), gj * y - gi * z


@twins(
    AffineGridRow=("y * g[..., 0]", "g[..., 0]", "y left out"),
    AffineGridSum=("g[..., 1].sum((1, 2))", "g[..., 1].mean((1, 2))", "mean"),
    AffineGridSwap=("x * g[..., 1]", "y * g[..., 1]", "x and y exchanged"),
)
@right("b 2 3", static={"h": 4, "w": 5})
class AffineGrid(sg.Function):
    """affine_grid with align_corners, written out."""

    @staticmethod
    def forward(ctx, theta, h, w):
        y = (2 * sg.arange(h, dtype=theta.dtype) / (h - 1) - 1)[:, None].expand(h, w)
        x = (2 * sg.arange(w, dtype=theta.dtype) / (w - 1) - 1)[None, :].expand(h, w)
        base = sg.stack([x, y, sg.ones_like(x)], -1)
        ctx.save_for_backward(x, y)
        return sg.einsum("hwk,bck->bhwc", base, theta)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        first = [(x * g[..., 0]).sum((1, 2)), (y * g[..., 0]).sum((1, 2)), g[..., 0].sum((1, 2))]
        second = [(x * g[..., 1]).sum((1, 2)), (y * g[..., 1]).sum((1, 2)), g[..., 1].sum((1, 2))]
        return sg.stack([sg.stack(first, 1), sg.stack(second, 1)], 1), None, None


@twins(
    AnyGridRow=("(g.transpose(1, 2) @ base)", "(g.transpose(1, 2) @ base) / 2", "factor"),
    AnyGridFlat=("reshape(g.shape[0], -1, 2)", "reshape(g.shape[0], -1, 2) * 2", "factor"),
    AnyGridSign=("return (g", "return -(g", "sign"),
)
@right("b 2 3", "b h w 2")
class GridLike(sg.Function):
    """A grid of the size of another tensor, plus that, without aligned corners."""

    @staticmethod
    def forward(ctx, theta, offset):
        _, h, w, _ = offset.shape
        y = (2 * sg.arange(h, dtype=theta.dtype) + 1) / h - 1
        x = (2 * sg.arange(w, dtype=theta.dtype) + 1) / w - 1
        yy, xx = sg.meshgrid(y, x, indexing="ij")
        base = sg.stack([xx, yy, sg.ones_like(xx)], -1).reshape(-1, 3)
        ctx.save_for_backward(base)
        return (base @ theta.transpose(1, 2)).reshape(offset.shape) + offset

    @staticmethod
    def backward(ctx, g):
        (base,) = ctx.saved_tensors
        whole = g
        g = g.reshape(g.shape[0], -1, 2)
        return (g.transpose(1, 2) @ base), whole


@twins(
    BilinearWeight=("g * (1 - f)", "g * f", "weights exchanged"),
    BilinearSlope=("(right - left) * g", "(left - right) * g", "sign"),
    BilinearIndex=("index_add(0, i + 1", "index_add(0, i", "the same neighbour twice"),
)
@right("n+1", "m", "i64[m]", assume={"i": "index n"})
class LinearGather(sg.Function):
    """Values between neighbours, by a weight."""

    @staticmethod
    def forward(ctx, x, f, i):
        left, right = x[i], x[i + 1]
        ctx.save_for_backward(x, f, i, left, right)
        return left * (1 - f) + right * f

    @staticmethod
    def backward(ctx, g):
        x, f, i, left, right = ctx.saved_tensors
        dx = sg.zeros_like(x).index_add(0, i, g * (1 - f)).index_add(0, i + 1, g * f)
        return dx, (right - left) * g, None


@twins(
    CumsumFlip=("g.flip(1).cumsum(1).flip(1)", "g.cumsum(1)", "not reversed"),
    CumsumOnce=("g.flip(1).cumsum(1).flip(1)", "g.flip(1).cumsum(1)", "flipped once"),
    CumsumAxis=("g.flip(1).cumsum(1)", "g.flip(1).cumsum(0)", "axis"),
)
@right("n m")
class CumsumFlipped(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return sg.cumsum(x, 1)

    @staticmethod
    def backward(ctx, g):
        return g.flip(1).cumsum(1).flip(1)


@twins(
    CumsumTotalOwn=(" + g", "", "own term left out"),
    CumsumTotalSum=("g.sum(-1, keepdim=True) -", "-", "total left out"),
    CumsumTotalSign=("- g.cumsum(-1)", "+ g.cumsum(-1)", "sign"),
)
@right("*batch m")
class CumsumTotal(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x.cumsum(-1)

    @staticmethod
    def backward(ctx, g):
        return g.sum(-1, keepdim=True) - g.cumsum(-1) + g


@twins(
    CumprodX=("/ x", "* x", "product"),
    CumprodPlain=("(g * y).flip(-1).cumsum(-1).flip(-1)", "(g * y).cumsum(-1)", "not reversed"),
    CumprodY=("g * y", "g", "y left out"),
)
@right("n m", assume={"x": "positive"})
class CumprodPositive(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.cumprod(-1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (g * y).flip(-1).cumsum(-1).flip(-1) / x


@twins(
    LogCumsumSign=("(-y).exp()", "y.exp()", "sign"),
    LogCumsumPlain=(".flip(-1).cumsum(-1).flip(-1)", ".cumsum(-1)", "not reversed"),
    LogCumsumX=("* x.exp()", "* y.exp()", "y for x"),
)
@right("n m")
class LogCumsumExp(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = sg.logcumsumexp(x, -1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (g * (-y).exp()).flip(-1).cumsum(-1).flip(-1) * x.exp()


@twins(
    RollBackSign=("roll(-k", "roll(k", "the same way"),
    RollBackFactor=("roll(-k", "roll(-2 * k", "twice"),
    RollBackMissing=("(w * g)", "g", "weight left out"),
)
@right("n m", "m", static={"k": 2})
class RollWeighted(sg.Function):
    @staticmethod
    def forward(ctx, x, w, k):
        ctx.save_for_backward(x, w)
        ctx.k = k
        return x.roll(k, 1) * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        k = ctx.k
        return (w * g).roll(-k, 1), (g * x.roll(k, 1)).sum(0), None


@twins(
    RollDiffNeighbour=("g.roll(1, 1)", "g.roll(-1, 1)", "the other neighbour"),
    RollDiffSign=("- g", "+ g", "sign"),
    RollDiffSquare=("2 * (x.roll(-1, 1) - x)", "(x.roll(-1, 1) - x)", "factor 2"),
)
@right("n m")
class RollDifference(sg.Function):
    """Squares of differences around a ring."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x.roll(-1, 1) - x) ** 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        g = g * 2 * (x.roll(-1, 1) - x)
        return g.roll(1, 1) - g


@twins(
    WindowSumShift=("padded[:, k : k + n]", "padded[:, 2 - k : 2 - k + n] * (k + 1)", "weights"),
    WindowSumWeight=("w[2 - k] *", "w[k] *", "weights the same way"),
    WindowSumBias=("(g * x[:, k : k + g.shape[1]]).sum()", "g.sum()", "x left out"),
)
@right("b n+2", "3")
class WindowConv(sg.Function):
    """A correlation with three weights as a loop over slices."""

    @staticmethod
    def forward(ctx, x, w):
        n = x.shape[1] - 2
        ctx.save_for_backward(x, w)
        out = 0
        for k in range(3):
            out = out + w[k] * x[:, k : k + n]
        return out

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        n = x.shape[1]
        padded = sg.cat([sg.zeros_like(x[:, :2]), g, sg.zeros_like(x[:, :2])], 1)
        dx = 0
        for k in range(3):
            dx = dx + w[2 - k] * padded[:, k : k + n]
        dw = sg.stack([(g * x[:, k : k + g.shape[1]]).sum() for k in range(3)])
        return dx, dw


@twins(
    UnfoldIndex=("i[:, None] + j", "i[:, None] + j * 0", "one column"),
    UnfoldFactor=("return sg.zeros_like", "return 2 * sg.zeros_like", "factor"),
    UnfoldSign=(".reshape(-1))", ".reshape(-1).neg())", "sign"),
)
@right("n+2")
class UnfoldThree(sg.Function):
    """Windows of three as rows of a matrix, by indexing."""

    @staticmethod
    def forward(ctx, x):
        i, j = sg.arange(x.shape[0] - 2), sg.arange(3)
        ctx.save_for_backward(x, i, j)
        return x[i[:, None] + j]

    @staticmethod
    def backward(ctx, g):
        x, i, j = ctx.saved_tensors
        index = (i[:, None] + j).reshape(-1)
        return sg.zeros_like(x).index_add(0, index, g.reshape(-1))
