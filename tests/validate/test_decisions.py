"""Integers that become floats decide in the C what they decide in the graph, and as exactly."""

from __future__ import annotations

import re

import pytest

from symgrad.ir.dtype import DType, float32, float64, int16, int64
from symgrad.ir.graph import Graph
from symgrad.kernels import KernelPlan
from symgrad.validate.symbolic.kernel import Outcome, validate
from tests.codegen.programs import Builder, M, N
from tests.validate.test_symbolic import emitted


def compared(of: DType = int64, cast: DType | None = None) -> Graph:
    b = Builder(of)
    x, y = b.input("x", N), b.input("y", N)
    if cast is not None:
        x, y = b.apply("cast", x, dtype=cast), b.apply("cast", y, dtype=cast)
    return b.outputs(z=b.apply("gt", x, y))


def outcome(graph: Graph, value: str) -> Outcome:
    text, record, graph = emitted(KernelPlan("k_compared", graph))
    assert validate(text, record, graph).validated
    (old,) = re.findall(r"z\[i\] = (.*);", text)
    return validate(text.replace(f"= {old};", f"= (uint8_t)({value});"), record, graph)


WRONG = {
    "as floats": "(float)x[i] > (float)y[i]",
    "as doubles": "(double)x[i] > (double)y[i]",
    "a difference": "(double)x[i] - (double)y[i] > 0.0",
    "one of them": "(double)x[i] > (double)y[i]*1.0",
    "halves": "(double)x[i]*0.5 > (double)y[i]*0.5",
    "and back": "(int64_t)(double)x[i] > (int64_t)(double)y[i]",
    "steps": "floor((double)x[i]) > floor((double)y[i])",
}


@pytest.mark.parametrize("what", WRONG)
def test_integers_are_compared_as_integers(what: str) -> None:
    assert not outcome(compared(), WRONG[what]).validated


def test_floats_that_the_graph_compares_are_compared_in_its_types() -> None:
    for cast, right, wrong in ((float64, "double", "float"), (float32, "float", "double")):
        for ctype, validated in ((right, True), (wrong, False)):
            value = f"({ctype})x[i] > ({ctype})y[i]"
            assert outcome(compared(cast=cast), value).validated == validated
        zero = "0.0f" if right == "float" else "0.0"
        gone = f"({right})x[i] - ({right})y[i] > {zero}"
        assert not outcome(compared(cast=cast), gone).validated


def test_what_a_float_holds_decides_as_the_integer_does() -> None:
    assert outcome(compared(int16), "(double)x[i] > (double)y[i]").validated


@pytest.mark.parametrize(
    "value",
    ["(float)i == (float)x[i]", "(float)i - (float)x[i] == 0.0f", "(double)i == (double)x[i]"],
)  # fmt: skip
def test_a_place_is_compared_as_an_integer(value: str) -> None:
    b = Builder(float32)
    x = b.input("x", N, dtype=int64)
    graph = b.outputs(z=b.apply("eq", x, b.apply("iota", length=N)))
    assert outcome(graph, "i == x[i]").validated
    assert not outcome(graph, value).validated


def test_means_are_compared() -> None:
    """Their sizes become floats in the graph as well; that its sums are taken in blocks is said."""
    b = Builder(float32)
    x = b.input("x", N, M)
    graph = b.outputs(z=b.apply("maximum", b.mean(x), b.graph.lift(0.25, b.mean(x))),
                      y=b.apply("gt", b.mean(x), b.graph.lift(0.5, b.mean(x))))  # fmt: skip
    text, record, graph = emitted(KernelPlan("k_means", graph))
    found = validate(text, record, graph)
    assert found.validated, found.reason
