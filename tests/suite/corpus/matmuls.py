"""Matrix products: linear layers, chains, quadratic forms, low rank, batched and masked."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n i", "o i", "o")
class Linear(sg.Function):
    @staticmethod
    def forward(ctx, input, weight, bias):
        ctx.save_for_backward(input, weight)
        return input @ weight.t() + bias

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        return grad_output @ weight, grad_output.t() @ input, grad_output.sum(0)


@wrong(Linear, bug="weight's gradient transposed", kind="shape")
class LinearTransposed(Linear):
    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        return grad_output @ weight, input.t() @ grad_output, grad_output.sum(0)


@wrong(Linear, bug="right only for symmetric weights", kind="error")
class LinearWeightTransposed(Linear):
    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        return grad_output @ weight.t(), grad_output.t() @ input, grad_output.sum(0)


@wrong(Linear, bug="weight's gradient averaged over the batch")
class LinearMean(Linear):
    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        grad_weight = grad_output.t() @ input / input.shape[0]
        return grad_output @ weight, grad_weight, grad_output.sum(0)


@wrong(Linear, bug="bias's gradient summed over the features", kind="shape")
class LinearBiasAxis(Linear):
    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        return grad_output @ weight, grad_output.t() @ input, grad_output.sum(1)


@right("b t i", "o i")
class LinearOverSteps(sg.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x.matmul(weight.t())

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        flat = grad_output.reshape(-1, grad_output.shape[-1])
        return grad_output.matmul(weight), flat.t().mm(x.reshape(-1, x.shape[-1]))


@right(LinearOverSteps)
class LinearOverStepsBatched(LinearOverSteps):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight, (grad_output.transpose(1, 2) @ x).sum(0)


@wrong(LinearOverSteps, bug="weight's gradient of the first sample only")
class LinearFirstSample(LinearOverSteps):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight, (grad_output.transpose(1, 2) @ x)[0]


@right("n i", "i h", "h o")
class TwoLayers(sg.Function):
    @staticmethod
    def forward(ctx, x, w1, w2):
        h = sg.tanh(sg.mm(x, w1))
        ctx.save_for_backward(x, w1, w2, h)
        return sg.mm(h, w2)

    @staticmethod
    def backward(ctx, grad_output):
        x, w1, w2, h = ctx.saved_tensors
        grad_h = grad_output.mm(w2.t()) * (1 - h * h)
        return grad_h.mm(w1.t()), x.t().mm(grad_h), h.t().mm(grad_output)


@wrong(TwoLayers, bug="nonlinearity's derivative left out of the first layer")
class TwoLayersTanh(TwoLayers):
    @staticmethod
    def backward(ctx, grad_output):
        x, w1, w2, h = ctx.saved_tensors
        grad_h = grad_output.mm(w2.t())
        return grad_h.mm(w1.t()), x.t().mm(grad_h), h.t().mm(grad_output)


@wrong(TwoLayers, bug="derivative left out for the weights only")
class TwoLayersWeights(TwoLayers):
    @staticmethod
    def backward(ctx, grad_output):
        x, w1, w2, h = ctx.saved_tensors
        grad_a = grad_output.mm(w2.t())
        grad_h = grad_a * (1 - h * h)
        return grad_h.mm(w1.t()), x.t().mm(grad_a), h.t().mm(grad_output)


@right("n a", "a b", "b c")
class Chain(sg.Function):
    @staticmethod
    def forward(ctx, x, y, z):
        ctx.save_for_backward(x, y, z)
        return x @ y @ z

    @staticmethod
    def backward(ctx, g):
        x, y, z = ctx.saved_tensors
        return g @ (y @ z).T, x.T @ g @ z.T, (x @ y).T @ g


@wrong(Chain, bug="factors in the wrong order", kind="error")
class ChainOrder(Chain):
    @staticmethod
    def backward(ctx, g):
        x, y, z = ctx.saved_tensors
        return g @ (y @ z).T, z.T @ g @ x.T, (x @ y).T @ g


@wrong(Chain, bug="the last gradient misses a factor", kind="shape")
class ChainFactor(Chain):
    @staticmethod
    def backward(ctx, g):
        x, y, z = ctx.saved_tensors
        return g @ (y @ z).T, x.T @ g @ z.T, x.T @ g


@right("n d")
class Gram(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x @ x.transpose(0, 1)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return (g + g.transpose(0, 1)) @ x


@wrong(Gram, bug="2g for g + gᵀ: right only for symmetric cotangents")
class GramSymmetric(Gram):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g @ x


@wrong(Gram, bug="one of the two uses of x forgotten")
class GramOneUse(Gram):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g @ x


@right("b c s", static={"scale": 0.5})
class GramOfFeatures(sg.Function):
    """The style loss's Gram matrix, scaled."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return sg.bmm(x, x.permute(0, 2, 1)) * scale

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return ctx.scale * sg.bmm(g + g.permute(0, 2, 1), x), None


