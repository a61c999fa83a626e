"""The three verdicts.

In: nothing.  Out: ``Verdict``, ordered from best to worst, and ``worst``.
Imports the standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class Verdict(IntEnum):
    """What is known of a hand-written gradient; the greater, the worse."""

    PROVED = 0
    UNDECIDED = 1
    REFUTED = 2

    def __str__(self) -> str:
        return self.name


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of the verdicts; PROVED when there is none."""
    return max(verdicts, default=Verdict.PROVED)


PROVED = Verdict.PROVED
UNDECIDED = Verdict.UNDECIDED
REFUTED = Verdict.REFUTED


PROVED, UNDECIDED, REFUTED = Verdict.PROVED, Verdict.UNDECIDED, Verdict.REFUTED
