"""``jax.custom_vjp`` functions of the kinds that public code has, each right but the ``SLIPS``.

``CASES``: for each the shapes, the values of plain arguments, and arguments to compare it at.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


class Case(NamedTuple):
    """A function, and what it is judged and called with."""

    function: Any
    specs: tuple[str, ...]
    arguments: tuple[Any, ...]
    static: dict[str, Any] = {}  # noqa: RUF012


CASES: dict[str, Case] = {}
SLIPS: dict[str, Case] = {}


def ruled(fwd: Any, bwd: Any, *specs: str, static: dict[str, Any] | None = None, **how: Any) -> Any:
    """Make a ``custom_vjp`` function of a plain one, and put it into the tables.

    ``shapes``: those of the arguments to compare it at.  ``slip``: it is wrong.
    """
    shapes, slip = how.pop("shapes"), how.pop("slip", False)

    def make(fun: Any) -> Any:
        made = jax.custom_vjp(fun, **how)
        made.defvjp(fwd, bwd)
        random = np.random.default_rng(len(CASES))
        arguments = tuple(
            one if not isinstance(one, tuple) else random.uniform(0.4, 1.6, one) for one in shapes
        )
        table = SLIPS if slip else CASES
        table[fun.__name__] = Case(made, specs, arguments, static or {})
        return made

    return make


def by_output(fun: Any) -> Any:
    """``fwd`` that keeps the output."""

    def fwd(*args: Any) -> Any:
        out = fun(*args)
        return out, out

    return fwd


def by_inputs(fun: Any) -> Any:
    """``fwd`` that keeps the inputs."""
    return lambda *args: (fun(*args), args)


# -- functions of elements


@ruled(by_inputs(lambda x, y: jnp.sin(x) * y),
       lambda r, g: (jnp.cos(r[0]) * g * r[1], jnp.sin(r[0]) * g), "n m", "n m",
       shapes=((2, 3), (2, 3)))  # fmt: skip
def sine_times(x, y):
    return jnp.sin(x) * y


@ruled(by_inputs(jax.nn.softplus), lambda r, g: (g * jax.nn.sigmoid(r[0]),), "n", shapes=((4,),))
def softplus(x):
    return jax.nn.softplus(x)


@ruled(by_inputs(lambda x: jnp.log1p(jnp.exp(x))),
       lambda r, g: (g * (1 - 1 / (1 + jnp.exp(r[0]))),), "n", shapes=((4,),))  # fmt: skip
def log1pexp(x):
    return jnp.log1p(jnp.exp(x))


def _logaddexp(x, y):
    top = jnp.maximum(x, y)
    return top + jnp.log1p(jnp.exp(-jnp.abs(x - y)))


@ruled(by_inputs(_logaddexp),
       lambda r, g: (g * jax.nn.sigmoid(r[0] - r[1]), g * jax.nn.sigmoid(r[1] - r[0])), "n", "n",
       shapes=((3,), (3,)))  # fmt: skip
def logaddexp(x, y):
    return _logaddexp(x, y)


@ruled(by_output(jnp.tanh), lambda y, g: (g * (1 - y**2),), "n m", shapes=((2, 2),))
def tanh_by_output(x):
    return jnp.tanh(x)


@ruled(by_output(jnp.exp), lambda y, g: (g * y,), "*batch", shapes=((2, 2),))
def exp_by_output(x):
    return jnp.exp(x)


@ruled(by_output(lambda x: jax.nn.sigmoid(x)), lambda y, g: (g * y * (1 - y),), "n", shapes=((5,),))
def sigmoid(x):
    return 1 / (1 + jnp.exp(-x))


@ruled(by_inputs(lambda x: x * jax.nn.sigmoid(x)), lambda r, g: _silu_bwd(r, g), "n m",
       shapes=((2, 3),))  # fmt: skip
def silu(x):
    return x * jax.nn.sigmoid(x)


def _silu_bwd(r, g):
    (x,) = r
    s = jax.nn.sigmoid(x)
    return (g * s * (1 + x * (1 - s)),)


def _gelu_bwd(r, g):
    (x,) = r
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    t = jnp.tanh(inner)
    slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)
    return (g * (0.5 * (1 + t) + 0.5 * x * (1 - t**2) * slope),)


@ruled(by_inputs(lambda x: jax.nn.gelu(x)), _gelu_bwd, "n m", shapes=((2, 3),))
def gelu(x):
    return jax.nn.gelu(x)


@ruled(by_inputs(lambda x: jax.nn.gelu(x, approximate=False)),
       lambda r, g: (g * (0.5 * (1 + lax.erf(r[0] / math.sqrt(2)))
                          + r[0] * jnp.exp(-0.5 * r[0]**2) / math.sqrt(2 * math.pi)),),
       "n", shapes=((4,),))  # fmt: skip
def gelu_by_erf(x):
    return jax.nn.gelu(x, approximate=False)


def _safe_sqrt(x):
    ok = x > 0
    return jnp.where(ok, jnp.sqrt(jnp.where(ok, x, 1.0)), 0.0)


@ruled(by_inputs(_safe_sqrt),
       lambda r, g: (jnp.where(r[0] > 0, g / (2 * jnp.sqrt(jnp.where(r[0] > 0, r[0], 1.0))), 0.0),),
       "n", shapes=((4,),))  # fmt: skip
def safe_sqrt(x):
    return _safe_sqrt(x)


@ruled(by_inputs(lambda x: jnp.maximum(x, 0)), lambda r, g: (jnp.where(r[0] > 0, g, 0.0),), "n m",
       shapes=((2, 2),))  # fmt: skip
def relu(x):
    return jax.nn.relu(x)


@ruled(by_inputs(lambda x: jnp.where(x > 0, x, 0.1 * x)),
       lambda r, g: (g * jnp.where(r[0] > 0, 1.0, 0.1),), "n", shapes=((4,),))  # fmt: skip
def leaky_relu(x):
    return jax.nn.leaky_relu(x, 0.1)


@ruled(by_inputs(lambda x, y: x / y), lambda r, g: (g / r[1], -g * r[0] / r[1] ** 2), "n", "n",
       shapes=((3,), (3,)))  # fmt: skip
def divide(x, y):
    return x / y


@ruled(by_inputs(lambda x, y: x**y),
       lambda r, g: (g * r[1] * r[0] ** (r[1] - 1), g * r[0]**r[1] * jnp.log(r[0])), "n", "n",
       shapes=((3,), (3,)))  # fmt: skip
def power(x, y):
    return x**y


@ruled(lambda x: (x**3, x), lambda x, g: (3 * g * x**2,), "n", shapes=((4,),))
def cube(x):
    return lax.integer_pow(x, 3)


@ruled(by_inputs(lambda x, y: jnp.arctan2(x, y)),
       lambda r, g: (g * r[1] / (r[0]**2 + r[1]**2), -g * r[0] / (r[0]**2 + r[1]**2)), "n", "n",
       shapes=((3,), (3,)))  # fmt: skip
def arctan2(x, y):
    return jnp.arctan2(x, y)


@ruled(lambda x, low, high: (jnp.clip(x, low, high), (x, low, high)),
       lambda r, g: (jnp.where((r[0] > r[1]) & (r[0] < r[2]), g, 0.0), None, None), "n",
       static={"low": 0.5, "high": 1.5}, shapes=((5,), 0.5, 1.5))  # fmt: skip
def clip(x, low, high):
    return jnp.clip(x, low, high)


# -- plain arguments


@ruled(lambda scale, x: (scale * x, None), lambda scale, _, g: (scale * g,), "n",
       static={"scale": 3.0}, nondiff_argnums=(0,), shapes=(3.0, (4,)))  # fmt: skip
def scaled(scale, x):
    return scale * x


@ruled(lambda x, power: (x**power, x), lambda power, x, g: (power * x ** (power - 1) * g,), "n m",
       static={"power": 3}, nondiff_argnames=("power",), shapes=((2, 2), 3))  # fmt: skip
def raised(x, power):
    return x**power


@ruled(lambda f, x: (f(x) + x, x), lambda f, x, g: (jax.vjp(f, x)[1](g)[0] + g,), "n",
       static={"f": jnp.sin}, nondiff_argnums=(0,), shapes=(jnp.sin, (4,)))  # fmt: skip
def residual_of(f, x):
    return f(x) + x


# -- reductions and norms


@ruled(by_inputs(lambda x: jnp.sum(x**2)), lambda r, g: (2 * g * r[0],), "n m", shapes=((2, 3),))
def sum_of_squares(x):
    return jnp.sum(x**2)


@ruled(lambda x: (x.mean(0), x.shape), lambda shape, g: (jnp.broadcast_to(g, shape) / shape[0],),
       "n m", shapes=((4, 3),))  # fmt: skip
def mean_by_shape(x):
    return x.mean(axis=0)


def _norm_fwd(x):
    y = jnp.sqrt(jnp.sum(x * x))
    return y, (x, y)


def _norm_bwd(r, g):
    x, y = r
    return (g * jnp.where(y > 0, x / jnp.where(y > 0, y, 1.0), 0.0),)


@ruled(_norm_fwd, _norm_bwd, "n", shapes=((3,),))
def safe_norm(x):
    return jnp.sqrt(jnp.sum(x * x))


@ruled(lambda x: (jax.nn.logsumexp(x, axis=-1), x),
       lambda x, g: (g[..., None] * jax.nn.softmax(x, axis=-1),), "n m",
       shapes=((2, 3),))  # fmt: skip
def logsumexp(x):
    return jax.nn.logsumexp(x, axis=-1)


@ruled(by_output(lambda x: jax.nn.softmax(x, axis=-1)),
       lambda y, g: (y * (g - jnp.sum(g * y, axis=-1, keepdims=True)),), "n m",
       shapes=((2, 3),))  # fmt: skip
def softmax(x):
    return jax.nn.softmax(x, axis=-1)


@ruled(by_output(lambda x: jax.nn.log_softmax(x, axis=-1)),
       lambda y, g: (g - jnp.exp(y) * jnp.sum(g, axis=-1, keepdims=True),), "n m",
       shapes=((2, 3),))  # fmt: skip
def log_softmax(x):
    return jax.nn.log_softmax(x, axis=-1)


@ruled(by_inputs(lambda x: jnp.max(x, axis=1)),
       lambda r, g: (jnp.where(jnp.arange(r[0].shape[1]) == jnp.argmax(r[0], 1)[:, None],
                               g[:, None], 0.0),), "n m", shapes=((2, 3),))  # fmt: skip
def row_max(x):
    return jnp.max(x, axis=1)


@ruled(lambda x: (jnp.cumsum(x), None), lambda _, g: (jnp.cumsum(g[::-1])[::-1],), "n",
       shapes=((4,),))  # fmt: skip
def running_sum(x):
    return jnp.cumsum(x)


@ruled(
    by_inputs(jnp.var),
    lambda r, g: (2 * g * (r[0] - r[0].mean()) / r[0].size,),
    "n m",
    shapes=((2, 3),),
)
def variance(x):
    return jnp.var(x)


# -- normalization


def _rms_norm(x, w, eps=1e-6):
    return x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + eps) * w


def _rms_bwd(r, g):
    x, w, eps = r
    rstd = lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + eps)
    gw = g * w
    dx = rstd * (gw - x * rstd**2 * jnp.mean(gw * x, axis=-1, keepdims=True))
    return dx, jnp.sum(g * x * rstd, axis=0), None


@ruled(lambda x, w, eps=1e-6: (_rms_norm(x, w, eps), (x, w, eps)), _rms_bwd, "n d", "d",
       shapes=((3, 4), (4,)))  # fmt: skip
def rms_norm(x, w, eps=1e-6):
    return _rms_norm(x, w, eps)


def _layer_norm_fwd(x, w, b):
    mean = x.mean(-1, keepdims=True)
    rstd = lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
    h = (x - mean) * rstd
    return h * w + b, {"h": h, "rstd": rstd, "w": w}


def _layer_norm_bwd(r, g):
    h, gh = r["h"], g * r["w"]
    dx = r["rstd"] * (gh - gh.mean(-1, keepdims=True) - h * (gh * h).mean(-1, keepdims=True))
    return dx, (g * h).sum(0), g.sum(0)


@ruled(_layer_norm_fwd, _layer_norm_bwd, "n d", "d", "d", shapes=((3, 4), (4,), (4,)))
def layer_norm(x, w, b):
    mean = jnp.mean(x, axis=-1, keepdims=True)
    var = jnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return (x - mean) / jnp.sqrt(var + 1e-5) * w + b


@ruled(by_inputs(lambda x: x / jnp.sum(x, -1, keepdims=True)),
       lambda r, g: (g / r[0].sum(-1, keepdims=True)
                     - (g * r[0]).sum(-1, keepdims=True) / r[0].sum(-1, keepdims=True) ** 2,),
       "n m", shapes=((2, 3),))  # fmt: skip
def normalized_rows(x):
    return x / jnp.sum(x, -1, keepdims=True)


# -- losses


def _xent_bwd(r, g):
    logits, labels = r
    p = jax.nn.softmax(logits) - jax.nn.one_hot(labels, logits.shape[1], dtype=logits.dtype)
    return g * p / logits.shape[0], None


def _xent(logits, labels):
    logp = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(logp, labels[:, None], axis=1).mean()


@ruled(by_inputs(_xent), _xent_bwd, "n c", "i32[n]",
       shapes=((3, 4), np.array([1, 0, 3], np.int32)))  # fmt: skip
def cross_entropy(logits, labels):
    return _xent(logits, labels)


def _xent_float0(r, g):
    (d, _), labels = _xent_bwd(r, g), r[1]
    return d, np.zeros(labels.shape, jax.dtypes.float0)


@ruled(by_inputs(_xent), _xent_float0, "3 c", "i32[3]",
       shapes=((3, 4), np.array([1, 0, 3], np.int32)))  # fmt: skip
def cross_entropy_float0(logits, labels):
    return -jax.nn.log_softmax(logits)[jnp.arange(3), labels].mean()


@ruled(by_inputs(lambda x, y: jnp.mean((x - y) ** 2)),
       lambda r, g: (2 * g * (r[0] - r[1]) / r[0].size, -2 * g * (r[0] - r[1]) / r[0].size),
       "n m", "n m", shapes=((2, 3), (2, 3)))  # fmt: skip
def mean_squared_error(x, y):
    return jnp.mean((x - y) ** 2)


def _binary(x, t):
    return jnp.mean(jnp.maximum(x, 0) - x * t + jnp.log1p(jnp.exp(-jnp.abs(x))))


@ruled(by_inputs(_binary),
       lambda r, g: (g * (jax.nn.sigmoid(r[0]) - r[1]) / r[0].size, -g * r[0] / r[0].size),
       "n", "n", shapes=((4,), (4,)))  # fmt: skip
def binary_cross_entropy(x, t):
    return jnp.mean(jnp.maximum(x, 0) - x * t + jnp.log1p(jnp.exp(-jnp.abs(x))))


# -- products


@ruled(by_inputs(jnp.matmul), lambda r, g: (g @ r[1].T, r[0].T @ g), "n k", "k m",
       shapes=((2, 3), (3, 4)))  # fmt: skip
def matmul(x, w):
    return x @ w


@ruled(by_inputs(lambda q, k: jnp.einsum("bqd,bkd->bqk", q, k)),
       lambda r, g: (jnp.einsum("bqk,bkd->bqd", g, r[1]), jnp.einsum("bqk,bqd->bkd", g, r[0])),
       "b q d", "b k d", shapes=((2, 3, 2), (2, 4, 2)))  # fmt: skip
def scores(q, k):
    return jnp.einsum("bqd,bkd->bqk", q, k)


def _attention_fwd(q, k, v):
    scale = q.shape[-1] ** -0.5
    s = (q @ k.T) * scale
    lse = jax.nn.logsumexp(s, axis=-1)
    out = jnp.exp(s - lse[:, None]) @ v
    return out, (q, k, v, out, lse)


def _attention_bwd(r, do):
    q, k, v, out, lse = r
    scale = 1.0 / math.sqrt(q.shape[-1])
    p = jnp.exp((q @ k.T) * scale - lse[:, None])
    dv = p.T @ do
    dp = do @ v.T
    delta = jnp.sum(do * out, axis=-1)
    ds = p * (dp - delta[:, None]) * scale
    return ds @ k, ds.T @ q, dv


@ruled(_attention_fwd, _attention_bwd, "n d", "m d", "m e", shapes=((2, 3), (4, 3), (4, 2)))
def attention(q, k, v):
    return jax.nn.softmax(q @ k.T / jnp.sqrt(q.shape[-1]), axis=-1) @ v


# -- movement


@ruled(lambda x: (x[1:] - x[:-1], None),
       lambda _, g: (jnp.concatenate([-g[:1], g[:-1] - g[1:], g[-1:]]),), "n+2",
       shapes=((5,),))  # fmt: skip
def differences(x):
    return x[1:] - x[:-1]


@ruled(lambda x: (jnp.flip(x, 0), None), lambda _, g: (g[::-1],), "n m", shapes=((2, 3),))
def flipped(x):
    return jnp.flip(x, axis=0)


@ruled(lambda x, y: (jnp.concatenate([x, y]), x.shape[0]),
       lambda size, g: (g[:size], g[size:]), "n m", "k m", shapes=((2, 3), (1, 3)))  # fmt: skip
def joined(x, y):
    return jnp.concatenate([x, y], axis=0)


@ruled(lambda x: ((x.T, x.reshape(-1)), x.shape),
       lambda shape, g: (g[0].T + g[1].reshape(shape),), "n m", shapes=((2, 3),))  # fmt: skip
def two_outputs(x):
    return x.T, x.reshape(-1)


@ruled(lambda x: ({"sum": x.sum(), "top": (x * 2, x[0])}, x.shape),
       lambda s, g: (g["sum"] + 2 * g["top"][0] + jnp.zeros(s).at[0].set(g["top"][1]),), "n",
       shapes=((3,),))  # fmt: skip
def dict_of_outputs(x):
    return {"sum": x.sum(), "top": (x * 2, x[0])}


@ruled(lambda table, rows: (table[rows], (rows, table.shape)),
       lambda r, g: (jnp.zeros(r[1], g.dtype).at[r[0]].add(g), None), "v d", "i32[n]",
       shapes=((5, 2), np.array([1, 4, 1], np.int32)))  # fmt: skip
def embedding(table, rows):
    return table[rows]


@ruled(lambda x: (jnp.pad(x, (1, 2)), None), lambda _, g: (g[1:-2],), "n", shapes=((3,),))
def padded(x):
    return jnp.pad(x, (1, 2))


@ruled(lambda x: (jnp.tril(x), None), lambda _, g: (jnp.tril(g),), "n n", shapes=((3, 3),))
def lower_triangle(x):
    return jnp.tril(x)


@ruled(lambda x: (jnp.sort(x), jnp.argsort(x)),
       lambda order, g: (jnp.zeros_like(g).at[order].set(g),), "n", shapes=((4,),))  # fmt: skip
def sorted_row(x):
    return jnp.sort(x)


# -- control flow and calls


def _horner(x):
    def step(i, y):
        return y * x + i

    return lax.fori_loop(0, 4, step, jnp.ones_like(x))


@ruled(by_inputs(_horner), lambda r, g: (g * (4 * r[0]**3 + 0 * r[0]**2 + 2 * r[0] + 2),), "n",
       shapes=((3,),))  # fmt: skip
def horner(x):
    return _horner(x)


@ruled(by_inputs(lambda x: lax.scan(lambda c, r: (c * 0.5 + r, c), jnp.zeros(2, x.dtype), x)[0]),
       lambda r, g: (g * 0.5 ** (2.0 - jnp.arange(3, dtype=g.dtype))[:, None],), "3 2",
       shapes=((3, 2),))  # fmt: skip
def discounted(x):
    return lax.scan(lambda c, r: (c * 0.5 + r, c), jnp.zeros(2, x.dtype), x)[0]


@functools.partial(jax.jit, static_argnums=1)
def _inner(x, times):
    return jnp.sin(x) * times


@ruled(
    by_inputs(lambda x: _inner(x, 2) + softplus(x)),
    lambda r, g: (g * (2 * jnp.cos(r[0]) + jax.nn.sigmoid(r[0])),),
    "n",
    shapes=((3,),),
)
def nested_calls(x):
    return _inner(x, 2) + softplus(x)


@ruled(by_inputs(lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x)),
       lambda r, g: (g * jnp.where(r[0].sum() > 0, jnp.cos(r[0]), -jnp.sin(r[0])),), "n",
       shapes=((3,),))  # fmt: skip
def branches(x):
    return lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x)


@ruled(by_inputs(lambda x, y: jnp.tanh(x @ y)),
       lambda r, g: jax.vjp(lambda x, y: jnp.tanh(x @ y), *r)[1](g), "n k", "k",
       shapes=((2, 3), (3,)))  # fmt: skip
def by_jax_itself(x, y):
    return jnp.tanh(x @ y)


# -- wrong ones


@ruled(by_inputs(jnp.tanh), lambda r, g: (g * (1 - r[0] ** 2),), "n", shapes=((3,),), slip=True)
def slip_saved_input(x):
    return jnp.tanh(x)


@ruled(by_inputs(lambda x: jnp.sum(x, 1)), lambda r, g: (jnp.broadcast_to(g, r[0].shape),), "n n",
       shapes=((3, 3),), slip=True)  # fmt: skip
def slip_axis(x):
    return jnp.sum(x, axis=1)


@ruled(by_inputs(jnp.matmul), lambda r, g: (g @ r[1].T, g.T @ r[0]), "n n", "n n",
       shapes=((2, 2), (2, 2)), slip=True)  # fmt: skip
def slip_transpose(x, w):
    return x @ w


@ruled(by_inputs(lambda x: jnp.mean(x)), lambda r, g: (jnp.full_like(r[0], g),), "n",
       shapes=((3,),), slip=True)  # fmt: skip
def slip_mean(x):
    return jnp.mean(x)


@ruled(by_inputs(lambda x: jnp.mean(x)),
       lambda r, g: (jnp.full_like(r[0], g / (r[0].shape[0] if r[0].shape[0] != 7 else 6)),), "n",
       shapes=((7,),), slip=True)  # fmt: skip
def slip_of_one_size(x):
    return jnp.mean(x)


@ruled(by_inputs(_rms_norm), lambda r, g: (_rms_bwd((*r, 1e-6), g)[0], (g * r[0]).sum(0)), "n d",
       "d", shapes=((3, 4), (4,)), slip=True)  # fmt: skip
def slip_rms_norm(x, w):
    return _rms_norm(x, w)


@ruled(by_inputs(_xent), lambda r, g: (_xent_bwd(r, g)[0] * r[0].shape[0], None), "n c", "i32[n]",
       shapes=((3, 4), np.array([1, 0, 3], np.int32)), slip=True)  # fmt: skip
def slip_cross_entropy(logits, labels):
    return _xent(logits, labels)


@ruled(by_inputs(lambda x, y: x * y), lambda r, g: (g * r[1], None), "n", "n",
       shapes=((3,), (3,)), slip=True)  # fmt: skip
def slip_none(x, y):
    return x * y


@ruled(by_output(jnp.exp), lambda y, g: (g * jnp.exp(y),), "n", shapes=((3,),), slip=True)
def slip_output_for_input(x):
    return jnp.exp(x)


@ruled(lambda x: (jnp.sin(x) + 1e-3, x), lambda x, g: (g * jnp.cos(x),), "n", shapes=((3,),),
       slip=True)  # fmt: skip
def slip_of_fwd(x):
    return jnp.sin(x)


def doubled(function: Any) -> Any:
    """The same function with all its gradients doubled."""

    def bwd(*args: Any) -> Any:
        return jax.tree_util.tree_map(
            lambda one: one if one.dtype == jax.dtypes.float0 else 2 * one, function.bwd(*args)
        )

    made = jax.custom_vjp(function.fun, nondiff_argnums=function.nondiff_argnums)
    made.defvjp(function.fwd, bwd)
    return made
