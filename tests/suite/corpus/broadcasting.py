"""Gradients of arguments that were broadcast: what must be summed, over which axes."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n m", "m", "m")
class ScaleShift(sg.Function):
    @staticmethod
    def forward(ctx, x, scale, shift):
        ctx.save_for_backward(x, scale)
        return x * scale + shift

    @staticmethod
    def backward(ctx, grad_y):
        x, scale = ctx.saved_tensors
        return grad_y * scale, (grad_y * x).sum(0), grad_y.sum(0)


@right(ScaleShift)
class ScaleShiftLeftToSumToSize(ScaleShift):
    """The unsummed gradients are summed down to the input's shape by the caller."""

    @staticmethod
    def backward(ctx, grad_y):
        x, scale = ctx.saved_tensors
        return grad_y * scale, grad_y * x, grad_y


@wrong(ScaleShift, bug="gradient of x not multiplied by the scale")
class ScaleShiftNoScale(ScaleShift):
    @staticmethod
    def backward(ctx, grad_y):
        x, _ = ctx.saved_tensors
        return grad_y, (grad_y * x).sum(0), grad_y.sum(0)


@wrong(ScaleShift, bug="mean over the batch for the sum")
class ScaleShiftMean(ScaleShift):
    @staticmethod
    def backward(ctx, grad_y):
        x, scale = ctx.saved_tensors
        return grad_y * scale, (grad_y * x).sum(0), grad_y.mean(0)


@wrong(ScaleShift, bug="scale and shift swapped")
class ScaleShiftSwapped(ScaleShift):
    @staticmethod
    def backward(ctx, grad_y):
        x, scale = ctx.saved_tensors
        return grad_y * scale, grad_y.sum(0), (grad_y * x).sum(0)


@wrong(ScaleShift, bug="summed over the wrong axis", kind="shape")
class ScaleShiftAxis(ScaleShift):
    @staticmethod
    def backward(ctx, grad_y):
        x, scale = ctx.saved_tensors
        return grad_y * scale, (grad_y * x).sum(1), grad_y.sum(0)


@wrong(ScaleShift, bug="product of sums for the sum of products")
class ScaleShiftSumOfProducts(ScaleShift):
    @staticmethod
    def backward(ctx, grad_y):
        x, scale = ctx.saved_tensors
        return grad_y * scale, grad_y.sum(0) * x.sum(0), grad_y.sum(0)


