"""Sizes that the tracer says are one: what its errors teach of the specs that were tried.

In: specs with a size of its own for every axis, a ShapeError of forward.  Out: specs in which two
sizes have become one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from symgrad.errors import SymgradError, TraceError
from symgrad.frontend.spec import TensorSpec
from symgrad.ir.dim import Derived, Dim, Size

USUAL_NUMBERS = (4, 3, 2)
"""For sizes that Python has to know, until an unpacking says better: others for two sizes, so that
an axis in place of another shows."""
OTHER_NUMBERS = ((5, 2, 3), (3, 2, 5), (6, 3, 2))
"""What is judged beside these: of the other parity, no square and no power of two; what is fast;
what even sizes need."""
LEAST = ((3, 2), (2, 3))
"""Two sizes of which the least is that of a third axis."""
ALIKE_PRODUCTS = (2, 6, 3, 4)
"""Sizes of two matrices with as many elements, that are no transposes."""
LETTERS = ("n", "m", "k", "l", "h", "w", "c", "d")
Specs = tuple[TensorSpec | None, ...]
Places = frozenset[tuple[int, int]]
"""Axes of arguments, by their positions."""
_QUOTIENT = re.compile(r"\((?:\((?:(\d+)\*)?([A-Za-z][\w*]*)\)|(\w+))//(\d+)\)")
_RATIO = re.compile(r"\((\w+)//([A-Za-z]\w*)\)")
_UNPACK = re.compile(r"(?:values to unpack \(expected |takes )(\d+)")


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

    ``before``: the specs before that, since the number may have to be another one.  ``tried``:
    where numbers stand only because Python needs some, each with all its places.  ``uneven``: where
    multiples stand that forward may not need.  ``numbers``:
    what is put, one after the other, and then the last one.  ``tied``: sizes are one that forward
    may not need to be.  ``loose``: in the place of that, which other sizes fit, by their number.
    """

    specs: Specs
    number: str = ""
    before: Specs = ()
    tried: frozenset[Places] = frozenset()
    uneven: frozenset[Places] = frozenset()
    numbers: tuple[int, ...] = USUAL_NUMBERS
    ways: bool = False
    tied: bool = False
    loose: int = 0


def unpacks(error: Exception) -> bool:
    """Does it say how many names a size is unpacked into?"""
    return bool(_UNPACK.search(error.what if isinstance(error, SymgradError) else str(error)))


def following(last: Step, guessed: Sequence[bool], error: Exception) -> Step | None:
    """What an error of forward says of the sizes; None where it says nothing.

    ``guessed``: which specs may be changed.  Two sizes that meet become one, the later one goes; a
    size that is parted, or divided by another one, becomes a multiple; one that Python has to know
    becomes a number.
    """
    what = error.what if isinstance(error, SymgradError) else str(error)
    if last.number and (match := _UNPACK.search(what)):
        wanted = {Size(last.number): Dim.of(int(match[1]))}
        again = substituted(last.before, guessed, wanted)
        tried = last.tried - {_places(last.before, last.number)}
        return None if again == last.specs else replace(last, specs=again, tried=tried)
    own = names([spec for spec, free in zip(last.specs, guessed, strict=True) if free])
    if not isinstance(error, TraceError):
        return None
    if ratio := _as_product(what, own):
        return _stepped(last, guessed, ratio)
    if united := _united(error.equal, own, last.loose):
        sizes, tied = united
        return replace(_stepped(last, guessed, sizes), tied=last.tied or tied)
    if parted := _parted(error, own):
        places = {_places(last.specs, name.name) for name in parted if error.uneven}
        return replace(_stepped(last, guessed, parted), uneven=last.uneven | places)
    return numbered(last, guessed, error)


def _parted(error: TraceError, own: Sequence[str]) -> dict[Any, Dim]:
    """One of some sizes as a multiple, where it is parted; empty for none."""
    known = [one for one in (error.multiple, error.parted) if one is not None]
    parted = [(*factors(dim), parts) for dim, parts in known]
    parted += [
        (int(match[1] or 1), name, int(match[4]))
        for match in _QUOTIENT.finditer(error.what)
        for name in sorted((match[2] or match[3]).split("*"), key=_position(own), reverse=True)
    ]
    for factor, name, parts in parted:
        more = parts // math.gcd(factor, parts)
        if name in own and more > 1:
            return {Size(name): more * Dim.size(name)}
    return {}


def _as_product(what: str, own: Sequence[str]) -> dict[Any, Dim]:
    """The size that is divided by another one as a product with it; empty for none.

    As one with it, the quotient would be 1, and hide in which order rows are taken.
    """
    for name, by in _RATIO.findall(what):
        if name in own and name != by:
            return {Size(name): Dim.size(name) * Dim.size(by)}
    return {}


