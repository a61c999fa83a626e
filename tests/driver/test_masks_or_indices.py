"""``x[m]`` selects by a mask or by indices: what is wrong for indices alone is not REFUTED."""

from __future__ import annotations

import pytest

import symgrad as sg
from symgrad.proof.report.records import Report
from tests.suite.adversarial.program import class_of, class_text


def judged(forward: str, name: str, gradient: str) -> Report:
    backward = f"z = sg.zeros_like(x); z[{name}] = {gradient}; z, None"
    text = class_text("Selected", forward.format(name), backward, ["x", name])
    return sg.verify(class_of("Selected", text, sg))


@pytest.mark.parametrize("name", ["m", "mask", "keep"])
def test_what_is_not_traced_as_a_mask_is_not_refuted_as_an_index(name: str) -> None:
    report = judged("x[{}].flip(0)", name, "g.flip(0)")
    assert str(report.verdict) == "UNDECIDED", str(report)
    reason = report.inputs["x"].reason
    assert f"where {name} holds truth values, this is not traced" in reason
    assert f"i64 {name}" in reason
    assert "REFUTED" in reason


@pytest.mark.parametrize("name", ["index", "idx", "rows"])
def test_what_is_named_as_an_index_is_refuted_as_one(name: str) -> None:
    assert str(judged("x[{}]", name, "g").verdict) == "REFUTED"


@pytest.mark.parametrize("forward", ["x[{}]", "x[{}].sum()"])
def test_what_is_right_for_a_mask_alone_says_so(forward: str) -> None:
    report = judged(forward, "m", "g")
    assert str(report.verdict) == "PROVED", str(report)
    (condition,) = [one.text for one in report.inputs["x"].conditions if one.kind == "shapes"]
    assert "bool m" in condition
    assert "wrong for x[n, m], i64 m" in condition


def test_what_is_wrong_for_both_is_refuted() -> None:
    assert str(judged("x[{}].sum()", "m", "2 * g").verdict) == "REFUTED"
