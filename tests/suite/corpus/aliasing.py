"""Two names for one storage: what writes in place reach, in forward and in backward."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n m", "n m")
class TwoZeros(sg.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        grad_a, grad_b = sg.zeros_like(a), sg.zeros_like(b)
        grad_a += g * b
        grad_b += g * a
        return grad_a, grad_b


@wrong(TwoZeros, bug="one buffer under two names")
class OneZero(TwoZeros):
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        grad_a = grad_b = sg.zeros_like(a)
        grad_a += g * b
        grad_b += g * a
        return grad_a, grad_b


@wrong(TwoZeros, bug="a list of one buffer repeated")
class RepeatedZero(TwoZeros):
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        grads = [sg.zeros_like(a)] * 2
        grads[0] += g * b
        grads[1] += g * a
        return tuple(grads)


@right("n m")
class SavedThenWritten(sg.Function):
    """What is saved and then written is read as written."""

    @staticmethod
    def forward(ctx, x):
        y = x * x
        ctx.save_for_backward(x, y)
        y.exp_()
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return 2 * g * x * y


@wrong(SavedThenWritten, bug="taken for the value at the time of saving")
class SavedBeforeWritten(SavedThenWritten):
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return 2 * g * x * y.exp()


@right("n m")
class ContiguousClone(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin() * 3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        grad = g.contiguous().clone()
        grad *= 3
        return grad * x.cos()


@wrong(ContiguousClone, bug="contiguous() may be the cotangent itself", kind="mutates")
class ContiguousIsNoCopy(ContiguousClone):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        grad = g.contiguous()
        grad *= 3
        return grad * x.cos()


@wrong(ContiguousClone, bug="view of the cotangent written", kind="mutates")
class ViewOfCotangent(ContiguousClone):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        flat = g.view(-1)
        flat.mul_(3)
        return flat.view(x.shape) * x.cos()


@wrong(ContiguousClone, bug="detach() shares the cotangent's storage", kind="mutates")
class DetachedCotangent(ContiguousClone):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g.detach().mul_(3) * x.cos()


@wrong(ContiguousClone, bug="the input that was saved is overwritten", kind="mutates")
class OverwritesInput(ContiguousClone):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x.detach().cos_()


@right("n m+1")
class ChunksWritten(sg.Function):
    """Pieces are views: writes to them are writes to the whole."""

    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        first, rest = y[:, :1], y[:, 1:]
        rest.add_(first)
        first.zero_()
        return y

    @staticmethod
    def backward(ctx, g):
        grad = g.clone()
        grad[:, :1] = g[:, 1:].sum(1, keepdim=True)
        return grad


@wrong(ChunksWritten, bug="the zeroed column keeps its own gradient")
class ChunksOwn(ChunksWritten):
    @staticmethod
    def backward(ctx, g):
        grad = g.clone()
        grad[:, :1] += g[:, 1:].sum(1, keepdim=True)
        return grad


@wrong(ChunksWritten, bug="summed after the column was overwritten")
class ChunksOrder(ChunksWritten):
    @staticmethod
    def backward(ctx, g):
        grad = g.clone()
        grad[:, :1] = 0
        grad[:, :1] = grad[:, :1].sum(1, keepdim=True)
        return grad


@right("n m")
class AliasedSum(sg.Function):
    """A Python alias is not a copy: ``total`` is ``y``."""

    @staticmethod
    def forward(ctx, x):
        y = x * 1
        total = y
        total += x
        total = total * x
        ctx.save_for_backward(x)
        return y + total

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (2 + 4 * x)


@wrong(AliasedSum, bug="the alias taken for a copy")
class AliasForCopy(AliasedSum):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (1 + 4 * x)


@right("n n")
class DiagonalWritten(sg.Function):
    """Writes through the diagonal's view, read back through the transpose."""

    @staticmethod
    def forward(ctx, a):
        y = a.clone()
        turned = y.t()
        y.diagonal().mul_(3)
        return turned * 1

    @staticmethod
    def backward(ctx, g):
        grad = g.t().clone()
        grad.diagonal().mul_(3)
        return grad


@wrong(DiagonalWritten, bug="the view taken for a snapshot")
class DiagonalSnapshot(DiagonalWritten):
    @staticmethod
    def backward(ctx, g):
        return g.t()


@right("n m", "bool[n m]")
class MaskedInPlace(sg.Function):
    """The functional and the in-place form side by side."""

    @staticmethod
    def forward(ctx, x, mask):
        y = x.exp()
        y.masked_fill_(mask, 1.0)
        ctx.save_for_backward(y, mask)
        return y

    @staticmethod
    def backward(ctx, g):
        y, mask = ctx.saved_tensors
        grad = g * y
        grad.masked_fill(mask, 7.0)
        return grad.masked_fill_(mask, 0.0), None


@wrong(MaskedInPlace, bug="result of the functional form thrown away")
class MaskedThrownAway(MaskedInPlace):
    @staticmethod
    def backward(ctx, g):
        y, mask = ctx.saved_tensors
        grad = g * y
        grad.masked_fill(mask, 0.0)
        return grad, None


@wrong(TwoZeros, bug="result of add() thrown away: only the first term is there")
class AddThrownAway(TwoZeros):
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        grad_a = g * b * 0.5
        grad_a.add(g * b * 0.5)
        return grad_a, g * a
