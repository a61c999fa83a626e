"""Pooling and spectral decompositions of JAX, traced as they are."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg

pytestmark = pytest.mark.peers
jax: Any = pytest.importorskip("jax")
jnp: Any = pytest.importorskip("jax.numpy")
lax: Any = pytest.importorskip("jax.lax")


def average(x: Any) -> Any:
    return lax.reduce_window(x, 0.0, lax.add, (2,), (2,), "VALID") / 2


def greatest(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,), "VALID")


def smoothed(x: Any) -> Any:
    return lax.reduce_window(x, 0.0, lax.add, (3,), (1,), ((1, 1),))


def widened(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (2,), (1,), ((1, 0),))


def _greatest_bwd(x: Any, g: Any) -> Any:
    first = x[::2] > x[1::2]
    return (jnp.stack([jnp.where(first, g, 0), jnp.where(first, 0, g)], -1).reshape(x.shape),)


def _widened_bwd(x: Any, g: Any) -> Any:
    rises = x[1:] > x[:-1]
    own = jnp.concatenate([g[:1], jnp.where(rises, g[1:], 0)])
    before = jnp.concatenate([jnp.where(rises, 0, g[1:]), jnp.zeros(1)])
    return (own + before,)


def _smoothed_bwd(x: Any, g: Any) -> Any:
    zero = jnp.zeros(1)
    return (g + jnp.concatenate([g[1:], zero]) + jnp.concatenate([zero, g[:-1]]),)


def spectral(a: Any) -> Any:
    return jnp.exp(jnp.linalg.eigh(a)[0]).sum()


def _spectral_bwd(a: Any, g: Any) -> Any:
    values, vectors = jnp.linalg.eigh(a)
    return (g * (vectors * jnp.exp(values)) @ vectors.T,)


def nuclear(a: Any) -> Any:
    return jnp.linalg.svd(a, compute_uv=False).sum()


def _nuclear_bwd(a: Any, g: Any) -> Any:
    left, _, right = jnp.linalg.svd(a, full_matrices=False)
    return (g * left @ right,)


CASES = [
    (average, "2*n", lambda x, g: (jnp.repeat(g / 2, 2),), "PROVED"),
    (average, "2*n", lambda x, g: (jnp.repeat(g, 2),), "REFUTED"),
    (greatest, "2*n", _greatest_bwd, "PROVED"),
    (greatest, "2*n", lambda x, g: (jnp.repeat(g, 2),), "REFUTED"),
    (smoothed, "n", _smoothed_bwd, "PROVED"),
    (smoothed, "n", lambda x, g: (3 * g,), "REFUTED"),
    (widened, "n", _widened_bwd, "PROVED"),
    (spectral, "n n", _spectral_bwd, "PROVED"),
    (spectral, "n n", lambda a, g: (2 * _spectral_bwd(a, g)[0],), "REFUTED"),
    (nuclear, "n+k n", _nuclear_bwd, "PROVED"),
]


@pytest.mark.parametrize(("fun", "shape", "bwd", "verdict"), CASES)
def test_the_verdict_on(fun: Any, shape: str, bwd: Any, verdict: str) -> None:
    made = jax.custom_vjp(fun)
    made.defvjp(lambda x: (fun(x), x), bwd)
    report = sg.verify(made, shape, suggest=False)
    assert str(report.verdict) == verdict, str(report)


def test_the_shorter_side_of_an_svd_has_to_be_known() -> None:
    made = jax.custom_vjp(nuclear)
    made.defvjp(lambda a: (nuclear(a), a), _nuclear_bwd)
    with pytest.raises(sg.errors.UnsupportedOpError, match="shorter side"):
        sg.verify(made, "n m")


def test_qr_is_refused_with_what_to_write() -> None:
    made = jax.custom_vjp(lambda a: jnp.linalg.qr(a)[1])
    made.defvjp(lambda a: (made(a), a), lambda a, g: (g,))
    with pytest.raises(sg.errors.UnsupportedOpError, match="cholesky"):
        sg.verify(made, "n n")
