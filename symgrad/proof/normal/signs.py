"""What is known of signs and ranges: sufficient tests that never guess.

In: polynomials and the facts of the context.  Out: booleans; False means "not proved".
"""

from __future__ import annotations

import math
from fractions import Fraction

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import counts, integers
from symgrad.proof.normal.atoms import Atom, Number
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.facts import Interval
from symgrad.proof.normal.poly import (
    ONE,
    Poly,
    constant,
    exact,
    in_terms,
    of_atom,
    ordered,
    plain_product,
)

UNKNOWN, NONNEGATIVE, POSITIVE = 0, 1, 2
MOST_ENDS = 3
_INTEGRAL = (
    kinds.INDEX, kinds.SIZE, kinds.ARGMAX, kinds.FLOORDIV, kinds.EQUAL, kinds.ATLEAST,
)  # fmt: skip
_BOUNDED = {
    "erf": Interval(Fraction(-1), Fraction(1)),
    "sin": Interval(Fraction(-1), Fraction(1), False, False),
    "cos": Interval(Fraction(-1), Fraction(1), False, False),
}


def factor_sign(context: Context, atom: Atom, exponent: Number) -> int:
    """The sign of ``atom**exponent`` wherever it is defined.  [rule: signs]."""
    kind = atom.kind
    if kind in (kinds.EXP, kinds.SIZE, kinds.NUMBER):
        return POSITIVE
    if atom.indicator:
        return NONNEGATIVE
    if isinstance(exponent, Fraction):
        positive = kind == kinds.POWER and is_positive(context, atom.data[0])
        return POSITIVE if positive or exponent < 0 else NONNEGATIVE
    own = _own_sign(context, atom)
    if own == POSITIVE or (own == NONNEGATIVE and exponent < 0):
        return POSITIVE
    if own == NONNEGATIVE or exponent % 2 == 0:
        return NONNEGATIVE
    return UNKNOWN


def _own_sign(context: Context, atom: Atom) -> int:
    kind, data = atom.kind, atom.data
    if context.in_domain and (known := context.domain.get(of_atom(atom))) is not None:
        return POSITIVE if known else NONNEGATIVE
    if kind == kinds.LEAF:
        if data[2] == "int" and context.facts.range_of(data[0]) is not None:
            return NONNEGATIVE
        if data[0] in context.facts.factors and data[1][-1] == data[1][-2]:
            return POSITIVE  # [rule: cholesky]
        interval = context.facts.intervals.get(data[0])
        if interval is None or interval.low is None or interval.low < 0:
            return UNKNOWN
        return POSITIVE if interval.low > 0 or interval.low_open else NONNEGATIVE
    if kind in (kinds.INDEX, kinds.ARGMAX):
        return NONNEGATIVE
    if kind == kinds.SUM:
        return min(factor_sign(context, a, e) for a, e in data[1])
    if kind == kinds.POWER:
        return _poly_sign(context, data[0])
    if kind in (kinds.MAXIMUM, kinds.PRODUCT):
        return _poly_sign(context, data[1])
    if is_floor(atom):
        ends = _floor_ends(context, atom)
        return NONNEGATIVE if ends is not None and (ends[0].constant or 0) >= 0 else UNKNOWN
    if kind == kinds.FLOORDIV:
        both = is_nonnegative(context, data[0]) and is_positive(context, data[1])
        return NONNEGATIVE if both else UNKNOWN
    return UNKNOWN


def _poly_sign(context: Context, poly: Poly) -> int:
    if is_positive(context, poly):
        return POSITIVE
    return NONNEGATIVE if is_nonnegative(context, poly) else UNKNOWN


def is_positive(context: Context, poly: Poly) -> bool:
    """Is ``poly > 0`` wherever it is defined?"""
    return _sign(context, poly) == POSITIVE


def is_nonnegative(context: Context, poly: Poly) -> bool:
    """Is ``poly >= 0`` wherever it is defined?"""
    return _sign(context, poly) != UNKNOWN


