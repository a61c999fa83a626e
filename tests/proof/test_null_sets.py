"""Where comparisons of a backward hold exactly: which sets these are, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad as sg
from symgrad.ir.graph import Graph, Node
from symgrad.proof.judge.boundaries import both_sides, boundaries
from symgrad.proof.judge.protocol import LINEAR
from symgrad.proof.oracle.numbers import Double
from symgrad.proof.oracle.values import Evaluator
from symgrad.proof.report.records import Finding
from tests.proof.builders import N, tensor
from tests.suite.adversarial.program import class_of, class_text

NUMBERS = st.integers(-6, 6).map(lambda n: n / 2)
RELATIONS = st.sampled_from(("eq", "ne", "lt", "le", "gt", "ge"))
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ("add", "sub", "mul", "maximum", "minimum", "neg", "abs", "relu", "square", "from")
        ),
        NUMBERS,
    ),
    max_size=4,
)


def _piecewise(steps: list[tuple[str, float]]) -> tuple[Graph, Node]:
    graph = Graph()
    node = graph.input("x", tensor(N))
    for op, number in steps:
        if op in ("neg", "abs", "relu", "square"):
            node = graph.apply(op, node)
        elif op == "from":
            node = graph.binary("sub", number, node)
        else:
            node = graph.binary(op, node, number or 1.0)
    return graph, node


@given(STEPS, RELATIONS, NUMBERS)
def test_a_comparison_changes_on_its_boundaries_alone(
    steps: list[tuple[str, float]], relation: str, number: float
) -> None:
    """Between two values of x that no boundary parts it is the same."""
    graph, node = _piecewise(steps)
    compared = graph.binary(relation, node, number)
    found = list(boundaries([compared]))
    at = _run([compared, *(one.point for one in found)], np.arange(-120, 121) / 8)
    sides = [np.sign(at[one.point] - float(one.value)) for one in found]  # type: ignore[arg-type]
    same = np.all([side[1:] == side[:-1] for side in sides] or [[True]], axis=0)
    changed = at[compared][1:] != at[compared][:-1]
    assert not np.any(changed & same), "it changes where no boundary is"


@given(STEPS, RELATIONS, NUMBERS)
def test_both_sides_are_there_where_it_is_said(
    steps: list[tuple[str, float]], relation: str, number: float
) -> None:
    graph, node = _piecewise(steps)
    for one in boundaries([graph.binary(relation, node, number)]):
        if not both_sides(one):
            continue
        values = np.arange(-200, 201) / 8
        below, here, above = (
            _run([one.point], values + by)[one.point] - float(one.value)  # type: ignore[arg-type]
            for by in (-1e-3, 0, 1e-3)
        )
        assert np.all((below * above < 0) | (here != 0))


def _run(nodes: list[Node], values: np.ndarray) -> Mapping[Node, np.ndarray]:
    return Evaluator(nodes).run(Double(), {"x": values}, {"n": values.size})


def _report(forward: str, backward: str, *specs: str) -> sg.Report:
    text = class_text("Judged", forward, backward, "xyzw"[: len(specs)])
    return sg.verify(class_of("Judged", text, sg), *specs, suggest=False)


WRONG = {
    "one relation from two": ("x * x", "2 * g * x * (1 + 1.0 * ((x >= 7) & (x <= 7)))"),
    "spelled in two ways": ("x * x", "2 * g * x * (1 + 1.0 * ((x >= 7) & (2 * x - 14 <= 0)))"),
    "a sign": ("x * x", "2 * g * x * (x - 4).sign().square()"),
    "a side that is not there": ("x * x", "sg.where((x - 3).abs() > 0, 2 * g * x, g)"),
    "by an output": ("x * x", "y = (x - 3).relu()\nsg.where((y == 0) & (x >= 3), g, 2 * g * x)"),
    "a factor that has the same zero": (
        "x * x", "2 * g * x * (1 + 1.0 * ((x >= 2) & (x * x <= 4) & (x > 0)))",
    ),
    "formulas that meet smoothly": ("x * x.abs()", "g * (2 * x.abs() + (x == 0))"),
    "a formula for one point": (
        "z = x == 0\ns = sg.where(z, 1.0, x)\nsg.where(z, 1.0, s.expm1() / s)",
        "z = x == 0\ns = sg.where(z, 1.0, x)\n"
        "g * sg.where(z, 0.0, (s * s.exp() - s.expm1()) / (s * s))",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_on_a_null_set_is_not_proved_there(name: str) -> None:
    report = _report(*WRONG[name], "n")
    said = [str(one) for one in report.conditions if one.kind == "null set"]
    assert report.verdict != sg.PROVED or said, str(report)


def test_two_comparisons_that_meet_in_one_point() -> None:
    wrong = "g * (y + 1.0 * ((x >= 0) & (y >= 0) & (x + y <= 0)))"
    report = _report("x * y + x", f"({wrong} + g, g * x)", "n", "n")
    assert report.verdict != sg.PROVED or any(c.kind == "null set" for c in report.conditions)


OF_COTANGENTS = {
    "an element": ("x * x", "sg.where(g == 1, 4 * g * x, 2 * g * x)"),
    "a step": ("x.exp()", "g * x.exp() * (g - 3).sign().square()"),
    "at 0": ("x * x", "sg.where(g == 0, 1.0, 2 * g * x)"),
    "an input": ("x * x", "sg.where(g == x, 4 * g * x, 2 * g * x)"),
    "a sum": ("x * x", "2 * g * x * (g.sum() != 3)"),
    "a mean": ("x.sin()", "g * x.cos() * (g.mean() != 1)"),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_COTANGENTS)
def test_what_is_wrong_at_values_of_a_cotangent_is_refuted_there(name: str) -> None:
    report = _report(*OF_COTANGENTS[name], "n")
    assert report.verdict == sg.REFUTED, str(report)
    assert report.inputs["x"].counterexample is not None
    assert _linear(report).verdict == sg.REFUTED, str(report)


def _linear(report: sg.Report) -> Finding:
    return next(one for one in report.protocol if one.name == LINEAR)


@pytest.mark.parametrize(
    "compared", ["g * g == 2", "g.exp() + g == 2", "g * x * g == 2", "g * g + x * x == 7"]
)
def test_linearity_leaves_out_what_its_proof_leaves_out(compared: str) -> None:
    report = _report("x * x", f"sg.where({compared}, 4 * g * x, 2 * g * x)", "n")
    said = [str(one) for one in report.conditions if one.kind == "null set"]
    linear = _linear(report)
    if report.verdict == sg.PROVED:
        assert said, str(report)
        assert "almost everywhere" in linear.text
        assert all(one in linear.text for one in said), linear.text
    else:
        assert linear.verdict == sg.REFUTED, str(report)


def test_linear_gradients_are_linear_on_null_sets_too() -> None:
    report = _report("x * x", "2 * g * x * (1 + 1.0 * (x.exp() + x == 2))", "n")
    assert _linear(report) == Finding(LINEAR, sg.PROVED)


RIGHT_FOR_COTANGENTS = {
    "zeros are skipped": ("x * x", "sg.where(g == 0, 0.0, 2 * g * x)"),
    "the same value": ("x * x", "sg.where(g == 1, 2 * x, 2 * g * x)"),
    "by parts": ("x * x", "2 * x * (g.relu() - (-g).relu())"),
    "by sign and size": ("x * x", "2 * x * g.sign() * g.abs()"),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT_FOR_COTANGENTS)
def test_right_comparisons_of_cotangents_are_proved_everywhere(name: str) -> None:
    report = _report(*RIGHT_FOR_COTANGENTS[name], "n")
    assert report.verdict == sg.PROVED, str(report)
    assert not [one for one in report.conditions if one.excepted], str(report)
    assert _linear(report) == Finding(LINEAR, sg.PROVED)


RIGHT = {
    "relu": ("x.relu()", "g * (x > 0)"),
    "relu by its output": ("x.relu()", "g * (x.relu() > 0)"),
    "clamp": ("x.clamp(-1, 2)", "g * ((x >= -1) & (x <= 2))"),
    "abs": ("x.abs()", "g * x.sign()"),
    "leaky": ("sg.where(x > 0, x, 0.1 * x)", "g * ((x > 0) * 1.0 + (x <= 0) * 0.1)"),
    "another formula on the set": ("x ** 3", "sg.where(x == 2, 12 * g, 3 * g * x * x)"),
    "two of them": ("x * x", "sg.where(x == 1, 2 * g, sg.where(x == 3, 6 * g, 2 * g * x))"),
    "the same on both sides": ("x.sin()", "sg.where(x > 1, g * x.cos(), g * x.cos())"),
    "an impossible relation": ("x * x", "sg.where(x.exp() <= 0, g, 2 * g * x)"),
    "the log of a sum": (
        "x.logsumexp(0, keepdim=True)", "g * (x - x.logsumexp(0, keepdim=True)).exp()"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_right_code_says_nothing_of_null_sets(name: str) -> None:
    report = _report(*RIGHT[name], "n")
    assert report.verdict == sg.PROVED, str(report)
    assert not [one for one in report.conditions if one.kind == "null set"], str(report)


def test_what_is_not_shown_is_printed() -> None:
    """No small rational point lies on this set, and no formula says what holds there."""
    slip = "2 * g * x * (1 + 1.0 * (x.exp() + x == 2))"
    report = _report("x * x", slip, "n")
    assert [str(c) for c in report.conditions if c.kind == "null set"] == ["x.exp() + x == 2"]
    assert "almost everywhere" in str(report)
    assert "but where x.exp() + x == 2" in str(report)


def test_a_second_order_says_its_null_sets() -> None:
    backward = "3 * g * x * sg.where(x.exp() + x == 2, x.detach(), x)"
    text = class_text("Cube", "x ** 3", backward, "x")
    report = sg.verify(class_of("Cube", text, sg), "n", order=2, suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert "but where x.exp() + x == 2" in str(report)


def test_a_number_without_axes_has_null_sets_too() -> None:
    report = _report("sg.where(x * x == 1, x, 2 * x)", "sg.where(x * x == 1, g, 2 * g)", "")
    assert report.verdict == sg.PROVED, str(report)
    assert "x * x == 1" in str(report)


ENDS = {
    "below the lower end": ("[0, 1)", "sg.where(m > 0, 2 * g * x, 0 * g)", True),
    "through a root": ("[0, 1)", "sg.where(m.sqrt() > 0, 2 * g * x, 0 * g)", True),
    "through a shift": ("[0, 1)", "sg.where(1 - m < 1, 2 * g * x, 0 * g)", True),
    "of a product": ("[0, 1)", "sg.where(m * (1 + x * x) > 0, 2 * g * x, g)", True),
    "the side inside": ("[0, 1)", "sg.where(m >= 0, 2 * g * x, 0 * g)", False),
    "an open end": ("(0, 1)", "sg.where(m > 0, 2 * g * x, 0 * g)", False),
    "inside": (
        "[0, 1)", "sg.where(m > 0.5, 2 * g * x, g * x) + sg.where(m > 0.5, 0, g * x)", False
    ),
    "beside an input that moves": (
        "[0, 1)", "sg.where(x > m, 2 * g * x, g * x) + sg.where(x > m, 0, g * x)", False
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_at_a_closed_end_there_is_one_side(name: str) -> None:
    """[rule: closed-end]."""
    interval, backward, told = ENDS[name]
    text = class_text("End", "x * x + 0 * m", f"{backward}, 0 * g", "xm")
    report = sg.verify(class_of("End", text, sg), "n", "n", assume={"m": interval}, suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert bool([one for one in report.conditions if one.kind == "null set"]) == told, str(report)
