"""Sliding windows: convolutions by slices and loops, correlations, shifts, interpolation."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("b c t+2", "o c 3")
class Convolution1d(sg.Function):
    """Three taps, valid, summed over the channels."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        t = x.shape[2] - 2
        y = 0
        for k in range(3):
            y = y + sg.einsum("bct,oc->bot", x[:, :, k : k + t], w[:, :, k])
        return y

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        t = g.shape[2]
        grad_x, grad_w = sg.zeros_like(x), sg.zeros_like(w)
        for k in range(3):
            grad_x[:, :, k : k + t] += sg.einsum("bot,oc->bct", g, w[:, :, k])
            grad_w[:, :, k] = sg.einsum("bot,bct->oc", g, x[:, :, k : k + t])
        return grad_x, grad_w


@wrong(Convolution1d, bug="taps reversed in the input's gradient")
class Convolution1dReversed(Convolution1d):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        t = g.shape[2]
        grad_x, grad_w = sg.zeros_like(x), sg.zeros_like(w)
        for k in range(3):
            grad_x[:, :, k : k + t] += sg.einsum("bot,oc->bct", g, w[:, :, 2 - k])
            grad_w[:, :, k] = sg.einsum("bot,bct->oc", g, x[:, :, k : k + t])
        return grad_x, grad_w


@wrong(Convolution1d, bug="windows assigned, not accumulated")
class Convolution1dAssigned(Convolution1d):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        t = g.shape[2]
        grad_x, grad_w = sg.zeros_like(x), sg.zeros_like(w)
        for k in range(3):
            grad_x[:, :, k : k + t] = sg.einsum("bot,oc->bct", g, w[:, :, k])
            grad_w[:, :, k] = sg.einsum("bot,bct->oc", g, x[:, :, k : k + t])
        return grad_x, grad_w


@wrong(Convolution1d, bug="one tap too few in backward's loop")
class Convolution1dTaps(Convolution1d):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        t = g.shape[2]
        grad_x, grad_w = sg.zeros_like(x), sg.zeros_like(w)
        for k in range(2):
            grad_x[:, :, k : k + t] += sg.einsum("bot,oc->bct", g, w[:, :, k])
            grad_w[:, :, k] = sg.einsum("bot,bct->oc", g, x[:, :, k : k + t])
        return grad_x, grad_w


