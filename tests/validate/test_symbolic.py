"""Kernels are validated for all sizes, and what is wrong in them is not."""

from __future__ import annotations

import dataclasses
import re
from functools import cache

import pytest

from symgrad import abi
from symgrad.codegen.calls import SizeNames
from symgrad.codegen.emit.file import FileDoc, emit_file, included, prelude
from symgrad.codegen.emit.kernel import emit_kernel
from symgrad.frontend.trace import trace
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import float64
from symgrad.ir.graph import Graph
from symgrad.ir.types import TensorType
from symgrad.kernels import KernelPlan, plan
from symgrad.ops.record import Helper, get
from symgrad.tensor.plans.shippedplan import SHIPPED
from symgrad.validate.source import without_comments
from symgrad.validate.symbolic.kernel import Outcome, validate
from tests.codegen import random_graphs
from tests.codegen.test_matrix import IN_C, drawn, graph_of
from tests.ops.cases import use

QUICK = (
    "nn_relu", "nn_silu", "nn_softplus", "nn_mish", "nn_elu", "nn_logsigmoid", "nn_erf", "nn_gelu",
    "nn_gelu_tanh", "nn_softmax", "nn_log_softmax", "nn_logsumexp", "nn_mse_loss",
)  # fmt: skip
LONG = ("nn_layer_norm", "nn_rms_norm", "nn_cross_entropy")


Emitted = tuple[str, abi.Kernel, Graph]


@cache
def kernels(name: str) -> dict[str, Emitted]:
    """The kernels of a shipped op: C texts, records of their calls, graphs."""
    op = plan(trace(SHIPPED[name]), name=name)
    return {one.name: emitted(one, SizeNames(op.sizes)) for one in op.kernels}


def emitted(kernel: KernelPlan, sizes: SizeNames | None = None) -> Emitted:
    made = emit_kernel(kernel.graph, kernel.name, None, sizes, dict(kernel.numbers))
    return included(emit_file([made], FileDoc("x")).source, prelude()), made.record, kernel.graph


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(n, marks=pytest.mark.slow) for n in LONG)])
def test_kernels_that_are_shipped_are_validated(name: str) -> None:
    for kernel, one in kernels(name).items():
        outcome = validate(*one)
        assert outcome.validated, f"{kernel}, line {outcome.line}: {outcome.reason}"


BY_DEFINITION = ("digamma", "erfinv", "tetragamma", "trigamma")
"""What no C library has."""


def alone(name: str, graph: Graph) -> Outcome:
    return validate(*emitted(KernelPlan(name, graph)))


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_C)
def test_ops_of_the_registry_are_validated(name: str) -> None:
    for number in range(2):
        outcome = alone(f"k_{name}", graph_of(use(name, number)))
        assert outcome.validated, f"line {outcome.line}: {outcome.reason}"


@pytest.mark.parametrize("name", BY_DEFINITION)
def test_functions_are_ops_where_they_are_those_of_the_records(name: str) -> None:
    text, record, graph = emitted(KernelPlan(f"k_{name}", graph_of(use(name, 0))))
    assert validate(text, record, graph).taken == (f"symgrad_{name}",)
    scalar = get(name).scalar
    assert scalar is not None
    assert isinstance(scalar.c, Helper)
    source = without_comments(scalar.c.source)
    changed = [
        text.replace(scalar.c.source, source.replace("{", "{ x = x + 0.5;", 1)),
        text.replace(scalar.c.source, source.replace("return ", "return 2.0 * ")),
        text.replace(scalar.c.source, f"/* {source} */"),
        text.replace(f"= symgrad_{name}(", f"= 2.0 * symgrad_{name}("),
        text.replace(f"= (float)symgrad_{name}(", f"= (float)2.0 * symgrad_{name}("),
    ]
    assert sum(one != text for one in changed) == 4
    assert not any(validate(one, record, graph).validated for one in changed if one != text)


@pytest.mark.parametrize(
    ("kernel", "old", "new"),
    [
        ("nn_silu_forward", "e.value, r, 0.041668393f", "e.value, r, 0.041668396f"),
        ("nn_silu_forward", "x <= 88.7", "x >= 88.7"),
        ("nn_silu_forward", "n.bits <<= 23", "n.bits <<= 22"),
        ("nn_erf_forward", "z, 0.09046726f", "z, 0.09046727f"),
        ("nn_erf_forward", "n.bits << 23", "n.bits << 22"),
        ("nn_erf_forward", "? far : near", "? near : far"),
    ],
)
def test_exp_and_erf_are_the_functions_that_are_proved(kernel: str, old: str, new: str) -> None:
    text, record, graph = kernels(kernel.removesuffix("_forward"))[kernel]
    assert validate(text, record, graph).taken == ()
    pieces = text.split(old)
    assert len(pieces) > 1
    for place in range(1, len(pieces)):
        changed = old.join(pieces[:place]) + new + old.join(pieces[place:])
        assert not validate(changed, record, graph).validated


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, 2, 3])
def test_arbitrary_graphs_are_validated(part: int) -> None:
    for number, example in enumerate(drawn(random_graphs.examples(), 5, part)):
        outcome = alone("k_any", example.graph)
        assert outcome.validated, f"graph {number}, line {outcome.line}: {outcome.reason}"


