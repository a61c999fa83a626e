"""Activations with kinks and regions, and the bugs that live in one region only."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n m")
class Relu(sg.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[input < 0] = 0
        return grad_input


@right(Relu)
class ReluFromOutput(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = sg.relu(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return grad_y * (y > 0)


@wrong(Relu, bug="the cotangent itself is overwritten", kind="mutates")
class ReluInPlace(Relu):
    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        grad_output[input < 0] = 0
        return grad_output


@wrong(Relu, bug="the mask is taken of the gradient (guided ReLU)")
class ReluMaskOfGradient(Relu):
    @staticmethod
    def backward(ctx, grad_output):
        grad_input = grad_output.clone()
        grad_input[grad_output < 0] = 0
        return grad_input


@wrong(Relu, bug="mask inverted")
class ReluInverted(Relu):
    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[input > 0] = 0
        return grad_input


@right("n m", static={"negative_slope": 0.1})
class LeakyRelu(sg.Function):
    @staticmethod
    def forward(ctx, x, negative_slope):
        ctx.negative_slope = negative_slope
        ctx.save_for_backward(x)
        return sg.where(x > 0, x, negative_slope * x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return sg.where(x > 0, grad_output, ctx.negative_slope * grad_output), None


@wrong(LeakyRelu, bug="zero where the slope belongs")
class LeakyReluZero(LeakyRelu):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return sg.where(x > 0, grad_output, sg.zeros_like(grad_output)), None


@wrong(LeakyRelu, bug="slope applied everywhere, and once more below zero")
class LeakyReluTwice(LeakyRelu):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        scaled = ctx.negative_slope * grad_output
        return sg.where(x > 0, grad_output, ctx.negative_slope * scaled), None


@right("n m", "m")
class PRelu(sg.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return sg.where(x >= 0, x, weight * x)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        negative = (x < 0).to(x.dtype)
        grad_x = grad_output * (1 - negative) + grad_output * negative * weight
        return grad_x, (grad_output * x * negative).sum(dim=0)


@wrong(PRelu, bug="weight gradient averaged over the batch")
class PReluMean(PRelu):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = sg.where(x >= 0, grad_output, weight * grad_output)
        return grad_x, (grad_output * x * (x < 0)).mean(0)


@wrong(PRelu, bug="weight gradient over all elements, not the negative ones")
class PReluNoMask(PRelu):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = sg.where(x >= 0, grad_output, weight * grad_output)
        return grad_x, (grad_output * x).sum(0)


@right("n m", static={"alpha": 1.3})
class Elu(sg.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        y = sg.where(x > 0, x, alpha * (sg.exp(x) - 1))
        ctx.save_for_backward(x, y)
        ctx.alpha = alpha
        return y

    @staticmethod
    def backward(ctx, grad_y):
        x, y = ctx.saved_tensors
        return grad_y * sg.where(x > 0, sg.ones_like(x), y + ctx.alpha), None


@wrong(Elu, bug="right only for alpha = 1")
class EluAlpha(Elu):
    @staticmethod
    def backward(ctx, grad_y):
        x, y = ctx.saved_tensors
        return grad_y * sg.where(x > 0, sg.ones_like(x), y + 1), None


@right("n m")
class Selu(sg.Function):
    @staticmethod
    def forward(ctx, x):
        scale, alpha = 1.0507009873554805, 1.6732632423543772
        ctx.save_for_backward(x)
        return scale * (x.clamp(min=0) + (alpha * (x.exp() - 1)).clamp(max=0))

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        scale, alpha = 1.0507009873554805, 1.6732632423543772
        positive = (x > 0).type_as(x)
        return scale * grad_y * (positive + (1 - positive) * alpha * x.exp())


@wrong(Selu, bug="scale left out below zero")
class SeluScale(Selu):
    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        scale, alpha = 1.0507009873554805, 1.6732632423543772
        return grad_y * sg.where(x > 0, sg.full_like(x, scale), alpha * x.exp())


@right("n m")
class HardSwish(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * (x + 3).clamp(0, 6) / 6

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        inner = grad_output * (2 * x + 3) / 6
        grad = sg.where(x > 3, grad_output, inner)
        return sg.where(x < -3, sg.zeros_like(grad), grad)


@wrong(HardSwish, bug="x + 3 for 2x + 3 in the middle region")
class HardSwishMiddle(HardSwish):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad = sg.where(x > 3, grad_output, grad_output * (x + 3) / 6)
        return sg.where(x < -3, sg.zeros_like(grad), grad)


@wrong(HardSwish, bug="the upper region starts at 6")
class HardSwishRegion(HardSwish):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad = sg.where(x > 6, grad_output, grad_output * (2 * x + 3) / 6)
        return sg.where(x < -3, sg.zeros_like(grad), grad)


@right("n m")
class HardSigmoid(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = (x / 6 + 0.5).clamp(0, 1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        inside = (y > 0) & (y < 1)
        return grad_y.masked_fill(~inside, 0) / 6


@wrong(HardSigmoid, bug="only the lower bound masks")
class HardSigmoidUpper(HardSigmoid):
    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return grad_y * (y > 0) / 6


@wrong(HardSigmoid, bug="slope 1/6 forgotten")
class HardSigmoidSlope(HardSigmoid):
    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return grad_y.masked_fill((y <= 0) | (y >= 1), 0)


@right("n m", static={"low": -0.7, "high": 0.4})
class Clamp(sg.Function):
    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x)
        ctx.low, ctx.high = low, high
        return sg.clamp(x, low, high)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        mask = sg.logical_and(x >= ctx.low, x <= ctx.high)
        return grad_output * mask, None, None


@wrong(Clamp, bug="| for &: the mask is always true")
class ClampOr(Clamp):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * sg.logical_or(x >= ctx.low, x <= ctx.high), None, None


@wrong(Clamp, bug="straight through without saying so")
class ClampIdentity(Clamp):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None, None


@wrong(Clamp, bug="limits assumed symmetric")
class ClampSymmetric(Clamp):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x.abs() <= ctx.high), None, None


@right("n m", static={"lambd": 0.5})
class SoftShrink(sg.Function):
    @staticmethod
    def forward(ctx, x, lambd):
        ctx.save_for_backward(x)
        ctx.lambd = lambd
        return x.sign() * sg.relu(x.abs() - lambd)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x.abs() > ctx.lambd), None


@wrong(SoftShrink, bug="absolute value left out of the mask")
class SoftShrinkSide(SoftShrink):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x > ctx.lambd), None


@wrong(SoftShrink, bug="multiplied by the sign")
class SoftShrinkSign(SoftShrink):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.sign() * (x.abs() > ctx.lambd), None


@right("n m")
class SquaredRelu(sg.Function):
    @staticmethod
    def forward(ctx, x):
        r = x.relu()
        ctx.save_for_backward(r)
        return r * r

    @staticmethod
    def backward(ctx, grad_output):
        (r,) = ctx.saved_tensors
        return 2 * r * grad_output


@wrong(SquaredRelu, bug="the factor 2 left out")
class SquaredReluFactor(SquaredRelu):
    @staticmethod
    def backward(ctx, grad_output):
        (r,) = ctx.saved_tensors
        return r * grad_output


@right("n m")
class Softsign(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / (1 + x.abs())

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output / (1 + x.abs()).pow(2)


@wrong(Softsign, bug="quotient rule half done")
class SoftsignQuotient(Softsign):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output / (1 + x.abs())


@right("n m")
class SymmetricLog(sg.Function):
    """sign(x) log(1 + |x|)."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return sg.sign(x) * sg.log1p(sg.abs(x))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output / (sg.abs(x) + 1)


@wrong(SymmetricLog, bug="right only for positive x")
class SymmetricLogSide(SymmetricLog):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output / (x + 1)


@right("n m")
class AbsoluteRoot(sg.Function):
    """sqrt(x²): the absolute value, not x."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).sqrt()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.sign()


@wrong(AbsoluteRoot, bug="sqrt(x²) taken for x")
class AbsoluteRootIdentity(AbsoluteRoot):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output
