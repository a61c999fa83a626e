"""Sums for a strip of places and a tile of lanes at a time, in registers."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.codegen.emit.kernel import emit_kernel
from symgrad.frontend.trace import trace
from symgrad.kernels import KernelPlan, plan
from symgrad.passes.evaluate import evaluate
from tests.codegen.support import compile_graphs, feeds_of, kernels_of, op_of

Specs = tuple[str, str]
CASES: dict[str, tuple[Callable[..., Any], Specs]] = {
    "any channels": (lambda x, w: sg.conv1d(x, w), ("f32[b c m]", "f32[d c 3]")),
    "two strips": (lambda x, w: sg.conv2d(x, w), ("f32[2 8 n m]", "f32[8 8 3 3]")),
    "strips and one left": (lambda x, w: sg.conv2d(x, w), ("f64[b 3 n m]", "f64[9 3 3 2]")),
    "one strip": (lambda x, w: sg.conv1d(x, w), ("f32[b 3 m]", "f32[3 3 5]")),
    "conditions on rows": (lambda x, w: sg.conv2d(x, w), ("f32[2 4 n m]", "f32[5 4 3 1]")),
    "inner loops": (lambda x, w: sg.conv2d(x, w, padding=1), ("f32[b c n m]", "f32[d c 3 3]")),
}  # fmt: skip
SIZES = (
    {"b": 2, "c": 2, "d": 3, "n": 5, "m": 6}, {"b": 1, "c": 4, "d": 4, "n": 3, "m": 20},
    {"b": 3, "c": 5, "d": 9, "n": 7, "m": 70}, {"b": 0, "c": 2, "d": 1, "n": 4, "m": 35},
)  # fmt: skip


def _kernels(name: str) -> dict[str, KernelPlan]:
    return kernels_of(*CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_what_lies_in_lanes_serves_a_strip(name: str) -> None:
    found = _kernels(name)
    if name == "inner loops":  # beside what is padded, lanes with conditions are left as they are
        del found["op_backward"]
    for kernel in found.values():
        body = emit_kernel(kernel.graph, "k").view.body
        assert "#pragma GCC unroll " in body, kernel.name


def test_conditions_that_do_not_vary_stand_around_a_strip() -> None:
    body = emit_kernel(_kernels("conditions on rows")["op_backward"].graph, "k").view.body
    parts = body.split("#pragma GCC unroll ")
    assert len(parts) > 3
    for before, part in pairwise(parts):
        assert before.rstrip().endswith("{")
        assert "if (" in before.rstrip().split("\n")[-1]
        assert "?" not in part.partition("#pragma omp simd")[2].partition("}")[0]


def test_short_lanes_stay_as_they_are() -> None:
    class Op(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            return sg.conv1d(x, w)

    (case,) = plan(trace(Op, "f32[b 8 9]", "f32[8 8 3]"), name="op").cases
    assert case.inference is not None
    assert "unroll" not in emit_kernel(case.inference.graph, "k").view.body


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_is_what_numpy_makes_of_it_on_any_number_of_threads(name: str, tmp_path: Path) -> None:
    graphs = {key: kernel.graph for key, kernel in _kernels(name).items()}
    source = np.random.default_rng(0)
    for kernel in compile_graphs(graphs, tmp_path).values():
        library: Any = kernel.library
        for sizes in SIZES:
            feeds = feeds_of(kernel.graph, sizes, source)
            wanted = evaluate(list(kernel.graph.outputs.values()), feeds, sizes)
            results = []
            for threads in (1, 2, 3, 5):
                library.omp_set_num_threads(ctypes.c_int(threads))
                results.append(kernel(feeds, sizes))
            library.omp_set_num_threads(ctypes.c_int(os.cpu_count() or 1))
            for number, one in enumerate(wanted):
                tolerance = 1e-11 if one.dtype == np.float64 else 5e-5
                np.testing.assert_allclose(results[0][number], one, tolerance, tolerance)
                assert len({found[number].tobytes() for found in results}) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["any channels", "two strips", "one strip", "conditions on rows"])
def test_is_validated(name: str) -> None:
    sg.compile(op_of(CASES[name][0]), *CASES[name][1], validate=True)
