"""Points of null sets are solved for once, and all of them, whatever ends the search."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice

import pytest

from symgrad.deadline import TimeUp
from symgrad.ir.assume import Assumption
from symgrad.ir.dim import Dim
from symgrad.ir.graph import Graph, Node
from symgrad.proof.oracle import thresholds
from symgrad.proof.oracle.sample import DENOMINATOR
from symgrad.proof.oracle.subject import Subject
from tests.proof.builders import N, tensor


def made() -> tuple[Subject, Node]:
    graph = Graph()
    x, g = graph.input("x", tensor(N)), graph.input("g", tensor(N))
    node = graph.apply("exp", x)
    return Subject(graph, [x], [(node, g)], {"x": g * node}), node


def values(subject: Subject, node: Node, most: int | None = None) -> list[list[int]]:
    found = islice(thresholds.points(subject, node, Fraction(1)), most)
    return [point.numerators["x"].tolist() for point in found]


def test_points_are_the_same_when_they_are_asked_for_again() -> None:
    (subject, node), (other, same) = made(), made()
    first = values(subject, node, 2)
    whole = values(subject, node)
    assert first == whole[:2]
    assert whole == values(subject, node) == values(other, same)
    assert any(0 in point for point in whole)


def test_points_are_all_found_after_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    (subject, node), (other, same) = made(), made()
    whole, solved = values(other, same), thresholds._solved

    def interrupted(*given: object) -> object:
        yield from islice(solved(*given), 1)  # type: ignore[arg-type]
        raise TimeUp(1.0, "")

    monkeypatch.setattr(thresholds, "_solved", interrupted)
    with pytest.raises(TimeUp):
        values(subject, node)
    monkeypatch.undo()
    assert values(subject, node) == whole


def test_points_of_other_modes_are_others() -> None:
    subject, node = made()
    whole = values(subject, node)
    subject.sampler.modes["x"] = "negative"
    assert values(subject, node) != whole


@pytest.mark.parametrize("count", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("positive", [False, True])
def test_points_of_a_sphere_are_found_in_any_number_of_coordinates(
    count: int, positive: bool
) -> None:  # fmt: skip
    graph = Graph()
    x, g = graph.input("x", tensor(Dim.of(count))), graph.input("g", tensor())
    node = graph.apply("sqrt", graph.apply("sum", x * x, axes=(0,)))
    assumed = [Assumption("x", "positive", "positive")] if positive else []
    subject = Subject(graph, [x], [(node, g)], {"x": x}, assumptions=assumed)
    found = [[Fraction(n, DENOMINATOR) for n in one] for one in values(subject, node)]
    assert any(sum(n * n for n in one) == 1 for one in found)
    assert not positive or all(n > 0 for one in found for n in one)


def test_other_inputs_are_positive_too() -> None:
    graph = Graph()
    x, y, g = (graph.input(name, tensor(N)) for name in "xyg")
    subject = Subject(graph, [x, y], [(x * graph.apply("log", y), g)], {"x": g * y})
    subject.sampler.modes["y"] = "real"
    found = list(thresholds.points(subject, x, Fraction(0)))
    assert any((point.numerators["y"] > 0).all() and point.numerators["y"].size > 1
               for point in found)  # fmt: skip
