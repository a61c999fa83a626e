"""Moving data: transposes, flips, rolls, joins, pads, slices, shuffles, triangles, scans."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("a b c")
class Permute(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x.permute(2, 0, 1)

    @staticmethod
    def backward(ctx, g):
        return g.permute(1, 2, 0)


@wrong(Permute, bug="the same permutation again, not its inverse", kind="shape")
class PermuteAgain(Permute):
    @staticmethod
    def backward(ctx, g):
        return g.permute(2, 0, 1)


@right("n m", static={"dim": 1})
class Flip(sg.Function):
    @staticmethod
    def forward(ctx, x, dim):
        ctx.dim = dim
        return x.flip(dim)

    @staticmethod
    def backward(ctx, g):
        return g.flip(ctx.dim), None


@wrong(Flip, bug="not flipped back", right_if="m == 1")
class FlipIdentity(Flip):
    @staticmethod
    def backward(ctx, g):
        return g, None


@wrong(Flip, bug="flipped along the other axis")
class FlipAxis(Flip):
    @staticmethod
    def backward(ctx, g):
        return g.flip(0), None


@right("n m")
class Roll(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x.roll(1, 1)

    @staticmethod
    def backward(ctx, g):
        return g.roll(-1, 1)


@wrong(Roll, bug="rolled on, not back: right only for rows of 1 or 2")
class RollOn(Roll):
    @staticmethod
    def backward(ctx, g):
        return g.roll(1, 1)


@right("n a", "n b")
class Concatenate(sg.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.split = x.shape[1]
        return sg.cat((x, y), dim=1)

    @staticmethod
    def backward(ctx, g):
        return g[:, : ctx.split], g[:, ctx.split :]


@wrong(Concatenate, bug="pieces exchanged", kind="shape")
class ConcatenateExchanged(Concatenate):
    @staticmethod
    def backward(ctx, g):
        return g[:, ctx.split :], g[:, : ctx.split]


@wrong(Concatenate, bug="second piece counted from the start")
class ConcatenateStart(Concatenate):
    @staticmethod
    def backward(ctx, g):
        second = g.shape[1] - ctx.split
        return g[:, : ctx.split], g[:, :second]


@wrong(Concatenate, bug="split at the middle: right only for equal parts", kind="shape")
class ConcatenateMiddle(Concatenate):
    @staticmethod
    def backward(ctx, g):
        half = g.shape[1] // 2
        return g[:, :half], g[:, half:]


@right("n m", "n m", "n m")
class Stack(sg.Function):
    @staticmethod
    def forward(ctx, x, y, z):
        return sg.stack([x, 2 * y, z], dim=1)

    @staticmethod
    def backward(ctx, g):
        first, second, third = g.unbind(1)
        return first, 2 * second, third


@wrong(Stack, bug="factor of the second piece forgotten")
class StackFactor(Stack):
    @staticmethod
    def backward(ctx, g):
        first, second, third = g.unbind(1)
        return first, second, third


@wrong(Stack, bug="taken apart along the batch", kind="error")
class StackAxis(Stack):
    @staticmethod
    def backward(ctx, g):
        first, second, third = g.unbind(0)
        return first, 2 * second, third


@right("n m")
class ShiftPad(sg.Function):
    """One step to the right, zero in front: a causal shift."""

    @staticmethod
    def forward(ctx, x):
        return sg.pad(x, (1, 0))[:, :-1]

    @staticmethod
    def backward(ctx, g):
        return sg.pad(g, (0, 1))[:, 1:]


@wrong(ShiftPad, bug="shifted the same way")
class ShiftPadSame(ShiftPad):
    @staticmethod
    def backward(ctx, g):
        return sg.pad(g, (1, 0))[:, :-1]


@wrong(ShiftPad, bug="wraps around at the border")
class ShiftPadWrap(ShiftPad):
    @staticmethod
    def backward(ctx, g):
        return g.roll(-1, 1)


@right("b t+2 c")
class TemporalDifference(sg.Function):
    """x[t + 1] - x[t] over the steps."""

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x[:, 1:] - x[:, :-1]

    @staticmethod
    def backward(ctx, g):
        grad = g.new_zeros(ctx.shape)
        grad[:, 1:] += g
        grad[:, :-1] -= g
        return grad


@wrong(TemporalDifference, bug="second slice assigned, not accumulated")
class DifferenceAssigned(TemporalDifference):
    @staticmethod
    def backward(ctx, g):
        grad = g.new_zeros(ctx.shape)
        grad[:, 1:] = g
        grad[:, :-1] = -g
        return grad


@wrong(TemporalDifference, bug="signs of the two slices exchanged")
class DifferenceSigns(TemporalDifference):
    @staticmethod
    def backward(ctx, g):
        grad = g.new_zeros(ctx.shape)
        grad[:, 1:] -= g
        grad[:, :-1] += g
        return grad


@right("n n")
class LowerTriangle(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return sg.tril(x) * 2

    @staticmethod
    def backward(ctx, g):
        return sg.tril(g) * 2


@wrong(LowerTriangle, bug="upper triangle")
class LowerTriangleUpper(LowerTriangle):
    @staticmethod
    def backward(ctx, g):
        return sg.triu(g) * 2


@wrong(LowerTriangle, bug="diagonal left out")
class LowerTriangleStrict(LowerTriangle):
    @staticmethod
    def backward(ctx, g):
        return sg.tril(g, -1) * 2


@right("n m")
class CumulativeSum(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x.cumsum(1)

    @staticmethod
    def backward(ctx, g):
        return g.flip(1).cumsum(1).flip(1)


@right(CumulativeSum)
class CumulativeSumByTotal(CumulativeSum):
    @staticmethod
    def backward(ctx, g):
        return g.sum(1, keepdim=True) - g.cumsum(1) + g


@wrong(CumulativeSum, bug="summed forwards")
class CumulativeSumForwards(CumulativeSum):
    @staticmethod
    def backward(ctx, g):
        return g.cumsum(1)


@wrong(CumulativeSumByTotal, bug="the step itself left out")
class CumulativeSumExclusive(CumulativeSumByTotal):
    @staticmethod
    def backward(ctx, g):
        return g.sum(1, keepdim=True) - g.cumsum(1)


@right("b c 2*h 2*w")
class SpaceToDepth(sg.Function):
    @staticmethod
    def forward(ctx, x):
        b, c, height, width = x.shape
        blocks = x.view(b, c, height // 2, 2, width // 2, 2)
        return blocks.permute(0, 3, 5, 1, 2, 4).reshape(b, 4 * c, height // 2, width // 2)

    @staticmethod
    def backward(ctx, g):
        b, c4, h, w = g.shape
        blocks = g.reshape(b, 2, 2, c4 // 4, h, w).permute(0, 3, 4, 1, 5, 2)
        return blocks.reshape(b, c4 // 4, 2 * h, 2 * w)


@wrong(SpaceToDepth, bug="the two offsets exchanged")
class SpaceToDepthOffsets(SpaceToDepth):
    @staticmethod
    def backward(ctx, g):
        b, c4, h, w = g.shape
        blocks = g.reshape(b, 2, 2, c4 // 4, h, w).permute(0, 3, 4, 2, 5, 1)
        return blocks.reshape(b, c4 // 4, 2 * h, 2 * w)


@right("b 2*c s")
class ChannelShuffle(sg.Function):
    @staticmethod
    def forward(ctx, x):
        b, c, s = x.shape
        return x.view(b, 2, c // 2, s).transpose(1, 2).reshape(b, c, s)

    @staticmethod
    def backward(ctx, g):
        b, c, s = g.shape
        return g.reshape(b, c // 2, 2, s).transpose(1, 2).reshape(b, c, s)


@wrong(ChannelShuffle, bug="shuffled again: right only for 2 or 4 channels")
class ChannelShuffleAgain(ChannelShuffle):
    @staticmethod
    def backward(ctx, g):
        b, c, s = g.shape
        return g.reshape(b, 2, c // 2, s).transpose(1, 2).reshape(b, c, s)


@right("n m", static={"times": 3})
class RepeatRows(sg.Function):
    @staticmethod
    def forward(ctx, x, times):
        ctx.shape, ctx.times = x.shape, times
        return x.repeat(times, 1)

    @staticmethod
    def backward(ctx, g):
        n, m = ctx.shape
        return g.view(ctx.times, n, m).sum(0), None


@wrong(RepeatRows, bug="copies taken to be adjacent", right_if="n == 1")
class RepeatRowsAdjacent(RepeatRows):
    @staticmethod
    def backward(ctx, g):
        n, m = ctx.shape
        return g.view(n, ctx.times, m).sum(1), None


@right("n c h w")
class UpsampleNearest(sg.Function):
    @staticmethod
    def forward(ctx, x):
        n, c, h, w = x.shape
        return x[:, :, :, None, :, None].expand(n, c, h, 2, w, 2).reshape(n, c, 2 * h, 2 * w)

    @staticmethod
    def backward(ctx, g):
        n, c, h, w = g.shape
        return g.reshape(n, c, h // 2, 2, w // 2, 2).sum(dim=(3, 5))


@wrong(UpsampleNearest, bug="averaged over the copies")
class UpsampleMean(UpsampleNearest):
    @staticmethod
    def backward(ctx, g):
        n, c, h, w = g.shape
        return g.reshape(n, c, h // 2, 2, w // 2, 2).mean(dim=(3, 5))


@wrong(UpsampleNearest, bug="one of the copies")
class UpsampleStride(UpsampleNearest):
    @staticmethod
    def backward(ctx, g):
        return 4 * g[:, :, ::2, ::2]
