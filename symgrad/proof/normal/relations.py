"""Conditions: [P > 0] on the reals, [P >= 0] and [P == 0] on the integers.

In: a polynomial.  Out: 0, 1 or a condition atom, oriented so that P and -P share one atom.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import gcd, lcm

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import (
    functions,
    integers,
    lifting,
    multiply,
    permutations,
    power,
    signs,
    substitute,
    ties,
)
from symgrad.proof.normal.atoms import Atom, Number, Undecided
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.poly import ONE, ZERO, Poly, constant, magnitude, of_atom


def positive(context: Context, poly: Poly) -> Poly:
    """[P > 0] for a real P.

    Exact, but for one rule: where P is analytic in the leaves, [P > 0] + [-P > 0] is 1, because
    P vanishes on a null set only; that P does not vanish identically is recorded.
    [rule: complement]
    """
    with context.outside_domain():
        return _positive(context, poly)


def _positive(context: Context, poly: Poly) -> Poly:
    if not poly.terms:
        return ZERO
    tie = ties.against_maximum(context, poly)
    if tie is not None:
        return tie
    lifted = lifting.lift(context, poly, lambda piece: _positive(context, piece))
    if lifted is not None:
        return lifted
    if signs.is_positive(context, poly):
        return ONE
    if signs.is_nonnegative(context, -poly):
        return ZERO
    if _has_infinity(poly):
        return _infinite_positive(poly)
    if signs.is_integral(context, poly):
        scale = lcm(*(Fraction(c).denominator for c in poly.terms.values()), 1)
        return at_least(context, poly.scaled(scale).plus(-1))
    ranked = permutations.compared(context, poly)
    if ranked is not None:
        return ranked
    return _real_positive(context, poly)


def _real_positive(context: Context, poly: Poly) -> Poly:
    value, shared, base = power.content(context, poly)
    rest = base
    for atom, exponent in sorted(shared.items(), key=lambda item: item[0].key):
        if not _removable(context, atom, exponent):
            kept = 2 - exponent % 2 if isinstance(exponent, int) else exponent
            rest = multiply.multiply(context, rest, of_atom(atom, kept))
    if rest.constant is not None or signs.is_positive(context, rest):
        return ONE if value > 0 else ZERO
    if signs.is_positive(context, -rest):
        return ZERO if value > 0 else ONE
    if value > 0 and signs.is_nonnegative(context, rest) and _is_generic(rest):
        context.require_nonzero("complement", rest)
        return ONE
    compared = _compare_exponentials(context, rest if value > 0 else -rest)
    if compared is not None:
        return compared
    return _oriented(context, rest, value > 0)


def _oriented(context: Context, rest: Poly, upward: bool) -> Poly:
    if not _is_generic(rest):
        return of_atom(context.atom(kinds.POSITIVE, rest if upward else -rest))
    context.require_nonzero("complement", rest)
    condition = of_atom(context.atom(kinds.POSITIVE, rest))
    return condition if upward else ONE - condition


def _removable(context: Context, atom: Atom, exponent: Number) -> bool:
    """May a factor be dropped from [... > 0]?  It is positive almost everywhere."""
    sign = signs.factor_sign(context, atom, exponent)
    if sign == signs.POSITIVE:
        return True
    if sign == signs.UNKNOWN or atom.piecewise or not has_real_leaf(of_atom(atom)):
        return False
    context.require_nonzero("complement", of_atom(atom))
    return True


def not_negative(context: Context, poly: Poly) -> Poly:
    """[P >= 0] for a real or an integer P."""
    if signs.is_integral(context, poly):
        scale = lcm(*(Fraction(c).denominator for c in poly.terms.values()), 1)
        return at_least(context, poly.scaled(scale))
    return ONE - positive(context, -poly)


def sign(context: Context, poly: Poly) -> Poly:
    """-1, 0 or 1."""
    return positive(context, poly) - positive(context, -poly)


def equal(context: Context, poly: Poly) -> Poly:
    """[P == 0] for a real or an integer P; almost everywhere 0 where P is analytic."""
    if signs.is_integral(context, poly):
        scale = lcm(*(Fraction(c).denominator for c in poly.terms.values()), 1)
        return equal_integers(context, poly.scaled(scale))
    return ONE - positive(context, poly) - positive(context, -poly)


def _is_generic(poly: Poly) -> bool:
    """Is it analytic in real leaves, and zero on a null set for each value of the indices?

    That it does not vanish identically has to be recorded.
    """
    return not poly.piecewise and has_real_leaf(poly) and not _may_coincide(poly)


def _may_coincide(poly: Poly) -> bool:
    """Does a tensor occur with different indices, so that it might vanish where they are equal?"""
    seen: dict[str, Atom] = {}
    todo: list[object] = [poly]
    while todo:
        item = todo.pop()
        if isinstance(item, Poly):
            todo.extend(atom for monomial in item.terms for atom, _ in monomial)
        elif isinstance(item, tuple):
            todo.extend(item)
        elif isinstance(item, Atom):
            if item.kind == kinds.LEAF and seen.setdefault(item.data[0], item) is not item:
                return True
            if item.kind != kinds.INDEX:
                todo.extend(item.data)
    return False


def complement(context: Context, base: Poly) -> Poly:
    """[P > 0] for a P with a negative leading term, by that of -P.  [rule: complement].

    ``1 - [-P > 0]``, less [i == j] where P is a difference that vanishes there; that it does not
    vanish identically elsewhere is recorded.
    """
    unoriented = of_atom(context.atom(kinds.POSITIVE, base))
    if base.terms[base.lead] > 0 or base.piecewise or not has_real_leaf(base):
        return unoriented
    other = of_atom(context.atom(kinds.POSITIVE, -base))
    pair = _vanishing_pair(context, base)
    if pair is None:
        context.require_nonzero("complement", base)
        return ONE - other
    left, right = pair
    context.require_distinct("complement", base, left, right)
    return ONE - other - equal_integers(context, of_atom(left) - of_atom(right))


def _vanishing_pair(context: Context, poly: Poly) -> tuple[Atom, Atom] | None:
    """Two index variables over one range such that ``poly`` is zero where they are equal."""
    variables = sorted(poly.free, key=lambda v: v.key)
    for left, right in itertools.combinations(variables, 2):
        if left.data[1] == right.data[1]:
            merged = substitute.substitute(context, poly, {left: of_atom(right)})
            if not merged.terms:
                return left, right
    return None


def has_real_leaf(poly: Poly) -> bool:
    """Does an element of a real tensor occur in it, at any depth?"""
    return any(_real(atom) for monomial in poly.terms for atom, _ in monomial)


def _real(atom: Atom) -> bool:
    if atom.kind == kinds.LEAF:
        return bool(atom.data[2] == "real")
    return any(_real_part(part) for part in atom.data)


def _real_part(part: object) -> bool:
    if isinstance(part, Atom):
        return _real(part)
    if isinstance(part, Poly):
        return has_real_leaf(part)
    return isinstance(part, tuple) and any(_real_part(item) for item in part)


def _has_infinity(poly: Poly) -> bool:
    return any(a.kind == kinds.INFINITY for m in poly.terms for a, _ in m)


def _infinite_positive(poly: Poly) -> Poly:
    """[+-infinity + finite > 0]."""
    values = [c for m, c in poly.terms.items() if any(a.kind == kinds.INFINITY for a, _ in m)]
    if len(values) != 1:
        raise Undecided("infinities of both signs are compared")
    return ONE if values[0] > 0 else ZERO


def _compare_exponentials(context: Context, poly: Poly) -> Poly | None:
    """[a exp(u) > b exp(v)] is [log a + u > log b + v] for positive a, b.  [rule: monotone]."""
    if len(poly.terms) != 2:
        return None
    (first, value), (second, other) = poly.terms.items()
    if value * other > 0 or not any(a.kind == kinds.EXP for a, _ in first + second):
        return None
    up, down = Poly({first: magnitude(value)}), Poly({second: magnitude(other)})
    if not (signs.is_positive(context, up) and signs.is_positive(context, down)):
        return None
    gap = functions.logarithm(context, up) - functions.logarithm(context, down)
    return positive(context, gap if value > 0 else -gap)


# -- integers


def equal_integers(context: Context, poly: Poly) -> Poly:
    """[P == 0] for an integer P.  [rule: integer-range]."""
    if poly.constant is not None:
        return ZERO if poly.constant else ONE
    lifted = lifting.lift(context, poly, lambda piece: equal_integers(context, piece))
    if lifted is not None:
        return lifted
    if signs.integer_nonnegative(context, poly.plus(-1)):
        return ZERO
    if signs.integer_nonnegative(context, (-poly).plus(-1)):
        return ZERO
    value, shared, base = power.content(context, poly)
    never_zero = all(signs.factor_sign(context, a, 1) == signs.POSITIVE for a in shared)
    reduced = base if never_zero else poly.scaled(Fraction(1) / value)
    if reduced.terms.get((), 0) % 1 or any(c % 1 for c in reduced.terms.values()):
        reduced = poly
    apart = integers.congruent(context, reduced)
    if apart is not None:
        whole, rest = (equal_integers(context, part) for part in apart)
        return multiply.multiply(context, whole, rest)
    inverse = permutations.inverse_at(context, reduced)
    if inverse is not None:
        return inverse
    extreme = permutations.extreme(context, reduced)
    if extreme is not None:
        return equal_integers(context, extreme)
    unique = _unique_elements(context, reduced)
    if unique is not None:
        return equal_integers(context, unique)
    if reduced.terms[reduced.lead] < 0:
        reduced = -reduced
    return of_atom(context.atom(kinds.EQUAL, reduced))


def _unique_elements(context: Context, poly: Poly) -> Poly | None:
    """[idx[i] == idx[j]] is [i == j] where no value occurs twice.

    [rule: unique-index] [rule: permutation]
    """
    if len(poly.terms) != 2 or sorted(poly.terms.values()) != [-1, 1]:
        return None
    (first, _), (second, _) = poly.terms.items()
    if len(first) != 1 or len(second) != 1 or first[0][1] != 1 or second[0][1] != 1:
        return None
    left, right = first[0][0], second[0][0]
    if left.kind != kinds.LEAF or right.kind != kinds.LEAF or left.data[0] != right.data[0]:
        return None
    axis = context.facts.permutations.get(left.data[0])
    if left.data[0] in context.facts.unique and len(left.data[1]) == 1:
        axis = 0
    if axis is None:
        return None
    apart = [one - two for one, two in zip(left.data[1], right.data[1], strict=True)]
    difference: Poly = apart.pop(axis)
    return None if any(other.terms for other in apart) else difference


def at_least(context: Context, poly: Poly) -> Poly:
    """[P >= 0] for an integer P.  [rule: integer-range]."""
    if poly.constant is not None:
        return ONE if poly.constant >= 0 else ZERO
    lifted = lifting.lift(context, poly, lambda piece: at_least(context, piece))
    if lifted is not None:
        return lifted
    if signs.integer_nonnegative(context, poly):
        return ONE
    if signs.integer_nonnegative(context, (-poly).plus(-1)):
        return ZERO
    whole = integers.without_quotient(poly)
    if whole is not None:
        return at_least(context, whole)
    if signs.integer_nonnegative(context, -poly):
        return equal_integers(context, poly)
    if signs.integer_nonnegative(context, poly.plus(1)):
        return ONE - equal_integers(context, poly.plus(1))
    return of_atom(context.atom(kinds.ATLEAST, _tightened(poly)))


def _tightened(poly: Poly) -> Poly:
    """[2P + 1 >= 0] is [P >= 0]: the common factor divided out, the constant rounded down."""
    values = [Fraction(c) for m, c in poly.terms.items() if m]
    if any(value.denominator != 1 for value in values):
        return poly
    common = gcd(*(value.numerator for value in values))
    if common == 1:
        return poly
    rest = poly.terms.get((), 0)
    whole = (poly - constant(rest)).scaled(Fraction(1, common))
    return whole.plus((Fraction(rest) / common).__floor__())
