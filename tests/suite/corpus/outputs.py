"""Several outputs: each cotangent must arrive where its output came from."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n m")
class SinCos(sg.Function):
    @staticmethod
    def forward(ctx, x):
        s, c = sg.sin(x), sg.cos(x)
        ctx.save_for_backward(s, c)
        return s, c

    @staticmethod
    def backward(ctx, grad_s, grad_c):
        s, c = ctx.saved_tensors
        return grad_s * c - grad_c * s


@wrong(SinCos, bug="sign of the cosine's derivative")
class SinCosSign(SinCos):
    @staticmethod
    def backward(ctx, grad_s, grad_c):
        s, c = ctx.saved_tensors
        return grad_s * c + grad_c * s


@wrong(SinCos, bug="second cotangent ignored")
class SinCosSecond(SinCos):
    @staticmethod
    def backward(ctx, grad_s, grad_c):
        _, c = ctx.saved_tensors
        return grad_s * c


@wrong(SinCos, bug="product of the two terms for their sum")
class SinCosProduct(SinCos):
    @staticmethod
    def backward(ctx, grad_s, grad_c):
        s, c = ctx.saved_tensors
        return -(grad_s * c) * (grad_c * s)


@right("n m")
class MeanAndVariance(sg.Function):
    @staticmethod
    def forward(ctx, x):
        mean = x.mean(1)
        var = ((x - mean[:, None]) ** 2).mean(1)
        ctx.save_for_backward(x, mean)
        return mean, var

    @staticmethod
    def backward(ctx, grad_mean, grad_var):
        x, mean = ctx.saved_tensors
        m = x.shape[1]
        return (grad_mean[:, None] + 2 * grad_var[:, None] * (x - mean[:, None])) / m


@wrong(MeanAndVariance, bug="mean's gradient not divided by the count")
class MeanUndivided(MeanAndVariance):
    @staticmethod
    def backward(ctx, grad_mean, grad_var):
        x, mean = ctx.saved_tensors
        return grad_mean[:, None] + 2 * grad_var[:, None] * (x - mean[:, None]) / x.shape[1]


@wrong(MeanAndVariance, bug="variance's gradient without its 2")
class VarianceFactor(MeanAndVariance):
    @staticmethod
    def backward(ctx, grad_mean, grad_var):
        x, mean = ctx.saved_tensors
        return (grad_mean[:, None] + grad_var[:, None] * (x - mean[:, None])) / x.shape[1]


@right("n", "n", assume={"r": "positive"})
class PolarToCartesian(sg.Function):
    @staticmethod
    def forward(ctx, r, theta):
        x, y = r * theta.cos(), r * theta.sin()
        ctx.save_for_backward(r, x, y)
        return x, y

    @staticmethod
    def backward(ctx, grad_x, grad_y):
        r, x, y = ctx.saved_tensors
        return (grad_x * x + grad_y * y) / r, grad_y * x - grad_x * y


@wrong(PolarToCartesian, bug="angle's gradient divided by the radius")
class PolarAngle(PolarToCartesian):
    @staticmethod
    def backward(ctx, grad_x, grad_y):
        r, x, y = ctx.saved_tensors
        return (grad_x * x + grad_y * y) / r, (grad_y * x - grad_x * y) / r


@wrong(PolarToCartesian, bug="gradients of x and y exchanged")
class PolarExchanged(PolarToCartesian):
    @staticmethod
    def backward(ctx, grad_x, grad_y):
        r, x, y = ctx.saved_tensors
        return (grad_x * y + grad_y * x) / r, grad_x * x - grad_y * y


@right("n m")
class MaxWithIndices(sg.Function):
    @staticmethod
    def forward(ctx, x):
        values, indices = x.max(1)
        ctx.save_for_backward(indices)
        ctx.mark_non_differentiable(indices)
        ctx.shape = x.shape
        return values, indices

    @staticmethod
    def backward(ctx, grad_values, grad_indices):
        (indices,) = ctx.saved_tensors
        grad = grad_values.new_zeros(ctx.shape)
        return grad.scatter_(1, indices[:, None], grad_values[:, None])


@wrong(MaxWithIndices, bug="written to the first column")
class MaxFirstColumn(MaxWithIndices):
    @staticmethod
    def backward(ctx, grad_values, grad_indices):
        grad = grad_values.new_zeros(ctx.shape)
        grad[:, 0] = grad_values
        return grad


@right("n a+1")
class SplitScaled(sg.Function):
    """Two halves of unequal width, the second scaled."""

    @staticmethod
    def forward(ctx, x):
        left = x[:, 1:]
        right_part = 3 * x[:, :1]
        return left, right_part

    @staticmethod
    def backward(ctx, grad_left, grad_right):
        return sg.cat([3 * grad_right, grad_left], dim=1)


@wrong(SplitScaled, bug="put together in the order of the outputs")
class SplitOrder(SplitScaled):
    @staticmethod
    def backward(ctx, grad_left, grad_right):
        return sg.cat([grad_left, 3 * grad_right], dim=1)


@right("n m", "n m", "n m")
class LstmState(sg.Function):
    """The new cell and the hidden state of a forget gate alone."""

    @staticmethod
    def forward(ctx, cell, candidate, gate):
        f = sg.sigmoid(gate)
        new = f * cell + (1 - f) * candidate
        hidden = sg.tanh(new)
        ctx.save_for_backward(cell, candidate, f, hidden)
        return new, hidden

    @staticmethod
    def backward(ctx, grad_new, grad_hidden):
        cell, candidate, f, hidden = ctx.saved_tensors
        total = grad_new + grad_hidden * (1 - hidden**2)
        return total * f, total * (1 - f), total * (cell - candidate) * f * (1 - f)


@wrong(LstmState, bug="cotangent of the hidden state not added to the cell's")
class LstmStateHidden(LstmState):
    @staticmethod
    def backward(ctx, grad_new, grad_hidden):
        cell, candidate, f, hidden = ctx.saved_tensors
        total = grad_hidden * (1 - hidden**2)
        return total * f, total * (1 - f), total * (cell - candidate) * f * (1 - f)


@wrong(LstmState, bug="candidate forgotten in the gate's gradient")
class LstmStateGate(LstmState):
    @staticmethod
    def backward(ctx, grad_new, grad_hidden):
        cell, _, f, hidden = ctx.saved_tensors
        total = grad_new + grad_hidden * (1 - hidden**2)
        return total * f, total * (1 - f), total * cell * f * (1 - f)


@right("n m", "n m")
class MinMax(sg.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a < b)
        return sg.minimum(a, b), sg.maximum(a, b)

    @staticmethod
    def backward(ctx, grad_low, grad_high):
        (first_low,) = ctx.saved_tensors
        grad_a = sg.where(first_low, grad_low, grad_high)
        grad_b = sg.where(first_low, grad_high, grad_low)
        return grad_a, grad_b


@wrong(MinMax, bug="both gradients of the same branch")
class MinMaxSame(MinMax):
    @staticmethod
    def backward(ctx, grad_low, grad_high):
        (first_low,) = ctx.saved_tensors
        grad_a = sg.where(first_low, grad_low, grad_high)
        return grad_a, grad_a


@right("n m", "n m")
class ResidualAndSum(sg.Function):
    """An output that is also an intermediate of the other."""

    @staticmethod
    def forward(ctx, x, y):
        total = x + 2 * y
        out = total * total
        ctx.save_for_backward(total)
        return out, total

    @staticmethod
    def backward(ctx, grad_out, grad_total):
        (total,) = ctx.saved_tensors
        grad = 2 * grad_out * total + grad_total
        return grad, 2 * grad


@wrong(ResidualAndSum, bug="doubled once too few for y")
class ResidualDouble(ResidualAndSum):
    @staticmethod
    def backward(ctx, grad_out, grad_total):
        (total,) = ctx.saved_tensors
        grad = 2 * grad_out * total
        return grad + grad_total, 2 * grad + grad_total


@right("n m")
class OptionalCotangents(sg.Function):
    """Cotangents that may be missing are None, not zeros."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x * x, x.exp()

    @staticmethod
    def backward(ctx, grad_square, grad_exp):
        (x,) = ctx.saved_tensors
        grad = sg.zeros_like(x)
        if grad_square is not None:
            grad = grad + 2 * x * grad_square
        if grad_exp is not None:
            grad = grad + x.exp() * grad_exp
        return grad


@wrong(OptionalCotangents, bug="the second replaces the first")
class OptionalReplaces(OptionalCotangents):
    @staticmethod
    def backward(ctx, grad_square, grad_exp):
        (x,) = ctx.saved_tensors
        grad = sg.zeros_like(x)
        if grad_square is not None:
            grad = 2 * x * grad_square
        if grad_exp is not None:
            grad = x.exp() * grad_exp
        return grad


@right("n 3*m")
class ThreeChunks(sg.Function):
    """Query, key and value from one projection."""

    @staticmethod
    def forward(ctx, qkv):
        q, k, v = qkv.split(qkv.shape[-1] // 3, dim=-1)
        return q * 0.5, k, v

    @staticmethod
    def backward(ctx, grad_q, grad_k, grad_v):
        return sg.cat((0.5 * grad_q, grad_k, grad_v), dim=-1)


@wrong(ThreeChunks, bug="key and value exchanged")
class ThreeChunksExchanged(ThreeChunks):
    @staticmethod
    def backward(ctx, grad_q, grad_k, grad_v):
        return sg.cat((0.5 * grad_q, grad_v, grad_k), dim=-1)
