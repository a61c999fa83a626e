"""The campaign's workers: processes that may die, hang or leak, without a unit lost.

In: parts with their shares, a time, the units that are done.  Out: records, as they come.

A worker that dies or that takes too long is a failure of the unit it was at.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SHIFT_SECONDS = 90  # then a new worker, perhaps of another part: memory of loaded kernels is freed
_PATIENCE = 30  # limits of a unit that waits, as it does on a busy machine
GRACE_SECONDS = 20  # beyond the end, for units that are under way
LAST_CALL = "RELIABILITY_LAST_CALL"
"""The variable that names the file in which a worker notes what it is about to call."""

_LAST_WORDS = 4000


@dataclass(frozen=True)
class Part:
    """``share`` of the time; ``units``: how many.

    ``limit``: seconds of processor time that one unit may take, however busy the machine is.
    """

    name: str
    share: float
    limit: float
    environment: Mapping[str, str] = field(default_factory=dict)
    units: int | None = None


class Schedule:
    """Which unit is next: the part that is most behind its share of the time."""

    def __init__(self, parts: Iterable[Part], done: Iterable[tuple[str, int]], end: float) -> None:
        self.parts = list(parts)
        self.end = end
        self._taken = set(done)
        self._next: Counter[str] = Counter()
        self._spent: Counter[str] = Counter()
        self._lock = threading.Lock()

    def part(self) -> Part | None:
        """The part for a worker's next shift; None where nothing is left to do."""
        with self._lock:
            left = [part for part in self.parts if self._has_more(part)]
            if not left or time.monotonic() >= self.end:
                return None
            chosen = min(left, key=lambda part: self._spent[part.name] / part.share)
            self._spent[chosen.name] += 1
            return chosen

    def number(self, part: Part) -> int | None:
        """The next unit of a part; None where it is over."""
        with self._lock:
            if time.monotonic() >= self.end or not self._has_more(part):
                return None
            number = self._next[part.name]
            self._next[part.name] += 1
            return number

    def spend(self, part: Part, seconds: float) -> None:
        """Count time."""
        with self._lock:
            self._spent[part.name] += seconds  # type: ignore[assignment]

    def _has_more(self, part: Part) -> bool:
        while (part.name, self._next[part.name]) in self._taken:
            self._next[part.name] += 1
        return part.units is None or self._next[part.name] < part.units


class Worker:
    """One process, and what it says."""

    def __init__(self, part: Part, errors: Path) -> None:
        self.part = part
        self.errors = errors.open("w+b")
        self._last_call = errors.with_suffix(".call")
        self._last_call.unlink(missing_ok=True)
        self._said = b""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.reliability.worker"], cwd=ROOT,
            env={**os.environ, **part.environment, LAST_CALL: str(self._last_call)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, bufsize=0,
            start_new_session=True,
        )  # fmt: skip

    def ask(self, seed: str, number: int, limit: float) -> dict[str, Any] | None:
        """The record of a unit, or that the process died; None where the time was cut short."""
        assert self._process.stdin is not None
        patience = _PATIENCE * self.part.limit
        allowed = min(limit, patience)
        try:
            self._process.stdin.write(
                f"{self.part.name} {seed} {number} {self.part.limit}\n".encode()
            )
            line = self._line(time.monotonic() + allowed)
        except BrokenPipeError:
            line = b""
        if line:
            found: dict[str, Any] = json.loads(line)
            return found
        if line is None and allowed < patience:
            return None
        what = "it did not end" if line is None else f"the process ended with {self._status()}"
        self.stop()
        return {
            "part": self.part.name, "number": number, "counts": {}, "refusals": {},
            "seconds": allowed if line is None else 0.0,
            "failures": [
                {"route": f"{self.part.name}: process", "what": what, "where": f"unit {number}",
                 "program": self._last_words()}
            ],
        }  # fmt: skip

    def stop(self) -> None:
        """End the process, and whatever it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def _line(self, end: float) -> bytes | None:
        """A line of its output, empty where it has ended, None where it takes too long."""
        assert self._process.stdout is not None
        while b"\n" not in self._said:
            ready, _, _ = select.select(
                [self._process.stdout], [], [], max(0.0, end - time.monotonic())
            )
            if not ready:
                return None
            more = os.read(self._process.stdout.fileno(), 1 << 16)
            if not more:
                return b""
            self._said += more
        line, _, self._said = self._said.partition(b"\n")
        return line

    def _status(self) -> str:
        status = self._process.wait()
        return signal.Signals(-status).name if status < 0 else f"status {status}"

    def _last_words(self) -> str:
        self.errors.flush()
        self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(0, self.errors.tell() - _LAST_WORDS))
        words = self.errors.read().decode("utf-8", "replace")
        if self._last_call.exists():
            words += f"\nat {self._last_call.read_text(errors='replace').strip()}"
        return words


def campaign(
    schedule: Schedule, seed: str, jobs: int, folder: Path, keep: Callable[[dict[str, Any]], None]
) -> None:
    """Run units until the time or the units are used up; ``keep`` gets each record."""
    lock = threading.Lock()

    def kept(record: dict[str, Any]) -> None:
        with lock:
            keep(record)

    def serve(job: int) -> None:
        while (part := schedule.part()) is not None:
            _shift(schedule, part, seed, folder / f"worker-{job}.txt", kept)

    with ThreadPoolExecutor(jobs) as pool:
        for future in [pool.submit(serve, job) for job in range(jobs)]:
            future.result()


def _shift(
    schedule: Schedule, part: Part, seed: str, errors: Path, keep: Callable[[dict[str, Any]], None]
) -> None:
    """One worker for a while."""
    started = time.monotonic()
    worker = Worker(part, errors)
    try:
        while time.monotonic() - started < SHIFT_SECONDS:
            number = schedule.number(part)
            if number is None:
                break
            left = schedule.end + GRACE_SECONDS - time.monotonic()
            record = worker.ask(seed, number, left)
            if record is None:
                break
            keep(record)
            if any(one["route"] == f"{part.name}: process" for one in record["failures"]):
                break
    finally:
        worker.stop()
        worker.errors.close()
        schedule.spend(part, time.monotonic() - started)
