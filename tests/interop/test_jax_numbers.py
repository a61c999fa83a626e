"""Plain numbers of functions of JAX: for all of them, where nothing asks for their value."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest

import symgrad as sg

pytestmark = pytest.mark.peers
jax: Any = pytest.importorskip("jax")
jnp: Any = pytest.importorskip("jax.numpy")


def _made(fun: Any, bwd: Any, fixed: tuple[int, ...] = (1,)) -> Any:
    """A function whose ``fwd`` calls it and keeps its first array."""
    made = partial(jax.custom_vjp, nondiff_argnums=fixed)(fun)
    array = min({0, 1, 2} - {*fixed})
    made.defvjp(lambda *args: (made(*args), args[array]), bwd)
    return made


def leaky(x: Any, slope: float = 0.1) -> Any:
    return jnp.where(x > 0, x, slope * x)


def sine(x: Any, alpha: float = 1.0) -> Any:
    return jnp.sin(alpha * x)


def squashed(k: Any, x: Any) -> Any:
    return jnp.tanh(k * x)


def typed(k: Any, x: Any) -> Any:
    return k * x if isinstance(k, float) else x


def branching(x: Any, alpha: float = 1.0) -> Any:
    return alpha * x if alpha > 0 else x


def rooted(x: Any, alpha: float = 4.0) -> Any:
    return math.sqrt(alpha) * x


_SLOPE = "all real slope"
CASES = [
    (leaky, (1,), lambda slope, x, g: (jnp.where(x > 0, g, slope * g),), "PROVED", _SLOPE),
    (sine, (1,), lambda alpha, x, g: (g * alpha * jnp.cos(alpha * x),), "PROVED",
     "all real alpha"),
    (sine, (1,), lambda alpha, x, g: (g * jnp.cos(alpha * x),), "REFUTED", ""),
    (branching, (1,), lambda alpha, x, g: (g * alpha if alpha > 0 else g,), "PROVED", ""),
    (rooted, (1,), lambda alpha, x, g: (g * math.sqrt(alpha),), "PROVED", ""),
    (squashed, (0,), lambda k, x, g: (g * k * (1 - jnp.tanh(k * x) ** 2),), "PROVED",
     "all real k"),
    (squashed, (0,), lambda k, x, g: (g * (1 - jnp.tanh(k * x) ** 2),), "REFUTED", "all real k"),
    (typed, (0,), lambda k, x, g: (k * g,), "PROVED", "all real k"),
    (typed, (0,), lambda k, x, g: (g,), "REFUTED", "all real k"),
]  # fmt: skip


@pytest.mark.parametrize(("fun", "fixed", "bwd", "verdict", "quantified"), CASES)
def test_a_number_is_a_symbol_where_nothing_asks_for_it(
    fun: Any, fixed: tuple[int, ...], bwd: Any, verdict: str, quantified: str
) -> None:
    report = sg.verify(_made(fun, bwd, fixed), suggest=False)
    assert str(report.verdict) == verdict, str(report)
    assert ", ".join(report.quantified) == quantified, str(report)


@pytest.mark.parametrize("shape", ["", "n", "n m"])
def test_a_clipped_gradient_is_named_with_its_limits(shape: str) -> None:
    clip = _made(lambda lo, hi, x: x, lambda lo, hi, x, g: (jnp.clip(g, lo, hi),), (0, 1))
    free = {"lo": "constant, number", "hi": "constant, number"}
    report = sg.verify(clip, "", "", shape, assume=free, suggest=False)
    assert str(report.verdict) == "SURROGATE?"
    assert "clipped to [lo, hi]" in str(report)
    if not shape:
        assert str(sg.verify(clip, suggest=False).verdict) == "SURROGATE?"


def test_jax_is_as_it_was() -> None:
    sg.verify(_made(leaky, CASES[0][2]), "n", suggest=False)
    function = _made(leaky, CASES[0][2])
    with pytest.raises(jax.errors.UnexpectedTracerError):
        jax.jit(lambda slope: function(jnp.ones(2), slope))(0.5)
