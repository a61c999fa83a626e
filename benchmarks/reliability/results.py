"""The results of a campaign: one line of JSON a unit, and the table made of them.

In: records.  Out: a file to resume from, Markdown.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from symgrad.ir.registry import names
from symgrad.ops.record import get

Record = dict[str, Any]
MOST_SHOWN = 40


def read(path: Path) -> list[Record]:
    """The records of an earlier run; a line that a kill cut off is left out."""
    found = []
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found


def append(path: Path, record: Record) -> None:
    """Keep a record, on a line of its own: a kill may have cut off the last one."""
    with path.open("ab+") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
        cut = file.read(1) not in (b"", b"\n")
        file.write(b"\n" * cut + json.dumps(record).encode() + b"\n")


def totals(records: Iterable[Record]) -> Counter[str]:
    """All counts."""
    found: Counter[str] = Counter()
    for record in records:
        found.update(record["counts"])
    return found


def failures(records: Iterable[Record]) -> list[Record]:
    """Every failure, with the unit it belongs to."""
    return [
        {"unit": f"{record['part']}:{record['number']}", **one}
        for record in records for one in record["failures"]
    ]  # fmt: skip


def report(records: list[Record], seed: str) -> str:
    """The campaign as a page."""
    lines = [f"# The campaign, seed {seed}", ""]
    lines += [*_table(records), "", *_refusals(records), "", *_covered(records)]
    lines += [*_never_emitted(records), *_failed(records)]
    return "\n".join(lines) + "\n"


def _table(records: list[Record]) -> Iterator[str]:
    units: Counter[str] = Counter(record["part"] for record in records)
    seconds: Counter[str] = Counter()
    rows: defaultdict[str, Counter[str]] = defaultdict(Counter)
    plain: Counter[str] = Counter()
    for record in records:
        seconds[record["part"]] += record["seconds"]
        for name, count in record["counts"].items():
            way, colon, what = name.rpartition(": ")
            if colon and what in _COLUMNS:
                rows[way][what] += count
            else:
                plain[name] += count
    yield "| part | units | seconds |"
    yield "| --- | ---: | ---: |"
    for part, count in units.items():
        yield f"| {part} | {count} | {seconds[part]:.0f} |"
    yield ""
    yield f"| way | {' | '.join(_COLUMNS)} |"
    yield f"| --- |{' ---: |' * len(_COLUMNS)}"
    for way, row in sorted(rows.items()):
        yield f"| {way} | {' | '.join(str(row[one]) for one in _COLUMNS)} |"
    yield ""
    for name, count in sorted(plain.items()):
        yield f"- {name}: {count}"


_COLUMNS = ("programs", "cases", "cases met", "calls", "refused", "failures")


def _refusals(records: list[Record]) -> Iterator[str]:
    found: Counter[str] = Counter()
    for record in records:
        found.update(record["refusals"])
    if found:
        yield "## Refused"
        yield ""
        for said, count in found.most_common(MOST_SHOWN):
            yield f"- {count} × {said}"


def _covered(records: list[Record]) -> Iterator[str]:
    """The forms of lines that no program ran, those that are emitted most first."""
    for language in ("C", "wrapper"):
        forms = _forms(record.get("coverage", {}).get(language, {}) for record in records)
        if not forms:
            continue
        never = [one for one in forms if not one[1]]
        some = [one for one in forms if 0 < one[1] < one[0]]
        half = [one for one in forms if one[1] and not all(one[2])]
        yield f"## Lines of {language}: {len(forms)} forms, {len(never)} never run"
        yield ""
        kinds = {"never run": never, "not always run": some, "a branch never taken": half}
        for what, found in kinds.items():
            for emitted, ran, _, example in found[:MOST_SHOWN]:
                yield f"- {what}, emitted {emitted} times, run {ran} times: `{example}`"
        yield ""


def _never_emitted(records: list[Record]) -> Iterator[str]:
    """The ops of the registry that have C and that no program had in a kernel."""
    emitted = {name for record in records for name in record.get("ops", ())}
    if not emitted:
        return
    ops = [name for name in names() if get(name).lower or get(name).scalar]
    never = [name for name in ops if name not in emitted]
    yield f"## Ops of the registry: {len(ops)}, {len(never)} never emitted"
    yield ""
    yield ", ".join(never) or "All were."
    yield ""


def _forms(units: Iterable[dict[str, list[Any]]]) -> list[list[Any]]:
    """What is known of each form from all units, the ones emitted most first."""
    forms: dict[str, list[Any]] = {}
    for unit in units:
        for form, (emitted, ran, branches, example) in unit.items():
            known = forms.setdefault(form, [0, 0, [False] * len(branches), example])
            known[0] += emitted
            known[1] += ran
            if len(known[2]) == len(branches):
                known[2] = [a or b for a, b in zip(known[2], branches, strict=True)]
    return sorted(forms.values(), key=lambda one: -one[0])


def _failed(records: list[Record]) -> Iterator[str]:
    found = failures(records)
    yield f"## Failures: {len(found)}"
    seen: Counter[str] = Counter()
    for one in found:
        seen[one["route"]] += 1
        if seen[one["route"]] > MOST_SHOWN // 4:
            continue
        yield ""
        yield f"### {one['unit']}, {one['route']}"
        yield ""
        yield f"{one['where']}"
        yield ""
        yield "```"
        yield from (one["what"], one["program"])
        yield "```"
