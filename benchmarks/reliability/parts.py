"""The parts of the campaign: their shares of the time and their environments.

In: what was asked for.  Out: ``Part`` records.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.reliability.pool import Part

_WATCHED = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g"
_ASAN = "detect_leaks=0:detect_odr_violation=0:allocator_may_return_null=1"

PARTS: dict[str, Part] = {
    "programs": Part("programs", share=6, limit=240),
    "calls": Part("calls", share=1.5, limit=240),
    "sanitized": Part("sanitized", share=1, limit=400),
    "coverage": Part("coverage", share=1, limit=400),
    "processes": Part("processes", share=0.5, limit=240),
}


def chosen(only: Sequence[str], units: int | None, folder: Path) -> list[Part]:
    """The parts asked for, all of them by default, with a cache of kernels for each.

    Without a sanitizer on this machine there is no part ``sanitized``.
    """
    return [
        replace(part, units=units, environment=environment(name, folder))
        for name, part in PARTS.items()
        if (not only or name in only) and (name != "sanitized" or sanitizer())
    ]  # fmt: skip


def environment(part: str, folder: Path) -> dict[str, str]:
    """Every worker runs its kernels on one thread: the workers share the cores."""
    found = {
        "SYMGRAD_CACHE_DIR": str(folder / f"cache-{part}"), "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive",
    }  # fmt: skip
    if part == "sanitized":
        found |= {"LD_PRELOAD": sanitizer(), "CC": f"gcc {_WATCHED}", "ASAN_OPTIONS": _ASAN}
    return found


def sanitizer() -> str:
    """The library that must be loaded first; empty where there is none."""
    compiler = shutil.which("gcc")
    if compiler is None:
        return ""
    done = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=False
    )
    found = done.stdout.strip()
    return found if os.path.isabs(found) else ""
