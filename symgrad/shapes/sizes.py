"""Sizes that the tracer says are one: what its errors teach of the specs that were tried.

In: specs with a size of its own for every axis, a ShapeError of forward.  Out: specs in which two
sizes have become one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from symgrad.errors import ShapeError, SpecError, SymgradError
from symgrad.frontend.spec import TensorSpec, parse_spec
from symgrad.ir.dim import Dim, Size

USUAL_NUMBER = 4
"""For a size that Python has to know, until an unpacking says better."""
LETTERS = ("n", "m", "k", "l", "h", "w", "c", "d")
Specs = tuple[TensorSpec | None, ...]
_PAIRS = (
    re.compile(r": ([^:]+) meets ([^:\n]+)$", re.MULTILINE),
    re.compile(r" is (\S.*?) in one operand and (\S.*?) in the other"),
    re.compile(r"takes square matrices, not \w+\[(?:[^\]]* )?(\S+) (\S+)\]"),
)
_SHAPES = re.compile(r"\w*\[([^\]]*)\] (?:does not fit|does not broadcast to) \w*\[([^\]]*)\]")
_PARTED = re.compile(r"of size (\w+) does not part into (\d+) equal|\((\w+)//(\d+)\)")
_KNOWN = re.compile(r"(?:axis of symbolic size|the size) (\w+)(?: is symbolic|$)", re.MULTILINE)
_UNPACK = re.compile(r"(?:values to unpack \(expected |takes )(\d+)")
_GRADIENT = re.compile(r"the gradient of (\w+) has shape \[(.*)\], \w+ has \[(.*)\]")
_BECOMES = re.compile(r"shape \[(\w+)\] cannot become \[([\w, ]+)\]")
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


@dataclass(frozen=True)
class Step:
    """Specs that an error has led to; ``number``: the size for which a number was put, if one was.

    ``before``: the specs before that, since the number may have to be another one.
    """

    specs: Specs
    number: str = ""
    before: Specs = ()


def following(last: Step, guessed: Sequence[bool], error: Exception) -> Step | None:
    """What an error of forward says of the sizes; None where it says nothing.

    ``guessed``: which specs may be changed.  Two sizes that meet become one, the later one goes; a
    size that is parted becomes a multiple; one that Python has to know becomes a number.
    """
    what = error.what if isinstance(error, SymgradError) else str(error)
    if last.number and (match := _UNPACK.search(what)):
        wanted = {Size(last.number): Dim.of(int(match[1]))}
        again = substituted(last.before, guessed, wanted)
        return None if again == last.specs else replace(last, specs=again)
    own = names([spec for spec, free in zip(last.specs, guessed, strict=True) if free])
    if isinstance(error, ShapeError) and (pair := _united(what, own)):
        return Step(substituted(last.specs, guessed, {Size(pair[0]): pair[1]}))
    for match in _PARTED.finditer(what):
        name, parts = (match[1] or match[3]), int(match[2] or match[4])
        if name in own and parts > 1:
            multiple = {Size(name): parts * Dim.size(name)}
            return Step(substituted(last.specs, guessed, multiple))
    match = _KNOWN.search(what)
    if match and match[1] in own:
        number = {Size(match[1]): Dim.of(USUAL_NUMBER)}
        return Step(substituted(last.specs, guessed, number), match[1], last.specs)
    return None


def _united(what: str, own: Sequence[str]) -> tuple[str, Dim] | None:
    """A guessed size, and what it has to be for two sizes to be equal."""
    for left, right in _pairs(what):
        for name in sorted({left, right} & set(own), key=own.index, reverse=True):
            other = right if name == left else left
            inside = [word for word in re.findall(r"\w+", other) if word in own]
            if name not in inside and (value := _size(other)) is not None:
                return name, value
        # n meets min(n, m): they are equal where n and m are
        known = sorted({word for side in (left, right) for word in re.findall(r"\w+", side)
                        if word in own}, key=own.index)  # fmt: skip
        if len(known) == 2 and "min(" in left + right:
            return known[1], Dim.size(known[0])
    return None


def fitted(
    specs: Specs, arguments: Sequence[str], guessed: Sequence[bool], error: SymgradError
) -> Specs | None:
    """The specs as a gradient that does not fit says: None where it is rather a mistake.

    An axis along which the gradient has a number for a size has that size.  A size that index
    tensors alone have becomes that of another tensor; any other would hide a mistake of backward.
    """
    gradient = _GRADIENT.search(error.what)
    if gradient is None:
        return _indexed(specs, guessed, _pairs(error.what))
    name, *sides = gradient.groups()
    given, wanted = (re.findall(r"[^,\s][^,]*", side) for side in sides)
    if len(given) != len(wanted):
        return None
    known = {
        axis: Dim.of(int(size)) for axis, size in enumerate(given)
        if size.isdigit() and not wanted[axis].isdigit()
    }  # fmt: skip
    if known and all(given[axis] == wanted[axis] for axis in set(range(len(given))) - set(known)):
        return tuple(
            replace(spec, dims=tuple(known.get(axis, dim) for axis, dim in enumerate(spec.dims)))
            if spec is not None and free and argument == name else spec
            for spec, argument, free in zip(specs, arguments, guessed, strict=True)
        )  # fmt: skip
    return _indexed(specs, guessed, zip(given, wanted, strict=True))


def rank_fits(error: SymgradError) -> bool:
    """Has the gradient as many axes as its argument, so that its sizes are what is wrong?"""
    match = _GRADIENT.search(error.what)
    return match is not None and match[2].count(",") == match[3].count(",") and bool(match[2])


def _indexed(
    specs: Specs, guessed: Sequence[bool], pairs: Iterable[tuple[str, str]]
) -> Specs | None:  # fmt: skip
    rows = list(zip(specs, guessed, strict=True))
    floats = names([spec for spec, _ in rows if spec is not None and _is_float(spec)])
    own = names([spec for spec, free in rows if free and spec is not None and not _is_float(spec)])
    for left, right in pairs:
        for name, other in ((left, right), (right, left)):
            if name in own and name not in floats and other in floats:
                return substituted(specs, guessed, {Size(name): Dim.size(other)})
    return None


def _is_float(spec: TensorSpec) -> bool:
    return spec.dtype is None or spec.dtype.is_float


def oddities(specs: Specs, guessed: Sequence[bool]) -> int:
    """How many guessed sizes are numbers, multiples, or occur twice in one tensor."""
    count = 0
    for spec, free in zip(specs, guessed, strict=True):
        dims = spec.dims if spec is not None and free else ()
        count += sum(dim.atom is None for dim in dims)
        count += len(dims) - len(set(dims))
    return count


def substituted(specs: Specs, guessed: Sequence[bool], mapping: Mapping[Any, Dim]) -> Specs:
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
        sizes = [word for word in re.findall(r"\w+", match[2]) if word != "1"]
        if all(word.isdigit() for word in sizes):
            yield match[1], str(math.prod(map(int, sizes)))
        elif len(sizes) == 1:
            yield match[1], sizes[0]
    if match := _SHAPES.search(what):
        along = _ALONG.search(what)
        sides = [re.findall(r"[^,\s]+", side) for side in match.groups()]
        if not along:
            sides = [list(reversed(side)) for side in sides]
        for axis, (left, right) in enumerate(zip(*sides, strict=False)):
            free = axis == int(along[1]) if along else left == "1"
            if left != right and not free:
                yield left, right


def _size(text: str) -> Dim | None:
    try:
        (value,) = parse_spec(text.replace(" ", "")).dims
    except (SpecError, ValueError):
        return None
    return value
