"""Smooth elementwise activations, each with the ways people get its derivative wrong."""

import math

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n m")
class Exp(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y


@wrong(Exp, bug="not multiplied by the upstream gradient")
class ExpNoUpstream(Exp):
    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return y


@wrong(Exp, bug="exponential taken twice: the output was saved, not the input")
class ExpTwice(Exp):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.exp()


@right("n m")
class Sigmoid(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = 1 / (1 + sg.exp(-x))
        return ctx.y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.y * (1 - ctx.y)


@wrong(Sigmoid, bug="s(1 + s)")
class SigmoidSign(Sigmoid):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.y * (1 + ctx.y)


@right("n m")
class SigmoidFromInput(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sigmoid()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        e = (-x).exp()
        return grad_output * e / (1 + e) ** 2


@wrong(SigmoidFromInput, bug="the input is used as the output")
class SigmoidInputAsOutput(SigmoidFromInput):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x * (1 - x)


@wrong(SigmoidFromInput, bug="denominator not squared")
class SigmoidDenominator(SigmoidFromInput):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        e = (-x).exp()
        return grad_output * e / (1 + e)


@right("n m")
class Tanh(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = sg.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * (1 - y.pow(2))


@wrong(Tanh, bug="1 - y for 1 - y²")
class TanhNotSquared(Tanh):
    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * (1 - y)


@right("n m", static={"beta": 1.5})
class Swish(sg.Function):
    @staticmethod
    def forward(ctx, x, beta):
        ctx.beta = beta
        ctx.save_for_backward(x)
        return x * sg.sigmoid(beta * x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = sg.sigmoid(ctx.beta * x)
        return grad_output * (s + ctx.beta * x * s * (1 - s)), None


@wrong(Swish, bug="right only for beta = 1")
class SwishBeta(Swish):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = sg.sigmoid(ctx.beta * x)
        return grad_output * (s + x * s * (1 - s)), None


@wrong(Swish, bug="product rule half done")
class SwishHalf(Swish):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = sg.sigmoid(ctx.beta * x)
        return grad_output * (s * (1 - s) * ctx.beta), None


@right("n m")
class MemoryEfficientSwish(sg.Function):
    @staticmethod
    def forward(ctx, i):
        result = i * sg.sigmoid(i)
        ctx.save_for_backward(i)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        i = ctx.saved_tensors[0]
        sigmoid_i = sg.sigmoid(i)
        return grad_output * (sigmoid_i * (1 + i * (1 - sigmoid_i)))


@wrong(MemoryEfficientSwish, bug="parenthesis: 1 + i(1 - s) read as (1 + i)(1 - s)")
class SwishParenthesis(MemoryEfficientSwish):
    @staticmethod
    def backward(ctx, grad_output):
        i = ctx.saved_tensors[0]
        sigmoid_i = sg.sigmoid(i)
        return grad_output * (sigmoid_i * (1 + i) * (1 - sigmoid_i))


@right("n m")
class Mish(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * sg.tanh(sg.softplus(x))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        x_sigmoid = sg.sigmoid(x)
        x_tanh_sp = sg.softplus(x).tanh()
        return grad_output.mul(x_tanh_sp + x * x_sigmoid * (1 - x_tanh_sp * x_tanh_sp))


@right(Mish)
class MishClosedForm(Mish):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        omega = 4 * (x + 1) + 4 * sg.exp(2 * x) + sg.exp(3 * x) + sg.exp(x) * (4 * x + 6)
        delta = 2 * sg.exp(x) + sg.exp(2 * x) + 2
        return grad_output * sg.exp(x) * omega / (delta * delta)


@wrong(Mish, bug="tanh' taken as 1 - t")
class MishTanh(Mish):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        t = sg.softplus(x).tanh()
        return grad_output * (t + x * sg.sigmoid(x) * (1 - t))


@wrong(MishClosedForm, bug="coefficient 6 of omega copied as 4")
class MishCoefficient(MishClosedForm):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        omega = 4 * (x + 1) + 4 * sg.exp(2 * x) + sg.exp(3 * x) + sg.exp(x) * (4 * x + 4)
        delta = 2 * sg.exp(x) + sg.exp(2 * x) + 2
        return grad_output * sg.exp(x) * omega / (delta * delta)


@right("n m")
class GeluErf(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 0.5 * x * (1 + sg.erf(x / math.sqrt(2)))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        cdf = 0.5 * (1 + sg.erf(x / math.sqrt(2)))
        pdf = sg.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        return grad_output * (cdf + x * pdf)


@wrong(GeluErf, bug="exp(-x²) for exp(-x²/2)")
class GeluErfExponent(GeluErf):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        cdf = 0.5 * (1 + sg.erf(x / math.sqrt(2)))
        return grad_output * (cdf + x * sg.exp(-x * x) / math.sqrt(2 * math.pi))


@wrong(GeluErf, bug="density normalised by sqrt(pi) for sqrt(2 pi)")
class GeluErfNorm(GeluErf):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        cdf = 0.5 * (1 + sg.erf(x / math.sqrt(2)))
        return grad_output * (cdf + x * sg.exp(-0.5 * x * x) / math.sqrt(math.pi))


@right("n m")
class GeluTanh(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 0.5 * x * (1 + sg.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        k = math.sqrt(2 / math.pi)
        t = sg.tanh(k * (x + 0.044715 * x**3))
        inner = k * (1 + 3 * 0.044715 * x**2)
        return grad_output * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner)


@wrong(GeluTanh, bug="derivative of the cube without its 3")
class GeluTanhCube(GeluTanh):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        k = math.sqrt(2 / math.pi)
        t = sg.tanh(k * (x + 0.044715 * x**3))
        inner = k * (1 + 0.044715 * x**2)
        return grad_output * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner)


@wrong(GeluTanh, bug="inner derivative forgotten")
class GeluTanhInner(GeluTanh):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        t = sg.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
        return grad_output * (0.5 * (1 + t) + 0.5 * x * (1 - t * t))


@right("n m")
class QuickGelu(sg.Function):
    """The approximation x·sigmoid(1.702 x) of CLIP."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * sg.sigmoid(1.702 * x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = sg.sigmoid(1.702 * x)
        return grad_output * (s + 1.702 * x * (s - s * s))


@wrong(QuickGelu, bug="chain factor 1.702 left out")
class QuickGeluFactor(QuickGelu):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = sg.sigmoid(1.702 * x)
        return grad_output * (s + x * (s - s * s))


@right("n", static={"beta": 2.5})
class Softplus(sg.Function):
    @staticmethod
    def forward(ctx, x, beta=1.0):
        ctx.save_for_backward(x)
        ctx.beta = beta
        return sg.log1p(sg.exp(beta * x)) / beta

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        return grad_y * sg.sigmoid(ctx.beta * x), None


@wrong(Softplus, bug="the 1/beta of forward kept, the inner beta forgotten")
class SoftplusScale(Softplus):
    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        return grad_y * sg.sigmoid(ctx.beta * x) / ctx.beta, None


@wrong(Softplus, bug="sigmoid of -x")
class SoftplusSign(Softplus):
    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        return grad_y * sg.sigmoid(-ctx.beta * x), None


@right("n m")
class LogSigmoid(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = -sg.log1p(sg.exp(-x))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return grad_y * (1 - y.exp())


@wrong(LogSigmoid, bug="sigmoid(x) for 1 - sigmoid(x)")
class LogSigmoidComplement(LogSigmoid):
    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return grad_y * y.exp()


@right("n m", "m")
class Snake(sg.Function):
    """x + sin²(a x)/a with one frequency a channel."""

    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        return x + sg.sin(a * x) ** 2 / a

    @staticmethod
    def backward(ctx, grad_y):
        x, a = ctx.saved_tensors
        s2 = sg.sin(2 * a * x)
        grad_a = grad_y * (x * s2 / a - sg.sin(a * x) ** 2 / a**2)
        return grad_y * (1 + s2), grad_a.sum(0)


@wrong(Snake, bug="quotient rule half done in the gradient of a")
class SnakeQuotient(Snake):
    @staticmethod
    def backward(ctx, grad_y):
        x, a = ctx.saved_tensors
        s2 = sg.sin(2 * a * x)
        return grad_y * (1 + s2), (grad_y * x * s2 / a).sum(0)
