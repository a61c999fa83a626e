"""Does ``int64_t`` hold what the C computes of sizes?

In: each integer that the C computes, as it computes it.  Out: ``Limits``, which sizes have to meet
so that none overflows; or ``NotShown``, with the line.

It is granted that an array that is passed has less than 2^50 elements, that it reaches over less
than 2^50 of them with its strides, and that each size and each stride is less than that, also if
each size that is 0 were 1.  An integer is bounded by a sum of products of sizes.  It fits where
each divides what is granted, and no more than 8191 are added.  Another product is a limit, if it
is the length of something that the graph computes; so is what is granted, with a large factor,
if 2^47 are left to it; else nothing is shown.  An integer that is computed of elements of ``int64``
arrays, which nothing bounds, has to be one that the graph computes (``data.py``); that is taken not
to overflow, as the proof takes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from itertools import product
from typing import TypeGuard

from symgrad.ir.atoms import Monomial, divide, multiply
from symgrad.ir.dim import Atom, Axis, Derived, Dim, Element, Size
from symgrad.ir.expr import Call, Expr, IntValue, Literal, Reduce
from symgrad.validate.source import INTEGERS
from symgrad.validate.symbolic.data import Data, merged
from symgrad.validate.symbolic.integers import TRIPS, Integers, coefficient, put, uppers
from symgrad.validate.symbolic.memory import NotShown
from symgrad.validate.symbolic.values import Values, is_defined

BITS = 50
"""A product that is granted is less than 2 to the power of this."""
_LARGEST = INTEGERS["int64_t"][1]
_LEAST_BITS = 47
"""Fewer bits than that are not stated as a limit."""
_LARGE = 64
"""With a larger factor what is granted may have a limit of its own."""
_NEAR = 8
"""Bits that a limit may lose for another, which divides it, to follow from it."""
_MOST_WAYS = 8
"""Bounds of one integer that are looked at."""

Bound = dict[Monomial, Fraction]
"""A sum of products of sizes, with factors of at least 0."""
Ways = tuple[Bound, ...]
"""Bounds, each of which holds."""
_NOTHING: Ways = ({},)


class Unbounded(Exception):
    """Nothing bounds an integer."""


class Limits:
    """What sizes have to meet.

    ``allowed``: products that may be limits.  With a product, each that divides it is granted, or
    allowed.
    """

    def __init__(self, allowed: Iterable[Dim]) -> None:
        self._granted: dict[Monomial, None] = {}
        self._nearly: dict[Monomial, Dim] = {}
        lengths = tuple(allowed)
        less = (found[0] for one in lengths if (found := _lessened(one)) is not None)
        self._allowed = [*_products(lengths), *less]
        self._stated: dict[Monomial, int] = {}

    def grant(self, *products: Dim) -> None:
        """These are less than 2^50 by themselves."""
        self._granted.update(dict.fromkeys(_products(products)))
        for one in products:
            if (found := _lessened(one)) is not None:
                self._nearly.setdefault(*found)

    def by_granted(self, way: Bound) -> Bound:
        """The bound with ``a*b`` as ``(a - 2)*b + 2*b``, where the first of these is granted."""
        made: Bound = {}
        for one, factor in way.items():
            less = None if self.grants(one) else self._nearly.get(one)
            parts = {one: factor}
            if less is not None:  # what is granted is as large as a size may be
                parts = {((Size("#granted"), 1),): factor}
                parts |= {key: factor * times for key, times in less.terms}
            made = _plus(made, parts)
        return made

    def grants(self, one: Monomial) -> bool:
        """Is a product of sizes small enough, whatever is stated?"""
        return sum(power for _, power in one) <= 1 or _divides(one, self._granted)

    def allows(self, one: Monomial) -> bool:
        """May it be a limit?"""
        return _divides(one, self._allowed)

    def state(self, products: Mapping[Monomial, int]) -> None:
        """Each has to be less than 2 to the power of its number."""
        for one, bits in products.items():
            self._stated[one] = min(bits, self._stated.get(one, bits))

    @property
    def stated(self) -> tuple[str, ...]:
        """The limits as texts, those left out that follow from others, made a little stricter."""
        bits = dict(self._stated)
        for one in self._stated:
            most = bits[one]
            longer = [
                other for other, own in bits.items()
                if other != one and own <= most + _NEAR and divide(other, one) is not None
            ]  # fmt: skip
            for other in longer:
                bits[other] = min(bits[other], most)
            if longer:
                del bits[one]
        return tuple(sorted(f"{Dim({one: 1})} < 2**{most}" for one, most in bits.items()))


class Reach:
    """The integers that the C computes on one way through a kernel.

    ``data``: what the graph computes, where it computes of elements.
    """

    def __init__(
        self, integers: Integers, values: Values, limits: Limits, data: Data | None = None
    ) -> None:
        self._integers, self._values, self._limits = integers, values, limits
        self._data = data
        self._merged: dict[tuple[str, int], Dim] = {}
        self._seen: set[Dim] = set()
        self._named: dict[Atom, tuple[Dim, ...]] = {}
        self._of: dict[Dim, Ways] = {}
        self._of_products: dict[Monomial, Ways] = {}
        self._simple: dict[Monomial, bool] = {}
        self._wanted: dict[Monomial, int] = {}
        self._problem: NotShown | None = None

    def named(self, atom: Atom, values: Iterable[Dim]) -> None:
        """An integer that is one of these."""
        self._named[atom] = tuple(values)

    def computed(self, value: Dim, line: int) -> None:
        """The C computes this in a signed type."""
        if value in self._seen or self._problem is not None:
            return
        constant = value.constant
        if constant is not None:
            fits = -_LARGEST - 1 <= constant <= _LARGEST
        elif isinstance(value.atom, Element):
            fits = True  # where it comes from it was stored, or computed
        elif any(map(_is_element, value.atoms)):  # what is known of it depends on the place
            wanted = dict(self._wanted)
            with self._here():
                fits = self._fits(value) and self._fits(-value)
            if not fits:
                self._wanted = wanted
                fits = self._data is not None and self._data.has(value)
                if not fits and self._data is not None and (array := merged(value)):
                    self._merged[array, line] = value
                    fits = True
        else:
            self._seen.add(value)
            fits = self._fits(value) and self._fits(-value)
        if not fits:
            self._problem = NotShown(f"{value} may overflow", line)

    @contextmanager
    def _here(self) -> Iterator[None]:
        """Within, nothing is kept."""
        kept = self._of, self._of_products, self._simple
        self._of, self._of_products, self._simple = {}, {}, {}
        try:
            yield
        finally:
            self._of, self._of_products, self._simple = kept

    def summed(self, array: str, line: int, kind: str, part: Expr) -> None:
        """A loop adds ``part`` to each element of an array; what that is, is known now."""
        waits = (array, line) in self._merged
        if waits and self._data is not None and self._data.adds(kind, part):
            del self._merged[array, line]

    def converted(self, value: Expr, line: int) -> None:
        """The C makes an integer of a float that is no constant."""
        if self._data is not None and not self._data.converts(value):
            raise NotShown("a float becomes an integer, which it does not in the graph", line)

    def settle(self) -> None:
        """The limits that were met; raises NotShown for what no limit prevents."""
        if self._problem is not None:
            raise self._problem
        for (_, line), value in self._merged.items():
            raise NotShown(f"{value} may overflow", line)
        self._limits.state(self._wanted)

    def _fits(self, side: Dim) -> bool:
        """Is it at most the largest number, under limits that may be stated?"""
        try:
            ways = self._above(side)
        except Unbounded:
            return False
        every = (*ways, *map(self._limits.by_granted, ways))
        for needed, bounds in ((self._needed, every), (self._needed_of_granted, ways)):
            found = [one for one in map(needed, bounds) if one is not None]
            if found:
                for one, bits in min(found, key=len).items():
                    self._wanted[one] = min(bits, self._wanted.get(one, bits))
                return True
        return False

    def _needed(self, way: Bound) -> dict[Monomial, int] | None:
        """The limits under which a bound is no larger than the largest number, if there are any."""
        beyond = [one for one in way if not self._limits.grants(one)]
        if not all(map(self._limits.allows, beyond)):
            return None
        return _bits(way, beyond, BITS)

    def _needed_of_granted(self, way: Bound) -> dict[Monomial, int] | None:
        """The same, with limits of what is granted as well."""
        if not all(self._limits.grants(one) or self._limits.allows(one) for one in way):
            return None
        large = [
            one for one, factor in way.items()
            if one and (factor > _LARGE or not self._limits.grants(one))
        ]  # fmt: skip
        return _bits(way, large, _LEAST_BITS)

    # -- bounds

    def _above(self, value: Dim) -> Ways:
        """Bounds of a value; each holds.  Raises Unbounded."""
        if value not in self._of:
            self._of[value] = self._fewest(self._bounds(value))
        return self._of[value]

    def _bounds(self, value: Dim) -> Iterable[Bound]:
        for atom in _minima(value):
            sides = [self._above(put(value, {atom: one})) for one in (atom.left, atom.right)]
            return (*sides[0], *sides[1]) if self._rises(value, atom) else _joined(*sides)
        for rest, part in self._without_remainders(value):
            return _sums(self._above(rest), self._above(part))
        found = _NOTHING
        for monomial, factor in value.terms:
            if factor < 0 and self._are_natural(monomial):
                continue
            ways = tuple(_times(one, abs(factor)) for one in self._of_product(monomial))
            found = self._fewest(_sums(found, ways))
        return found

    def _rises(self, value: Dim, atom: Derived) -> bool:
        """Is a value the larger the larger an atom is?"""
        slope = coefficient(value, atom)
        return slope is not None and self._is_sum(slope)

    def _without_remainders(self, value: Dim) -> Iterator[tuple[Dim, Dim]]:
        """``(rest, part)``, whose sum is no less, with ``x - b*(x // b)`` as a part below ``b``."""
        quotients = [
            one for monomial, _ in value.terms for one, _ in monomial
            if _is_quotient(one)
        ]  # fmt: skip
        for atom in quotients:
            slope = coefficient(value, atom)
            finer = [one for one in quotients if one != atom and one.left == atom.left]
            bases = [(atom.left, atom.right)]
            for one in finer:
                ratio = atom.right.exact_quotient(one.right)
                if ratio is not None:
                    bases.append((Dim.of(one), ratio))
            if slope is None:
                continue
            for base, ratio in bases:
                for times in _factors(slope, ratio):
                    rest = value - times * (base - ratio * Dim.of(atom))
                    if len(rest.terms) < len(value.terms) and self._are_natural(times.terms[0][0]):
                        yield rest, times * (ratio - 1) if times.terms[0][1] > 0 else Dim.of(0)

    def _of_product(self, monomial: Monomial) -> Ways:
        """Bounds of the absolute value of a product."""
        if not monomial:
            return ({(): Fraction(1)},)
        if monomial not in self._of_products:
            ways = (*self._by_facts(monomial), *self._by_factor(monomial))
            self._of_products[monomial] = self._fewest(ways)
        return self._of_products[monomial]

    def _by_factor(self, monomial: Monomial) -> Iterable[Bound]:
        """By what one factor is at most, of those that depend on most."""
        deepest = max(_depth(one) for one, _ in monomial)
        found: list[Bound] = []
        for atom, _ in monomial:
            if _depth(atom) == deepest:
                with suppress(Unbounded):
                    found += self._by_atom(monomial, atom)
        if not found:
            raise Unbounded
        return found

    def _by_atom(self, monomial: Monomial, atom: Atom) -> Iterable[Bound]:
        if isinstance(atom, Size):
            return [{monomial: Fraction(1)}]
        rest = divide(monomial, ((atom, 1),))
        assert rest is not None
        if _is_quotient(atom):
            return _by_pairs(self._of_quotient(atom), self._of_product(rest))
        choices = self._choices(atom)
        if choices is not None:
            with suppress(Unbounded):
                ways = self._times_rest(choices[0], rest)
                for one in choices[1:]:
                    ways = self._fewest(_joined(ways, self._times_rest(one, rest)))
                return ways
        return [
            _times(way, Fraction(1, divisor))
            for one, divisor in self._at_most(atom)
            for way in self._times_rest(one, rest)
        ]

    def _of_quotient(self, atom: Derived) -> Ways:
        """Bounds of a quotient: terms of the whole, divided where they can be."""
        monomial, factor = atom.right.terms[0] if len(atom.right.terms) == 1 else ((), 1)
        parts = tuple((one, power) for one, power in monomial if isinstance(one, Size))
        less = _lessened(atom.right)
        if less is not None and (most := less[1].constant) is not None:
            # n <= (1 + c) * |n - c|, as n - c is not 0
            return tuple(_divided(way, less[0], 1 + most) for way in self._above(atom.left))
        return tuple(
            _times(_divided(way, parts), Fraction(1, max(1, factor)))
            for way in self._above(atom.left)
        )

    def _times_rest(self, one: Dim, rest: Monomial) -> Ways:
        """Bounds of the absolute value of a product."""
        if self._are_natural(rest):
            return self._absolute(one * Dim({rest: 1}))
        return self._fewest(_by_pairs(self._absolute(one), self._of_product(rest)))

    def _absolute(self, value: Dim) -> Ways:
        if self._is_sum(value):
            return self._above(value)
        return self._fewest(_joined(self._above(value), self._above(-value)))

    def _by_facts(self, monomial: Monomial) -> Iterator[Bound]:
        """Bounds of products with what is bounded beside a factor, as ``step * i < length``."""
        for atom, _ in monomial:
            for part, whole, factor in self._beside(atom):
                rest = divide(monomial, part)
                if rest is not None and self._are_natural(rest) and self._are_natural(part):
                    for one in self._above(whole * Dim({rest: 1})):
                        yield _times(one, Fraction(1, factor))

    def _beside(self, atom: Atom) -> Iterator[tuple[Monomial, Dim, int]]:
        """``(part, whole, factor)`` with ``factor * part <= whole``, an atom being in ``part``."""
        if isinstance(atom, Axis):
            for fact in self._integers.said_of(atom):
                yield from _lesser(fact, atom)
        if _is_quotient(atom) and self._is_sum(atom.right):
            for divisor, factor in atom.right.terms:
                yield multiply(divisor, ((atom, 1),)), atom.left, factor

    def _choices(self, atom: Atom) -> tuple[Dim, ...] | None:
        """What it is one of; None where that is not known."""
        if atom in self._named:
            return self._named[atom]
        if not is_defined(atom):
            return None
        made = self._values.definition(atom)
        if isinstance(made, (IntValue, Literal)):
            return (self._values.integer(made),)
        if isinstance(made, Reduce) and made.kind in ("max", "min") and made.dtype.is_integer:
            return (self._values.integer(made.body),)
        if isinstance(made, Call) and made.function in ("where", "maximum", "minimum"):
            return tuple(self._values.integer(one) for one in made.operands[-2:])
        return None

    def _at_most(self, atom: Atom) -> Iterable[tuple[Dim, int]]:
        """``(whole, divisor)``: the absolute value of an atom is at most their quotient."""
        if isinstance(atom, Axis):
            return [(one - 1, 1) for one in uppers(atom.extent)]
        if isinstance(atom, Element):
            return self._of_element(atom)
        raise Unbounded

    def _of_element(self, atom: Element) -> Iterable[tuple[Dim, int]]:
        if atom.tensor == TRIPS:
            return [(atom.indices[0], 1)]
        if atom.tensor.startswith("#") and not atom.indices:
            return [(Dim.of(INTEGERS["int"][1]), 1)]
        if is_defined(atom):
            made = self._values.definition(atom)
            if isinstance(made, Reduce) and made.kind in ("argmax", "argmin"):
                return [(made.axis.extent, 1)]
        facts = list(self._integers.facts_of(atom))
        ends = [
            (whole, factor)
            for fact in facts
            for part, whole, factor in _lesser(fact, atom)
            if part == ((atom, 1),)
        ]
        gaps = [(Dim.of(atom) - fact).constant for fact in facts]
        least = max((one for one in gaps if one is not None), default=None)
        if least is not None and least < 0:
            known = [abs(whole.constant) for whole, one in ends if one == 1 and whole.constant]
            ends = [(Dim.of(max(-least, one)), 1) for one in known]
        if not ends or least is None:
            raise Unbounded
        return ends

    def _are_natural(self, monomial: Monomial) -> bool:
        if monomial not in self._simple:
            self._simple[monomial] = all(self._natural(atom) for atom, _ in monomial)
        return self._simple[monomial]

    def _is_sum(self, value: Dim) -> bool:
        """Is each term known to be at least 0?"""
        return all(factor > 0 and self._are_natural(one) for one, factor in value.terms)

    def _natural(self, atom: Atom) -> bool:
        """Is it known to be at least 0?  What is divided is, by what is at least 1."""
        if isinstance(atom, Element):
            return self._integers.is_natural(atom)
        return isinstance(atom, (Size, Axis)) or _is_quotient(atom)

    def _fewest(self, ways: Iterable[Bound]) -> Ways:
        """Some of the bounds, the simplest ones, each once."""
        found: list[Bound] = []
        for one in sorted(ways, key=self._weight):
            if not any(_below(other, one) for other in found):
                found.append(one)
        return tuple(found[:_MOST_WAYS])

    def _weight(self, one: Bound) -> tuple[int, Fraction | int]:
        beyond = sum(not self._limits.grants(key) for key in one)
        return beyond, sum(value if key else value / 2**BITS for key, value in one.items())


# -- helpers


def _bits(way: Bound, needed: Sequence[Monomial], least: int) -> dict[Monomial, int] | None:
    """Of how many bits these may be, the others being as large as is granted."""
    others = [
        factor * (2**BITS - 1) if one else factor
        for one, factor in way.items() if one not in needed
    ]  # fmt: skip
    rest, total = _LARGEST - sum(others, Fraction(0)), sum(way[one] for one in needed)
    found = [one for one in range(least, _LARGEST.bit_length() + 1) if total * (2**one - 1) <= rest]
    return dict.fromkeys(needed, found[-1]) if found else None


def _factors(slope: Dim, ratio: Dim) -> Iterator[Dim]:
    """What a remainder may be multiplied by, where its quotient is multiplied by a slope."""
    pairs = product(slope.terms, ratio.terms)
    found = (
        (divide(whole, part), -factor, times) for (whole, factor), (part, times) in pairs
    )  # fmt: skip
    yield from dict.fromkeys(
        Dim({rest: factor // times})
        for rest, factor, times in found if rest is not None and factor % times == 0
    )  # fmt: skip


def _lesser(fact: Dim, atom: Atom) -> Iterator[tuple[Monomial, Dim, int]]:
    """What a fact bounds of products that an atom is a factor of."""
    for monomial, factor in fact.terms:
        if factor < 0 and any(one == atom for one, _ in monomial):
            whole = fact - Dim({monomial: factor})
            if atom not in whole.atoms:
                yield monomial, whole, -factor


def _minima(value: Dim) -> list[Derived]:
    """A minimum in a sum, if there is one, which lies in no other."""
    found = [
        atom for monomial, _ in value.terms for atom, _ in monomial
        if isinstance(atom, Derived) and atom.function == "min"
    ]  # fmt: skip
    return [one for one in found if not any(one in other.atoms for other in found if other != one)][
        :1
    ]


def _products(dims: Iterable[Dim]) -> list[Monomial]:
    """The products of sizes in sums of them; a sum that something is subtracted from has none."""
    return [
        monomial
        for one in dims
        if all(factor > 0 for _, factor in one.terms)
        for monomial, _ in one.terms
        if all(isinstance(atom, Size) for atom, _ in monomial)
    ]


def _divides(one: Monomial, others: Iterable[Monomial]) -> bool:
    return any(divide(other, one) is not None for other in others)


def _plus(one: Bound, other: Bound) -> Bound:
    return {key: one.get(key, Fraction(0)) + other.get(key, Fraction(0)) for key in one | other}


def _join(one: Bound, other: Bound) -> Bound:
    return {key: max(one.get(key, Fraction(0)), other.get(key, Fraction(0))) for key in one | other}


def _joined(one: Ways, other: Ways) -> Ways:
    return tuple(_join(left, right) for left, right in product(one, other))


def _sums(one: Ways, other: Ways) -> Ways:
    return tuple(_plus(left, right) for left, right in product(one, other))


def _divided(one: Bound, parts: Monomial, times: int = 1) -> Bound:
    """The terms that are a multiple of ``parts`` divided by it, and multiplied by ``times``."""
    made: Bound = {}
    for key, value in one.items():
        less = divide(key, parts)
        key, value = (key, value) if less is None else (less, value * times)
        made[key] = made.get(key, Fraction(0)) + value
    return made


def _lessened(one: Dim) -> tuple[Monomial, Dim] | None:
    """``(product, rest)``: a product of sizes is at most ``one`` and a rest that was taken off."""
    above = {key: sum(power for _, power in key) for key, factor in one.terms if factor > 0}
    rest = Dim({key: -factor for key, factor in one.terms if factor < 0})
    longest = [key for key, length in above.items() if length == max(above.values())]
    sizes = all(isinstance(atom, Size) for key, _ in one.terms for atom, _ in key)
    if len(longest) != 1 or not longest[0] or not rest.terms or not sizes:
        return None
    return longest[0], rest


def _times(one: Bound, factor: int | Fraction) -> Bound:
    return {key: value * factor for key, value in one.items()}


def _by_pairs(one: Ways, other: Ways) -> Ways:
    return tuple(_product(left, right) for left, right in product(one, other))


def _product(one: Bound, other: Bound) -> Bound:
    made: Bound = {}
    for (left, a), (right, b) in product(one.items(), other.items()):
        key = multiply(left, right)
        made[key] = made.get(key, Fraction(0)) + a * b
    return made


def _below(one: Bound, other: Bound) -> bool:
    return all(value <= other.get(key, 0) for key, value in one.items())


def _depth(atom: Atom) -> int:
    """How many integers it depends on, one through the other."""
    inside = atom.extent.atoms if isinstance(atom, Axis) else atom.atoms - {atom}
    return 0 if isinstance(atom, Size) else 1 + max(map(_depth, inside), default=0)


def _is_element(atom: Atom) -> bool:
    return isinstance(atom, Element) and not atom.tensor.startswith("#")


def _is_quotient(atom: Atom) -> TypeGuard[Derived]:
    return isinstance(atom, Derived) and atom.function == "floordiv"
