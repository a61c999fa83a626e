"""Sizes that the tracer says are one: what its errors teach of the specs that were tried.

In: specs with a size of its own for every axis, a ShapeError of forward.  Out: specs in which two
sizes have become one.  Imports: ``symgrad.frontend.spec``, ``symgrad.ir``, ``symgrad.errors``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from symgrad.errors import ShapeError, SpecError
from symgrad.frontend.spec import TensorSpec, parse_spec
from symgrad.ir.dim import Atom, Dim, Size

LETTERS = ("n", "m", "k", "l", "h", "w", "c", "d")
Specs = tuple[TensorSpec | None, ...]
_PAIRS = (
    re.compile(r": ([^:]+) meets ([^:\n]+)$", re.MULTILINE),
    re.compile(r" is (\S.*?) in one operand and (\S.*?) in the other"),
    re.compile(r"takes square matrices, not \w+\[(?:[^\]]* )?(\S+) (\S+)\]"),
)
_SHAPES = re.compile(r"\w*\[([^\]]*)\] (?:does not fit|does not broadcast to) \w*\[([^\]]*)\]")
_BECOMES = re.compile(r"shape \[(\w+)\] cannot become \[([\d, ]+)\]")
_ALONG = re.compile(r"along axis (\d+): ")


def letters(taken: set[str]) -> Iterator[str]:
    """Names for sizes, without those that are taken."""
    yield from (name for name in LETTERS if name not in taken)
    number = 0
    while True:
        if (name := f"n{number}") not in taken:
            yield name
        number += 1


def names(specs: Sequence[TensorSpec | None]) -> list[str]:
    """The sizes of some specs, in order of appearance."""
    found: dict[str, None] = {}
    for spec in specs:
        for dim in spec.dims if spec is not None else ():
            found.update(dict.fromkeys(dim.sizes))
    return list(found)


def united(specs: Specs, guessed: Sequence[bool], error: ShapeError) -> Specs | None:
    """The specs with two sizes made one, as an error says; None where it says no such thing.

    ``guessed``: which specs may be changed.  Of two sizes the later one goes.
    """
    own = names([spec for spec, free in zip(specs, guessed, strict=True) if free])
    for left, right in _pairs(error.what):
        for name in sorted({left, right} & set(own), key=own.index, reverse=True):
            other = right if name == left else left
            if name not in re.findall(r"\w+", other) and (value := _size(other)) is not None:
                return substituted(specs, guessed, {Size(name): value})
    return None


def substituted(specs: Specs, guessed: Sequence[bool], mapping: Mapping[Atom, Dim]) -> Specs:
    """The guessed ones with other sizes."""
    return tuple(
        replace(spec, dims=tuple(dim.substitute(dict(mapping)) for dim in spec.dims))
        if spec is not None and free else spec
        for spec, free in zip(specs, guessed, strict=True)
    )  # fmt: skip


def renamed(specs: Specs, guessed: Sequence[bool]) -> Specs:
    """The same with the first letters for the sizes that were guessed."""
    given = {
        name for spec, free in zip(specs, guessed, strict=True) if not free and spec is not None
        for name in (*spec.sizes, spec.batch or "")
    }  # fmt: skip
    fresh = letters(given)
    own = [name for name in names(specs) if name not in given]
    return substituted(specs, guessed, {Size(name): Dim.size(next(fresh)) for name in own})


def _pairs(what: str) -> Iterator[tuple[str, str]]:
    for pattern in _PAIRS:
        if match := pattern.search(what):
            yield match[1].strip(), match[2].strip()
    if match := _BECOMES.search(what):
        yield match[1], str(math.prod(int(size) for size in re.findall(r"\d+", match[2])))
    if match := _SHAPES.search(what):
        along = _ALONG.search(what)
        sides = [re.findall(r"[^,\s]+", side) for side in match.groups()]
        if not along:
            sides = [list(reversed(side)) for side in sides]
        for axis, (left, right) in enumerate(zip(*sides, strict=False)):
            if left != right and not (along and axis == int(along[1])):
                yield left, right


def _size(text: str) -> Dim | None:
    try:
        (value,) = parse_spec(text.replace(" ", "")).dims
    except (SpecError, ValueError):
        return None
    return value
