"""Packed projections: one product for several weights, its result taken apart again."""

import math

import symgrad as sg
from tests.suite.marks import right
from tests.suite.twins import twins


@twins(
    PackedSwiGluGate=("1 + a * (1 - s)", "1 + (1 - s)", "the input of the gate left out"),
    PackedSwiGluSwap=("sg.cat([da, db], 1)", "sg.cat([db, da], 1)", "halves exchanged"),
    PackedSwiGluUp=("g * b * s", "g * s", "the other half left out"),
)
@right("n d", "f d", "f d")
class PackedSwiGlu(sg.Function):
    """Both projections as one product with weights joined on the way, halves by chunk."""

    @staticmethod
    def forward(ctx, x, wg, wu):
        h = x @ sg.cat([wg, wu], 0).t()
        a, b = h.chunk(2, 1)
        ctx.save_for_backward(x, wg, wu, a, b)
        return a * a.sigmoid() * b

    @staticmethod
    def backward(ctx, g):
        x, wg, wu, a, b = ctx.saved_tensors
        s = a.sigmoid()
        da = g * b * s * (1 + a * (1 - s))
        db = g * a * s
        dh = sg.cat([da, db], 1)
        dw = dh.t() @ x
        return dh @ sg.cat([wg, wu], 0), dw[: wg.shape[0]], dw[wg.shape[0] :]


@twins(
    JoinedInputsSecond=("dw[:, a.shape[1] :]", "dw[:, a.shape[1] :] * 2", "factor 2"),
    JoinedInputsSign=("dy = g *", "dy = -g *", "sign"),
    JoinedInputsMul=(
        "dy.t() @ sg.cat([a, b], 1)",
        "dy.t() @ sg.cat([a, 2 * b], 1)",
        "factor 2 in the second half",
    ),
)
@right("n p", "n q", "f p", "f q")
class JoinedInputs(sg.Function):
    """cat([a, b], 1) @ cat([wg, wu], 1).t()."""

    @staticmethod
    def forward(ctx, a, b, wg, wu):
        y = sg.cat([a, b], 1) @ sg.cat([wg, wu], 1).t()
        s = y.sigmoid()
        ctx.save_for_backward(a, b, wg, wu, s)
        return y * s

    @staticmethod
    def backward(ctx, g):
        a, b, wg, wu, s = ctx.saved_tensors
        y = a @ wg.t() + b @ wu.t()
        dy = g * (s + y * s * (1 - s))
        dx = dy @ sg.cat([wg, wu], 1)
        dw = dy.t() @ sg.cat([a, b], 1)
        return (
            dx.narrow(1, 0, a.shape[1]),
            dx.narrow(1, a.shape[1], b.shape[1]),
            dw[:, : a.shape[1]],
            dw[:, a.shape[1] :],
        )


@twins(
    NarrowedSwiGluX=("dg @ wg + du @ wu", "dg @ wg", "a path left out"),
    NarrowedSwiGluDown=("hidden.t() @ g", "gate.t() @ g", "gate for hidden"),
    NarrowedSwiGluSigmoid=("1 - s)", "1 + s)", "sign"),
)
@right("*batch d", "2*f d", "e f", assume={})
class NarrowedSwiGlu(sg.Function):
    """One packed weight, narrowed in backward; a down projection behind it."""

    @staticmethod
    def forward(ctx, x, w, down):
        up = x @ w.t()
        f = w.shape[0] // 2
        gate, value = up[..., :f], up[..., f:]
        s = sg.sigmoid(gate)
        ctx.save_for_backward(x, w, down, gate, value, s)
        return (gate * s * value) @ down.t()

    @staticmethod
    def backward(ctx, g):
        x, w, down, gate, value, s = ctx.saved_tensors
        f = down.shape[1]
        wg, wu = w.narrow(0, 0, f), w.narrow(0, f, f)
        hidden = gate * s * value
        x, g2 = x.reshape(-1, x.shape[-1]), g
        g = g.reshape(-1, g.shape[-1])
        gate, value, s = (t.reshape(-1, f) for t in (gate, value, s))
        hidden = hidden.reshape(-1, f)
        dh = g @ down
        dg = dh * value * (s + gate * s * (1 - s))
        du = dh * gate * s
        dx = dg @ wg + du @ wu
        ddown = (hidden.t() @ g).t()
        dx = dx.reshape(*g2.shape[:-1], wg.shape[1])
        return dx, sg.cat([dg.t() @ x, du.t() @ x]), ddown


