"""Inverses, solves, determinants, factorisations; sorting and running products."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n n")
class Inverse(sg.Function):
    @staticmethod
    def forward(ctx, a):
        y = sg.inverse(a)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return -(y.t() @ g @ y.t())


@wrong(Inverse, bug="not transposed")
class InverseTransposed(Inverse):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return -(y @ g @ y)


@wrong(Inverse, bug="sign")
class InverseSign(Inverse):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y.t() @ g @ y.t()


@right("n n", "n k")
class SolveByInverse(sg.Function):
    """A⁻¹B with the inverse saved."""

    @staticmethod
    def forward(ctx, a, b):
        inverse = sg.inverse(a)
        x = inverse @ b
        ctx.save_for_backward(inverse, x)
        return x

    @staticmethod
    def backward(ctx, g):
        inverse, x = ctx.saved_tensors
        grad_b = inverse.T @ g
        return -grad_b @ x.T, grad_b


@wrong(SolveByInverse, bug="matrix factors in the wrong order", kind="shape")
class SolveOrder(SolveByInverse):
    @staticmethod
    def backward(ctx, g):
        inverse, x = ctx.saved_tensors
        grad_b = inverse.T @ g
        return -x.T @ grad_b, grad_b


@wrong(SolveByInverse, bug="inverse not transposed")
class SolveTransposed(SolveByInverse):
    @staticmethod
    def backward(ctx, g):
        inverse, x = ctx.saved_tensors
        grad_b = inverse @ g
        return -grad_b @ x.T, grad_b


@right("n m")
class SortRows(sg.Function):
    @staticmethod
    def forward(ctx, x):
        values, order = sg.sort(x, dim=1)
        ctx.save_for_backward(order)
        return values

    @staticmethod
    def backward(ctx, g):
        (order,) = ctx.saved_tensors
        return sg.zeros_like(g).scatter(1, order, g)


@wrong(SortRows, bug="gathered by the order: the permutation for its inverse")
class SortRowsGather(SortRows):
    @staticmethod
    def backward(ctx, g):
        (order,) = ctx.saved_tensors
        return g.gather(1, order)


@right("n m+2")
class TopTwo(sg.Function):
    @staticmethod
    def forward(ctx, x):
        values, where = x.topk(2, dim=1)
        ctx.save_for_backward(where)
        ctx.shape = x.shape
        return values

    @staticmethod
    def backward(ctx, g):
        (where,) = ctx.saved_tensors
        return sg.zeros(ctx.shape, dtype=g.dtype).scatter_(1, where, g)


@wrong(TopTwo, bug="written to the first two columns")
class TopTwoFirst(TopTwo):
    @staticmethod
    def backward(ctx, g):
        grad = sg.zeros(ctx.shape, dtype=g.dtype)
        grad[:, :2] = g
        return grad


@right("n m", assume={"x": "positive"})
class CumulativeProduct(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.cumprod(1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (g * y).flip(1).cumsum(1).flip(1) / x


@wrong(CumulativeProduct, bug="not summed over the later products")
class CumulativeProductOwn(CumulativeProduct):
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y / x


@right("n n")
class TriangularFactor(sg.Function):
    """L·Lᵀ of the lower triangle."""

    @staticmethod
    def forward(ctx, a):
        low = a.tril()
        ctx.save_for_backward(low)
        return low @ low.T

    @staticmethod
    def backward(ctx, g):
        (low,) = ctx.saved_tensors
        return ((g + g.T) @ low).tril()


@wrong(TriangularFactor, bug="not cut to the triangle")
class TriangularFactorFull(TriangularFactor):
    @staticmethod
    def backward(ctx, g):
        (low,) = ctx.saved_tensors
        return (g + g.T) @ low


@wrong(TriangularFactor, bug="2g for g + gᵀ")
class TriangularFactorTwice(TriangularFactor):
    @staticmethod
    def backward(ctx, g):
        (low,) = ctx.saved_tensors
        return (2 * g @ low).tril()


@right("n 2 2")
class SmallDeterminant(sg.Function):
    """Of 2×2 blocks, written out."""

    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a[:, 0, 0] * a[:, 1, 1] - a[:, 0, 1] * a[:, 1, 0]

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        grad = sg.zeros_like(a)
        grad[:, 0, 0] = g * a[:, 1, 1]
        grad[:, 1, 1] = g * a[:, 0, 0]
        grad[:, 0, 1] = -g * a[:, 1, 0]
        grad[:, 1, 0] = -g * a[:, 0, 1]
        return grad


@wrong(SmallDeterminant, bug="adjugate transposed")
class SmallDeterminantTransposed(SmallDeterminant):
    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        grad = sg.zeros_like(a)
        grad[:, 0, 0] = g * a[:, 1, 1]
        grad[:, 1, 1] = g * a[:, 0, 0]
        grad[:, 0, 1] = -g * a[:, 0, 1]
        grad[:, 1, 0] = -g * a[:, 1, 0]
        return grad


@right("b n n", "b n m")
class BatchedMatrixVectorTrace(sg.Function):
    """tr(Xᵀ A X) a sample."""

    @staticmethod
    def forward(ctx, a, x):
        ctx.save_for_backward(a, x)
        return (x * sg.bmm(a, x)).sum((1, 2))

    @staticmethod
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        scale = g[:, None, None]
        return scale * x @ x.mT, scale * sg.bmm(a + a.mT, x)


@wrong(BatchedMatrixVectorTrace, bug="A + A for A + Aᵀ")
class BatchedTraceSymmetric(BatchedMatrixVectorTrace):
    @staticmethod
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        scale = g[:, None, None]
        return scale * x @ x.mT, scale * sg.bmm(a + a, x)
