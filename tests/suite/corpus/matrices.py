"""Functions of matrices without factorisations: covariance, projections, forms, pooling."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n d")
class Covariance(sg.Function):
    @staticmethod
    def forward(ctx, x):
        centred = x - x.mean(0, keepdim=True)
        ctx.save_for_backward(centred)
        return centred.t() @ centred / x.shape[0]

    @staticmethod
    def backward(ctx, g):
        (centred,) = ctx.saved_tensors
        return centred @ (g + g.t()) / centred.shape[0]


@wrong(Covariance, bug="2g for g + gᵀ")
class CovarianceSymmetric(Covariance):
    @staticmethod
    def backward(ctx, g):
        (centred,) = ctx.saved_tensors
        return 2 * centred @ g / centred.shape[0]


@wrong(Covariance, bug="unbiased divisor in backward only")
class CovarianceDivisor(Covariance):
    @staticmethod
    def backward(ctx, g):
        (centred,) = ctx.saved_tensors
        return centred @ (g + g.t()) / (centred.shape[0] - 1)


@right("n n")
class SkewPart(sg.Function):
    @staticmethod
    def forward(ctx, a):
        return (a - a.mT) / 2

    @staticmethod
    def backward(ctx, g):
        return (g - g.mT) / 2


@wrong(SkewPart, bug="symmetric part's gradient")
class SkewPartSign(SkewPart):
    @staticmethod
    def backward(ctx, g):
        return (g + g.mT) / 2


@right("n n", "n n")
class Commutator(sg.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b - b @ a

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g @ b.T - b.T @ g, a.T @ g - g @ a.T


@wrong(Commutator, bug="second gradient has the first's sign pattern")
class CommutatorSign(Commutator):
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g @ b.T - b.T @ g, g @ a.T - a.T @ g


@wrong(Commutator, bug="second product forgotten")
class CommutatorHalf(Commutator):
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g @ b.T, a.T @ g


@right("n m", static={"eps": 1e-4})
class FrobeniusNormalise(sg.Function):
    """A/(|A| + eps) over the whole matrix."""

    @staticmethod
    def forward(ctx, a, eps):
        norm = sg.sqrt((a * a).sum())
        ctx.save_for_backward(a, norm)
        ctx.eps = eps
        return a / (norm + eps)

    @staticmethod
    def backward(ctx, g):
        a, norm = ctx.saved_tensors
        d = norm + ctx.eps
        return g / d - a * (g * a).sum() / (norm * d * d), None


@wrong(FrobeniusNormalise, bug="the norm treated as a constant")
class FrobeniusConstant(FrobeniusNormalise):
    @staticmethod
    def backward(ctx, g):
        _, norm = ctx.saved_tensors
        return g / (norm + ctx.eps), None


@wrong(FrobeniusNormalise, bug="inner product over the rows, not over all")
class FrobeniusRows(FrobeniusNormalise):
    @staticmethod
    def backward(ctx, g):
        a, norm = ctx.saved_tensors
        d = norm + ctx.eps
        return g / d - a * (g * a).sum(1, keepdim=True) / (norm * d * d), None


@right("b c s", "b d s")
class BilinearPooling(sg.Function):
    """Outer products of features averaged over space, flattened."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        b, c, s = x.shape
        return (x @ y.transpose(1, 2) / s).reshape(b, c * y.shape[1])

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        b, c, s = x.shape
        g = g.reshape(b, c, y.shape[1]) / s
        return g @ y, g.transpose(1, 2) @ x


@wrong(BilinearPooling, bug="unflattened with the two channel counts exchanged")
class BilinearPoolingView(BilinearPooling):
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        b, c, s = x.shape
        g = g.reshape(b, y.shape[1], c) / s
        return g.transpose(1, 2) @ y, g @ x


@wrong(BilinearPooling, bug="mean over space not undone for y")
class BilinearPoolingMean(BilinearPooling):
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        b, c, s = x.shape
        g = g.reshape(b, c, y.shape[1])
        return g @ y / s, g.transpose(1, 2) @ x


@right("n d", "d", "d d")
class Mahalanobis(sg.Function):
    """(x - mu)ᵀ M (x - mu) a row."""

    @staticmethod
    def forward(ctx, x, mu, m):
        diff = x - mu
        ctx.save_for_backward(diff, m)
        return ((diff @ m) * diff).sum(-1)

    @staticmethod
    def backward(ctx, g):
        diff, m = ctx.saved_tensors
        scaled = g[:, None] * diff
        grad_x = scaled @ (m + m.t())
        return grad_x, -grad_x.sum(0), scaled.t() @ diff