@right("b t d", "4 d")
class CausalConvolution(sg.Function):
    """Depthwise over the past four steps, padded in front, as in state-space blocks."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        t = x.shape[1]
        padded = sg.pad(x, (0, 0, 3, 0))
        return sum(w[k] * padded[:, k : k + t] for k in range(4))

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        t = x.shape[1]
        padded = sg.pad(x, (0, 0, 3, 0))
        behind = sg.pad(g, (0, 0, 0, 3))
        grad_x = sum(w[k] * behind[:, 3 - k : 3 - k + t] for k in range(4))
        grad_w = sg.stack([(g * padded[:, k : k + t]).sum((0, 1)) for k in range(4)])
        return grad_x, grad_w


@wrong(CausalConvolution, bug="gradient padded in front: it leaks into the past's past")
class CausalConvolutionPadding(CausalConvolution):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        t = x.shape[1]
        padded = sg.pad(x, (0, 0, 3, 0))
        front = sg.pad(g, (0, 0, 3, 0))
        grad_x = sum(w[k] * front[:, k : k + t] for k in range(4))
        grad_w = sg.stack([(g * padded[:, k : k + t]).sum((0, 1)) for k in range(4)])
        return grad_x, grad_w


@wrong(CausalConvolution, bug="taps in the wrong order for the weights")
class CausalConvolutionTaps(CausalConvolution):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        t = x.shape[1]
        padded = sg.pad(x, (0, 0, 3, 0))
        behind = sg.pad(g, (0, 0, 0, 3))
        grad_x = sum(w[k] * behind[:, 3 - k : 3 - k + t] for k in range(4))
        grad_w = sg.stack([(g * padded[:, 3 - k : 3 - k + t]).sum((0, 1)) for k in range(4)])
        return grad_x, grad_w


@right("c h+2 w+2", "3 3")
class BlurValid(sg.Function):
    """One 3×3 kernel for all channels."""

    @staticmethod
    def forward(ctx, x, kernel):
        ctx.save_for_backward(x, kernel)
        h, w = x.shape[1] - 2, x.shape[2] - 2
        y = sg.zeros(x.shape[0], h, w, dtype=x.dtype)
        for i in range(3):
            for j in range(3):
                y += kernel[i, j] * x[:, i : i + h, j : j + w]
        return y

    @staticmethod
    def backward(ctx, g):
        x, kernel = ctx.saved_tensors
        _, h, w = g.shape
        grad_x, grad_kernel = sg.zeros_like(x), sg.zeros_like(kernel)
        for i in range(3):
            for j in range(3):
                grad_x[:, i : i + h, j : j + w] += kernel[i, j] * g
                grad_kernel[i, j] = (g * x[:, i : i + h, j : j + w]).sum()
        return grad_x, grad_kernel


@wrong(BlurValid, bug="kernel transposed: right only for symmetric kernels")
class BlurTransposed(BlurValid):
    @staticmethod
    def backward(ctx, g):
        x, kernel = ctx.saved_tensors
        _, h, w = g.shape
        grad_x, grad_kernel = sg.zeros_like(x), sg.zeros_like(kernel)
        for i in range(3):
            for j in range(3):
                grad_x[:, i : i + h, j : j + w] += kernel[j, i] * g
                grad_kernel[i, j] = (g * x[:, i : i + h, j : j + w]).sum()
        return grad_x, grad_kernel


@right("b c h w+2", "b c h w+2")
class Correlation(sg.Function):
    """A cost volume over three horizontal displacements, as in optical flow."""

    @staticmethod
    def forward(ctx, first, second):
        ctx.save_for_backward(first, second)
        w = first.shape[3] - 2
        centre = first[..., 1 : 1 + w]
        costs = [(centre * second[..., d : d + w]).mean(1) for d in range(3)]
        return sg.stack(costs, dim=1)

    @staticmethod
    def backward(ctx, g):
        first, second = ctx.saved_tensors
        c, w = first.shape[1], first.shape[3] - 2
        grad_first, grad_second = sg.zeros_like(first), sg.zeros_like(second)
        for d in range(3):
            here = g[:, d].unsqueeze(1) / c
            grad_first[..., 1 : 1 + w] += here * second[..., d : d + w]
            grad_second[..., d : d + w] += here * first[..., 1 : 1 + w]
        return grad_first, grad_second


@wrong(Correlation, bug="the mean's divisor forgotten for the second image", right_if="c == 1")
class CorrelationMean(Correlation):
    @staticmethod
    def backward(ctx, g):
        first, second = ctx.saved_tensors
        c, w = first.shape[1], first.shape[3] - 2
        grad_first, grad_second = sg.zeros_like(first), sg.zeros_like(second)
        for d in range(3):
            here = g[:, d].unsqueeze(1)
            grad_first[..., 1 : 1 + w] += here / c * second[..., d : d + w]
            grad_second[..., d : d + w] += here * first[..., 1 : 1 + w]
        return grad_first, grad_second


@wrong(Correlation, bug="displacement not applied to the second image's gradient")
class CorrelationShift(Correlation):
    @staticmethod
    def backward(ctx, g):
        first, second = ctx.saved_tensors
        c, w = first.shape[1], first.shape[3] - 2
        grad_first, grad_second = sg.zeros_like(first), sg.zeros_like(second)
        for d in range(3):
            here = g[:, d].unsqueeze(1) / c
            grad_first[..., 1 : 1 + w] += here * second[..., d : d + w]
            grad_second[..., 1 : 1 + w] += here * first[..., 1 : 1 + w]
        return grad_first, grad_second


@right("b 3 c s")
class TemporalShift(sg.Function):
    """The first channel comes from the frame after, the rest stay."""

    @staticmethod
    def forward(ctx, x):
        out = sg.zeros_like(x)
        out[:, :-1, :1] = x[:, 1:, :1]
        out[:, :, 1:] = x[:, :, 1:]
        return out

    @staticmethod
    def backward(ctx, g):
        grad = sg.zeros_like(g)
        grad[:, 1:, :1] = g[:, :-1, :1]
        grad[:, :, 1:] = g[:, :, 1:]
        return grad


@wrong(TemporalShift, bug="shifted forwards again")
class TemporalShiftSame(TemporalShift):
    @staticmethod
    def backward(ctx, g):
        grad = sg.zeros_like(g)
        grad[:, :-1, :1] = g[:, 1:, :1]
        grad[:, :, 1:] = g[:, :, 1:]
        return grad


@wrong(TemporalShift, bug="the border frame keeps its gradient")
class TemporalShiftBorder(TemporalShift):
    @staticmethod
    def backward(ctx, g):
        grad = g.clone()
        grad[:, 1:, :1] = g[:, :-1, :1]
        return grad


@right("5 c", "n", assume={"position": "(0, 4)"})
class SampleLine(sg.Function):
    """Linear interpolation in a table of five rows at real positions."""

    @staticmethod
    def forward(ctx, table, position):
        low = position.floor()
        index = low.long()
        t = (position - low).unsqueeze(1)
        ctx.save_for_backward(table, index, t)
        return (1 - t) * table[index] + t * table[index + 1]

    @staticmethod
    def backward(ctx, g):
        table, index, t = ctx.saved_tensors
        grad_table = sg.zeros_like(table)
        grad_table = grad_table.index_add(0, index, (1 - t) * g)
        grad_table = grad_table.index_add(0, index + 1, t * g)
        return grad_table, (g * (table[index + 1] - table[index])).sum(1)


@wrong(SampleLine, bug="both neighbours written to the lower row")
class SampleLineRow(SampleLine):
    @staticmethod
    def backward(ctx, g):
        table, index, t = ctx.saved_tensors
        grad_table = sg.zeros_like(table).index_add(0, index, (1 - t) * g)
        grad_table = grad_table.index_add(0, index, t * g)
        return grad_table, (g * (table[index + 1] - table[index])).sum(1)


@wrong(SampleLine, bug="sign of the position's gradient")
class SampleLineSign(SampleLine):
    @staticmethod
    def backward(ctx, g):
        table, index, t = ctx.saved_tensors
        grad_table = sg.zeros_like(table).index_add(0, index, (1 - t) * g)
        grad_table = grad_table.index_add(0, index + 1, t * g)
        return grad_table, (g * (table[index] - table[index + 1])).sum(1)
