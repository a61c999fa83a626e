"""Torch and difference quotients agree with what the corpus says of each Function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.suite.corpus_loader import CATEGORIES, cases, cases_over_torch, module_over_torch
from tests.suite.marks import PROVED, REFUTED, Case, without_assumptions

if TYPE_CHECKING:
    from tests.suite.torch_check import Finding

pytestmark = pytest.mark.peers

SAME, DIFFERENT = 2e-6, 1e-4  # relative; what lies between would say nothing


@pytest.mark.parametrize("category", CATEGORIES)
def test_corpus_is_true(category: str) -> None:
    complaints = []
    for case in cases(module_over_torch(category)):
        complaints += [f"{case.name}: {text}" for text in complaints_about(case)]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("category", CATEGORIES)
def test_right_ones_pass_gradcheck(category: str) -> None:
    from tests.suite.torch_check import gradcheck

    failing = {
        case.name: sizes
        for case in cases(module_over_torch(category))
        if case.verdict == PROVED and case.surrogate is None and (sizes := gradcheck(case))
    }
    assert not failing


def test_corpus_is_large() -> None:
    known = cases_over_torch()
    assert sum(case.verdict == PROVED for case in known) >= 150
    assert sum(case.verdict == REFUTED for case in known) >= 250
    assert len({case.name for case in known}) == len(known), "names are unique over categories"


def complaints_about(case: Case) -> list[str]:
    """What contradicts the marks of a case, as texts."""
    from tests.suite.torch_check import findings

    found = list(findings(case))
    if len(found) < 3:
        return [f"only {len(found)} points could be tried"]
    if case.verdict == PROVED:
        return [f"said to be right: {point}" for point in found if point.error > SAME] + (
            _not_needed(case) if case.needed else []
        )
    return _not_wrong(case, found)


def _not_needed(case: Case) -> list[str]:
    from tests.suite.torch_check import findings

    if any(point.error > DIFFERENT for point in findings(without_assumptions(case))):
        return []
    return ["said to need its assumptions, right without them"]


def _not_wrong(case: Case, found: list[Finding]) -> list[str]:
    failing = [point for point in found if point.error > DIFFERENT]
    if not failing:
        return [f"said to be wrong, passes at {len(found)} points"]
    if not any(point.kind == case.kind for point in failing):
        return [f"said to fail by {case.kind}, fails by {failing[0]}"]
    if not case.right_if:
        return []
    return [
        f"said to be right if {case.right_if}: {point}"
        for point in failing
        if eval(case.right_if, {}, dict(point.sizes))
    ]