@wrong(Mahalanobis, bug="mean's gradient with the sign of x's")
class MahalanobisSign(Mahalanobis):
    @staticmethod
    def backward(ctx, g):
        diff, m = ctx.saved_tensors
        scaled = g[:, None] * diff
        grad_x = scaled @ (m + m.t())
        return grad_x, grad_x.sum(0), scaled.t() @ diff


@wrong(Mahalanobis, bug="upstream gradient counted twice in the matrix's gradient")
class MahalanobisTwice(Mahalanobis):
    @staticmethod
    def backward(ctx, g):
        diff, m = ctx.saved_tensors
        scaled = g[:, None] * diff
        grad_x = scaled @ (m + m.t())
        return grad_x, -grad_x.sum(0), scaled.t() @ scaled


@right("n d", "k d")
class OrthogonalProjection(sg.Function):
    """x minus its components along given rows (not normalised)."""

    @staticmethod
    def forward(ctx, x, basis):
        coefficients = x @ basis.T
        ctx.save_for_backward(x, basis, coefficients)
        return x - coefficients @ basis

    @staticmethod
    def backward(ctx, g):
        x, basis, coefficients = ctx.saved_tensors
        along = g @ basis.T
        return g - along @ basis, -(coefficients.T @ g) - along.T @ x


@wrong(OrthogonalProjection, bug="the basis's second use forgotten")
class ProjectionOneUse(OrthogonalProjection):
    @staticmethod
    def backward(ctx, g):
        _, basis, coefficients = ctx.saved_tensors
        along = g @ basis.T
        return g - along @ basis, -(coefficients.T @ g)


@right("n n")
class MatrixPolynomial(sg.Function):
    """A³ - 2A."""

    @staticmethod
    def forward(ctx, a):
        square = a @ a
        ctx.save_for_backward(a, square)
        return square @ a - 2 * a

    @staticmethod
    def backward(ctx, g):
        a, square = ctx.saved_tensors
        at, st = a.T, square.T
        return g @ st + at @ g @ at + st @ g - 2 * g


@wrong(MatrixPolynomial, bug="3A²g, as if matrices commuted")
class PolynomialCommutes(MatrixPolynomial):
    @staticmethod
    def backward(ctx, g):
        _, square = ctx.saved_tensors
        return 3 * square.T @ g - 2 * g


@wrong(MatrixPolynomial, bug="middle term left out")
class PolynomialMiddle(MatrixPolynomial):
    @staticmethod
    def backward(ctx, g):
        _, square = ctx.saved_tensors
        return g @ square.T + square.T @ g - 2 * g


@right("b n d", "d d")
class SelfSimilarity(sg.Function):
    """X W Xᵀ a sample: three gradients meet in X."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w @ x.mT

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        grad_x = g @ x @ w.T + g.mT @ x @ w
        return grad_x, (x.mT @ g @ x).sum(0)


@wrong(SelfSimilarity, bug="w not transposed in the first use")
class SelfSimilarityTransposed(SelfSimilarity):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        grad_x = g @ x @ w + g.mT @ x @ w
        return grad_x, (x.mT @ g @ x).sum(0)


@wrong(SelfSimilarity, bug="weight's gradient averaged over the batch", right_if="b == 1")
class SelfSimilarityMean(SelfSimilarity):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        grad_x = g @ x @ w.T + g.mT @ x @ w
        return grad_x, (x.mT @ g @ x).mean(0)


@right("n m", static={"k": 2})
class SignedRoot(sg.Function):
    """sign(x)·sqrt(|x|), as after bilinear pooling; smoothed by eps."""

    @staticmethod
    def forward(ctx, x, k):
        root = sg.sqrt(x.abs() + 1e-2)
        ctx.save_for_backward(x, root)
        return k * x.sign() * root

    @staticmethod
    def backward(ctx, g):
        _, root = ctx.saved_tensors
        return g / root, None


@wrong(SignedRoot, bug="multiplied by the sign, which is squared away")
class SignedRootSign(SignedRoot):
    @staticmethod
    def backward(ctx, g):
        x, root = ctx.saved_tensors
        return g * x.sign() / root, None
