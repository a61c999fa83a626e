"""Bounds of integer polynomials: is one at least 0 wherever its atoms lie in their ranges?

In: terms ``{monomial: coefficient}`` with monomials as ``((atom, power), ...)``, sorted by
``atom.key``, and the ranges of the atoms.  Out: a yes that is a proof; a no means "not shown".

``Dim``, the facts about sizes in a trace and the normal form of a proof ask here; each knows the
ranges of its own atoms.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol

from symgrad.budgets import BOUND_STEPS

Number = int | Fraction
Terms = Mapping[tuple[tuple[Any, Any], ...], Number]


class Ranges(Protocol):
    """Where the values of atoms lie."""

    def least(self, atom: Any) -> int | None:
        """A number that the atom never falls below, if there is one."""

    def ends(self, atom: Any) -> tuple[Terms, Terms] | None:
        """The least and the greatest value over other atoms; None for one without a greatest."""

    def has_sign(self, atom: Any, power: Any) -> bool:
        """Is this power of the atom never negative?"""

    def order(self, atom: Any) -> Any:
        """What sorts atoms with ends: those whose ends are made of others come first."""


def nonnegative(terms: Terms, ranges: Ranges, *, whole: bool = True) -> bool:
    """Is a polynomial at least 0 wherever its atoms lie in their ranges?

    An atom with two ends that occurs linearly, with one sign, goes to the end that makes the
    polynomial least.  The others are written as their least value and more; then no coefficient
    may be negative.  ``whole``: the value bounds an integer, which is at least 0 where it is more
    than -1.
    """
    for _ in range(BOUND_STEPS):
        if _plainly_nonnegative(terms, ranges, whole):
            return True
        step = _at_an_end(terms, ranges)
        if step is None:
            return False
        terms = step
    return False


def _plainly_nonnegative(terms: Terms, ranges: Ranges, whole: bool) -> bool:
    for atom in _atoms(terms):
        least = ranges.least(atom)
        if least is None:
            return False
        if least:
            terms = replaced(terms, atom, {((atom, 1),): 1, (): least})
    return all(value >= 0 or (whole and not m and value > -1) for m, value in terms.items())


def _at_an_end(terms: Terms, ranges: Ranges) -> Terms | None:
    """The polynomial with one atom at the end of its range that makes it least."""
    for atom in sorted(_atoms(terms), key=ranges.order):
        ends = ranges.ends(atom)
        if ends is not None:
            holders = {m: value for m, value in terms.items() if any(a == atom for a, _ in m)}
            if _is_monotone(atom, holders, ranges):
                return replaced(terms, atom, ends[next(iter(holders.values())) < 0])
    return None


def _is_monotone(atom: Any, holders: Terms, ranges: Ranges) -> bool:
    """Does it occur linearly, with coefficients of one sign and cofactors that are not negative?"""
    if len({value < 0 for value in holders.values()}) > 1:
        return False
    return all(
        power == 1 if other == atom else ranges.has_sign(other, power)
        for monomial in holders
        for other, power in monomial
    )


def _atoms(terms: Terms) -> dict[Any, None]:
    return {atom: None for monomial in terms for atom, _ in monomial}


def replaced(terms: Terms, atom: Any, value: Terms) -> dict[Any, Number]:
    """Put a polynomial for an atom where it is a factor to a positive integer power."""
    result: dict[Any, Number] = {}
    alone = ((atom, 1),)
    for monomial, coefficient in terms.items():
        if monomial == alone:
            for product, own in value.items():
                result[product] = result.get(product, 0) + coefficient * own
            continue
        part: Terms = {monomial: coefficient}
        for own, power in monomial:
            if own == atom:
                part = {tuple(item for item in monomial if item[0] != atom): coefficient}
                for _ in range(power):
                    part = _product(part, value)
        for product, own in part.items():
            result[product] = result.get(product, 0) + own
    return {product: own for product, own in result.items() if own}


def _product(left: Terms, right: Terms) -> Terms:
    result: dict[Any, Number] = {}
    for first, value in left.items():
        for second, factor in right.items():
            powers = dict(first)
            for atom, power in second:
                powers[atom] = powers.get(atom, 0) + power
            key = tuple(sorted(powers.items(), key=_by_key))
            result[key] = result.get(key, 0) + value * factor
    return result


def _by_key(item: tuple[Any, Any]) -> Any:
    return item[0].key
