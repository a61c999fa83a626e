"""Where programs are compared: sizes that ask every question, generic values and ties.

In: a program.  Out: ``Point`` records.
"""

from __future__ import annotations

import itertools
import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from benchmarks.reliability.program import BOOL, FLOAT, Program
from benchmarks.reliability.truth import Truth, plain, truth

_GENERIC = (3, 2, 4, 5)
_EXTENTS = (1, 2, 3, 4, 5, 6, 0)
_RANDOM = 4
_LARGE = (9000, 1100, 301, 41)
_MOST_ELEMENTS = 100_000  # of any value of a program


@dataclass(frozen=True)
class Point:
    """Sizes, which optional inputs are missing, and the seed of the values."""

    program: Program
    sizes: tuple[tuple[str, int], ...]
    absent: frozenset[str] = frozenset()
    ties: bool = False
    seed: int = 0

    @cached_property
    def arrays(self) -> dict[str, Any]:
        """The inputs in float64, None for what is missing."""
        extents = dict(self.sizes)
        found: dict[str, Any] = {}
        for one in self.program.inputs:
            value = one.value
            shape = [extents[size] if size in extents else int(size) for size in value.shape]
            source = np.random.default_rng(zlib.crc32(f"{value.name}:{self.seed}".encode()))
            if value.name in self.absent:
                found[value.name] = None
            elif value.kind == FLOAT:
                normal = source.standard_normal(shape)
                found[value.name] = np.clip(np.round(normal * 1.2), -2, 2) if self.ties else normal
            elif value.kind == BOOL:
                found[value.name] = np.asarray(source.integers(0, 2, shape), bool)
            else:
                below = extents.get(value.below, 1)
                found[value.name] = np.asarray(source.integers(0, max(below, 1), shape), np.int64)
        return found

    @property
    def empty(self) -> bool:
        """Is a size 0?"""
        return any(not extent for _, extent in self.sizes)

    def cotangent(self, number: int, shape: tuple[int, ...]) -> Any:
        """A generic cotangent of an output."""
        source = np.random.default_rng(zlib.crc32(f"cotangent {number}:{self.seed}".encode()))
        return np.asarray(source.standard_normal(shape))

    @cached_property
    def truth(self) -> Truth | None:
        """What torch says; None where it raises."""
        return truth(
            self.program, plain(self.program), self.arrays, self.cotangent, exact=self.ties
        )

    def __str__(self) -> str:
        words = [f"{name}={extent}" for name, extent in self.sizes]
        words += [f"{name}=None" for name in sorted(self.absent)]
        return ", ".join([*words, *(["ties"] if self.ties else []), f"values {self.seed}"])


def absences(program: Program) -> list[frozenset[str]]:
    """Every set of optional inputs that may be missing."""
    names = [one.value.name for one in program.inputs if one.optional]
    counts = range(len(names) + 1)
    return [frozenset(some) for count in counts for some in itertools.combinations(names, count)]


def points(program: Program, absent: frozenset[str], seed: str) -> list[Point]:
    """Generic sizes, each size 1, all 1, all equal, each 0, each large, and some at random."""
    names, choice = program.sizes, random.Random(f"points {seed}")
    found = [*_extents(len(names), choice), *((one, False) for one in _large(program))]
    return [
        Point(program, tuple(zip(names, extents, strict=True)), absent, ties, number)
        for number, (extents, ties) in enumerate(found)
    ]


def _large(program: Program) -> Iterator[tuple[int, ...]]:
    """Each size as large as values of it may be: sums in blocks and groups, several threads."""
    generic = _GENERIC[: len(program.sizes)]
    for at in range(len(generic)):
        for extent in _LARGE:
            extents = (*generic[:at], extent, *generic[at + 1 :])
            if _most_elements(program, extents) <= _MOST_ELEMENTS:
                yield extents
                break


def _most_elements(program: Program, extents: tuple[int, ...]) -> int:
    """How many elements the largest value has."""
    sizes = dict(zip(program.sizes, extents, strict=True))
    names = {"__builtins__": {}, "min": min, "max": max, **sizes}
    return max(
        prod(int(eval(size, names)) for size in value.shape) for value in program.values().values()
    )


def _extents(count: int, choice: random.Random) -> Iterator[tuple[tuple[int, ...], bool]]:
    generic = _GENERIC[:count]
    yield generic, False
    yield generic, True
    if not count:
        return
    found = [(1,) * count, (3,) * count, (2,) * count]
    for changed in (1, 0):
        found += [
            tuple(changed if i == at else e for i, e in enumerate(generic)) for at in range(count)
        ]
    found += [tuple(choice.choice(_EXTENTS) for _ in generic) for _ in range(_RANDOM)]
    for extents in dict.fromkeys(found):
        yield extents, False
