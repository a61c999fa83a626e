"""The process that ``coverage`` watches: kernels compiled and called; counts are left at its end.

The first units are single ops of the registry, the others random programs.

In: a seed, a number, a path.  Out: at the path, each wrapper's text and the lines that ran, the ops
of the registry that were emitted, and what failed.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reliability import calls, crossed, ops, registry, watch
from benchmarks.reliability.coverage import PROGRAMS
from benchmarks.reliability.draw import draw
from benchmarks.reliability.notes import Notes
from benchmarks.reliability.program import Program, function_text
from benchmarks.reliability.subject import Subject
from benchmarks.reliability.truth import NoGradient
from symgrad.kernels import OpPlan

HOSTILE_CALLS = 100  # of each op, at random
CANDIDATES = 600  # programs, of which those come first that call what none before them calls


def main() -> None:
    """Compile, call, write down."""
    seed, number, path = sys.argv[1:]
    warnings.simplefilter("ignore")
    found: list[tuple[str, list[int]]] = []
    notes, emitted = Notes(), set[str]()
    if int(number) < registry.PARTS:
        notes, emitted = registry.run(
            int(number), Path(os.environ["SYMGRAD_CACHE_DIR"]) / "registry"
        )
        programs: list[str] = []
    else:
        programs = chosen(seed, int(number) - registry.PARTS)
    for name in programs:
        subject = Subject(draw(name), name)
        own = Notes()
        for op, planned, points in ops.made_with(subject):
            emitted |= _ops_of(planned)
            _called(op, name, subject, points, own)
        notes.take(own, subject.class_text)
        found += [(source, sorted(lines)) for source, lines in watch.taken()]
    text = json.dumps({"wrappers": found, "ops": sorted(emitted), "notes": notes.record()})
    Path(path).write_text(text, encoding="utf-8")


def _called(op: Any, name: str, subject: Subject, points: Any, notes: Notes) -> None:
    with suppress(NoGradient):
        ops.check_op("coverage", op, subject, points, notes, "f64")
    with np.errstate(all="ignore"), watch.watched(op):
        hostility = calls.Hostility(op, name, notes, random.Random(name))
        for _ in range(HOSTILE_CALLS):
            hostility.call()
        crossed.Crossing(op, name, notes).run()


def chosen(seed: str, number: int) -> list[str]:
    """The programs of a unit: each calls as much as may be that none before it calls."""
    names = [f"coverage {seed}:{at}" for at in range(CANDIDATES)]
    words = {name: _words(draw(name)) for name in names}
    first, last = number * PROGRAMS, (number + 1) * PROGRAMS
    met: set[str] = set()
    found: list[str] = []
    while len(found) < last and words:
        best = max(words, key=lambda name: len(words[name] - met))
        found.append(best)
        met |= words.pop(best)
    later = range(CANDIDATES, CANDIDATES + max(0, last - CANDIDATES))
    return [*found, *(f"coverage {seed}:{at}" for at in later)][first:last]


def _words(program: Program) -> set[str]:
    """The functions and operators that a program calls."""
    text = function_text(program)
    return set(re.findall(r"\w+(?=\()|T\.\w+|@|//|[%~&|]|[<>=!]=|\*\*|\w+=|None", text))


def _ops_of(planned: OpPlan) -> set[str]:
    return {node.op for kernel in planned.kernels for node in kernel.graph.nodes}


if __name__ == "__main__":
    main()
