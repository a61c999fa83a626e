"""Interned atoms: what polynomials are made of.

In: a kind and its data.  Out: one object for each distinct atom of a table, with keys that do not
depend on construction order.

Kinds and their data (``Poly`` is defined in ``poly``):

    index      name, extent                 a bound or free index, 0 <= index < extent
    size       name                         a size symbol, at least 1
    number     prime or "pi"                a positive real constant
    leaf       tensor, indices, sort        an element; sort: "real" "int" "bool"
    exp        monomial as Poly             the exponential
    function   name, argument               log erf sin cos ... of one argument
    power      base with several terms      carries negative and fractional exponents
    positive   P                            [P > 0] on the reals
    atleast    P                            [P >= 0] on the integers
    equal      P                            [P == 0] on the integers
    maximum    binder, body                 the greatest body over the binder
    argmax     binder, body                 the first index at which it is reached
    product    binder, body                 the product over the binder
    sum        binders, monomial            one connected component, canonically labelled
    floordiv   P, Q                         the integer quotient, rounded down
    angle       y, x                        of the point (x, y): atan2
    infinity                                the infinity of a mask, only met as -infinity
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from functools import cache
from typing import Any

from symgrad.budgets import DEPTH_LIMIT

Number = int | Fraction
Monomial = tuple[tuple["Atom", Number], ...]

INDEX, SIZE, NUMBER, LEAF = "index", "size", "number", "leaf"
EXP, FUNCTION, POWER = "exp", "function", "power"
POSITIVE, ATLEAST, EQUAL = "positive", "atleast", "equal"
MAXIMUM, ARGMAX, PRODUCT, SUM = "maximum", "argmax", "product", "sum"
FLOORDIV, ANGLE, INFINITY = "floordiv", "angle", "infinity"

RELATIONS = frozenset((POSITIVE, ATLEAST, EQUAL))
BINDERS = frozenset((MAXIMUM, ARGMAX, PRODUCT, SUM))
PIECEWISE_FUNCTIONS = frozenset(("floor", "ceiling", "round"))


class Undecided(Exception):
    """The expression cannot be brought to normal form; ``reason`` says why, for the report."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


