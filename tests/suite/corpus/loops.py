"""Python loops and recurrences: polynomials, unrolled cells, Newton steps, scans."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n", static={"coefficients": (1.0, -2.0, 0.5, 3.0)})
class Polynomial(sg.Function):
    """Horner's rule, both ways."""

    @staticmethod
    def forward(ctx, x, coefficients):
        ctx.save_for_backward(x)
        ctx.coefficients = coefficients
        y = sg.zeros_like(x)
        for c in coefficients:
            y = y * x + c
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        y, slope = sg.zeros_like(x), sg.zeros_like(x)
        for c in ctx.coefficients:
            slope = slope * x + y
            y = y * x + c
        return g * slope, None


@wrong(Polynomial, bug="value updated before the slope")
class PolynomialOrder(Polynomial):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        y, slope = sg.zeros_like(x), sg.zeros_like(x)
        for c in ctx.coefficients:
            y = y * x + c
            slope = slope * x + y
        return g * slope, None


@wrong(Polynomial, bug="last coefficient left out of the loop")
class PolynomialShort(Polynomial):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        y, slope = sg.zeros_like(x), sg.zeros_like(x)
        for c in ctx.coefficients[:-1]:
            slope = slope * x + y
            y = y * x + c
        return g * slope, None


@right("b 3 i", "h i", "h h")
class UnrolledRnn(sg.Function):
    """Three steps of a tanh cell."""

    @staticmethod
    def forward(ctx, x, w, u):
        h = sg.zeros(x.shape[0], u.shape[0], dtype=x.dtype)
        states = [h]
        for step in range(3):
            h = sg.tanh(x[:, step] @ w.t() + h @ u.t())
            states.append(h)
        ctx.states = states
        ctx.save_for_backward(x, w, u)
        return h

    @staticmethod
    def backward(ctx, g):
        x, w, u = ctx.saved_tensors
        grad_x, grad_w, grad_u = sg.zeros_like(x), sg.zeros_like(w), sg.zeros_like(u)
        for step in reversed(range(3)):
            a = g * (1 - ctx.states[step + 1] ** 2)
            grad_x[:, step] = a @ w
            grad_w += a.t() @ x[:, step]
            grad_u += a.t() @ ctx.states[step]
            g = a @ u
        return grad_x, grad_w, grad_u


@wrong(UnrolledRnn, bug="state after the step for the state before it")
class UnrolledRnnState(UnrolledRnn):
    @staticmethod
    def backward(ctx, g):
        x, w, u = ctx.saved_tensors
        grad_x, grad_w, grad_u = sg.zeros_like(x), sg.zeros_like(w), sg.zeros_like(u)
        for step in reversed(range(3)):
            a = g * (1 - ctx.states[step + 1] ** 2)
            grad_x[:, step] = a @ w
            grad_w += a.t() @ x[:, step]
            grad_u += a.t() @ ctx.states[step + 1]
            g = a @ u
        return grad_x, grad_w, grad_u


@wrong(UnrolledRnn, bug="truncated after one step: the state's gradient not carried back")
class UnrolledRnnTruncated(UnrolledRnn):
    @staticmethod
    def backward(ctx, g):
        x, w, _ = ctx.saved_tensors
        grad_x, grad_w = sg.zeros_like(x), sg.zeros_like(w)
        a = g * (1 - ctx.states[3] ** 2)
        grad_x[:, 2] = a @ w
        grad_w += a.t() @ x[:, 2]
        return grad_x, grad_w, a.t() @ ctx.states[2]


@wrong(UnrolledRnn, bug="weight gradients overwritten at each step")
class UnrolledRnnOverwritten(UnrolledRnn):
    @staticmethod
    def backward(ctx, g):
        x, w, u = ctx.saved_tensors
        grad_x = sg.zeros_like(x)
        for step in reversed(range(3)):
            a = g * (1 - ctx.states[step + 1] ** 2)
            grad_x[:, step] = a @ w
            grad_w = a.t() @ x[:, step]
            grad_u = a.t() @ ctx.states[step]
            g = a @ u
        return grad_x, grad_w, grad_u


@right("n", static={"steps": 4}, assume={"a": "positive"})
class NewtonReciprocalRoot(sg.Function):
    """Four Newton steps for 1/sqrt(a): the derivative of the iteration, step by step."""

    @staticmethod
    def forward(ctx, a, steps):
        y = 1 / (1 + a)
        ctx.history = []
        for _ in range(steps):
            ctx.history.append(y)
            y = y * (1.5 - 0.5 * a * y * y)
        ctx.save_for_backward(a)
        return y

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        grad_a = sg.zeros_like(a)
        for y in reversed(ctx.history):
            grad_a = grad_a - 0.5 * g * y**3
            g = g * (1.5 - 1.5 * a * y * y)
        return grad_a - g / (1 + a) ** 2, None


@wrong(NewtonReciprocalRoot, bug="the start's dependence on a left out")
class NewtonStart(NewtonReciprocalRoot):
    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        grad_a = sg.zeros_like(a)
        for y in reversed(ctx.history):
            grad_a = grad_a - 0.5 * g * y**3
            g = g * (1.5 - 1.5 * a * y * y)
        return grad_a, None


