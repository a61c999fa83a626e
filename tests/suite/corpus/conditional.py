"""Right under a condition: sizes, symmetry, uniqueness, value sets, signs.

``right(..., needed=True)``: right with the declared assumption, wrong without it.
``wrong(..., right_if=...)``: wrong as it stands; the condition on the sizes is to be found.
"""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n", "n n", assume={"a": "symmetric"}, needed=True)
class SymmetricQuadratic(sg.Function):
    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        return (x[None, :] @ a @ x[:, None]).sum()

    @staticmethod
    def backward(ctx, g):
        x, a = ctx.saved_tensors
        return 2 * g * (a @ x), g * x[:, None] * x[None, :]


@wrong(SymmetricQuadratic, bug="the 2 forgotten, symmetric or not")
class SymmetricQuadraticTwo(SymmetricQuadratic):
    @staticmethod
    def backward(ctx, g):
        x, a = ctx.saved_tensors
        return g * (a @ x), g * x[:, None] * x[None, :]


@right("n m", "m m", assume={"metric": "symmetric"}, needed=True)
class SymmetricProduct(sg.Function):
    """x·S with a symmetric S; its transpose left out in backward."""

    @staticmethod
    def forward(ctx, x, metric):
        ctx.save_for_backward(x, metric)
        return x @ metric

    @staticmethod
    def backward(ctx, g):
        x, metric = ctx.saved_tensors
        return g @ metric, x.t() @ g


@right("v d", "i64[n]", assume={"index": "unique index v"}, needed=True)
class UniqueRows(sg.Function):
    """Assignment in place of accumulation: right for indices that do not repeat."""

    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(index)
        ctx.shape = x.shape
        return x[index]

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        grad = sg.zeros(ctx.shape, dtype=g.dtype)
        grad[index] = g
        return grad, None


@right("n k", "i64[k]", assume={"order": "unique index k"}, needed=True)
class PermuteColumns(sg.Function):
    """Columns in another order; the inverse by assignment."""

    @staticmethod
    def forward(ctx, x, order):
        ctx.save_for_backward(order)
        return x[:, order]

    @staticmethod
    def backward(ctx, g):
        (order,) = ctx.saved_tensors
        grad = sg.zeros_like(g)
        grad[:, order] = g
        return grad, None


@wrong(PermuteColumns, bug="permuted once more: right only for its own inverses")
class PermuteColumnsAgain(PermuteColumns):
    @staticmethod
    def backward(ctx, g):
        (order,) = ctx.saved_tensors
        return g[:, order], None


@right("n", "n", assume={"gate": "{0, 1}", "x": "positive"}, needed=True)
class GatedSquare(sg.Function):
    """gate² is gate for gates that are 0 or 1; gate's own gradient is exact."""

    @staticmethod
    def forward(ctx, x, gate):
        ctx.save_for_backward(x, gate)
        return gate * gate * x

    @staticmethod
    def backward(ctx, g):
        x, gate = ctx.saved_tensors
        return g * gate, 2 * g * gate * x


@right("n m", assume={"x": "positive"}, needed=True)
class RootOfSquare(sg.Function):
    """sqrt(x²) is x for positive x only."""

    @staticmethod
    def forward(ctx, x):
        return sg.sqrt(x * x)

    @staticmethod
    def backward(ctx, g):
        return g


@right("n", static={"limit": 1.0}, assume={"x": "(-1, 1)"}, needed=True)
class InactiveClamp(sg.Function):
    @staticmethod
    def forward(ctx, x, limit):
        ctx.save_for_backward(x)
        return x.clamp(-limit, limit) ** 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x, None


@right("n c", "n c", assume={"target": "one-hot"}, needed=True)
class SoftCrossEntropy(sg.Function):
    """softmax - target: needs targets whose rows sum to one."""

    @staticmethod
    def forward(ctx, logits, target):
        log_p = logits.log_softmax(1)
        ctx.save_for_backward(log_p, target)
        return -(target * log_p).sum(1)

    @staticmethod
    def backward(ctx, g):
        log_p, target = ctx.saved_tensors
        return g[:, None] * (log_p.exp() - target), -g[:, None] * log_p


