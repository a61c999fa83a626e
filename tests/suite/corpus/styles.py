"""Ways of writing: helpers, flags, dicts and lists on ctx, casts, defaults, exporters' methods."""

import symgrad as sg
from tests.suite.marks import right, wrong


def sech_squared(x):
    t = sg.tanh(x)
    return 1 - t * t


@right("n m")
class WithHelper(sg.Function):
    """A module-level helper, and the exporters' static method beside forward."""

    @staticmethod
    def symbolic(graph, x):
        return graph.op("Tanh", x)

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return sg.tanh(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * sech_squared(x)


@wrong(WithHelper, bug="helper applied to the gradient")
class WithHelperGradient(WithHelper):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return x * sech_squared(grad_output)


@right("n m", "n m", static={"reduction": "mean", "squared": True})
class FlaggedLoss(sg.Function):
    """Python branches on strings and flags."""

    @staticmethod
    def forward(ctx, x, y, reduction="mean", squared=False):
        d = x - y
        ctx.save_for_backward(d)
        ctx.reduction, ctx.squared = reduction, squared
        loss = d * d if squared else d.abs()
        if reduction == "mean":
            return loss.mean()
        if reduction == "sum":
            return loss.sum()
        return loss

    @staticmethod
    def backward(ctx, grad_output):
        (d,) = ctx.saved_tensors
        slope = 2 * d if ctx.squared else d.sign()
        grad = grad_output * slope
        if ctx.reduction == "mean":
            grad = grad / d.numel()
        return grad, -grad, None, None


@right(FlaggedLoss, static={"reduction": "sum", "squared": False})
class FlaggedLossSum(FlaggedLoss):
    """The other branch of both flags."""


@right(FlaggedLoss, static={"reduction": "none", "squared": True})
class FlaggedLossNone(FlaggedLoss):
    """No reduction at all."""


@wrong(FlaggedLoss, bug="mean not undone in this branch")
class FlaggedLossMean(FlaggedLoss):
    @staticmethod
    def backward(ctx, grad_output):
        (d,) = ctx.saved_tensors
        slope = 2 * d if ctx.squared else d.sign()
        grad = grad_output * slope
        if ctx.reduction == "batchmean":
            grad = grad / d.shape[0]
        return grad, -grad, None, None


@right("n m", static={"config": {"scale": 0.5, "shift": 2.0}})
class DictionaryArgument(sg.Function):
    @staticmethod
    def forward(ctx, x, config):
        ctx.config = dict(config)
        ctx.cache = {"x": x, "y": (config["scale"] * x + config["shift"]).sin()}
        return ctx.cache["y"]

    @staticmethod
    def backward(ctx, g):
        x, config = ctx.cache["x"], ctx.config
        return g * config["scale"] * (config["scale"] * x + config["shift"]).cos(), None


@wrong(DictionaryArgument, bug="the shift forgotten inside")
class DictionaryShift(DictionaryArgument):
    @staticmethod
    def backward(ctx, g):
        x, config = ctx.cache["x"], ctx.config
        return g * config["scale"] * (config["scale"] * x).cos(), None


@right("n m", "m", None)
class OptionalInputs(sg.Function):
    """Saved Nones; a gradient for each that is there."""

    @staticmethod
    def forward(ctx, x, scale=None, shift=None):
        ctx.save_for_backward(x, scale, shift)
        y = x.exp()
        if scale is not None:
            y = y * scale
        if shift is not None:
            y = y + shift
        return y

    @staticmethod
    def backward(ctx, g):
        x, scale, shift = ctx.saved_tensors
        grad_x = g * x.exp()
        grad_scale = grad_shift = None
        if scale is not None:
            grad_scale = (grad_x).sum(0)
            grad_x = grad_x * scale
        if shift is not None:
            grad_shift = g.sum(0)
        return grad_x, grad_scale, grad_shift


@right(OptionalInputs, specs=("n m", None, "m"))
class OptionalShift(OptionalInputs):
    """The other one given."""


@right(OptionalInputs, specs=("n m", "m", "m"))
class OptionalBoth(OptionalInputs):
    """Both given."""


@wrong(OptionalInputs, bug="scale multiplied before its own gradient was taken")
class OptionalOrder(OptionalInputs):
    @staticmethod
    def backward(ctx, g):
        x, scale, _ = ctx.saved_tensors
        grad_x = g * x.exp() * scale
        return grad_x, grad_x.sum(0), None


@right("n m")
class CastInside(sg.Function):
    """Computed in double, returned in the input's type."""

    @staticmethod
    def forward(ctx, x):
        wide = x.double()
        y = wide / (1 + wide * wide)
        ctx.save_for_backward(wide)
        return y.to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        (wide,) = ctx.saved_tensors
        square = wide * wide
        return (g.double() * (1 - square) / (1 + square) ** 2).type_as(g)


@wrong(CastInside, bug="quotient rule's sign")
class CastInsideSign(CastInside):
    @staticmethod
    def backward(ctx, g):
        (wide,) = ctx.saved_tensors
        square = wide * wide
        return (g.double() * (1 + square) / (1 + square) ** 2).type_as(g)


@right("n m", "n m", "n m")
class ListsOfTensors(sg.Function):
    """Comprehensions over inputs; gradients by a starred tuple."""

    @staticmethod
    def forward(ctx, scale, *inputs):
        ctx.save_for_backward(scale, *inputs)
        return tuple(scale * one for one in inputs)

    @staticmethod
    def backward(ctx, *grads):
        scale, *inputs = ctx.saved_tensors
        grad_scale = sum(g * one for g, one in zip(grads, inputs, strict=True))
        return (grad_scale, *[g * scale for g in grads])


@wrong(ListsOfTensors, bug="only the last input counted for the scale")
class ListsLast(ListsOfTensors):
    @staticmethod
    def backward(ctx, *grads):
        scale, *inputs = ctx.saved_tensors
        return (grads[-1] * inputs[-1], *[g * scale for g in grads])


@wrong(ListsOfTensors, bug="gradients returned in reverse")
class ListsReversed(ListsOfTensors):
    @staticmethod
    def backward(ctx, *grads):
        scale, *inputs = ctx.saved_tensors
        grad_scale = sum(g * one for g, one in zip(grads, inputs, strict=True))
        return (grad_scale, *[g * scale for g in reversed(grads)])


@right("b t d")
class NamedSizes(sg.Function):
    """Sizes unpacked, multiplied, given to view and back."""

    @staticmethod
    def forward(ctx, x):
        b, t, d = x.size()
        flat = x.contiguous().view(b * t, d)
        ctx.sizes = (b, t, d)
        y = flat - flat.mean(0, keepdim=True)
        return y.view(b, t, d)

    @staticmethod
    def backward(ctx, g):
        b, t, d = ctx.sizes
        flat = g.reshape(b * t, d)
        return (flat - flat.sum(0, keepdim=True) / (b * t)).view(b, t, d)


@wrong(NamedSizes, bug="divided by the batch alone", right_if="t == 1")
class NamedSizesBatch(NamedSizes):
    @staticmethod
    def backward(ctx, g):
        b, t, d = ctx.sizes
        flat = g.reshape(b * t, d)
        return (flat - flat.sum(0, keepdim=True) / b).view(b, t, d)


@right("n m")
class NestedFunctions(sg.Function):
    @staticmethod
    def forward(ctx, x):
        def inner(value):
            return value * value.sigmoid()

        ctx.save_for_backward(x)
        return inner(inner(x))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors

        def slope(value):
            s = value.sigmoid()
            return s + value * s * (1 - s)

        return g * slope(x * x.sigmoid()) * slope(x)


@wrong(NestedFunctions, bug="chain rule: inner slope at the outer point")
class NestedPoint(NestedFunctions):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors

        def slope(value):
            s = value.sigmoid()
            return s + value * s * (1 - s)

        return g * slope(x) * slope(x)


@right("n m", static={"eps": 1e-8}, assume={"x": "positive"})
class InterimReturn(sg.Function):
    """An early return for the case that no gradient is wanted."""

    @staticmethod
    def forward(ctx, x, eps=1e-8):
        y = sg.log(x + eps)
        ctx.save_for_backward(x)
        ctx.eps = eps
        return y

    @staticmethod
    def backward(ctx, g):
        if not ctx.needs_input_grad[0]:
            return None, None
        (x,) = ctx.saved_tensors
        return g / (x + ctx.eps), None


@wrong(InterimReturn, bug="the guard inverted")
class InterimInverted(InterimReturn):
    @staticmethod
    def backward(ctx, g):
        if ctx.needs_input_grad[0]:
            return None, None
        (x,) = ctx.saved_tensors
        return g / (x + ctx.eps), None


@right("n m", "m")
class NumpyOperators(sg.Function):
    """Reflected operators, unary plus, floor division of sizes, chained indexing."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        y = 1 - 2 / (3 + x * x)
        return (+y) * (1 - w)[None]

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        denominator = 3 + x * x
        grad_x = g * (1 - w) * 4 * x / denominator**2
        grad_w = -(g * (1 - 2 / denominator)).sum(0)
        return grad_x, grad_w


@wrong(NumpyOperators, bug="sign of the inner derivative")
class NumpyOperatorsSign(NumpyOperators):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        denominator = 3 + x * x
        grad_x = -g * (1 - w) * 4 * x / denominator**2
        return grad_x, -(g * (1 - 2 / denominator)).sum(0)
