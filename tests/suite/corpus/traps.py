"""Bugs that hide: in sizes and values nobody tries, behind guards, in saturated regions."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n")
class RollFar(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x.roll(15, 0)

    @staticmethod
    def backward(ctx, g):
        return g.roll(-15, 0)


@wrong(RollFar, bug="rolled on: right only for sizes that divide thirty", shown_by={"n": 4})
class RollFarOn(RollFar):
    @staticmethod
    def backward(ctx, g):
        return g.roll(15, 0)


@right("n m")
class BranchOnSize(sg.Function):
    """Two ways to the same gradient, chosen by the number of rows."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).sum(0)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if x.shape[0] > 8:
            return x * g.expand_as(x) + g * x
        return 2 * g * x


@wrong(
    BranchOnSize,
    bug="the branch for many rows lacks its factor",
    right_if="n <= 8",
    shown_by={"n": 9},
)
class BranchOnManyRows(BranchOnSize):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if x.shape[0] > 8:
            return g * x
        return 2 * g * x


@wrong(BranchOnSize, bug="wrong where the number of columns divides by four", shown_by={"m": 4})
class BranchOnMultiple(BranchOnSize):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if x.shape[1] % 4 == 0:
            return g * x
        return 2 * g * x


def spread(first, second, x, half):
    left = first[:, None].expand(x.shape[0], half)
    return sg.cat([left, second[:, None] * x[:, half:]], dim=1)


@right("n m+1")
class UnequalHalves(sg.Function):
    """Sums of the first half and of the squares of the rest, of odd widths too."""

    @staticmethod
    def forward(ctx, x):
        half = x.shape[1] // 2
        ctx.half = half
        ctx.save_for_backward(x)
        return x[:, :half].sum(1), x[:, half:].square().sum(1) / 2

    @staticmethod
    def backward(ctx, first, second):
        (x,) = ctx.saved_tensors
        return spread(first, second, x, ctx.half)


@wrong(UnequalHalves, bug="the middle column of odd widths left out")
class UnequalHalvesMiddle(UnequalHalves):
    @staticmethod
    def backward(ctx, first, second):
        (x,) = ctx.saved_tensors
        grad = sg.zeros_like(x)
        half = ctx.half
        grad[:, :half] = first[:, None]
        start = x.shape[1] - half
        grad[:, start:] = second[:, None] * x[:, start:]
        return grad


