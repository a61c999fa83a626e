"""The UCI optical digits, split once and for all into training and held-out images.

In: ``data/digits.csv.gz`` beside this file.  Out: NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DATA = Path(__file__).resolve().parent / "data" / "digits.csv.gz"
PIXELS = 64
CLASSES = 10
HELD_OUT = 360
_BRIGHTEST = 16


@dataclass(frozen=True)
class Images:
    """Images and what they show: ``pixels`` f32[n 64] in [0, 1], ``labels`` i64[n] in 0..9."""

    pixels: NDArray[np.float32]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, rows: Any) -> Images:
        """The images of ``rows`` (anything that indexes an array), copied."""
        return Images(self.pixels[rows].copy(), self.labels[rows].copy())

    def batches(self, size: int, generator: np.random.Generator) -> Iterator[Images]:
        """All images once, in a random order, ``size`` at a time; the last batch may be smaller."""
        order = generator.permutation(len(self))
        for start in range(0, len(self), size):
            yield self.select(order[start : start + size])


def load(path: Path = DATA) -> tuple[Images, Images]:
    """The 1,437 images to train with and the 360 held out, the same ones at every call.

    Raises OSError where the file is missing and ValueError where it is not what it should be.
    """
    table = np.loadtxt(path, delimiter=",", dtype=np.int64, ndmin=2)
    if table.shape[1] != PIXELS + 1 or len(table) <= HELD_OUT:
        raise ValueError(f"{path} is not the digits data set: its table is {table.shape}")
    pixels = (table[:, :PIXELS] / _BRIGHTEST).astype(np.float32)
    images = Images(pixels, table[:, PIXELS].copy())
    # RandomState, since NumPy promises that its stream never changes; that of Generator may.
    order = np.random.RandomState(0).permutation(len(images))
    return images.select(order[HELD_OUT:]), images.select(order[:HELD_OUT])
