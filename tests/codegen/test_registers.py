"""Few sums side by side stay in registers; what is dear has lanes ahead of its readers."""

from __future__ import annotations

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


def _steps(x: Any, y: Any, g: Any) -> Any:
    """How distances of all pairs change: for each pair a division, for each coordinate little."""
    apart = x.unsqueeze(1) - y.unsqueeze(0)
    change = (g / (1 + g * g)).unsqueeze(-1) * apart
    return change.sum(1), change.sum(0)


def _ready(x: Any, y: Any, g: Any) -> Any:
    """What is divided is reduced in the loop that reads it: nothing can come ahead."""
    scaled = g.unsqueeze(-1) * y
    return (x.unsqueeze(1) * (1 / (1 + scaled.sum(-1, keepdim=True)))).sum(1), scaled.sum((0, 1))


FIXED = {
    "pairs": (_steps, ("f32[n 16]", "f32[m 16]", "f32[n m]")),
    "pairs, f64": (_steps, ("f64[n 3]", "f64[m 3]", "f64[n m]")),
    "more than registers": (_steps, ("f32[n 80]", "f32[m 80]", "f32[n m]")),
    "any": (_steps, ("f32[n d]", "f32[m d]", "f32[n m]")),
    "reduced first": (_ready, ("f32[n 4]", "f32[n m 4]", "f32[n m]")),
}  # fmt: skip


def _op(name: str) -> tuple[Any, ...]:
    class Op(sg.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            return FIXED[name][0](*inputs)

    return (Op, *FIXED[name][1])


def _graph(name: str) -> Graph:
    (case,) = plan(trace(*_op(name)), name="op").cases
    assert case.inference is not None
    return case.inference.graph


def test_text() -> None:
    body = emit_kernel(_graph("pairs"), "k").view.body
    assert "_sums[16];" in body
    assert body.index("kept_own[j] = ") < body.index("_sums[k] += "), body
    assert "_sums[" not in emit_kernel(_graph("any"), "k").view.body
    assert "_sums[" not in emit_kernel(_graph("more than registers"), "k").view.body


@pytest.mark.slow
@pytest.mark.parametrize("name", FIXED)
def test_is_what_numpy_makes_of_it(name: str, tmp_path: Path) -> None:
    kernel = compile_graphs({"k": _graph(name)}, tmp_path)["k"]
    source = np.random.default_rng(0)
    for n, m in ((3, 5), (1, 1), (0, 3), (3, 0), (40, 71), (300, 2)):
        sizes = {"n": n, "m": m, "d": 7}
        feeds = feeds_of(kernel.graph, sizes, source)
        wanted = evaluate(list(kernel.graph.outputs.values()), feeds, sizes)
        tolerance = 1e-11 if wanted[0].dtype == np.float64 else 2e-4
        for found, exact in zip(kernel(feeds, sizes), wanted, strict=True):
            np.testing.assert_allclose(found, exact, tolerance, tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIXED)
def test_is_validated(name: str) -> None:
    sg.compile(*_op(name), validate=True)