@right("n", "n")
class HighThreshold(sg.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return sg.where(x > 1000, x * y, x + y)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        far = x > 1000
        one = sg.ones_like(g)
        return g * sg.where(far, y, one), g * sg.where(far, x, one)


@wrong(HighThreshold, bug="wrong beyond the threshold", shown_by={"x": "(1001, 1002)"})
class HighThresholdFar(HighThreshold):
    @staticmethod
    def backward(ctx, g):
        return g, g


@wrong("n", bug="wrong in a window of width 0.001", shown_by={"x": "(2.0001, 2.0009)"})
class NarrowWindow(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        window = (x > 2.0) & (x < 2.001)
        return sg.where(window, 3 * g * x, 2 * g * x)


@wrong("n m", bug="wrong where a row's sum exceeds thirty", shown_by={"x": "(31, 40)"})
class HeavyRows(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square().sum(1)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        light = (x.sum(1, keepdim=True) < 30).to(x.dtype)
        return 2 * light * x * g[:, None]


@wrong(
    "v d",
    "i64[n]",
    bug="row nine gets no gradient",
    assume={"index": "index v"},
    shown_by={"v": 10, "n": 100},
)
class SpecialIndex(sg.Function):
    @staticmethod
    def forward(ctx, weight, index):
        ctx.save_for_backward(index)
        ctx.shape = weight.shape
        return weight[index]

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        kept = g * (index != 9).to(g.dtype)[:, None]
        return sg.zeros(ctx.shape, dtype=g.dtype).index_add(0, index, kept), None


@right("n m", static={"low": -0.5, "high": 0.5})
class ClampFromOutput(sg.Function):
    """The mask from the output, strict: inside only."""

    @staticmethod
    def forward(ctx, x, low, high):
        y = x.clamp(low, high)
        ctx.save_for_backward(y)
        ctx.low, ctx.high = low, high
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * ((y > ctx.low) & (y < ctx.high)), None, None


@wrong(ClampFromOutput, bug="inclusive mask from a saturated output: always true")
class ClampInclusive(ClampFromOutput):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * ((y >= ctx.low) & (y <= ctx.high)), None, None


@right("n m")
class ReluByEquality(sg.Function):
    """Zeros of the output have no gradient."""

    @staticmethod
    def forward(ctx, x):
        y = x.relu()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        grad = g.clone()
        grad[y == 0] = 0
        return grad


@wrong(ReluByEquality, bug="y >= 0 holds everywhere")
class ReluInclusive(ReluByEquality):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (y >= 0)


@right("n m")
class MaxOfRelu(sg.Function):
    """Rows without a positive element have no gradient."""

    @staticmethod
    def forward(ctx, x):
        y = x.amax(-1)
        ctx.save_for_backward(x, y)
        return y.relu()

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (x == y[:, None]) * (g * (y > 0))[:, None]


@wrong(MaxOfRelu, bug="rows of negatives keep a gradient")
class MaxOfReluNegative(MaxOfRelu):
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (x == y[:, None]) * g[:, None]


@wrong("n m", bug="ties of the rectified zeros share a gradient that is not there")
class ReluOfMaxTies(sg.Function):
    @staticmethod
    def forward(ctx, x):
        r = x.relu()
        y = r.amax(-1, keepdim=True)
        ctx.save_for_backward(r, y)
        return y.squeeze(-1)

    @staticmethod
    def backward(ctx, g):
        r, y = ctx.saved_tensors
        hit = (r == y).to(r.dtype)
        return hit / hit.sum(-1, keepdim=True) * g.unsqueeze(-1)


@right("n m", "o m")
class GuardedProducts(sg.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = None
        if ctx.needs_input_grad[0]:
            grad_x = g @ weight
        if ctx.needs_input_grad[1]:
            grad_weight = g.t() @ x
        return grad_x, grad_weight


@wrong(GuardedProducts, bug="guards exchanged", kind="guards")
class GuardsExchanged(GuardedProducts):
    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = None
        if ctx.needs_input_grad[1]:
            grad_x = g @ weight
        if ctx.needs_input_grad[0]:
            grad_weight = g.t() @ x
        return grad_x, grad_weight


@wrong(GuardedProducts, bug="weight's gradient computed under the first guard", kind="guards")
class GuardNested(GuardedProducts):
    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = None
        if ctx.needs_input_grad[0]:
            grad_x = g @ weight
            if ctx.needs_input_grad[1]:
                grad_weight = g.t() @ x
        return grad_x, grad_weight


@wrong(GuardedProducts, bug="a name bound under the first guard only", kind="guards")
class GuardUnbound(GuardedProducts):
    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = None
        if ctx.needs_input_grad[0]:
            doubled = 2 * g
            grad_x = doubled @ weight / 2
        if ctx.needs_input_grad[1]:
            grad_weight = doubled.t() @ x / 2
        return grad_x, grad_weight


@wrong("n", bug="states popped: a second call finds none", kind="error", static={"depth": 3})
class PoppedStates(sg.Function):
    @staticmethod
    def forward(ctx, x, depth):
        ctx.states = []
        for _ in range(depth):
            ctx.states.append(x)
            x = x.sin()
        return x

    @staticmethod
    def backward(ctx, g):
        while True:
            g = g * ctx.states.pop().cos()
            if not ctx.states:
                return g, None


@wrong("n", bug="a number on ctx doubled at every call", kind="reentrant")
class GrowingFactor(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.factor = 2
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        grad = ctx.factor * g * x
        ctx.factor *= 2
        return grad
