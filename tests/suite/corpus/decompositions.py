"""Determinants, solves and Cholesky factors, as log-densities and whitening layers have them."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n n")
class LogAbsDeterminant(sg.Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(sg.inverse(a))
        return sg.linalg.slogdet(a)[1]

    @staticmethod
    def backward(ctx, g):
        (inverse,) = ctx.saved_tensors
        return g * inverse.t()


@wrong(LogAbsDeterminant, bug="inverse not transposed")
class LogDeterminantTransposed(LogAbsDeterminant):
    @staticmethod
    def backward(ctx, g):
        (inverse,) = ctx.saved_tensors
        return g * inverse


@right("n n")
class Determinant(sg.Function):
    @staticmethod
    def forward(ctx, a):
        value = sg.linalg.det(a)
        ctx.save_for_backward(a, value)
        return value

    @staticmethod
    def backward(ctx, g):
        a, value = ctx.saved_tensors
        return g * value * sg.linalg.inv(a).mT


@wrong(Determinant, bug="derivative of the logarithm")
class DeterminantLog(Determinant):
    @staticmethod
    def backward(ctx, g):
        a, _ = ctx.saved_tensors
        return g * sg.linalg.inv(a).mT


@right("n n", "n k")
class Solve(sg.Function):
    @staticmethod
    def forward(ctx, a, b):
        x = sg.linalg.solve(a, b)
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        grad_b = sg.linalg.solve(a.mT, g)
        return -grad_b @ x.mT, grad_b


@wrong(Solve, bug="solved with A, not with its transpose")
class SolveWithA(Solve):
    @staticmethod
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        grad_b = sg.linalg.solve(a, g)
        return -grad_b @ x.mT, grad_b


@wrong(Solve, bug="sign of the matrix's gradient")
class SolveSign(Solve):
    @staticmethod
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        grad_b = sg.linalg.solve(a.mT, g)
        return grad_b @ x.mT, grad_b


@right("n d", "d d")
class GaussianByPrecisionFactor(sg.Function):
    """-½|L x|² + log|det L| with a lower-triangular factor of the precision."""

    @staticmethod
    def forward(ctx, x, a):
        low = a.tril(-1) + sg.diag_embed(a.diagonal().exp())
        z = x @ low.T
        ctx.save_for_backward(x, a, low, z)
        return -0.5 * (z * z).sum(1) + a.diagonal().sum()

    @staticmethod
    def backward(ctx, g):
        x, a, low, z = ctx.saved_tensors
        grad_z = -g[:, None] * z
        grad_low = grad_z.T @ x
        diagonal = grad_low.diagonal() * a.diagonal().exp() + g.sum()
        return grad_z @ low, grad_low.tril(-1) + sg.diag_embed(diagonal)


@wrong(GaussianByPrecisionFactor, bug="the determinant's share of the diagonal left out")
class GaussianDeterminant(GaussianByPrecisionFactor):
    @staticmethod
    def backward(ctx, g):
        x, a, low, z = ctx.saved_tensors
        grad_z = -g[:, None] * z
        grad_low = grad_z.T @ x
        diagonal = grad_low.diagonal() * a.diagonal().exp()
        return grad_z @ low, grad_low.tril(-1) + sg.diag_embed(diagonal)


@wrong(GaussianByPrecisionFactor, bug="exponential of the diagonal not differentiated")
class GaussianDiagonal(GaussianByPrecisionFactor):
    @staticmethod
    def backward(ctx, g):
        x, _, low, z = ctx.saved_tensors
        grad_z = -g[:, None] * z
        grad_low = grad_z.T @ x
        diagonal = grad_low.diagonal() + g.sum()
        return grad_z @ low, grad_low.tril(-1) + sg.diag_embed(diagonal)


@right("n n")
class CholeskyOfGram(sg.Function):
    """The factor of A Aᵀ + I, by the formula with the lower half of Lᵀ·gradient."""

    @staticmethod
    def forward(ctx, a):
        n = a.shape[0]
        low = sg.linalg.cholesky(a @ a.mT + sg.eye(n, dtype=a.dtype))
        ctx.save_for_backward(a, low)
        return low

    @staticmethod
    def backward(ctx, g):
        a, low = ctx.saved_tensors
        phi = (low.mT @ g.tril()).tril()
        phi = phi - 0.5 * sg.diag_embed(phi.diagonal())
        inverse = sg.linalg.inv(low)
        s = inverse.mT @ phi @ inverse
        return (s + s.mT) @ a


@wrong(CholeskyOfGram, bug="diagonal not halved")
class CholeskyDiagonal(CholeskyOfGram):
    @staticmethod
    def backward(ctx, g):
        a, low = ctx.saved_tensors
        phi = (low.mT @ g.tril()).tril()
        inverse = sg.linalg.inv(low)
        s = inverse.mT @ phi @ inverse
        return (s + s.mT) @ a


@right("n n", "n k")
class TriangularSolve(sg.Function):
    """(tril(A) off the diagonal plus I)⁻¹ B."""

    @staticmethod
    def forward(ctx, a, b):
        low = a.tril(-1) + sg.eye(a.shape[0], dtype=a.dtype)
        x = sg.linalg.solve_triangular(low, b, upper=False)
        ctx.save_for_backward(low, x)
        return x

    @staticmethod
    def backward(ctx, g):
        low, x = ctx.saved_tensors
        grad_b = sg.linalg.solve_triangular(low.mT, g, upper=True)
        return (-grad_b @ x.mT).tril(-1), grad_b


@wrong(TriangularSolve, bug="the whole lower half, diagonal included")
class TriangularDiagonal(TriangularSolve):
    @staticmethod
    def backward(ctx, g):
        low, x = ctx.saved_tensors
        grad_b = sg.linalg.solve_triangular(low.mT, g, upper=True)
        return (-grad_b @ x.mT).tril(), grad_b


@right("n n")
class Eigenvalues(sg.Function):
    @staticmethod
    def forward(ctx, a):
        values, vectors = sg.linalg.eigh((a + a.mT) / 2)
        ctx.save_for_backward(vectors)
        return values

    @staticmethod
    def backward(ctx, g):
        (vectors,) = ctx.saved_tensors
        return vectors @ sg.diag_embed(g) @ vectors.mT


@wrong(Eigenvalues, bug="cotangents in the order of singular values")
class EigenvaluesDescending(Eigenvalues):
    @staticmethod
    def backward(ctx, g):
        (vectors,) = ctx.saved_tensors
        return vectors @ sg.diag_embed(g.flip(0)) @ vectors.mT


@right("n d")
class LogDeterminantByEigenvalues(sg.Function):
    """log det(X Xᵀ + I)."""

    @staticmethod
    def forward(ctx, x):
        values, vectors = sg.linalg.eigh(x @ x.mT + sg.eye(x.shape[0], dtype=x.dtype))
        ctx.save_for_backward(x, values, vectors)
        return values.log().sum()

    @staticmethod
    def backward(ctx, g):
        x, values, vectors = ctx.saved_tensors
        return 2 * g * (vectors / values) @ vectors.mT @ x


@wrong(LogDeterminantByEigenvalues, bug="values in the place of their reciprocals")
class LogDeterminantTimes(LogDeterminantByEigenvalues):
    @staticmethod
    def backward(ctx, g):
        x, values, vectors = ctx.saved_tensors
        return 2 * g * (vectors * values) @ vectors.mT @ x


@right("n d")
class NuclearNorm(sg.Function):
    @staticmethod
    def forward(ctx, x):
        left, values, right = sg.linalg.svd(x, full_matrices=False)
        ctx.save_for_backward(left, right)
        return values.sum()

    @staticmethod
    def backward(ctx, g):
        left, right = ctx.saved_tensors
        return g * left @ right


@wrong(NuclearNorm, bug="the values, too, in the gradient")
class NuclearNormOfMatrix(NuclearNorm):
    @staticmethod
    def forward(ctx, x):
        left, values, right = sg.linalg.svd(x, full_matrices=False)
        ctx.save_for_backward(left * values, right)
        return values.sum()


@right("n d")
class SquaredSingularValues(sg.Function):
    """The square of the Frobenius norm."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return sg.linalg.svdvals(x).square().sum()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


