"""Sonnets as numbers, one a character.

In: ``data/sonnets.txt`` beside this file.  Out: NumPy arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

DATA = Path(__file__).resolve().parent / "data" / "sonnets.txt"
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Text:
    """``codes`` i64[length]: the place of each character in ``alphabet``."""

    codes: Codes
    alphabet: str

    def batch(self, size: int, context: int, generator: np.random.Generator) -> tuple[Codes, Codes]:
        """Pieces of the text and the characters that follow, each i64[size, context]."""
        starts = generator.integers(0, len(self.codes) - context, size)
        places = starts[:, None] + np.arange(context)
        return self.codes[places], self.codes[places + 1]

    def read(self, codes: Codes) -> str:
        """The characters of ``codes``."""
        return "".join(self.alphabet[code] for code in codes)


def load(path: Path = DATA) -> Text:
    """The whole text.  Raises OSError where the file is missing."""
    text = path.read_text(encoding="utf-8")
    alphabet = "".join(sorted(set(text)))
    places = {character: place for place, character in enumerate(alphabet)}
    return Text(np.array([places[character] for character in text], np.int64), alphabet)
