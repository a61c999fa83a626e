"""The prover on the corpus: right backwards are PROVED, wrong ones REFUTED, none the other way.

Exceptions live in ``tests/suite/exceptions.py``; they are strict.
"""

from __future__ import annotations

import zlib

import pytest

from tests.proof import latex_grammar
from tests.suite import exceptions
from tests.suite.corpus_loader import cases_over_symgrad
from tests.suite.judging import as_marked, mentions, opposite, report_on
from tests.suite.marks import PROVED, REFUTED, Case, without_assumptions

pytestmark = pytest.mark.slow

CASES = cases_over_symgrad()
KNOWN = {case.name for case in CASES}


def _named(chosen: list[Case]) -> list[object]:
    return [pytest.param(case, id=f"{case.category}-{case.name}") for case in chosen]


@pytest.mark.parametrize("case", _named(CASES))
def test_verdict(case: Case) -> None:
    """The verdict, the condition under which a wrong backward is right, and the formulas."""
    report = report_on(case, suggest=False)
    verdict = report.verdict.name
    assert verdict != opposite(case.verdict), f"a wrong verdict\n{report}"
    if case.name in exceptions.UNDECIDED:
        assert verdict == "UNDECIDED", f"decided: remove {case.name} from the exceptions"
        pytest.xfail(exceptions.UNDECIDED[case.name])
    assert as_marked(verdict) == case.verdict, f"{case.bug or 'right'}\n{report}"
    if case.right_if:
        _assert_condition_is_found(case, str(report))
    if _is_drawn(case) and (formulas := report._repr_latex_()):
        latex_grammar.check(formulas.strip("$"))


def _is_drawn(case: Case) -> bool:
    """One case in four: formulas take as long as verdicts."""
    return zlib.crc32(case.name.encode()) % 4 == 0


def _assert_condition_is_found(case: Case, text: str) -> None:
    found = mentions(text, case.right_if)
    if case.name in exceptions.CONDITION_NOT_FOUND:
        assert not found, f"found: remove {case.name} from the exceptions"
        pytest.xfail(exceptions.CONDITION_NOT_FOUND[case.name])
    assert found, f"right if {case.right_if}, not said"


@pytest.mark.parametrize("case", _named([case for case in CASES if case.needed]))
def test_assumption_is_needed(case: Case) -> None:
    report = report_on(without_assumptions(case), suggest=False)
    assert report.verdict.name != PROVED, f"right only if {case.assume}\n{report}"
    if case.name not in exceptions.UNDECIDED:
        assert as_marked(report.verdict.name) == REFUTED, str(report)


def test_exceptions_name_cases() -> None:
    assert {*exceptions.UNDECIDED, *exceptions.CONDITION_NOT_FOUND} <= KNOWN
