"""Attention: plain, causal, biased, linear, multi-head; rotary and relative positions."""

import math

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n d", "m d", "m v")
class Attention(sg.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        scale = 1 / math.sqrt(8.0)
        p = (q @ k.T * scale).softmax(-1)
        ctx.save_for_backward(q, k, v, p)
        ctx.scale = scale
        return p @ v

    @staticmethod
    def backward(ctx, grad_out):
        q, k, v, p = ctx.saved_tensors
        grad_p = grad_out @ v.T
        grad_s = p * (grad_p - (grad_p * p).sum(-1, keepdim=True)) * ctx.scale
        return grad_s @ k, grad_s.T @ q, p.T @ grad_out


@right(Attention)
class AttentionFlashStyle(sg.Function):
    """The row term from the output: Σ dO·O, and the log-sum-exp saved instead of P."""

    @staticmethod
    def forward(ctx, q, k, v):
        ctx.scale = 1 / math.sqrt(8.0)
        s = q @ k.T * ctx.scale
        lse = sg.logsumexp(s, dim=-1, keepdim=True)
        out = sg.exp(s - lse) @ v
        ctx.save_for_backward(q, k, v, out, lse)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        q, k, v, out, lse = ctx.saved_tensors
        p = sg.exp(q @ k.T * ctx.scale - lse)
        delta = (grad_out * out).sum(-1, keepdim=True)
        grad_s = p * (grad_out @ v.T - delta) * ctx.scale
        return grad_s @ k, grad_s.T @ q, p.T @ grad_out


@wrong(Attention, bug="scale left out")
class AttentionScale(Attention):
    @staticmethod
    def backward(ctx, grad_out):
        q, k, v, p = ctx.saved_tensors
        grad_p = grad_out @ v.T
        grad_s = p * (grad_p - (grad_p * p).sum(-1, keepdim=True))
        return grad_s @ k, grad_s.T @ q, p.T @ grad_out


@wrong(Attention, bug="softmax's cross term left out")
class AttentionCross(Attention):
    @staticmethod
    def backward(ctx, grad_out):
        q, k, v, p = ctx.saved_tensors
        grad_s = p * (grad_out @ v.T) * ctx.scale
        return grad_s @ k, grad_s.T @ q, p.T @ grad_out


@wrong(Attention, bug="P not transposed in the gradient of v", kind="error")
class AttentionValue(Attention):
    @staticmethod
    def backward(ctx, grad_out):
        q, k, v, p = ctx.saved_tensors
        grad_p = grad_out @ v.T
        grad_s = p * (grad_p - (grad_p * p).sum(-1, keepdim=True)) * ctx.scale
        return grad_s @ k, grad_s.T @ q, p @ grad_out


@wrong(AttentionFlashStyle, bug="row term averaged, not summed")
class AttentionDelta(AttentionFlashStyle):
    @staticmethod
    def backward(ctx, grad_out):
        q, k, v, out, lse = ctx.saved_tensors
        p = sg.exp(q @ k.T * ctx.scale - lse)
        delta = (grad_out * out).mean(-1, keepdim=True)
        grad_s = p * (grad_out @ v.T - delta) * ctx.scale
        return grad_s @ k, grad_s.T @ q, p.T @ grad_out


@wrong(AttentionFlashStyle, bug="scale applied to the query's gradient only")
class AttentionScaleOnce(AttentionFlashStyle):
    @staticmethod
    def backward(ctx, grad_out):
        q, k, v, out, lse = ctx.saved_tensors
        p = sg.exp(q @ k.T * ctx.scale - lse)
        delta = (grad_out * out).sum(-1, keepdim=True)
        grad_s = p * (grad_out @ v.T - delta)
        return grad_s @ k * ctx.scale, grad_s.T @ q, p.T @ grad_out


@right("b h n d", "b h m d", "b h m d", "h n m")
class BiasedAttention(sg.Function):
    """Batched heads with a learned relative bias that all samples share."""

    @staticmethod
    def forward(ctx, q, k, v, bias):
        scores = sg.matmul(q, k.transpose(-2, -1)) / 2.0 + bias
        p = sg.softmax(scores, dim=-1)
        ctx.save_for_backward(q, k, v, p)
        return sg.matmul(p, v)

    @staticmethod
    def backward(ctx, grad_out):
        q, k, v, p = ctx.saved_tensors
        grad_v = sg.matmul(p.transpose(-2, -1), grad_out)
        grad_p = sg.matmul(grad_out, v.transpose(-2, -1))
        grad_s = p * (grad_p - (p * grad_p).sum(-1, keepdim=True))
        grad_q = sg.matmul(grad_s, k) / 2.0
        grad_k = sg.matmul(grad_s.transpose(-2, -1), q) / 2.0
        return grad_q, grad_k, grad_v, grad_s.sum(0)


@wrong(BiasedAttention, bug="bias's gradient scaled like the scores")
class BiasedAttentionScale(BiasedAttention):
    @staticmethod
    def backward(ctx, grad_out):
        q, k, v, p = ctx.saved_tensors
        grad_v = sg.matmul(p.transpose(-2, -1), grad_out)
        grad_p = sg.matmul(grad_out, v.transpose(-2, -1))
        grad_s = p * (grad_p - (p * grad_p).sum(-1, keepdim=True)) / 2.0
        grad_q = sg.matmul(grad_s, k)
        grad_k = sg.matmul(grad_s.transpose(-2, -1), q)
        return grad_q, grad_k, grad_v, grad_s.sum(0)


@wrong(BiasedAttention, bug="bias's gradient averaged over the batch")
class BiasedAttentionMean(BiasedAttention):
    @staticmethod
    def backward(ctx, grad_out):
        q, k, v, p = ctx.saved_tensors
        grad_v = sg.matmul(p.transpose(-2, -1), grad_out)
        grad_p = sg.matmul(grad_out, v.transpose(-2, -1))
        grad_s = p * (grad_p - (p * grad_p).sum(-1, keepdim=True))
        grad_q = sg.matmul(grad_s, k) / 2.0
        grad_k = sg.matmul(grad_s.transpose(-2, -1), q) / 2.0
        return grad_q, grad_k, grad_v, grad_s.mean(0)


@right("n d", "n d", "n v")
class CausalAttention(sg.Function):
    """Masked by a large negative number before the softmax."""

    @staticmethod
    def forward(ctx, q, k, v):
        n = q.shape[0]
        future = sg.ones(n, n).triu(1) > 0
        s = (q @ k.T).masked_fill(future, float("-inf"))
        p = sg.softmax(s, dim=-1)
        ctx.save_for_backward(q, k, v, p)
        return p @ v

    @staticmethod
    def backward(ctx, grad_out):
        q, k, v, p = ctx.saved_tensors
        grad_p = grad_out @ v.T
        grad_s = p * (grad_p - (grad_p * p).sum(-1, keepdim=True))
        return grad_s @ k, grad_s.T @ q, p.T @ grad_out


@wrong(CausalAttention, bug="probabilities recomputed in backward without the mask")
class CausalAttentionNoMask(CausalAttention):
    @staticmethod
    def backward(ctx, grad_out):
        q, k, v, _ = ctx.saved_tensors
        p = sg.softmax(q @ k.T, dim=-1)
        grad_p = grad_out @ v.T
        grad_s = p * (grad_p - (grad_p * p).sum(-1, keepdim=True))
        return grad_s @ k, grad_s.T @ q, p.T @ grad_out


@right("n d", "n d", "n v")
class CausalByTril(sg.Function):
    """Scores without softmax under a triangular mask, as in retention."""

    @staticmethod
    def forward(ctx, q, k, v):
        ctx.save_for_backward(q, k, v)
        return sg.tril(q @ k.T) @ v

    @staticmethod
    def backward(ctx, g):
        q, k, v = ctx.saved_tensors
        grad_s = sg.tril(g @ v.T)
        return grad_s @ k, grad_s.T @ q, sg.tril(q @ k.T).T @ g


@wrong(CausalByTril, bug="mask of the transposed triangle for v")
class CausalByTrilSide(CausalByTril):
    @staticmethod
    def backward(ctx, g):
        q, k, v = ctx.saved_tensors
        grad_s = sg.tril(g @ v.T)
        return grad_s @ k, grad_s.T @ q, sg.tril((q @ k.T).T) @ g


@wrong(CausalByTril, bug="gradient of the scores not masked")
class CausalByTrilUnmasked(CausalByTril):
    @staticmethod
    def backward(ctx, g):
        q, k, v = ctx.saved_tensors
        grad_s = g @ v.T
        return grad_s @ k, grad_s.T @ q, sg.tril(q @ k.T).T @ g


@right("n d", "m d", "m v", assume={"q": "positive", "k": "positive"})
class LinearAttention(sg.Function):
    """Normalised: (q kᵀ) v over the sum of q kᵀ, in linear order."""

    @staticmethod
    def forward(ctx, q, k, v):
        kv = k.T @ v
        z = (q @ k.sum(0)).unsqueeze(1)
        out = q @ kv / z
        ctx.save_for_backward(q, k, v, out, z)
        return out

    @staticmethod
    def backward(ctx, g):
        q, k, v, out, z = ctx.saved_tensors
        gz = g / z
        gn = -(gz * out).sum(1, keepdim=True)
        grad_q = gz @ (k.T @ v).T + gn * k.sum(0)
        grad_k = v @ (q.T @ gz).T + (gn * q).sum(0)
        return grad_q, grad_k, k @ (q.T @ gz)


@wrong(LinearAttention, bug="quotient rule half done: the normaliser taken for a constant")
class LinearAttentionQuotient(LinearAttention):
    @staticmethod
    def backward(ctx, g):
        q, k, v, _, z = ctx.saved_tensors
        gz = g / z
        return gz @ (k.T @ v).T, v @ (q.T @ gz).T, k @ (q.T @ gz)


@wrong(LinearAttention, bug="normaliser's term only in the query's gradient")
class LinearAttentionKey(LinearAttention):
    @staticmethod
    def backward(ctx, g):
        q, k, v, out, z = ctx.saved_tensors
        gz = g / z
        gn = -(gz * out).sum(1, keepdim=True)
        grad_q = gz @ (k.T @ v).T + gn * k.sum(0)
        return grad_q, v @ (q.T @ gz).T, k @ (q.T @ gz)


@right("b t 2*d", "t d", "t d", assume={"cos": "constant", "sin": "constant"})
class Rotary(sg.Function):
    """Rotary positions on the two halves of the features."""

    @staticmethod
    def forward(ctx, x, cos, sin):
        ctx.save_for_backward(cos, sin)
        a, b = x.chunk(2, -1)
        return sg.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)

    @staticmethod
    def backward(ctx, grad_y):
        cos, sin = ctx.saved_tensors
        ga, gb = grad_y.chunk(2, -1)
        return sg.cat([ga * cos + gb * sin, gb * cos - ga * sin], dim=-1), None, None