@right("b c h w", "c")
class ChannelScale(sg.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight.view(1, -1, 1, 1)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_weight = (grad_output * x).sum(dim=(0, 2, 3))
        return grad_output * weight[None, :, None, None], grad_weight


@wrong(ChannelScale, bug="spatial axes averaged")
class ChannelScaleMean(ChannelScale):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_weight = (grad_output * x).mean(dim=(2, 3)).sum(0)
        return grad_output * weight[None, :, None, None], grad_weight


@wrong(ChannelScale, bug="weight spread over the last axis", kind="error")
class ChannelScaleLast(ChannelScale):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output * weight, (grad_output * x).sum(dim=(0, 2, 3))


@right("n 1", "1 m")
class OuterSum(sg.Function):
    @staticmethod
    def forward(ctx, a, b):
        return a + b

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.sum(1, keepdim=True), grad_output.sum(0, keepdim=True)


@wrong(OuterSum, bug="keepdim lost", kind="shape")
class OuterSumKeepdim(OuterSum):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.sum(1), grad_output.sum(0, keepdim=True)


@wrong(OuterSum, bug="sign of the second")
class OuterSumSign(OuterSum):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.sum(1, keepdim=True), -grad_output.sum(0, keepdim=True)


@right("n", "m")
class Outer(sg.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a.unsqueeze(1) * b.unsqueeze(0)

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return (grad_output * b).sum(1), (grad_output * a.unsqueeze(1)).sum(0)


@wrong(Outer, bug="b summed with the wrong axis of the gradient", kind="error")
class OuterTransposed(Outer):
    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return (grad_output.t() * b).sum(1), (grad_output * a.unsqueeze(1)).sum(0)


@wrong(Outer, bug="upstream gradient applied after the sum it belongs inside")
class OuterAfterSum(Outer):
    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output.sum(1) * b.sum(), grad_output.sum(0) * a.sum()


@right("n m", "")
class Temperature(sg.Function):
    @staticmethod
    def forward(ctx, logits, temperature):
        ctx.save_for_backward(logits, temperature)
        return logits * sg.exp(temperature)

    @staticmethod
    def backward(ctx, grad_output):
        logits, temperature = ctx.saved_tensors
        scale = sg.exp(temperature)
        return grad_output * scale, (grad_output * logits * scale).sum()


@wrong(Temperature, bug="exponential left out in the temperature's gradient")
class TemperatureExp(Temperature):
    @staticmethod
    def backward(ctx, grad_output):
        logits, temperature = ctx.saved_tensors
        return grad_output * sg.exp(temperature), (grad_output * logits).sum()


@wrong(Temperature, bug="the scalar's gradient averaged")
class TemperatureMean(Temperature):
    @staticmethod
    def backward(ctx, grad_output):
        logits, temperature = ctx.saved_tensors
        scale = sg.exp(temperature)
        return grad_output * scale, (grad_output * logits * scale).mean()


@right("n m", "n 1")
class RowDivide(sg.Function):
    @staticmethod
    def forward(ctx, x, norm):
        y = x / norm
        ctx.save_for_backward(norm, y)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        norm, y = ctx.saved_tensors
        return grad_y / norm, -(grad_y * y).sum(-1, keepdim=True) / norm


@wrong(RowDivide, bug="sum over the rows too")
class RowDivideAllSummed(RowDivide):
    @staticmethod
    def backward(ctx, grad_y):
        norm, y = ctx.saved_tensors
        return grad_y / norm, -(grad_y * y).sum() / norm


@wrong(RowDivide, bug="divided twice by the norm")
class RowDivideTwice(RowDivide):
    @staticmethod
    def backward(ctx, grad_y):
        norm, y = ctx.saved_tensors
        return grad_y / norm, -(grad_y * y).sum(-1, keepdim=True) / norm**2


@right("b t d", "b d", "b d")
class FeatureWiseModulation(sg.Function):
    """FiLM: a scale and a shift a sample, for all its steps."""

    @staticmethod
    def forward(ctx, x, gamma, beta):
        ctx.save_for_backward(x, gamma)
        return (1 + gamma.unsqueeze(1)) * x + beta.unsqueeze(1)

    @staticmethod
    def backward(ctx, grad_output):
        x, gamma = ctx.saved_tensors
        grad_x = grad_output * (1 + gamma.unsqueeze(1))
        return grad_x, (grad_output * x).sum(1), grad_output.sum(1)


@wrong(FeatureWiseModulation, bug="the 1 of 1 + gamma forgotten")
class ModulationOne(FeatureWiseModulation):
    @staticmethod
    def backward(ctx, grad_output):
        x, gamma = ctx.saved_tensors
        return grad_output * gamma.unsqueeze(1), (grad_output * x).sum(1), grad_output.sum(1)


@wrong(FeatureWiseModulation, bug="the 1 of forward counted in the gradient of gamma")
class ModulationExtra(FeatureWiseModulation):
    @staticmethod
    def backward(ctx, grad_output):
        x, gamma = ctx.saved_tensors
        grad_x = grad_output * (1 + gamma.unsqueeze(1))
        return grad_x, (grad_output * (1 + x)).sum(1), grad_output.sum(1)


@right("n m", "m")
class LearnedPower(sg.Function):
    """Softplus-positive scale of each column: x·log(1 + exp(w))."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * sg.log1p(w.exp()).expand_as(x)

    @staticmethod
    def backward(ctx, grad_y):
        x, w = ctx.saved_tensors
        return grad_y * sg.log1p(w.exp()), (grad_y * x).sum(0) * w.sigmoid()


@wrong(LearnedPower, bug="inner derivative sigmoid(w) left out")
class LearnedPowerInner(LearnedPower):
    @staticmethod
    def backward(ctx, grad_y):
        x, w = ctx.saved_tensors
        return grad_y * sg.log1p(w.exp()), (grad_y * x).sum(0)


@right("n 1", static={"copies": 4})
class ExpandLast(sg.Function):
    @staticmethod
    def forward(ctx, x, copies):
        return x.expand(-1, copies)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.sum(1, keepdim=True), None


@wrong(ExpandLast, bug="takes the first copy's gradient")
class ExpandFirstCopy(ExpandLast):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output[:, :1], None


@wrong(ExpandLast, bug="averages over the copies")
class ExpandMean(ExpandLast):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.mean(1, keepdim=True), None
