"""Depth: chains of many layers, a transformer block, an LSTM unrolled eight steps."""

import math

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n m", "m", "m", static={"depth": 12})
class TanhChain(sg.Function):
    """Twelve elementwise layers that share scale and shift."""

    @staticmethod
    def forward(ctx, x, scale, shift, depth):
        states = [x]
        for _ in range(depth):
            x = sg.tanh(scale * x + shift)
            states.append(x)
        ctx.states = states
        ctx.save_for_backward(scale)
        return x

    @staticmethod
    def backward(ctx, g):
        (scale,) = ctx.saved_tensors
        grad_scale, grad_shift = sg.zeros_like(scale), sg.zeros_like(scale)
        for below, above in zip(ctx.states[-2::-1], ctx.states[:0:-1], strict=True):
            a = g * (1 - above * above)
            grad_scale = grad_scale + (a * below).sum(0)
            grad_shift = grad_shift + a.sum(0)
            g = a * scale
        return g, grad_scale, grad_shift, None


@wrong(TanhChain, bug="state below for state above in the slope")
class TanhChainSlope(TanhChain):
    @staticmethod
    def backward(ctx, g):
        (scale,) = ctx.saved_tensors
        grad_scale, grad_shift = sg.zeros_like(scale), sg.zeros_like(scale)
        for below in ctx.states[-2::-1]:
            a = g * (1 - below * below)
            grad_scale = grad_scale + (a * below).sum(0)
            grad_shift = grad_shift + a.sum(0)
            g = a * scale
        return g, grad_scale, grad_shift, None


@wrong(TanhChain, bug="the first layer's contribution left out")
class TanhChainFirst(TanhChain):
    @staticmethod
    def backward(ctx, g):
        (scale,) = ctx.saved_tensors
        grad_scale, grad_shift = sg.zeros_like(scale), sg.zeros_like(scale)
        pairs = list(zip(ctx.states[-2::-1], ctx.states[:0:-1], strict=True))
        for index, (below, above) in enumerate(pairs):
            a = g * (1 - above * above)
            if index < len(pairs) - 1:
                grad_scale = grad_scale + (a * below).sum(0)
                grad_shift = grad_shift + a.sum(0)
            g = a * scale
        return g, grad_scale, grad_shift, None


@right("n d", *["d d"] * 12)
class TwelveLayers(sg.Function):
    """A tanh network of twelve square layers."""

    @staticmethod
    def forward(ctx, x, *weights):
        states = [x]
        for weight in weights:
            states.append(sg.tanh(states[-1] @ weight.t()))
        ctx.save_for_backward(*states, *weights)
        return states[-1]

    @staticmethod
    def backward(ctx, g):
        count = len(ctx.saved_tensors) // 2
        states, weights = ctx.saved_tensors[: count + 1], ctx.saved_tensors[count + 1 :]
        grads = []
        for level in range(count - 1, -1, -1):
            a = g * (1 - states[level + 1] ** 2)
            grads.append(a.t() @ states[level])
            g = a @ weights[level]
        return (g, *reversed(grads))


@wrong(TwelveLayers, bug="weight gradients returned from the last layer to the first")
class TwelveLayersOrder(TwelveLayers):
    @staticmethod
    def backward(ctx, g):
        count = len(ctx.saved_tensors) // 2
        states, weights = ctx.saved_tensors[: count + 1], ctx.saved_tensors[count + 1 :]
        grads = []
        for level in range(count - 1, -1, -1):
            a = g * (1 - states[level + 1] ** 2)
            grads.append(a.t() @ states[level])
            g = a @ weights[level]
        return (g, *grads)


