"""Integer expressions: sizes of tensors and index expressions, in one canonical form.

In: size symbols, index axes, integers.  Out: ``Dim``, a polynomial with integer coefficients over
atoms; equal expressions are equal objects in the sense of ``==`` and ``hash``.

Atoms are size symbols (``Size``), index variables (``Axis``), the quotients, remainders, minima
and maxima that do not reduce (``Derived``) and elements of integer tensors (``Element``).
Division and remainder round as Python's do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Union

from symgrad.budgets import QUOTIENT_STEPS
from symgrad.ir.atoms import (
    Atom,
    Axis,
    Derived,
    Element,
    Monomial,
    Size,
    divide,
    multiply,
    term_key,
)
from symgrad.ir.bounds import Terms, nonnegative

__all__ = [
    "Atom",
    "Axis",
    "Derived",
    "Dim",
    "DimLike",
    "Element",
    "Size",
    "maximum",
    "minimum",
    "product",
]

DimLike = Union["Dim", int]


class Dim:
    """An integer polynomial ``{monomial: coefficient}``; immutable, hashable, canonical."""

    __slots__ = ("__dict__", "terms")

    terms: tuple[tuple[Monomial, int], ...]

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        kept = [term for term in terms.items() if term[1]]
        if len(kept) > 1:
            kept.sort(key=term_key)
        self.terms = tuple(kept)

    @classmethod
    def _sorted(cls, terms: tuple[tuple[Monomial, int], ...]) -> Dim:
        """Of terms that are in order, and none of them 0."""
        made = cls.__new__(cls)
        made.terms = terms
        return made

    @staticmethod
    def of(value: Atom | Dim | int) -> Dim:
        """An atom, an integer or a Dim as a Dim."""
        if isinstance(value, Dim):
            return value
        if isinstance(value, Atom):
            return Dim._sorted(((((value, 1),), 1),))
        return Dim._sorted((((), int(value)),) if value else ())

    @staticmethod
    def size(name: str) -> Dim:
        """The size symbol of this name."""
        return Dim.of(Size(name))

    # -- what it is

    @property
    def constant(self) -> int | None:
        """Its value when it has no atoms, else None."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and not self.terms[0][0]:
            return self.terms[0][1]
        return None

    @property
    def atom(self) -> Atom | None:
        """The atom it consists of, or None."""
        if len(self.terms) == 1:
            monomial, value = self.terms[0]
            if value == 1 and len(monomial) == 1 and monomial[0][1] == 1:
                return monomial[0][0]
        return None

    @cached_property
    def atoms(self) -> frozenset[Atom]:
        """Every atom in it, those inside quotients and the like included."""
        found: frozenset[Atom] = frozenset()
        for monomial, _ in self.terms:
            for atom, _ in monomial:
                found |= atom.atoms
        return found

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names of the size symbols in it, sorted; those in the extents of axes too."""
        names = {atom.name for atom in self.atoms if isinstance(atom, Size)}
        for axis in self.axes:
            names.update(axis.extent.sizes)
        return tuple(sorted(names))

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The index variables in it, in order of their keys."""
        axes = (atom for atom in self.atoms if isinstance(atom, Axis))
        return tuple(sorted(axes, key=lambda axis: axis.key))

    @cached_property
    def least(self) -> int | None:
        """A lower bound for all sizes >= 0 and all indices in range, or None."""
        total = 0
        for monomial, value in self.terms:
            product = 1
            for atom, power in monomial:
                bound = atom.least
                if bound is None or bound < 0:
                    return None
                product *= bound**power
            if value < 0 and monomial:
                return None
            total += value * product
        return total

    def at_least(self, value: DimLike, *, least_size: int | Callable[[Size], int] = 0) -> bool:
        """Is it provably ``>= value``, given that every size is ``>= least_size``?"""
        difference = self - value
        if not callable(least_size):
            return _at_least_zero(difference, least_size)
        if difference.least is not None and difference.least >= 0:
            return True
        return nonnegative(dict(difference.terms), _Ranges(least_size))

    # -- arithmetic

    def __add__(self, other: DimLike) -> Dim:
        if not isinstance(other, (Dim, int)):
            return NotImplemented
        number, own = _parted(self.terms)
        more, added = _parted(Dim.of(other).terms)
        numbers: tuple[tuple[Monomial, int], ...] = (((), number + more),) if number + more else ()
        if not own or not added:
            return Dim._sorted(numbers + (own or added))
        total = dict(own)
        for monomial, value in added:
            total[monomial] = total.get(monomial, 0) + value
        kept = [term for term in total.items() if term[1]]
        if len(total) > len(own):
            kept.sort(key=term_key)
        return Dim._sorted((*numbers, *kept))

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return Dim._sorted(tuple([(monomial, -value) for monomial, value in self.terms]))

    def __sub__(self, other: DimLike) -> Dim:
        if not isinstance(other, (Dim, int)):
            return NotImplemented
        return self + -Dim.of(other)

    def __rsub__(self, other: DimLike) -> Dim:
        return Dim.of(other) - self

    def __mul__(self, other: DimLike) -> Dim:
        if not isinstance(other, (Dim, int)):
            return NotImplemented
        factor = other if isinstance(other, int) else other.constant
        if factor is not None:
            terms = [(monomial, value * factor) for monomial, value in self.terms if factor]
            return Dim._sorted(tuple(terms))
        total: dict[Monomial, int] = {}
        for left, left_value in self.terms:
            for right, right_value in Dim.of(other).terms:
                monomial = multiply(left, right)
                total[monomial] = total.get(monomial, 0) + left_value * right_value
        return Dim(total)

    __rmul__ = __mul__

    def __floordiv__(self, other: DimLike) -> Dim:
        return _floordiv(self, Dim.of(other))

    def __rfloordiv__(self, other: DimLike) -> Dim:
        return _floordiv(Dim.of(other), self)

    def __mod__(self, other: DimLike) -> Dim:
        return _mod(self, Dim.of(other))

    def __rmod__(self, other: DimLike) -> Dim:
        return _mod(Dim.of(other), self)

    @cached_property
    def shortened(self) -> Dim:
        """The same with quotients in the place of remainders, where that has fewer terms.

        ``m - m % 2 - m // 2`` is ``m // 2``.
        """
        found = self
        for atom in sorted(self.atoms, key=lambda one: one.key):
            by = atom.right.constant if isinstance(atom, Derived) else None
            if isinstance(atom, Derived) and atom.function == "mod" and by and not found.axes:
                other = found.substitute({atom: atom.left - atom.left // by * by})
                found = min(found, other, key=lambda one: len(one.terms))
        return found

    def exact_quotient(self, other: DimLike) -> Dim | None:
        """The polynomial q with ``q * other == self``, or None when there is none."""
        divisor = Dim.of(other)
        if not divisor.terms:
            return None
        quotient, rest = Dim({}), self
        lead, lead_value = divisor.terms[-1]
        for _ in range(QUOTIENT_STEPS):
            if not rest.terms:
                return quotient
            top, top_value = rest.terms[-1]
            monomial = divide(top, lead)
            if monomial is None or top_value % lead_value:
                return None
            step = Dim({monomial: top_value // lead_value})
            quotient, rest = quotient + step, rest - step * divisor
        return None

    # -- evaluation

    def evaluate(self, lookup: Callable[[Atom], int]) -> int:
        """Its value, ``lookup`` giving those of the atoms."""
        total = 0
        for monomial, value in self.terms:
            for atom, power in monomial:
                value = value * atom.evaluate(lookup) ** power  # of arrays, too
            total = total + value
        return total

    def at(self, sizes: Mapping[str, int]) -> int:
        """Its value for concrete sizes.  KeyError for a size that is not given."""

        def lookup(atom: Atom) -> int:
            if isinstance(atom, Size):
                return sizes[atom.name]
            raise KeyError(str(atom))

        return self.evaluate(lookup)

    def substitute(self, mapping: Mapping[Atom, Dim]) -> Dim:
        """Replace atoms, all at once."""
        return self.replaced(mapping, _substitute)

    def replaced(
        self, mapping: Mapping[Atom, Dim], inside: Callable[[Atom, Mapping[Atom, Dim]], Dim]
    ) -> Dim:
        """The same; ``inside``: an atom with others put for those inside it."""
        if not mapping or self.atoms.isdisjoint(mapping):
            return self
        total: dict[Monomial, int] = {}
        for monomial, value in self.terms:
            kept: list[tuple[Atom, int]] = []
            product = None
            for atom, power in monomial:
                if atom.atoms.isdisjoint(mapping):
                    kept.append((atom, power))
                    continue
                one = mapping[atom] if atom in mapping else inside(atom, mapping)
                for _ in range(power):
                    product = one if product is None else product * one
            rest = tuple(kept)
            for own, factor in _ONE if product is None else product.terms:
                made = multiply(rest, own)
                total[made] = total.get(made, 0) + value * factor
        return Dim(total)

    # -- text

    @cached_property
    def key(self) -> str:
        """A text that is equal exactly for equal Dims."""
        return "+".join(
            f"{value}" + "".join(f"*{atom.key}^{power}" for atom, power in monomial)
            for monomial, value in self.terms
        )

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        text = ""
        for monomial, value in reversed(self.terms):
            factors = [str(atom) for atom, power in monomial for _ in range(power)]
            size = abs(value)
            body = "*".join(([str(size)] if size != 1 or not factors else []) + factors)
            sign = ("-" if value < 0 else "") if not text else (" - " if value < 0 else " + ")
            text += sign + body
        return text

    @property
    def grouped(self) -> str:
        """Its text, in parentheses unless it is a single atom or number."""
        single = self.atom is not None or (self.constant is not None and self.constant >= 0)
        return str(self) if single else f"({self})"

    def __repr__(self) -> str:
        return f"Dim({self})"

    @cached_property
    def _hash(self) -> int:
        constant = self.constant
        return hash(self.terms) if constant is None else hash(constant)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            return self.constant == other
        return isinstance(other, Dim) and self.terms == other.terms

    def __bool__(self) -> bool:
        if self.constant is not None:
            return self.constant != 0
        raise TypeError(f"the truth value of the symbolic size {self} is not known")


_ONE: tuple[tuple[Monomial, int], ...] = (((), 1),)


def _parted(
    terms: tuple[tuple[Monomial, int], ...],
) -> tuple[int, tuple[tuple[Monomial, int], ...]]:
    """The number, which stands first, and the terms with atoms."""
    return (terms[0][1], terms[1:]) if terms and not terms[0][0] else (0, terms)


class _Ranges:
    """The ranges of the atoms of a polynomial, for ``bounds.nonnegative``."""

    def __init__(self, least_size: Callable[[Size], int]) -> None:
        self._least_size = least_size

    def least(self, atom: Atom) -> int | None:
        """What a size is declared to be; of quotients and the like, 0 where that is shown.

        Nothing is substituted: what sizes that start at 0 are put into reduces as if from 1.
        """
        if isinstance(atom, Size):
            return self._least_size(atom)
        if not isinstance(atom, Derived) or atom.least is not None:
            return atom.least
        left = atom.left.at_least(0, least_size=self._least_size)
        if atom.function in ("floordiv", "mod"):
            divides = atom.right.at_least(1, least_size=self._least_size)
            return 0 if divides and (left or atom.function == "mod") else None
        right = atom.right.at_least(0, least_size=self._least_size)
        return 0 if (left and right if atom.function == "min" else left or right) else None

    def ends(self, atom: Atom) -> tuple[Terms, Terms] | None:
        """Of an index, and of quotients and remainders by a number."""
        if isinstance(atom, Axis):
            return {}, dict((atom.extent - 1).terms)
        divisor = atom.right.constant if isinstance(atom, Derived) else None
        if not isinstance(atom, Derived) or divisor is None or divisor <= 0:
            return None
        if atom.function == "mod":
            return {}, {(): divisor - 1}
        if atom.function == "floordiv":
            low = atom.left - (divisor - 1)
            return _divided(low, divisor), _divided(atom.left, divisor)
        return None

    def has_sign(self, atom: Atom, power: int) -> bool:
        """Is it never negative?"""
        least = self.least(atom)
        return least is not None and least >= 0

    def order(self, atom: Atom) -> tuple[bool, str]:
        """Quotients before the indices in them."""
        return isinstance(atom, Axis), atom.key


@lru_cache(maxsize=4096)
def _at_least_zero(dim: Dim, least_size: int) -> bool:
    if dim.least is not None and dim.least >= 0:
        return True
    return nonnegative(dict(dim.terms), _Ranges(lambda size: least_size))


def _divided(dim: Dim, divisor: int) -> Terms:
    return {monomial: Fraction(value, divisor) for monomial, value in dim.terms}


def _substitute(atom: Atom, mapping: Mapping[Atom, Dim]) -> Dim:
    """An atom with others put for those inside it."""
    if isinstance(atom, Element):
        indices = tuple(index.substitute(mapping) for index in atom.indices)
        return Dim.of(Element(atom.tensor, indices))
    if isinstance(atom, Derived):
        build = _BUILD[atom.function]
        return build(atom.left.substitute(mapping), atom.right.substitute(mapping))
    return Dim.of(atom)


def _split(left: Dim, right: Dim) -> tuple[Dim, Dim]:
    """``(q, r)`` with ``left == q * right + r``, q as large as term-wise division gives."""
    quotient, rest = Dim({}), Dim({})
    if len(right.terms) != 1:
        exact = left.exact_quotient(right)
        return (exact, rest) if exact is not None else (quotient, left)
    lead, lead_value = right.terms[0]
    for monomial, value in left.terms:
        shared = divide(monomial, lead)
        whole = value // lead_value if shared is not None else 0
        if shared is not None and whole:
            quotient = quotient + Dim({shared: whole})
        rest = rest + Dim({monomial: value - whole * lead_value if shared is not None else value})
    return quotient, rest


def _in_range(value: Dim, bound: Dim) -> bool:
    """Is ``0 <= value < bound`` for all sizes >= 1 and all indices in range?"""
    return value.at_least(0, least_size=1) and (bound - 1 - value).at_least(0, least_size=1)


def _floordiv(left: Dim, right: Dim) -> Dim:
    if right == 1:
        return left
    if left.constant is not None and right.constant:
        return Dim.of(left.constant // right.constant)
    quotient, rest = _split(left, right)
    if _in_range(rest, right):
        return quotient
    if not quotient.terms:
        return Dim.of(Derived("floordiv", left, right))
    return quotient + _floordiv(rest, right)


def _mod(left: Dim, right: Dim) -> Dim:
    if right == 1:
        return Dim({})
    if left.constant is not None and right.constant:
        return Dim.of(left.constant % right.constant)
    _, rest = _split(left, right)
    return rest if _in_range(rest, right) else Dim.of(Derived("mod", rest, right))


def minimum(left: DimLike, right: DimLike) -> Dim:
    """The lesser of two integer expressions."""
    return _extreme("min", Dim.of(left), Dim.of(right))


def maximum(left: DimLike, right: DimLike) -> Dim:
    """The greater of two integer expressions."""
    return _extreme("max", Dim.of(left), Dim.of(right))


def _extreme(function: str, left: Dim, right: Dim) -> Dim:
    if (right - left).at_least(0):
        return left if function == "min" else right
    if (left - right).at_least(0):
        return right if function == "min" else left
    return Dim.of(Derived(function, *sorted((left, right), key=lambda dim: dim.key)))


def product(dims: tuple[DimLike, ...] | list[DimLike] | tuple[Dim, ...] | list[Dim]) -> Dim:
    """The product of sizes; 1 for none."""
    total = Dim.of(1)
    for dim in dims:
        total = total * dim
    return total


_BUILD: dict[str, Callable[[Dim, Dim], Dim]] = {
    "floordiv": _floordiv,
    "mod": _mod,
    "min": minimum,
    "max": maximum,
}
