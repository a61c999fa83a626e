"""Points of null sets are solved for once, and all of them, whatever ends the search."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice

import pytest

from symgrad.deadline import TimeUp
from symgrad.ir.graph import Graph, Node
from symgrad.proof.oracle import thresholds
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
