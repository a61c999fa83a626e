"""How long verdicts take, before and after: two checkouts side by side in one run.

    python -m benchmarks.verdicts --before CHECKOUT [--after CHECKOUT] [--every 4] [--write]

In: two working trees of symgrad.  Out: a table of processor times, as Markdown; with ``--write`` in
``benchmarks/VERDICTS.md``.

Each case is judged by both in turn, some rounds long, in two processes that live as long as the
run, and the least time of each counts; so what else the machine does is the same for both.  The
cases are the corpus of ``tests/suite`` of this checkout, without those that either of them has
no true verdict on.  What a process does once is measured over processes of its own, in turn.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.progress import track

HERE = Path(__file__).parent
PAGE = HERE / "VERDICTS.md"
SIDES = ("before", "after")
KINDS = {"right": ("PROVED", False), "wrong": ("REFUTED", False), "repaired": ("REFUTED", True)}
LENGTHS = (100, 200, 400, 800, 2000)
WARM_UP = 12
"""Cases that each process judges before the first that counts."""
LONGEST_CHAIN_SECONDS = 20
"""A chain is not made longer for a checkout that took so long for the last one."""

OP = """
import symgrad as sg


class {name}(sg.Function):
    @staticmethod
    def forward(ctx, x: "f32[n m]"):
        s = sg.sigmoid({inner})
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, grad_y):
        x, s = ctx.saved_tensors
        return grad_y * (s + x * s * (1 - s) * {slope})
