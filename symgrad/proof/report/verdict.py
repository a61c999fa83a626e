"""The verdicts, and what is said where judging itself fails.

In: nothing, or an exception of symgrad's own code.  Out: ``Verdict``, ordered from best to worst;
words for what becomes UNDECIDED.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any, cast

from symgrad.deadline import TimeUp
from symgrad.errors import GraphError, SymgradError


class Verdict(str, Enum):
    """What is known of a hand-written gradient: true exactly if it is PROVED.

    It equals its name.  The greater, the worse: PROVED < UNDECIDED < SURROGATE? < REFUTED.
    SURROGATE: it is not forward's gradient, and looks as if that were meant.
    """

    PROVED = "PROVED"
    UNDECIDED = "UNDECIDED"
    SURROGATE = "SURROGATE?"
    REFUTED = "REFUTED"

    def __bool__(self) -> bool:
        return self is Verdict.PROVED

    def __str__(self) -> str:
        return self.value

    def __lt__(self, other: str) -> bool:
        return _badness(self) < _badness(other)

    def __le__(self, other: str) -> bool:
        return _badness(self) <= _badness(other)

    def __gt__(self, other: str) -> bool:
        return _badness(self) > _badness(other)

    def __ge__(self, other: str) -> bool:
        return _badness(self) >= _badness(other)


def _badness(verdict: str) -> int:
    """Its place in the order of badness.  Raises ValueError for what is no verdict."""
    return list(Verdict).index(Verdict(verdict))


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of the verdicts; PROVED when there is none."""
    return max(verdicts, default=Verdict.PROVED)


class HasVerdict:
    """What has a ``verdict``, a dataclass: true exactly if it is PROVED, and equal to its verdict.

    Two of them are equal if all their fields are.
    """

    @property
    def ok(self) -> bool:
        """Is it PROVED?"""
        return bool(_verdict(self))

    def __bool__(self) -> bool:
        return self.ok

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return _verdict(self) == other
        if type(other) is not type(self):
            return NotImplemented
        compared = [field.name for field in fields(cast("Any", self)) if field.compare]
        return all(getattr(self, name) == getattr(other, name) for name in compared)

    def __hash__(self) -> int:
        return hash(_verdict(self))  # what is equal to a verdict hashes as the verdict does


def _verdict(judged: Any) -> Verdict:
    found: Verdict = judged.verdict
    return found


PROVED, UNDECIDED = Verdict.PROVED, Verdict.UNDECIDED
SURROGATE, REFUTED = Verdict.SURROGATE, Verdict.REFUTED

FAILED = "backward failed"
"""How the reason begins where backward raises an error."""
REFUSED = f"{FAILED} by its own raise"
"""How it begins where a ``raise`` or an ``assert`` of the program does."""
DERIVED = "derived: no backward written"
AGAINST = "judged against the declared surrogate, not against forward"
DIFFERS = "it differs from the true derivative"
"""What stands beside a verdict on gradients that are symgrad's own."""


# -- where the judge itself fails: never a verdict, never a traceback


def failure(error: BaseException) -> str:
    """Why nothing can be said: what went wrong, and where in symgrad."""
    if isinstance(error, SymgradError) and not isinstance(error, GraphError):
        return error.what
    if isinstance(error, TimeUp):
        return str(error)
    if reason := vars(error).get("reason"):  # of a step of the proof that gave up
        return f"the proof gave up: {reason}"
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    said = " ".join(str(error).split())
    return f"the judge failed with {type(error).__name__}{where}{': ' if said else ''}{said}"