@twins(
    GeGluCdf=("cdf + a * pdf", "cdf", "density left out"),
    GeGluOrder=("sg.cat((da, db), dim=-1)", "sg.cat((db, da), dim=-1)", "halves exchanged"),
    GeGluConstant=("math.sqrt(2 * math.pi)", "math.sqrt(2)", "constant"),
)
@right("*batch 2*f")
class GeGluHalves(sg.Function):
    @staticmethod
    def forward(ctx, h):
        a, b = h.chunk(2, dim=-1)
        cdf = 0.5 * (1 + sg.erf(a / math.sqrt(2)))
        ctx.save_for_backward(a, b, cdf)
        return a * cdf * b

    @staticmethod
    def backward(ctx, g):
        a, b, cdf = ctx.saved_tensors
        pdf = sg.exp(-0.5 * a * a) / math.sqrt(2 * math.pi)
        da = g * b * (cdf + a * pdf)
        db = g * a * cdf
        return sg.cat((da, db), dim=-1)


@twins(
    TanhGeGluInner=("1 + 3 * 0.044715 * a * a", "1 + 0.044715 * a * a", "factor 3"),
    TanhGeGluTanh=("1 - t * t", "1 - t", "not squared"),
    TanhGeGluWeight=("dh.t() @ x", "g.t() @ x", "shape", {"kind": "shape"}),
)
@right("n d", "2*f d")
class TanhGeGlu(sg.Function):
    @staticmethod
    def forward(ctx, x, w):
        h = x @ w.t()
        a, b = sg.split(h, h.shape[1] // 2, 1)
        t = sg.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3))
        ctx.save_for_backward(x, w, a, b, t)
        return 0.5 * a * (1 + t) * b

    @staticmethod
    def backward(ctx, g):
        x, w, a, b, t = ctx.saved_tensors
        dt = (1 - t * t) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * a * a)
        da = g * b * 0.5 * (1 + t + a * dt)
        db = g * 0.5 * a * (1 + t)
        dh = sg.cat([da, db], 1)
        return dh @ w, dh.t() @ x


@twins(
    PackedQkvScale=("* scale", "", "scale left out"),
    PackedQkvDelta=("- (dp * p).sum(-1, keepdim=True)", "", "delta left out"),
    PackedQkvOrder=("sg.cat([dq, dk, dv], -1)", "sg.cat([dk, dq, dv], -1)", "q and k exchanged"),
)
@right("b n d", "3*e d")
class PackedQkv(sg.Function):
    """Self-attention with one projection for q, k and v."""

    @staticmethod
    def forward(ctx, x, w):
        q, k, v = (x @ w.t()).chunk(3, -1)
        scale = 0.5
        p = sg.softmax(q @ k.transpose(-2, -1) * scale, -1)
        ctx.save_for_backward(x, w, q, k, v, p)
        return p @ v

    @staticmethod
    def backward(ctx, g):
        x, w, q, k, v, p = ctx.saved_tensors
        scale = 0.5
        dv = p.transpose(-2, -1) @ g
        dp = g @ v.transpose(-2, -1)
        ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * scale
        dq, dk = ds @ k, ds.transpose(-2, -1) @ q
        dqkv = sg.cat([dq, dk, dv], -1)
        return dqkv @ w, sg.einsum("bne,bnd->ed", dqkv, x)


