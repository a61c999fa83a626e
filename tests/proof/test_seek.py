"""Points between close thresholds and beyond the numbers of the code."""

from __future__ import annotations

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.assume import parse_all
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import int64
from symgrad.ir.graph import Graph, Node
from symgrad.proof.judge.decide import judge
from symgrad.proof.oracle.sample import DENOMINATOR
from symgrad.proof.oracle.seek import seek
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.report.verdict import Verdict
from tests.proof.builders import K, M, N, tensor


def _squares(window: object, **options: object) -> Subject:
    """``x * x`` with a gradient that is wrong where ``window(x)`` holds, None for nowhere."""
    graph = Graph()
    x = graph.input("x", tensor(N, M))
    g = graph.input("g", tensor(N, M))
    right = g * x * 2.0
    inside = window(graph, x)  # type: ignore[operator]
    hand = graph.apply("where", inside, g * x * 3.0, right)
    return Subject(graph, [x], [(x * x, g)], {"x": hand}, **options)  # type: ignore[arg-type]


def _both(graph: Graph, value: Node, low: float, high: float) -> Node:
    above, below = graph.binary("gt", value, low), graph.binary("lt", value, high)
    return graph.apply("logical_and", above, below)


WINDOWS = {
    "narrow": lambda graph, x: _both(graph, x, 2.0, 2.001),
    "narrower": lambda graph, x: _both(graph, x, 0.0, 1e-9),
    "behind exp": lambda graph, x: _both(graph, graph.apply("exp", x), 50.0, 50.1),
    "behind a square": lambda graph, x: _both(graph, x * x, 9.0, 9.01),
    "behind a product": lambda graph, x: _both(graph, x * 2.0 + 7.0, 31.0, 31.01),
}


@pytest.mark.parametrize("window", WINDOWS)
def test_a_window_is_found_and_refuted(window: str) -> None:
    subject = _squares(WINDOWS[window])
    assert next(seek(subject, "x"), None) is not None
    assert judge(subject)["x"].verdict is Verdict.REFUTED


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    never = _squares(lambda graph, x: _both(graph, x, 2.0, 1.0))
    assert list(seek(never, "x")) == []


def test_what_is_declared_holds_at_all_points() -> None:
    assumptions = parse_all({"x": "(1, 3)"})
    subject = _squares(lambda graph, x: _both(graph, x, -2.0, 2.0), assumptions=assumptions)
    subject.settle()
    found = list(seek(subject, "x"))
    assert found
    for point in found:
        values = point.numerators["x"] / DENOMINATOR
        assert np.all((values > 1) & (values < 3))
    outside = _squares(lambda graph, x: _both(graph, x, -2.0, 0.5), assumptions=assumptions)
    outside.settle()
    assert list(seek(outside, "x")) == []


@pytest.mark.parametrize("special", [9, 50])
def test_an_index_that_only_long_axes_have(special: int) -> None:
    graph = Graph()
    weight, index = graph.input("w", tensor(K, M)), graph.input("i", tensor(N, dtype=int64))
    g = graph.input("g", tensor(N, M))
    ordinary = graph.binary("ne", index, special)
    column = graph.apply("reshape", ordinary, shape=(N, Dim.of(1)))
    zero = graph.expand(graph.constant(0.0, g.dtype), g.shape)
    kept = graph.apply("where", graph.expand(column, (N, M)), g, zero)
    hand = graph.apply("index_add", kept, index, shape=(K, M))
    output = graph.apply("index", weight, index)
    subject = Subject(graph, [weight, index], [(output, g)], {"w": hand})
    assert judge(subject)["w"].verdict is Verdict.REFUTED


def test_a_threshold_that_rounds_a_constant_is_no_refutation() -> None:
    """Between 1/sqrt(2) and its decimal with twelve digits lies a cell of 1e-13."""

    class Clipped(sg.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            return sg.clamp(x, max=0.7071067811865476)

        @staticmethod
        def backward(ctx, grad):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            return grad * (x < 0.70710678118655)

    assert sg.verify(Clipped, "n", suggest=False).verdict is not Verdict.REFUTED
