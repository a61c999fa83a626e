"""Sorting, the greatest few, quantiles and masks that are inputs; angles and far rolls."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n m")
class SortedByInverse(sg.Function):
    """Gathered back by the order of the order."""

    @staticmethod
    def forward(ctx, x):
        values, order = sg.sort(x, dim=1)
        ctx.save_for_backward(order)
        return values

    @staticmethod
    def backward(ctx, g):
        (order,) = ctx.saved_tensors
        return g.gather(1, order.argsort(1))


@right(SortedByInverse)
class SortedByScatter(SortedByInverse):
    @staticmethod
    def backward(ctx, g):
        (order,) = ctx.saved_tensors
        return sg.zeros_like(g).scatter(1, order, g)


@wrong(SortedByInverse, bug="gathered by the order itself", right_if="m == 1 or m == 2")
class SortedByOrder(SortedByInverse):
    @staticmethod
    def backward(ctx, g):
        (order,) = ctx.saved_tensors
        return g.gather(1, order)


@wrong(SortedByInverse, bug="the order of the order of the order", right_if="m == 1 or m == 2")
class SortedByThirdOrder(SortedByInverse):
    @staticmethod
    def backward(ctx, g):
        (order,) = ctx.saved_tensors
        return g.gather(1, order.argsort(1).argsort(1))


@right("n m")
class SumOfSortedSquares(sg.Function):
    """The order does not matter."""

    @staticmethod
    def forward(ctx, x):
        values, _ = sg.sort(x, dim=1)
        ctx.save_for_backward(x)
        return (values * values).sum(1)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g[:, None]


@wrong(SumOfSortedSquares, bug="the sorted values in the places of the others")
class SumOfSortedPlaces(SumOfSortedSquares):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * sg.sort(x, dim=1)[0] * g[:, None]


@right("n m+1")
class SumOfTwoGreatest(sg.Function):
    """Found again by comparing with the second."""

    @staticmethod
    def forward(ctx, x):
        values, _ = sg.topk(x, 2, dim=1)
        ctx.save_for_backward(x, values)
        return values.sum(1)

    @staticmethod
    def backward(ctx, g):
        x, values = ctx.saved_tensors
        return g[:, None] * (x >= values[:, 1:])


@wrong(SumOfTwoGreatest, bug="strictly greater than the second")
class SumOfTwoStrict(SumOfTwoGreatest):
    @staticmethod
    def backward(ctx, g):
        x, values = ctx.saved_tensors
        return g[:, None] * (x > values[:, 1:])


@wrong(SumOfTwoGreatest, bug="not less than the first")
class SumOfTwoFirst(SumOfTwoGreatest):
    @staticmethod
    def backward(ctx, g):
        x, values = ctx.saved_tensors
        return g[:, None] * (x >= values[:, :1])


@wrong(SumOfTwoGreatest, bug="those below the second")
class SumOfTwoBelow(SumOfTwoGreatest):
    @staticmethod
    def backward(ctx, g):
        x, values = ctx.saved_tensors
        return g[:, None] * (x <= values[:, 1:])


@right("n")
class LowerMedian(sg.Function):
    @staticmethod
    def forward(ctx, x):
        values, order = sg.sort(x)
        ctx.middle = (x.shape[0] - 1) // 2
        ctx.save_for_backward(x, order)
        return values[ctx.middle]

    @staticmethod
    def backward(ctx, g):
        x, order = ctx.saved_tensors
        return g * (sg.arange(x.shape[0]) == order[ctx.middle])


@wrong(LowerMedian, bug="the upper median's place")
class LowerMedianUpper(LowerMedian):
    @staticmethod
    def backward(ctx, g):
        x, order = ctx.saved_tensors
        return g * (sg.arange(x.shape[0]) == order[x.shape[0] // 2])


@wrong(LowerMedian, bug="the rank taken for the place")
class LowerMedianRank(LowerMedian):
    @staticmethod
    def backward(ctx, g):
        x, _ = ctx.saved_tensors
        return g * (sg.arange(x.shape[0]) == ctx.middle)


@right("n m")
class LeastBySorting(sg.Function):
    """The first of the sorted, whose gradient goes where the least is."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return sg.sort(x, dim=1)[0][:, 0]

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g[:, None] * (x == x.amin(1, keepdim=True))


@wrong(LeastBySorting, bug="where the greatest is", right_if="m == 1")
class LeastBySortingGreatest(LeastBySorting):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g[:, None] * (x == x.amax(1, keepdim=True))


@right("n m", "n m")
class SoftmaxWhereOpen(sg.Function):
    """Closed where a gate is not positive; a row that is closed throughout is out of the domain."""

    @staticmethod
    def forward(ctx, x, gate):
        scores = sg.where(gate > 0, x, float("-inf"))
        p = sg.softmax(scores, dim=-1)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        return p * (g - (p * g).sum(-1, keepdim=True)), sg.zeros_like(p)


@wrong(SoftmaxWhereOpen, bug="probabilities as if all gates were open")
class SoftmaxGatesIgnored(SoftmaxWhereOpen):
    @staticmethod
    def forward(ctx, x, gate):
        ctx.save_for_backward(sg.softmax(x, dim=-1))
        return sg.softmax(sg.where(gate > 0, x, float("-inf")), dim=-1)