def rms(x):
    return (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()


def rms_backward(x, g):
    r = rms(x)
    return r * g - x * r**3 * (g * x).mean(-1, keepdim=True)


@right("n d", "d d", "d d", "d d", "d d", "f d", "d f")
class TransformerBlock(sg.Function):
    """Pre-norm: attention of one head, then a GELU layer, both with a residual."""

    @staticmethod
    def forward(ctx, x, wq, wk, wv, wo, w1, w2):
        u = x * rms(x)
        q, k, v = u @ wq.T, u @ wk.T, u @ wv.T
        p = (0.25 * q @ k.T).softmax(-1)
        a = p @ v
        y = x + a @ wo.T
        z = y * rms(y)
        h = z @ w1.T
        c = 0.5 * (1 + sg.erf(h / math.sqrt(2)))
        ctx.save_for_backward(x, wq, wk, wv, wo, w1, w2, u, q, k, v, p, a, y, z, h, c)
        return y + (h * c) @ w2.T

    @staticmethod
    def backward(ctx, g):
        x, wq, wk, wv, wo, w1, w2, u, q, k, v, p, a, y, z, h, c = ctx.saved_tensors
        grad_w2 = g.T @ (h * c)
        grad_h = (g @ w2) * (c + h * sg.exp(-0.5 * h * h) / math.sqrt(2 * math.pi))
        grad_w1 = grad_h.T @ z
        grad_y = g + rms_backward(y, grad_h @ w1)
        grad_wo = grad_y.T @ a
        grad_a = grad_y @ wo
        grad_p = grad_a @ v.T
        grad_v = p.T @ grad_a
        grad_s = 0.25 * p * (grad_p - (grad_p * p).sum(-1, keepdim=True))
        grad_q, grad_k = grad_s @ k, grad_s.T @ q
        grad_u = grad_q @ wq + grad_k @ wk + grad_v @ wv
        grad_x = grad_y + rms_backward(x, grad_u)
        return grad_x, grad_q.T @ u, grad_k.T @ u, grad_v.T @ u, grad_wo, grad_w1, grad_w2


@wrong(TransformerBlock, bug="second residual forgotten")
class TransformerResidual(TransformerBlock):
    @staticmethod
    def backward(ctx, g):
        x, wq, wk, wv, wo, w1, w2, u, q, k, v, p, a, y, z, h, c = ctx.saved_tensors
        grad_w2 = g.T @ (h * c)
        grad_h = (g @ w2) * (c + h * sg.exp(-0.5 * h * h) / math.sqrt(2 * math.pi))
        grad_w1 = grad_h.T @ z
        grad_y = rms_backward(y, grad_h @ w1)
        grad_wo = grad_y.T @ a
        grad_a = grad_y @ wo
        grad_p = grad_a @ v.T
        grad_v = p.T @ grad_a
        grad_s = 0.25 * p * (grad_p - (grad_p * p).sum(-1, keepdim=True))
        grad_q, grad_k = grad_s @ k, grad_s.T @ q
        grad_u = grad_q @ wq + grad_k @ wk + grad_v @ wv
        grad_x = grad_y + rms_backward(x, grad_u)
        return grad_x, grad_q.T @ u, grad_k.T @ u, grad_v.T @ u, grad_wo, grad_w1, grad_w2


@wrong(TransformerBlock, bug="projections' gradients from x, not from the normalised input")
class TransformerUnnormalised(TransformerBlock):
    @staticmethod
    def backward(ctx, g):
        x, wq, wk, wv, wo, w1, w2, _, q, k, v, p, a, y, z, h, c = ctx.saved_tensors
        grad_w2 = g.T @ (h * c)
        grad_h = (g @ w2) * (c + h * sg.exp(-0.5 * h * h) / math.sqrt(2 * math.pi))
        grad_w1 = grad_h.T @ z
        grad_y = g + rms_backward(y, grad_h @ w1)
        grad_wo = grad_y.T @ a
        grad_a = grad_y @ wo
        grad_p = grad_a @ v.T
        grad_v = p.T @ grad_a
        grad_s = 0.25 * p * (grad_p - (grad_p * p).sum(-1, keepdim=True))
        grad_q, grad_k = grad_s @ k, grad_s.T @ q
        grad_u = grad_q @ wq + grad_k @ wk + grad_v @ wv
        grad_x = grad_y + rms_backward(x, grad_u)
        return grad_x, grad_q.T @ x, grad_k.T @ x, grad_v.T @ x, grad_wo, grad_w1, grad_w2


@right("8 b i", "4*h i", "4*h h")
class UnrolledLstm(sg.Function):
    """Eight steps of an LSTM from zero states; the last hidden state."""

    @staticmethod
    def forward(ctx, x, w, u):
        b, width = x.shape[1], u.shape[1]
        h, c = sg.zeros(b, width, dtype=x.dtype), sg.zeros(b, width, dtype=x.dtype)
        ctx.tape = []
        for t in range(8):
            i, f, o, n = (x[t] @ w.t() + h @ u.t()).chunk(4, dim=1)
            i, f, o, n = i.sigmoid(), f.sigmoid(), o.sigmoid(), n.tanh()
            new = f * c + i * n
            ctx.tape.append((h, c, i, f, o, n, new.tanh()))
            h, c = o * new.tanh(), new
        ctx.save_for_backward(x, w, u)
        return h

    @staticmethod
    def backward(ctx, g):
        x, w, u = ctx.saved_tensors
        grad_x, grad_w, grad_u = sg.zeros_like(x), sg.zeros_like(w), sg.zeros_like(u)
        carry = sg.zeros_like(g)
        for t in range(7, -1, -1):
            h, c, i, f, o, n, s = ctx.tape[t]
            total = carry + g * o * (1 - s * s)
            gates = sg.cat(
                [
                    total * n * i * (1 - i),
                    total * c * f * (1 - f),
                    g * s * o * (1 - o),
                    total * i * (1 - n * n),
                ],
                dim=1,
            )
            grad_x[t] = gates @ w
            grad_w += gates.t() @ x[t]
            grad_u += gates.t() @ h
            g = gates @ u
            carry = total * f
        return grad_x, grad_w, grad_u


@wrong(UnrolledLstm, bug="the cell's carry not multiplied by the forget gate")
class UnrolledLstmCarry(UnrolledLstm):
    @staticmethod
    def backward(ctx, g):
        x, w, u = ctx.saved_tensors
        grad_x, grad_w, grad_u = sg.zeros_like(x), sg.zeros_like(w), sg.zeros_like(u)
        carry = sg.zeros_like(g)
        for t in range(7, -1, -1):
            h, c, i, f, o, n, s = ctx.tape[t]
            total = carry + g * o * (1 - s * s)
            gates = sg.cat(
                [
                    total * n * i * (1 - i),
                    total * c * f * (1 - f),
                    g * s * o * (1 - o),
                    total * i * (1 - n * n),
                ],
                dim=1,
            )
            grad_x[t] = gates @ w
            grad_w += gates.t() @ x[t]
            grad_u += gates.t() @ h
            g = gates @ u
            carry = total
        return grad_x, grad_w, grad_u


@right("n m", static={"depth": 6})
class GeluChain(sg.Function):
    @staticmethod
    def forward(ctx, x, depth):
        inputs = []
        for _ in range(depth):
            inputs.append(x)
            x = x * 0.5 * (1 + sg.erf(x / math.sqrt(2)))
        ctx.save_for_backward(*inputs)
        return x

    @staticmethod
    def backward(ctx, g):
        for x in reversed(ctx.saved_tensors):
            cdf = 0.5 * (1 + sg.erf(x / math.sqrt(2)))
            g = g * (cdf + x * sg.exp(-0.5 * x * x) / math.sqrt(2 * math.pi))
        return g, None


@wrong(GeluChain, bug="one layer's slope at the next layer's input")
class GeluChainShift(GeluChain):
    @staticmethod
    def backward(ctx, g):
        saved = ctx.saved_tensors
        for x in reversed([saved[0], saved[0], *saved[2:]]):
            cdf = 0.5 * (1 + sg.erf(x / math.sqrt(2)))
            g = g * (cdf + x * sg.exp(-0.5 * x * x) / math.sqrt(2 * math.pi))
        return g, None
