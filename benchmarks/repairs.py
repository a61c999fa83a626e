"""Repairs as a user takes them: pasted into the file, and judged anew, with no shapes given.

    python -m benchmarks.repairs --count 200

In: the wrong backwards of ``tests/suite`` and mutants of the right ones.  Out: on standard output,
how many got a repair, how many repairs hold where they are pasted, and the processor time.  Exits 1
if one that was called proved does not hold.
"""

from __future__ import annotations

import argparse
import json
import linecache
import random
import re
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import symgrad as sg
from benchmarks.mutants import Mutant, class_text, mutants_of
from symgrad.proof.report.records import Report
from tests.suite.corpus_loader import cases_over_symgrad, module_over_symgrad
from tests.suite.exceptions import UNDECIDED
from tests.suite.marks import PROVED, REFUTED, Case

ALL, ALONE = "all that is judged", "some shapes alone"
NO_DIFF = "not written into the file"
HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


@dataclass(frozen=True)
class Outcome:
    """What became of one wrong backward.

    ``called``: what its repair is called proved for; empty where there is none.  ``after``: the
    verdict on the repaired text.  ``said``: both reports.
    """

    name: str
    what: str
    verdict: str
    called: str = ""
    after: str = ""
    seconds: float = 0.0
    plain_seconds: float = 0.0
    text: str = field(default="", repr=False)
    said: str = field(default="", repr=False)


def programs(count: int, seed: int) -> list[tuple[Case, Mutant]]:
    """Wrong backwards of the suite, and as many mutants of right ones, by the seed."""
    wrong, right = list[Case](), list[Case]()
    for case in cases_over_symgrad():
        if case.name in UNDECIDED or case.surrogate is not None:
            continue
        if case.verdict == PROVED:
            right.append(case)
        elif case.verdict == REFUTED and not case.needed:
            wrong.append(case)
    choice, found = random.Random(seed), list[tuple[Case, Mutant]]()
    choice.shuffle(wrong)
    for case in wrong:
        if len(found) == count // 2:
            break
        with suppress(OSError):  # a class that another text makes
            text = class_text(case.function)
            found.append((case, Mutant(case.category, case.name, case.bug, text)))
    while len(found) < count:
        case = choice.choice(right)
        mutants = mutants_of(case.function, case.category)
        found += [(case, choice.choice(mutants))] if mutants else []
    return found


def made(case: Case, name: str, source: str) -> Any:
    """The class of a text in the namespace of its module, with lines that can be read."""
    file = f"<repair of {name}: {hash(source) & 0xFFFFFFFF:08x}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    space = dict(vars(module_over_symgrad(case.category)))
    exec(compile(source, file, "exec"), space)
    return space[name]


def judged(case: Case, function: Any, *, suggest: bool) -> tuple[Report, float]:
    """The report as a user gets it who says no shapes, and the processor time that it took."""
    static = {name: value for name, value in case.static.items() if type(value) is not float}
    facts = {name: text for name, text in case.assume.items() if "*" not in text}
    start = time.process_time()
    report = sg.verify(function, static=static or None, assume=facts or None, suggest=suggest)
    return report, time.process_time() - start


def applied(text: str, diff: str) -> str:
    """A text after a unified diff of it."""
    lines, result, at = text.splitlines(keepends=True), list[str](), 0
    for line in diff.splitlines(keepends=True)[2:]:
        hunk = HUNK.match(line)
        if hunk:
            start = int(hunk.group(1)) - 1
            result += lines[at:start]
            at = start
        elif line.startswith("+"):
            result.append(line[1:])
        elif not line.startswith("\\"):
            at += 1
            result += [line[1:]] if line.startswith(" ") else []
    return "".join([*result, *lines[at:]])


def outcome(case: Case, mutant: Mutant) -> Outcome:
    """Judge a wrong backward, take its repair, judge it again."""
    name, text = mutant.name, mutant.source + "\n"
    try:
        function = made(case, name, text)
        judged(case, function, suggest=False)  # the first verdict of a process takes longer
        _, plain = judged(case, function, suggest=False)
        report, seconds = judged(case, function, suggest=True)
    except Exception as problem:
        return Outcome(name, mutant.description, f"raises {type(problem).__name__}")
    found = Outcome(
        name, mutant.description, report.verdict.name, seconds=seconds, plain_seconds=plain
    )
    wrong = [one for one in report.inputs.values() if one.verdict is sg.REFUTED]
    if not wrong or any(one.suggestion is None for one in wrong):
        return found
    alone = any(under.kind == "alone" for one in wrong for under in one.suggested_under)
    found = replace(found, called=ALONE if alone else ALL, said=f"{report}\n{report.diff}")
    if not report.diff:
        return replace(found, after=NO_DIFF)
    new = applied(text, report.diff)
    try:
        again, _ = judged(case, made(case, name, new), suggest=False)
    except Exception as problem:
        return replace(found, after=f"raises {type(problem).__name__}: {problem}", text=new)
    verdicts = {name: one.verdict.name for name, one in again.inputs.items()}
    left = [f"{one.name}: {verdicts[one.name]}" for one in wrong if verdicts[one.name] != PROVED]
    return replace(
        found, after="; ".join(left) or PROVED, text=new, said=f"{found.said}\n{again}"
    )  # fmt: skip


def summary(found: list[Outcome]) -> str:
    """The figures as Markdown."""
    repaired = [one for one in found if one.called]
    held = Counter((one.called, one.after) for one in repaired)
    rows = [f"| {called} | {after} | {count} |" for (called, after), count in sorted(held.items())]
    times = [median(one.seconds for one in repaired), median(one.plain_seconds for one in repaired)]
    return "\n".join(
        [
            f"{len(found)} wrong backwards, {len(repaired)} with a repair of every gradient.",
            f"Processor time, median: {times[0] * 1000:.0f} ms, {times[1] * 1000:.0f} ms without "
            "looking for a repair.\n",
            "| the repair is called proved for | pasted, it is | |", "|---|---|---|", *rows,
        ]
    )  # fmt: skip


def main() -> int:
    """Judge, print; 1 if a repair that was called proved does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="wrong backwards")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path, help="a file to which JSON is appended, one line each")
    options = parser.parse_args()
    found = []
    for case, mutant in programs(options.count, options.seed):
        found.append(outcome(case, mutant))
        if options.log:
            with options.log.open("a", encoding="utf-8") as log:
                log.write(json.dumps(vars(found[-1])) + "\n")
    print(summary(found))
    return (
        1 if any(one.called == ALL and one.after not in (PROVED, NO_DIFF) for one in found) else 0
    )


if __name__ == "__main__":
    sys.exit(main())
