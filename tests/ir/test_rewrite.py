"""Graphs are copied, shared, and rewritten: the values are what they should be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgrad.errors import GraphError, ShapeError
from symgrad.ir.dim import Atom, Dim, Size
from symgrad.ir.dtype import float64
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.rewrite import extract, rewrite
from symgrad.ir.types import TensorType
from symgrad.ir.verifier import verify
from symgrad.passes.evaluate import evaluate
from tests.graphs import Example, examples

N = Dim.size("n")


@given(examples())
def test_a_copy_has_the_same_bits_and_names(example: Example) -> None:
    graph = example.graph
    for number, node in enumerate(graph.nodes):
        node.name = node.name or f"v{number}"
    copy = extract(graph.outputs, graph.inputs.values())
    verify(copy)
    assert list(copy.inputs) == list(graph.inputs)
    needed = ancestors(graph.outputs.values())
    assert {node.name for node in needed} <= {node.name for node in copy.nodes}
    pairs = zip(
        evaluate(list(graph.outputs.values()), example.feeds, example.sizes),
        evaluate(list(copy.outputs.values()), example.feeds, example.sizes),
        strict=True,
    )
    for wanted, found in pairs:
        assert found.tobytes() == wanted.tobytes()


@given(examples())
def test_what_does_not_change_is_shared(example: Example) -> None:
    graph = example.graph
    before = list(graph.nodes)
    assert all(new is old for old, new in rewrite(graph, graph.nodes).items())
    assert graph.nodes == before


@given(examples(), st.data())
def test_a_known_node_stands_for_another(example: Example, data: st.DataObject) -> None:
    graph = example.graph
    outputs = list(graph.outputs.values())
    old = data.draw(st.sampled_from([node for node in ancestors(outputs) if node.dtype == float64]))
    other = graph.input("other", old.type)
    new = rewrite(graph, outputs, {old: other}, named=False)
    unchanged = [node for node in ancestors(outputs) if old not in ancestors([node])]
    assert all(new.get(node, node) is node for node in unchanged)
    assert all(old not in ancestors([new[node]]) for node in outputs)
    value = evaluate([old], example.feeds, example.sizes)[0]
    pairs = zip(
        evaluate(outputs, example.feeds, example.sizes),
        evaluate([new[node] for node in outputs], {**example.feeds, "other": value}, example.sizes),
        strict=True,
    )
    for wanted, found in pairs:
        np.testing.assert_array_equal(found, wanted)


@given(examples())
def test_a_rule_sees_each_node_once_with_new_arguments(example: Example) -> None:
    target, seen = Graph(), dict[Node, Sequence[Node]]()

    def rule(node: Node, args: Sequence[Node]) -> Node | None:
        assert node not in seen
        seen[node] = args
        return target.apply("sub", args[0], -args[1]) if node.op == "add" else None

    new = rewrite(target, example.graph.outputs.values(), rule=rule)
    assert all(list(args) == [new[arg] for arg in node.args] for node, args in seen.items())
    outputs = list(example.graph.outputs.values())
    assert not any(node.op == "add" for node in ancestors([new[node] for node in outputs]))
    pairs = zip(
        evaluate(outputs, example.feeds, example.sizes),
        evaluate([new[node] for node in outputs], example.feeds, example.sizes),
        strict=True,
    )
    for wanted, found in pairs:
        np.testing.assert_array_equal(found, wanted)


@given(examples())
def test_sizes_are_put_in(example: Example) -> None:
    put: dict[Atom, Dim] = {Size(name): Dim.of(value) for name, value in example.sizes.items()}
    target, outputs = Graph(), list(example.graph.outputs.values())
    new = rewrite(target, outputs, sizes=put)
    assert not any(size.sizes for node in new.values() for size in node.shape)
    pairs = zip(
        evaluate(outputs, example.feeds, example.sizes),
        evaluate([new[node] for node in outputs], example.feeds),
        strict=True,
    )
    for wanted, found in pairs:
        np.testing.assert_array_equal(found, wanted)


def test_twenty_thousand_nodes() -> None:
    graph = Graph()
    y = x = graph.input("x", TensorType(float64, (N,)))
    for _ in range(20_000):
        y = graph.apply("neg", y)
    assert len(extract({"y": y}).nodes) == len(graph.nodes)
    z = graph.input("z", x.type)
    assert evaluate([rewrite(graph, [y], {x: z})[y]], {"z": np.ones(1)})[0] == 1


@given(examples())
def test_a_copy_is_what_applying_the_op_gives(example: Example) -> None:
    graph = Graph()
    new: dict[Node, Node] = {}
    for node in example.graph.nodes:
        new[node] = graph.copy(node, [new[arg] for arg in node.args])
        assert new[node].type == node.type
        args = [new[arg] for arg in node.args]
        assert graph.apply(node.op, *args, **node.attributes) is new[node]
        assert graph.copy(node, args) is new[node]


def test_a_copy_with_other_arguments_has_another_type() -> None:
    first, second = Graph(), Graph()
    x = first.input("x", TensorType.of(float64, (N, 3)))
    total = first.apply("sum", x, axes=(0,))
    y = second.input("y", TensorType.of(float64, (2, N)))
    assert second.copy(total, [y]).shape == (N,)
    flat = second.input("flat", TensorType.of(float64, ()))
    with pytest.raises(ShapeError):
        second.copy(total, [flat])
    with pytest.raises(GraphError):
        second.copy(total, [x])
