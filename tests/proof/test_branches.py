"""What a branch demands is demanded where the branch is taken, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg
from symgrad.proof.report.records import Report
from symgrad.proof.report.rendering import worded
from tests.proof.written import function_from

SOURCE = """
def forward(ctx, x{numbers}):
    ctx.save_for_backward(x)
    {before}
    return {forward}

def backward(ctx, g):
    (x,) = ctx.saved_tensors
    {before}
    return {backward}
"""
INSIDE = "x.abs() < 1"
HUBER = f"sg.where({INSIDE}, x, sg.sqrt(2 * x.abs() - 1) * sg.sign(x))"
ROOT = "y = sg.sqrt(sg.clamp(x, min=0))"


def judged(forward: str, backward: str, before: str = "pass", **given: Any) -> Report:
    source = SOURCE.format(forward=forward, backward=backward, before=before, numbers="")
    return sg.verify(function_from(source), "n", suggest=False, **given)


def said(report: Report) -> set[str]:
    assert report.verdict is sg.PROVED, str(report)
    return {worded(one).partition(" (yours")[0] for one in report.conditions}


@pytest.mark.parametrize(
    ("forward", "backward", "conditions"),
    [
        (HUBER, f"sg.where({INSIDE}, g, g / sg.sqrt(2 * x.abs() - 1))",
         {"at the kink: x == 1", "at the kink: x == -1"}),
        ("sg.where(x < 0, x, sg.sqrt(x - 1))", "sg.where(x < 0, g, g / (2 * sg.sqrt(x - 1)))",
         {"if x > 1 where x >= 0", "at the kink: x == 0"}),
        ("sg.where(x > 0, sg.log(x), x)", "sg.where(x > 0, g / x, g)", {"at the kink: x == 0"}),
        ("sg.where((x > 0) & (x < 3), sg.log(x), x)", "sg.where((x > 0) & (x < 3), g / x, g)",
         {"at the kink: x == 0", "at the kink: x == 3"}),
    ],
)  # fmt: skip
def test_a_branch_demands_its_domain_where_it_is_taken(
    forward: str, backward: str, conditions: set[str]
) -> None:
    assert said(judged(forward, backward)) == conditions


@pytest.mark.parametrize(
    ("forward", "backward", "demanded"),
    [
        (HUBER, f"sg.where({INSIDE}, g, g / sg.sqrt(2 * x.abs() - 1)) "
                "+ 0 * g * sg.sqrt(2 * x.abs() - 1)", "x.abs()"),
        ("sg.where(x < 1, x, x * x) + sg.sqrt(x)",
         "sg.where(x < 1, g, 2 * x * g) + 0.5 * g / sg.sqrt(x)", "x"),
        ("sg.where(sg.log(x) > 0, x, 2 * x)", "sg.where(sg.log(x) > 0, g, 2 * g)", "x"),
    ],
)  # fmt: skip
def test_what_is_evaluated_everywhere_is_demanded_everywhere(
    forward: str, backward: str, demanded: str
) -> None:
    found = judged(forward, backward)
    if found.verdict is sg.PROVED:
        wanted = [one for one in said(found) if one.startswith(f"if {demanded} >")]
        assert wanted, str(found)
        assert all(" where " not in one for one in wanted)


@pytest.mark.parametrize(
    ("forward", "backward", "before"),
    [
        (HUBER, f"sg.where({INSIDE}, 2 * g, g / sg.sqrt(2 * x.abs() - 1))", "pass"),
        (HUBER, f"sg.where({INSIDE}, g, 2 * g / sg.sqrt(2 * x.abs() - 1))", "pass"),
        (HUBER, "sg.where(x.abs() < 0.75, g, g / sg.sqrt(2 * x.abs() - 1))", "pass"),
        ("y", "sg.where(y > 0, g / sg.where(y > 0, y, 1.0), 0 * g)", ROOT),
        ("sg.where(sg.relu(x) > 0, x, 2 * x)", "g * 1.0", "pass"),
        ("sg.where(sg.relu(x) - x == 0, x, 2 * x)", "2 * g", "pass"),
        ("sg.where(x - x > 0, x, 2 * x)", "g * 1.0", "pass"),
        ("sg.where(x - x == 0, x, 2 * x)", "2 * g", "pass"),
    ],
)
def test_what_is_wrong_in_one_branch_is_refuted(forward: str, backward: str, before: str) -> None:
    assert judged(forward, backward, before).verdict is sg.REFUTED


@pytest.mark.parametrize(
    ("forward", "backward", "before"),
    [
        ("y", "sg.where(y > 0, 0.5 * g / sg.where(y > 0, y, 1.0), 0 * g)", ROOT),
        ("sg.sqrt(sg.relu(x))", "sg.where(x > 0, 0.5 * g / sg.sqrt(sg.relu(x)), 0 * g)", "pass"),
        ("sg.log(sg.clamp(x, min=2))", "sg.where(x > 2, g / sg.clamp(x, min=2), 0 * g)", "pass"),
    ],
)  # fmt: skip
def test_where_forward_stays_what_it_is_nothing_is_differentiated(
    forward: str, backward: str, before: str
) -> None:
    conditions = said(judged(forward, backward, before))
    assert len(conditions) == 1
    assert conditions <= {"at the kink: x == 0", "at the kink: x == 2"}


@pytest.mark.parametrize(
    ("forward", "backward", "before"),
    [
        ("y", "sg.where(y > 0, 0.5 * g / sg.where(y > 0, y, 1.0), g)", ROOT),
        ("sg.sqrt(sg.relu(x))", "0.5 * g / sg.sqrt(x.abs())", "pass"),
        ("sg.sqrt(sg.relu(x)) + sg.relu(x)",
         "0.5 * g / sg.sqrt(x.abs()) + sg.where(x > 0, g, 0 * g)", "pass"),
    ],
)  # fmt: skip
def test_a_gradient_where_forward_stays_what_it_is_is_refuted_there(
    forward: str, backward: str, before: str
) -> None:
    found = judged(forward, backward, before)
    assert found.verdict is sg.REFUTED
    point = found.inputs["x"].counterexample
    assert point is not None
    assert "x = [-" in str(point)
    assert point.true == 0
    assert point.snippet


def test_a_value_that_is_wrong_at_a_bend_that_forward_does_not_have_is_told() -> None:
    right = f"sg.where({INSIDE}, g, g / sg.sqrt(2 * x.abs() - 1))"
    found = judged(HUBER, f"sg.where(x == 0, 5 * g, {right})")
    assert found.verdict is not sg.PROVED or any("x == 0" in one for one in said(found))


def test_elements_that_read_others_are_not_taken_apart() -> None:
    forward = "sg.where(x.sum() > 0, x, sg.sqrt(x - 1))"
    backward = "sg.where(x.sum() > 0, g, g / (2 * sg.sqrt(x - 1)))"
    found = judged(forward, backward)
    assert found.verdict is not sg.PROVED or any("x > 1" in one for one in said(found))


def test_the_domain_of_a_plain_number_is_that_of_the_branch() -> None:
    root = "sg.sqrt(2 * d * x.abs() - d * d)"
    source = SOURCE.format(
        numbers=", d=0.1",
        before="pass",
        forward=f"sg.where(x.abs() < d, x, {root} * sg.sign(x))",
        backward=f"sg.where(x.abs() < d, g, g * d / {root}), None",
    ).replace("ctx.save_for_backward(x)", "ctx.save_for_backward(x); ctx.d = d")
    source = source.replace("(x,) = ctx.saved_tensors", "(x,) = ctx.saved_tensors; d = ctx.d")
    found = sg.verify(function_from(source), "n", suggest=False)
    assert said(found) == {"at the kink: x.abs() == d", "if d > 0"}
    assert "for all real d > 0" in str(found)
