"""Markers are the identity of their first argument, in NumPy and in index notation."""

from __future__ import annotations

import numpy as np
import pytest

from symgrad.index.lower import Lowering
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import float64
from symgrad.ir.expr import Access
from symgrad.ir.graph import Graph, Node
from symgrad.ir.registry import names
from symgrad.ir.types import TensorType
from symgrad.ops.record import get

N, M = Dim.size("n"), Dim.size("m")
MARKERS = [name for name in names() if get(name).kind == "marker"]


def _marked(op: str) -> Node:
    graph = Graph()
    x = graph.input("x", TensorType(float64, (N, M)))
    y = graph.input("y", TensorType(float64, (M,)))
    if op == "detach":
        return graph.apply(op, x, why="saved")
    if op == "unwritten":
        return graph.apply(op, x, made="empty")
    return graph.apply(op, x, y, rule=0, output=0)


def test_there_are_three() -> None:
    assert sorted(MARKERS) == ["applied", "detach", "unwritten"]


@pytest.mark.parametrize("op", MARKERS)
def test_value_and_type(op: str) -> None:
    node = _marked(op)
    arrays = [np.arange(6.0).reshape(2, 3), np.zeros(3)][: len(node.args)]
    value = get(op).numpy(*arrays, size=lambda dim: Dim.of(dim).at({}), **node.attributes)
    assert node.type == node.args[0].type
    np.testing.assert_array_equal(value, arrays[0])


@pytest.mark.parametrize("op", MARKERS)
def test_index_notation(op: str) -> None:
    node = _marked(op)
    lowering = Lowering(node.graph)
    i, j = Dim.size("i"), Dim.size("j")
    found = lowering.element(node, (i, j))
    assert isinstance(found, Access)
    assert found is lowering.element(node.args[0], (i, j))


@pytest.mark.parametrize("op", MARKERS)
def test_nothing_passes_through_by_the_record_alone(op: str) -> None:
    assert get(op).vjp is None
    assert get(op).linear == ()
