"""The labels of the adversarial programs are true: torch and difference quotients say so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.suite.adversarial.loader import KINDS, over_torch
from tests.suite.adversarial.program import RIGHT, Program, at

pytestmark = pytest.mark.peers

SAME, ROUNDED, DIFFERENT = 1e-6, 1e-5, 1e-4
TINY = 1e-14


@pytest.mark.parametrize("kind", KINDS)
def test_labels_are_true(kind: str) -> None:
    found = [
        f"{program.name}: {said}"
        for program in over_torch(kind).values()
        for said in doubts(program)
    ]
    assert not found, "\n".join(found)


def doubts(program: Program) -> Iterator[str]:
    """What torch says against the label of a program."""
    from tests.suite.adversarial.torch_truth import difference

    least = TINY if program.tiny else DIFFERENT
    for point in program.fails:
        gap = difference(program, point)
        if gap < least:
            yield f"is not wrong at {point}: {gap:.3g}"
    if program.label == RIGHT or program.hides:
        most = ROUNDED if program.rounded else SAME
        for point in (at(), *program.holds):
            for seed in (0, 1):
                gap = difference(program, point, seed)
                if gap > most:
                    yield f"is wrong at {point}, try {seed}: {gap:.3g}"