def _sign(context: Context, poly: Poly, ends: int = 0) -> int:
    """``ends``: how many bounded atoms have been put at an end already."""
    memo = context.memo.setdefault("sign", {})
    key = poly, ends, context.in_domain
    found = memo.get(key)
    if found is None:
        context.spend(1)
        found = memo[key] = _find_sign(context, poly, ends)
    known: int = found
    return known


def _find_sign(context: Context, poly: Poly, ends: int) -> int:
    if not poly.terms:
        return NONNEGATIVE
    if context.in_domain and poly in context.domain:  # [rule: domain]
        return POSITIVE if context.domain[poly] else NONNEGATIVE
    signs = [_term_sign(context, m, c) for m, c in poly.terms.items()]
    if UNKNOWN not in signs:
        return max(signs)
    if is_integral(context, poly):
        if integer_nonnegative(context, poly.plus(-1)):
            return POSITIVE
        return NONNEGATIVE if integer_nonnegative(context, poly) else UNKNOWN
    if ends >= MOST_ENDS or not _may_be_decided(context, poly):
        return UNKNOWN
    return _sign_at_ends(context, poly, ends)


def _may_be_decided(context: Context, poly: Poly) -> bool:
    """Does each term that is not plainly nonnegative hold an atom with known bounds?"""
    for monomial, value in poly.terms.items():
        if _term_sign(context, monomial, value) != UNKNOWN:
            continue
        bounded = [a for a, _ in monomial if _interval(context, a) is not None]
        free = [
            a for a, e in monomial
            if a not in bounded and factor_sign(context, a, e) == UNKNOWN
        ]  # fmt: skip
        if free or (not bounded and monomial):
            return False
    return True


def _term_sign(context: Context, monomial: kinds.Monomial, value: Number) -> int:
    if value < 0:
        return UNKNOWN
    return min((factor_sign(context, a, e) for a, e in monomial), default=POSITIVE)


def _sign_at_ends(context: Context, poly: Poly, ends: int) -> int:
    """The sign of a polynomial that is affine in an atom with known bounds.  [rule: signs]."""
    for atom in sorted({a for m in poly.terms for a, _ in m}, key=lambda a: a.key):
        interval = _interval(context, atom)
        if interval is None:
            continue
        slope, rest = _affine(poly, atom)
        if slope is None:
            continue
        found = _sign_between(context, slope, rest, interval, ends + 1)
        if found != UNKNOWN:
            return found
    return UNKNOWN


def _sign_between(context: Context, slope: Poly, rest: Poly, interval: Interval, ends: int) -> int:
    """The sign of ``slope * a + rest`` for a in the interval."""
    if interval.low is None and interval.high is None:
        return UNKNOWN
    if interval.low is None or interval.high is None:
        end, is_open = interval.low, interval.low_open
        if end is None and interval.high is not None:
            end, is_open, slope = interval.high, interval.high_open, -slope
            start = _sign(context, rest - slope.scaled(exact(end)), ends)
        else:
            start = _sign(context, rest + slope.scaled(exact(end or 0)), ends)
        away = _sign(context, slope, ends)
        if UNKNOWN in (start, away):
            return UNKNOWN
        return POSITIVE if start == POSITIVE or (is_open and away == POSITIVE) else NONNEGATIVE
    low = _sign(context, rest + slope.scaled(exact(interval.low)), ends)
    high = _sign(context, rest + slope.scaled(exact(interval.high)), ends)
    if UNKNOWN in (low, high):
        return UNKNOWN
    strict = (low == POSITIVE or interval.low_open) and (high == POSITIVE or interval.high_open)
    return POSITIVE if strict and POSITIVE in (low, high) else NONNEGATIVE


def _interval(context: Context, atom: Atom) -> Interval | None:
    if atom.kind == kinds.LEAF and atom.data[2] != "bool":
        return context.facts.intervals.get(atom.data[0])
    if atom.kind == kinds.FUNCTION:
        return _BOUNDED.get(atom.data[0])
    if atom.indicator:
        return Interval(Fraction(0), Fraction(1), False, False)
    return None


