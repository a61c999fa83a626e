"""The parts of the campaign: their shares of the time and their environments.

In: what was asked for.  Out: ``Part`` records.  Imports ``benchmarks.reliability``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.reliability.pool import Part

PARTS: dict[str, Part] = {
    "programs": Part("programs", share=6, limit=240),
}


def chosen(only: Sequence[str], units: int | None, folder: Path) -> list[Part]:
    """The parts asked for, all of them by default, with a cache of kernels of their own."""
    return [
        replace(part, units=units, environment=_environment(part, folder))
        for name, part in PARTS.items() if not only or name in only
    ]  # fmt: skip


def _environment(part: Part, folder: Path) -> dict[str, str]:
    """Every worker runs its kernels on one thread: the workers share the cores."""
    cache = folder / f"cache-{part.name}"
    return {
        "SYMGRAD_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive",
        **part.environment,
    }  # fmt: skip