@wrong(NewtonReciprocalRoot, bug="history walked forwards")
class NewtonForwards(NewtonReciprocalRoot):
    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        grad_a = sg.zeros_like(a)
        for y in ctx.history:
            grad_a = grad_a - 0.5 * g * y**3
            g = g * (1.5 - 1.5 * a * y * y)
        return grad_a - g / (1 + a) ** 2, None


@right("n m", "m", "m", static={"depth": 3})
class ResidualBlocks(sg.Function):
    """A few residual tanh blocks that share their parameters."""

    @staticmethod
    def forward(ctx, x, w, b, depth):
        inputs = []
        for _ in range(depth):
            inputs.append(x)
            x = x + sg.tanh(w * x + b)
        ctx.inputs = inputs
        ctx.save_for_backward(w, b)
        return x

    @staticmethod
    def backward(ctx, g):
        w, b = ctx.saved_tensors
        grad_w = grad_b = 0
        for x in reversed(ctx.inputs):
            a = g * (1 - sg.tanh(w * x + b) ** 2)
            grad_w = grad_w + (a * x).sum(0)
            grad_b = grad_b + a.sum(0)
            g = g + a * w
        return g, grad_w, grad_b, None


@wrong(ResidualBlocks, bug="the skip connection forgotten")
class ResidualSkip(ResidualBlocks):
    @staticmethod
    def backward(ctx, g):
        w, b = ctx.saved_tensors
        grad_w = grad_b = 0
        for x in reversed(ctx.inputs):
            a = g * (1 - sg.tanh(w * x + b) ** 2)
            grad_w = grad_w + (a * x).sum(0)
            grad_b = grad_b + a.sum(0)
            g = a * w
        return g, grad_w, grad_b, None


@wrong(ResidualBlocks, bug="an iterator exhausted before the second loop")
class ResidualExhausted(ResidualBlocks):
    @staticmethod
    def backward(ctx, g):
        w, b = ctx.saved_tensors
        walk = reversed(ctx.inputs)
        grad_w, start = sg.zeros_like(w), g
        for x in walk:
            a = g * (1 - sg.tanh(w * x + b) ** 2)
            grad_w = grad_w + (a * x).sum(0)
            g = g + a * w
        grad_b, h = sg.zeros_like(b), start
        for x in walk:
            a = h * (1 - sg.tanh(w * x + b) ** 2)
            grad_b = grad_b + a.sum(0)
            h = h + a * w
        return g, grad_w, grad_b, None


@right("4 d", "d")
class DecayScan(sg.Function):
    """h[t] = a·h[t - 1] + x[t] over four steps, all states returned."""

    @staticmethod
    def forward(ctx, x, a):
        states = []
        h = sg.zeros_like(a)
        for t in range(x.shape[0]):
            h = a * h + x[t]
            states.append(h)
        y = sg.stack(states)
        ctx.save_for_backward(a, y)
        return y

    @staticmethod
    def backward(ctx, g):
        a, y = ctx.saved_tensors
        grad_x = sg.zeros_like(y)
        grad_a = sg.zeros_like(a)
        carry = sg.zeros_like(a)
        for t in range(y.shape[0] - 1, -1, -1):
            carry = g[t] + carry * a
            grad_x[t] = carry
            if t > 0:
                grad_a += carry * y[t - 1]
        return grad_x, grad_a


@wrong(DecayScan, bug="the state of the same step for that of the step before")
class DecayScanShift(DecayScan):
    @staticmethod
    def backward(ctx, g):
        a, y = ctx.saved_tensors
        grad_x, grad_a, carry = sg.zeros_like(y), sg.zeros_like(a), sg.zeros_like(a)
        for t in range(y.shape[0] - 1, -1, -1):
            carry = g[t] + carry * a
            grad_x[t] = carry
            if t > 0:
                grad_a += carry * y[t]
        return grad_x, grad_a


@wrong(DecayScan, bug="the first step left out of the loop")
class DecayScanFirst(DecayScan):
    @staticmethod
    def backward(ctx, g):
        a, y = ctx.saved_tensors
        grad_x, grad_a, carry = sg.zeros_like(y), sg.zeros_like(a), sg.zeros_like(a)
        for t in range(y.shape[0] - 1, 0, -1):
            carry = g[t] + carry * a
            grad_x[t] = carry
            grad_a += carry * y[t - 1]
        return grad_x, grad_a


@wrong(DecayScan, bug="the carry decays by the step after, not before")
class DecayScanCarry(DecayScan):
    @staticmethod
    def backward(ctx, g):
        a, y = ctx.saved_tensors
        grad_x, grad_a, carry = sg.zeros_like(y), sg.zeros_like(a), sg.zeros_like(a)
        for t in range(y.shape[0] - 1, -1, -1):
            carry = (g[t] + carry) * a
            grad_x[t] = carry
            if t > 0:
                grad_a += carry * y[t - 1]
        return grad_x, grad_a
