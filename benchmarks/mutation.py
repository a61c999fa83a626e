"""Mutation: small wrong edits of the suite's right backwards, and who catches them.

    python -m benchmarks.mutation --count 20000 --peers 1000 --workers 2 --write

In: the right backwards of ``tests/suite``.  Out: a Markdown table on standard output, in
``benchmarks/MUTATION.md`` with ``--write``.  One line of JSON a mutant is appended to ``--log``;
a second run takes up where the first stopped.  Exits 1 if a mutant that differs was PROVED.

A mutant is one random edit of ``backward``; where there are not as many single edits, two.
Whether it differs from the true gradient is decided by torch in float64, at every shape and
scale that the suite tries.  Mutants that raise at every point are counted apart.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from rich.progress import track

from benchmarks import mutation_judges as judges
from benchmarks.mutants import Mutant, mutants_of, mutated_again
from benchmarks.mutation_table import table
from tests.suite.corpus_loader import cases_over_symgrad, cases_over_torch
from tests.suite.exceptions import UNDECIDED
from tests.suite.marks import PROVED, Case

HERE = Path(__file__).parent
LOG = HERE.parent / "build" / "mutation.jsonl"
MORE_SEEDS = 6  # for a mutant that looked the same but was not proved


@dataclass(frozen=True)
class Task:
    """One mutant to judge; ``peers``: ask the slow ones too."""

    index: int
    mutant: Mutant
    peers: bool


@cache
def _cases(library: str) -> dict[str, Case]:
    found = cases_over_torch() if library == "torch" else cases_over_symgrad()
    return {case.name: case for case in found}


def tasks(count: int, seed: int, peers: int) -> list[Task]:
    """Mutants in a random order that the seed fixes; single edits first, then double ones."""
    singles = [
        mutant
        for case in _cases("symgrad").values()
        if case.verdict == PROVED and case.name not in UNDECIDED
        for mutant in mutants_of(case.function, case.category)
    ]
    random.Random(seed).shuffle(singles)
    chosen = singles[:count]
    for index in range(count - len(chosen)):
        choice = random.Random(f"{seed}:{index}")
        chosen.append(mutated_again(choice.choice(singles), choice))
    asked = set(random.Random(seed).sample(range(len(chosen)), min(peers, len(chosen))))
    return [Task(index, mutant, index in asked) for index, mutant in enumerate(chosen)]


def judge(task: Task) -> dict[str, Any]:
    """Everything that is said of one mutant."""
    torch.set_num_threads(1)
    mutant = task.mutant
    on_torch, on_symgrad = _cases("torch")[mutant.name], _cases("symgrad")[mutant.name]
    record: dict[str, Any] = {"index": task.index, **asdict(mutant), "seconds": {}}
    try:
        truth, record["seconds"]["truth"] = judges.timed(lambda: judges.truth(mutant, on_torch))
    except Exception as problem:
        return {**record, "truth": f"broken: {type(problem).__name__}"}
    record["truth"] = truth
    if truth == "raises":
        return record
    said, seconds = judges.timed(lambda: judges.symgrad_says(mutant, on_symgrad))
    record["symgrad"], record["seconds"]["symgrad"] = said, seconds
    if truth in ("same", "unclear") and said != PROVED:
        record["truth"] = judges.timed(lambda: judges.truth(mutant, on_torch, MORE_SEEDS))[0]
    if task.peers:
        setting = judges.Setting(mutant, on_torch)
        questions = {
            "gradcheck": lambda: judges.gradcheck_says(setting, fast=False),
            "gradcheck fast": lambda: judges.gradcheck_says(setting, fast=True),
            "check_grads": lambda: judges.jax_says(setting),
        }
        for name, question in questions.items():
            record[name], record["seconds"][name] = judges.timed(question)
    return record


def judged(todo: list[Task], workers: int) -> Iterator[dict[str, Any]]:
    """The records of tasks, by one or two processes."""
    if workers == 1:
        yield from map(judge, todo)
        return
    with multiprocessing.get_context("spawn").Pool(workers, maxtasksperchild=2000) as pool:
        yield from pool.imap_unordered(judge, todo, chunksize=20)


def _logged(path: Path) -> dict[int, dict[str, Any]]:
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {record["index"]: record for record in map(json.loads, lines)}


def main() -> int:
    """Judge, print, write; 1 if a mutant that differs was proved."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20_000, help="mutants")
    parser.add_argument("--peers", type=int, default=1_000, help="mutants shown to the peers too")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, choices=(1, 2), default=1)
    parser.add_argument("--log", type=Path, default=LOG)
    parser.add_argument("--fresh", action="store_true", help="forget the log")
    parser.add_argument("--write", action="store_true", help="write MUTATION.md")
    options = parser.parse_args()
    options.log.parent.mkdir(parents=True, exist_ok=True)
    if options.fresh:
        options.log.unlink(missing_ok=True)
    done = _logged(options.log)
    wanted = tasks(options.count, options.seed, options.peers)
    todo = [task for task in wanted if task.index not in done]
    with options.log.open("a", encoding="utf-8") as log:
        for record in track(judged(todo, options.workers), "mutants", total=len(todo)):
            done[record["index"]] = record
            log.write(json.dumps(record) + "\n")
            log.flush()
    records = [done[task.index] for task in wanted]
    text, lies = table(records, options.seed)
    print(text)
    if options.write:
        (HERE / "MUTATION.md").write_text(text, encoding="utf-8")
    return 1 if lies else 0


if __name__ == "__main__":
    sys.exit(main())