@cache
def text_key(text: str) -> int:
    """A number for a name, the same in every run."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "big")


_NAMELESS = text_key("index variable")


class Atom:
    """One atom; equal atoms of one table are the same object.

    ``key`` orders atoms; ``erased`` is the same with the names of index variables left out, so
    that choices made by it survive renaming.  ``free``: the index variables it depends on.
    ``height``: how deep its binders nest; ``depth``: how deep the atom nests.  ``indicator``: its
    value is 0 or 1.  ``divides``: there is an integer quotient in it.  ``piecewise``: it is not
    analytic in the real leaves, or depends on the value of an integer leaf.
    """

    __slots__ = (
        "_erased", "data", "depth", "divides", "free", "height", "index_cache", "indicator", "key",
        "kind", "piecewise", "special",
    )  # fmt: skip

    kind: str
    data: tuple[Any, ...]
    key: int
    free: frozenset[Atom]
    height: int
    depth: int
    indicator: bool
    piecewise: bool
    special: bool
    divides: bool
    index_cache: tuple[Any, ...] | None
    _erased: int | None

    @property
    def erased(self) -> int:
        """The key with the names of index variables left out."""
        if self._erased is None:
            self._erased = _erased_key(self.kind, self.data)
        return self._erased

    def __repr__(self) -> str:
        inner = ", ".join(_show(item) for item in self.data)
        return f"{self.kind}({inner})" if self.kind not in (INDEX, SIZE) else str(self.data[0])


class AtomTable:
    """Makes atoms, each once.  ``special``: tensors whose elements have rules in products."""

    def __init__(self, special: frozenset[str] = frozenset()) -> None:
        self._atoms: dict[tuple[Any, ...], Atom] = {}
        self._special = special

    def __len__(self) -> int:
        return len(self._atoms)

    def get(self, kind: str, *data: Any) -> Atom:
        """The atom of this kind and data.  Raises Undecided when it would nest too deeply."""
        identity = (kind, *data)
        found = self._atoms.get(identity)
        if found is None:
            found = _make(kind, data)
            if kind == LEAF and data[0] in self._special:
                found.special = True
            self._atoms[identity] = found
        return found


def _make(kind: str, data: tuple[Any, ...]) -> Atom:
    atom = Atom()
    atom.kind, atom.data = kind, data
    parts: list[Any] = []
    _collect(data, parts)
    depth = height = 0
    divides, free = kind == FLOORDIV, _NONE
    for part in parts:
        depth, height = max(depth, part.depth), max(height, part.height)
        divides = divides or part.divides
        if part.free:
            free = free | part.free if free else part.free
    atom.depth = 1 + depth
    if atom.depth > DEPTH_LIMIT:
        raise Undecided(f"functions are nested more than {DEPTH_LIMIT} deep")
    atom.key = hash((text_key(kind), *map(_key, data)))
    atom._erased = None
    atom.index_cache = None
    atom.divides = divides
    atom.height = height
    atom.piecewise = _is_piecewise(kind, data, parts)
    atom.indicator = kind in RELATIONS or (kind == LEAF and data[2] == "bool")
    atom.special = atom.indicator or kind in (POWER, NUMBER, FUNCTION, INFINITY)
    _bind(atom, free)
    return atom


_NONE: frozenset[Atom] = frozenset()


def _is_piecewise(kind: str, data: tuple[Any, ...], parts: list[Any]) -> bool:
    """An element read at a data-dependent index is as generic as any other."""
    if kind == LEAF:
        return bool(data[2] != "real")
    if kind in (POSITIVE, MAXIMUM, ARGMAX, ANGLE):
        return True
    if kind == FUNCTION and data[0] in PIECEWISE_FUNCTIONS:
        return True
    return any(part.piecewise for part in parts)


def _bind(atom: Atom, free: frozenset[Atom]) -> None:
    """The index variables that an atom depends on; ``free``: those of its parts."""
    if atom.kind == INDEX:
        free = frozenset((atom,))
    elif atom.kind in BINDERS:
        binders = atom.data[0] if atom.kind == SUM else (atom.data[0],)
        free = free - frozenset(binders)
        atom.height += 1
    atom.free = free


def _collect(data: tuple[Any, ...], found: list[Any]) -> None:
    """The atoms and polynomials directly inside ``data``."""
    for item in data:
        if type(item) is tuple:
            _collect(item, found)
        elif hasattr(item, "depth"):
            found.append(item)


def _key(item: Any) -> int:
    if isinstance(item, str):
        return text_key(item)
    if isinstance(item, tuple):
        return hash(tuple(map(_key, item)))
    key: int = item.key if hasattr(item, "key") else hash(item)
    return key


def _erased(item: Any) -> int:
    if isinstance(item, tuple):
        return hash(tuple(map(_erased, item)))
    if isinstance(item, str):
        return text_key(item)
    erased: int = item.erased if hasattr(item, "erased") else hash(item)
    return erased


def _erased_key(kind: str, data: tuple[Any, ...]) -> int:
    if kind == INDEX:
        return hash((_NAMELESS, data[1].erased))
    if kind == SUM:
        extents = sorted(binder.erased for binder in data[0])
        return hash((text_key(kind), tuple(extents), erased_monomial(data[1])))
    return hash((text_key(kind), *map(_erased, data)))


def erased_monomial(monomial: Monomial) -> int:
    """The name-free key of a monomial."""
    return hash(tuple(sorted((atom.erased, hash(exponent)) for atom, exponent in monomial)))


def _show(item: Any) -> str:
    if isinstance(item, tuple):
        return "[" + ", ".join(map(_show, item)) + "]"
    return str(item)
