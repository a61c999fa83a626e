"""The audit over everything: is each gradient that is PROVED the derivative at random points?

    python -m benchmarks.audit [SUITE ...] [--log FILE] [--drawn 1000]

In: the right backwards of ``tests/suite``, its adversarial programs, the ops of ``examples`` and
``symgrad.nn``, and programs that are drawn.  Out: figures by suite on standard output, each
disagreement and each gradient that could not be evaluated, with the reason.  One line of JSON a
program is appended to ``--log``; a second run takes up where the first stopped.  Exits 1 if a
gradient that is PROVED is not the derivative somewhere.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import symgrad as sg
from symgrad.errors import SymgradError
from tests.suite.adversarial import loader
from tests.suite.adversarial.judged import excluding
from tests.suite.adversarial.points import parameters, place
from tests.suite.adversarial.program import Program, at
from tests.suite.corpus_loader import cases_over_symgrad
from tests.suite.marks import PROVED

ROOT = Path(__file__).parent.parent
LOG = ROOT / "build" / "audit.jsonl"
SECONDS = 300
"""Processor time for one program, its proof and its audit."""
POINTS = re.compile(r"(\d+) random points(?: \(([^)]*)\))?, (\d+) exact")
LEFT = re.compile(r"(?:^|; )([^;]*not audited[^;]*)")


@dataclass(frozen=True)
class Subject:
    """A Function with what is stated of it."""

    suite: str
    name: str
    function: Any
    specs: tuple[str | None, ...]
    about: Mapping[str, Any] = field(default_factory=dict)


def corpus() -> Iterator[Subject]:
    """The right backwards of the suite."""
    for case in cases_over_symgrad():
        if case.verdict == PROVED:
            function = case.function
            if case.surrogate is not None:
                function = sg.surrogate(case.surrogate)(function)
            about = {"static": case.static, "assume": case.assume, "order": case.order}
            yield Subject("suite", f"{case.category}-{case.name}", function, case.specs, about)


def adversarial() -> Iterator[Subject]:
    """The programs that were written to deceive, right and wrong: some of both are PROVED."""
    for kind in loader.KINDS:
        for name, one in loader.over_symgrad(kind).items():
            yield _of_program("adversarial", f"{kind}-{name}", one)


def _of_program(suite: str, name: str, one: Any) -> Subject:
    about = {
        "static": dict(one.static) or None, "assume": dict(one.assume) or None, "order": one.order,
    }  # fmt: skip
    return Subject(suite, name, one.function, one.specs, about)


def examples() -> Iterator[Subject]:
    """The ops of the demo."""
    path = ROOT / "examples" / "ops.py"
    made = importlib.util.spec_from_file_location("examples_ops", path)
    assert made is not None
    assert made.loader is not None
    module = importlib.util.module_from_spec(made)
    sys.modules[made.name] = module
    made.loader.exec_module(module)
    yield from _functions_of("examples", module)


def modules() -> Iterator[Subject]:
    """The Functions behind ``symgrad.nn``, to second order."""
    from symgrad.nn import functions

    yield from _functions_of("nn", functions, order=2)


def _functions_of(suite: str, module: Any, **about: Any) -> Iterator[Subject]:
    for name, one in vars(module).items():
        if isinstance(one, type) and issubclass(one, sg.Function) and one is not sg.Function:
            yield Subject(suite, name, one, (), about)


def drawn(seed: int, count: int) -> Callable[[], Iterator[Subject]]:
    """Programs of ``benchmarks.adversarial``, whatever is true of them."""

    def programs() -> Iterator[Subject]:
        from benchmarks.adversarial import drawn as draw
        from tests.suite.adversarial.generated import FAMILIES

        pairs = draw(seed, tuple(FAMILIES))
        for (digest, draft), _ in zip(pairs, range(count)):  # noqa: B905
            yield _of_program("drawn", f"{draft.family}-{digest}", draft.program(sg))

    return programs


def audited(one: Subject) -> dict[str, Any]:
    """The verdict on a Function, and what the audit of it said."""
    started = time.process_time()
    record: dict[str, Any] = {"suite": one.suite, "name": one.name}
    try:
        report = sg.verify(
            one.function, *one.specs, suggest=False, audit=True, timeout=SECONDS, **one.about
        )
    except SymgradError as error:
        return {**record, "verdict": type(error).__name__, "said": str(error)}
    findings = [found for found in report.protocol if found.name == "audit"]
    excluded = _excluded(one, report, findings[0].counterexample) if findings else ""
    return {
        **record, "verdict": str(report.verdict), "excluded": excluded,
        "proved": sum(str(found.verdict) == PROVED for found in report.inputs.values()),
        "order": one.about.get("order", 1), "timed_out": report.timed_out,
        "audit": str(findings[0].verdict) if findings else "",
        "said": findings[0].text if findings else "",
        "seconds": round(time.process_time() - started, 3),
    }  # fmt: skip


def _excluded(one: Subject, report: Any, found: Any) -> str:
    """The printed condition that excludes the point of a disagreement."""
    if found is None:
        return ""
    static, assume = one.about.get("static") or {}, one.about.get("assume") or {}
    program = Program(one.name, one.function, one.specs, "", static=static, assume=assume)
    names = parameters(program)
    values = {name: value for name, value in found.inputs.items() if name in names}
    return next(excluding(report, place(program, at(**found.sizes, **values))), "")


def main() -> int:
    """Audit, print, log; 1 if something that is PROVED is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", help="suite, adversarial, examples, nn, drawn")
    parser.add_argument("--log", type=Path, default=LOG)
    parser.add_argument("--drawn", type=int, default=1000, help="programs that are drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fresh", action="store_true", help="forget the log")
    options = parser.parse_args()
    suites = {
        "examples": examples, "nn": modules, "suite": corpus, "adversarial": adversarial,
        "drawn": drawn(options.seed, options.drawn),
    }  # fmt: skip
    options.log.parent.mkdir(parents=True, exist_ok=True)
    if options.fresh:
        options.log.unlink(missing_ok=True)
    done = _logged(options.log)
    records = []
    with options.log.open("a", encoding="utf-8") as log:
        for suite in options.suites or suites:
            for one in suites[suite]():
                record = done.get(f"{one.suite} {one.name}")
                if record is None:
                    record = audited(one)
                    log.write(json.dumps(record) + "\n")
                    log.flush()
                records.append(record)
    print(page(records))
    return int(any(_disagrees(record) for record in records))