@wrong(SquaredSingularValues, bug="factor of two")
class SquaredSingularValuesHalf(SquaredSingularValues):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x


@right("n d")
class SpectralNorm(sg.Function):
    @staticmethod
    def forward(ctx, x):
        left, values, right = sg.svd(x)
        ctx.save_for_backward(left[:, 0], right[:, 0])
        return values[0]

    @staticmethod
    def backward(ctx, g):
        left, right = ctx.saved_tensors
        return g * left[:, None] * right


@wrong(SpectralNorm, bug="sign")
class SpectralNormSign(SpectralNorm):
    @staticmethod
    def backward(ctx, g):
        left, right = ctx.saved_tensors
        return -g * left[:, None] * right


def mirrored(matrix):
    """The symmetric matrix with the same lower triangle."""
    return matrix.tril() + matrix.tril(-1).mT


@right("n+m m")
class OrthogonalTriangular(sg.Function):
    @staticmethod
    def forward(ctx, a):
        factor, upper = sg.linalg.qr(a)
        ctx.save_for_backward(factor, upper)
        return factor, upper

    @staticmethod
    def backward(ctx, g, h):
        factor, upper = ctx.saved_tensors
        inner = upper @ h.mT - g.mT @ factor
        right = g + factor @ mirrored(inner)
        return sg.linalg.solve_triangular(upper, right.mT, upper=True).mT


