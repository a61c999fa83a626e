"""Reductions: sums, means, norms, extrema, products, log-sum-exp."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n m")
class SumAll(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.sum()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.expand(ctx.shape)


@wrong(SumAll, bug="divided by the count")
class SumAllMean(SumAll):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.expand(ctx.shape) / ctx.shape[0]


@wrong(SumAll, bug="ones, whatever the upstream gradient")
class SumAllOnes(SumAll):
    @staticmethod
    def backward(ctx, grad_output):
        return sg.ones(ctx.shape)


@right("n m")
class MeanLast(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.size = x.size()
        return x.mean(-1)

    @staticmethod
    def backward(ctx, grad_output):
        n, m = ctx.size
        return grad_output.unsqueeze(-1).expand(n, m) / m


@wrong(MeanLast, bug="divided by the wrong size")
class MeanLastOther(MeanLast):
    @staticmethod
    def backward(ctx, grad_output):
        n, m = ctx.size
        return grad_output.unsqueeze(-1).expand(n, m) / n


@wrong(MeanLast, bug="not divided")
class MeanLastSum(MeanLast):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.unsqueeze(-1).expand(*ctx.size)


@wrong(MeanLast, bug="gradient laid along the wrong axis", kind="error")
class MeanLastAxis(MeanLast):
    @staticmethod
    def backward(ctx, grad_output):
        n, m = ctx.size
        return grad_output.unsqueeze(0).expand(n, m) / m


@right("b c h w")
class GlobalAveragePool(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.mean((2, 3))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        h, w = x.shape[2:]
        return grad_output[:, :, None, None] * sg.ones_like(x) / (h * w)


@wrong(GlobalAveragePool, bug="divided by h², right only for square images", right_if="h == w")
class GlobalAveragePoolSquare(GlobalAveragePool):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        h = x.shape[2]
        return grad_output[:, :, None, None] * sg.ones_like(x) / (h * h)


@right("n m")
class SumOfSquares(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x**2).sum(dim=1)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output[:, None]


@wrong(SumOfSquares, bug="the factor 2 left out")
class SumOfSquaresFactor(SumOfSquares):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return x * grad_output[:, None]


@wrong(SumOfSquares, bug="gradient broadcast along the rows", kind="error")
class SumOfSquaresBroadcast(SumOfSquares):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output


@right("n m")
class Norm(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.norm(dim=-1, keepdim=True)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        x, y = ctx.saved_tensors
        return grad_y * x / y


@wrong(Norm, bug="not divided by the norm")
class NormUndivided(Norm):
    @staticmethod
    def backward(ctx, grad_y):
        x, _ = ctx.saved_tensors
        return grad_y * x


@wrong(Norm, bug="2x/|x|, as if the square had been taken")
class NormFactor(Norm):
    @staticmethod
    def backward(ctx, grad_y):
        x, y = ctx.saved_tensors
        return 2 * grad_y * x / y


@right("n m", static={"p": 3})
class NormP(sg.Function):
    @staticmethod
    def forward(ctx, x, p):
        y = x.abs().pow(p).sum(1).pow(1 / p)
        ctx.save_for_backward(x, y)
        ctx.p = p
        return y

    @staticmethod
    def backward(ctx, grad_y):
        x, y = ctx.saved_tensors
        scaled = x.abs().pow(ctx.p - 1) * x.sign()
        return scaled * (grad_y / y.pow(ctx.p - 1)).unsqueeze(1), None


@wrong(NormP, bug="sign of x lost")
class NormPSign(NormP):
    @staticmethod
    def backward(ctx, grad_y):
        x, y = ctx.saved_tensors
        return x.abs().pow(ctx.p - 1) * (grad_y / y.pow(ctx.p - 1)).unsqueeze(1), None


@wrong(NormP, bug="power p - 1 for the norm forgotten: right only for p = 2")
class NormPTwo(NormP):
    @staticmethod
    def backward(ctx, grad_y):
        x, y = ctx.saved_tensors
        return x.abs().pow(ctx.p - 1) * x.sign() * (grad_y / y).unsqueeze(1), None


@right("n m")
class MaxLast(sg.Function):
    @staticmethod
    def forward(ctx, x):
        values, indices = x.max(dim=1)
        ctx.save_for_backward(indices)
        ctx.shape = x.shape
        return values

    @staticmethod
    def backward(ctx, grad_output):
        (indices,) = ctx.saved_tensors
        grad_x = sg.zeros(ctx.shape, dtype=grad_output.dtype)
        return grad_x.scatter(1, indices.unsqueeze(1), grad_output.unsqueeze(1))


@right(MaxLast)
class MaxByComparison(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.amax(-1, keepdim=True)
        ctx.mask = x == y
        return y.squeeze(-1)

    @staticmethod
    def backward(ctx, grad_output):
        return ctx.mask * grad_output.unsqueeze(-1)


@wrong(MaxLast, bug="every element gets the gradient")
class MaxEverywhere(MaxLast):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.unsqueeze(1).expand(ctx.shape)


@wrong(MaxByComparison, bug="the mask compares with the minimum")
class MaxMinimum(MaxByComparison):
    @staticmethod
    def forward(ctx, x):
        ctx.mask = x == x.amin(-1, keepdim=True)
        return x.amax(-1)


@right("n m")
class LogSumExp(sg.Function):
    @staticmethod
    def forward(ctx, x):
        top = x.amax(dim=-1, keepdim=True)
        y = (top + (x - top).exp().sum(-1, keepdim=True).log()).squeeze(-1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        x, y = ctx.saved_tensors
        return grad_y.unsqueeze(-1) * (x - y.unsqueeze(-1)).exp()


@wrong(LogSumExp, bug="exp(x), not normalised")
class LogSumExpUnnormalised(LogSumExp):
    @staticmethod
    def backward(ctx, grad_y):
        x, _ = ctx.saved_tensors
        return grad_y.unsqueeze(-1) * x.exp()


@wrong(LogSumExp, bug="shifted by the maximum, not by the result")
class LogSumExpShift(LogSumExp):
    @staticmethod
    def backward(ctx, grad_y):
        x, _ = ctx.saved_tensors
        return grad_y.unsqueeze(-1) * (x - x.amax(-1, keepdim=True)).exp()


@right("n m")
class Variance(sg.Function):
    @staticmethod
    def forward(ctx, x):
        centred = x - x.mean(1, keepdim=True)
        ctx.save_for_backward(centred)
        return centred.pow(2).mean(1)

    @staticmethod
    def backward(ctx, grad_output):
        (centred,) = ctx.saved_tensors
        return 2 * centred * grad_output.unsqueeze(1) / centred.shape[1]


@wrong(Variance, bug="unbiased divisor in backward, biased in forward")
class VarianceDivisor(Variance):
    @staticmethod
    def backward(ctx, grad_output):
        (centred,) = ctx.saved_tensors
        return 2 * centred * grad_output.unsqueeze(1) / (centred.shape[1] - 1)


@right("n m")
class StandardDeviation(sg.Function):
    @staticmethod
    def forward(ctx, x):
        std = x.std(dim=1, keepdim=True)
        ctx.save_for_backward(x, std)
        return std

    @staticmethod
    def backward(ctx, grad_output):
        x, std = ctx.saved_tensors
        centred = x - x.mean(1, keepdim=True)
        return grad_output * centred / (std * (x.size(1) - 1))


@wrong(StandardDeviation, bug="mean not subtracted")
class StandardDeviationMean(StandardDeviation):
    @staticmethod
    def backward(ctx, grad_output):
        x, std = ctx.saved_tensors
        return grad_output * x / (std * (x.size(1) - 1))


@wrong(StandardDeviation, bug="derivative of the variance for that of its root")
class StandardDeviationRoot(StandardDeviation):
    @staticmethod
    def backward(ctx, grad_output):
        x, _ = ctx.saved_tensors
        return 2 * grad_output * (x - x.mean(1, keepdim=True)) / (x.size(1) - 1)


@right("n m")
class ProductLast(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.prod(dim=1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        x, y = ctx.saved_tensors
        return (grad_y * y).unsqueeze(1) / x


@wrong(ProductLast, bug="not divided by the element")
class ProductUndivided(ProductLast):
    @staticmethod
    def backward(ctx, grad_y):
        x, y = ctx.saved_tensors
        return (grad_y * y).unsqueeze(1) * sg.ones_like(x)


@right("n m", "n m", assume={"weight": "positive"})
class WeightedMean(sg.Function):
    @staticmethod
    def forward(ctx, x, weight):
        total = weight.sum(1)
        mean = (x * weight).sum(1) / total
        ctx.save_for_backward(x, weight, mean, total)
        return mean

    @staticmethod
    def backward(ctx, grad_output):
        x, weight, mean, total = ctx.saved_tensors
        scaled = (grad_output / total)[:, None]
        return scaled * weight, scaled * (x - mean[:, None])


@wrong(WeightedMean, bug="the total weight treated as a constant")
class WeightedMeanConstant(WeightedMean):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight, _, total = ctx.saved_tensors
        scaled = (grad_output / total)[:, None]
        return scaled * weight, scaled * x


@right("n m", assume={"p": "positive"})
class Entropy(sg.Function):
    @staticmethod
    def forward(ctx, p):
        ctx.save_for_backward(p)
        return -(p * p.log()).sum(-1)

    @staticmethod
    def backward(ctx, grad_output):
        (p,) = ctx.saved_tensors
        return -(1 + p.log()) * grad_output.unsqueeze(-1)


@wrong(Entropy, bug="the 1 of the product rule left out")
class EntropyOne(Entropy):
    @staticmethod
    def backward(ctx, grad_output):
        (p,) = ctx.saved_tensors
        return -p.log() * grad_output.unsqueeze(-1)
