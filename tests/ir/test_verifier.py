"""Every rule of the verifier is broken once, and found out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given

from symgrad.errors import GraphError
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import float32, float64
from symgrad.ir.graph import Graph, Node
from symgrad.ir.types import TensorType
from symgrad.ir.verifier import verify
from tests.graphs import Example, examples

N = Dim.size("n")


def _graph() -> Graph:
    graph = Graph()
    x = graph.input("x", TensorType(float32, (N,)))
    graph.output("y", graph.apply("exp", x * 2.0))
    return graph


@given(examples())
def test_what_is_built_by_the_graph_is_right(example: Example) -> None:
    verify(example.graph)


def _foreign_output(graph: Graph) -> None:
    graph.output("z", _graph().outputs["y"])


def _foreign_argument(graph: Graph) -> None:
    node = graph.outputs["y"]
    node.args = (_graph().nodes[0],)


def _wrong_index(graph: Graph) -> None:
    graph.nodes[1].index = 7


def _late_argument(graph: Graph) -> None:
    graph.nodes[0], graph.nodes[-1] = graph.nodes[-1], graph.nodes[0]
    for place, node in enumerate(graph.nodes):
        node.index = place


def _wrong_type(graph: Graph) -> None:
    graph.outputs["y"].type = TensorType(float64, (N,))


def _unknown_op(graph: Graph) -> None:
    graph.outputs["y"].op = "frobnicate"


def _wrong_arity(graph: Graph) -> None:
    node = graph.outputs["y"]
    node.args = (*node.args, *node.args)


def _unhashable(graph: Graph) -> None:
    graph.outputs["y"].attrs = (("shape", [1]),)


def _disordered(graph: Graph) -> None:
    graph.outputs["y"].attrs = (("b", 1), ("a", 1))


def _twice(graph: Graph) -> None:
    y = graph.outputs["y"]
    graph.nodes.append(Node(graph, len(graph.nodes), y.op, y.args, y.attrs, y.type))


def _not_interned(graph: Graph) -> None:
    x = graph.nodes[0]
    graph.nodes.append(Node(graph, len(graph.nodes), "sin", (x,), (), x.type))


def _renamed_input(graph: Graph) -> None:
    graph.inputs = {"w": graph.inputs["x"]}


def _surplus_input(graph: Graph) -> None:
    graph.inputs["w"] = graph.inputs["x"]


BREACHES: tuple[Callable[[Graph], None], ...] = (
    _foreign_output, _foreign_argument, _wrong_index, _late_argument, _wrong_type, _unknown_op,
    _wrong_arity, _unhashable, _disordered, _twice, _not_interned, _renamed_input, _surplus_input,
)  # fmt: skip


@pytest.mark.parametrize("breach", BREACHES, ids=lambda breach: breach.__name__.strip("_"))
def test_a_breach_is_found(breach: Callable[[Graph], None]) -> None:
    graph = _graph()
    verify(graph)
    breach(graph)
    with pytest.raises(GraphError):
        verify(graph)
