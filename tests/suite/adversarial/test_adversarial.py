"""No wrong program is PROVED, and no right one REFUTED, but those that are known to be.

The known ones live in ``tests/suite/adversarial/known.py``; its tables are strict.
"""

from __future__ import annotations

import pytest

from tests.suite.adversarial import known
from tests.suite.adversarial.judged import PROVED, complaints, judge
from tests.suite.adversarial.loader import KINDS, over_symgrad
from tests.suite.adversarial.program import RIGHT, Program

pytestmark = pytest.mark.slow  # all of them together

PROGRAMS = [program for kind in KINDS for program in over_symgrad(kind).values()]


def named(table: dict[str, str], kind: str) -> set[str]:
    """The programs of a kind in a table of known ones."""
    return set(table.get(kind, "").split())


@pytest.mark.parametrize(
    "program", [pytest.param(one, id=f"{one.kind}-{one.name}") for one in PROGRAMS]
)
def test_verdict_is_true(program: Program) -> None:
    judged = judge(program)
    found = complaints(program, judged)
    if program.name in named(known.FALSE, program.kind):
        assert found, f"answered truly: take {program.name} out of FALSE"
        pytest.xfail(found[0])
    assert not found, "\n".join([*found, program.source, str(judged.report or judged.said)])
    if program.label == RIGHT:
        undecided = program.name in named(known.UNDECIDED, program.kind)
        assert undecided == (judged.verdict != PROVED), f"{judged.verdict}\n{judged.report}"


def test_known_ones_are_programs() -> None:
    names = {(program.kind, program.name) for program in PROGRAMS}
    assert len(names) == len(PROGRAMS)
    for table in (known.FALSE, known.UNDECIDED):
        assert {(kind, name) for kind in table for name in named(table, kind)} <= names
