"""Where rows are short, the lanes of a sum run along an axis of known length."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.codegen.emit.kernel import emit_kernel
from symgrad.kernels import KernelPlan
from symgrad.passes.evaluate import evaluate
from tests.codegen.support import compile_graphs, feeds_of, kernels_of, op_of

Specs = tuple[str, str]
ACROSS: dict[str, tuple[Callable[..., Any], Specs]] = {
    "two axes": (lambda x, w: sg.conv2d(x, w), ("f32[2 8 n m]", "f32[8 8 3 3]")),
    "one axis, doubles": (lambda x, w: sg.conv1d(x, w), ("f64[b 5 m]", "f64[8 5 3]")),
}  # fmt: skip
OTHERS: dict[str, tuple[Callable[..., Any], Specs]] = {
    "any channels": (lambda x, w: sg.conv1d(x, w), ("f32[b c m]", "f32[d c 3]")),
    "few channels": (lambda x, w: sg.conv1d(x, w), ("f32[b 8 m]", "f32[7 8 3]")),
    "many channels": (lambda x, w: sg.conv1d(x, w), ("f32[b 8 m]", "f32[17 8 3]")),
    "long rows": (lambda x, w: sg.conv1d(x, w), ("f32[b 8 40]", "f32[8 8 3]")),
}  # fmt: skip
LENGTHS = (3, 4, 9, 12, 13, 20, 21, 22, 23, 50)


def _kernels(name: str) -> dict[str, KernelPlan]:
    return kernels_of(*(ACROSS | OTHERS)[name])


def _short(kernel: KernelPlan) -> list[str]:
    """What is done where rows are short."""
    body = emit_kernel(kernel.graph, "k").view.body
    found = re.findall(r"^    if \(m(?: - 2)? <= (?:20|10)\) {\n(.*?)^    }", body, re.M | re.S)
    return [one for one in found if "_copy" in one]


@pytest.mark.parametrize("name", ACROSS)
def test_short_rows_have_the_channels_inside(name: str) -> None:
    kernels = _kernels(name)
    (forward,) = _short(kernels["op_forward"])
    assert "_sums[" in forward
    if name == "two axes":  # 8 channels of the inputs as well
        (backward,) = _short(kernels["op_backward"])
        assert "?" not in backward
        inside = r"\n\s+#pragma omp simd\n\s+for .* p < 8; p\+\+\)"
        asked = re.findall(r"if \(t_\w*\) {" + inside, backward)
        assert len(asked) == 9


@pytest.mark.parametrize("name", OTHERS)
def test_channels_of_other_lengths_stay_where_they_are(name: str) -> None:
    assert not _short(_kernels(name)["op_forward"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ACROSS)
def test_is_what_numpy_makes_of_it(name: str, tmp_path: Path) -> None:
    """What lies under no window is not multiplied: infinite weights make no NaN of it."""
    graphs = {key: kernel.graph for key, kernel in _kernels(name).items()}
    source = np.random.default_rng(0)
    for kernel in compile_graphs(graphs, tmp_path).values():
        for length in LENGTHS:
            sizes = {"b": 2, "n": 4, "m": length}
            feeds = feeds_of(kernel.graph, sizes, source)
            for infinite in (False, True):
                if infinite and "given_1" in feeds:
                    feeds["given_1"].flat[:] = np.inf
                with np.errstate(invalid="ignore"):
                    wanted = evaluate(list(kernel.graph.outputs.values()), feeds, sizes)
                for got, one in zip(kernel(feeds, sizes), wanted, strict=True):
                    tolerance = 1e-11 if one.dtype == np.float64 else 5e-5
                    np.testing.assert_allclose(got, one, tolerance, tolerance)


@pytest.mark.slow
def test_is_validated() -> None:
    """Of doubles, 8 channels are a whole vector: no tile of lanes is cut from them."""
    op = op_of(lambda x, w: sg.conv2d(x, w))
    sg.compile(op, "f64[2 8 n m]", "f64[8 8 3 1]", validate=True)
