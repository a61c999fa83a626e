"""What is made of Cholesky factors and triangular solves: log-determinants, quadratic forms."""

import symgrad as sg
from tests.suite.marks import right, wrong


def gram(a):
    return a @ a.mT + sg.eye(a.shape[0], dtype=a.dtype)


@right("n n")
class CholeskySum(sg.Function):
    @staticmethod
    def forward(ctx, a):
        low = sg.linalg.cholesky(gram(a))
        ctx.save_for_backward(a, low)
        return low.sum()

    @staticmethod
    def backward(ctx, g):
        a, low = ctx.saved_tensors
        inner = (low.mT @ (g * sg.ones_like(low)).tril()).tril()
        inner = inner - 0.5 * sg.diag_embed(inner.diagonal())
        inverse = sg.linalg.inv(low)
        s = inverse.mT @ inner @ inverse
        return (s + s.mT) @ a


@wrong(CholeskySum, bug="the upper half taken")
class CholeskySumUpper(CholeskySum):
    @staticmethod
    def backward(ctx, g):
        a, low = ctx.saved_tensors
        inner = (low.mT @ (g * sg.ones_like(low)).tril()).triu()
        inner = inner - 0.5 * sg.diag_embed(inner.diagonal())
        inverse = sg.linalg.inv(low)
        s = inverse.mT @ inner @ inverse
        return (s + s.mT) @ a


@wrong(CholeskySum, bug="no half is taken")
class CholeskySumWhole(CholeskySum):
    @staticmethod
    def backward(ctx, g):
        a, low = ctx.saved_tensors
        inner = low.mT @ (g * sg.ones_like(low)).tril()
        inverse = sg.linalg.inv(low)
        s = inverse.mT @ inner @ inverse
        return (s + s.mT) @ a


@wrong(CholeskySum, bug="the cotangent's upper half kept", right_if="n == 1")
class CholeskySumCotangent(CholeskySum):
    @staticmethod
    def backward(ctx, g):
        a, low = ctx.saved_tensors
        inner = (low @ (g * sg.ones_like(low))).tril()
        inner = inner - 0.5 * sg.diag_embed(inner.diagonal())
        inverse = sg.linalg.inv(low)
        s = inverse.mT @ inner @ inverse
        return (s + s.mT) @ a


@right("n n")
class LogDeterminantOfFactor(sg.Function):
    """2 Σ log L[i, i], whose gradient is that of the log-determinant."""

    @staticmethod
    def forward(ctx, a):
        matrix = gram(a)
        ctx.save_for_backward(a, matrix)
        return 2 * sg.linalg.cholesky(matrix).diagonal().log().sum()

    @staticmethod
    def backward(ctx, g):
        a, matrix = ctx.saved_tensors
        return 2 * g * sg.linalg.inv(matrix) @ a


@right(LogDeterminantOfFactor)
class LogDeterminantByFactor(LogDeterminantOfFactor):
    @staticmethod
    def backward(ctx, g):
        a, matrix = ctx.saved_tensors
        half = sg.linalg.inv(sg.linalg.cholesky(matrix))
        return 2 * g * half.mT @ (half @ a)


@wrong(LogDeterminantOfFactor, bug="the factors of the inverse exchanged", right_if="n == 1")
class LogDeterminantExchanged(LogDeterminantOfFactor):
    @staticmethod
    def backward(ctx, g):
        a, matrix = ctx.saved_tensors
        half = sg.linalg.inv(sg.linalg.cholesky(matrix))
        return 2 * g * half @ (half.mT @ a)


@wrong(LogDeterminantOfFactor, bug="one of two equal shares")
class LogDeterminantHalf(LogDeterminantOfFactor):
    @staticmethod
    def backward(ctx, g):
        a, matrix = ctx.saved_tensors
        return g * sg.linalg.inv(matrix) @ a


@right("n n")
class FactorTimesItself(sg.Function):
    @staticmethod
    def forward(ctx, a):
        low = sg.linalg.cholesky(gram(a))
        ctx.save_for_backward(a)
        return low @ low.mT

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return (g + g.mT) @ a


@wrong(FactorTimesItself, bug="the cotangent taken for symmetric", right_if="n == 1")
class FactorSymmetric(FactorTimesItself):
    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return 2 * g @ a


@right("n n", "n k")
class WhitenedSquares(sg.Function):
    """|L⁻¹ b|² with L L' = A A' + I."""

    @staticmethod
    def forward(ctx, a, b):
        low = sg.linalg.cholesky(gram(a))
        y = sg.linalg.solve_triangular(low, b, upper=False)
        ctx.save_for_backward(a, low, y)
        return (y * y).sum()

    @staticmethod
    def backward(ctx, g):
        a, low, y = ctx.saved_tensors
        x = sg.linalg.solve_triangular(low.mT, y, upper=True)
        return -2 * g * x @ (x.mT @ a), 2 * g * x