@wrong(SoftCrossEntropy, bug="sign, one-hot or not")
class SoftCrossEntropySign(SoftCrossEntropy):
    @staticmethod
    def backward(ctx, g):
        log_p, target = ctx.saved_tensors
        return g[:, None] * (target - log_p.exp()), -g[:, None] * log_p


@wrong("n k", bug="squeeze() also drops other axes of size 1", kind="error", right_if="n != 1")
class SqueezeAfterSum(sg.Function):
    """The gradient's rows are spread with an axis that squeeze may have removed."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sum(1, keepdim=True)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        row = g.squeeze()
        return row[:, None] * sg.ones_like(x)


@wrong("n m", "m", bug="squeeze() before the product over rows", right_if="n != 1 and m != 1")
class SqueezeRowSum(sg.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (x * w).sum(1)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        picked = x.squeeze()
        rows = picked if picked.dim() == 2 else x * 0
        return g[:, None] * w, (g[:, None] * rows).sum(0)


@wrong("n m", bug="row*n + col for row*m + col", right_if="n == m or n == 1")
class LinearIndexSquare(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.flatten()

    @staticmethod
    def backward(ctx, g):
        n, m = ctx.shape
        rows = sg.arange(n)[:, None]
        columns = sg.arange(m)[None, :]
        return g[(rows * n + columns) % (n * m)]


@wrong("n m", bug="averaged over the rows' number, summed over columns", right_if="n == m")
class MeanOfOtherAxis(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.mean(0)

    @staticmethod
    def backward(ctx, g):
        n, m = ctx.shape
        return g.expand(n, m) / m


@wrong("n m", bug="centred values' sum of squares over m, not m - 1", right_if="m == 2 or m == 1")
class PairVariance(sg.Function):
    """Half the squared range of a row equals its variance only for rows of two."""

    @staticmethod
    def forward(ctx, x):
        centred = x - x.mean(1, keepdim=True)
        ctx.save_for_backward(x, centred)
        return (centred**2).sum(1)

    @staticmethod
    def backward(ctx, g):
        x, centred = ctx.saved_tensors
        return g[:, None] * (4 * centred - (x - x.flip(1)))


@wrong("n m", bug="the mean's own term left out", right_if="m == 1")
class CentredSquares(sg.Function):
    @staticmethod
    def forward(ctx, x):
        centred = x - x.mean(1, keepdim=True)
        ctx.save_for_backward(x)
        return (centred * x * x).sum(1)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        centred = x - x.mean(1, keepdim=True)
        return g[:, None] * (2 * centred * x + x * x - (x * x).sum(1, keepdim=True))


@wrong("n n", bug="right only for symmetric cotangents")
class SymmetricPart(sg.Function):
    @staticmethod
    def forward(ctx, a):
        return a + 2 * a.t()

    @staticmethod
    def backward(ctx, g):
        return 3 * g


@wrong("n m", bug="right only for a uniform cotangent")
class UniformCotangent(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / x.sum(1, keepdim=True).exp()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        total = x.sum(1, keepdim=True)
        return g * (1 - total) / total.exp()


@wrong("n", bug="right only where a < b", static={"shift": 0.3})
class OneRegion(sg.Function):
    @staticmethod
    def forward(ctx, x, shift):
        ctx.save_for_backward(x)
        ctx.shift = shift
        return sg.minimum(x * x, x + shift)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x, None


@wrong("n", bug="right except beyond 2.5")
class FarRegion(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(max=2.5)

    @staticmethod
    def backward(ctx, g):
        return g


@wrong("n m", bug="hard-coded width 4")
class HardCodedWidth(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.mean(1)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g[:, None].expand_as(x) / 4
