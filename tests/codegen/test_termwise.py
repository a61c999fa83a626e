"""Sums taken term by term: one pass over arrays fewer, the same numbers, validated."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from symgrad.codegen.emit.file import FileDoc, emit_file, prelude
from symgrad.codegen.emit.file import included as with_prelude
from symgrad.codegen.emit.kernel import emit_kernel
from symgrad.codegen.program.collapse import collapse_axes
from symgrad.codegen.program.definitions import build_program
from symgrad.codegen.program.termwise import termwise
from symgrad.codegen.schedule.explain import schedule_text
from symgrad.ir.graph import Graph, Node
from symgrad.validate.symbolic.kernel import validate
from tests.codegen.programs import PROGRAMS, Builder, M, N

Make = Callable[[Builder, Node, Node, Node], Node]


def graph_of(make: Make) -> Graph:
    """``x``, ``y``, and ``a``: of each column, the sum of their products."""
    b = Builder()
    x, y = b.input("x", N, M), b.input("y", N, M)
    return b.outputs(z=make(b, x, y, b.graph.expand(b.total(x * y, 0), x.shape)))


def less_mean(b: Builder, x: Node, inner: Node) -> Node:
    return x - b.graph.expand(b.mean(inner, 0), x.shape)


TAKEN: dict[str, Make] = {
    "sum": lambda b, x, y, a: less_mean(b, x, a * x + y * a * 2.0),
    "difference": lambda b, x, y, a: less_mean(b, x, -(a * x) - y * x / a),
    "product": lambda b, x, y, a: less_mean(b, x, a * b.apply("exp", x)),
    "sum in a product": lambda b, x, y, a: less_mean(b, x, (a * x - a * y) * a),
}
KEPT: dict[str, Make] = {
    "elements are exact": lambda b, x, y, a: less_mean(b, x, x - a),
    "one term is exact": lambda b, x, y, a: less_mean(b, x, x - a * y),
    "not linear": lambda b, x, y, a: less_mean(b, x, b.apply("square", a * x + a * y)),
    "a term waits as long": lambda b, x, y, a: less_mean(b, x, a * x + a * b.apply("exp", a - y)),
    "does not wait": lambda b, x, y, a: less_mean(b, a * x, x * y + y * 2.0),
    "is 0 of no rows": lambda b, x, y, a: b.total(a * x + y / a, 0),
    "many terms": lambda b, x, y, a: less_mean(
        b, x, a * x + a * y + a * b.apply("exp", x) + a * b.apply("exp", y) + a * (x * y)
    ),
}


def passes(graph: Graph) -> int:
    """How often a kernel runs through the rows."""
    return schedule_text(graph).splitlines().count("for i in n:")


@pytest.mark.slow
@pytest.mark.parametrize("name", TAKEN)
def test_what_waits_is_taken_with_what_it_waits_for(name: str) -> None:
    graph = graph_of(TAKEN[name])
    assert passes(graph) == 2
    emitted = emit_kernel(graph, "k_terms")
    text = with_prelude(emit_file([emitted], FileDoc("k_terms")).source, prelude())
    outcome = validate(text, emitted.record, graph)
    assert outcome.validated, f"line {outcome.line}: {outcome.reason}"


@pytest.mark.parametrize("name", KEPT)
def test_what_is_left_alone(name: str) -> None:
    program = collapse_axes(build_program(graph_of(KEPT[name])))
    assert termwise(program).definitions == program.definitions


def test_rows_of_groups_are_gone_through_once_less() -> None:
    program = collapse_axes(build_program(PROGRAMS["group_norm"]()))
    assert termwise(program).definitions != program.definitions
