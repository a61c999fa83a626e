"""``jax.custom_vjp`` functions as public code has them, each with right and wrong rules.

``KINDS``: by name, a plain function, what it is judged and called with, and its rules by name.
What is right is not said here: ``jax.vjp`` of the plain function says it.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

_random = np.random.default_rng(3)


def array(*shape: int) -> Any:
    """An array away from kinks and poles."""
    return _random.uniform(0.4, 1.6, shape)


@dataclasses.dataclass(frozen=True)
class Kind:
    """A plain function; ``rules``: by name, (fwd, bwd).  ``how``: arguments of ``custom_vjp``."""

    fun: Any
    specs: tuple[Any, ...]
    arguments: tuple[Any, ...]
    rules: dict[str, tuple[Any, Any]]
    static: dict[str, Any] = dataclasses.field(default_factory=dict)
    how: dict[str, Any] = dataclasses.field(default_factory=dict)

    def function(self, rule: str) -> Any:
        """The function with one of its rules."""
        made = jax.custom_vjp(self.fun, **self.how)
        made.defvjp(*self.rules[rule])
        return made


KINDS: dict[str, Kind] = {}


def kind(*specs: Any, arguments: Any, static: Any = None, how: Any = None, **rules: Any) -> Any:
    """Put a plain function and its rules into the table."""

    def take(fun: Any) -> Any:
        KINDS[fun.__name__] = Kind(fun, specs, arguments, rules, static or {}, how or {})
        return fun

    return take


# -- containers of parameters


def _mlp_fwd(params, x):
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"], (params, x, {"hidden": hidden})


def _mlp_bwd(residuals, g):
    params, x, kept = residuals
    hidden = kept["hidden"]
    inner = (g @ params["w2"].T) * (1 - hidden**2)
    own = {"w1": x.T @ inner, "b1": inner.sum(0), "w2": hidden.T @ g, "b2": g.sum(0)}
    return own, inner @ params["w1"].T


def _mlp_no_bias(residuals, g):
    own, gx = _mlp_bwd(residuals, g)
    return own | {"b1": own["b1"] * 0}, gx


def _mlp_swapped(residuals, g):
    own, gx = _mlp_bwd(residuals, g)
    return own | {"w1": residuals[1].T @ (g @ residuals[0]["w2"].T)}, gx


@kind({"w1": "d h", "b1": "h", "w2": "h o", "b2": "o"}, "n d",
      arguments=({"w1": array(3, 4), "b1": array(4), "w2": array(4, 2), "b2": array(2)},
                 array(5, 3)),
      right=(_mlp_fwd, _mlp_bwd), no_bias=(_mlp_fwd, _mlp_no_bias),
      no_slope=(_mlp_fwd, _mlp_swapped))  # fmt: skip
def mlp(params, x):
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"]


class Affine(NamedTuple):
    """Parameters of an affine map."""

    scale: Any
    shift: Any


@kind(Affine("n", "n"), "n", arguments=(Affine(array(3), array(3)), array(3)),
      right=(lambda p, x: (p.scale * x + p.shift, (p, x)),
             lambda r, g: (Affine(g * r[1], g), g * r[0].scale)),
      swapped=(lambda p, x: (p.scale * x + p.shift, (p, x)),
               lambda r, g: (Affine(g, g * r[1]), g * r[0].scale)),
      none=(lambda p, x: (p.scale * x + p.shift, (p, x)),
            lambda r, g: (None, g * r[0].scale)))  # fmt: skip
def affine(p: Affine, x):
    return p.scale * x + p.shift


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Norm:
    """Parameters of a normalization."""

    gain: Any
    bias: Any


def _norm_fwd(p, x):
    rstd = lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)
    return x * rstd * p.gain + p.bias, {"x": x, "p": p, "rstd": rstd}


def _norm_bwd(r, g, mean=jnp.mean):
    x, rstd, gw = r["x"], r["rstd"], g * r["p"].gain
    own = Norm(gain=(g * x * rstd).sum(0), bias=g.sum(0))
    return own, rstd * (gw - x * rstd**2 * mean(gw * x, -1, keepdims=True))


@kind(Norm("d", "d"), "n d", arguments=(Norm(array(4), array(4)), array(3, 4)),
      right=(_norm_fwd, _norm_bwd),
      summed=(_norm_fwd, lambda r, g: _norm_bwd(r, g, jnp.sum)))  # fmt: skip
def rms_norm_of(p: Norm, x):
    return x / jnp.sqrt(jnp.mean(x**2, -1, keepdims=True) + 1e-6) * p.gain + p.bias


@kind((("n", "n"), "n"), "n", arguments=(((array(3), array(3)), array(3)), array(3)),
      right=(lambda p, x: (p[0][0] * x + p[0][1] * p[1], (p, x)),
             lambda r, g: (((g * r[1], g * r[0][1]), g * r[0][0][1]), g * r[0][0][0])),
      alike=(lambda p, x: (p[0][0] * x + p[0][1] * p[1], (p, x)),
             lambda r, g: ((g, g * r[0][0][1]), g * r[0][0][0])))  # fmt: skip
def nested_tuples(p, x):
    (w, b), c = p
    return w * x + b * c


def _swiglu_fwd(weights, x):
    gate, up = x @ weights["gate"], x @ weights["up"]
    return (jax.nn.silu(gate) * up) @ weights["down"], (weights, x, gate, up)


def _swiglu_bwd(r, g, slope=lambda z, s: s * (1 + z * (1 - s))):
    weights, x, gate, up = r
    s = jax.nn.sigmoid(gate)
    inner = g @ weights["down"].T
    g_gate, g_up = inner * up * slope(gate, s), inner * gate * s
    own = {"gate": x.T @ g_gate, "up": x.T @ g_up, "down": (gate * s * up).T @ g}
    return own, g_gate @ weights["gate"].T + g_up @ weights["up"].T


@kind({"gate": "d h", "up": "d h", "down": "h d"}, "n d",
      arguments=({"gate": array(3, 4), "up": array(3, 4), "down": array(4, 3)}, array(2, 3)),
      right=(_swiglu_fwd, _swiglu_bwd),
      slope=(_swiglu_fwd,
             lambda r, g: _swiglu_bwd(r, g, lambda z, s: s + z * (1 - s))))  # fmt: skip
def swiglu(weights, x):
    return (jax.nn.silu(x @ weights["gate"]) * (x @ weights["up"])) @ weights["down"]


# -- functions of numbers and rows


def _smooth_bwd(factor):
    def bwd(beta, x, g):
        return (g * factor(beta, jax.nn.sigmoid(beta * x)),)

    return bwd


@kind("n", static={"beta": 2.0}, arguments=(2.0, array(4)), how={"nondiff_argnums": (0,)},
      right=(lambda beta, x: (jax.nn.softplus(beta * x) / beta, x),
             _smooth_bwd(lambda beta, s: s)),
      forgotten=(lambda beta, x: (jax.nn.softplus(beta * x) / beta, x),
                 _smooth_bwd(lambda beta, s: s / beta)))  # fmt: skip
def softplus_of(beta, x):
    return jnp.logaddexp(beta * x, 0.0) / beta


def _lse_fwd(x):
    top = lax.stop_gradient(jnp.max(x, -1, keepdims=True))
    exps = jnp.exp(x - top)
    total = exps.sum(-1, keepdims=True)
    return jnp.squeeze(jnp.log(total) + top, -1), (exps, total)


@kind("n m", arguments=(array(3, 4),),
      right=(_lse_fwd, lambda r, g: (g[:, None] * r[0] / r[1],)),
      unnormalized=(_lse_fwd, lambda r, g: (g[:, None] * r[0],)),
      summed=(_lse_fwd, lambda r, g: (g.sum() * r[0] / r[1],)))  # fmt: skip
def logsumexp_of_rows(x):
    return jax.scipy.special.logsumexp(x, axis=-1)


def _safe_norm_fwd(x):
    norm = jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True))
    return norm[..., 0], (x, norm)


@kind("n d", arguments=(array(3, 4),),
      right=(_safe_norm_fwd,
             lambda r, g: (g[:, None] * jnp.where(r[1] > 0, r[0] / jnp.where(r[1] > 0, r[1], 1),
                                                  0),)),
      squared=(_safe_norm_fwd, lambda r, g: (g[:, None] * 2 * r[0],)),
      inverse=(_safe_norm_fwd, lambda r, g: (g[:, None] * r[1] / r[0],)))  # fmt: skip
def safe_norm_of_rows(x):
    return jnp.linalg.norm(x, axis=-1)


@kind("n", "n", arguments=(array(3), array(3) + 2),
      right=(lambda x, y: (x * jnp.log(y), (x, y)),
             lambda r, g: (g * jnp.log(r[1]), g * r[0] / r[1])),
      swapped=(lambda x, y: (x * jnp.log(y), (x, y)),
               lambda r, g: (g * r[0] / r[1], g * jnp.log(r[1]))))  # fmt: skip
def x_log_y(x, y):
    return x * jnp.log(y)


@kind("n", "n", static={"delta": 1.5}, arguments=(array(4), array(4) + 3, 1.5),
      how={"nondiff_argnames": ("delta",)},
      right=(lambda x, y, delta: (_huber(x, y, delta), (x, y)),
             lambda delta, r, g: (g * jnp.clip(r[0] - r[1], -delta, delta),
                                  -g * jnp.clip(r[0] - r[1], -delta, delta))),
      unclipped=(lambda x, y, delta: (_huber(x, y, delta), (x, y)),
                 lambda delta, r, g: (g * (r[0] - r[1]), g * (r[1] - r[0]))))  # fmt: skip
def huber(x, y, delta):
    return _huber(x, y, delta)


def _huber(x, y, delta):
    gap = jnp.abs(x - y)
    return jnp.where(gap <= delta, 0.5 * gap**2, delta * (gap - 0.5 * delta))


def _cosine_fwd(x, y):
    nx, ny = jnp.sqrt(jnp.sum(x * x)), jnp.sqrt(jnp.sum(y * y))
    cos = jnp.vdot(x, y) / (nx * ny)
    return cos, (x, y, nx, ny, cos)


def _cosine_bwd(r, g):
    x, y, nx, ny, cos = r
    return g * (y / (nx * ny) - cos * x / nx**2), g * (x / (nx * ny) - cos * y / ny**2)


@kind("n", "n", arguments=(array(3), array(3)), right=(_cosine_fwd, _cosine_bwd),
      first_term=(_cosine_fwd,
                  lambda r, g: (g * r[1] / (r[2] * r[3]), g * r[0] / (r[2] * r[3]))))  # fmt: skip
def cosine_similarity(x, y):
    return jnp.vdot(x, y) / (jnp.linalg.norm(x) * jnp.linalg.norm(y))


# -- attention, embeddings, losses


def _causal_fwd(q, k, v):
    scores = jnp.einsum("nd,md->nm", q, k) * q.shape[-1] ** -0.5
    seen = jnp.tril(jnp.ones(scores.shape, bool))
    probs = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1)
    return probs @ v, {"q": q, "k": k, "v": v, "probs": probs}


def _causal_bwd(r, g, center=True):
    probs, scale = r["probs"], r["q"].shape[-1] ** -0.5
    d_probs = g @ r["v"].T
    row = jnp.sum(d_probs * probs, -1, keepdims=True) if center else 0.0
    d_scores = probs * (d_probs - row) * scale
    return d_scores @ r["k"], d_scores.T @ r["q"], probs.T @ g


@kind("n d", "n d", "n e", arguments=(array(4, 3), array(4, 3), array(4, 2)),
      right=(_causal_fwd, _causal_bwd),
      uncentered=(_causal_fwd, lambda r, g: _causal_bwd(r, g, center=False)))  # fmt: skip
def causal_attention(q, k, v):
    scores = q @ k.T / jnp.sqrt(q.shape[-1])
    n = q.shape[0]
    seen = jnp.arange(n)[:, None] >= jnp.arange(n)[None, :]
    return jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1) @ v


def _xent_bwd(residuals, g):
    logits, labels = residuals
    hot = jax.nn.one_hot(labels, logits.shape[-1], dtype=logits.dtype)
    return g[:, None] * (jax.nn.softmax(logits) - hot), None


def _xent_fwd(logits, labels):
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=-1)
    return -picked[:, 0], (logits, labels)


@kind("n c", "i32[n]", arguments=(array(3, 4), np.array([1, 0, 3], np.int32)),
      right=(_xent_fwd, _xent_bwd),
      no_label=(_xent_fwd, lambda r, g: (g[:, None] * jax.nn.softmax(r[0]), None)))  # fmt: skip
def cross_entropy_of_rows(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=-1)[:, 0]


def _rotate(x, cos, sin):
    half = x.shape[-1] // 2
    left, right = x[..., :half], x[..., half:]
    return jnp.concatenate([left * cos - right * sin, right * cos + left * sin], -1)


@kind("n 2*d", "n d", "n d", arguments=(array(3, 4), array(3, 2), array(3, 2)),
      right=(lambda x, cos, sin: (_rotate(x, cos, sin), (x, cos, sin)),
             lambda r, g: (_rotate(g, r[1], -r[2]), *_rotary_angles(r[0], g))),
      unturned=(lambda x, cos, sin: (_rotate(x, cos, sin), (x, cos, sin)),
                lambda r, g: (_rotate(g, r[1], r[2]), *_rotary_angles(r[0], g))))  # fmt: skip
def rotary(x, cos, sin):
    return _rotate(x, cos, sin)


def _rotary_angles(x, g):
    half = x.shape[-1] // 2
    left, right, g_left, g_right = x[..., :half], x[..., half:], g[..., :half], g[..., half:]
    return g_left * left + g_right * right, g_right * left - g_left * right


# -- loops, maps, branches


def _euler(params, x, steps=3):
    def step(state, _):
        return state + 0.1 * (params["rate"] * state + params["drive"]), state

    return lax.scan(step, x, None, length=steps)


def _euler_bwd(r, g, last=True):
    params, seen = r

    def back(carry, state):
        gx, rate, drive = carry
        return (gx * (1 + 0.1 * params["rate"]), rate + 0.1 * gx * state, drive + 0.1 * gx), None

    zero = jnp.zeros_like(g)
    (gx, rate, drive), _ = lax.scan(back, (g, zero, zero), seen, reverse=last)
    return {"rate": rate, "drive": drive}, gx


@kind({"rate": "n", "drive": "n"}, "n", arguments=({"rate": array(3), "drive": array(3)}, array(3)),
      right=(lambda p, x: (_euler(p, x)[0], (p, _euler(p, x)[1])), _euler_bwd),
      forwards=(lambda p, x: (_euler(p, x)[0], (p, _euler(p, x)[1])),
                lambda r, g: _euler_bwd(r, g, last=False)))  # fmt: skip
def euler_steps(params, x):
    return _euler(params, x)[0]


@kind("n d", "d", arguments=(array(3, 4), array(4)),
      right=(lambda x, w: (jax.vmap(jnp.vdot, (0, None))(x, w), (x, w)),
             lambda r, g: (jax.vmap(lambda one: one * r[1])(g), jnp.einsum("n,nd->d", g, r[0]))),
      unsummed=(lambda x, w: (jax.vmap(jnp.vdot, (0, None))(x, w), (x, w)),
                lambda r, g: (jax.vmap(lambda one: one * r[1])(g), g[0] * r[0][0])))  # fmt: skip
def rows_by_vmap(x, w):
    return jax.vmap(lambda row: jnp.sum(row * w))(x)


@kind("n", arguments=(array(4),),
      right=(lambda x: (lax.fori_loop(0, 3, lambda i, y: y * x, x), x),
             lambda x, g: (4 * g * x**3,)),
      one_less=(lambda x: (lax.fori_loop(0, 3, lambda i, y: y * x, x), x),
                lambda x, g: (3 * g * x**2,)))  # fmt: skip
def power_by_loop(x):
    return x**4


@kind("n", arguments=(array(4),),
      right=(lambda x: (lax.select(x > 1, x, jnp.exp(x - 1)), x),
             lambda x, g: (g * lax.select(x > 1, jnp.ones_like(x), jnp.exp(x - 1)),)),
      sides=(lambda x: (lax.select(x > 1, x, jnp.exp(x - 1)), x),
             lambda x, g: (g * lax.select(x > 1, jnp.exp(x - 1), jnp.ones_like(x)),)))  # fmt: skip
def joined_by_select(x):
    return jnp.where(x > 1, x, jnp.exp(x - 1))


def _conv(x, w):
    return lax.conv_general_dilated(x, w, (1,), [(1, 1)])


def _conv_by_x(w, g, turn=True):
    """The gradient by the input: the kernel is turned, and its channels change places."""
    w = w[..., ::-1] if turn else w
    return lax.conv_general_dilated(g, jnp.swapaxes(w, 0, 1), (1,), [(1, 1)])


def _conv_by_w(x, g):
    """The gradient by the kernel: batch and channels change places."""
    by_channel = jnp.swapaxes(x, 0, 1), jnp.swapaxes(g, 0, 1)
    return jnp.swapaxes(lax.conv_general_dilated(*by_channel, (1,), [(1, 1)]), 0, 1)


@kind("n c l", "d c 3", arguments=(array(2, 3, 5), array(4, 3, 3)),
      right=(lambda x, w: (_conv(x, w), (x, w)),
             lambda r, g: (_conv_by_x(r[1], g), _conv_by_w(r[0], g))),
      by_jax=(lambda x, w: (_conv(x, w), (x, w)), lambda r, g: jax.vjp(_conv, *r)[1](g)),
      unturned=(lambda x, w: (_conv(x, w), (x, w)),
                lambda r, g: (_conv_by_x(r[1], g, turn=False), _conv_by_w(r[0], g))))  # fmt: skip
def convolution(x, w):
    return _conv(x, w)


# -- what is no derivative by intent


@kind("n", arguments=(array(4),),
      right=(lambda x: (x, None), lambda _, g: (g,)),
      clipped=(lambda x: (x, None), lambda _, g: (jnp.clip(g, -0.1, 0.1),)),
      reversed=(lambda x: (x, None), lambda _, g: (-g,)),
      scaled=(lambda x: (x, None), lambda _, g: (0.5 * g,)))  # fmt: skip
def identity(x):
    return x


@kind("n m", arguments=(array(2, 3),),
      right=(lambda x: (jnp.round(x), None), lambda _, g: (jnp.zeros_like(g),)),
      straight=(lambda x: (jnp.round(x), None), lambda _, g: (g,)))  # fmt: skip
def rounded(x):
    return jnp.round(x)


# -- implicit functions


def _solve_fwd(lower, b):
    x = jax.scipy.linalg.solve_triangular(lower, b, lower=True)
    return x, (lower, x)


def _solve_bwd(r, g, sign=-1.0):
    lower, x = r
    gb = jax.scipy.linalg.solve_triangular(lower, g, lower=True, trans=1)
    return sign * jnp.tril(gb @ x.T), gb


@kind("n n", "n m", arguments=(np.eye(3) + np.tril(array(3, 3)), array(3, 2)),
      right=(_solve_fwd, _solve_bwd),
      sign=(_solve_fwd, lambda r, g: _solve_bwd(r, g, 1.0)))  # fmt: skip
def lower_solve(lower, b):
    return jax.scipy.linalg.solve_triangular(lower, b, lower=True)


def _root_fwd(a, b):
    x = jnp.linalg.solve(a, b)
    return x, (a, x)


def _root_bwd(r, g, turned=True):
    a, x = r
    u = jnp.linalg.solve(a.T if turned else a, g)
    return -jnp.outer(u, x), u


@kind("n n", "n", arguments=(3 * np.eye(3) + array(3, 3), array(3)),
      right=(_root_fwd, _root_bwd),
      unturned=(_root_fwd, lambda r, g: _root_bwd(r, g, turned=False)))  # fmt: skip
def linear_root(a, b):
    return jnp.linalg.solve(a, b)
