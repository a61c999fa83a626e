"""The parts of the code generator by themselves."""

from __future__ import annotations

import operator
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad as sg
from symgrad.codegen.emit.ctree import Binary, Cast, Expression, Text, Unary, expression_text
from symgrad.codegen.emit.file import FileDoc, emit_file
from symgrad.codegen.emit.kernel import emit_kernel
from symgrad.codegen.emit.spelling import dim_expression, literal, template_binding
from symgrad.codegen.program.definitions import build_program
from symgrad.codegen.program.equations import elements_of
from symgrad.codegen.schedule.explain import schedule_text
from symgrad.codegen.schedule.items import Item, Items, roots_of
from symgrad.codegen.schedule.scheduler import Schedule, schedule
from symgrad.errors import CodegenError
from symgrad.frontend.trace import trace
from symgrad.ir.dim import Atom, Dim, Size, maximum, minimum
from symgrad.ir.dtype import float32, float64, int64
from symgrad.ir.graph import Graph
from symgrad.ir.types import TensorType
from symgrad.kernels import plan
from symgrad.ops.record import apply
from tests.codegen.programs import PROGRAMS, Builder

N, M, V = (Dim.size(name) for name in "nmv")
OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def source(graph: Graph) -> str:
    text = emit_file([emit_kernel(graph, "k")], FileDoc("k")).source
    return text[text.index("int k(") :]


# -- what is written


def test_an_output_that_is_a_value_in_another_shape_is_written_once() -> None:
    text = source(PROGRAMS["group_norm"]())
    assert "stored" not in text
    assert len(re.findall(r"\bgrad_x\w*\[.*\] =", text)) == 1


# -- the order of what is done


def _chosen(x: Any, labels: Any) -> Any:
    """A loss whose index is computed: rows of a label of their own are left out."""
    kept = labels != -100
    rows = sg.log_softmax(x, 1).gather(1, sg.where(kept, labels, 0).unsqueeze(1)).squeeze(1)
    return -sg.where(kept, rows, 0.0).sum()


def _put(x: Any, labels: Any) -> Any:
    return sg.zeros(x.shape[0]).index_add(0, sg.abs(labels), sg.exp(x).sum(1))


def _nested(x: Any, labels: Any) -> Any:
    return sg.exp(x).sum(1)[labels[labels + 1]]


@pytest.mark.parametrize("function", [_chosen, _put, _nested])
def test_nothing_is_read_or_written_at_an_index_that_is_checked_later(function: Any) -> None:
    op = type("Op", (sg.Function,), {"forward": staticmethod(lambda ctx, *args: function(*args))})
    for kernel in plan(trace(op, "n c", "i64[n]")).kernels:
        _assert_checked_first(schedule(build_program(kernel.graph)))


def _assert_checked_first(found: Schedule) -> None:
    place = {
        item: number
        for number, entry in enumerate(found.entries)
        for item in ([entry] if isinstance(entry, Item) else entry.items)
    }
    items = Items(found.program, found.order, found.kept)
    checks = {item: item.check.tensors for item in place if item.check is not None}
    for item in place:
        exprs = items.evaluated(roots_of(item))
        used = {element.tensor for expr in exprs for element in elements_of(expr)}
        assert all(place[item] > place[one] for one in checks if used.intersection(checks[one]))


# -- numbers and text


def _number(text: str) -> float:
    negative = text.startswith("-")
    bare = text.lstrip("-").removeprefix("(double)").removesuffix("f")
    value = {"INFINITY": np.inf, "NAN": np.nan}.get(bare)
    value = float(bare) if value is None else value
    return -value if negative else value


@given(st.floats())
def test_literals_read_back_as_the_same_bits(value: float) -> None:
    found = np.float64(_number(expression_text(literal(value, float64))))
    assert found.tobytes() == np.float64(value).tobytes() or np.isnan(value)
    with np.errstate(over="ignore"):
        single = np.float32(value)
    found_single = np.float32(_number(expression_text(literal(value, float32))))
    assert found_single.tobytes() == single.tobytes() or np.isnan(value)


@given(st.integers(-(2**63), 2**63 - 1))
def test_integer_literals(value: int) -> None:
    text = expression_text(literal(value, int64))
    text = text.replace("INT64_MIN", str(-(2**63))).replace("INT64_MAX", str(2**63 - 1))
    assert int(re.sub(r"INT64_C\((.*)\)", r"\1", text)) == value


def trees() -> st.SearchStrategy[tuple[Expression, float]]:
    """Expressions and their values, evaluated just as the tree says."""
    leaves = st.sampled_from([0.1, 0.3, 1e16, 3.0, 7.7]).map(lambda v: (Text(repr(v)), v))

    def joined(children: Any) -> Any:
        def both(parts: Any) -> tuple[Expression, float]:
            symbol, (left, a), (right, b) = parts
            value = OPERATORS[symbol](a, b) if symbol != "/" or b else a
            tree = Binary(symbol, left, right) if symbol != "/" or b else left
            return tree, value

        negated = children.map(lambda part: (Unary("-", part[0]), -part[1]))
        return st.tuples(st.sampled_from("+-*/"), children, children).map(both) | negated

    return st.recursive(leaves, joined, max_leaves=12)


