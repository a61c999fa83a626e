"""What varies over fewer axes is multiplied first: the same numbers, validated."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from symgrad.codegen.emit.file import FileDoc, emit_file, included, prelude
from symgrad.codegen.emit.kernel import emit_kernel
from symgrad.codegen.program.collapse import collapse_axes
from symgrad.codegen.program.definitions import build_program
from symgrad.codegen.program.factored import factored
from symgrad.ir.expr import Call, Reduce, postorder
from symgrad.ir.graph import Graph, Node
from symgrad.validate.symbolic.kernel import validate
from tests.codegen.programs import Builder, M, N

Make = Callable[[Builder, Node, Node, Node, Node], dict[str, Node]]


def graph_of(make: Make) -> Graph:
    """``x`` and ``y``, and ``a`` and ``c``, which have one value for each row."""
    b = Builder()
    x, y = b.input("x", N, M), b.input("y", N, M)
    a, c = (b.spread(b.input(name, N), x) for name in ("a", "c"))
    return b.outputs(**make(b, x, y, a, c))


def whole(b: Builder, x: Node, inner: Node) -> Node:
    """The sum of each row, for each of its elements."""
    return b.spread(b.total(inner), x)


GROUPED: dict[str, tuple[Make, tuple[int, int]]] = {
    "quotient": (lambda b, x, y, a, c: {"z": x / a}, (0, 1)),
    "quotients": (lambda b, x, y, a, c: {"z": x / a * c / a}, (0, 1)),
    "from inside": (lambda b, x, y, a, c: {"z": a * (x * c)}, (0, 1)),
    "each its own": (lambda b, x, y, a, c: {"z": x / a * (y / c)}, (0, 3)),
    "sum": (lambda b, x, y, a, c: {"z": x * a - x / c}, (0, 1)),
    "minus": (lambda b, x, y, a, c: {"z": a * -(x * c)}, (0, 1)),
    "out of a sum": (lambda b, x, y, a, c: {"z": x + whole(b, x, x * a)}, (0, 0)),
    "out of a sum of products": (
        lambda b, x, y, a, c: {"z": x + whole(b, x, x * a * (y * c))}, (0, 1),
    ),
    "divided in a sum": (lambda b, x, y, a, c: {"z": x + whole(b, x, x / a * y)}, (0, 2)),
    "the sum is taken anyway": (
        lambda b, x, y, a, c: {"z": b.total(x * y, 1), "w": b.total(x * (a * y), 1)}, (0, 1),
    ),
}  # fmt: skip
"""Graphs, and how many divisions and products are left for an element."""
KEPT: dict[str, Make] = {
    "no factor": lambda b, x, y, a, c: {"z": x * y + x},
    "one factor": lambda b, x, y, a, c: {"z": x * a + y},
    "a row by itself": lambda b, x, y, a, c: {"z": b.total(x, 1) / b.total(y, 1)},
    "compared": lambda b, x, y, a, c: {"z": b.apply("where", b.apply("lt", x / a, c), x, y)},
    "not smooth": lambda b, x, y, a, c: {"z": b.apply("floor", x / a)},
    "no terms": lambda b, x, y, a, c: {"z": b.total(x * a, 1)},
    "other terms": lambda b, x, y, a, c: {"z": x * a + y * c},
}


@pytest.mark.parametrize("name", GROUPED)
def test_once_for_a_row(name: str) -> None:
    make, (divisions, products) = GROUPED[name]
    graph = graph_of(make)
    program = factored(collapse_axes(build_program(graph)))
    parts = postorder(one.body for one in program.definitions)
    rows = [one for one in parts if isinstance(one, Call) and len(one.free) == 2]
    assert sum(one.function == "div" for one in rows) == divisions
    assert sum(one.function == "mul" for one in rows) == products
    emitted = emit_kernel(graph, "k_grouped", derived=True)
    text = included(emit_file([emitted], FileDoc("k_grouped")).source, prelude())
    outcome = validate(text, emitted.record, graph)
    assert outcome.validated, f"line {outcome.line}: {outcome.reason}"


@pytest.mark.parametrize("name", KEPT)
def test_what_is_left_alone(name: str) -> None:
    program = collapse_axes(build_program(graph_of(KEPT[name])))
    assert factored(program).definitions == program.definitions


def test_a_sum_that_is_taken_anyway_is_taken_once() -> None:
    program = factored(
        collapse_axes(build_program(graph_of(GROUPED["the sum is taken anyway"][0])))
    )
    parts = postorder(one.body for one in program.definitions)
    assert sum(isinstance(one, Reduce) for one in parts) == 1


def test_what_is_written_keeps_its_roundings() -> None:
    emitted = emit_kernel(graph_of(GROUPED["quotients"][0]), "k_written")
    assert re.search(r"x_i\[j\] ?/ ?a_i", emitted.view.body)