def _affine(poly: Poly, atom: Atom) -> tuple[Poly | None, Poly]:
    """``(slope, rest)`` with ``poly == slope * atom + rest``; no slope where it is not affine."""
    slope: dict[kinds.Monomial, Number] = {}
    rest: dict[kinds.Monomial, Number] = {}
    for monomial, value in poly.terms.items():
        exponents = dict(monomial)
        power = exponents.pop(atom, 0)
        if power == 0:
            rest[monomial] = value
        elif power == 1:
            slope[tuple(exponents.items())] = value
        else:
            return None, poly
    return Poly(slope), Poly(rest)


# -- integers


def is_integral(context: Context, poly: Poly) -> bool:
    """Is it made of sizes, indices, integer leaves and floors alone, with integer exponents?"""
    return all(_integral(a) and isinstance(e, int) and e > 0 for m in poly.terms for a, e in m)


def _integral(atom: Atom) -> bool:
    if atom.kind == kinds.LEAF:
        return bool(atom.data[2] != "real")
    if atom.kind == kinds.SUM:
        return all(_integral(a) and isinstance(e, int) and e > 0 for a, e in atom.data[1])
    return atom.kind in _INTEGRAL or is_floor(atom)


def is_whole(context: Context, poly: Poly) -> bool:
    """Is its value always an integer?"""
    return is_integral(context, poly) and all(isinstance(c, int) for c in poly.terms.values())


def is_floor(atom: Atom) -> bool:
    """Is it a number rounded down?"""
    return atom.kind == kinds.FUNCTION and atom.data[0] == "floor"


def _floor_ends(context: Context, atom: Atom) -> tuple[Poly, Poly] | None:
    """The least and greatest floor of a number that is affine in one bounded element."""
    argument: Poly = atom.data[1]
    offset = argument.terms.get((), 0)
    rest = argument.plus(-offset)
    interval = None if rest.atom is None else _interval(context, rest.atom)
    if interval is None or interval.low is None or interval.high is None:
        return None
    low, high = interval.low + offset, interval.high + offset
    greatest = math.ceil(high) - 1 if interval.high_open else math.floor(high)
    return constant(math.floor(low)), constant(greatest)


def extent_of(context: Context, atom: Atom) -> Poly | None:
    """The number of values of an index-like atom, which lies in ``0 <= atom < extent``."""
    extent: Poly | None = None
    if atom.kind == kinds.INDEX:
        extent = atom.data[1]
    elif atom.kind == kinds.ARGMAX:
        extent = atom.data[0].data[1]
    elif atom.kind == kinds.LEAF and atom.data[2] == "int":
        bound = context.facts.range_of(atom.data[0])
        extent = None if bound is None else integers.from_dim(context, bound)
    elif atom.indicator:
        extent = constant(2)
    return extent


def integer_nonnegative(context: Context, poly: Poly) -> bool:
    """Is an integer polynomial ``>= 0`` for all sizes >= 1 and all indices in range?

    Each ranged atom goes to the end of its range that makes the polynomial least; what is left
    has sizes only, shifted to start at 0, and must have no negative coefficient.
    [rule: integer-range]
    """
    memo = context.memo.setdefault("nonnegative", {})
    found = memo.get(poly)
    if found is None:
        found = memo[poly] = _nonnegative(context, poly)
    known: bool = found
    return known


def _nonnegative(context: Context, poly: Poly) -> bool:
    if all(c >= 0 for c in poly.terms.values()) and all(
        _integral(a) and factor_sign(context, a, 1) for m in poly.terms for a, _ in m
    ):
        return True
    whole = is_whole(context, poly)
    poly = _divide_indices(context, poly)
    for _ in range(24):
        if _shifted_nonnegative(context, poly, whole):
            return True
        step = _eliminate_one(context, poly)
        if step is None:
            return False
        poly = step
    return False