def _position(own: Sequence[str]) -> Callable[[str], int]:
    """Where a name stands among those that may be changed; before all of them for another."""
    return lambda name: own.index(name) if name in own else -1


def factors(dim: Dim) -> tuple[int, str]:
    """``2*n`` as the number and the name of the size; an empty name for what is no such product."""
    values = [value for _, value in dim.terms]
    if len(values) != 1 or values[0] < 1:
        return 1, ""
    rest = dim.exact_quotient(values[0])
    return values[0], "" if rest is None else _name(rest)


def as_multiples(specs: Specs, error: Exception) -> dict[str, Dim]:
    """The size that would have to be a multiple of a number, as one, by its name; may be empty."""
    found = _parted(error, names(specs)) if isinstance(error, TraceError) else {}
    return {size.name: dim for size, dim in found.items()}


def _stepped(last: Step, guessed: Sequence[bool], sizes: Mapping[Any, Dim]) -> Step:
    """The step with other sizes."""
    specs = substituted(last.specs, guessed, sizes)
    return replace(last, specs=specs, number="", before=())


def numbered(last: Step, guessed: Sequence[bool], error: Exception) -> Step | None:
    """A number for the first size of what Python has to know; None where it has to know none."""
    if not isinstance(error, TraceError) or error.number is None:
        return None
    if error.ways and not last.ways:
        return None
    own = names([spec for spec, free in zip(last.specs, guessed, strict=True) if free])
    asked = [name for name in own if name in error.number.sizes]
    if not asked:
        return None
    numbers = (last.numbers[1:] if error.ways else ()) or last.numbers
    value = numbers[min(len(last.tried), len(numbers) - 1)]
    specs = substituted(last.specs, guessed, {Size(asked[0]): Dim.of(value)})
    tried = last.tried | {_places(last.specs, asked[0])}
    return replace(last, specs=specs, number=asked[0], before=last.specs, tried=tried)


def _places(specs: Specs, name: str) -> Places:
    """The axes that have a size, alone or in an expression."""
    return frozenset(
        (position, axis) for position, spec in enumerate(specs) if spec is not None
        for axis, dim in enumerate(spec.dims) if name in dim.sizes
    )  # fmt: skip


def _name(dim: Dim) -> str:
    """The name of a size symbol; empty for any other expression."""
    return dim.atom.name if isinstance(dim.atom, Size) else ""


