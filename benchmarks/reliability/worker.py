"""A worker: units of one part, one after the other, until there are no more.

In: a line ``part seed number limit`` on standard input for each; ``limit``: seconds of processor
time, after which the process ends.  Out: a line of JSON on standard
output for each; whatever else is printed goes to standard error.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import resource
import sys
import time
import warnings
from typing import Any

UNITS = {
    "programs": "benchmarks.reliability.programs",
    "calls": "benchmarks.reliability.calls",
    "sanitized": "benchmarks.reliability.calls",
    "processes": "benchmarks.reliability.processes",
    "coverage": "benchmarks.reliability.coverage",
}
"""The module of each part; its function ``unit(seed, number)`` returns a record."""


def run_unit(part: str, seed: str, number: int) -> dict[str, Any]:
    """The record of one unit."""
    started = time.perf_counter()
    record = importlib.import_module(UNITS[part]).unit(seed, number)
    return {
        "part": part, "number": number, **record,
        "seconds": round(time.perf_counter() - started, 3),
    }  # fmt: skip


def main() -> None:
    """Serve until the input ends."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        part, seed, number, limit = line.split()
        end = int(time.process_time() + float(limit)) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))
        print(json.dumps(run_unit(part, seed, int(number))), file=answers, flush=True)


if __name__ == "__main__":
    main()