@wrong(GramOfFeatures, bug="scale forgotten in backward")
class GramScale(GramOfFeatures):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return sg.bmm(g + g.permute(0, 2, 1), x), None


@right("n", "n n")
class QuadraticForm(sg.Function):
    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        return x @ a @ x

    @staticmethod
    def backward(ctx, g):
        x, a = ctx.saved_tensors
        return g * (a + a.T) @ x, g * x[:, None] * x[None, :]


@wrong(QuadraticForm, bug="2Ax: right only for symmetric A")
class QuadraticFormSymmetric(QuadraticForm):
    @staticmethod
    def backward(ctx, g):
        x, a = ctx.saved_tensors
        return 2 * g * a @ x, g * x[:, None] * x[None, :]


@right("n i", "i r", "r o", static={"alpha": 2.0})
class LowRank(sg.Function):
    """LoRA's branch: alpha·x·A·B."""

    @staticmethod
    def forward(ctx, x, a, b, alpha):
        inner = x @ a
        ctx.save_for_backward(x, a, b, inner)
        ctx.alpha = alpha
        return alpha * (inner @ b)

    @staticmethod
    def backward(ctx, g):
        x, a, b, inner = ctx.saved_tensors
        g = ctx.alpha * g
        grad_inner = g @ b.T
        return grad_inner @ a.T, x.T @ grad_inner, inner.T @ g, None


@wrong(LowRank, bug="alpha applied twice to A")
class LowRankAlphaTwice(LowRank):
    @staticmethod
    def backward(ctx, g):
        x, a, b, inner = ctx.saved_tensors
        g = ctx.alpha * g
        grad_inner = g @ b.T
        return grad_inner @ a.T, ctx.alpha * x.T @ grad_inner, inner.T @ g, None


@wrong(LowRank, bug="alpha forgotten for B")
class LowRankAlphaForgotten(LowRank):
    @staticmethod
    def backward(ctx, g):
        x, a, b, inner = ctx.saved_tensors
        grad_inner = ctx.alpha * g @ b.T
        return grad_inner @ a.T, x.T @ grad_inner, inner.T @ g, None


@right("n i", "n j", "o i j")
class Bilinear(sg.Function):
    @staticmethod
    def forward(ctx, x, y, w):
        ctx.save_for_backward(x, y, w)
        return sg.einsum("ni,oij,nj->no", x, w, y)

    @staticmethod
    def backward(ctx, g):
        x, y, w = ctx.saved_tensors
        grad_x = sg.einsum("no,oij,nj->ni", g, w, y)
        grad_y = sg.einsum("no,oij,ni->nj", g, w, x)
        return grad_x, grad_y, sg.einsum("no,ni,nj->oij", g, x, y)


@wrong(Bilinear, bug="i and j exchanged in the weight's gradient", kind="shape")
class BilinearExchanged(Bilinear):
    @staticmethod
    def backward(ctx, g):
        x, y, w = ctx.saved_tensors
        grad_x = sg.einsum("no,oij,nj->ni", g, w, y)
        grad_y = sg.einsum("no,oij,ni->nj", g, w, x)
        return grad_x, grad_y, sg.einsum("no,ni,nj->oji", g, x, y)


@right("n i", "o i", "o i", assume={"mask": "constant"})
class MaskedLinear(sg.Function):
    """A pruned layer: the weight's gradient is masked like the weight."""

    @staticmethod
    def forward(ctx, x, weight, mask):
        ctx.save_for_backward(x, weight, mask)
        return x @ (weight * mask).t()

    @staticmethod
    def backward(ctx, g):
        x, weight, mask = ctx.saved_tensors
        return g @ (weight * mask), (g.t() @ x) * mask, None


@wrong(MaskedLinear, bug="weight's gradient not masked")
class MaskedLinearDense(MaskedLinear):
    @staticmethod
    def backward(ctx, g):
        x, weight, mask = ctx.saved_tensors
        return g @ (weight * mask), g.t() @ x, None


@right("n n")
class TraceOfSquare(sg.Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return (a @ a).diagonal().sum()

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return 2 * g * a.t()


@wrong(TraceOfSquare, bug="not transposed")
class TraceOfSquareTransposed(TraceOfSquare):
    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return 2 * g * a
