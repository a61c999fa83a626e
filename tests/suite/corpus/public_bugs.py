"""Bugs that lived for months or years in public code, in minimal versions of our own."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("b n d", "b n")
class ScaledEnergy(sg.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return (x * x).sum(dim=-1) * scale

    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        energy = (x * x).sum(dim=-1, keepdim=True).squeeze(-1)
        return 2 * x * (g * scale).unsqueeze(-1), g * energy


@wrong(ScaledEnergy, bug="squeeze() for squeeze(dim) after a reduction", right_if="n != 1")
class ScaledEnergySqueeze(ScaledEnergy):
    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        energy = (x * x).sum(dim=-1, keepdim=True).squeeze()
        return 2 * x * (g * scale).unsqueeze(-1), g * energy


@right("b n m", "b n")
class WeightedPool(sg.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (x * w.unsqueeze(-1)).sum(1)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return w.unsqueeze(-1) * g.unsqueeze(1), (x * g.unsqueeze(1)).sum(-1)


@wrong(WeightedPool, bug="upstream gradient applied after a sum it belongs inside")
class WeightedPoolAfterSum(WeightedPool):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return w.unsqueeze(-1) * g.unsqueeze(1), x.sum(-1) * g.sum(-1, keepdim=True)


@right("n m", static={"k": 3.0})
class SoftThreshold(sg.Function):
    @staticmethod
    def forward(ctx, x, k):
        s = sg.sigmoid(k * x)
        ctx.save_for_backward(s)
        ctx.k = k
        return s

    @staticmethod
    def backward(ctx, g):
        (s,) = ctx.saved_tensors
        return g * ctx.k * s * (1 - s), None


@wrong(SoftThreshold, bug="gradient not multiplied by the upstream gradient")
class SoftThresholdUpstream(SoftThreshold):
    @staticmethod
    def backward(ctx, g):
        (s,) = ctx.saved_tensors
        return ctx.k * s * (1 - s), None


@right("b c h w", "c", "c", static={"eps": 1e-6})
class LayerNorm2d(sg.Function):
    """Over the channels of an image, as in restoration networks."""

    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        ctx.eps = eps
        _, c, _, _ = x.size()
        mu = x.mean(1, keepdim=True)
        var = (x - mu).pow(2).mean(1, keepdim=True)
        y = (x - mu) / (var + eps).sqrt()
        ctx.save_for_backward(y, var, weight)
        return weight.view(1, c, 1, 1) * y + bias.view(1, c, 1, 1)

    @staticmethod
    def backward(ctx, g):
        y, var, weight = ctx.saved_tensors
        scaled = g * weight.view(1, -1, 1, 1)
        mean = scaled.mean(dim=1, keepdim=True)
        cross = (scaled * y).mean(dim=1, keepdim=True)
        grad_x = 1.0 / sg.sqrt(var + ctx.eps) * (scaled - y * cross - mean)
        grad_weight = (g * y).sum(dim=3).sum(dim=2).sum(dim=0)
        return grad_x, grad_weight, g.sum(dim=3).sum(dim=2).sum(dim=0), None


@wrong(LayerNorm2d, bug="layer norm without its cross terms")
class LayerNorm2dCross(LayerNorm2d):
    @staticmethod
    def backward(ctx, g):
        y, var, weight = ctx.saved_tensors
        grad_x = g * weight.view(1, -1, 1, 1) / sg.sqrt(var + ctx.eps)
        grad_weight = (g * y).sum(dim=(0, 2, 3))
        return grad_x, grad_weight, g.sum(dim=(0, 2, 3)), None


@right("n m", "m", static={"eps": 1e-6})
class RootMeanSquare(sg.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        rms = sg.sqrt(x.pow(2).mean(-1, keepdim=True) + eps)
        normed = x / rms
        ctx.save_for_backward(normed, rms, weight)
        return normed * weight

    @staticmethod
    def backward(ctx, g):
        normed, rms, weight = ctx.saved_tensors
        scaled = g * weight
        grad_x = (scaled - normed * (scaled * normed).mean(-1, keepdim=True)) / rms
        return grad_x, (g * normed).sum(0), None


@wrong(RootMeanSquare, bug="second term without the factor 1/rms")
class RootMeanSquareFactor(RootMeanSquare):
    @staticmethod
    def backward(ctx, g):
        normed, rms, weight = ctx.saved_tensors
        scaled = g * weight
        grad_x = scaled / rms - normed * (scaled * normed).mean(-1, keepdim=True)
        return grad_x, (g * normed).sum(0), None


@right("n c", "i64[n]", "c", assume={"label": "index c", "weight": "positive"})
class WeightedCrossEntropy(sg.Function):
    """log of a weighted softmax: log(w_y e^{x_y} / Σ_j w_j e^{x_j})."""

    @staticmethod
    def forward(ctx, x, label, weight):
        e = weight * sg.exp(x)
        p = e / e.sum(1, keepdim=True)
        ctx.save_for_backward(p, label, weight)
        return -p.gather(1, label[:, None]).squeeze(1).log()

    @staticmethod
    def backward(ctx, g):
        p, label, weight = ctx.saved_tensors
        one_hot = sg.zeros_like(p).scatter(1, label[:, None], 1.0)
        grad = g[:, None] * (p - one_hot)
        return grad, None, grad.sum(0) / weight


@wrong(WeightedCrossEntropy, bug="W[label] where W_j is meant")
class WeightedCrossEntropyLabel(WeightedCrossEntropy):
    @staticmethod
    def backward(ctx, g):
        p, label, weight = ctx.saved_tensors
        one_hot = sg.zeros_like(p).scatter(1, label[:, None], 1.0)
        grad = g[:, None] * (p - one_hot)
        return grad, None, (grad / weight[label][:, None]).sum(0)


@right("n n")
class NewtonSchulzRoot(sg.Function):
    """Two steps of the coupled iteration for a matrix square root."""

    @staticmethod
    def forward(ctx, a):
        eye3 = 3 * sg.eye(a.shape[0], dtype=a.dtype)
        z = 0.5 * (eye3 - a)
        y = a @ z
        ctx.save_for_backward(a, y, z)
        return 0.5 * y @ (eye3 - z @ y)

    @staticmethod
    def backward(ctx, g):
        a, y, z = ctx.saved_tensors
        eye3 = 3 * sg.eye(a.shape[0], dtype=a.dtype)
        grad_y = 0.5 * (g @ (eye3 - z @ y).t() - z.t() @ y.t() @ g)
        grad_z = -0.5 * y.t() @ g @ y.t() + a.t() @ grad_y
        return grad_y @ z.t() - 0.5 * grad_z


@wrong(NewtonSchulzRoot, bug="an extra transpose, unseen by symmetric inputs and cotangents")
class NewtonSchulzTranspose(NewtonSchulzRoot):
    @staticmethod
    def backward(ctx, g):
        a, y, z = ctx.saved_tensors
        eye3 = 3 * sg.eye(a.shape[0], dtype=a.dtype)
        grad_y = 0.5 * (g @ (eye3 - z @ y).t() - z.t() @ y.t() @ g)
        grad_z = -0.5 * y.t() @ g @ y.t() + a.t() @ grad_y
        return (grad_y @ z.t() - 0.5 * grad_z).t()


@right("n d", "n d", "n v", assume={"q": "positive", "k": "positive"})
class CausalLinearAttention(sg.Function):
    """Normalised causal linear attention by masked products."""

    @staticmethod
    def forward(ctx, q, k, v):
        scores = sg.tril(q @ k.T)
        z = scores.sum(1, keepdim=True)
        out = scores @ v / z
        ctx.save_for_backward(q, k, v, out, z)
        return out

    @staticmethod
    def backward(ctx, g):
        q, k, v, out, z = ctx.saved_tensors
        g = g / z
        grad_scores = sg.tril(g @ v.T - (g * out).sum(1, keepdim=True))
        return grad_scores @ k, grad_scores.T @ q, sg.tril(q @ k.T).T @ g


@wrong(CausalLinearAttention, bug="quotient rule half-done: no derivative of the normaliser")
class CausalLinearQuotient(CausalLinearAttention):
    @staticmethod
    def backward(ctx, g):
        q, k, v, _, z = ctx.saved_tensors
        g = g / z
        grad_scores = sg.tril(g @ v.T)
        return grad_scores @ k, grad_scores.T @ q, sg.tril(q @ k.T).T @ g


@right("n m", "n m")
class ResidualNorm(sg.Function):
    """x + normalised(y); the residual bypasses the norm."""

    @staticmethod
    def forward(ctx, x, y):
        norm = y.norm(dim=1, keepdim=True)
        u = y / norm
        ctx.save_for_backward(u, norm)
        return x + u

    @staticmethod
    def backward(ctx, g):
        u, norm = ctx.saved_tensors
        return g, (g - u * (g * u).sum(1, keepdim=True)) / norm


@wrong(ResidualNorm, bug="the residual's gradient pushed through the norm")
class ResidualThroughNorm(ResidualNorm):
    @staticmethod
    def backward(ctx, g):
        u, norm = ctx.saved_tensors
        through = (g - u * (g * u).sum(1, keepdim=True)) / norm
        return through, through


@right("n n", "n n")
class LeftDivide(sg.Function):
    """A⁻¹B."""

    @staticmethod
    def forward(ctx, a, b):
        inverse = sg.inverse(a)
        ctx.save_for_backward(inverse, b)
        return inverse @ b

    @staticmethod
    def backward(ctx, g):
        inverse, b = ctx.saved_tensors
        return -inverse.t() @ g @ b.t() @ inverse.t(), inverse.t() @ g


@wrong(LeftDivide, bug="matrix factors in the wrong order in the gradient of A")
class LeftDivideOrder(LeftDivide):
    @staticmethod
    def backward(ctx, g):
        inverse, b = ctx.saved_tensors
        return -inverse.t() @ b.t() @ g @ inverse.t(), inverse.t() @ g


@right("n m", "n m")
class ComplexSquare(sg.Function):
    """(a + ib)², as two blocks."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return sg.cat([a * a - b * b, 2 * a * b], dim=1)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        real, imaginary = g.chunk(2, dim=1)
        grad_a = 2 * (real * a + imaginary * b)
        grad_b = 2 * (imaginary * a - real * b)
        return grad_a, grad_b


