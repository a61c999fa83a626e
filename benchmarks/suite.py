"""The suite's figures: verdicts by category, time for a gradient, share of proved repairs.

    python -m benchmarks.suite [CATEGORY ...] [--write]

In: the corpus of ``tests/suite``.  Out: Markdown on standard output, and in
``benchmarks/SUITE.md`` with ``--write``.  Exits 1 if a verdict is the opposite of the truth.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from rich.progress import track

from tests.suite.corpus_loader import CATEGORIES, cases, module_over_symgrad
from tests.suite.judging import as_marked, opposite, report_on
from tests.suite.marks import PROVED, REFUTED, Case

PAGE = Path(__file__).parent / "SUITE.md"


@dataclass(frozen=True)
class Outcome:
    """What was said of a case.

    ``repaired``: every refuted gradient got a suggestion that was proved where it is pasted.
    ``repaired_file``: a diff of the file was made, and with it all of them are PROVED.
    """

    case: Case
    said: str
    verdict_seconds: float
    seconds: float
    gradients: int
    repaired: bool = False
    repaired_file: bool = False

    @property
    def lie(self) -> bool:
        """Whether the verdict is the opposite of the truth."""
        return self.said == opposite(self.case.verdict)


def outcome(case: Case) -> Outcome:
    """Verify one case, for its verdict and for a repair; an exception's name is its verdict."""
    start = time.process_time()
    try:
        report_on(case, suggest=False)
        between = time.process_time()
        report = report_on(case)
    except Exception as problem:
        seconds = time.process_time() - start
        return Outcome(case, type(problem).__name__, seconds, seconds, 1)
    verdict_seconds, seconds = between - start, time.process_time() - between
    refuted = [one for one in report.inputs.values() if as_marked(one.verdict.name) == REFUTED]
    repaired = bool(refuted) and all(one.suggestion for one in refuted)
    repaired_file = bool(refuted) and bool(report.diff)
    gradients = max(len(report.inputs), 1)
    return Outcome(
        case, report.verdict.name, verdict_seconds, seconds, gradients, repaired, repaired_file
    )


def page(outcomes: list[Outcome]) -> str:
    """The figures as Markdown."""
    wrong = [
        one for one in outcomes if one.case.verdict == REFUTED and as_marked(one.said) == REFUTED
    ]
    verdict = _times([one.verdict_seconds / one.gradients for one in outcomes])
    repair = _times([one.seconds / one.gradients for one in outcomes])
    parts = [
        "# The suite\n",
        *_by_category(outcomes),
        "",
        f"Processor time for a gradient, from its source to the verdict, conditions and "
        f"counterexample: {verdict}.  With the search for a repair and its proof: {repair}.\n",
        f"A proved repair for every wrong gradient: {sum(one.repaired for one in wrong)} of "
        f"{len(wrong)} refuted backwards; a diff of the file after which it is proved: "
        f"{sum(one.repaired_file for one in wrong)}.\n",
        "## Not as it should be\n",
    ]
    parts += [
        f"- {one.case.category}: {one.case.name}, {one.case.bug or 'right'}: {one.said}"
        for one in outcomes
        if one.said != one.case.verdict
    ]
    parts += ["", "## Refuted without a proved repair\n"]
    parts += [
        f"- {one.case.category}: {one.case.name}, {one.case.bug}"
        for one in wrong
        if not one.repaired
    ]
    return "\n".join(parts) + "\n"


def _times(seconds: list[float]) -> str:
    ordered = sorted(1000 * one for one in seconds)
    high = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    return (
        f"median {statistics.median(ordered):.0f} ms, 99th percentile {high:.0f} ms, longest "
        f"{ordered[-1]:.0f} ms"
    )


def _by_category(outcomes: list[Outcome]) -> list[str]:
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        groups[one.case.category].append(one)
    rows = ["| category | right | PROVED | wrong | REFUTED | wrong verdicts |"]
    rows.append("|---|--:|--:|--:|--:|--:|")
    return rows + [_row(name, group) for name, group in [*groups.items(), ("all", outcomes)]]


def _row(name: str, group: list[Outcome]) -> str:
    right = [one for one in group if one.case.verdict == PROVED]
    wrong = [one for one in group if one.case.verdict == REFUTED]
    proved = sum(one.said == PROVED for one in right)
    refuted = sum(as_marked(one.said) == REFUTED for one in wrong)
    lies = sum(one.lie for one in group)
    return f"| {name} | {len(right)} | {proved} | {len(wrong)} | {refuted} | {lies} |"


def main() -> int:
    """Judge the chosen categories, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("categories", nargs="*", default=CATEGORIES)
    parser.add_argument("--write", action="store_true", help="write SUITE.md")
    options = parser.parse_args()
    wanted = [case for name in options.categories for case in cases(module_over_symgrad(name))]
    outcome(wanted[0])  # imports are not counted
    outcomes = [outcome(case) for case in track(wanted, "cases")]
    text = page(outcomes)
    print(text)
    if options.write:
        PAGE.write_text(text, encoding="utf-8")
    return 1 if any(one.lie for one in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
