"""Formulas and index notation as people read them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import ops
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad as sg
from symgrad import stage_text as stages
from symgrad.emission import emit
from symgrad.frontend.trace import trace
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import float64
from symgrad.ir.formula import formulas
from symgrad.ir.graph import Graph
from symgrad.ir.types import TensorType
from symgrad.kernels import op_name, plan
from symgrad.passes.evaluate import evaluate
from tests.driver.splits import SPECS, programs


def _formulas(function: type, kernel: int) -> tuple[str, ...]:
    return formulas(plan(trace(function)).kernels[kernel].graph)


def test_linear() -> None:
    assert _formulas(ops.Linear, 0) == ("y = x @ weight.T + bias",)
    assert _formulas(ops.Linear, 1) == (
        "grad_x = grad_y @ weight",
        "grad_weight = grad_y.T @ x",
        "grad_bias = sum(grad_y, axes=(0,))",
    )


def test_layer_norm() -> None:
    assert _formulas(ops.LayerNorm, 0) == (
        "centred = x - mean(x, axes=(1,))",
        "inverse_deviation = rsqrt(mean(square(centred), axes=(1,)) + 1e-05)",
        "normalized = centred*inverse_deviation",
        "y = normalized*weight + bias",
    )


def test_index_notation() -> None:
    text = stages.index(plan(trace(ops.Linear)))
    assert "y[i, j] = sum[k](x[i, k]*weight[j, k]) + bias[j]" in text


def test_schedule_fuses_softmax_cross_entropy() -> None:
    """The whole forward is one loop over rows."""
    text = stages.schedule(plan(trace(ops.SoftmaxCrossEntropy))).split("#")[1]
    assert sum(line.startswith("for ") for line in text.splitlines()) == 1


def test_op_name() -> None:
    assert op_name("SoftmaxCrossEntropy") == "softmax_cross_entropy"
    assert op_name("GELU") == "gelu"
    assert op_name("MyGELUFn2") == "my_gelu_fn2"


# -- one name, one value

NAMES = ("t0", "t1", "t2", "x", "y", "n", "out0", "a", None, None)
MEANINGS = {
    "exp": np.exp, "square": np.square, "neg": np.negative, "add": np.add, "sub": np.subtract,
    "mul": np.multiply, "div": np.divide, "tanh": np.tanh,
}  # fmt: skip


@st.composite
def named_graphs(draw: Any) -> Graph:
    """Elementwise graphs whose values are called alike, and like inputs, results and sizes."""
    graph = Graph()
    kind = TensorType(float64, (Dim.size("n"), Dim.size("m")))
    nodes = [graph.input(name, kind) for name in ("x", "t1")]
    for _ in range(draw(st.integers(2, 12))):
        name = draw(st.sampled_from(sorted(MEANINGS)))
        count = 1 if MEANINGS[name].nin == 1 else 2
        node = graph.apply(name, *(draw(st.sampled_from(nodes)) for _ in range(count)))
        if node.args:
            node.name = draw(st.sampled_from(NAMES))
        nodes.append(node)
    for name, node in zip(("out0", "t2"), draw(st.permutations(nodes[2:])), strict=False):
        graph.output(name, node)
    return graph


@given(graph=named_graphs())
@settings(max_examples=100)
def test_every_name_stands_for_one_value(graph: Graph) -> None:
    """The lines, run as a program in which nothing is written twice, compute the outputs."""
    feeds = {
        name: np.random.default_rng(seed).uniform(1, 2, (2, 3))
        for seed, name in enumerate(graph.inputs)
    }
    values: dict[str, Any] = dict(feeds)
    with np.errstate(all="ignore"):
        for line in formulas(graph):
            name, _, text = line.partition(" = ")
            assert name not in values
            values[name] = eval(text, {"__builtins__": {}, **MEANINGS}, values)
    expected = evaluate(list(graph.outputs.values()), feeds)
    for name, value in zip(graph.outputs, expected, strict=True):
        np.testing.assert_allclose(values[name], value, rtol=1e-9)


# -- one order of sizes, and what the header says

OPS = [
    *((one, ()) for one in (ops.Linear, ops.LayerNorm, ops.SoftmaxCrossEntropy)),
    *((one, SPECS[name]) for name, one in programs(sg, sg.Function).items()),
]


@pytest.mark.parametrize(("function", "specs"), OPS, ids=lambda one: getattr(one, "__name__", ""))
def test_all_kernels_take_sizes_in_the_order_of_the_header(function: Any, specs: Any) -> None:
    planned = plan(trace(function, *specs))
    emitted = emit(planned, "")
    header = " ".join(emitted.texts[emitted.op.header].replace(" *", "").split())
    assert f"first, in this order: {', '.join(planned.sizes)}." in header
    for one in emitted.op.cases:
        for kernel in (one.inference, one.forward, *(found.kernel for found in one.backward)):
            assert list(kernel.sizes) == [s for s in planned.sizes if s in kernel.sizes]
    for number, case in enumerate(planned.cases[1:], 1):
        assert f", where {' and '.join(map(str, case.case.conditions))}." in header
        assert f"_case{number}: for " in header
    assert "multiple of 64 bytes" in header
    assert "_workspace returns" in header
    digits = f"one for each of {', '.join(planned.graphs.input_names)}: 1 where"
    assert (digits in header) == any(kernel.pruned for kernel in planned.kernels)
    for one in emitted.op.cases:
        for number, reason in one.forward.reasons.items():
            assert f"returns {number}: {reason}" in header


def test_the_header_says_which_indices_are_in_range() -> None:
    emitted = emit(plan(trace(ops.SoftmaxCrossEntropy)), "")
    assert "out of range, unless 0 <= labels[i] < c" in emitted.texts[emitted.op.header]


class Indirect(sg.Function):
    """Rows whose numbers are computed: ``how`` from others, or by a sum."""

    @staticmethod
    def forward(ctx: Any, x: Any, labels: Any, scores: Any, how: str) -> Any:
        if how == "where":
            chosen = sg.where(labels == -100, 0, labels)
        elif how == "argmax":
            chosen = 2 * labels + scores.argmax(1)
        else:
            counts = labels * labels
            chosen = counts.cumsum(0) + counts
        ctx.save_for_backward(chosen)
        ctx.rows = x.shape[0]
        return x[chosen]

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (chosen,) = ctx.saved_tensors
        return grad.new_zeros(ctx.rows, grad.shape[1]).index_add(0, chosen, grad), None, None, None


@pytest.mark.parametrize(
    ("how", "index"),
    [
        ("where", "where(labels[i] == -100, 0, labels[i])"),
        ("argmax", "(2*labels + argmax(scores, axes=(1,)))[i]"),
        ("cumsum", ""),
    ],
)
def test_ranges_of_computed_indices_are_said_of_the_inputs(how: str, index: str) -> None:
    """No other name than those of parameters, sizes, letters and functions."""
    given = ("f32[n d]", "i64[m]", "f32[m q]")
    emitted = emit(plan(trace(Indirect, *given, static={"how": how})), "")
    text = " ".join(emitted.texts["indirect.c"].replace("\n *", "").split())
    found = re.findall(r"returns 1: an index is out of range, unless 0 <= (.*?) < n\b", text)
    forward = next(one for one in emitted.op.kernels if one.name.endswith("forward"))
    known = {*(one.name for one in forward.inputs), "m", "q", *"ijklp"}
    assert index in found[1]
    assert {*re.findall(r"\b[a-z_]+\b(?![(\[=])", found[1])} <= known
