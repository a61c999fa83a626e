"""Verdicts and what has one, in conditions, comparisons, sets and order."""

import copy
import json
import pickle
from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad as sg
from symgrad.proof.report.records import CaseReport, Finding, InputReport, Report
from symgrad.proof.report.verdict import Verdict, worst
from symgrad.tools.judging import Judged, judge
from tests.suite.adversarial.program import class_of, class_text

VERDICTS = (sg.PROVED, sg.UNDECIDED, sg.REFUTED)


class Right(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class Wrong(Right):
    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return x * grad


def holders(verdict: Verdict) -> list[Any]:
    """Everything that has a verdict, with this one."""
    finding = Finding("linear", verdict)
    return [
        CaseReport("always", verdict),
        InputReport("x", verdict),
        finding,
        Report("F", None, {"x": InputReport("x", verdict)}),
        Report("F", None, {}, (finding,)),
    ]


@pytest.mark.parametrize("verdict", VERDICTS)
def test_true_exactly_if_proved(verdict: Verdict) -> None:
    proved = verdict is sg.PROVED
    assert bool(verdict) == proved
    for one in holders(verdict):
        assert bool(one) == proved
        assert one.ok == proved


@given(st.lists(st.sampled_from(VERDICTS), min_size=1, max_size=4))
def test_a_report_is_as_good_as_the_worst_of_its_parts(verdicts: list[Verdict]) -> None:
    inputs = {str(i): InputReport(str(i), one) for i, one in enumerate(verdicts)}
    order = ["PROVED", "UNDECIDED", "REFUTED"]
    expected = max(verdicts, key=lambda one: order.index(one.name))
    assert Report("F", None, inputs).verdict is expected is worst(verdicts)
    assert bool(Report("F", None, inputs)) == all(verdicts)


def test_the_order_is_that_of_badness_also_beside_names() -> None:
    assert sg.PROVED < sg.UNDECIDED < sg.REFUTED
    for (i, one), (j, other) in product(enumerate(VERDICTS), repeat=2):
        for right in (other, str(other)):
            assert (one < right, one <= right) == (i < j, i <= j)
            assert (one > right, one >= right, one == right) == (i > j, i >= j, i == j)
    assert all(sorted(some) == list(VERDICTS) for some in permutations(VERDICTS))
    with pytest.raises(ValueError, match="right"):
        assert sg.PROVED < "right"


@pytest.mark.parametrize("verdict", VERDICTS)
def test_what_has_a_verdict_equals_it_and_hashes_as_it(verdict: Verdict) -> None:
    others = [one for one in VERDICTS if one is not verdict]
    for one in [verdict, *holders(verdict)]:
        assert one == verdict == one
        assert one == verdict.name
        assert hash(one) == hash(verdict) == hash(verdict.name)
        assert one in {verdict}
        assert all(one != other for other in others)
        assert all(one != other.name for other in others)
        assert not {one} & set(others)


def test_two_reports_are_equal_if_all_of_them_is() -> None:
    one, same = (InputReport("x", sg.REFUTED, "why") for _ in range(2))
    other = InputReport("x", sg.REFUTED, "because")
    assert one == same
    assert one != other
    assert Report("F", None, {"x": one}) == Report("F", None, {"x": same})
    assert Report("F", None, {"x": one}) != Report("F", None, {"x": other})
    assert one != Finding("x", sg.REFUTED, "why")
    assert one != 3


@pytest.mark.parametrize("verdict", VERDICTS)
def test_a_verdict_is_itself_in_files_and_texts(verdict: Verdict) -> None:
    assert pickle.loads(pickle.dumps(verdict)) is copy.deepcopy(verdict) is verdict
    assert json.loads(json.dumps({"verdict": verdict})) == {"verdict": verdict.name}
    assert f"{verdict}" == str(verdict) == verdict.name
    assert Verdict(verdict.name) is verdict


def test_an_assertion_passes_for_the_right_backward_alone() -> None:
    right, wrong = sg.verify(Right, "n"), sg.verify(Wrong, "n", suggest=False)
    assert right
    assert not wrong
    assert right == sg.PROVED
    assert wrong == sg.REFUTED == wrong.inputs["x"]
    assert wrong.inputs["x"] in wrong.inputs.values()
    assert all(right.protocol)


def test_a_function_that_cannot_be_judged_is_not_true() -> None:
    assert judge(Right, ("n",))
    assert not judge(Wrong, ("n",))
    assert not judge(Right, ("no size !",))
    assert not Judged(Right)


def test_of_many_numbers_the_first_are_shown() -> None:
    text = class_text("Long", "x.sin()", "g * x.cos() * min(1, 999 / x.shape[0])", ["x"])
    report = sg.verify(class_of("Long", text, sg), "n", timeout=None, suggest=False)
    found = report.inputs["x"].counterexample
    assert found is not None
    count = len(found.inputs["x"])
    assert count > 999
    assert f"... ({count} numbers; counterexample.snippet has all)" in " ".join(str(report).split())
    assert len(str(report)) < 5000
    exec(found.snippet, {})