FORWARD = "nn_softmax_forward"
WRONG = {
    "a bound": ("j < m; j++", "j < m - 1; j++"),
    "a start": ("for (int64_t j = 0", "for (int64_t j = 1"),
    "a tile that is cut too late": ("i0 += 64", "i0 += 65"),
    "tiles that overlap": ("i0 += 64", "i0 += 63"),
    "a tile that is longer": ("MIN(n, i0 + 64)", "MIN(n, i0 + 65)"),
    "the end of the rows": ("MIN(n, i0 + 64)", "i0 + 64"),
    "a stride": ("i*m + j", "i*m + i"),
    "a start value": ("= 0.0f;", "= 1.0f;"),
    "nothing to start from": ("y_total[i - i0] = 0.0f;", ";"),
    "an operator": (" - greatest", " + greatest"),
    "an accumulator": ("y_total[i - i0] +=", "y_total[i - i0] ="),
    "a function": ("= symgrad_expf(", "= logf("),
    "a block": ("j0_ += SUM_BLOCK", "j0_ += SUM_BLOCK + 1"),
    "a clause that is missing": (" reduction(+:y_total_block)", ""),
    "a clause of another operator": ("(+:y_total_block)", "(max:y_total_block)"),
    "rows that share a sum": ("float y_total_block = 0.0f;", "static float y_total_block;"),
    "a row that is too long for its tile": ("float y_total[64]", "float y_total[63]"),
    "a return": ("(m < SHORT_ROW) {", "(m < SHORT_ROW) {\nif (m > 5)\nreturn 0;"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("op", "kernel", "function"),
    [("nn_softmax", "backward", "("), ("nn_rms_norm", "backward_01", "_workspace(")],
)
def test_sizes_are_in_the_order_of_the_call(op: str, kernel: str, function: str) -> None:
    text, record, graph = kernels(op)[f"{op}_{kernel}"]
    start = text.index(f"{record.name}{function}")
    head = text[start : text.index(")", start)]
    swapped = re.sub(r"int64_t n,(\s+)int64_t m", r"int64_t m,\1int64_t n", head)
    assert swapped != head
    assert not validate(text.replace(head, swapped), record, graph).validated


def test_a_variable_of_all_iterations_is_in_a_clause() -> None:
    text, record, graph = kernels("nn_log_softmax")["nn_log_softmax_forward"]
    clause = " reduction(|:greatest_nan)"
    assert clause in text
    assert not validate(text.replace(clause, "", 1), record, graph).validated


@pytest.mark.parametrize("name", ["index", "index_add"])
def test_a_call_is_refused_for_its_indices_alone(name: str) -> None:
    text, record, graph = emitted(KernelPlan(f"k_{name}", graph_of(use(name, 0))))
    assert validate(text, record, graph).validated
    (extent,) = set(re.findall(r">= (\w+)\)", text))
    for old, new in (
        (f">= {extent})", f">= {extent} - 1)"), (f">= {extent})", f">= {extent} + 1)"),
        (f">= {extent})", ">= 1)"), ("< 0)", "< 1)"), ("< 0)", "< -1)"),
        ("int outside = 0", "int outside = 1"), ("        return 1;", "        (void)0;"),
        ("if (outside)", "if (!outside)"), ("return 1;", "return 2;"),
    ):  # fmt: skip
        assert old in text
        assert not validate(text.replace(old, new), record, graph).validated, (old, new)


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_not_validated(what: str) -> None:
    text, record, graph = kernels("nn_softmax")[FORWARD]
    old, new = WRONG[what]
    start = text.index(f"int {FORWARD}(")
    place = text.index(old, start)
    wrong = text[:place] + new + text[place + len(old) :]
    assert not validate(wrong, record, graph).validated


def test_a_guard_against_what_is_no_number_is_not_left_out() -> None:
    """``0 * log(0)`` is no real number, so that ``x == 0 ? 0 : x*log(y)`` is not ``x*log(y)``."""
    graph, shape = Graph(), (Dim.size("n"),)
    x, y = (graph.input(name, TensorType(float64, shape)) for name in "xy")
    product = graph.apply("mul", x, graph.apply("log", y))
    graph.output("z", graph.apply("where", graph.binary("eq", x, 0.0), graph.lift(0.0, x), product))
    text, record, graph = emitted(KernelPlan("k_guarded", graph))
    assert validate(text, record, graph).validated
    wrong = re.sub(r"\S+ == 0\.0 \? 0\.0 : ", "", text)
    assert wrong != text
    assert not validate(wrong, record, graph).validated


def test_what_a_branch_does_not_write_is_not_read_under_its_condition() -> None:
    """What stands where ``i >= 3`` is 0, though the branch for ``i < 3`` finds ``x[i]``."""
    graph, shape = Graph(), (Dim.size("n"),)
    x = graph.input("x", TensorType(float64, shape))
    place = graph.apply("iota", length=shape[0])
    first = graph.binary("lt", place, 3)
    graph.output("z", graph.apply("where", first, graph.apply("mul", x, x), x))
    text, record, graph = emitted(KernelPlan("k_branch", graph))
    assert validate(text, record, graph).validated
    branch = "{ z[i] = i < 3 ? x[i] : 0.0; if (i < 3) z[i] = x[i] * x[i]; }"
    wrong = re.sub(r"z\[i\] = [^;]*;", branch, text)
    assert wrong != text
    assert not validate(wrong, record, graph).validated
    assert validate(wrong.replace("x[i] : 0.0", "0.0 : x[i]"), record, graph).validated


def test_what_stands_behind_an_empty_output_is_compared() -> None:
    graph = Graph()
    x = graph.input("x", TensorType(float64, (Dim.size("n"),)))
    nothing = graph.apply("slice", x, starts=(Dim.of(0),), sizes=(Dim.of(0),), steps=(1,))
    graph.output("a", nothing)
    graph.output("b", graph.binary("mul", x, 3.0))
    text, record, graph = emitted(KernelPlan("k_empty", graph))
    assert validate(text, record, graph).validated
    assert "3.0" in text.split("int k_empty(")[1]
    head, body = text.split("int k_empty(")
    assert not validate(f"{head}int k_empty({body.replace('3.0', '2.0')}", record, graph).validated


def test_threads_that_write_what_was_there_are_a_race() -> None:
    text, record, graph = kernels("nn_relu")["nn_relu_forward"]
    (pragma,) = set(re.findall(r" *#pragma omp parallel for.*\n", text))
    end = text.index(pragma)
    head, body = text[:end] + "    float own = 0.0f;\n" + pragma, text[end + len(pragma) :]
    loop, rest = body.split("{\n", 1)
    for line, right in (("const float mine = own;", True), ("own = own;", False)):
        outcome = validate(f"{head}{loop}{{\n        {line}\n{rest}", record, graph)
        assert outcome.validated == right, outcome.reason


def test_a_status_says_why() -> None:
    text, record, graph = emitted(KernelPlan("k_index", graph_of(use("index", 0))))
    assert validate(text, record, graph).validated
    other = dataclasses.replace(record, statuses=("a matrix is too large for the BLAS",))
    assert not validate(text, other, graph).validated


def test_groups_whose_rows_are_read_at_guarded_places_are_one_sum() -> None:
    """``x[i - 2]`` behind its guard: in the groups but the first the guard holds anyway."""
    graph = Graph()
    n, m = Dim.size("n"), Dim.size("m")
    x = graph.input("x", TensorType(float64, (n, m)))
    padded = graph.apply(
        "unslice", x, shape=(n + 3, m), starts=(Dim.of(2), Dim.of(0)), steps=(1, 1)
    )
    padded = graph.apply("tanh", graph.binary("add", padded, 1.0))
    graph.output("y", graph.apply("sum", padded, axes=(0,), keepdims=False))
    text, record, graph = emitted(KernelPlan("k_padded", graph))
    assert "row_groups" in text
    assert validate(text, record, graph).validated
    for wrong in (text.replace("int64_t g = 1", "int64_t g = 2"), text.replace("- 2 >=", "- 2 >")):
        assert wrong != text
        assert not validate(wrong, record, graph).validated


@pytest.mark.parametrize("asked", ["n / m", "4611686018427387904", "0 - 64", "64", "n"])
def test_a_workspace_is_what_is_used_of_it(asked: str) -> None:
    text, record, graph = kernels("nn_softmax")[FORWARD]
    assert "workspace(int64_t n, int64_t m)\n{" in text
    head = text.index(f"int64_t {FORWARD}_workspace(")
    old, end = text.index("return ", head), text.index(";", head)
    assert not validate(f"{text[:old]}return {asked}{text[end:]}", record, graph).validated
    inner = text.replace(f"int64_t {FORWARD}_workspace(", f"static int64_t {FORWARD}_workspace(")
    assert not validate(inner, record, graph).validated


@pytest.mark.parametrize(
    "zero",
    ["0.0f * INFINITY", "INFINITY - INFINITY", "NAN * 0.0f", "0.0f * 1e39f", "1e39f - 1e39f",
     "NAN"],
)  # fmt: skip
def test_no_number_is_no_zero(zero: str) -> None:
    text, record, graph = kernels("nn_relu")["nn_relu_forward"]
    assert "? 0.0f :" in text
    assert not validate(text.replace("? 0.0f :", f"? {zero} :"), record, graph).validated
