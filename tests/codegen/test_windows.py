"""What lies under windows: one sum for all of their places, in loops with the lanes inside."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.codegen.emit.kernel import emit_kernel
from symgrad.codegen.program.definitions import build_program
from symgrad.codegen.program.joined import as_sum, products
from symgrad.codegen.schedule.items import PRODUCT, Items
from symgrad.codegen.schedule.scheduler import schedule
from symgrad.frontend.trace import trace
from symgrad.ir.expr import postorder
from symgrad.kernels import KernelPlan, plan
from symgrad.passes.evaluate import evaluate
from tests.codegen.support import compile_graphs, feeds_of, kernels_of, op_of

SIZES = [
    {"b": 2, "c": 2, "d": 3, "n": 5, "m": 6}, {"b": 1, "c": 1, "d": 1, "n": 3, "m": 3},
    {"b": 3, "c": 5, "d": 2, "n": 21, "m": 70}, {"b": 0, "c": 2, "d": 1, "n": 4, "m": 9},
]  # fmt: skip
Specs = tuple[str, str]
WINDOWS: dict[str, tuple[Callable[..., Any], Specs, int]] = {
    "one axis": (lambda x, w: sg.conv1d(x, w), ("f32[b c m]", "f32[d c 3]"), 3),
    "two axes": (lambda x, w: sg.conv2d(x, w, padding=1), ("f32[b c n m]", "f32[d c 3 3]"), 9),
    "of known channels": (
        lambda x, w: sg.conv2d(x, w), ("f32[2 4 n m]", "f32[3 4 2 3]"), 6,
    ),
    "then more": (lambda x, w: sg.relu(sg.conv2d(x, w)) * 2, ("f64[b c n m]", "f64[d c 2 3]"), 6),
    "steps": (lambda x, w: sg.conv1d(x, w, stride=2), ("f32[b c m]", "f32[d c 3]"), 3),
    "groups": (lambda x, w: sg.conv1d(x, w, groups=2), ("f32[b 6 m]", "f32[4 3 3]"), 3),
    "transposed": (
        lambda x, w: sg.conv_transpose2d(x, w), ("f32[b c n m]", "f32[c d 3 2]"), 6,
    ),
}  # fmt: skip


def _kernels(name: str) -> dict[str, KernelPlan]:
    forward, specs, _ = WINDOWS[name]
    return kernels_of(forward, specs)


@pytest.mark.parametrize("name", WINDOWS)
def test_there_is_one_sum_for_all_places(name: str) -> None:
    for kernel in _kernels(name).values():
        bodies = [one.body for one in build_program(kernel.graph).definitions]
        found = [len(products(one.body)) for e in postorder(bodies) if (one := as_sum(e))]
        assert WINDOWS[name][2] in found, (kernel.name, found)


@pytest.mark.parametrize("name", WINDOWS)
def test_the_lanes_are_inside(name: str) -> None:
    """What lies together in memory is run through by the innermost loop."""
    for kernel in _kernels(name).values():
        made = schedule(build_program(kernel.graph))
        for item in Items(made.program, made.order, made.kept).found:
            if item.reduced and item.body is not None and products(item.body):
                lasts = {
                    a for pair in products(item.body) for f in pair for a in f.indices[-1].axes
                }
                assert item.axes[-1] in lasts, (kernel.name, item.axes)


def test_between_its_ends_a_row_has_no_conditions() -> None:
    """At its few ends, places are done one by one: lanes would multiply what is not read."""
    body = emit_kernel(_kernels("one axis")["op_backward"].graph, "k").view.body
    parts = re.findall(r"for \(int64_t (\w+) = (\w+); \1 < ([\w +]+); \1\+\+\) {\n([^{}]*)}", body)
    asked = {(start, stop): "?" in text for _, start, stop, text in parts}
    ends = re.findall(r"for \(int64_t (place_?) = (\w+); \1 < (\w+);", body)
    both = [["0", "low"], ["high", "m"]]
    assert [pair for _, *pair in ends] == 2 * both  # of strips of channels, and of what is left
    assert all(asked[place, f"{place} + 1"] for place, *_ in ends)
    assert not asked["low", "high"]


def test_products_of_matrices_stay_with_the_blas() -> None:
    class Op(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any, u: Any) -> Any:
            return x[:, :9] @ w[:9] + x[:, 9:] @ w[9:] + x @ u

    (case,) = plan(trace(Op, "f32[n 20]", "f32[20 m]", "f32[20 m]"), name="op").cases
    made = schedule(build_program(case.inference.graph))
    items = Items(made.program, made.order, made.kept).found
    assert sum(item.role == PRODUCT for item in items) == 3


@pytest.mark.slow
@pytest.mark.parametrize("name", WINDOWS)
def test_is_what_numpy_makes_of_it(name: str, tmp_path: Path) -> None:
    graphs = {key: kernel.graph for key, kernel in _kernels(name).items()}
    source = np.random.default_rng(0)
    for kernel in compile_graphs(graphs, tmp_path).values():
        for sizes in SIZES:
            feeds = feeds_of(kernel.graph, sizes, source)
            wanted = evaluate(list(kernel.graph.outputs.values()), feeds, sizes)
            for got, one in zip(kernel(feeds, sizes), wanted, strict=True):
                tolerance = 1e-11 if one.dtype == np.float64 else 5e-5
                np.testing.assert_allclose(got, one, tolerance, tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transposed", "of known channels"])
def test_is_validated(name: str) -> None:
    """One axis is "any channels" of test_strips.py."""
    sg.compile(op_of(WINDOWS[name][0]), *WINDOWS[name][1], validate=True)