def _logged(path: Path) -> dict[str, dict[str, Any]]:
    if not path.exists():
        return {}
    records = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {f"{record['suite']} {record['name']}": record for record in records}


def _disagrees(record: Mapping[str, Any]) -> bool:
    """Is there a point at which a gradient is wrong, and that nothing printed excludes?"""
    wrong = record.get("audit") in ("REFUTED", "UNDECIDED") and "disagree" in record["said"]
    return wrong and not record.get("excluded")


def page(records: list[dict[str, Any]]) -> str:
    """Figures by suite, then what stands out."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        groups[record["suite"]].append(record)
    lines = [
        "| programs of | judged | PROVED | audited | points | exact | wrong | excluded | left |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
        *(_row(suite, group) for suite, group in groups.items()),
    ]
    for record in records:
        if _disagrees(record):
            lines.append(f"\n{record['suite']} {record['name']}: {record['said']}")
    left = Counter(_why(record) for record in records if _missing(record))
    lines += ["", *(f"- {count}: {why}" for why, count in left.most_common())]
    return "\n".join(lines)


def _row(suite: str, group: list[dict[str, Any]]) -> str:
    proved = [record for record in group if record.get("proved")]
    found = [pair for record in proved for pair in POINTS.findall(record["said"])]
    points, exact = (sum(int(pair[place]) for pair in found) for place in (0, 2))
    reached = sum(bool(POINTS.search(record["said"])) for record in proved)
    wrong = sum(map(_disagrees, group))
    excluded, missing = sum(bool(one.get("excluded")) for one in group), sum(map(_missing, group))
    return (
        f"| {suite} | {len(group)} | {len(proved)} | {reached} | {points} | {exact} | {wrong} "
        f"| {excluded} | {missing} |"
    )


def _missing(record: Mapping[str, Any]) -> bool:
    """Is something of it PROVED, and was not evaluated?"""
    if not record.get("proved") or record["audit"] in ("REFUTED", "UNDECIDED"):
        return False
    points = [int(pair[0]) for pair in POINTS.findall(record["said"])]
    return not points or min(points) == 0 or "not audited" in record["said"]


def _why(record: Mapping[str, Any]) -> str:
    said = LEFT.search(record["said"])
    return f"{record['suite']} {record['name']}: {said[1] if said else record['said'] or 'nothing'}"


if __name__ == "__main__":
    sys.exit(main())
