"""No mutant of a right backward that differs from it is ever proved.

The normal form is asked without the numeric stages in front of it: what is tested is soundness.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from symgrad.ir.dim import Dim
from symgrad.ir.graph import Node
from symgrad.proof.oracle.subject import Subject
from tests.proof.builders import K, M, N, chain, row_sum, softmax, subject, tensor
from tests.proof.mutants import Mutant, differs, mutants, proved

pytestmark = pytest.mark.slow

EPSILON = 0.125


def _softmax() -> Subject:
    return subject({"x": tensor(N, M)}, softmax, lambda g, y, x: [y * (g - row_sum(g * y))])


def _normalised() -> Subject:
    """X / sqrt(mean(x²) + ε): RMS norm."""

    def scale(x: Node) -> Node:
        return x.graph.apply("rsqrt", row_sum(x * x) / M + EPSILON)

    def backward(g: Node, y: Node, x: Node) -> list[Node]:
        r = scale(x)
        return [r * g - x * r * r * r * row_sum(g * x) / M]

    return subject({"x": tensor(N, M)}, lambda x: x * scale(x), backward)


def _product() -> Subject:
    def forward(x: Node, w: Node) -> Node:
        return x.graph.apply("tanh", x.graph.apply("einsum", x, w, spec="ik,kj->ij"))

    def backward(g: Node, y: Node, x: Node, w: Node) -> list[Node]:
        inner = g * (1 - y * y)
        return [
            x.graph.apply("einsum", inner, w, spec="ij,kj->ik"),
            x.graph.apply("einsum", x, inner, spec="ik,ij->kj"),
        ]

    return subject({"x": tensor(N, K), "w": tensor(K, M)}, forward, backward)


def _piecewise() -> Subject:
    def forward(x: Node) -> Node:
        above = x.graph.binary("gt", x, 0.5)
        return x.graph.apply("where", above, x * x, x.graph.apply("relu", x))

    def backward(g: Node, y: Node, x: Node) -> list[Node]:
        graph = x.graph
        zero = x * 0
        positive = graph.binary("gt", x, 0.0)
        slope = graph.apply("where", graph.binary("gt", x, 0.5), x * 2, zero + 1)
        return [graph.apply("where", positive, g * slope, zero)]

    return subject({"x": tensor(N, M)}, forward, backward)


def _top_one() -> Subject:
    """The greatest probability of a row, as the gate of a router has it."""

    def best(x: Node) -> Node:
        return x.graph.apply("amax", softmax(x), axes=(1,))

    def backward(g: Node, y: Node, x: Node) -> list[Node]:
        graph, p = x.graph, softmax(x)

        def kept(node: Node) -> Node:
            column = graph.apply("reshape", node, shape=(N, Dim.of(1)))
            return graph.expand(column, x.shape)

        first = kept(graph.apply("argmax", p, axes=(1,)))
        row = graph.apply("reshape", graph.apply("iota", length=M), shape=(Dim.of(1), M))
        hot = graph.apply("eq", first, graph.expand(row, x.shape))
        return [kept(g * y) * (graph.apply("cast", hot, dtype=x.dtype) - p)]

    return subject({"x": tensor(N, M)}, best, backward)


def _distance() -> Subject:
    """The distance of each row from its origin on the hyperboloid."""

    def height(x: Node) -> Node:
        return x.graph.apply("sqrt", 1 + row_sum(x * x))

    def backward(g: Node, y: Node, x: Node) -> list[Node]:
        a = height(x)
        return [row_sum(g) * x / a / x.graph.apply("sqrt", a * a - 1)]

    return subject({"x": tensor(N, M)}, lambda x: x.graph.apply("acosh", height(x)), backward)


def _before_the_top() -> Subject:
    """The element before the greatest of a row, the last where that is the first."""

    def places(x: Node) -> tuple[Node, Node]:
        graph = x.graph
        top = graph.apply("argmax", x, axes=(1,))
        column = graph.apply("reshape", top, shape=(N, Dim.of(1)))
        row = graph.apply("reshape", graph.apply("iota", length=M), shape=(Dim.of(1), M))
        return graph.expand(column, x.shape), graph.expand(row, x.shape)

    def forward(x: Node) -> Node:
        graph = x.graph
        top, own = places(x)
        last = graph.binary(
            "logical_and", graph.binary("eq", top, 0), graph.binary("eq", own, M - 1)
        )
        chosen = graph.binary("logical_or", graph.binary("eq", own + 1, top), last)
        return graph.apply("where", chosen, x, x * 0)

    def backward(g: Node, y: Node, x: Node) -> list[Node]:
        graph = x.graph
        top, own = places(x)
        met = graph.binary("eq", graph.binary("mod", top - 1, M), own)
        return [graph.apply("where", met, g, g * 0)]

    return subject({"x": tensor(N, M)}, forward, backward)


RIGHT: dict[str, Callable[[], Subject]] = {
    "softmax": _softmax, "normalised": _normalised, "product": _product,
    "piecewise": _piecewise, "chain": lambda: chain(3), "top one": _top_one,
    "distance": _distance, "before the top": _before_the_top,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_no_mutant_that_differs_is_proved(name: str) -> None:
    random = Random(f"mutants of {name}")
    different = 0
    for mutant in mutants(RIGHT[name](), random, 40):
        wrong = differs(mutant)
        different += bool(wrong)
        assert not (wrong and proved(mutant)), f"{mutant.name}: {mutant.change}"
    assert different > 15, "the mutants do not differ: the test tests nothing"


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_the_originals_are_proved(name: str) -> None:
    original = RIGHT[name]()
    for gradient in original.gradients:
        unchanged = Mutant(original, gradient, "unchanged")
        assert differs(unchanged) is False
        assert proved(unchanged)
