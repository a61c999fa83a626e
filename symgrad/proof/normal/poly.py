"""Polynomials ``{monomial: coefficient}`` over interned atoms: the part that needs no rules.

In: atoms, rational numbers.  Out: immutable polynomials that can be added, scaled, compared and
ordered.  Multiplication applies rules and lives in ``algebra``.

A monomial is a tuple of ``(atom, exponent)`` sorted by ``atom.key``; exponents and coefficients
are ``int`` where integral, else ``Fraction``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

from symgrad.proof.normal.atoms import INDEX, NUMBER, SIZE, Atom, Monomial, Number, erased_monomial

Exponents = dict[Atom, Number]


def exact(value: Number) -> Number:
    """An int where the value is integral."""
    if isinstance(value, int):
        return value
    return value.numerator if value.denominator == 1 else value


class Ratio(Fraction):
    """A fraction whose hash is computed once: exponents are hashed with every monomial."""

    __slots__ = ("_hash",)

    _hash: int

    def __hash__(self) -> int:  # type: ignore[override]
        return self._hash


@lru_cache(maxsize=65536)
def _ratio(numerator: int, denominator: int) -> Ratio:
    value = Ratio(numerator, denominator)
    value._hash = hash(Fraction(numerator, denominator))
    return value


def exponent_of(value: Number) -> Number:
    """An int where the value is integral, else a fraction that is fast to hash."""
    if isinstance(value, (int, Ratio)):
        return value
    if value.denominator == 1:
        return value.numerator
    return _ratio(value.numerator, value.denominator)


def magnitude(value: Number) -> Number:
    """The absolute value."""
    return value if value >= 0 else -value


class Poly:
    """A polynomial; never mutated once made."""

    __slots__ = ("_depth", "_erased", "_free", "_height", "_key", "_lead", "terms")

    terms: dict[Monomial, Number]

    def __init__(self, terms: dict[Monomial, Number]) -> None:
        self.terms = terms
        self._key: int | None = None
        self._erased: int | None = None
        self._free: frozenset[Atom] | None = None
        self._height = -1
        self._depth = -1
        self._lead: Monomial | None = None

    # -- identity

    @property
    def key(self) -> int:
        """A number that orders polynomials, independent of construction order."""
        if self._key is None:
            parts = [hash((monomial_key(m), hash(c))) for m, c in self.terms.items()]
            parts.sort()
            self._key = hash(tuple(parts))
        return self._key

    @property
    def erased(self) -> int:
        """The key with the names of index variables left out."""
        if self._erased is None:
            parts = [hash((erased_monomial(m), hash(c))) for m, c in self.terms.items()]
            parts.sort()
            self._erased = hash(tuple(parts))
        return self._erased

    def __hash__(self) -> int:
        return self.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Poly) and self.terms == other.terms

    def __bool__(self) -> bool:
        """Has it any term?"""
        return bool(self.terms)

    def __len__(self) -> int:
        return len(self.terms)

    @property
    def free(self) -> frozenset[Atom]:
        """The index variables it depends on."""
        if self._free is None:
            free: frozenset[Atom] = frozenset()
            for monomial in self.terms:
                for atom, _ in monomial:
                    if atom.free and not atom.free <= free:
                        free = free | atom.free
            self._free = free
        return self._free

    @property
    def height(self) -> int:
        """How deep binders nest in it."""
        if self._height < 0:
            self._height = max((a.height for m in self.terms for a, _ in m), default=0)
        return self._height

    @property
    def depth(self) -> int:
        """How deep atoms nest in it."""
        if self._depth < 0:
            self._depth = max((a.depth for m in self.terms for a, _ in m), default=0)
        return self._depth

    @property
    def divides(self) -> bool:
        """Is there an integer quotient in it?"""
        return any(a.divides for m in self.terms for a, _ in m)

    @property
    def piecewise(self) -> bool:
        """Is it not analytic in the real leaves?"""
        return any(a.piecewise for m in self.terms for a, _ in m)

    # -- ring operations without rules

    def __add__(self, other: Poly) -> Poly:
        if len(self.terms) < len(other.terms):
            self, other = other, self
        terms = dict(self.terms)
        for monomial, value in other.terms.items():
            total = terms.get(monomial, 0) + value
            if total:
                terms[monomial] = exact(total)
            else:
                del terms[monomial]
        return Poly(terms)

    def __neg__(self) -> Poly:
        return Poly({monomial: -value for monomial, value in self.terms.items()})

    def __sub__(self, other: Poly) -> Poly:
        return self + (-other)

    def plus(self, value: Number) -> Poly:
        """The sum with a number."""
        return self + constant(value)

    def scaled(self, factor: Number) -> Poly:
        """The product with a number."""
        if factor == 1:
            return self
        if not factor:
            return ZERO
        return Poly({m: exact(c * factor) for m, c in self.terms.items()})

    # -- what it is

    @property
    def constant(self) -> Number | None:
        """Its value when it has no atoms, else None."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    @property
    def atom(self) -> Atom | None:
        """The atom it consists of, or None."""
        if len(self.terms) == 1:
            ((monomial, value),) = self.terms.items()
            if value == 1 and len(monomial) == 1 and monomial[0][1] == 1:
                return monomial[0][0]
        return None

    def solved(self, *sorts: str) -> Iterator[tuple[Atom, Number, Poly]]:
        """``(a, c, v)`` with ``self == c * (a - v)`` and c 1 or -1, for atoms of these kinds."""
        for monomial, value in self.terms.items():
            if len(monomial) == 1 and monomial[0][1] == 1 and value in (1, -1):
                ((atom, _),) = monomial
                if atom.kind in sorts:
                    yield atom, value, (self - Poly({monomial: value})).scaled(-value)

    @property
    def offset(self) -> Number:
        """Its term without atoms, 0 where there is none."""
        return self.terms.get((), 0)

    @property
    def lead(self) -> Monomial:
        """The leading monomial in an admissible order: weighted degree, then lexicographic.

        Admissible (compatible with multiplication) for monomials without negative exponents;
        reduction by leading monomials would loop forever in an order that is not.
        """
        if self._lead is None:
            self._lead = max(self.terms, key=_order)
        return self._lead

    def __repr__(self) -> str:
        if not self.terms:
            return "0"
        parts = sorted((monomial_key(m), _show(m, c)) for m, c in self.terms.items())
        return " + ".join(text for _, text in parts)


