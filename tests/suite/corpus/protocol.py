"""PyTorch's contract: styles, needs_input_grad, optional and non-tensor arguments, Nones."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n i", "o i", "o")
class LinearFunction(sg.Function):
    """The documented example, with setup_context and guards."""

    @staticmethod
    def forward(input, weight, bias):
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def setup_context(ctx, inputs, output):
        input, weight, bias = inputs
        ctx.save_for_backward(input, weight, bias)

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


@right(LinearFunction, specs=("n i", "o i", None))
class LinearWithoutBias(LinearFunction):
    """The same class, called without a bias."""


@wrong(
    LinearFunction, bug="squeeze makes a vector of one a scalar", kind="shape", right_if="o != 1"
)
class LinearSqueeze(LinearFunction):
    @staticmethod
    def backward(ctx, grad_output):
        input, weight, _ = ctx.saved_tensors
        grad_bias = grad_output.sum(0).squeeze(0)
        return grad_output.mm(weight), grad_output.t().mm(input), grad_bias


@wrong(LinearFunction, bug="bias's gradient guarded by the weight's flag and forgotten")
class LinearNoBias(LinearFunction):
    @staticmethod
    def backward(ctx, grad_output):
        input, weight, _ = ctx.saved_tensors
        grad_bias = None
        return grad_output.mm(weight), grad_output.t().mm(input), grad_bias


@wrong(LinearFunction, bug="one gradient too few", kind="error")
class LinearTooFew(LinearFunction):
    @staticmethod
    def backward(ctx, grad_output):
        input, weight, _ = ctx.saved_tensors
        return grad_output.mm(weight), grad_output.t().mm(input)


@right("n m", static={"alpha": 0.5})
class OldStyleScale(sg.Function):
    """Instance methods, from before forward was static."""

    def __init__(self, alpha):
        super().__init__()
        self.alpha = alpha

    def forward(self, x):
        self.save_for_backward(x)
        return x * x * self.alpha

    def backward(self, grad_output):
        (x,) = self.saved_variables
        return 2 * self.alpha * x * grad_output


@wrong(OldStyleScale, bug="alpha forgotten")
class OldStyleAlpha(OldStyleScale):
    def backward(self, grad_output):
        (x,) = self.saved_tensors
        return 2 * x * grad_output


@right("n i", "o i", "o")
class OldStyleLinear(sg.Function):
    def forward(self, input, weight, bias):
        self.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        output += bias.unsqueeze(0).expand_as(output)
        return output

    def backward(self, grad_output):
        input, weight, _ = self.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if self.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if self.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if self.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


@wrong(OldStyleLinear, bug="weight's gradient transposed", kind="shape")
class OldStyleLinearTransposed(OldStyleLinear):
    def backward(self, grad_output):
        input, weight, _ = self.saved_tensors
        return grad_output.mm(weight), input.t().mm(grad_output), grad_output.sum(0)


@right("n m")
class ClassMethods(sg.Function):
    @classmethod
    def forward(cls, ctx, x):
        ctx.save_for_backward(x)
        return cls.value(x)

    @classmethod
    def backward(cls, ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * cls.slope(x)

    @staticmethod
    def value(x):
        return x.sin() * x

    @staticmethod
    def slope(x):
        return x.cos() * x + x.sin()


@wrong(ClassMethods, bug="a helper overridden with the wrong sign")
class ClassMethodsSign(ClassMethods):
    @staticmethod
    def slope(x):
        return x.sin() - x.cos() * x


@right("n m", "n m", "n m")
class VariadicSum(sg.Function):
    @staticmethod
    def forward(ctx, *tensors):
        ctx.count = len(tensors)
        return sum(tensors) / len(tensors)

    @staticmethod
    def backward(ctx, grad_output):
        return (grad_output / ctx.count,) * ctx.count


@wrong(VariadicSum, bug="not divided by the count")
class VariadicUndivided(VariadicSum):
    @staticmethod
    def backward(ctx, grad_output):
        return tuple(grad_output for _ in range(ctx.count))


@right("n m", static={"x_requires_grad": True, "power": 3})
class PlainArguments(sg.Function):
    """Flags and numbers among the arguments; None for each, and surplus Nones."""

    @staticmethod
    def forward(ctx, x, x_requires_grad=True, power=2):
        ctx.x_requires_grad, ctx.power = x_requires_grad, power
        ctx.save_for_backward(x)
        return x**power

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad_x = None
        if ctx.x_requires_grad:
            grad_x = ctx.power * x ** (ctx.power - 1) * grad_output
        return grad_x, None, None, None, None


@wrong(PlainArguments, bug="the flag is read the other way round")
class PlainArgumentsFlag(PlainArguments):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad_x = None
        if not ctx.x_requires_grad:
            grad_x = ctx.power * x ** (ctx.power - 1) * grad_output
        return grad_x, None, None


@right("n m", "m")
class MixedWithAttributes(sg.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.w = w
        ctx.total = x.sum(1, keepdim=True)
        ctx.m = x.size(1)
        return ctx.total * w

    @staticmethod
    @sg.once_differentiable
    def backward(ctx, grad_output):
        grad_x = (grad_output * ctx.w).sum(1, keepdim=True).expand(-1, ctx.m)
        return grad_x, (grad_output * ctx.total).sum(0)


@wrong(MixedWithAttributes, bug="gradients returned in the wrong order", kind="shape")
class MixedSwapped(MixedWithAttributes):
    @staticmethod
    def backward(ctx, grad_output):
        grad_x = (grad_output * ctx.w).sum(1, keepdim=True).expand(-1, ctx.m)
        return (grad_output * ctx.total).sum(0), grad_x


@wrong(MixedWithAttributes, bug="weight left out under the sum")
class MixedWeight(MixedWithAttributes):
    @staticmethod
    def backward(ctx, grad_output):
        grad_x = grad_output.sum(1, keepdim=True).expand(-1, ctx.m)
        return grad_x, (grad_output * ctx.total).sum(0)


@right("n i", "o i", "o")
class GuardedReuse(sg.Function):
    """The product that two branches share is computed under either guard."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        y = sg.relu(x @ weight.t() + bias)
        ctx.save_for_backward(x, weight, y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        x, weight, y = ctx.saved_tensors
        grad_x = grad_weight = grad_bias = None
        grad = grad_output * (y > 0)
        if ctx.needs_input_grad[0]:
            grad_x = grad @ weight
        if ctx.needs_input_grad[1]:
            grad_weight = grad.t() @ x
        if ctx.needs_input_grad[2]:
            grad_bias = grad.sum(0)
        return grad_x, grad_weight, grad_bias


@wrong(GuardedReuse, bug="bias's gradient without the mask")
class GuardedBias(GuardedReuse):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight, y = ctx.saved_tensors
        grad = grad_output * (y > 0)
        return grad @ weight, grad.t() @ x, grad_output.sum(0)


@wrong(GuardedReuse, bug="masked after the product instead of before", kind="error")
class GuardedMaskLate(GuardedReuse):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight, y = ctx.saved_tensors
        grad_x = (grad_output @ weight) * (y > 0)
        grad = grad_output * (y > 0)
        return grad_x, grad.t() @ x, grad.sum(0)
