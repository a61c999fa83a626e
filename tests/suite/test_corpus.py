"""Torch and difference quotients agree with what the corpus says of each Function."""

from __future__ import annotations

import pytest

from tests.suite.corpus_loader import CATEGORIES, cases, module_over_torch
from tests.suite.marks import PROVED, Case

pytestmark = pytest.mark.peers


@pytest.mark.parametrize("category", CATEGORIES)
def test_corpus_is_true(category: str) -> None:
    from tests.suite import torch_check

    complaints = []
    for case in cases(module_over_torch(category)):
        found = list(torch_check.findings(case))
        complaints += [f"{case.name}: {text}" for text in _complaints(case, found)]
    assert not complaints, "\n".join(complaints)


def _complaints(case: Case, found: list) -> list[str]:  # type: ignore[type-arg]
    from tests.suite.torch_check import DIFFERENT, SAME

    if len(found) < 2:
        return [f"only {len(found)} points could be tried"]
    if case.verdict == PROVED:
        return [f"said to be right: {point}" for point in found if point.error > SAME]
    failing = [point for point in found if point.error > DIFFERENT]
    if not failing:
        return [f"said to be wrong, passes everywhere: {found}"]
    if not any(point.kind == case.kind for point in failing):
        return [f"fails by {point}" for point in failing]
    return []