ZERO = Poly({})
ONE = Poly({(): 1})


def constant(value: Number) -> Poly:
    """A number as a polynomial."""
    return Poly({(): exact(value)}) if value else ZERO


def of_atom(atom: Atom, exponent: Number = 1) -> Poly:
    """An atom to a power, taken as it is."""
    return Poly({((atom, exponent_of(exponent)),): 1})


def total(polys: Iterable[Poly]) -> Poly:
    """The sum of polynomials."""
    terms: dict[Monomial, Number] = {}
    for poly in polys:
        for monomial, value in poly.terms.items():
            terms[monomial] = terms.get(monomial, 0) + value
    return Poly({m: exact(c) for m, c in terms.items() if c})


def plain_product(left: Poly, right: Poly | Atom) -> Poly:
    """The product of integer polynomials: exponents are added, no other rule is applied."""
    if isinstance(right, Atom):
        right = of_atom(right)
    terms: dict[Monomial, Number] = {}
    for monomial, value in left.terms.items():
        for other, factor in right.terms.items():
            key = ordered(joined(monomial, other))
            terms[key] = terms.get(key, 0) + value * factor
    return Poly({m: exact(c) for m, c in terms.items() if c})


def joined(first: Monomial | Exponents, second: Monomial, times: int = 1) -> Exponents:
    """The exponents of ``first * second**times``."""
    exponents = dict(first)
    for atom, exponent in second:
        exponents[atom] = exponents.get(atom, 0) + times * exponent
    return exponents


def monomial_key(monomial: Monomial) -> int:
    """A number that orders monomials."""
    return hash(tuple([(atom.key, hash(exponent)) for atom, exponent in monomial]))


def ordered(exponents: Exponents) -> Monomial:
    """The monomial with these exponents; zeros are left out."""
    factors = [(a, exponent_of(e)) for a, e in exponents.items() if e]
    if len(factors) > 1:
        factors.sort(key=_by_key)
    return tuple(factors)


def degree(monomial: Monomial) -> Number:
    """The degree in everything but sizes and constants."""
    return sum(e for atom, e in monomial if atom.kind not in (SIZE, NUMBER))


def direct_atoms(item: Any) -> Iterator[Atom]:
    """The atoms of a polynomial or of an atom's data, without those inside them."""
    if isinstance(item, Atom):
        yield item
    elif isinstance(item, Poly):
        for monomial in item.terms:
            for atom, _ in monomial:
                yield atom
    elif isinstance(item, tuple):
        for part in item:
            yield from direct_atoms(part)


def all_atoms(item: Any) -> Iterator[Atom]:
    """The atoms of a polynomial at any depth, each once, those in extents left out."""
    todo, seen = [*direct_atoms(item)], set[Atom]()
    while todo:
        atom = todo.pop()
        if atom not in seen:
            seen.add(atom)
            yield atom
            if atom.kind != INDEX:
                todo.extend(direct_atoms(atom.data))


def _by_key(item: tuple[Atom, Number]) -> int:
    return item[0].key


def _order(monomial: Monomial) -> tuple[Number, list[tuple[int, int, Number]]]:
    factors = sorted(((a.erased, a.key, e) for a, e in monomial), reverse=True)
    return degree(monomial), factors


def _show(monomial: Monomial, value: Number) -> str:
    factors = [f"{atom}" if e == 1 else f"{atom}^{e}" for atom, e in monomial]
    return "*".join(([str(value)] if value != 1 or not factors else []) + factors)
