"""The part ``processes``: what befalls processes that share a cache of kernels.

In: a seed and a number.  Out: a record.

Whatever happens to one, itself and the others give right values or say what is wrong, in a
bounded time; and nobody loads what a stranger could have written.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.reliability.notes import Notes
from benchmarks.reliability.pool import ROOT

_LIMIT = 150.0  # seconds for one process, on a busy machine
_KILLS = 4
_TOGETHER = 6
_STRANGER = 54321  # a user that is nobody here


@dataclass
class Scene:
    """A cache of its own, and who used it."""

    folder: Path
    notes: Notes
    choice: random.Random

    @property
    def cache(self) -> Path:
        """The folder that ``SYMGRAD_CACHE_DIR`` names."""
        return self.folder / "cache"

    def start(self, action: str, number: int) -> subprocess.Popen[str]:
        """A victim."""
        self.notes.counts["processes: calls"] += 1
        return subprocess.Popen(
            [sys.executable, "-m", "benchmarks.reliability.victim", action, str(number)], cwd=ROOT,
            env={**os.environ, "SYMGRAD_CACHE_DIR": str(self.cache), "TMPDIR": str(self.folder)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def end(self, process: subprocess.Popen[str], refusing: bool = False) -> str:
        """What it said; a failure unless that is ``right`` (or, ``refusing``, refused)."""
        try:
            said, errors = process.communicate(timeout=_LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.notes.fail("processes", "it did not end", process.args)
            return ""
        refused = refusing and said.startswith("refused")
        if process.returncode or not (said.startswith("right") or refused):
            what = f"status {process.returncode}: {said} {errors[-2000:]}"
            self.notes.fail("processes", what, process.args)
        self.notes.counts["processes: refused"] += refused
        return said + errors

    def run(self, action: str, number: int = 0, refusing: bool = False) -> str:
        """Start and end."""
        return self.end(self.start(action, number), refusing)


def killed(scene: Scene) -> None:
    """Processes killed at any moment of a build."""
    for _ in range(_KILLS):
        process = scene.start("call", 0)
        time.sleep(scene.choice.uniform(0.2, 4.0))
        process.kill()
        process.communicate()
    scene.run("call")


def together(scene: Scene) -> None:
    """Several processes that build the same at once."""
    for process in [scene.start("call", number % 2) for number in range(_TOGETHER)]:
        scene.end(process)


def full_disk(scene: Scene) -> None:
    """A disk on which nothing large can be written, then one with room."""
    scene.run("limited", scene.choice.randrange(10**6), refusing=True)
    scene.run("call")


def spoilt(scene: Scene) -> None:
    """Files of the cache cut, changed, emptied or taken away."""
    scene.run("call")
    for path in sorted(scene.cache.rglob("*")):
        if path.is_file() and scene.choice.random() < 0.5:
            _spoil(path, scene.choice)
    scene.run("call")


def _spoil(path: Path, choice: random.Random) -> None:
    kind, text = choice.choice(["cut", "change", "empty", "remove", "braces"]), path.read_bytes()
    if kind == "remove":
        path.unlink()
    elif kind == "cut":
        path.write_bytes(text[: len(text) // 2])
    elif kind == "braces":
        path.write_bytes(b"{}")
    elif kind == "change" and text:
        at = choice.randrange(len(text))
        path.write_bytes(text[:at] + bytes([text[at] ^ 0xFF]) + text[at + 1 :])
    else:
        path.write_bytes(b"")


def foreign(scene: Scene) -> None:
    """A cache that a stranger owns, or may write to: nothing is loaded from it."""
    scene.run("call")
    before = {path: path.stat().st_mtime_ns for path in scene.cache.rglob("*")}
    kind = scene.choice.choice(["owner", "parent", "open", "entry"])
    inside = sorted(path for path in scene.cache.rglob("*") if path.is_dir())
    if kind == "open":
        (inside[0] if inside else scene.cache).chmod(0o777)
    elif os.getuid() != 0:
        return
    else:
        target = {"owner": inside[0], "parent": scene.cache, "entry": inside[-1]}[kind]
        os.chown(target, _STRANGER, _STRANGER)
    said = scene.run("call")
    after = {path: path.stat().st_mtime_ns for path in scene.cache.rglob("*")}
    if kind != "entry" and ("CacheWarning" not in said or before != after):
        scene.notes.fail("processes", f"a cache with a strange {kind} was used: {said}")


SCENES: tuple[Callable[[Scene], Any], ...] = (
    killed, together, full_disk, spoilt, foreign,
    lambda scene: scene.run("forked"),
    lambda scene: scene.run("threaded"),
    lambda scene: scene.run("interrupted", scene.choice.randrange(10**6)),
)  # fmt: skip


def unit(seed: str, number: int) -> dict[str, Any]:
    """One scene."""
    notes = Notes()
    folder = Path(tempfile.mkdtemp(prefix="reliability-processes-"))
    try:
        SCENES[number % len(SCENES)](Scene(folder, notes, random.Random(f"{seed} {number}")))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    notes.counts["processes: programs"] += 1
    return notes.record()
