"""Repairs of ``bwd`` in the words of ``jax.numpy``: pasted, they are PROVED."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

import symgrad as sg
from tests.pasting.test_repairs import applied

pytestmark = pytest.mark.peers
pytest.importorskip("jax")

HEAD = "import jax\nimport jax.numpy as jnp\n\n\n"
TEXT = """@jax.custom_vjp
def op({takes}):
    return {value}


def fwd({takes}):
    return op({takes}), ({takes},)


def bwd(res, g):
    {takes}, = res
    return {returned}


op.defvjp(fwd, bwd)
"""
WRONG = {
    "linear": ("x, w", "jnp.tanh(x @ w)", "g @ w.T, x.T @ g", ("n k", "k m")),
    "softmax": ("x", "jax.nn.softmax(x, -1)", "g * jax.nn.softmax(x, -1),", ("n m",)),
    "mean": ("x", "jnp.mean(x * x, axis=1)", "2 * x * g[:, None],", ("n m",)),
    "where": ("x", "jnp.where(x > 0, x * x, 3 * x)", "jnp.where(x > 0, x, 3.0) * g,", ("n",)),
    "batched": ("x, w", "x @ w", "g @ w, jnp.swapaxes(x, 1, 2) @ g", ("b n n", "b n n")),
    "order": ("x", "jnp.transpose(x, (1, 2, 0)) ** 2", "2 * x,", ("n n n",)),
    "scan": ("x", "jnp.cumsum(x, axis=0)", "jnp.cumsum(g, axis=0),", ("n",)),
    "part": ("x", "x[1:] * 2.0", "jnp.zeros_like(x),", ("n+1",)),
    "bias": ("x, b", "jnp.exp(x) + b", "g * jnp.exp(x), jnp.mean(g, axis=0)", ("n m", "m")),
    "joined": ("x, y", "jnp.concatenate([jnp.sin(x), y])", "g[: x.shape[0]], g[: y.shape[0]]",
               ("n", "n")),
}  # fmt: skip


def loaded(path: Path, text: str) -> Any:
    """The function of a file with this text."""
    path.write_text(HEAD + text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module.op


@pytest.mark.parametrize("name", WRONG)
def test_a_repair_of_bwd_is_proved_where_it_is_pasted(name: str, tmp_path: Path) -> None:
    takes, value, returned, specs = WRONG[name]
    text = TEXT.format(takes=takes, value=value, returned=returned)
    report = sg.verify(loaded(tmp_path / f"wrong_{name}.py", text), *specs)
    assert report.verdict is sg.REFUTED, str(report)
    assert report.diff, str(report)
    right = applied(HEAD + text, report.diff).removeprefix(HEAD)
    again = sg.verify(loaded(tmp_path / f"right_{name}.py", right), *specs)
    assert again.verdict is sg.PROVED, f"{report.diff}\n{again}"


def test_a_repair_reads_the_residuals_and_saves_nothing(tmp_path: Path) -> None:
    text = TEXT.format(takes="x", value="jnp.exp(x)", returned="2 * g * y,").replace(
        "return op(x), (x,)", "return jnp.exp(x), (jnp.exp(x),)"
    )
    text = text.replace("    x, = res", "    (y,) = res")
    report = sg.verify(loaded(tmp_path / "residuals.py", text), "n m")
    assert report.inputs["x"].suggestion in ("g * y", "y * g")
    assert "return g * y,\n" in report.diff
