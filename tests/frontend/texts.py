"""Texts that mean the same over torch and over symgrad, and arguments to try them at.

In: nothing.  Out: the lines of ``operations.txt``, over the tensors of ``SPECS``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

SPECS = {
    "x": "n m", "y": "n m", "p": "n m", "v": "m", "w": "m k", "b": "n m k", "s": "", "e": "n 2*m",
    "i": "i64[n]", "j": "i64[n m]", "mask": "bool[n m]", "rows": "bool[n]", "f": "f32[n m]",
    "sq": "m m", "three": "3 n", "one": "n 1",
}  # fmt: skip
SIZES = [{"n": 3, "m": 4, "k": 2}, {"n": 1, "m": 3, "k": 1}, {"n": 2, "m": 1, "k": 3}]


def arrays_for(sizes: dict[str, int]) -> dict[str, Any]:
    """Arguments: generic floats, positive ones in ``p``, integers below m, masks."""
    n, m, k = sizes["n"], sizes["m"], sizes["k"]
    draw = np.random.default_rng(7)
    normal = draw.standard_normal
    return {
        "x": normal((n, m)), "y": normal((n, m)), "p": draw.uniform(0.1, 0.9, (n, m)),
        "v": normal(m), "w": normal((m, k)), "b": normal((n, m, k)), "s": np.asarray(0.7),
        "e": normal((n, 2 * m)), "i": draw.integers(0, m, n), "j": draw.integers(0, m, (n, m)),
        "mask": draw.random((n, m)) < 0.5, "rows": draw.random(n) < 0.5,
        "f": normal((n, m)).astype(np.float32), "sq": normal((m, m)), "three": normal((3, n)),
        "one": normal((n, 1)),
    }  # fmt: skip


def texts() -> list[str]:
    """The texts of ``operations.txt``."""
    lines = (Path(__file__).parent / "operations.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]
