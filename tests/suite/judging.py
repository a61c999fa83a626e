"""What symgrad says of a case of the corpus.

In: a ``Case`` bound to symgrad.  Out: the report of ``symgrad.verify``, and what contradicts the
case's marks.
"""

from __future__ import annotations

from typing import Any

import symgrad as sg
from tests.suite.marks import Case


def report_on(case: Case, *, suggest: bool = True) -> Any:
    """Verify a case with all that is declared of it; ``suggest``: look for repairs."""
    function = case.function
    if case.surrogate is not None:
        function = sg.surrogate(case.surrogate)(function)
    return sg.verify(
        function,
        *case.specs,
        static=case.static,
        assume=case.assume,
        order=case.order,
        suggest=suggest,
    )


def as_marked(verdict: str) -> str:
    """The verdict as cases are marked: what looks meant is wrong, too, where nobody declared it."""
    return "REFUTED" if verdict == "SURROGATE" else verdict


def opposite(verdict: str) -> str:
    """The verdict that would be a lie."""
    return {"PROVED": "REFUTED", "REFUTED": "PROVED"}[verdict]


def mentions(text: str, condition: str) -> bool:
    """Whether a text states the condition: one of its alternatives, all parts of that."""
    return any(
        all(_mentions_one(text, part) for part in alternative.split(" and "))
        for alternative in condition.split(" or ")
    )


def _mentions_one(text: str, condition: str) -> bool:
    """Stated as it is, or its opposite where the report says what is refuted."""
    left, relation, right = condition.split()
    opposite = {"!=": "==", "==": "!="}.get(relation)
    refuted = "\n".join(line for line in text.splitlines() if "REFUTED if" in line)
    return any(
        f"{one} {sign} {other}" in where
        for sign, where in ((relation, text), (opposite, refuted))
        for one, other in ((left, right), (right, left))
    )
