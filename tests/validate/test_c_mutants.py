"""Mutants of the emitted C are what they are said to be, and bounded execution finds slips."""

from __future__ import annotations

import re

import pytest

from benchmarks.c_mutants import Case, _case, edits_of, executed, judged, mutant_of, table
from tests.codegen import programs

KINDS = {
    "accumulators", "bounds", "casts", "clauses", "constants", "dropped statements", "guards",
    "helper", "indices", "initial values", "operands", "operators", "order", "parameters",
    "pragmas", "strides", "tails", "workspace",
}  # fmt: skip


@pytest.fixture(scope="module")
def case() -> Case:
    return _case("softmax", "k_softmax", programs.layer_norm())


def test_every_kind_of_edit_is_made_and_changes_its_line(case: Case) -> None:
    edits = edits_of(case.text)
    assert {kind for kind, *_ in edits} == KINDS
    assert len({edit[1:] for edit in edits}) == len(edits) > 1000
    lines = case.text.split("\n")
    for edit in edits[::29]:
        mutant = mutant_of(case.text, edit)
        changed = mutant.text.split("\n")
        first = next(n for n, (a, b) in enumerate(zip(lines, changed, strict=False)) if a != b)
        assert mutant.line <= first + 1 <= mutant.line + 8


SLIPS = (
    (r"i\*x_s0", "i*m"),
    (r"(\w+_block) \+= ", r"\1 = "),
    (r" reduction\(\+:\w+\)", ""),
    (r"(float \w+_block = )0\.0f", r"\g<1>1.0f"),
    (r"MIN\((\w+), \w+ \+ 64\)", r"(\1)"),
)


@pytest.mark.parametrize(("old", "new"), SLIPS)
def test_slips_are_found(case: Case, old: str, new: str) -> None:
    match = re.search(old, case.text)
    assert match is not None
    edit = ("slip", match.start(), match.end(), match.expand(new))
    mutant = mutant_of(case.text, edit)
    found, why = executed(case, mutant)
    assert found == "wrong", why
    assert judged(case, mutant).found in ("language", "rejected")


def test_an_edit_without_effect_is_equal(case: Case) -> None:
    old = "schedule(static)"
    start = case.text.index(old)
    end = case.text.index("\n", start)
    found = judged(case, mutant_of(case.text, ("clauses", start, end, old)))
    assert found.found == "equal", found
    assert "| **all** | 1 | 0 | 0 | 1 | 0 |" in table([found])
