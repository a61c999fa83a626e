"""Products that are read transposed alone are made transposed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from hypothesis import given, settings

import symgrad as sg
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import float64
from symgrad.ir.graph import Graph
from symgrad.ir.types import TensorType
from symgrad.ir.verifier import verify
from symgrad.ops.record import apply
from symgrad.passes.evaluate import evaluate
from symgrad.passes.turned import turned
from tests.graphs import Example, examples


def _ops(graph: Graph) -> Counter[str]:
    return Counter(node.op for node in graph.nodes)


def _product() -> Graph:
    graph = Graph()
    n, m = Dim.size("n"), Dim.size("m")
    left, right = (graph.input(name, TensorType(float64, (n, m))) for name in ("x", "g"))
    graph.output("product", apply("einsum", left, right, spec="ij,ik->jk"))
    return graph


def test_the_factors_are_exchanged() -> None:
    graph = _product()
    (made,) = graph.outputs.values()
    graph.outputs.clear()
    graph.output("turned", apply("permute", made, axes=(1, 0)))
    found = turned(graph)
    verify(found)
    assert _ops(found) == Counter(input=2, einsum=1)
    assert found.outputs["turned"].attributes["spec"] == "ij,ik->kj"


def test_what_is_read_as_it_is_too_stays() -> None:
    graph = _product()
    (made,) = graph.outputs.values()
    graph.output("turned", apply("permute", made, axes=(1, 0)))
    assert _ops(turned(graph)) == Counter(input=2, einsum=1, permute=1)


@settings(max_examples=30)
@given(examples(dtype=float64))
def test_the_values_are_the_same(example: Example) -> None:
    found = turned(example.graph)
    verify(found)
    for one, other in zip(
        evaluate(list(found.outputs.values()), example.feeds, example.sizes),
        evaluate(list(example.graph.outputs.values()), example.feeds, example.sizes),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12, equal_nan=True)


def test_a_gradient_by_weights_is_one_product() -> None:
    class Linear(sg.Function):
        @staticmethod
        def forward(ctx: object, x: sg.Tensor, w: sg.Tensor) -> sg.Tensor:
            return sg.tanh(x @ w.t())

    op = sg.compile(Linear, "f32[n m]", "f32[k m]", validate=True)
    x, w = (np.linspace(-1, 1, 6, dtype="f4").reshape(shape) for shape in ((2, 3), (2, 3)))
    y, residuals = op.forward(x, w)
    gradients = op.backward(residuals, np.ones_like(y))
    gx, gw = map(np.asarray, gradients)
    slope = 1 - np.tanh(x @ w.T) ** 2
    np.testing.assert_allclose(gw, slope.T @ x, rtol=1e-5)
    np.testing.assert_allclose(gx, slope @ w, rtol=1e-5)
    text = "".join(Path(path).read_text() for path in op.c_paths)
    assert "product_all" not in text  # which would be copied
