"""Short sums for each pair of two axes: side by side, over a transposed copy of what is reused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.codegen.emit.kernel import emit_kernel
from symgrad.frontend.trace import trace
from symgrad.ir.graph import Graph
from symgrad.kernels import plan
from symgrad.passes.evaluate import evaluate
from tests.codegen.support import compile_graphs, feeds_of

SIZES = [
    {"n": 3, "m": 5, "d": 2, "b": 2}, {"n": 1, "m": 1, "d": 1, "b": 1},
    {"n": 0, "m": 3, "d": 2, "b": 3}, {"n": 3, "m": 4, "d": 0, "b": 0},
    {"n": 40, "m": 71, "d": 31, "b": 9}, {"n": 40, "m": 71, "d": 40, "b": 2},
]  # fmt: skip


def _differences(x: Any, y: Any) -> Any:
    return x.unsqueeze(-2) - y.unsqueeze(-3)


def _gauss(x: Any, y: Any) -> Any:
    return sg.exp(-(_differences(x, y) ** 2).sum(-1)).sum(-1)


PAIRS: dict[str, tuple[Callable[..., Any], tuple[str, str], bool]] = {
    "taxicab": (lambda x, y: _differences(x, y).abs().sum(-1), ("f32[n d]", "f32[m d]"), True),
    "of a batch": (_gauss, ("f64[b n d]", "f64[b m d]"), True),
    "of three": (lambda x, y: sg.sqrt((_differences(x, y) ** 2).sum(-1) + 1),
                 ("f32[n 3]", "f32[m 3]"), True),
    "to sixteen": (lambda x, y: _differences(x, y).abs().sum(-1), ("f32[n d]", "f32[16 d]"), True),
    "to three": (lambda x, y: _differences(x, y).abs().sum(-1), ("f32[n d]", "f32[3 d]"), True),
    "guarded": (lambda x, y: _differences(x, sg.cat([y, y])).abs().sum(-1),
                ("f32[n d]", "f32[m d]"), False),
    "read once": (lambda x, y: (x * y).sum(-1), ("f32[b n d]", "f32[b n d]"), False),
}  # fmt: skip


def _graph(name: str) -> Graph:
    function, specs, _ = PAIRS[name]

    class Op(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return function(x, y)

    (case,) = plan(trace(Op, *specs), name="op").cases
    assert case.inference is not None
    return case.inference.graph


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_reused_is_transposed(name: str) -> None:
    body = emit_kernel(_graph(name), "k").view.body
    assert ("_copy" in body) is PAIRS[name][2], body


@pytest.mark.parametrize(
    ("name", "test"), [("to sixteen", "if (d <= 65536)"), ("to three", "if (d < SHORT_ROW)")]
)
def test_long_sums_are_side_by_side_where_the_lanes_are_many(name: str, test: str) -> None:
    """Then they are not taken out of lanes for each pair."""
    assert test in emit_kernel(_graph(name), "k").view.body


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_is_what_numpy_makes_of_it(name: str, tmp_path: Path) -> None:
    kernel = compile_graphs({"k": _graph(name)}, tmp_path)["k"]
    source = np.random.default_rng(0)
    for sizes in SIZES:
        feeds = feeds_of(kernel.graph, sizes, source)
        wanted = evaluate(list(kernel.graph.outputs.values()), feeds, sizes)
        tolerance = 1e-11 if wanted[0].dtype == np.float64 else 2e-5
        np.testing.assert_allclose(kernel(feeds, sizes)[0], wanted[0], tolerance, tolerance)
