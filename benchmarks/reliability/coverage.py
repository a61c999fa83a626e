"""The part ``coverage``: which lines and branches of what is emitted were ever run.

In: a seed and a number.  Out: a record with the forms of the lines of the C (by gcov) and of the
wrappers, and how often each was emitted and run.

A unit compiles some random programs with ``--coverage`` in a process of its own, calls them in
every case, mask and pattern and with hostile arguments, and reads what gcov says.  The form of a
line is its text without names and numbers: what one program runs stands for what all emit.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.reliability.notes import Notes
from benchmarks.reliability.pool import ROOT
from benchmarks.reliability.watch import WATCH, lines_of

PROGRAMS = 4
_KEPT = re.compile(
    r"if|else|for|while|return|do|int|void|const|static|double|float|int64_t|uint8_t|restrict|switch|"
    r"case|break|continue|def|raise|try|except|is|not|None|in|type|and|or|pragma|omp|parallel|simd|out"
)
_WORD = re.compile(r"[A-Za-z_]\w*|\d[\w.]*(?:[eE][-+]?\d+)?")
Forms = dict[str, list[Any]]


def unit(seed: str, number: int) -> dict[str, Any]:
    """The forms that some programs emit, and those of them that ran."""
    folder = Path(tempfile.mkdtemp(prefix="reliability-coverage-"))
    try:
        environment = {
            **os.environ, "SYMGRAD_CACHE_DIR": str(folder / "cache"), WATCH: "1",
            "CC": "gcc --coverage", "GCOV_PREFIX": str(folder / "counts"),
        }  # fmt: skip
        program = "benchmarks.reliability.covered"
        done = subprocess.run(
            [sys.executable, "-m", program, seed, str(number), str(folder / "found.json")],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            notes = Notes()
            notes.fail("coverage", f"ended with {done.returncode}: {done.stderr[-2000:]}")
            return notes.record()
        found = json.loads((folder / "found.json").read_text(encoding="utf-8"))
        c, wrappers = _of_c(folder), _of_wrappers(found["wrappers"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    record: dict[str, Any] = found["notes"]
    counts = record["counts"]
    for name, forms in (("C", c), ("wrappers", wrappers)):
        counts[f"coverage: lines of {name}"] = sum(form[0] for form in forms.values())
        counts[f"coverage: lines of {name} run"] = sum(form[1] for form in forms.values())
    return {**record, "coverage": {"C": c, "wrapper": wrappers}, "ops": found["ops"]}


_BARE = re.compile(r"\s*(return|raise)\b")


def _shown(text: list[str], number: int) -> str:
    """The line; what leaves a function under a condition, with the condition."""
    line = text[number - 1]
    above = text[number - 2].strip() if number > 1 else ""
    return f"{above} {line.strip()}" if _BARE.match(line) and above.startswith("if ") else line


def form_of(line: str) -> str:
    """The line without its names and numbers."""
    return _WORD.sub(lambda word: word[0] if _KEPT.fullmatch(word[0]) else "_", line.strip())


def _noted(forms: Forms, line: str, ran: bool, branches: list[bool]) -> None:
    """How often emitted, how often run, which of its branches were ever taken; an example."""
    form = forms[form_of(line)]
    form[3] = form[3] or line.strip()
    form[0] += 1
    form[1] += ran
    if len(form[2]) in (0, len(branches)):
        form[2] = [
            a or b for a, b in zip(form[2] or [False] * len(branches), branches, strict=True)
        ]


def _new() -> Forms:
    return defaultdict(lambda: [0, 0, [], ""])


def _of_wrappers(found: list[tuple[str, list[int]]]) -> Forms:
    forms = _new()
    for source, seen in found:
        text = source.splitlines()
        for line in lines_of(source):
            _noted(forms, _shown(text, line), line in seen, [])
    return dict(forms)


def _of_c(folder: Path) -> Forms:
    """What gcov counted in the kernels' files; not in the binding, which cffi writes."""
    forms = _new()
    for counts in sorted((folder / "counts").rglob("*.gcda")):
        notes = _notes_beside(counts, folder / "cache")
        if notes is None:
            continue
        source = _source_of(notes)
        text = source.read_text(encoding="utf-8").splitlines()
        for line in _gcov(counts, notes, source.name):
            branches = [bool(branch["count"]) for branch in line["branches"] if not branch["throw"]]
            _noted(forms, _shown(text, line["line_number"]), bool(line["count"]), branches)
    return dict(forms)


def _notes_beside(counts: Path, cache: Path) -> Path | None:
    """The compiler's notes for these counts: the same name, and the same stamp."""
    if counts.name.startswith("_"):
        return None
    stamp = _stamp(counts)
    found = cache.rglob(f"{counts.stem}.gcno")
    return next((path for path in found if _stamp(path) == stamp), None)


def _source_of(notes: Path) -> Path:
    """The file that was compiled: gcc puts the name of a library before that of its source."""
    alone = notes.with_suffix(".c")
    return alone if alone.exists() else notes.with_name(f"{notes.stem.rpartition('-')[2]}.c")


def _stamp(path: Path) -> bytes:
    return path.read_bytes()[8:12]


def _gcov(counts: Path, notes: Path, source: str) -> Iterator[dict[str, Any]]:
    """The lines of the file, with their counts."""
    shutil.copy(notes, counts.with_suffix(".gcno"))
    done = subprocess.run(
        ["gcov", "--json-format", "--stdout", "--branch-probabilities", counts.name],
        cwd=counts.parent, capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode or not done.stdout.strip():
        return
    for file in json.loads(done.stdout)["files"]:
        if file["file"].endswith(source):
            merged: dict[int, dict[str, Any]] = {}
            for line in file["lines"]:  # once for each function that OpenMP made of a loop
                known = merged.setdefault(line["line_number"], line)
                known["count"] = max(known["count"], line["count"])
            yield from merged.values()
