"""Written in place: augmented assignment, mul_, masked assignment, views, and stale tensors."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n m", "m")
class AddMulInPlace(sg.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        y = x.clone()
        y.mul_(w)
        y += 1
        y *= 3
        return y

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        grad = grad_output.clone()
        grad *= 3
        grad_w = (grad * x).sum(0)
        grad.mul_(w)
        return grad, grad_w


@wrong(AddMulInPlace, bug="weight's gradient read after the buffer was overwritten")
class AddMulStale(AddMulInPlace):
    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        grad = grad_output.clone()
        grad *= 3
        grad.mul_(w)
        return grad, (grad * x).sum(0)


@wrong(AddMulInPlace, bug="writes into the cotangent", kind="mutates")
class AddMulCotangent(AddMulInPlace):
    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        grad = grad_output
        grad *= 3
        grad_w = (grad * x).sum(0)
        return grad * w, grad_w


@wrong(AddMulInPlace, bug="the factor 3 applied to one gradient only")
class AddMulFactor(AddMulInPlace):
    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        grad = grad_output.clone()
        grad_w = (grad * x).sum(0)
        grad.mul_(3 * w)
        return grad, grad_w


@right("n m")
class SquareThenExp(sg.Function):
    """The intermediate is saved before the buffer is reused."""

    @staticmethod
    def forward(ctx, x):
        y = x * x
        ctx.save_for_backward(x, y.exp())
        y.exp_()
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return 2 * g * x * y


@wrong("n m", bug="attribute of ctx overwritten after it was saved")
class StaleAttribute(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.doubled = y
        y.mul_(y)
        return y.clone()

    @staticmethod
    def backward(ctx, g):
        return g * 4 * ctx.doubled / 2


@wrong("n m", bug="the saved tensor is scaled at every call of backward", kind="reentrant")
class ScalesWhatWasSaved(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.kept = x * 1.0
        return x * x

    @staticmethod
    def backward(ctx, g):
        ctx.kept *= 2
        return g * ctx.kept


@wrong("n m", bug="an attribute accumulates over calls", kind="reentrant")
class Accumulates(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.total = x * 0
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        ctx.total += 2 * g * x
        return ctx.total.clone()


@right("n m", static={"low": 0.2})
class ThresholdMasked(sg.Function):
    @staticmethod
    def forward(ctx, x, low):
        y = x.clone()
        below = x < low
        y[below] = 0.1 * x[below]
        ctx.below = below
        return y

    @staticmethod
    def backward(ctx, g):
        grad = g.clone()
        grad[ctx.below] *= 0.1
        return grad, None


@wrong(ThresholdMasked, bug="masked elements set to the slope, not scaled by it")
class ThresholdSet(ThresholdMasked):
    @staticmethod
    def backward(ctx, g):
        grad = g.clone()
        grad[ctx.below] = 0.1
        return grad, None


@wrong(ThresholdMasked, bug="mask taken of the gradient")
class ThresholdGradient(ThresholdMasked):
    @staticmethod
    def backward(ctx, g):
        grad = g.clone()
        grad[g < 0] *= 0.1
        return grad, None


@right("n m+2")
class WriteThroughSlice(sg.Function):
    """The first column doubled and the last negated through views."""

    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        first = y[:, 0]
        first.mul_(2)
        y[:, -1].neg_()
        return y

    @staticmethod
    def backward(ctx, g):
        grad = g.clone()
        grad[:, 0] *= 2
        grad[:, -1] = -grad[:, -1]
        return grad


@wrong(WriteThroughSlice, bug="last column zeroed, not negated")
class WriteThroughZero(WriteThroughSlice):
    @staticmethod
    def backward(ctx, g):
        grad = g.clone()
        grad[:, 0] *= 2
        grad[:, -1].zero_()
        return grad


@wrong(WriteThroughSlice, bug="rows for columns")
class WriteThroughRows(WriteThroughSlice):
    @staticmethod
    def backward(ctx, g):
        grad = g.clone()
        grad[0] *= 2
        grad[-1] = -grad[-1]
        return grad


@right("n m", "n m")
class TransposedView(sg.Function):
    """Writes through a transposed view reach the base."""

    @staticmethod
    def forward(ctx, x, y):
        out = x.clone()
        out.t().add_(y.t(), alpha=2)
        return out

    @staticmethod
    def backward(ctx, g):
        return g, g + g


@wrong(TransposedView, bug="alpha forgotten")
class TransposedViewAlpha(TransposedView):
    @staticmethod
    def backward(ctx, g):
        return g, g


@right("n m", "n m", "n m")
class AddCMul(sg.Function):
    @staticmethod
    def forward(ctx, x, a, b):
        ctx.save_for_backward(a, b)
        return x.clone().addcmul_(a, b, value=0.5)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        half = g.mul(0.5)
        return g, half * b, half.mul_(a)


@wrong(AddCMul, bug="buffer reused before its second reader")
class AddCMulReused(AddCMul):
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        half = g.mul(0.5)
        grad_b = half.mul_(a)
        return g, half * b, grad_b


@right("n m", static={"steps": 3})
class EulerSteps(sg.Function):
    """x ← x - x²/10, a few times in one buffer; each state kept for backward."""

    @staticmethod
    def forward(ctx, x, steps):
        states = []
        y = x.clone()
        for _ in range(steps):
            states.append(y.clone())
            y -= 0.1 * y * y
        ctx.save_for_backward(*states)
        return y

    @staticmethod
    def backward(ctx, g):
        grad = g.clone()
        for state in reversed(ctx.saved_tensors):
            grad *= 1 - 0.2 * state
        return grad, None


@wrong(EulerSteps, bug="the buffer itself kept, not its copies")
class EulerStale(EulerSteps):
    @staticmethod
    def forward(ctx, x, steps):
        ctx.states = []
        y = x.clone()
        for _ in range(steps):
            ctx.states.append(y)
            y -= 0.1 * y * y
        return y.clone()

    @staticmethod
    def backward(ctx, g):
        grad = g.clone()
        for state in reversed(ctx.states):
            grad *= 1 - 0.2 * state
        return grad, None


@wrong(EulerSteps, bug="0.1 for 0.2: the 2 of the square")
class EulerFactor(EulerSteps):
    @staticmethod
    def backward(ctx, g):
        grad = g.clone()
        for state in reversed(ctx.saved_tensors):
            grad *= 1 - 0.1 * state
        return grad, None


@right("n m")
class ExpInPlace(sg.Function):
    """The input itself is overwritten and marked dirty."""

    @staticmethod
    def forward(ctx, x):
        x.exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


@wrong(ExpInPlace, bug="the overwritten input read as if it were the input")
class ExpInPlaceInput(ExpInPlace):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.exp()


@right("b n n")
class ZeroDiagonal(sg.Function):
    """The diagonal set to zero through a view of the clone."""

    @staticmethod
    def forward(ctx, a):
        out = a.clone()
        out.diagonal(dim1=1, dim2=2).zero_()
        return out

    @staticmethod
    def backward(ctx, g):
        n = g.shape[1]
        return g.masked_fill(sg.eye(n) > 0, 0)


@wrong(ZeroDiagonal, bug="only the diagonal kept")
class ZeroDiagonalInverted(ZeroDiagonal):
    @staticmethod
    def backward(ctx, g):
        n = g.shape[1]
        return g.masked_fill(sg.eye(n) == 0, 0)
