"""Products and recurrences of any length, by scans; scatter with repeated indices."""

import symgrad as sg
from tests.suite.marks import right, wrong


def after(x):
    return sg.cat([x[1:], sg.ones(1, dtype=x.dtype)])


def before(x):
    return sg.cat([sg.ones(1, dtype=x.dtype), x[:-1]])


def backwards(x):
    return x.flip(0).cumsum(0).flip(0)


@right("n")
class ProductByScans(sg.Function):
    """The factors before times those after: right at zeros, too."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return sg.prod(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * before(x).cumprod(0) * after(x).flip(0).cumprod(0).flip(0)


@right(ProductByScans)
class ProductByMatrix(ProductByScans):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        eye = sg.eye(x.shape[0], dtype=x.dtype)
        return g * sg.prod(eye + (1 - eye) * x[None, :], dim=1)


@wrong(ProductByScans, bug="the factor itself among those after it")
class ProductByScansItself(ProductByScans):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * before(x).cumprod(0) * x.flip(0).cumprod(0).flip(0)


@wrong(ProductByScans, bug="the factors before twice", right_if="n == 1")
class ProductByScansTwice(ProductByScans):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * before(x).cumprod(0) * before(x).flip(0).cumprod(0).flip(0)


@right("n", "n", assume={"a": "positive"})
class LinearRecurrence(sg.Function):
    """h[t] = a[t] h[t-1] + x[t], by products up to t."""

    @staticmethod
    def forward(ctx, a, x):
        p = a.cumprod(0)
        h = p * (x / p).cumsum(0)
        ctx.save_for_backward(p, h)
        return h

    @staticmethod
    def backward(ctx, g):
        p, h = ctx.saved_tensors
        grad_x = backwards(g * p) / p
        previous = sg.cat([sg.zeros(1, dtype=h.dtype), h[:-1]])
        return grad_x * previous, grad_x


@wrong(LinearRecurrence, bug="the state after the step, not before it")
class LinearRecurrenceAfter(LinearRecurrence):
    @staticmethod
    def backward(ctx, g):
        p, h = ctx.saved_tensors
        grad_x = backwards(g * p) / p
        return grad_x * h, grad_x


@wrong(LinearRecurrence, bug="summed forwards", right_if="n == 1")
class LinearRecurrenceForwards(LinearRecurrence):
    @staticmethod
    def backward(ctx, g):
        p, h = ctx.saved_tensors
        grad_x = (g * p).cumsum(0) / p
        previous = sg.cat([sg.zeros(1, dtype=h.dtype), h[:-1]])
        return grad_x * previous, grad_x


@wrong(LinearRecurrence, bug="cotangents not weighted by the products", right_if="n == 1")
class LinearRecurrenceWeights(LinearRecurrence):
    @staticmethod
    def backward(ctx, g):
        p, h = ctx.saved_tensors
        grad_x = backwards(g / p) * p
        previous = sg.cat([sg.zeros(1, dtype=h.dtype), h[:-1]])
        return grad_x * previous, grad_x


@right("n")
class SquaredPrefixes(sg.Function):
    @staticmethod
    def forward(ctx, x):
        c = x.cumsum(0)
        ctx.save_for_backward(c)
        return c * c

    @staticmethod
    def backward(ctx, g):
        (c,) = ctx.saved_tensors
        moved = 2 * c * g
        return moved.sum() - moved.cumsum(0) + moved


@wrong(SquaredPrefixes, bug="the element's own share left out")
class SquaredPrefixesOwn(SquaredPrefixes):
    @staticmethod
    def backward(ctx, g):
        (c,) = ctx.saved_tensors
        moved = 2 * c * g
        return moved.sum() - moved.cumsum(0)


@right("v d", "i64[n]", assume={"index": "index v"})
class RowsByProduct(sg.Function):
    """Scattered back by a matrix of zeros and ones; indices may repeat."""

    @staticmethod
    def forward(ctx, weight, index):
        ctx.save_for_backward(index)
        ctx.rows = weight.shape[0]
        return weight[index]

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        hot = (index[:, None] == sg.arange(ctx.rows)[None, :]).to(g.dtype)
        return hot.T @ g, None


@wrong(RowsByProduct, bug="the mean over repetitions, not their sum")
class RowsByMean(RowsByProduct):
    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        hot = (index[:, None] == sg.arange(ctx.rows)[None, :]).to(g.dtype)
        return (hot.T @ g) / hot.sum(0).clamp(min=1)[:, None], None
