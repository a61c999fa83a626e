"""Gated and two-argument elementwise ops: GLU variants, products, quotients, powers."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n 2*m")
class Glu(sg.Function):
    @staticmethod
    def forward(ctx, x):
        a, b = x.chunk(2, dim=-1)
        s = b.sigmoid()
        ctx.save_for_backward(a, s)
        return a * s

    @staticmethod
    def backward(ctx, grad_output):
        a, s = ctx.saved_tensors
        return sg.cat([grad_output * s, grad_output * a * s * (1 - s)], dim=-1)


@wrong(Glu, bug="halves concatenated in the wrong order")
class GluOrder(Glu):
    @staticmethod
    def backward(ctx, grad_output):
        a, s = ctx.saved_tensors
        return sg.cat([grad_output * a * s * (1 - s), grad_output * s], dim=-1)


@wrong(Glu, bug="the gate's derivative misses 1 - s")
class GluGate(Glu):
    @staticmethod
    def backward(ctx, grad_output):
        a, s = ctx.saved_tensors
        return sg.cat([grad_output * s, grad_output * a * s], dim=-1)


@wrong(Glu, bug="halves concatenated along the batch", kind="shape")
class GluAxis(Glu):
    @staticmethod
    def backward(ctx, grad_output):
        a, s = ctx.saved_tensors
        return sg.cat([grad_output * s, grad_output * a * s * (1 - s)], dim=0)


@right("n m", "n m")
class SwiGlu(sg.Function):
    """silu(gate)·up, as fused kernels of language models have it."""

    @staticmethod
    def forward(ctx, gate, up):
        ctx.save_for_backward(gate, up)
        return gate * sg.sigmoid(gate) * up

    @staticmethod
    def backward(ctx, grad_output):
        gate, up = ctx.saved_tensors
        s = sg.sigmoid(gate)
        silu = gate * s
        grad_gate = grad_output * up * (silu * (1 - s) + s)
        return grad_gate, grad_output * silu


@wrong(SwiGlu, bug="gradients returned in the wrong order")
class SwiGluSwapped(SwiGlu):
    @staticmethod
    def backward(ctx, grad_output):
        gate, up = ctx.saved_tensors
        s = sg.sigmoid(gate)
        silu = gate * s
        return grad_output * silu, grad_output * up * (silu * (1 - s) + s)


@wrong(SwiGlu, bug="derivative of silu taken as s(1 - s)")
class SwiGluDerivative(SwiGlu):
    @staticmethod
    def backward(ctx, grad_output):
        gate, up = ctx.saved_tensors
        s = sg.sigmoid(gate)
        return grad_output * up * s * (1 - s), grad_output * gate * s


@wrong(SwiGlu, bug="gradient of the gate not multiplied by up")
class SwiGluNoUp(SwiGlu):
    @staticmethod
    def backward(ctx, grad_output):
        gate, _ = ctx.saved_tensors
        s = sg.sigmoid(gate)
        return grad_output * (s + gate * s * (1 - s)), grad_output * gate * s


@right("n m", "n m")
class GeGlu(sg.Function):
    """gate·Φ(gate)·up with the error function."""

    @staticmethod
    def forward(ctx, gate, up):
        cdf = 0.5 * (1 + sg.erf(gate * 0.7071067811865476))
        ctx.save_for_backward(gate, up, cdf)
        return gate * cdf * up

    @staticmethod
    def backward(ctx, grad_output):
        gate, up, cdf = ctx.saved_tensors
        density = 0.3989422804014327 * sg.exp(-0.5 * gate.square())
        return grad_output * up * (cdf + gate * density), grad_output * gate * cdf


@wrong(GeGlu, bug="sign of the density term")
class GeGluSign(GeGlu):
    @staticmethod
    def backward(ctx, grad_output):
        gate, up, cdf = ctx.saved_tensors
        density = 0.3989422804014327 * sg.exp(-0.5 * gate.square())
        return grad_output * up * (cdf - gate * density), grad_output * gate * cdf


@right("n m", "n m")
class Divide(sg.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a / b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output / b, -grad_output * a / (b * b)


@wrong(Divide, bug="sign of the denominator's gradient")
class DivideSign(Divide):
    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output / b, grad_output * a / (b * b)


@wrong(Divide, bug="denominator not squared")
class DivideSquare(Divide):
    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output / b, -grad_output * a / b


@right("n m", "n m", assume={"x": "positive"})
class PowerOf(sg.Function):
    @staticmethod
    def forward(ctx, x, p):
        y = x**p
        ctx.save_for_backward(x, p, y)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        x, p, y = ctx.saved_tensors
        return grad_y * p * y / x, grad_y * y * x.log()


@wrong(PowerOf, bug="logarithm of the output, not of the base")
class PowerLog(PowerOf):
    @staticmethod
    def backward(ctx, grad_y):
        x, p, y = ctx.saved_tensors
        return grad_y * p * y / x, grad_y * y * y.log()


@wrong(PowerOf, bug="exponent not lowered by one")
class PowerExponent(PowerOf):
    @staticmethod
    def backward(ctx, grad_y):
        x, p, y = ctx.saved_tensors
        return grad_y * p * y, grad_y * y * x.log()


@right("n m", "n m")
class Hypot(sg.Function):
    @staticmethod
    def forward(ctx, x, y):
        r = sg.sqrt(x * x + y * y)
        ctx.save_for_backward(x, y, r)
        return r

    @staticmethod
    def backward(ctx, grad_r):
        x, y, r = ctx.saved_tensors
        return grad_r * x / r, grad_r * y / r


@wrong(Hypot, bug="x/r² for x/r")
class HypotSquare(Hypot):
    @staticmethod
    def backward(ctx, grad_r):
        x, y, r = ctx.saved_tensors
        return grad_r * x / (r * r), grad_r * y / (r * r)


@right("n m", "n m")
class Angle(sg.Function):
    @staticmethod
    def forward(ctx, y, x):
        ctx.save_for_backward(y, x)
        return sg.atan2(y, x)

    @staticmethod
    def backward(ctx, grad_output):
        y, x = ctx.saved_tensors
        r2 = x * x + y * y
        return grad_output * x / r2, -grad_output * y / r2


@wrong(Angle, bug="sign on the wrong argument")
class AngleSign(Angle):
    @staticmethod
    def backward(ctx, grad_output):
        y, x = ctx.saved_tensors
        r2 = x * x + y * y
        return -grad_output * x / r2, grad_output * y / r2


@right("n m", "n m")
class LogAddExp(sg.Function):
    @staticmethod
    def forward(ctx, a, b):
        top = sg.maximum(a, b)
        y = top + sg.log(sg.exp(a - top) + sg.exp(b - top))
        ctx.save_for_backward(a, b, y)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        a, b, y = ctx.saved_tensors
        return grad_y * sg.exp(a - y), grad_y * sg.exp(b - y)


@wrong(LogAddExp, bug="the maximum treated as the whole sum")
class LogAddExpMax(LogAddExp):
    @staticmethod
    def backward(ctx, grad_y):
        a, b, _ = ctx.saved_tensors
        top = sg.maximum(a, b)
        return grad_y * sg.exp(a - top), grad_y * sg.exp(b - top)


@right("n m", "n m", "n m")
class Lerp(sg.Function):
    @staticmethod
    def forward(ctx, start, end, weight):
        ctx.save_for_backward(start, end, weight)
        return start + weight * (end - start)

    @staticmethod
    def backward(ctx, grad_output):
        start, end, weight = ctx.saved_tensors
        return grad_output * (1 - weight), grad_output * weight, grad_output * (end - start)


@wrong(Lerp, bug="start and end swapped")
class LerpSwapped(Lerp):
    @staticmethod
    def backward(ctx, grad_output):
        start, end, weight = ctx.saved_tensors
        return grad_output * weight, grad_output * (1 - weight), grad_output * (end - start)


@wrong(Lerp, bug="sign of the weight's gradient")
class LerpSign(Lerp):
    @staticmethod
    def backward(ctx, grad_output):
        start, end, weight = ctx.saved_tensors
        return grad_output * (1 - weight), grad_output * weight, grad_output * (start - end)


@right("n m", "n m")
class MaximumByMask(sg.Function):
    """Elementwise maximum with a mask saved as a tensor."""

    @staticmethod
    def forward(ctx, a, b):
        first = a > b
        ctx.save_for_backward(first)
        return sg.where(first, a, b)

    @staticmethod
    def backward(ctx, grad_output):
        (first,) = ctx.saved_tensors
        zero = sg.zeros_like(grad_output)
        return sg.where(first, grad_output, zero), sg.where(first, zero, grad_output)


@wrong(MaximumByMask, bug="both get the whole gradient")
class MaximumBoth(MaximumByMask):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output


@wrong(MaximumByMask, bug="branches of the mask swapped")
class MaximumSwapped(MaximumByMask):
    @staticmethod
    def backward(ctx, grad_output):
        (first,) = ctx.saved_tensors
        zero = sg.zeros_like(grad_output)
        return sg.where(first, zero, grad_output), sg.where(first, grad_output, zero)
