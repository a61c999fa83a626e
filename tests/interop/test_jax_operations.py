"""What a trace of a program of JAX computes is what JAX computes, for several sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

from symgrad.frontend.trace import trace  # noqa: E402
from symgrad.passes.evaluate import evaluate  # noqa: E402
from tests.frontend.support import case_for  # noqa: E402

pytestmark = pytest.mark.peers

SPECS = {
    "x": "f64[n m]", "y": "f64[n m]", "p": "f64[n m]", "v": "f64[m]", "b": "f64[n m k]",
    "w": "f64[m k]", "three": "f64[3]", "i": "i64[n]", "j": "i64[n m]", "mask": "bool[n m]",
}  # fmt: skip
SIZES = ({"n": 2, "m": 3, "k": 2}, {"n": 4, "m": 4, "k": 3})
LINES = (Path(__file__).parent / "jax_operations.txt").read_text().splitlines()
TEXTS = [line for line in LINES if line and not line.startswith("#")]


def _arrays(sizes: dict[str, int]) -> dict[str, Any]:
    random = np.random.default_rng(sum(sizes.values()))
    n, m, k = sizes["n"], sizes["m"], sizes["k"]
    shapes = {"x": (n, m), "y": (n, m), "v": (m,), "b": (n, m, k), "w": (m, k), "three": (3,)}
    found: dict[str, Any] = {name: random.normal(size=shape) for name, shape in shapes.items()}
    found["p"] = random.uniform(0.5, 2.0, (n, m))
    found["i"] = random.integers(0, min(n, 3), n)
    found["j"] = random.integers(0, m, (n, m))
    found["mask"] = random.random((n, m)) > 0.5
    return {name: found[name] for name in SPECS}


def _program(text: str) -> Any:
    names = ", ".join(SPECS)
    space: dict[str, Any] = {"jax": jax, "jnp": jnp, "lax": lax}
    exec(f"def f({names}):\n    return {text}", space)
    return space["f"]


@pytest.mark.parametrize("text", TEXTS)
def test_as_jax(text: str) -> None:
    program = _program(text)
    function = jax.custom_vjp(program)
    function.defvjp(lambda *args: (program(*args), None), lambda r, g: (None,) * len(SPECS))
    graphs = trace(function, *SPECS.values())
    for sizes in SIZES:
        arrays = _arrays(sizes)
        (found,) = evaluate(case_for(graphs, sizes).outputs, arrays, sizes)
        with jax.enable_x64(True):
            wanted = np.asarray(jax.jit(program)(*map(jnp.asarray, arrays.values())))
        assert found.shape == wanted.shape
        assert found.dtype.kind == wanted.dtype.kind
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)