@given(trees())
def test_text_is_evaluated_as_the_tree(tree: tuple[Expression, float]) -> None:
    expression, value = tree
    found = eval(expression_text(expression))
    assert found == value or (np.isnan(found) and np.isnan(value))


def test_minus_of_minus_is_no_decrement() -> None:
    assert expression_text(Unary("-", Unary("-", Text("x")))) == "-(-x)"
    assert expression_text(Binary("-", Text("a"), Unary("-", Text("x")))) == "a - (-x)"
    assert expression_text(Cast("float", Binary("+", Text("a"), Text("b")))) == "(float)(a + b)"


@pytest.mark.parametrize(
    ("text", "atomic"),
    [
        ("exp{f}({0})", True),
        ("{0} + {1}", False),
        ("({0} + {1})", True),
        ("{0} ? {1} : {2}", False),
    ],
)
def test_templates_bind_as_their_loosest_operator(text: str, atomic: bool) -> None:
    assert (template_binding(text) == template_binding("x")) == atomic


@st.composite
def dims(draw: Any) -> Dim:
    found = [N, M, Dim.of(2), Dim.of(3), N + 1, 2 * M - 3]
    for _ in range(draw(st.integers(1, 6))):
        left, right = draw(st.sampled_from(found)), draw(st.sampled_from(found))
        kind = draw(st.sampled_from(["+", "-", "*", "//", "%", "min", "max"]))
        if kind in ("//", "%"):
            right = draw(st.sampled_from([Dim.of(2), Dim.of(3), Dim.of(7)]))
        make: dict[str, Any] = {
            "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv,
            "%": operator.mod, "min": minimum, "max": maximum,
        }  # fmt: skip
        if len((left * right).terms) < 12:
            found.append(make[kind](left, right))
    return found[-1]


@given(dims(), st.integers(0, 9), st.integers(0, 9))
def test_integer_expressions(dim: Dim, n: int, m: int) -> None:
    def name(atom: Atom) -> Expression:
        assert isinstance(atom, Size)
        return Text(atom.name)

    text = expression_text(dim_expression(dim, name))
    if "?" in text:
        return  # Python has another conditional expression; test_graphs covers these
    names = {
        "n": n, "m": m, "floor_divide": operator.floordiv, "floor_modulo": operator.mod,
    }  # fmt: skip
    assert eval(text.replace("/", "//"), names) == dim.at({"n": n, "m": m})


# -- schedules


def test_schedules_are_as_few_loops_as_they_can_be() -> None:
    outermost = {
        name: sum(line.startswith("for") for line in schedule_text(program()).splitlines())
        for name, program in PROGRAMS.items()
    }
    assert outermost["softmax"] == outermost["gelu"] == outermost["cross_entropy"] == 1
    assert outermost["attention"] == 1


def test_elementwise_on_any_rank_is_one_flat_loop() -> None:
    b = Builder()
    x, y = b.input("x", V, N, M), b.input("y", V, N, M)
    text = source(b.outputs(out=b.apply("exp", x * y)))
    assert text.count("for (") == 2  # blocks, and the elements of a block
    assert "x[i]" in text


def test_adding_at_indices_is_one_loop_over_them() -> None:
    b = Builder()
    part, places = b.input("part", N, M), b.input("places", N, dtype=int64)
    text = source(b.outputs(out=b.apply("index_add", part, places, shape=(V, M))))
    assert "==" not in text
    assert re.search(r"places\[\w\]\*m", text)


def test_one_element_of_a_row_is_no_sum() -> None:
    assert "for (int64_t k" not in source(PROGRAMS["cross_entropy"]()).split("return 1;")[1]


def test_running_sum_is_one_loop() -> None:
    b = Builder()
    x = b.input("x", N, M)
    text = source(b.outputs(out=b.apply("cumsum", x, axis=1, reverse=False)))
    assert text.count("for (") == 2


def test_indices_that_nothing_reads_are_not_worked_out() -> None:
    graph = Graph()
    x = graph.input("x", TensorType(float64, (Dim.size("n"), Dim.size("m"))))
    total = apply("sum", graph.lift(0.5, x), axes=(0, 1))
    graph.output("y", total)
    text = emit_file([emit_kernel(graph, "k")], FileDoc("k")).source
    for variable in re.findall(r"const int64_t (\w+) =", text):
        assert len(re.findall(rf"\b{variable}\b", text)) > 1, variable


def test_max_lets_nan_through() -> None:
    b = Builder()
    assert "NAN" in source(b.outputs(out=b.apply("amax", b.input("x", N, M), axes=(1,))))


# -- refusals


def test_no_outputs() -> None:
    with pytest.raises(CodegenError, match="at least one output"):
        emit_kernel(Graph(), "k")


def test_op_without_a_meaning_in_index_notation() -> None:
    graph = Graph()
    matrix = graph.input("a", TensorType.of(float64, (N, N)))
    graph.output("y", graph.apply("inverse", matrix))
    with pytest.raises(CodegenError, match="'inverse' cannot be written in C yet"):
        emit_kernel(graph, "k")
