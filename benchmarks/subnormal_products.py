"""Products of matrices with subnormal numbers: kernels, which take them for zero, and NumPy.

    OMP_NUM_THREADS=1 python -m benchmarks.subnormal_products

Out: for each format, and for factors of which none or one of 16 is subnormal, the milliseconds of a
kernel, and of the same product in the BLAS of NumPy: medians of turns, in processor time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import symgrad as sg

SIDE, TURNS = 1000, 15


class Product(sg.Function):
    """``x @ w.T``."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        return x @ w.T


def milliseconds(step: Callable[[], object]) -> float:
    start = time.process_time()
    step()
    return 1e3 * (time.process_time() - start)


def main() -> None:
    """Print the table."""
    random = np.random.default_rng(0)
    print("dtype     subnormal   kernel    NumPy")
    for short, dtype in (("f32", np.float32), ("f64", np.float64)):
        op = sg.compile(Product, f"{short}[n m]", f"{short}[k m]")
        for share in (0, 1 / 16):
            x, w = (random.standard_normal((SIDE, SIDE)).astype(dtype) for _ in range(2))
            x[random.random(x.shape) < share] = np.finfo(dtype).tiny / 3
            y = np.empty_like(x)
            steps: list[Callable[[], object]] = [
                lambda: op(x, w, out=y),  # noqa: B023
                lambda: np.matmul(x, w.T, out=y),  # noqa: B023
            ]
            turns = [[milliseconds(step) for step in steps] for _ in range(TURNS)]
            ours, theirs = map(statistics.median, zip(*turns, strict=True))
            print(f"{short}{share:15.1%}{ours:9.1f}{theirs:9.1f}")


if __name__ == "__main__":
    main()
