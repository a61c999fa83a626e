"""Products that add up over rows, by rows of their own: what they read lies in whole arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.frontend.trace import trace
from symgrad.kernels import plan
from symgrad.passes.evaluate import evaluate
from tests.codegen.support import compile_graphs


class Heads(sg.Function):
    """A product by heads, and that of its rows, as the gradient of a weight has them."""

    @staticmethod
    def forward(ctx: Any, x: Any, s: Any) -> Any:
        rows = x.shape[0]
        heads = (s * s) @ x.reshape(rows, 4, 16).transpose(0, 1)
        return heads.transpose(0, 1).reshape(rows, 64).transpose(0, 1) @ x


def test_a_copy_of_a_product_of_which_there_are_only_blocks(tmp_path: Path) -> None:
    (case,) = plan(trace(Heads, "f32[n 64]", "f32[4 n n]"), name="op").cases
    assert case.inference is not None
    kernel = compile_graphs({"k": case.inference.graph}, tmp_path)["k"]
    for n in (3, 70, 300):
        shapes = (n, 64), (4, n, n)
        source = np.random.default_rng(n)
        feeds = {
            name: source.standard_normal(shape).astype("f")
            for name, shape in zip(kernel.graph.inputs, shapes, strict=True)
        }
        (wanted,) = evaluate(list(kernel.graph.outputs.values()), feeds, {"n": n})
        (found,) = kernel(feeds, {"n": n})
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-3 * n)


class Bilinear(sg.Function):
    """A product of all rows, and one of each row by itself that reads it."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        by_heads = (x @ w).reshape(x.shape[0], 4, 16)
        return by_heads, by_heads @ x.reshape(x.shape[0], 4, 16).transpose(1, 2)


def test_groups_behind_the_last_row_multiply_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """33 rows in groups of two are 17 groups of 32."""
    (case,) = plan(trace(Bilinear, "f32[n 64]", "f32[64 64]"), name="op").cases
    assert case.inference is not None
    kernel = compile_graphs({"k": case.inference.graph}, tmp_path)["k"]
    source = np.random.default_rng(0)
    feeds = {
        name: source.standard_normal(shape).astype("f")
        for name, shape in zip(kernel.graph.inputs, ((33, 64), (64, 64)), strict=True)
    }
    wanted = evaluate(list(kernel.graph.outputs.values()), feeds, {"n": 33})
    for found, exact in zip(kernel(feeds, {"n": 33}), wanted, strict=True):
        np.testing.assert_allclose(found, exact, 1e-4, 1e-2)
    assert "illegal" not in "".join(capfd.readouterr())
