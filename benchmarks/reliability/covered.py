"""The process that ``coverage`` watches: programs compiled and called; counts are left at its end.

In: a seed, a number, a path.  Out: at the path, each wrapper's text and the lines that ran.
"""

from __future__ import annotations

import json
import random
import sys
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np

from benchmarks.reliability import calls, ops, watch
from benchmarks.reliability.coverage import PROGRAMS
from benchmarks.reliability.draw import draw
from benchmarks.reliability.notes import Notes
from benchmarks.reliability.subject import Subject
from benchmarks.reliability.truth import NoGradient

HOSTILE_CALLS = 600  # of each op


def main() -> None:
    """Compile, call, write down."""
    seed, number, path = sys.argv[1:]
    warnings.simplefilter("ignore")
    watched = []
    for at in range(PROGRAMS):
        name = f"coverage {seed}:{int(number) * PROGRAMS + at}"
        made = ops.made_with(Subject(draw(name), name))
        for op, points, subject in made:
            notes = Notes()
            with suppress(NoGradient):
                ops.check_op("coverage", op, subject, points, notes, "f64")
            with np.errstate(all="ignore"), watch.watched(op):
                hostility = calls.Hostility(op, name, notes, random.Random(name))
                for _ in range(HOSTILE_CALLS):
                    hostility.call()
        watched += [(source, sorted(lines)) for source, lines in watch.taken()]
    Path(path).write_text(json.dumps(watched), encoding="utf-8")


if __name__ == "__main__":
    main()
