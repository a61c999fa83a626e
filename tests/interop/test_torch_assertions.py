"""Assertions on values of tensors are conditions of the verdict; what is declared may show them."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from tests.interop.asserting import (  # noqa: E402
    Both,
    Branch,
    Caught,
    Classes,
    ClassesOfSize,
    InBackward,
    Positive,
    Wrong,
)

pytestmark = pytest.mark.peers


def _conditions(report: sg.Report) -> list[str]:
    return [one.text.partition(" (demanded")[0] for one in report.conditions]


@pytest.mark.parametrize("function", [Positive, InBackward])
@pytest.mark.parametrize(
    ("declared", "printed"),
    [(None, ["a > 0"]), ("positive", ["a > 0"]), ("[0.5, 2]", ["a in [0.5, 2]"]),
     ("nonnegative", ["a >= 0", "a > 0"])],
)  # fmt: skip
def test_an_assertion_is_printed_unless_it_is_declared(
    function: Any, declared: str | None, printed: list[str]
) -> None:
    report = sg.verify(function, "n", "1", assume=declared and {"a": declared})
    assert report.verdict == sg.PROVED, str(report)
    assert _conditions(report) == printed
    told = [one.text for one in report.conditions if "demanded in line" in one.text]
    assert bool(told) == (declared in (None, "nonnegative"))


def test_each_part_of_an_assertion_is_a_condition() -> None:
    report = sg.verify(Both, "n", "1")
    assert report.verdict == sg.PROVED, str(report)
    assert _conditions(report) == ["a > 0", "x != 1"]


@pytest.mark.parametrize("declared", ["negative", "(-1, 0)", "[-2, 0]"])
def test_what_holds_nowhere_is_no_proof(declared: str) -> None:
    report = sg.verify(Positive, "n", "1", assume={"a": declared})
    assert report.verdict == sg.UNDECIDED, str(report)


@pytest.mark.parametrize("function", [Caught, Branch])
def test_where_the_program_goes_on_it_is_no_condition(function: Any) -> None:
    report = sg.verify(function, "n", "1")
    assert report.verdict == sg.REFUTED, str(report)
    assert [one.text for one in report.conditions if one.kind != "found"] == []


def test_a_counterexample_meets_the_assertion() -> None:
    report = sg.verify(Wrong, "n", "1")
    assert report.verdict == sg.REFUTED, str(report)
    found = report.inputs["x"].counterexample
    assert found is not None
    assert min(found.inputs["a"]) >= 2


@pytest.mark.parametrize("function", [Classes, ClassesOfSize])
def test_a_condition_that_is_false_is_no_proof(function: Any) -> None:
    with pytest.raises((RuntimeError, IndexError)):
        function.apply(torch.ones(2, requires_grad=True)).sum().backward()
    try:
        verdict = sg.verify(function, "n").verdict
    except sg.SymgradError:
        return
    assert verdict != sg.PROVED
