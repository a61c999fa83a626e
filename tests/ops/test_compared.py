"""Which values meet themselves in a comparison."""

from __future__ import annotations

from symgrad.ir.dim import Dim
from symgrad.ir.dtype import float32
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.types import TensorType
from symgrad.ops.compared import compared, shared
from symgrad.ops.record import apply, compare

N, M = Dim.size("n"), Dim.size("m")


def matrix() -> Node:
    return Graph().input("x", TensorType(float32, (N, M)))


def top_of(node: Node) -> Node:
    """The maximum of each row, broadcast."""
    top = apply("reshape", apply("amax", node, axes=(1,)), shape=(N, Dim.of(1)))
    return node.graph.expand(top, node.shape)


def test_a_value_and_its_maximum() -> None:
    t = apply("tanh", matrix())
    assert compared(ancestors([compare("eq", t, top_of(t))])) == {t.index}
    assert compared(ancestors([compare("ge", top_of(t), t)])) == {t.index}


def test_arithmetic_leads_back_to_what_is_inexact() -> None:
    t = apply("tanh", matrix())
    y = t * 2.0 + 1.0
    assert compared(ancestors([compare("eq", y, top_of(y))])) == {t.index}
    assert compared(ancestors([compare("eq", y - top_of(y), 0.0)])) == {t.index}


def test_inputs_constants_and_other_values_are_free() -> None:
    x = matrix()
    t = apply("tanh", x)
    assert compared(ancestors([compare("eq", x, top_of(x))])) == set()
    assert compared(ancestors([compare("gt", t, 0.0)])) == set()
    assert compared(ancestors([compare("gt", t, apply("exp", x))])) == set()
    assert compared(ancestors([compare("eq", t, top_of(apply("exp", t)))])) == set()


def test_ranks_compare_their_argument() -> None:
    t = apply("tanh", matrix())
    assert compared(ancestors([apply("rank", t, axis=1, descending=False)])) == {t.index}


def test_outputs_that_show_one_value_and_its_maximum() -> None:
    x = matrix()
    t = apply("tanh", x)
    top = apply("amax", t, axes=(1,))
    assert shared(ancestors([t, top]), [t, top]) == {t.index}
    assert shared(ancestors([top]), [top]) == set()
    total = apply("sum", t, axes=(1,))
    assert shared(ancestors([t, total]), [t, total]) == set()