def _eliminate_one(context: Context, poly: Poly) -> Poly | None:
    """One ranged atom that occurs linearly, with one sign, at the end that makes it least."""
    candidates = {a for m in poly.terms for a, _ in m}
    for atom in sorted(candidates, key=lambda a: (a.kind, a.key)):
        ends = _ends(context, atom)
        if ends is None:
            continue
        values = [(c, e) for m, c in poly.terms.items() for a, e in m if a is atom]
        if any(e != 1 for _, e in values) or len({c > 0 for c, _ in values}) > 1:
            continue
        if not _others_nonnegative(context, poly, atom):
            continue
        return in_terms(poly, atom, ends[1] if values[0][0] < 0 else ends[0])
    return None


def _ends(context: Context, atom: Atom) -> tuple[Poly, Poly] | None:
    """The least and the greatest value of an integer atom."""
    if counts.is_count(atom):
        return counts.bounds(context, atom)
    if is_floor(atom):
        return _floor_ends(context, atom)
    if atom.kind == kinds.FLOORDIV and isinstance(atom.data[1].constant, int):
        left, divisor = atom.data[0], atom.data[1].constant
        part = Fraction(1, divisor)
        return left.plus(1 - divisor).scaled(part), left.scaled(part)
    extent = extent_of(context, atom)
    return None if extent is None else (Poly({}), extent.plus(-1))


def _others_nonnegative(context: Context, poly: Poly, atom: Atom) -> bool:
    """Are all cofactors of ``atom`` nonnegative, so that its coefficients tell the slope?"""
    return all(
        factor_sign(context, other, exponent) != UNKNOWN
        for monomial in poly.terms
        if any(a is atom for a, _ in monomial)
        for other, exponent in monomial
        if other is not atom
    )


def _shifted_nonnegative(context: Context, poly: Poly, whole: bool) -> bool:
    """``whole``: the value bounds an integer, which is at least 0 where it is more than -1."""
    sizes = {a for m in poly.terms for a, _ in m}
    if any(atom.kind != kinds.SIZE for atom in sizes):
        return False
    for atom in sorted(sizes, key=lambda a: a.key):
        least = context.facts.least_sizes.get(atom.data[0], 1)
        poly = in_terms(poly, atom, of_atom(atom).plus(least))
    return all(value >= 0 or (whole and not m and value > -1) for m, value in poly.terms.items())


def _divide_indices(context: Context, poly: Poly) -> Poly:
    """Write k as ``q * (k // q) + remainder`` where ``k // q`` occurs and q divides the extent."""
    for atom in sorted({a for m in poly.terms for a, _ in m}, key=lambda a: a.key):
        if atom.kind != kinds.FLOORDIV:
            continue
        index, divisor = atom.data[0].atom, atom.data[1]
        extent = None if index is None else extent_of(context, index)
        parts = None if extent is None else quotient(extent, divisor)
        if parts is None or index is None:
            continue
        high = of_atom(context.atom(kinds.INDEX, f"quotient {atom.key}", parts))
        low = of_atom(context.atom(kinds.INDEX, f"remainder {atom.key}", divisor))
        whole = plain_product(divisor, high) + low
        poly = in_terms(poly, atom, high)
        poly = in_terms(poly, index, whole)
    return poly


def quotient(left: Poly, right: Poly) -> Poly | None:
    """The polynomial q with ``q * right == left`` and integer coefficients, or None."""
    if right == ONE:
        return left
    result, rest = Poly({}), left
    if not right.terms:
        return None
    top, top_value = right.lead, right.terms[right.lead]
    for _ in range(24):
        if not rest.terms:
            return result
        exponents = dict(rest.lead)
        for atom, exponent in top:
            exponents[atom] = exponents.get(atom, 0) - exponent
        value = exact(Fraction(rest.terms[rest.lead]) / top_value)
        if any(e < 0 for e in exponents.values()) or not isinstance(value, int):
            return None
        step = Poly({ordered(exponents): value})
        result, rest = result + step, rest - plain_product(step, right)
    return None