def _reduced(pair: tuple[Dim, Dim]) -> tuple[Dim, Dim]:
    """``2*n`` and ``2*m`` meet where n and m do."""
    shared = math.gcd(*(value for side in pair for _, value in side.terms))
    if shared < 2:
        return pair
    left, right = (
        Dim({monomial: value // shared for monomial, value in side.terms}) for side in pair
    )
    return left, right


def _united(
    pairs: Iterable[tuple[Dim, Dim]], own: Sequence[str], loose: int = 0
) -> tuple[dict[Any, Dim], bool] | None:
    """What guessed sizes have to be for two to be equal, and whether others would do, too.

    ``loose``: which of these others is taken, 0 for none.
    """
    for left, right in map(_reduced, pairs):
        if found := _of_products(left, right, own, loose):
            return found
        known = sorted({*left.sizes, *right.sizes} & set(own), key=own.index)
        for name in reversed(known):
            other = right if name == _name(left) else left
            if name in (_name(left), _name(right)) and _is_free_of(other, name):
                return {Size(name): other}, False
            for more, less in ((left, right), (right, left)):
                rest = more - Dim.size(name)
                if rest.constant is not None and _is_free_of(less, name):
                    return {Size(name): less - rest}, False
        # k meets min(n, m): n and m are made equal
        least = {
            size for atom in left.atoms | right.atoms if isinstance(atom, Derived)
            and atom.function == "min" for size in Dim.of(atom).sizes
        }  # fmt: skip
        if len(both := [name for name in own if name in least]) == 2:
            if loose:
                return _numbered(both, LEAST[loose - 1]), True
            return {Size(both[1]): Dim.size(both[0])}, True
        # n meets (n + k)//2, a chunk of both: n and k are made equal
        same: dict[Any, Dim] = {Size(name): Dim.size(known[0]) for name in known[1:]}
        if same and left.substitute(same) == right.substitute(same):
            return same, False
    return None


def _of_products(
    left: Dim, right: Dim, own: Sequence[str], loose: int
) -> tuple[dict[Any, Dim], bool] | None:
    """``n*m`` and ``k*l`` meet where k is n, and l is m; or k is m, and l is n."""
    sides = []
    for side, other in ((left, right), (right, left)):
        factors = [] if len(side.terms) != 1 else [
            atom.name for atom in side.atoms if isinstance(atom, Size) and atom not in other.atoms
        ]  # fmt: skip
        sides.append(sorted(set(factors) & set(own), key=own.index))
    if min(len(left.atoms), len(right.atoms)) < 2 or not all(sides):
        return None
    sides.sort(key=lambda names: own.index(names[0]))
    earlier, later = sides
    tied = max(map(len, sides)) > 1
    if loose == 2 and all(len(names) == 2 for names in (*sides, left.atoms, right.atoms)):
        return _numbered([*earlier, *later], ALIKE_PRODUCTS), tied
    last = later[-1 if loose and len(earlier) == 1 else 0]
    return {Size(last): Dim.size(earlier[-1 if loose else 0])}, tied


def _numbered(names: Sequence[str], numbers: Sequence[int]) -> dict[Any, Dim]:
    return {Size(name): Dim.of(one) for name, one in zip(names, numbers, strict=True)}


def _is_free_of(dim: Dim, name: str) -> bool:
    """Is it made of other sizes, by sums and products?"""
    return name not in dim.sizes and all(isinstance(atom, Size) for atom in dim.atoms)


def fitted(
    specs: Specs, arguments: Sequence[str], guessed: Sequence[bool], error: SymgradError
) -> Specs | None:
    """The specs as a gradient that does not fit says: None where it is rather a mistake.

    An axis along which the gradient has a number for a size has that size.  A size that index
    tensors alone have becomes that of another tensor; any other would hide a mistake of backward.
    """
    if not isinstance(error, TraceError):
        return None
    known = {
        axis: number
        for axis, (given, wanted) in enumerate(error.equal)
        if given != wanted and (number := _number_of(given, wanted)) is not None
    }
    others = (pair for axis, pair in enumerate(error.equal) if axis not in known)
    if error.gradient and known and all(given == wanted for given, wanted in others):
        return tuple(
            replace(spec, dims=tuple(known.get(axis, dim) for axis, dim in enumerate(spec.dims)))
            if spec is not None and free and argument == error.gradient else spec
            for spec, argument, free in zip(specs, arguments, guessed, strict=True)
        )  # fmt: skip
    return indexed(specs, guessed, error.equal)


def _number_of(given: Dim, wanted: Dim) -> Dim | None:
    """The number that a size of a gradient is, or is at most: 3 for ``min(n, 3)`` beside ``n``."""
    if given.constant is not None:
        return given
    limits = {
        limit.constant for atom in given.atoms
        if isinstance(atom, Derived) and atom.function == "min"
        for limit in (atom.left, atom.right)
    }  # fmt: skip
    numbers = [Dim.of(one) for one in sorted(one for one in limits if one is not None)]
    name = _name(wanted)
    fit = (one for one in numbers if name and given.substitute({Size(name): one}) == one)
    return next(fit, None)


def rank_fits(error: SymgradError) -> bool:
    """Has the gradient as many axes as its argument, so that its sizes are what is wrong?"""
    return isinstance(error, TraceError) and bool(error.gradient and error.equal)


def indexed(
    specs: Specs, guessed: Sequence[bool], pairs: Iterable[tuple[Dim, Dim]]
) -> Specs | None:  # fmt: skip
    """The specs where a size that index tensors alone have meets that of another tensor."""
    rows = list(zip(specs, guessed, strict=True))
    floats = names([spec for spec, _ in rows if spec is not None and _is_float(spec)])
    own = names([spec for spec, free in rows if free and spec is not None and not _is_float(spec)])
    own = [name for name in own if name not in floats]
    for pair in pairs:
        for name, dim in (_united([pair], own) or ({}, False))[0].items():
            if dim.constant is not None or {*dim.sizes} <= {*floats}:
                return substituted(specs, guessed, {name: dim})
    return None


def _is_float(spec: TensorSpec) -> bool:
    return spec.dtype is None or spec.dtype.is_float


def substituted(specs: Specs, guessed: Sequence[bool], mapping: Mapping[Any, Dim]) -> Specs:
    """The guessed ones with other sizes."""
    return tuple(
        replace(spec, dims=tuple(dim.substitute(dict(mapping)) for dim in spec.dims))
        if spec is not None and free else spec
        for spec, free in zip(specs, guessed, strict=True)
    )  # fmt: skip


def renamed(specs: Specs, guessed: Sequence[bool], taken: Iterable[str] = ()) -> Specs:
    """The same with the first letters that are not taken for the sizes that were guessed."""
    given = {
        name for spec, free in zip(specs, guessed, strict=True) if not free and spec is not None
        for name in (*spec.sizes, spec.batch or "")
    }  # fmt: skip
    fresh = letters({*given, *taken})
    own = [name for name in names(specs) if name not in given]
    return substituted(specs, guessed, {Size(name): Dim.size(next(fresh)) for name in own})
