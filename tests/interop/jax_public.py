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