@wrong(Rotary, bug="rotated forwards again, not back")
class RotaryForwards(Rotary):
    @staticmethod
    def backward(ctx, grad_y):
        cos, sin = ctx.saved_tensors
        ga, gb = grad_y.chunk(2, -1)
        return sg.cat([ga * cos - gb * sin, gb * cos + ga * sin], dim=-1), None, None


@wrong(Rotary, bug="sign of one half only")
class RotaryOneSign(Rotary):
    @staticmethod
    def backward(ctx, grad_y):
        cos, sin = ctx.saved_tensors
        ga, gb = grad_y.chunk(2, -1)
        return sg.cat([ga * cos + gb * sin, gb * cos + ga * sin], dim=-1), None, None


@right("b t 2*d")
class TwoHeads(sg.Function):
    """Each head's mean over the steps, by view and transpose."""

    @staticmethod
    def forward(ctx, x):
        b, t, width = x.shape
        heads = x.view(b, t, 2, width // 2).transpose(1, 2)
        ctx.steps = t
        return heads.mean(2)

    @staticmethod
    def backward(ctx, grad_output):
        b, heads, d = grad_output.shape
        grad = grad_output.unsqueeze(2).expand(b, heads, ctx.steps, d) / ctx.steps
        return grad.transpose(1, 2).reshape(b, ctx.steps, heads * d)


@wrong(TwoHeads, bug="heads not transposed back before the view", right_if="t == 1")
class TwoHeadsView(TwoHeads):
    @staticmethod
    def backward(ctx, grad_output):
        b, heads, d = grad_output.shape
        grad = grad_output.unsqueeze(2).expand(b, heads, ctx.steps, d) / ctx.steps
        return grad.reshape(b, ctx.steps, heads * d)