@twins(
    PackedHeadsScale=("/ 2.0", "", "scale left out"),
    PackedHeadsBias=("dqkv.sum((0, 1))", "dqkv.sum((0, 1)) * 2", "factor 2"),
    PackedHeadsMask=("p * (dp", "p * p * (dp", "P squared"),
)
@right("b n 4*h", "12*h 4*h", "12*h")
class PackedHeads(sg.Function):
    """Four heads out of one product, as unbind of a reshape."""

    @staticmethod
    def forward(ctx, x, w, bias):
        b, n, c = x.shape
        qkv = (x @ w.t() + bias).reshape(b, n, 3, 4, c // 4).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        p = (q @ k.transpose(-2, -1) / 2.0).softmax(-1)
        ctx.save_for_backward(x, w, q, k, v, p)
        return (p @ v).transpose(1, 2).reshape(b, n, c)

    @staticmethod
    def backward(ctx, g):
        x, w, q, k, v, p = ctx.saved_tensors
        b, n, c = x.shape
        g = g.reshape(b, n, 4, c // 4).transpose(1, 2)
        dv = p.transpose(-2, -1) @ g
        dp = g @ v.transpose(-2, -1)
        ds = p * (dp - (dp * p).sum(-1, keepdim=True)) / 2.0
        dqkv = sg.stack([ds @ k, ds.transpose(-2, -1) @ q, dv])
        dqkv = dqkv.permute(1, 3, 0, 2, 4).reshape(b, n, 3 * c)
        flat = dqkv.reshape(b * n, 3 * c)
        return dqkv @ w, flat.t() @ x.reshape(b * n, c), dqkv.sum((0, 1))


@twins(
    SplitUnequalOrder=(
        "sg.cat([da, db, dc], 1)",
        "sg.cat([db, da, dc], 1)",
        "order",
        {"right_if": ""},
    ),
    SplitUnequalSlope=("1 - t * t", "1 + t * t", "sign"),
    SplitUnequalExp=("g * t * e.exp()", "g * t", "factor left out"),
)
@right("n 3*m")
class SplitUnequal(sg.Function):
    """Parts by split with equal sizes, used in different ways."""

    @staticmethod
    def forward(ctx, x):
        a, b, c = x.split(x.shape[1] // 3, dim=1)
        t = a.tanh()
        ctx.save_for_backward(t, b, c)
        return t * b * c.exp()

    @staticmethod
    def backward(ctx, g):
        t, b, e = ctx.saved_tensors
        da = g * b * e.exp() * (1 - t * t)
        db = g * t * e.exp()
        dc = g * t * b * e.exp()
        return sg.cat([da, db, dc], 1)


@twins(
    LoraScaling=("ctx.s * (g @ b)", "(g @ b)", "scale left out"),
    LoraB=("ctx.s * (g.t() @ (x @ a.t()))", "g.t() @ (x @ a.t())", "scale left out"),
    LoraBase=("g @ w + ", "", "base weight left out"),
)
@right("n d", "e d", "r d", "e r", static={"s": 2.0})
class Lora(sg.Function):
    @staticmethod
    def forward(ctx, x, w, a, b, s):
        ctx.save_for_backward(x, w, a, b)
        ctx.s = s
        return x @ (w + s * b @ a).t()

    @staticmethod
    def backward(ctx, g):
        x, w, a, b = ctx.saved_tensors
        gb = ctx.s * (g @ b)
        return g @ w + gb @ a, g.t() @ x, gb.t() @ x, ctx.s * (g.t() @ (x @ a.t())), None


@twins(
    ExpertsGate=("(g * expert).sum(-1)", "g.sum(-1)", "expert left out"),
    ExpertsSoftmax=("dp - (dp * p).sum(1, keepdim=True)", "dp", "softmax's second term left out"),
    ExpertsWeight=("p[:, e, None] * g", "g", "gate left out"),
)
@right("n d", "3 f d", "3 d")
class MixtureOfExperts(sg.Function):
    """Three experts and a soft gate, in a loop."""

    @staticmethod
    def forward(ctx, x, w, gate):
        p = sg.softmax(x @ gate.t(), 1)
        experts = [x @ w[e].t() for e in range(3)]
        ctx.save_for_backward(x, w, gate, p)
        ctx.experts = experts
        out = 0
        for e in range(3):
            out = out + p[:, e, None] * experts[e]
        return out

    @staticmethod
    def backward(ctx, g):
        x, w, gate, p = ctx.saved_tensors
        dx, dw, dp = sg.zeros_like(x), [], []
        for e, expert in enumerate(ctx.experts):
            dy = p[:, e, None] * g
            dx = dx + dy @ w[e]
            dw.append(dy.t() @ x)
            dp.append((g * expert).sum(-1))
        dp = sg.stack(dp, 1)
        ds = p * (dp - (dp * p).sum(1, keepdim=True))
        return dx + ds @ gate, sg.stack(dw), ds.t() @ x
