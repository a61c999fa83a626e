"""Equal values have equal bytes, others have other bytes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad.ops  # noqa: F401  (registers them)
from symgrad.errors import Location
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import float32, float64, int64
from symgrad.ir.encoding import Encoder, Uncoded
from symgrad.ir.graph import Graph, current_location
from symgrad.ir.types import TensorType
from tests.graphs import examples


def written(value: Any) -> bytes:
    encoder = Encoder()
    encoder.add(value)
    return encoder.written()


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.floats(width=16), st.text(max_size=3),
    st.binary(max_size=3), st.fractions(-2, 2, max_denominator=3),
    st.sampled_from([float32, int64, Dim.size("n"), Dim.size("n") + 1, Dim.of(1)]),
    st.sampled_from([..., slice(1, 2), slice(None, 1), range(3)]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2), inner, max_size=2),
        st.frozensets(st.one_of(st.integers(0, 3), st.text(max_size=1)), max_size=3),
    ),
    max_leaves=6,
)  # fmt: skip


def told_apart(value: Any) -> Any:
    """A text that differs wherever types or values differ; order counts, but not in sets."""
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(told_apart, value)]
    if isinstance(value, dict):
        return ["dict", *([key, told_apart(one)] for key, one in value.items())]
    if isinstance(value, frozenset):
        return ["set", *sorted(repr(told_apart(one)) for one in value)]
    if isinstance(value, float) and value != value:
        return "nan"
    return [type(value).__name__, repr(value), str(value)]


@pytest.mark.slow
@given(VALUES, VALUES)
def test_bytes_are_equal_exactly_if_values_are(one: Any, other: Any) -> None:
    assert (written(one) == written(other)) == (told_apart(one) == told_apart(other))


@given(st.lists(VALUES, max_size=3), st.lists(VALUES, max_size=3))
def test_no_list_begins_as_another_one_ends(one: list[Any], other: list[Any]) -> None:
    """Parts cannot be moved from one value to the next."""
    first, second = Encoder(), Encoder()
    for value in one:
        first.add(value)
    for value in other:
        second.add(value)
    assert (first.written() == second.written()) == (told_apart(one) == told_apart(other))


@given(examples())
def test_a_graph_has_the_bytes_of_one_that_is_built_alike(example: Any) -> None:
    graph = example.graph
    assert written(graph) == written(graph)
    again = Graph()
    new: list[Any] = []
    for node in graph.nodes:
        made = again.apply(node.op, *(new[arg.index] for arg in node.args), **node.attributes)
        made.name = node.name
        new.append(made)
    again.inputs = {name: new[node.index] for name, node in graph.inputs.items()}
    again.outputs = {name: new[node.index] for name, node in graph.outputs.items()}
    assert written(again) == written(graph)
    again.constant(41.5, float64)
    assert written(again) != written(graph)


def build(
    op: str = "mul", number: float = 2.0, name: str = "x", label: str | None = None, line: int = 1,
    size: str = "n",
) -> Graph:  # fmt: skip
    graph = Graph()
    token = current_location.set(Location("nowhere.py", line))
    x = graph.input(name, TensorType(float64, (Dim.size(size),)))
    found = graph.apply(op, x, graph.expand(graph.constant(number, float64), x.shape))
    found.name = label
    graph.outputs["y"] = found
    current_location.reset(token)
    return graph


CHANGES: list[dict[str, Any]] = [
    {"op": "add"}, {"number": 3.0}, {"number": -0.0}, {"number": 0.0}, {"name": "z"},
    {"label": "y"}, {"line": 2}, {"size": "m"},
]  # fmt: skip


def test_every_change_of_a_graph_changes_its_bytes() -> None:
    texts = [written(build(**change)) for change in [{}, *CHANGES]]
    assert len(set(texts)) == len(texts)
    assert written(build()) == texts[0]


def test_nodes_are_told_apart_by_their_graphs() -> None:
    one, other = build(), build()
    assert written((one.nodes[0], one.nodes[0])) != written((one.nodes[0], other.nodes[0]))
    assert written((one.nodes[0], one)) != written((one.nodes[1], one))


def test_the_line_of_a_location_counts(tmp_path: Any) -> None:
    texts = []
    for number, line in enumerate(("a = 1", "a = 2")):
        file = tmp_path / f"{number}" / "same.py"
        file.parent.mkdir()
        file.write_text(line)
        encoder = Encoder()
        encoder.add(Location(str(file), 1))
        texts.append(encoder.written().replace(str(file.parent).encode(), b""))
    assert texts[0] != texts[1]


@pytest.mark.parametrize(
    "value",
    [len, lambda: 1, object(), np.array([object()]), {1: len}, [frozenset([build().nodes[0]])]],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_data_has_no_bytes(value: Any) -> None:
    with pytest.raises(Uncoded):
        written(value)


def test_arrays_have_their_dtype_shape_and_content() -> None:
    arrays = [
        np.zeros(2), np.zeros(2, np.float32), np.zeros((1, 2)), np.ones(2), np.float64(0.0),
        Fraction(1, 2), (1, 2),
    ]  # fmt: skip
    assert len({written(value) for value in arrays}) == len(arrays)
