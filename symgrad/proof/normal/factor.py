"""Factoring: integers into primes, polynomials into irreducible ones.

In: a rational number, or a primitive polynomial.  Out: factors with their multiplicities.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm
from typing import Any

from symgrad.budgets import FACTORED_ATOMS, FACTORED_DEGREE, FACTORED_TERMS
from symgrad.proof.normal.atoms import EXP, Atom, Number
from symgrad.proof.normal.context import Proof
from symgrad.proof.normal.poly import Poly, exact, ordered

_PRIME_COUNTS = frozenset((2, 3, 5, 7, 11, 13, 17, 19, 23))

Shape = tuple[tuple[tuple[int, ...], Number], ...]


def prime_powers(value: Fraction) -> list[tuple[int, int]]:
    """The primes of a positive rational number with their exponents."""
    below = [(prime, -times) for prime, times in _integer_primes(value.denominator)]
    return [*_integer_primes(value.numerator), *below]


@lru_cache(maxsize=4096)
def _integer_primes(value: int) -> tuple[tuple[int, int], ...]:
    from flint import fmpz

    return tuple(sorted((int(prime), int(times)) for prime, times in fmpz(value).factor()))


def irreducible_factors(context: Proof, base: Poly) -> list[tuple[Poly, int]]:
    """The irreducible factors over the rationals of a primitive polynomial.  [rule: factor].

    Their product is exactly ``base``.  What is too large to factor is returned whole.
    """
    memo = context.memo.setdefault("factors", {})
    found = memo.get(base)
    if found is None:
        found = memo[base] = _find_factors(base)
    known: list[tuple[Poly, int]] = found
    return known


def _find_factors(base: Poly) -> list[tuple[Poly, int]]:
    whole = [(base, 1)]
    if not 2 <= len(base.terms) <= FACTORED_TERMS:
        return whole
    atoms = sorted({a for m in base.terms for a, _ in m}, key=lambda a: (a.erased, a.key))
    multilinear = all(abs(e) == 1 for m in base.terms for _, e in m)
    if len(atoms) > FACTORED_ATOMS or (multilinear and len(base.terms) in _PRIME_COUNTS):
        return whole
    scales = _denominators(base, atoms)
    found = _split(base, atoms, scales)
    if found is None or sum(len(part.terms) for part, _ in found) > 2 * len(base.terms) + 2:
        coarse = _common_steps(base, atoms, scales)
        if coarse != scales:  # exp(11 x) + 1 has factors in exp(x), but they are long
            found = _split(base, atoms, coarse)
    return whole if found is None else found


def _split(
    base: Poly, atoms: list[Atom], scales: Sequence[Number]
) -> list[tuple[Poly, int]] | None:
    """The factors as polynomials in ``atom**(1 / scale)``; None where there is but one."""
    shape = _shape(base, atoms, scales)
    split = None if shape is None else _factor_shape(shape)
    if split is None:
        return None
    sign, parts = split
    result = []
    for part, times in parts:
        poly = _from_shape(part, atoms, scales)
        if poly.terms[poly.lead] < 0:
            poly, sign = -poly, sign * (-1 if times % 2 else 1)
        result.append((poly, times))
    return result if sign == 1 else None


def _common_steps(base: Poly, atoms: list[Atom], scales: list[int]) -> list[Number]:
    """Of exponentials, and of what has fractional exponents, the greatest common exponent."""
    found: list[Number] = []
    for atom, scale in zip(atoms, scales, strict=True):
        step = gcd(*(int(e * scale) for m in base.terms for a, e in m if a is atom))
        free = atom.kind == EXP or scale > 1
        found.append(Fraction(scale, step) if free and step > 1 else scale)
    return found


def _denominators(base: Poly, atoms: list[Atom]) -> list[int]:
    scales = dict.fromkeys(atoms, 1)
    for monomial in base.terms:
        for atom, exponent in monomial:
            scales[atom] = lcm(scales[atom], Fraction(exponent).denominator)
    return [scales[atom] for atom in atoms]


def _shape(base: Poly, atoms: list[Atom], scales: Sequence[Number]) -> Shape | None:
    rows = []
    for monomial, value in base.terms.items():
        exponents = dict(monomial)
        row = tuple(int(exponents.get(a, 0) * s) for a, s in zip(atoms, scales, strict=True))
        if any(exponent < 0 for exponent in row) or sum(row) > FACTORED_DEGREE:
            return None
        rows.append((row, value))
    return tuple(sorted(rows))


def _from_shape(shape: Shape, atoms: list[Atom], scales: Sequence[Number]) -> Poly:
    terms = {}
    for row, value in shape:
        exponents: dict[Atom, Number] = {
            a: exact(Fraction(e) / s) for a, e, s in zip(atoms, row, scales, strict=True) if e
        }
        terms[ordered(exponents)] = value
    return Poly(terms)


@lru_cache(maxsize=8192)
def _factor_shape(shape: Shape) -> tuple[int, tuple[tuple[Shape, int], ...]] | None:
    """The sign and the factors of a polynomial given by its terms; None when irreducible.

    The coefficients are integers without a common factor; else None, too, and where FLINT gives up.
    """
    from flint import Ordering, fmpz_mpoly_ctx

    if any(Fraction(value).denominator != 1 for _, value in shape):
        return None
    names = tuple(f"z{place}" for place in range(len(shape[0][0])))
    poly = fmpz_mpoly_ctx.get(names, Ordering.lex).from_dict(
        {row: int(Fraction(value)) for row, value in shape}
    )
    try:
        unit, parts = poly.factor()
    except OverflowError:  # python-flint orders the factors by machine integers
        return None
    check = poly.context().constant(unit)
    for part, times in parts:
        check *= part**times
    if check != poly or unit not in (1, -1) or (len(parts) == 1 and parts[0][1] == 1):
        return None
    found = [(tuple(sorted(_rows(part))), int(times)) for part, times in parts]
    return int(unit), tuple(sorted(found, key=lambda one: _complexity(*one)))


def _rows(part: Any) -> Iterator[tuple[tuple[int, ...], int]]:
    for row, value in part.to_dict().items():
        yield tuple(map(int, row)), int(value)


def _complexity(rows: Shape, times: int) -> tuple[Any, ...]:
    """Orders factors: by the degree in the first variable, the multiplicity, the coefficients."""
    return max(row[0] for row, _ in rows), times, rows[::-1]
