"""What one unit of the campaign found, as it goes into the results file."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

MOST_FAILURES = 6  # of one route in one unit: the first are enough to fix it

ASKED = "SYMGRAD_RELIABILITY_WAYS"
"""The environment variable that names the ways every program goes, with commas between them."""


@dataclass
class Failure:
    """``route``: how it was run; ``what`` went wrong; ``where``: sizes, mask, arguments."""

    route: str
    what: str
    where: str = ""
    program: str = ""


@dataclass
class Notes:
    """``counts`` by name; ``refusals``: what symgrad said that it does not do, and how often."""

    counts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def fail(self, route: str, what: str, where: object = "") -> None:
        """Keep a failure."""
        self.counts[f"{route}: failures"] += 1
        if sum(one.route == route for one in self.failures) < MOST_FAILURES:
            self.failures.append(Failure(route, what, str(where)))

    def refuse(self, route: str, error: BaseException) -> None:
        """Keep what was refused, with the names and numbers of the program left out."""
        first = str(getattr(error, "what", error)).splitlines()[0] if str(error) else ""
        said = re.sub(r"\bv?\d+\b|<[^>]*>", "_", first)
        self.counts[f"{route}: refused"] += 1
        self.refusals[f"{route}: {type(error).__name__}: {said[:150]}"] += 1

    def take(self, other: Notes, program: str) -> None:
        """What was found of one program, too."""
        self.counts += other.counts
        self.refusals += other.refusals
        for one in other.failures:
            one.program = program
            self.failures.append(one)

    def record(self) -> dict[str, Any]:
        """The notes as JSON takes them."""
        return {
            "counts": dict(self.counts), "refusals": dict(self.refusals),
            "failures": [asdict(one) for one in self.failures],
        }  # fmt: skip


def difference(found: Any, wanted: Any, tolerance: float) -> str:
    """How an array differs from what it should be; empty where it does not."""
    found = np.asarray(found)
    if found.shape != wanted.shape:
        return f"shape {found.shape}, not {wanted.shape}"
    if wanted.dtype.kind != "f":
        wrong = found != wanted
    else:
        with np.errstate(invalid="ignore"):
            same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
            wrong = ~(same | (np.abs(found - wanted) <= tolerance))
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{found[at]!r} instead of {wanted[at]!r} at {at}, {int(wrong.sum())} of {wrong.size}"


def is_refusal(error: Exception) -> bool:
    """Is it a SymgradError, of symgrad or of the copy that a package brings along?"""
    return any(kind.__name__ == "SymgradError" for kind in type(error).__mro__)
