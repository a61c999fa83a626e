"""Functions that repeat a step, with hand-written backwards, right and with one slip.

In: how many steps, and which slip.  Out: Functions and the shapes that they are judged for.
"""

from __future__ import annotations

from typing import Any

import symgrad as sg

Written = type[sg.Function]


def newton_schulz(steps: int, slip: str = "") -> Written:
    """``x <- 1.5 x - 0.5 x xT x``."""

    class NewtonSchulz(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            kept = []
            for _ in range(steps):
                kept.append(x)
                x = 1.5 * x - 0.5 * (x @ x.mT @ x)
            ctx.save_for_backward(*kept)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            for number, x in enumerate(reversed(ctx.saved_tensors)):
                middle = g if slip == "transpose" and number == 1 else x @ (g.mT @ x)
                g = 1.5 * g - 0.5 * (g @ (x.mT @ x) + middle + (x @ x.mT) @ g)
            return g

    return NewtonSchulz


def sines(steps: int, slip: str = "") -> Written:
    """``s <- sin(s) * x``, whose adjoints are small products."""

    class Sines(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            states = [x]
            for _ in range(steps):
                states.append(sg.sin(states[-1]) * x)
            ctx.save_for_backward(*states[:-1])
            return states[-1]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, *_ = states = ctx.saved_tensors
            total = 0 * x
            for number, state in enumerate(reversed(states)):
                total = total + g * (state if slip == "one" and number == 1 else sg.sin(state))
                g = g * x * sg.cos(state)
            return total + g

    return Sines


def muon(steps: int, slip: str = "") -> Written:
    """The quintic of the optimizer Muon, after a division by the norm."""
    a, b, c = 3.4445, -4.7750, 2.0315

    class Muon(sg.Function):
        @staticmethod
        def forward(ctx: Any, w: Any) -> Any:
            ctx.norm = w.norm()
            x, kept = w / ctx.norm, []
            for _ in range(steps):
                kept.append(x)
                gram = x @ x.mT
                x = a * x + (b * gram + c * gram @ gram) @ x
            ctx.save_for_backward(w, *kept)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            w, *kept = ctx.saved_tensors
            for x in reversed(kept):
                gram = x @ x.mT
                inner = b * gram + c * gram @ gram
                by_inner = g @ x.mT
                by_gram = b * by_inner + c * (by_inner @ gram.mT + gram.mT @ by_inner)
                both = by_gram if slip == "symmetric" else by_gram + by_gram.mT
                g = a * g + inner.mT @ g + both @ x
            n = ctx.norm
            return g / n - (0 if slip == "norm" else w * ((g * w).sum() / n**3))

    return Muon


def recurrent(steps: int, slip: str = "") -> Written:
    """``h <- tanh(x_t W + h U + b)``."""

    class Recurrent(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, h: Any, w: Any, u: Any, b: Any) -> Any:
            states = [h]
            for t in range(steps):
                h = sg.tanh(x[t] @ w + h @ u + b)
                states.append(h)
            ctx.save_for_backward(x, w, u, *states)
            return h

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w, u, *states = ctx.saved_tensors
            by_x, by_w, by_u, by_b = [], sg.zeros_like(w), sg.zeros_like(u), 0
            for t in reversed(range(steps)):
                late = t + (slip != "state" or t != 1)
                d = g * (1 - states[late] ** 2)
                by_x.append(d @ w.mT)
                by_w = by_w + x[t].mT @ d
                by_u = by_u + states[t].mT @ d
                by_b = by_b + d.sum(0)
                g = d @ (u if slip == "matrix" else u.mT)
            ordered = by_x if slip == "order" else list(reversed(by_x))
            return sg.stack(ordered, 0), g, by_w, by_u, by_b

    return Recurrent


def sinkhorn(rounds: int, slip: str = "") -> Written:
    """Rows and columns normalised in turn, in logarithms."""

    class Sinkhorn(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            kept = []
            for _ in range(rounds):
                for axis in (1, 0):
                    x = x - x.logsumexp(axis, keepdim=True)
                    kept.append(x.exp())
            ctx.save_for_backward(*kept)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            for number, p in enumerate(reversed(ctx.saved_tensors)):
                if not (slip == "round" and number == 2):
                    g = g - p * g.sum(number % 2, keepdim=True)
            return g

    return Sinkhorn


def knopp(rounds: int, slip: str = "") -> Written:
    """Powers, then rows and columns divided by their sums in turn."""

    class Knopp(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            p = x.exp()
            kept = [p]
            for number in range(2 * rounds):
                total = p.sum(1 - number % 2, keepdim=True)
                kept += [p, total]
                p = p / total
            ctx.save_for_backward(*kept)
            return p

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            first, *kept = ctx.saved_tensors
            for number in reversed(range(2 * rounds)):
                p, total = kept[2 * number : 2 * number + 2]
                axis = number % 2 if slip == "axis" and number == 1 else 1 - number % 2
                inner = (g * p).sum(axis, keepdim=True)
                g = g / total - inner / (total if slip == "power" and number == 2 else total**2)
            return g * first

    return Knopp


def scaling(rounds: int, slip: str = "") -> Written:
    """Optimal transport: ``u <- a / (K v)``, ``v <- b / (KT u)``."""

    class Scaling(sg.Function):
        @staticmethod
        def forward(ctx: Any, c: Any, a: Any, b: Any) -> Any:
            kernel, v = (-c).exp(), sg.ones_like(b)
            kept = [v]
            for _ in range(rounds):
                u = a / (kernel @ v)
                v = b / (kernel.mT @ u)
                kept += [u, v]
            ctx.save_for_backward(kernel, *kept)
            return u[:, None] * kernel * v[None, :]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            kernel, *kept = ctx.saved_tensors
            u, v = kept[-2:]
            by_kernel = g * u[:, None] * v[None, :]
            by_u, by_v = (g * kernel) @ v, (g * kernel).mT @ u
            by_a, by_b = 0, 0
            for number in reversed(range(rounds)):
                old, u, v = kept[2 * number : 2 * number + 3]
                by_t = by_v / (kernel.mT @ u)
                by_b = by_b + by_t
                by_kernel = by_kernel - u[:, None] * (by_t * v)[None, :]
                by_s = (by_u - kernel @ (by_t * v)) / (kernel @ old)
                by_a = by_a + by_s
                late = v if slip == "late" and number == 1 else old
                by_kernel = by_kernel - (by_s * u)[:, None] * late[None, :]
                by_v, by_u = -kernel.mT @ (by_s * u), 0 * u
            return -by_kernel * kernel, by_a, by_b

    return Scaling


def gated(steps: int, slip: str = "") -> Written:
    """A gated recurrent unit: one product of a state for three gates, which are its parts."""

    class Gated(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, h: Any, w: Any, u: Any, b: Any) -> Any:
            kept = []
            for t in range(steps):
                by_x, by_h = (x[t] @ w + b).chunk(3, -1), (h @ u).chunk(3, -1)
                r, z = ((one + other).sigmoid() for one, other in zip(by_x[:2], by_h, strict=False))
                new = (by_x[2] + r * by_h[2]).tanh()
                kept += [h, r, z, new, by_h[2]]
                h = new + z * (h - new)
            ctx.save_for_backward(x, w, u, *kept)
            return h

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w, u, *kept = ctx.saved_tensors
            by_x, by_w, by_u, by_b = [], sg.zeros_like(w), sg.zeros_like(u), 0
            for t in reversed(range(steps)):
                h, r, z, new, part = kept[5 * t : 5 * t + 5]
                d_new = g * (1 - z) * (1 - new**2)
                d_z = g * (h - new) * (z if slip == "gate" and t == 1 else z * (1 - z))
                d_r = d_new * part * r * (1 - r)
                d_x = sg.cat([d_r, d_z, d_new], -1)
                d_h = sg.cat([d_r, d_z, d_new if slip == "reset" and t == 1 else d_new * r], -1)
                by_x.append(d_x @ w.mT)
                by_w, by_u = by_w + x[t].mT @ d_x, by_u + h.mT @ d_h
                by_b = by_b + d_x.sum(0)
                g = g * z + d_h @ u.mT
            return sg.stack(by_x[::-1], 0), g, by_w, by_u, by_b

    return Gated


def tiled_attention(tiles: int, size: int = 0, slip: str = "") -> Written:
    """Attention over tiles of keys and values with a running maximum and a running sum.

    ``size``: of a tile, where tiles are slices of one tensor; 0: they are its first axis.
    """

    class Tiled(sg.Function):
        @staticmethod
        def forward(ctx: Any, q: Any, k: Any, v: Any) -> Any:
            scale = q.shape[-1] ** -0.5
            top: Any = None
            total: Any = None
            out: Any = None
            for tile in range(tiles):
                keys, values = (_tile(one, tile, size) for one in (k, v))
                scores = q @ keys.mT * scale
                most = scores.amax(-1, keepdim=True)
                new = most if top is None else sg.maximum(top, most)
                p = (scores - new).exp()
                if top is None:
                    total, out = p.sum(-1, keepdim=True), p @ values
                else:
                    c = (top - new).exp()
                    total, out = total * c + p.sum(-1, keepdim=True), out * c + p @ values
                top = new
            out = out / total
            ctx.save_for_backward(q, k, v, out, top + total.log())
            return out

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            q, k, v, out, level = ctx.saved_tensors
            scale = q.shape[-1] ** -0.5
            mean = 0 if slip == "mean" else (g * out).sum(-1, keepdim=True)
            by_q, by_k, by_v = sg.zeros_like(q), [], []
            for tile in range(tiles):
                keys, values = (_tile(one, tile, size) for one in (k, v))
                p = (q @ keys.mT * scale - level).exp()
                by_v.append(p.mT @ g)
                by_scores = p * (g @ values.mT - mean) * scale
                if not (slip == "tile" and tile == 1):
                    by_q = by_q + by_scores @ keys
                by_k.append(by_scores.mT @ q)
            join = sg.cat if size else sg.stack
            return by_q, join(by_k, 0), join(by_v, 0)

    return Tiled


def _tile(whole: Any, tile: int, size: int) -> Any:
    return whole[size * tile : size * (tile + 1)] if size else whole[tile]


def clamped(layers: int, slip: str = "") -> Written:
    """``x <- clamp(x W, -1, 1)``, the same W in all layers."""

    class Clamped(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            kept = [x]
            for _ in range(layers):
                u = x @ w
                x = u.clamp(-1, 1)
                kept += [u, x]
            ctx.save_for_backward(w, *kept)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            w, *kept = ctx.saved_tensors
            by_w = sg.zeros_like(w)
            for layer in reversed(range(layers)):
                before, u, after = kept[2 * layer : 2 * layer + 3]
                inside = (u > -1) & (u < 1)
                if layer == 1:
                    slips = {"side": u < 1, "wide": (u > -2) & (u < 1), "turned": u > 1}
                    inside = slips.get(slip, inside)
                    before = {"after": after, "unclamped": u}.get(slip, before)
                d = g * inside.to(g.dtype)
                by_w = by_w + before.mT @ d
                g = d @ (w if slip == "matrix" and layer == 1 else w.mT)
            return g, by_w

    return Clamped


def shrunk(steps: int, slip: str = "") -> Written:
    """Iterative shrinkage: ``x <- soft(x - t AT (A x - y))``, unrolled."""
    t, least = 0.1, 0.005

    class Shrunk(sg.Function):
        @staticmethod
        def forward(ctx: Any, y: Any, a: Any) -> Any:
            x, kept = sg.zeros(a.shape[1]), []
            for _ in range(steps):
                z = x - t * (a.mT @ (a @ x - y))
                kept += [x, z]
                x = z.sign() * (z.abs() - least).clamp(min=0)
            ctx.save_for_backward(y, a, *kept)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            y, a, *kept = ctx.saved_tensors
            by_y, by_a = sg.zeros_like(y), sg.zeros_like(a)
            for step in reversed(range(steps)):
                x, z = kept[2 * step : 2 * step + 2]
                size = z if slip == "side" and step == 1 else z.abs()
                d = g * (size > least).to(g.dtype)
                by_r = a @ d
                by_y = by_y + t * by_r
                rest = (0 if slip == "rest" and step == 1 else a @ x) - y
                by_a = by_a - t * (rest[:, None] * d[None, :] + by_r[:, None] * x[None, :])
                g = d - t * (a.mT @ by_r)
            return by_y, by_a

    return Shrunk
