"""What ``order=2`` says agrees with torch's double backward, in numbers.

Over the right Functions of the corpus, most of which lose some history, and over random ones.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings

import symgrad as sg
from tests.suite.corpus_loader import (
    CATEGORIES,
    TorchAdaptor,
    cases,
    module_over_symgrad,
    module_over_torch,
)
from tests.suite.judging import report_on
from tests.suite.marks import PROVED, REFUTED, Case
from tests.suite.second_orders import Program, programs

pytestmark = pytest.mark.peers

DIFFERENT = 1e-4  # relative
POINTS = 6
_DEAR = {"deep", "ranks", "geometry"}
# Torch, as the comparison runs it, sees something else here than symgrad is asked about.
_OTHERWISE = {
    "CastInside": "the points are float64, which the cast leaves alone",
    "ExpInPlace": "a leaf that requires grad is changed in place",
    "GumbelSoftmax": "the noise is a constant, by which torch is asked to differentiate",
    "MaxWithIndices": "an output of integers has no cotangent",
}


def _disagreement(judged: Case, over_torch: Case) -> str:
    """What torch's double backward says against the verdict; empty where they agree."""
    from tests.suite.torch_check import findings

    verdict = report_on(replace(judged, order=2), suggest=False).verdict.name
    found = list(islice(findings(replace(over_torch, order=2)), POINTS))
    wrong = [point for point in found if point.error > DIFFERENT]
    if verdict == PROVED and wrong:
        return f"proved, but {wrong[0]}"
    if verdict == REFUTED and found and not wrong:
        return f"refuted, but right at {len(found)} points"
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("category", [name for name in CATEGORIES if name not in _DEAR])
def test_right_functions(category: str) -> None:
    over_torch = {case.name: case for case in cases(module_over_torch(category))}
    said = {
        case.name: text
        for case in cases(module_over_symgrad(category))
        if case.verdict == PROVED and case.name not in _OTHERWISE
        and (text := _disagreement(case, over_torch[case.name]))
    }  # fmt: skip
    assert not said


def _case(program: Program, over: object) -> Case:
    return Case("Chain", program.over(over), ("n", "n"), PROVED, "random", order=2)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs())
def test_random_chains(program: Program) -> None:
    from tests.suite.torch_check import findings

    report = sg.verify(program.over(sg), "n", "n", order=2, suggest=False)
    found = list(islice(findings(_case(program, TorchAdaptor("symgrad"))), POINTS))
    kinds = {point.kind for point in found if point.error > DIFFERENT}
    assert kinds <= {"second order"}, program.text
    assert report.verdict.name == (REFUTED if kinds else PROVED), f"{program.text}\n{report}"
