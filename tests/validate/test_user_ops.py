"""Ordinary ops of users: their C is validated, and edited it is not."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import symgrad as sg
from symgrad.frontend.trace import trace
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import float32
from symgrad.ir.function import SizeCondition
from symgrad.ir.graph import Graph
from symgrad.ir.types import TensorType
from symgrad.kernels import KernelPlan, plan
from symgrad.validate.bounded import Equal, check
from symgrad.validate.source import parse
from symgrad.validate.symbolic.kernel import Outcome, validate
from tests.validate.test_symbolic import Emitted, emitted
from tests.validate.user_ops import Bias, Linear, Masked, Scale, by_size, greatest_by

OPS: dict[str, tuple[Any, ...]] = {
    "bias [g c]": (Bias, "f32[n g c]", "f32[g c]"),
    "bias [h w c]": (Bias, "f32[n h w c]", "f32[h w c]"),
    "bias of 2 + 2": (Bias, "f32[n h w c]", "f32[w c]"),
    "weights [g c]": (Scale, "f64[n g c]", "f64[g c]"),
    "mask [t]": (Masked, "f32[t d]", "bool[t]"),
    "mask [n t]": (Masked, "f32[n t d]", "bool[n t]"),
    "linear 4": (Linear, "f32[4 m]", "f32[m k]"),
    "linear 8 16 4": (Linear, "f32[8 16]", "f32[16 4]"),
    "bias 4": (Bias, "f32[4 m]", "f32[m]"),
    "bias 128": (Bias, "f32[128 m]", "f32[m]"),
    "bias 5 3": (Bias, "f64[5 3]", "f64[3]"),
    "n > 4": (by_size(lambda n: n > 4), "f32[n m]", "f32[m k]"),
    "argmax": (greatest_by(sg.argmax, 1), "f32[n m]"),
    "argmin": (greatest_by(sg.argmin, 0), "f64[n m]"),
    "argmax of 4": (greatest_by(sg.argmax, 1), "f32[n 4]"),
    "argmax of 3 axes": (greatest_by(sg.argmax, 2), "f32[n k m]"),
    "n == 4": (by_size(lambda n: n == 4), "f32[n m]", "f32[m k]"),
}  # fmt: skip


@cache
def kernels(name: str) -> dict[str, tuple[Emitted, tuple[SizeCondition, ...]]]:
    """The kernels of an op, and the conditions that they are called under."""
    function, *specs = OPS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        op = plan(trace(function, *specs), name="op")
    return {
        one.name: (emitted(one), (*case.case.conditions, *case.case.requires))
        for case in op.cases
        for one in (case.inference, case.forward, *case.backward)
        if one is not None
    }


def judged(name: str, kernel: str, *edits: tuple[str, str]) -> Outcome:
    (text, record, graph), conditions = kernels(name)[kernel]
    for old, new in edits:
        assert old in text, text
        text = text.replace(old, new)
    return validate(text, record, graph, conditions)


@pytest.mark.parametrize("name", OPS)
def test_ops_of_users_are_validated(name: str) -> None:
    for kernel in kernels(name):
        outcome = judged(name, kernel)
        assert outcome.validated, f"{kernel}, line {outcome.line}: {outcome.reason}"


GROUPS = {
    "nothing to start from": ("grad_b_own[j] = 0.0;", "grad_b_own[j] += 0.0;"),
    "a place of the next": ("] += grad_output_i[j]", "] += grad_output_i[j + 1]"),
    "a group that is left out": ("int64_t g = 1", "int64_t g = 2"),
    "a group that is added twice": ("int64_t g = 1", "int64_t g = 0"),
    "rows that overlap": ("i0 = group*rows", "i0 = group*(rows - 1)"),
}  # fmt: skip
BACK = "op_backward_01"
WRONG: dict[str, tuple[str, str, tuple[str, str]]] = {
    **{
        f"{name}, {what}": (name, BACK, edit)
        for name in ("bias [g c]", "bias of 2 + 2", "bias 128") for what, edit in GROUPS.items()
    },
    "a guard": ("bias [g c]", BACK, ("if (c*g != 0)", "if (c*g != 1)")),
    "a guard that is turned": ("bias [g c]", BACK, ("if (c*g != 0)", "if (c*g == 0)")),
    "a block that is cut": ("bias [g c]", BACK, ("row + SUM_ROWS)", "row + SUM_ROWS - 1)")),
    "too few of 4 rows": ("bias 4", BACK, ("MIN(4, i0 + rows)", "MIN(3, i0 + rows)")),
    "the mask of the next": ("mask [t]", "op_forward", ("mask[i];", "mask[i + 1];")),
    "the mask of the first": ("mask [t]", "op_backward", ("mask[i];", "mask[0];")),
    "a mask that is turned": ("mask [t]", "op_forward", ("mask_i ?", "!mask_i ?")),
    "a mask that is taken away": ("mask [n t]", "op_forward", ("mask_i ? x_i[j] :", "x_i[j] +")),
    "a row that is left out": ("linear 4", "op_forward", ("MIN(4, first", "MIN(3, first")),
    "the width of another": ("linear 4", "op_forward", ("i0*m, m, y, k", "i0*m, k, y, k")),
    "a workspace of less": (
        "n > 4", "op_backward_case1",
        ("+ ROUND_UP(product_groups(n, 2*k*m + 9*m, 4) * (4*k*m));", "+ ROUND_UP(2*k*m);"),
    ),
    "the place behind": ("argmax", "op_inference", ("+ stored[i]]", "+ stored[i] + 1]")),
    "the place of another row": ("argmax", "op_inference", ("+ stored[i]]", "+ stored[0]]")),
    "a place of more": ("argmax", "op_inference", ("place = j;", "place = j + 1;")),
    "no check": ("argmax", "op_inference", ("return 1;", "(void)0;")),
    "a check of the first": ("argmax", "op_inference", ("k = 0; k < n", "k = 0; k < 1")),
    "a check of half": ("argmax of 3 axes", "op_backward", ("l < k*n; l++", "l < k; l++")),
    "too many groups": (
        "n > 4", "op_backward_case0",
        ("groups = product_groups(n, 2*k*m, 4)", "groups = product_groups(n, 2*k*m, 32)"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_in_them_is_not_validated(what: str) -> None:
    name, kernel, edit = WRONG[what]
    assert not judged(name, kernel, edit).validated


def test_the_greatest_of_nothing_has_no_place() -> None:
    """Without a word about sizes a row may be empty, and then the call is refused."""
    (text, record, graph), _ = kernels("argmax")["op_inference"]
    right, wrong = "(stored[k] >= m)", "(stored[k] > m)"
    assert right in text
    assert validate(text, record, graph).validated
    assert not validate(text.replace(right, wrong), record, graph).validated


@pytest.mark.parametrize("least", [1, 2, 64])
def test_groups_of_a_known_number_of_rows_are_one_sum(least: int) -> None:
    """However many groups rows are cut into: ``row_groups`` of numbers is a number."""
    texts = (f"row_groups(128, {one}, 32)" for one in (64, 4))
    edits = [(one, f"row_groups(128, {least}, 32)") for one in texts]
    assert judged("bias 128", BACK, *edits).validated
    fewer = (f"groups = row_groups(128, {least}, 32)", f"groups = row_groups(128, {least}, 1)")
    rows = ("rows = (128 + groups - 1) / groups", "rows = 128 / 32")
    assert not judged("bias 128", BACK, *edits, fewer, rows).validated


K, M = Dim.size("k"), Dim.size("m")


def _turned(graph: Graph) -> None:
    """Rows are read from the last to the first, summed in groups, and kept."""
    x = graph.input("x", TensorType(float32, (Dim.of(16), M)))
    turned = graph.apply(
        "slice", x, starts=(Dim.of(15), Dim.of(0)), sizes=(Dim.of(16), M), steps=(-1, 1)
    )
    graph.output("y", graph.apply("sum", graph.apply("tanh", turned), axes=(0,)))
    graph.output("z", turned)


def _outer(graph: Graph) -> None:
    """All products of two matrices, the axes of a known length outside and inside."""
    x = graph.input("x", TensorType(float32, (Dim.of(3), K)))
    y = graph.input("y", TensorType(float32, (K, Dim.of(4))))
    graph.output("z", graph.apply("einsum", x, y, spec="ab,cd->dcba"))
    graph.output("p", x)


DRAWN: dict[str, tuple[Callable[[Graph], None], str, tuple[str, ...]]] = {
    "turned": (_turned, "(-i + 15)", ("(-i + 14)", "(i)", "(-i + 16)")),
    "outer": (_outer, "row/3%k", ("row/4%k", "row/3%3", "row/k%k")),
}


@pytest.mark.parametrize("name", DRAWN)
def test_graphs_with_sizes_that_are_numbers_are_validated(name: str) -> None:
    build, old, wrong = DRAWN[name]
    graph = Graph()
    build(graph)
    text, record, graph = emitted(KernelPlan("k_drawn", graph))
    assert old in text
    outcome = validate(text, record, graph)
    assert outcome.validated, f"line {outcome.line}: {outcome.reason}"
    assert not any(validate(text.replace(old, new), record, graph).validated for new in wrong)


def test_a_call_that_is_refused_for_a_computed_index_is_not_wrong() -> None:
    """The place in one row may lie outside of another, and then nothing is returned."""
    graph = Graph()
    x = graph.input("x", TensorType(float32, (M, Dim.of(3))))
    y = graph.input("y", TensorType(float32, (Dim.size("n"),)))
    place = graph.apply("argmax", x, axes=(1,))
    graph.output("z", graph.apply("index", y, place))
    text, record, graph = emitted(KernelPlan("k_other", graph))
    assert isinstance(check(parse(text), record, graph), Equal)