@wrong(ComplexSquare, bug="signs swapped between the two blocks")
class ComplexSquareSigns(ComplexSquare):
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        real, imaginary = g.chunk(2, dim=1)
        return 2 * (real * a - imaginary * b), 2 * (imaginary * a + real * b)


@right("n m", "i64[k]", "i64[k]", assume={"row": "index n", "column": "index m"})
class ReadPixels(sg.Function):
    """Elements at (row, column), accumulated back through a linear index."""

    @staticmethod
    def forward(ctx, image, row, column):
        ctx.save_for_backward(row, column)
        ctx.shape = image.shape
        return image[row, column]

    @staticmethod
    def backward(ctx, g):
        row, column = ctx.saved_tensors
        n, m = ctx.shape
        grad = sg.zeros(n * m, dtype=g.dtype)
        return grad.scatter_add(0, row * m + column, g).view(n, m), None, None


@wrong(ReadPixels, bug="row*N + column: right only for square images", right_if="n == m or n == 1")
class ReadPixelsSquare(ReadPixels):
    @staticmethod
    def backward(ctx, g):
        row, column = ctx.saved_tensors
        n, m = ctx.shape
        grad = sg.zeros(n * m, dtype=g.dtype)
        return grad.scatter_add(0, (row * n + column) % (n * m), g).view(n, m), None, None


@right("n m", "n m", "m")
class SharedScale(sg.Function):
    """Several inputs times one scale; gradients gathered in two loops."""

    @staticmethod
    def forward(ctx, first, second, scale):
        ctx.save_for_backward(first, second, scale)
        return first * scale, second * scale

    @staticmethod
    def backward(ctx, *grads):
        first, second, scale = ctx.saved_tensors
        pairs = list(zip((first, second), grads, strict=True))
        grad_inputs = [g * scale for _, g in pairs]
        grad_scale = sg.zeros_like(scale)
        for x, g in pairs:
            grad_scale = grad_scale + (g * x).sum(0)
        return (*grad_inputs, grad_scale)


@wrong(SharedScale, bug="an iterator exhausted before the second loop")
class SharedScaleExhausted(SharedScale):
    @staticmethod
    def backward(ctx, *grads):
        first, second, scale = ctx.saved_tensors
        pairs = zip((first, second), grads, strict=True)
        grad_inputs = [g * scale for _, g in pairs]
        grad_scale = sg.zeros_like(scale)
        for x, g in pairs:
            grad_scale = grad_scale + (g * x).sum(0)
        return (*grad_inputs, grad_scale)