@right("n m", "bool[n m]")
class LogSumExpWhereKept(sg.Function):
    @staticmethod
    def forward(ctx, x, mask):
        first = sg.arange(x.shape[1]) == 0
        scores = x.masked_fill(~(mask | first), float("-inf"))
        total = sg.logsumexp(scores, dim=1)
        ctx.save_for_backward(scores, total)
        return total

    @staticmethod
    def backward(ctx, g):
        scores, total = ctx.saved_tensors
        return g[:, None] * (scores - total[:, None]).exp(), None


@wrong(LogSumExpWhereKept, bug="masked entries count as zeros")
class LogSumExpZeros(LogSumExpWhereKept):
    @staticmethod
    def backward(ctx, g):
        scores, total = ctx.saved_tensors
        finite = sg.where(scores > -1e30, scores, 0.0)
        return g[:, None] * (finite - total[:, None]).exp(), None


@right("n", "n")
class PolarProduct(sg.Function):
    """The radius times the angle."""

    @staticmethod
    def forward(ctx, y, x):
        radius, angle = sg.sqrt(x * x + y * y), sg.atan2(y, x)
        ctx.save_for_backward(y, x, radius, angle)
        return radius * angle

    @staticmethod
    def backward(ctx, g):
        y, x, radius, angle = ctx.saved_tensors
        return g * (y * angle + x) / radius, g * (x * angle - y) / radius


@right(PolarProduct)
class PolarProductTurned(PolarProduct):
    @staticmethod
    def backward(ctx, g):
        _, _, _, angle = ctx.saved_tensors
        sine, cosine = angle.sin(), angle.cos()
        return g * (sine * angle + cosine), g * (cosine * angle - sine)


@wrong(PolarProduct, bug="the arctangent of the quotient, off by pi on the left")
class PolarProductQuotient(PolarProduct):
    @staticmethod
    def backward(ctx, g):
        y, x, radius, _ = ctx.saved_tensors
        angle = (y / x).atan()
        return g * (y * angle + x) / radius, g * (x * angle - y) / radius


@wrong(PolarProduct, bug="sine and cosine exchanged")
class PolarProductExchanged(PolarProduct):
    @staticmethod
    def backward(ctx, g):
        _, _, _, angle = ctx.saved_tensors
        sine, cosine = angle.sin(), angle.cos()
        return g * (cosine * angle + sine), g * (sine * angle - cosine)


@right("n n")
class RolledFlippedTriangle(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x.roll(2, 0).flip(1).tril()

    @staticmethod
    def backward(ctx, g):
        return g.tril().flip(1).roll(-2, 0)


@wrong(RolledFlippedTriangle, bug="rolled on")
class RolledFlippedOn(RolledFlippedTriangle):
    @staticmethod
    def backward(ctx, g):
        return g.tril().flip(1).roll(2, 0)


@right("n m")
class GreatestMagnitude(sg.Function):
    """The maximum norm of rows, found again by comparing."""

    @staticmethod
    def forward(ctx, x):
        top = x.abs().amax(1)
        ctx.save_for_backward(x, top)
        return top

    @staticmethod
    def backward(ctx, g):
        x, top = ctx.saved_tensors
        return g[:, None] * x.sign() * (x.abs() == top[:, None])


@wrong(GreatestMagnitude, bug="without the sign")
class GreatestMagnitudeSign(GreatestMagnitude):
    @staticmethod
    def backward(ctx, g):
        x, top = ctx.saved_tensors
        return g[:, None] * (x.abs() == top[:, None])


@wrong(GreatestMagnitude, bug="positive elements only")
class GreatestMagnitudePositive(GreatestMagnitude):
    @staticmethod
    def backward(ctx, g):
        x, top = ctx.saved_tensors
        return g[:, None] * (x == top[:, None])


@right("n m")
class GreatestSplitEvenly(sg.Function):
    """Shared evenly by all that are greatest."""

    @staticmethod
    def forward(ctx, x):
        top = x.amax(1, keepdim=True)
        ctx.save_for_backward(x, top)
        return top.squeeze(1)

    @staticmethod
    def backward(ctx, g):
        x, top = ctx.saved_tensors
        among = (x == top).to(x.dtype)
        return g[:, None] * among / among.sum(1, keepdim=True)


@wrong(GreatestSplitEvenly, bug="shared by all that are nearly greatest", right_if="m == 1")
class GreatestSplitNearly(GreatestSplitEvenly):
    @staticmethod
    def backward(ctx, g):
        x, top = ctx.saved_tensors
        among = (x >= top - 0.5).to(x.dtype)
        return g[:, None] * among / among.sum(1, keepdim=True)


@right("n+2")
class GreatestOfThree(sg.Function):
    """A sliding maximum, found again by comparing."""

    @staticmethod
    def forward(ctx, x):
        top = sg.maximum(sg.maximum(x[:-2], x[1:-1]), x[2:])
        ctx.save_for_backward(x, top)
        return top

    @staticmethod
    def backward(ctx, g):
        x, top = ctx.saved_tensors
        grad = sg.zeros_like(x)
        grad[:-2] += g * (x[:-2] == top)
        grad[1:-1] += g * (x[1:-1] == top)
        grad[2:] += g * (x[2:] == top)
        return grad


@wrong(GreatestOfThree, bug="the middle compared with the left only")
class GreatestOfTwo(GreatestOfThree):
    @staticmethod
    def backward(ctx, g):
        x, top = ctx.saved_tensors
        grad = sg.zeros_like(x)
        grad[:-2] += g * (x[:-2] == top)
        grad[1:-1] += g * (x[1:-1] >= x[:-2])
        grad[2:] += g * (x[2:] == top)
        return grad