"""
FIRST = """
import symgrad as sg
import one
assert str(sg.verify(one.Swish).verdict) == "PROVED"
"""


# -- the worker: one process for each checkout


def work() -> None:
    """Judge what is asked for on standard input, one line of JSON each."""
    sys.path[0] = sys.path.pop(1)  # symgrad of the checkout; behind it, this one's tests
    sys.path.append(str(HERE.parent))
    from tests.suite.corpus_loader import cases_over_symgrad
    from tests.suite.judging import report_on

    cases = {case.name: case for case in cases_over_symgrad()}
    for line in sys.stdin:
        asked = json.loads(line)
        answer: Any
        if "list" in asked:
            answer = [(case.name, case.verdict) for case in cases.values()]
        elif "chain" in asked:
            answer = _timed(_chain_verdict(asked["chain"], asked["nodes"]))
        elif "kinds" in asked:
            from benchmarks.chains import CHAINS

            answer = list(CHAINS)
        else:
            judge = partial(report_on, cases[asked["case"]], suggest=asked["suggest"])
            answer = _timed(lambda judge=judge: judge().verdict.name)  # type: ignore[misc]
        print(json.dumps(answer), flush=True)


def _timed(judge: Callable[[], str]) -> tuple[str, float]:
    """What is said, and the processor time it took."""
    start = time.process_time()
    try:
        said = judge()
    except Exception as error:
        said = type(error).__name__
    return said, time.process_time() - start


def _chain_verdict(kind: str, nodes: int) -> Callable[[], str]:
    import symgrad as sg
    from benchmarks.chains import CHAINS

    function, specs = CHAINS[kind](nodes)
    return lambda: str(sg.verify(function, *specs, suggest=False, timeout=None).verdict)


# -- the two checkouts


class Side:
    """A checkout, its worker, and processes over it."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        package = folder / "symgrad"
        package.mkdir(parents=True)
        for path in (checkout / "symgrad").iterdir():
            (package / path.name).symlink_to(path)
        for name in ("generated", "templates"):  # parts of the package, beside it in a checkout
            (package / name).symlink_to(checkout / name)
        self.environment = {
            **os.environ, "PYTHONPATH": str(folder), "SYMGRAD_CACHE_DIR": str(folder / "cache"),
            "SYMGRAD_NO_VERDICT_CACHE": "1", "PYTHONDONTWRITEBYTECODE": "",
        }  # fmt: skip
        self.worker = subprocess.Popen(
            [sys.executable, str(Path(__file__)), "--worker"], env=self.environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder,
        )  # fmt: skip

    def ask(self, **asked: Any) -> Any:
        """What the worker answers."""
        assert self.worker.stdin is not None
        assert self.worker.stdout is not None
        print(json.dumps(asked), file=self.worker.stdin, flush=True)
        return json.loads(self.worker.stdout.readline())

    def seconds(self, arguments: Sequence[str], folder: Path, status: int = 0) -> float:
        """Processor time of a process.  Raises CalledProcessError where it ends otherwise."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, *arguments], env=self.environment, cwd=folder, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != status:
            raise subprocess.CalledProcessError(
                done.returncode, arguments, done.stdout, done.stderr
            )  # fmt: skip
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def close(self) -> None:
        """End the worker."""
        assert self.worker.stdin is not None
        self.worker.stdin.close()
        self.worker.wait()


Row = tuple[str, float, float]


def warm(sides: Sequence[Side], every: int, rounds: int) -> Iterator[Row]:
    """The warm verdicts, each case by both checkouts in turn."""
    listed = sides[-1].ask(list=True)
    for name, _ in listed[:: max(1, len(listed) // WARM_UP)]:
        for side in sides:
            side.ask(case=name, suggest=True)
    for kind, (verdict, suggest) in KINDS.items():
        names = [name for name, marked in listed if marked == verdict][::every]
        found = []
        for name in track(names, kind, transient=True):
            times = _in_turn(sides, rounds, verdict, case=name, suggest=suggest)
            if times is not None:
                found.append(times)
        what = {"right": "right backward", "wrong": "wrong backward", "repaired": "with a repair"}
        for part, share in (("median", 0.5), ("90 %", 0.9)):
            yield (f"{what[kind]}, {len(found)} cases, {part}", *_shares(found, share))
        yield (
            f"{what[kind]}, the cases one by one, median of the ratios", 1,
            statistics.median(after / before for before, after in found),
        )  # fmt: skip


def _in_turn(
    sides: Sequence[Side], rounds: int, verdict: str, **asked: Any
) -> tuple[float, float] | None:
    """The least times; None where one of them says something else."""
    least = [float("inf")] * len(sides)
    for number in range(rounds + 1):  # the first one is not counted
        for place, side in enumerate(sides):
            said, seconds = side.ask(**asked)
            if said != verdict:
                return None
            if number:
                least[place] = min(least[place], seconds)
    return least[0], least[1]


def _shares(found: Sequence[tuple[float, float]], share: float) -> tuple[float, float]:
    before, after = (sorted(column) for column in zip(*found, strict=True))
    place = int(share * (len(found) - 1))
    return before[place], after[place]


def processes(sides: Sequence[Side], folder: Path, rounds: int) -> Iterator[Row]:
    """What a process does once."""
    (folder / "one.py").write_text(OP.format(name="Swish", inner="x", slope="1"), encoding="utf-8")
    three = "".join(
        OP.format(name=f"Swish{factor}", inner=f"{factor} * x", slope=f"{factor}")
        for factor in (1, 2, 3)
    )
    (folder / "three.py").write_text(three, encoding="utf-8")
    (folder / "first.py").write_text(FIRST, encoding="utf-8")
    asked = {
        "symgrad --help": ["-m", "symgrad", "--help"],
        "import and the first verdict": ["first.py"],
        "symgrad verify, one op": ["-m", "symgrad", "verify", "one.py"],
        "pytest --symgrad, three ops": [
            "-m", "pytest", "-q", "-p", "no:cacheprovider", "--symgrad", "three.py",
        ],
    }  # fmt: skip
    for what, arguments in asked.items():
        least = [float("inf")] * len(sides)
        for number in range(rounds + 1):
            for place, side in enumerate(sides):
                seconds = side.seconds(arguments, folder)
                if number:  # not the one that compiles bytecode
                    least[place] = min(least[place], seconds)
        yield what, least[0], least[1]


def chains(sides: Sequence[Side]) -> Iterator[Row]:
    """Verdicts on long computations; each once, since they are long."""
    for kind in sides[-1].ask(kinds=True):
        left = dict.fromkeys(range(len(sides)))
        for nodes in LENGTHS:
            times = [float("inf")] * len(sides)
            for place in list(left):
                said, seconds = sides[place].ask(chain=kind, nodes=nodes)
                if said == "PROVED":
                    times[place] = seconds
                if said != "PROVED" or seconds > LONGEST_CHAIN_SECONDS:
                    del left[place]
            yield f"{kind}, {nodes} nodes", times[0], times[1]


def page(rows: Sequence[Row], before: str, after: str) -> str:
    """The table."""
    lines = [
        "# How long verdicts take",
        "",
        f"Processor time in one run, side by side: before is {before}, after is {after}. Each case"
        " is judged by both in turn in processes that are warm; the least of some rounds counts.",
        "",
        "| | before | after | ratio |",
        "|---|--:|--:|--:|",
    ]
    for what, old, new in rows:
        shown = ("", "") if old == 1 else (_shown(old), _shown(new))
        ratio = f"{new / old:.2f}" if math.isfinite(old) and math.isfinite(new) else ""
        lines.append(f"| {what} | {shown[0]} | {shown[1]} | {ratio} |")
    return "\n".join(lines) + "\n"


def _shown(seconds: float) -> str:
    if math.isinf(seconds):
        return "not proved in time"
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _name(checkout: Path) -> str:
    asked = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="a checkout of symgrad")
    parser.add_argument("--after", type=Path, default=HERE.parent)
    parser.add_argument("--every", type=int, default=4, help="judge each so-manieth case")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("warm", "processes", "chains"))
    parser.add_argument("--write", action="store_true", help="write VERDICTS.md")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work()
        return 0
    if options.before is None:
        parser.error("--before: a checkout to compare with")
    checkouts = [options.before.resolve(), options.after.resolve()]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        pairs = zip(checkouts, SIDES, strict=True)
        sides = [Side(checkout, folder / name) for checkout, name in pairs]
        parts: dict[str, Callable[[], Iterator[Row]]] = {
            "warm": lambda: warm(sides, options.every, options.rounds),
            "processes": lambda: processes(sides, folder, options.rounds),
            "chains": lambda: chains(sides),
        }
        chosen = [options.only] if options.only else list(parts)
        rows = [row for part in chosen for row in parts[part]()]
        for side in sides:
            side.close()
    text = page(rows, *map(_name, checkouts))
    print(text)
    if options.write:
        PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
