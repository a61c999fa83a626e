"""The part ``programs``: a random program, by each way that its number selects.

In: a seed and a number.  Out: a record.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.reliability import eager, ops, verdicts
from benchmarks.reliability.draw import draw
from benchmarks.reliability.notes import ASKED, Notes
from benchmarks.reliability.program import Program
from benchmarks.reliability.reduce import reduced
from benchmarks.reliability.subject import Subject
from benchmarks.reliability.truth import NoGradient

Way = Callable[[Subject, Notes], None]

# Each way, and how many programs there are for one that goes it; compiling takes seconds.
WAYS: dict[str, tuple[Way, int, int]] = {
    "reference": (ops.reference, 1, 0),
    "compiled": (ops.compiled, 6, 0),
    "package": (ops.packaged, 120, 5),
    "eager": (eager.tape, 3, 1),
    "apply": (eager.applied, 3, 2),
    "jit": (eager.jitted, 24, 3),
    "vmap": (eager.mapped, 3, 0),
    "nested": (eager.nested, 4, 1),
    "nested jit": (eager.nested_jit, 120, 7),
    "verdict": (verdicts.right, 8, 2),
    "mutants": (verdicts.mutated, 8, 4),
}
_TRIES, _TRIES_COMPILED = 60, 12
_COMPILED = ("compiled", "package", "jit", "nested jit")


def unit(seed: str, number: int) -> dict[str, Any]:
    """One program: what was found, and a smaller program for each way that failed."""
    notes = Notes()
    name = f"{seed}:{number}"
    program = draw(name)
    notes.counts["programs"] += 1
    notes.counts["programs: written backward"] += program.written
    notes.counts["programs: endings"] += len(program.endings)
    asked = [way for way in os.environ.get(ASKED, "").split(",") if way]
    for way, (run, every, offset) in WAYS.items():
        if way in asked or (not asked and number % every == offset % every):
            _go(way, run, Subject(program, name), notes)
    return notes.record()


def _go(way: str, run: Way, subject: Subject, notes: Notes) -> None:
    found = _found(way, run, subject)
    notes.counts += found.counts
    notes.refusals += found.refusals
    if not found.failures:
        return
    kinds = {one.route for one in found.failures}

    def fails(program: Program) -> bool:
        again = _found(way, run, replace(subject, program=program))
        return bool(kinds & {one.route for one in again.failures})

    tries = _TRIES_COMPILED if way in _COMPILED else _TRIES
    small = replace(subject, program=reduced(subject.program, fails, tries))
    for one in _found(way, run, small).failures or found.failures:
        one.program = f"{small.program.specs()}\n{small.class_text}"
        notes.failures.append(one)


def _found(way: str, run: Way, subject: Subject) -> Notes:
    """What a way finds; whatever it raises is a failure."""
    notes = Notes()
    try:
        run(subject, notes)
    except NoGradient:
        notes.counts["programs: torch has no gradient"] += 1
    except Exception:
        notes.fail(way, traceback.format_exc(limit=-6))
    return notes