@wrong(OrthogonalTriangular, bug="the diagonal twice")
class OrthogonalTriangularTwice(OrthogonalTriangular):
    @staticmethod
    def backward(ctx, g, h):
        factor, upper = ctx.saved_tensors
        inner = upper @ h.mT - g.mT @ factor
        right = g + factor @ (inner.tril() + inner.tril().mT)
        return sg.linalg.solve_triangular(upper, right.mT, upper=True).mT


@wrong(OrthogonalTriangular, bug="upper triangle of the mixed product")
class OrthogonalTriangularUpper(OrthogonalTriangular):
    @staticmethod
    def backward(ctx, g, h):
        factor, upper = ctx.saved_tensors
        inner = upper @ h.mT - g.mT @ factor
        right = g + factor @ mirrored(inner.mT)
        return sg.linalg.solve_triangular(upper, right.mT, upper=True).mT


@right("n+m m", "n+m k")
class LeastSquares(sg.Function):
    @staticmethod
    def forward(ctx, a, b):
        factor, upper = sg.linalg.qr(a)
        x = sg.linalg.solve_triangular(upper, factor.mT @ b, upper=True)
        ctx.save_for_backward(a, b, x, upper)
        return x

    @staticmethod
    def backward(ctx, g):
        a, b, x, upper = ctx.saved_tensors
        half = sg.linalg.solve_triangular(upper.mT, g, upper=False)
        z = sg.linalg.solve_triangular(upper, half, upper=True)
        return (b - a @ x) @ z.mT - a @ z @ x.mT, a @ z


@wrong(LeastSquares, bug="no gradient by the residual")
class LeastSquaresNoResidual(LeastSquares):
    @staticmethod
    def backward(ctx, g):
        a, _, x, upper = ctx.saved_tensors
        half = sg.linalg.solve_triangular(upper.mT, g, upper=False)
        z = sg.linalg.solve_triangular(upper, half, upper=True)
        return -a @ z @ x.mT, a @ z
