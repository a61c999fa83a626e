"""Simplification keeps every bit, and does what its table says."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given

from symgrad.errors import DTypeError
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import bool_, float32, float64, int64
from symgrad.ir.graph import Graph, Node
from symgrad.ir.rewrite import extract
from symgrad.ir.types import TensorType
from symgrad.ir.verifier import verify
from symgrad.ops.record import get
from symgrad.passes.evaluate import evaluate
from symgrad.passes.simplify import simplify
from tests.graphs import Example, examples
from tests.ops.cases import ELEMENTWISE, SPECIAL


def _uses_pow(graph: Graph) -> bool:
    return any(node.op == "pow" for node in graph.nodes)


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_simplified_graphs_have_the_same_bits(dtype: object) -> None:
    @given(examples(dtype=dtype))  # type: ignore[arg-type]
    def check(example: Example) -> None:
        if _uses_pow(example.graph):
            return
        simpler = simplify(example.graph)
        verify(simpler)
        wanted = evaluate(list(example.graph.outputs.values()), example.feeds, example.sizes)
        found = evaluate(list(simpler.outputs.values()), example.feeds, example.sizes)
        for left, right in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(left, right)
            there = ~np.isnan(right)
            np.testing.assert_array_equal(np.signbit(left)[there], np.signbit(right)[there])

    check()


@given(examples())
def test_simplifying_twice_changes_nothing(example: Example) -> None:
    once = simplify(example.graph)
    twice = simplify(once)
    assert [(node.op, node.attrs) for node in twice.nodes] == [
        (node.op, node.attrs) for node in once.nodes
    ]


@given(examples())
def test_dead_code_goes_and_inputs_stay(example: Example) -> None:
    lean = _lean(example.graph)
    verify(lean)
    assert list(lean.inputs) == list(example.graph.inputs)
    used = {arg for node in lean.nodes for arg in node.args} | set(lean.outputs.values())
    assert all(node in used or node.op == "input" for node in lean.nodes)


def _lean(graph: Graph) -> Graph:
    return extract(graph.outputs, graph.inputs.values())


def _takes_floats(name: str) -> bool:
    try:
        return get(name).infer([TensorType(float64)] * (get(name).arity or 1), {}).dtype == float64
    except DTypeError:
        return False


FLOAT_OPS = [name for name in ELEMENTWISE if name not in ("cast", "pow") and _takes_floats(name)]


@pytest.mark.parametrize("outer", FLOAT_OPS)
def test_an_op_of_each_op_keeps_its_bits(outer: str) -> None:
    """Each operand of ``outer`` in turn is each op of inputs, the others are inputs."""
    drawn = np.random.default_rng(0).normal(size=(2, 300)) * 10
    pairs = np.array(list(itertools.product(SPECIAL, SPECIAL))).T
    feeds = dict(zip("xy", np.concatenate([drawn, pairs], 1), strict=True))
    graph, shape = Graph(), (Dim.of(len(feeds["x"])),)
    inputs = [graph.input(name, TensorType(float64, shape)) for name in "xy"]
    count = get(outer).arity or 1
    for inner in FLOAT_OPS:
        made = graph.apply(inner, *inputs[: get(inner).arity])
        for place in range(count):
            args = [made if n == place else inputs[n] for n in range(count)]
            graph.output(f"{inner} {place}", graph.apply(outer, *args))
    simpler = simplify(graph)
    wanted = evaluate(list(graph.outputs.values()), feeds, {})
    found = evaluate(list(simpler.outputs.values()), feeds, {})
    for name, left, right in zip(graph.outputs, found, wanted, strict=True):
        np.testing.assert_array_equal(left, right, err_msg=f"{outer} of {name}")
        there = ~np.isnan(right)
        np.testing.assert_array_equal(np.signbit(left)[there], np.signbit(right)[there])


N = Dim.size("n")
Build = Callable[[Node, Node], Node]


def _lift(number: float, x: Node) -> Node:
    return x.graph.lift(number, x)


REMOVED: dict[str, tuple[Build, Build]] = {
    "x * 1": (lambda x, y: x * 1.0, lambda x, y: x),
    "1 * x": (lambda x, y: 1.0 * x, lambda x, y: x),
    "x - 0": (lambda x, y: x - 0.0, lambda x, y: x),
    "x + -0": (lambda x, y: x + -0.0, lambda x, y: x),
    "x / 1": (lambda x, y: x / 1.0, lambda x, y: x),
    "x / 4": (lambda x, y: x / 4.0, lambda x, y: x * 0.25),
    "x * -1": (lambda x, y: x * -1.0, lambda x, y: -x),
    "--x": (lambda x, y: x.graph.apply("neg", -x), lambda x, y: x),
    "x - -y": (lambda x, y: x - -y, lambda x, y: x + y),
    "-x + y": (lambda x, y: -x + y, lambda x, y: y - x),
    "-x * -y": (lambda x, y: -x * -y, lambda x, y: x * y),
    "1 / x": (lambda x, y: 1.0 / x, lambda x, y: x.graph.apply("reciprocal", x)),
    "x ** 2": (
        lambda x, y: x.graph.binary("pow", x, 2.0),
        lambda x, y: x.graph.apply("square", x),
    ),
    "x * 2 with 2 computed": (
        lambda x, y: x * (_lift(1.0, x) + _lift(1.0, x)),
        lambda x, y: x * 2.0,
    ),
    "where(true)": (
        lambda x, y: x.graph.apply(
            "where", x.graph.expand(x.graph.constant(True, bool_), x.shape), x, y
        ),
        lambda x, y: x,
    ),
    "permuted twice": (
        lambda x, y: x.graph.apply(
            "permute", x.graph.apply("permute", x, axes=(1, 0)), axes=(1, 0)
        ),
        lambda x, y: x,
    ),
    "reshaped twice": (
        lambda x, y: x.graph.apply(
            "reshape", x.graph.apply("reshape", x, shape=(N * 2,)), shape=x.shape
        ),
        lambda x, y: x,
    ),
    "widened and back": (
        lambda x, y: x.graph.apply(
            "cast", x.graph.apply("cast", x, dtype=float64), dtype=float32
        ),
        lambda x, y: x,
    ),
}  # fmt: skip
KEPT: dict[str, Build] = {
    "x + 0": lambda x, y: x + 0.0,
    "x * 0": lambda x, y: x * 0.0,
    "x - x": lambda x, y: x - x,
    "x / 3": lambda x, y: x / 3.0,
    "x / x": lambda x, y: x / x,
    "x - -0": lambda x, y: x - -0.0,
    "narrowed and back": lambda x, y: x.graph.apply(
        "cast", x.graph.apply("cast", x, dtype=int64), dtype=float32
    ),
}


def _graph(build: Build) -> Graph:
    graph = Graph()
    shape = (N, Dim.of(2))
    x, y = (graph.input(name, TensorType(float32, shape)) for name in "xy")
    graph.output("out", build(x, y))
    return graph


@pytest.mark.parametrize("name", REMOVED)
def test_the_table(name: str) -> None:
    before, after = REMOVED[name]
    found, wanted = simplify(_graph(before)), _lean(_graph(after))
    assert [(n.op, n.attrs) for n in found.nodes] == [(n.op, n.attrs) for n in wanted.nodes]


@pytest.mark.parametrize("name", KEPT)
def test_what_is_not_exact_stays(name: str) -> None:
    graph = _graph(KEPT[name])
    assert [n.op for n in simplify(graph).nodes] == [n.op for n in _lean(graph).nodes]


def test_names_and_places_go_with_the_values() -> None:
    graph = Graph()
    x = graph.input("x", TensorType.of(float32, (N,)))
    y = graph.apply("neg", -(x * 1.0)) * 3.0
    y.name = "y"
    graph.output("out", y)
    (out,) = simplify(graph).outputs.values()
    assert out.name == "y"
    assert out.args[0].name == "x"


def test_a_long_chain_is_no_problem() -> None:
    graph = Graph()
    x = graph.input("x", TensorType.of(float32, (N,)))
    y = x
    for _ in range(100_000):
        y = graph.apply("neg", y)
    graph.output("out", y)
    assert simplify(graph).outputs["out"].op == "input"
