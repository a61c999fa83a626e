"""Graphs over a batch compute what they compute element by element: every op, every program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgrad.errors import UnsupportedOpError
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import float64
from symgrad.ir.graph import Graph, Node
from symgrad.ir.types import TensorType
from symgrad.ops.record import get
from symgrad.passes.batch import Batched, batch
from symgrad.passes.evaluate import evaluate
from tests.graphs import Example, examples
from tests.ops.cases import OPS, Case, for_uses

BATCH = Dim.size("batch")


def variants(array: Any, count: int, kind: str) -> list[Any]:
    """Other data of the same kind: the elements in another order, matrices scaled."""
    if kind == "linalg":
        return [array * (1 + number) for number in range(count)]
    flat = array.reshape(-1)
    return [np.roll(flat, number).reshape(array.shape) for number in range(count)]


def over_batch(nodes: list[Node], inputs: list[Node], flags: list[bool]) -> tuple[Graph, Any]:
    """The inputs and outputs in a graph over batches."""
    graph = Graph()
    given = {}
    for node, has in zip(inputs, flags, strict=True):
        shape = (BATCH, *node.shape) if has else node.shape
        new = graph.input(node.attributes["name"], TensorType(node.dtype, shape))
        given[node] = Batched(new, has)
    return graph, batch(nodes, given, BATCH)


@pytest.mark.parametrize("name", OPS)
def test_every_op_of_the_registry(name: str) -> None:
    for_uses(name)(_is_what_the_op_does_row_by_row)()


def _is_what_the_op_does_row_by_row(case: Case) -> None:
    source = case.source()
    count = int(source.integers(1, 4))
    flags = [bool(flag) for flag in source.integers(0, 2, len(case.args))]
    flags[source.integers(len(flags))] = True
    _, (found,) = over_batch([case.node], list(case.args), flags)
    assert found.whole
    assert found.node.shape == (BATCH, *case.node.shape)
    assert found.node.dtype == case.node.dtype
    kind = get(case.node.op).kind
    columns = [
        variants(array, count, kind) if has else [array] * count
        for array, has in zip(case.arrays, flags, strict=True)
    ]
    feeds = {
        arg.attributes["name"]: np.stack(column) if has else column[0]
        for arg, column, has in zip(case.args, columns, flags, strict=True)
    }
    (value,) = evaluate([found.node], feeds, {**case.sizes, "batch": count})
    with np.errstate(all="ignore"):
        rows = [case.call(list(row)) for row in zip(*columns, strict=True)]
    wanted = np.stack(rows).astype(value.dtype)
    assert value.shape == wanted.shape
    np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-6)


@given(example=examples(), data=st.data())
def test_whole_programs(example: Example, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 3))
    inputs = list(example.graph.inputs.values())
    flags = data.draw(st.lists(st.booleans(), min_size=len(inputs), max_size=len(inputs)))
    outputs = list(example.graph.outputs.values())
    _, found = over_batch(outputs, inputs, flags)
    feeds, columns = {}, []
    for node, has in zip(inputs, flags, strict=True):
        name = node.attributes["name"]
        column = variants(example.feeds[name], count, "") if has else [example.feeds[name]] * count
        feeds[name] = np.stack(column) if has else column[0]
        columns.append(column)
    values = evaluate([one.node for one in found], feeds, {**example.sizes, "batch": count})
    for number, row in enumerate(zip(*columns, strict=True)):
        one = {node.attributes["name"]: array for node, array in zip(inputs, row, strict=True)}
        wanted = evaluate(outputs, one, example.sizes)
        for value, has, right in zip(values, (f.whole for f in found), wanted, strict=True):
            np.testing.assert_allclose(value[number] if has else value, right, rtol=1e-12)


def test_what_no_input_reaches_is_left_alone() -> None:
    graph = Graph()
    x, y = (graph.input(name, TensorType.of(float64, (3,))) for name in "xy")
    _, (first, second) = over_batch([x * 2.0, x + y], [x, y], [False, True])
    assert not first.whole
    assert second.whole
    assert first.node.shape == (3,)


def test_an_op_without_a_rule_is_named() -> None:
    graph = Graph()
    x = graph.input("x", TensorType.of(float64, (3,)))
    node = graph.apply("applied", x, rule=0, output=0)
    with pytest.raises(UnsupportedOpError, match="vmap has no batching rule for 'applied'"):
        over_batch([node], [x], [True])
