"""The reference backend: sizes, checks, memory, no warning."""

from __future__ import annotations

import numpy as np
import pytest

from symgrad.errors import KernelArgumentError, KernelTypeError
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import float32, float64, int64
from symgrad.ir.graph import Graph, Node
from symgrad.ir.types import TensorType
from symgrad.passes.evaluate import evaluate

N, M = Dim.size("n"), Dim.size("m")


def _input(*shape: Dim | int, name: str = "x", graph: Graph | None = None) -> Node:
    return (graph or Graph()).input(name, TensorType.of(float64, shape))


@pytest.mark.parametrize(
    ("dim", "length", "n"), [(N, 3, 3), (N + 1, 3, 2), (2 * N, 6, 3), (2 * N + 1, 7, 3)]
)
def test_sizes_are_read_off_the_inputs(dim: Dim, length: int, n: int) -> None:
    x = _input(dim)
    (found,) = evaluate([x.graph.size(N)], {}, {"n": n})
    assert found == n
    (found,) = evaluate([x.graph.apply("sum", x, axes=(0,)) * N], {"x": np.ones(length)})
    assert found == length * n


@pytest.mark.parametrize(("dim", "length"), [(2 * N, 5), (N + 3, 2), (N * N, 4)])
def test_a_size_that_is_none_is_refused(dim: Dim, length: int) -> None:
    x = _input(dim)
    with pytest.raises(KernelArgumentError, match=r"n|'x'"):
        evaluate([x * N], {"x": np.ones(length)})


def test_sizes_must_agree() -> None:
    graph = Graph()
    x, y = (graph.input(name, TensorType.of(float64, (N, 2))) for name in "xy")
    feeds = {"x": np.ones((3, 2)), "y": np.ones((4, 2))}
    with pytest.raises(KernelArgumentError, match="axis 0 is 4 where n is 3"):
        evaluate([x + y], feeds)
    with pytest.raises(KernelArgumentError, match="axis 1 is 5 where 2 is 2"):
        evaluate([x], {"x": np.ones((3, 5))})


def test_inputs_must_be_there_and_of_their_type() -> None:
    x = _input(N)
    with pytest.raises(KernelArgumentError, match="no value"):
        evaluate([x], {})
    with pytest.raises(KernelTypeError, match="float32, not float64"):
        evaluate([x], {"x": np.ones(2, np.float32)})
    with pytest.raises(KernelArgumentError, match="rank 2"):
        evaluate([x], {"x": np.ones((2, 2))})


def test_infinities_and_nan_come_without_a_warning() -> None:
    x = _input(N)
    nodes = [x.graph.apply(op, x) for op in ("exp", "log", "sqrt", "reciprocal", "tanh", "lgamma")]
    nodes += [x / x, x.graph.apply("sum", x - x, axes=(0,)), x.graph.apply("cast", x, dtype=int64)]
    evaluate(nodes, {"x": np.array([np.nan, np.inf, -np.inf, 0.0, -1.0, 1e308])})


def test_dtypes_are_those_of_the_nodes() -> None:
    graph = Graph()
    x = graph.input("x", TensorType.of(float32, ()))
    nodes = [x * 2.5, graph.apply("exp", x), graph.apply("sum", graph.expand(x, (N,)), axes=(0,))]
    for value in evaluate(nodes, {"x": np.float32(1.5)}, {"n": 3}):
        assert value.dtype == np.float32
        assert isinstance(value, np.ndarray)


def test_an_index_out_of_range_is_an_error() -> None:
    graph = Graph()
    x = graph.input("x", TensorType.of(float32, (N,)))
    i = graph.input("i", TensorType.of(int64, (M,)))
    feeds = {"x": np.ones(3, np.float32)}
    for wrong in (-1, 3):
        with pytest.raises(KernelArgumentError, match=f"{wrong} does not lie in axis 0 of size 3"):
            evaluate([graph.apply("index", x, i)], {**feeds, "i": np.array([0, wrong])})


def test_a_long_chain_keeps_few_values() -> None:
    x = _input(N)
    y = x
    for _ in range(20_000):
        y = x.graph.apply("neg", y)
    (value,) = evaluate([y], {"x": np.ones(100)})
    assert value[0] == 1
