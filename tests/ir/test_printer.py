"""A graph as text."""

from __future__ import annotations

from hypothesis import given

from symgrad.errors import Location
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import float32
from symgrad.ir.graph import Graph, current_location
from symgrad.ir.printer import graph_text
from symgrad.ir.types import TensorType
from tests.graphs import Example, examples

N, M = Dim.size("n"), Dim.size("m")


def _mean() -> Graph:
    graph = Graph()
    x = graph.input("x", TensorType(float32, (N, M)))
    token = current_location.set(Location("model.py", 12))
    scaled = x * 2.0
    scaled.name = "t"
    total = graph.apply("sum", scaled, axes=(1,))
    total.name = "t"
    graph.output("mean", total / graph.lift(M + 1, total))
    current_location.reset(token)
    return graph


def test_names_types_numbers_and_sizes() -> None:
    assert graph_text(_mean()) == (
        "graph(x: f32[n m])\n"
        "  t: f32[n m] = mul(x, 2.0)\n"
        "  t_2: f32[n] = sum(t, axes=(1,))\n"
        "  %7: f32[n] = div(t_2, (m + 1))\n"
        "  return mean=%7\n"
    )


def test_locations_stand_in_a_column() -> None:
    lines = graph_text(_mean(), locations=True).splitlines()[1:-1]
    assert all(line.endswith("  # model.py:12") for line in lines)
    assert len({line.index("#") for line in lines}) == 1


def test_chosen_results_and_only_what_they_need() -> None:
    graph = _mean()
    text = graph_text(graph, {"first": graph.nodes[3]})
    assert "sum" not in text
    assert text.endswith("  return first=t\n")


@given(examples())
def test_every_name_is_defined_once_and_before_it_is_used(example: Example) -> None:
    known = set(example.graph.inputs)
    for line in graph_text(example.graph).splitlines()[1:-1]:
        name, rest = line.strip().split(":", 1)
        assert name not in known
        known.add(name)
        arguments = rest.split("(", 1)[1].rsplit(")", 1)[0].split(", ")
        assert {word for word in arguments if word.startswith("%")} <= known