@wrong(WhitenedSquares, bug="solved with the factor, not with its transpose", right_if="n == 1")
class WhitenedTwice(WhitenedSquares):
    @staticmethod
    def backward(ctx, g):
        a, low, y = ctx.saved_tensors
        x = sg.linalg.solve_triangular(low, y, upper=False)
        return -2 * g * x @ (x.mT @ a), 2 * g * x


@wrong(WhitenedSquares, bug="the half solution in the matrix's gradient")
class WhitenedHalf(WhitenedSquares):
    @staticmethod
    def backward(ctx, g):
        a, low, y = ctx.saved_tensors
        x = sg.linalg.solve_triangular(low.mT, y, upper=True)
        return -2 * g * y @ (y.mT @ a), 2 * g * x


def positive_diagonal(a):
    d = a.diagonal(dim1=-2, dim2=-1)
    return a - sg.diag_embed(d) + sg.diag_embed(d.exp())


def scaled_diagonal(grad, a):
    d = grad.diagonal(dim1=-2, dim2=-1) * a.diagonal(dim1=-2, dim2=-1).exp()
    return sg.diag_embed(d)


@right("b n n", "b n k")
class UpperSolve(sg.Function):
    """Batches, the upper triangle, a diagonal that is never 0."""

    @staticmethod
    def forward(ctx, a, b):
        matrix = positive_diagonal(a)
        x = sg.linalg.solve_triangular(matrix, b, upper=True)
        ctx.save_for_backward(a, matrix, x)
        return x

    @staticmethod
    def backward(ctx, g):
        a, matrix, x = ctx.saved_tensors
        grad_b = sg.linalg.solve_triangular(matrix.mT, g, upper=False)
        grad = -(grad_b @ x.mT)
        return grad.triu(1) + scaled_diagonal(grad, a), grad_b


@right(UpperSolve)
class UpperSolveByInverse(UpperSolve):
    @staticmethod
    def backward(ctx, g):
        a, matrix, x = ctx.saved_tensors
        grad_b = sg.linalg.inv(matrix.triu()).mT @ g
        grad = -(grad_b @ x.mT)
        return grad.triu(1) + scaled_diagonal(grad, a), grad_b


@wrong(UpperSolve, bug="the triangle that was never read", right_if="n == 1")
class UpperSolveLower(UpperSolve):
    @staticmethod
    def backward(ctx, g):
        a, matrix, x = ctx.saved_tensors
        grad_b = sg.linalg.solve_triangular(matrix.mT, g, upper=False)
        grad = -(grad_b @ x.mT)
        return grad.tril(-1) + scaled_diagonal(grad, a), grad_b


@wrong(UpperSolve, bug="the inverse of the whole matrix", right_if="n == 1")
class UpperSolveWholeInverse(UpperSolve):
    @staticmethod
    def backward(ctx, g):
        a, matrix, x = ctx.saved_tensors
        grad_b = sg.linalg.inv(matrix).mT @ g
        grad = -(grad_b @ x.mT)
        return grad.triu(1) + scaled_diagonal(grad, a), grad_b


@wrong(UpperSolve, bug="solved with the other triangle", right_if="n == 1")
class UpperSolveUntransposed(UpperSolve):
    @staticmethod
    def backward(ctx, g):
        a, matrix, x = ctx.saved_tensors
        grad_b = sg.linalg.solve_triangular(matrix, g, upper=True)
        grad = -(grad_b @ x.mT)
        return grad.triu(1) + scaled_diagonal(grad, a), grad_b


@right("n n")
class DeterminantOfInverse(sg.Function):
    @staticmethod
    def forward(ctx, a):
        inverse = sg.linalg.inv(a)
        ctx.save_for_backward(inverse)
        return sg.linalg.det(inverse)

    @staticmethod
    def backward(ctx, g):
        (inverse,) = ctx.saved_tensors
        return -g * sg.linalg.det(inverse) * inverse.mT


@wrong(DeterminantOfInverse, bug="sign")
class DeterminantOfInverseSign(DeterminantOfInverse):
    @staticmethod
    def backward(ctx, g):
        (inverse,) = ctx.saved_tensors
        return g * sg.linalg.det(inverse) * inverse.mT


@right("n n", "n k")
class SolveTwice(sg.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return sg.linalg.solve(a, sg.linalg.solve(a, b))

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        once = sg.linalg.solve(a, b)
        twice = sg.linalg.solve(a, once)
        back = sg.linalg.solve(a.mT, g)
        grad_b = sg.linalg.solve(a.mT, back)
        return -back @ twice.mT - grad_b @ once.mT, grad_b


@wrong(SolveTwice, bug="the two solutions exchanged")
class SolveTwiceExchanged(SolveTwice):
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        once = sg.linalg.solve(a, b)
        twice = sg.linalg.solve(a, once)
        back = sg.linalg.solve(a.mT, g)
        grad_b = sg.linalg.solve(a.mT, back)
        return -back @ once.mT - grad_b @ twice.mT, grad_b
