"""Which of the emitted kernels are validated for all sizes, and how long it takes.

    python -m benchmarks.c_validation --graphs 500 --workers 2 --write

In: the kernels of ``symgrad.nn`` and of ``tests/codegen/programs``, two uses of each op of the
registry, arbitrary graphs.  Out: a Markdown table on standard output, in
``benchmarks/C_VALIDATION.md`` with ``--write``: how many are validated, which are not and why, the
seconds of processor time that a kernel takes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.c_mutants import Case, alone, cases
from symgrad.deadline import TimeUp, limited
from symgrad.validate.symbolic.kernel import validate
from tests.codegen import random_graphs
from tests.codegen.test_matrix import IN_C, drawn, graph_of
from tests.ops.cases import use

TABLE = Path(__file__).parent / "C_VALIDATION.md"
LIMIT = 60.0
"""Seconds of processor time that a validation may take."""
SEED = 2


@dataclass(frozen=True)
class Judged:
    """What became of a kernel, and the seconds that it took."""

    group: str
    case: str
    reason: str
    seconds: float


@cache
def groups(graphs: int) -> tuple[tuple[str, Case], ...]:
    """All kernels, with what they are kernels of."""
    return tuple(_groups(graphs))


def _groups(graphs: int) -> Iterator[tuple[str, Case]]:
    yield from (("symgrad.nn, whole networks", one) for one in cases())
    for name in IN_C:
        for number in range(2):
            yield "ops of the registry", alone(f"{name}_{number}", graph_of(use(name, number)))
    for kind, strategy in (
        ("arbitrary graphs", random_graphs.examples()),
        ("arbitrary graphs of products", random_graphs.products()),
    ):
        for number, example in enumerate(drawn(strategy, graphs // 2, SEED)):
            yield kind, alone(f"graph {number}", example.graph)


def judged(group: str, case: Case) -> Judged:
    """Is it validated?"""
    start = time.process_time()
    try:
        with limited(LIMIT):
            outcome = validate(case.text, case.record, case.graph, case.conditions)
        reason = "" if outcome.validated else _short(outcome.reason)
    except TimeUp:
        reason = f"not decided in {LIMIT:g} s"
    return Judged(group, case.name, reason, time.process_time() - start)


def _short(reason: str) -> str:
    """The sentence without the formulas below it, and without long indices."""
    line = reason.split("\n")[0]
    return line if len(line) < 100 else f"{line[:60]} ... {line[-36:]}"


def table(results: Sequence[Judged]) -> str:
    """The results, as Markdown."""
    lines = [
        "# Validation of the emitted C", "",
        "| kernels of | number | validated | median seconds | 90% | longest |",
        "|---|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for group in [*dict.fromkeys(one.group for one in results), ""]:
        some = [one for one in results if group in ("", one.group)]
        seconds = sorted(one.seconds for one in some)
        fine = sum(not one.reason for one in some)
        spent = (statistics.median(seconds), seconds[len(seconds) * 9 // 10], seconds[-1])
        cells = (len(some), f"{fine} ({100 * fine / len(some):.1f}%)", *(f"{s:.2f}" for s in spent))
        lines.append(f"| {group or '**all**'} | {' | '.join(map(str, cells))} |")
    refused = [f"- {one.group}, {one.case}: {one.reason}" for one in results if one.reason]
    if refused:
        lines += ["", "Not validated:", "", *refused]
    return "\n".join(lines) + "\n"


def _task(task: tuple[int, int]) -> Judged:
    graphs, place = task
    return judged(*groups(graphs)[place])


def main() -> None:
    options = _options()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tasks = [(options.graphs, place) for place in range(len(groups(options.graphs)))]
        with multiprocessing.Pool(options.workers) as pool:
            results = pool.map(_task, tasks, chunksize=4)
    text = table(results)
    print(text)
    if options.write:
        TABLE.write_text(text, encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--graphs", type=int, default=500)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
