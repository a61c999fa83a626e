"""The arithmetic of normal forms: products, powers, signs, conditions, quotients, substitution.

In: polynomials of one context.  Out: polynomials in normal form.

One module, since the rules call each other: a product of conditions asks for signs, the sign of a
count substitutes, a substitution multiplies, a root needs signs and makes conditions.  What is
special (sums, functions, maxima, permutations) imports this module; it is reached from here
through ``Proof.rules`` alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial, reduce
from math import gcd, lcm
from typing import Any

from symgrad.budgets import (
    DIVISION_STEPS,
    LARGEST_EXPONENT,
    MOST_ENDS,
    MOST_MULTIPLES,
    MOST_RELATIONS,
)
from symgrad.ir import dim as dims
from symgrad.ir.bounds import Terms, nonnegative, replaced
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import stated
from symgrad.proof.normal.atoms import Atom, Monomial, Number, Undecided
from symgrad.proof.normal.context import Proof
from symgrad.proof.normal.factor import irreducible_factors, prime_powers
from symgrad.proof.normal.facts import HOT, Interval
from symgrad.proof.normal.labels import Renamer, is_canonical, rename_monomial, symmetric_order
from symgrad.proof.normal.poly import (
    ONE,
    ZERO,
    Exponents,
    Poly,
    all_atoms,
    constant,
    direct_atoms,
    exact,
    exponent_of,
    joined,
    magnitude,
    monomial_key,
    of_atom,
    ordered,
    plain_product,
    total,
)
from symgrad.proof.scalars.bodies import op_of

UNKNOWN, NONNEGATIVE, POSITIVE = 0, 1, 2
"""What is known of a sign."""

_INTEGRAL = (
    kinds.INDEX, kinds.SIZE, kinds.ARGMAX, kinds.FLOORDIV, kinds.EQUAL, kinds.ATLEAST,
)  # fmt: skip

# -- products


def multiply(context: Proof, left: Poly, right: Poly) -> Poly:
    """The product.  [rule: ring]."""
    if not left.terms or not right.terms:
        return ZERO
    if len(left.terms) > len(right.terms):
        left, right = right, left
    if left.constant is not None:
        return right.scaled(left.constant)
    if context.factored and len(left.terms) > 1:
        left, right = condense(context, left), condense(context, right)
    context.spend(len(left.terms) * len(right.terms))
    try:
        return _multiplied_out(context, left, right)
    except _InfiniteFactor:
        return _infinite_product(context, left, right)


class _InfiniteFactor(Undecided):
    """An infinity is multiplied with something other than a condition."""


def _multiplied_out(context: Proof, left: Poly, right: Poly) -> Poly:
    terms: dict[Monomial, Number] = {}
    rewritten: list[Poly] = []
    for first, factor in left.terms.items():
        for second, value in right.terms.items():
            product = _product(context, first, second)
            if isinstance(product, Poly):
                rewritten.append(product.scaled(factor * value))
            else:
                terms[product] = terms.get(product, 0) + factor * value
    result = Poly({m: exact(c) for m, c in terms.items() if c})
    return total([result, *rewritten]) if rewritten else result


def _infinite_product(context: Proof, left: Poly, right: Poly) -> Poly:
    """A product with an infinity that stands beside conditions: piece by piece.

    It is infinite where both factors are, or the other one has a sign.  [rule: minus-infinity]
    """
    infinite = [m for poly in (left, right) for m in poly.terms if _is_infinite(m)]
    conditions = {atom for monomial in infinite for atom, _ in monomial if atom.indicator}
    if conditions:
        atom = min(conditions, key=lambda one: (one.erased, one.key))
        pieces = zip(*(by_condition(context, poly, atom) for poly in (left, right)), strict=True)
        holds, fails = (multiply(context, *piece) for piece in pieces)
        chosen = multiply(context, of_atom(atom), holds)
        return chosen + multiply(context, ONE - of_atom(atom), fails)
    sign = _sign(context, left) * _sign(context, right)
    if not sign:
        raise _InfiniteFactor("an infinity is multiplied with something other than a condition")
    return of_atom(context.atom(kinds.INFINITY)).scaled(sign)


def _sign(context: Proof, poly: Poly) -> int:
    """1 or -1 where it is positive, or negative, everywhere; 0 where that is not known."""
    for monomial, value in poly.terms.items():
        if _is_infinite(monomial):
            return 1 if value > 0 else -1
    if is_positive(context, poly):
        return 1
    return -1 if is_positive(context, -poly) else 0


def multiply_all(context: Proof, polys: Iterable[Poly]) -> Poly:
    """The product of several."""
    return reduce(partial(multiply, context), polys, ONE)


def _product(context: Proof, first: Monomial, second: Monomial) -> Monomial | Poly:
    if not first or not second:
        return first or second
    exponents = joined(first, second)
    special = any(atom.special for atom, _ in second) or any(atom.special for atom, _ in first)
    return normalise(context, exponents) if special else ordered(exponents)


def monomial_poly(context: Proof, exponents: Exponents) -> Poly:
    """The polynomial of one monomial with these exponents, rules applied."""
    result = normalise(context, exponents)
    return result if isinstance(result, Poly) else Poly({result: 1})


def renormalised(context: Proof, poly: Poly) -> Poly:
    """The polynomial with the rules applied to each monomial anew."""
    return total(monomial_poly(context, dict(m)).scaled(c) for m, c in poly.terms.items())


def normalise(context: Proof, exponents: Exponents) -> Monomial | Poly:
    """A monomial in normal form, or the polynomial that a rule turned it into."""
    exponents = {atom: exponent_of(e) for atom, e in exponents.items() if e}
    special = [atom for atom in exponents if atom.special]
    if not special:
        return ordered(exponents)
    for atom in special:
        changed = _rewrite_atom(context, exponents, atom)
        if changed is not None:
            return changed
    if _empty_count_times_sum(exponents) or _empty_count_times_counted(context, exponents):
        return ZERO
    relations = [a for a in special if a.kind in kinds.RELATIONS and a in exponents]
    if relations:
        kept = _with_relations(context, exponents, relations)
        if isinstance(kept, Poly):
            return kept
        exponents = kept
    if context.factored:
        return _expand_single_let(context, exponents, special)
    for atom in special:
        if atom.kind == kinds.POWER and exponents.get(atom, 0) < 0:
            reduced = reduce_lead(context, exponents, atom)
            if reduced is not None:
                return reduced
    return ordered(exponents)


def _with_relations(
    context: Proof, exponents: Exponents, relations: list[Atom]
) -> Exponents | Poly:
    """The factors without conditions that others decide; a polynomial where a rule makes one."""
    if len(relations) > 1:
        if not _combine_relations(context, exponents, relations):
            return ZERO
        split = _one_holds(context, exponents)
        if split is not None:
            return split
    return _without_implied(context, exponents)


def _rewrite_atom(context: Proof, exponents: Exponents, atom: Atom) -> Poly | None:
    """The rules that concern one factor; indicators are changed in place."""
    exponent = exponents.get(atom, 0)
    if atom.indicator:
        exponents[atom] = 1  # [rule: indicator]
    elif atom.kind == kinds.NUMBER:
        if atom.data[0] != "pi" and (exponent >= 1 or exponent < 0):
            whole = exponent.__floor__()
            rest = {**exponents, atom: exponent - whole}
            return monomial_poly(context, rest).scaled(Fraction(atom.data[0]) ** whole)
    elif atom.kind == kinds.POWER:
        return _rewrite_power(context, exponents, atom, exponent)
    elif atom.kind == kinds.INFINITY:
        if exponent != 1 or any(not a.indicator and a is not atom for a in exponents):
            raise _InfiniteFactor("an infinity is multiplied with something other than a condition")
    elif (
        atom.kind == kinds.FUNCTION
        and atom.data[0] == "sin"
        and isinstance(exponent, int)
        and exponent >= 2
    ):
        rest = {**exponents, atom: exponent - 2}
        cosine = of_atom(context.atom(kinds.FUNCTION, "cos", atom.data[1]), 2)
        return multiply(context, monomial_poly(context, rest), ONE - cosine)  # [rule: trigonometry]
    return None


def _rewrite_power(
    context: Proof, exponents: Exponents, atom: Atom, exponent: Number
) -> Poly | None:
    base: Poly = atom.data[0]
    if base.terms[base.lead] < 0:
        opposite = context.atom(kinds.POWER, -base)
        if isinstance(exponent, int) or (
            opposite in exponents and isinstance(exponents[opposite], int)
        ):
            merged = dict(exponents)
            source, target = (atom, opposite) if isinstance(exponent, int) else (opposite, atom)
            moved = merged.pop(source)
            merged[target] = merged.get(target, 0) + moved
            return monomial_poly(context, merged).scaled(-1 if moved % 2 else 1)
    if exponent >= 1 and not context.factored:
        whole = exponent.__floor__()
        rest = {**exponents, atom: exponent - whole}
        return multiply(context, monomial_poly(context, rest), raise_to(context, base, whole))
    return None


def _expand_single_let(
    context: Proof, exponents: Exponents, special: list[Atom]
) -> Monomial | Poly:
    """A several-term factor that stands alone in its monomial is multiplied out.  [rule: let]."""
    lets = [a for a in special if a.kind == kinds.POWER and exponents.get(a, 0) >= 1]
    if len(lets) == 1 and exponents[lets[0]].__floor__() == 1:
        (atom,) = lets
        rest = {**exponents, atom: exponents[atom] - 1}
        context.spend(len(atom.data[0].terms))
        return total(
            monomial_poly(context, joined(rest, monomial)).scaled(value)
            for monomial, value in atom.data[0].terms.items()
        )
    return ordered(exponents)


# -- products of conditions


def _combine_relations(context: Proof, exponents: Exponents, relations: list[Atom]) -> bool:
    """Drop conditions that others imply; False when two contradict.  [rule: implied-relation]."""
    context.spend(len(relations))
    for left, right in itertools.combinations(relations, 2):
        if left not in exponents or right not in exponents:
            continue
        if left.kind == right.kind:
            if left.kind == kinds.EQUAL:
                if _never_both_equal(context, left, right):
                    return False
            elif not _combine_same(context, exponents, left, right):
                return False
        elif {left.kind, right.kind} == {kinds.EQUAL, kinds.ATLEAST}:
            equal, least = (left, right) if left.kind == kinds.EQUAL else (right, left)
            if not _combine_equal(context, exponents, equal, least):
                return False
    return True


def _combine_same(context: Proof, exponents: Exponents, left: Atom, right: Atom) -> bool:
    """[E > 0][F > 0], or [E >= 0][F >= 0]: drop what the other implies; False if never both."""
    memo = context.memo.setdefault("implied", {})
    key = left, right, context.in_domain, context.held
    if key not in memo:
        memo[key] = _implied(context, left, right)
    implied, possible = memo[key]
    if implied is not None:
        del exponents[implied]
    return bool(possible)


def _implied(context: Proof, left: Atom, right: Atom) -> tuple[Atom | None, bool]:
    """Which of two such conditions the other implies, compared with F scaled to E's size.

    With it, whether both can hold.
    """
    first: Poly = left.data[0]
    if left.kind == kinds.POSITIVE:
        nonnegative, slack = is_nonnegative, 0
    else:
        nonnegative, slack = integer_nonnegative, -1
    for scale in _ratios(first, right.data[0]):
        second = right.data[0].scaled(magnitude(scale))
        if scale < 0:
            if nonnegative(context, (-first - second).plus(slack)):
                return None, False
        elif nonnegative(context, first - second):
            return left, True
        elif nonnegative(context, second - first):
            return right, True
    return None, True


def _one_holds(context: Proof, exponents: Exponents) -> Poly | None:
    """``[E > 0][F > 0] = [E > 0] + [F > 0] - 1`` where ``E + F > 0``: one of the two holds.

    [rule: implied-relation]  Where that may be 0, and is not negative, it is recorded that it does
    not vanish identically.  [rule: complement]
    """
    signed = [atom for atom in exponents if atom.kind == kinds.POSITIVE]
    memo = context.memo.setdefault("one holds", {})
    for left, right in itertools.combinations(signed, 2):
        key = left, right, context.in_domain, context.held, context.reading.generic
        if key not in memo:
            memo[key] = _positive_sum(context, left.data[0], right.data[0])
        known = memo[key]
        if known is not None and known.terms:
            context.require_nonzero("complement", known)
        if known is not None:
            rest = {a: e for a, e in exponents.items() if a is not left and a is not right}
            each = [monomial_poly(context, {**rest, atom: 1}) for atom in (left, right)]
            return total([*each, -monomial_poly(context, rest)])
    return None


def _positive_sum(context: Proof, first: Poly, second: Poly) -> Poly | None:
    """What must not vanish for one of the two to be positive: nothing, or their sum; or None."""
    sums = [first + second.scaled(-scale) for scale in _ratios(first, second) if scale < 0]
    if any(is_positive(context, one) for one in sums):
        return ZERO
    if not context.reading.generic:
        return None
    real = [one for one in sums if not one.piecewise and has_real_leaf(one)]
    return next((one for one in real if is_nonnegative(context, one)), None)


def _ratios(first: Poly, second: Poly) -> list[Number]:
    """What ``second`` may be scaled by so that a term cancels; 1 where the two share none.

    Negative where the terms have opposite signs.
    """
    common = sorted((m for m in first.terms if m and m in second.terms), key=monomial_key)
    found = [exact(Fraction(first.terms[m]) / second.terms[m]) for m in reversed(common)]
    return list(dict.fromkeys(found)) or [1]


def _never_both_equal(context: Proof, left: Atom, right: Atom) -> bool:
    memo = context.memo.setdefault("apart", {})
    found = memo.get((left, right))
    if found is None:
        found = memo[left, right] = _are_apart(context, left, right)
    known: bool = found
    return known


def _are_apart(context: Proof, left: Atom, right: Atom) -> bool:
    pairs = (left, right), (right, left)
    if any(_excluded_by_empty_count(context, *pair) for pair in pairs):
        return True
    differences = left.data[0] - right.data[0], left.data[0] + right.data[0]
    return any(
        integer_nonnegative(context, apart.plus(-1))
        for difference in differences
        for apart in (difference, -difference)
    )


def _combine_equal(context: Proof, exponents: Exponents, equal: Atom, least: Atom) -> bool:
    """[E == 0][F >= 0]: F may have multiples of E added."""
    for shifted in (least.data[0] + equal.data[0], least.data[0] - equal.data[0]):
        if integer_nonnegative(context, shifted):
            del exponents[least]
            return True
        if integer_nonnegative(context, (-shifted).plus(-1)):
            return False
    return True


# -- conditions that others imply: order relations, and elements of triangular matrices


def _triangular_gap(context: Proof, tensor: str, indices: tuple[Poly, ...]) -> Poly | None:
    """What must be at least 0 for an element of a triangular matrix not to be 0.

    An element ``L[i, k]`` of a lower one stands for ``[i >= k] L[i, k]``.  [rule: triangular]
    """
    if len(indices) < 2:
        return None
    row, column = indices[-2:]
    if tensor in context.facts.lower:
        return row - column
    return column - row if tensor in context.facts.upper else None


def _is_outside_triangle(context: Proof, tensor: str, indices: tuple[Poly, ...]) -> bool:
    """Is it an element of a triangular matrix that is 0 whatever the indices?"""
    gap = _triangular_gap(context, tensor, indices)
    return gap is not None and integer_nonnegative(context, (-gap).plus(-1))


def _without_implied(context: Proof, exponents: Exponents) -> Exponents | Poly:
    """The factors less the order relations that others imply; zero where they contradict.

    ``P >= 0`` follows from ``Q >= 0`` and ``R >= 0`` where ``P - Q - R >= 0``.  Where instead
    ``P + Q + R == 0``, it says ``P == 0``.  [rule: implied-relation]
    """
    known = _triangular_gaps(context, exponents)
    written = [a for a in exponents if a.kind == kinds.ATLEAST]
    if not written or not 2 <= len(known) + len(written) <= MOST_RELATIONS:
        return exponents
    context.spend(len(written))
    kept = dict(exponents)
    for atom in written:
        others = known + [a.data[0] for a in written if a in kept and a is not atom]
        state = _follows(context, atom.data[0], others)
        if state == "never":
            return ZERO
        if state != "open":
            del kept[atom]
        if state == "equal":
            same = equal_integers(context, atom.data[0])
            return multiply(context, monomial_poly(context, kept), same)
    return kept


def _triangular_gaps(context: Proof, exponents: Exponents) -> list[Poly]:
    facts = context.facts
    if not facts.lower and not facts.upper:
        return []
    leaves = [a for a, e in exponents.items() if a.kind == kinds.LEAF and e > 0]
    gaps = (_triangular_gap(context, *leaf.data[:2]) for leaf in leaves)
    return list(dict.fromkeys(gap for gap in gaps if gap))


def _follows(context: Proof, goal: Poly, others: list[Poly]) -> str:
    """``implied``, ``equal`` (it can only be 0), ``never`` or ``open``."""
    sums = others + [left + right for left, right in itertools.combinations(others, 2)]
    known = [one for one in sums if _related(goal, one)]
    if any(integer_nonnegative(context, goal - one) for one in known):
        return "implied"
    both = [goal + one for one in known]
    if any(integer_nonnegative(context, (-one).plus(-1)) for one in both):
        return "never"
    return "open" if all(one.terms for one in both) else "equal"


def _related(first: Poly, second: Poly) -> bool:
    """Do the two have a term in common, so that adding them cancels anything?"""
    return any(monomial in second.terms for monomial in first.terms if monomial)


# -- powers


def power(context: Proof, poly: Poly, exponent: Number) -> Poly:
    """``poly**exponent`` on the reals; a fractional power of a negative number is not defined.

    Records that an inverted base must not vanish, and that the base of a fractional power is
    not negative.  [rule: inverse] [rule: fractional-power]
    """
    exponent = exact(exponent)
    masked = exponent < 0 and _has_infinity(poly)
    base = _finite(context, poly) if masked else poly
    if exponent < 0 and not is_positive(context, base):
        context.require_nonzero("inverse", base)
    if isinstance(exponent, Fraction) and not _is_clamped(context, base, exponent < 0):
        context.require("fractional-power", ">=" if exponent > 0 else ">", base)
    return (_infinite_power if masked else raise_to)(context, poly, exponent)


def _finite(context: Proof, poly: Poly) -> Poly:
    """A masked expression with 1 for the infinity: it is 0 where the expression is.

    Raises Undecided for infinities of both signs, whose sum may be anything.
    """
    values = [c for m, c in poly.terms.items() if any(a.kind == kinds.INFINITY for a, _ in m)]
    if min(values) < 0:
        raise Undecided("a power of what may be minus infinity")
    found = ZERO
    for monomial, value in poly.terms.items():
        kept = {atom: exponent for atom, exponent in monomial if atom.kind != kinds.INFINITY}
        found = found + monomial_poly(context, kept).scaled(value)
    return found


def _infinite_power(context: Proof, poly: Poly, exponent: Number) -> Poly:
    """A negative power, which is 0 where the base is infinite.  [rule: minus-infinity]."""
    if not _has_infinity(poly):
        return _piece_power(context, poly, exponent)
    lifted = lift(context, poly, lambda piece: _infinite_power(context, piece, exponent))
    return ZERO if lifted is None else lifted


def _is_clamped(context: Proof, poly: Poly, strictly: bool) -> bool:
    """Is it not negative?  Beside a condition that says so, as in ``relu(P)``, it is not either.

    ``strictly``: where it is inverted as well, there it must not be 0.  [rule: signs]
    """
    if is_nonnegative(context, poly):
        return True
    atom = visible_indicator(poly)
    if atom is None or atom.kind != kinds.POSITIVE or strictly:
        return False
    compared: Poly = atom.data[0]
    pieces = zip(by_condition(context, poly, atom), (compared, -compared), strict=True)
    return all(_is_nonnegative_beside(context, piece, known) for piece, known in pieces)


def _is_nonnegative_beside(context: Proof, poly: Poly, known: Poly) -> bool:
    """Is it not negative where something else is not?"""
    if is_nonnegative(context, poly):
        return True
    whole = primitive(context, poly)
    scale = Fraction(whole.terms.get(known.lead, 0)) / Fraction(known.terms[known.lead])
    return scale > 0 and is_nonnegative(context, whole - known.scaled(exact(scale)))


def raise_to(context: Proof, poly: Poly, exponent: Number) -> Poly:
    """``poly**exponent`` whose definedness has been recorded already."""
    exponent = exact(exponent)
    if exponent == 0:
        return ONE
    if exponent == 1:
        return poly
    if not poly.terms:
        if exponent > 0:
            return ZERO
        raise Undecided("a division by an expression that is always zero")
    if isinstance(exponent, int):
        return _integer_power(context, poly, exponent)
    lifted = lift(context, poly, lambda piece: _piece_power(context, piece, exponent))
    if lifted is not None:
        return lifted
    with context.using_domain(True):
        return _fractional_power(context, poly, exponent)


def _piece_power(context: Proof, piece: Poly, exponent: Number) -> Poly:
    """The power of one piece; where a piece to be inverted is 0, the value is undefined: 0."""
    return raise_to(context, piece, exponent) if piece.terms or exponent > 0 else ZERO


def _integer_power(context: Proof, poly: Poly, exponent: int) -> Poly:
    if context.factored and exponent > 0:
        poly = condense(context, poly)
    if len(poly.terms) == 1 and exponent > 0:
        ((monomial, scale),) = poly.terms.items()
        power_of = monomial_poly(context, {a: e * exponent for a, e in monomial})
        return power_of.scaled(scale**exponent)
    if exponent > 0:
        if exponent > LARGEST_EXPONENT:
            raise Undecided(f"a sum is raised to the power {exponent}")
        half = raise_to(context, poly, exponent // 2)
        square = multiply(context, half, half)
        return multiply(context, square, poly) if exponent % 2 else square
    if exponent < 0:
        chosen = _apart_power(context, poly, exponent)
        if chosen is not None:
            return chosen
        lifted = lift(context, poly, lambda piece: _piece_power(context, piece, exponent))
        if lifted is not None:
            return lifted
    value, shared, base = content(context, poly)
    result = monomial_poly(context, {a: e * exponent for a, e in shared.items()})
    if base.constant != 1:
        for part, times in irreducible_factors(context, base):
            atom = context.atom(kinds.POWER, part)
            piece = monomial_poly(context, {atom: exponent * times})
            result = multiply(context, result, piece)
    return result.scaled(exact(Fraction(value) ** exponent))


def _apart_power(context: Proof, poly: Poly, exponent: int) -> Poly | None:
    """``B**e`` for a negative e and ``B = [i == j] C + (1 - [i == j]) D`` where D is 0 for i == j.

    It is ``[i == j] C**e + (1 - [i == j]) F``, where F has ``D_k + [i == j]`` in place of each
    factor D_k of D that is 0 for i == j: the same where i != j, and 1 where D is not selected.
    None where B is of another form.  [rule: apart]
    """
    atom = visible_indicator(poly)
    equal = None if atom is None else _equal_indices(context, atom)
    if atom is None or equal is None:
        return None
    holds, apart = by_condition(context, poly, atom)
    if not apart.terms or visible_indicator(apart) or substitute(context, apart, equal).terms:
        return None
    chosen = substitute(context, holds, equal)
    if not chosen.terms:
        return None  # the whole is 0 for i == j
    same = of_atom(atom)
    other = _apart_factors(context, apart, exponent, atom, equal)
    first = multiply(context, same, raise_to(context, chosen, exponent))
    return first + multiply(context, ONE - same, other)


def _equal_indices(context: Proof, atom: Atom) -> dict[Atom, Poly] | None:
    """What makes two indices over the same values equal, for the condition that they are."""
    if atom.kind != kinds.EQUAL:
        return None
    found = []
    for index, _, value in atom.data[0].solved(kinds.INDEX):
        other = value.atom
        if other is not None and other.kind == kinds.INDEX and other.data[1] == index.data[1]:
            found.append((index, value))
    return dict([max(found, key=lambda one: one[0].key)]) if found else None


def _apart_factors(
    context: Proof, poly: Poly, exponent: int, atom: Atom, equal: Mapping[Atom, Poly]
) -> Poly:
    """``poly**exponent`` where a condition fails; a factor that is 0 where it holds is 1 there."""
    value, shared, base = content(context, poly)
    factors = [(of_atom(one), own) for one, own in shared.items()]
    if base.constant != 1:
        factors += irreducible_factors(context, base)
    result = constant(exact(Fraction(value) ** exponent))
    for part, times in factors:
        own = exact(exponent * times)
        if substitute(context, part, equal).terms:
            piece = raise_to(context, part, own)
        else:
            kept = context.atom(kinds.POWER, part + of_atom(atom))
            piece = monomial_poly(context, {kept: own})
        result = multiply(context, result, piece)
    return result


def content(context: Proof, poly: Poly) -> tuple[Number, Exponents, Poly]:
    """``(c, m, B)`` with ``poly == c * m * B``; B primitive, its leading coefficient positive.

    All exponents in B are nonnegative, so that its leading monomial is well defined.
    """
    numbers = [Fraction(value) for value in poly.terms.values()]
    scale = Fraction(gcd(*(n.numerator for n in numbers)), lcm(*(n.denominator for n in numbers)))
    shared = _shared_factors(context, poly)
    divided: dict[Monomial, Number] = {}
    for monomial, value in poly.terms.items():
        exponents = dict(monomial)
        for atom, exponent in shared.items():
            exponents[atom] = exponents.get(atom, 0) - (0 if atom.indicator else exponent)
            if atom.indicator:
                del exponents[atom]
        divided[ordered(exponents)] = exact(Fraction(value) / scale)
    base = Poly(divided)
    if any(a.kind == kinds.POWER and e >= 1 for m in base.terms for a, e in m):
        base = _expand_lets(context, base)
        if not base.terms:
            return 0, {}, ZERO
        inner, more, base = content(context, base)
        scale = scale * inner
        for atom, exponent in more.items():
            shared[atom] = exact(shared.get(atom, 0) + exponent)
        shared = {a: e for a, e in shared.items() if e}
    elif base.terms[base.lead] < 0:
        scale, base = -scale, -base
    return exact(scale), shared, base


def _shared_factors(context: Proof, poly: Poly) -> Exponents:
    """The greatest common monomial; conditions belong to it only where lets are used."""
    shared: Exponents | None = None
    for monomial in poly.terms:
        exponents = dict(monomial)
        if shared is None:
            shared = exponents
            continue
        for atom in {**shared, **exponents}:
            shared[atom] = min(shared.get(atom, 0), exponents.get(atom, 0))
    found = shared or {}
    return {a: e for a, e in found.items() if e and (context.factored or not a.indicator)}


def _expand_lets(context: Proof, poly: Poly) -> Poly:
    """Positive integer powers of several-term bases multiplied out."""
    parts: list[Poly] = []
    for monomial, value in poly.terms.items():
        rest: Exponents = {}
        bases: list[tuple[Poly, int]] = []
        for atom, exponent in monomial:
            whole = exponent.__floor__() if atom.kind == kinds.POWER and exponent >= 1 else 0
            if whole:
                bases.append((atom.data[0], whole))
            rest[atom] = exponent - whole
        term = Poly({ordered(rest): value})
        for base, whole in bases:
            for _ in range(whole):
                term = _distribute(context, term, base)
        parts.append(term)
    return total(parts)


def _distribute(context: Proof, left: Poly, right: Poly) -> Poly:
    """The product multiplied out, whether or not lets are used."""
    context.spend(len(left.terms) * len(right.terms))
    factored, context.factored = context.factored, False
    try:
        return multiply(context, left, right)
    finally:
        context.factored = factored


def condense(context: Proof, poly: Poly) -> Poly:
    """A several-term polynomial as one monomial of its irreducible factors.  [rule: let].

    Polynomials that hold integer conditions stay as they are: deltas must stay visible.
    """
    if len(poly.terms) < 2:
        return poly
    value, shared, base = content(context, poly)
    atoms = [a for m in base.terms for a, _ in m]
    if any(a.kind in (kinds.EQUAL, kinds.ATLEAST) for a in atoms):
        return poly
    if atoms and all(a.indicator for a in atoms):
        return poly
    exponents = dict(shared)
    if base.constant != 1:
        for part, times in irreducible_factors(context, base):
            atom = context.atom(kinds.POWER, part)
            exponents[atom] = exponents.get(atom, 0) + times
    return Poly({ordered(exponents): value}) if value else ZERO


# -- fractional exponents


def _fractional_power(context: Proof, poly: Poly, exponent: Number) -> Poly:
    """[rule: fractional-power]: ``sqrt(x**2)`` is ``|x|``, never ``x``."""
    value, shared, base = content(context, poly)
    result = number_power(context, abs(Fraction(value)), exponent)
    rest = ONE if value > 0 else constant(-1)
    alone = len(shared) == 1 and value > 0 and base.constant == 1
    for atom, own in sorted(shared.items(), key=lambda item: item[0].key):
        taken = _factor_power(context, atom, own, exponent, alone)
        if taken is None:
            rest = multiply(context, rest, of_atom(atom, own))
        else:
            result = multiply(context, result, taken)
    if base.constant != 1:
        for part, times in irreducible_factors(context, base):
            taken = _base_power(context, part, times, exponent)
            if taken is None:
                rest = multiply(context, rest, raise_to(context, part, times))
            else:
                result = multiply(context, result, taken)
    if rest.constant == 1:
        return result
    base, own = _as_power(rest)
    atom = base.atom if base.atom is not None else context.atom(kinds.POWER, base)
    root = monomial_poly(context, {atom: own * exponent})
    return multiply(context, result, root)


def _as_power(poly: Poly) -> tuple[Poly, Number]:
    """``(-B, e)`` for ``-B**e`` with an odd e; else the polynomial and 1."""
    if len(poly.terms) == 1:
        ((monomial, value),) = poly.terms.items()
        if value == -1 and len(monomial) == 1:
            atom, exponent = monomial[0]
            if atom.kind == kinds.POWER and exponent % 2 == 1:
                return -atom.data[0], exponent
    return poly, 1


def _factor_power(
    context: Proof, atom: Atom, own: Number, exponent: Number, alone: bool
) -> Poly | None:
    """``(atom**own)**exponent`` taken out of a root, or None where its sign is not known."""
    if isinstance(own, Fraction) or factor_sign(context, atom, 1) != UNKNOWN:
        return monomial_poly(context, {atom: own * exponent})
    if own % 2:
        return monomial_poly(context, {atom: own * exponent}) if alone else None
    whole = exact(own * exponent)
    if not isinstance(whole, int):
        return None
    plain = monomial_poly(context, {atom: whole})
    if whole % 2 == 0:
        return plain
    return multiply(context, plain, sign(context, of_atom(atom)))


def _base_power(context: Proof, part: Poly, times: int, exponent: Number) -> Poly | None:
    whole = exact(times * exponent)
    if is_nonnegative(context, part):
        return monomial_poly(context, {context.atom(kinds.POWER, part): whole})
    if times % 2 or not isinstance(whole, int):
        return None
    plain = raise_to(context, part, whole)
    if whole % 2 == 0:
        return plain
    return multiply(context, plain, sign(context, part))


def number_power(context: Proof, value: Fraction, exponent: Number) -> Poly:
    """A positive rational number to a rational power, as primes.  [rule: numbers]."""
    primes = prime_powers(value)
    return monomial_poly(context, {context.atom(kinds.NUMBER, p): t * exponent for p, t in primes})


# -- reduction by the leading monomial


def reduce_lead(context: Proof, exponents: Exponents, atom: Atom) -> Poly | None:
    """``LM(B) * B**f == (B**(f+1) - rest * B**f) / lc`` for ``f < 0``.  [rule: lead-reduction].

    Also where ``1/x * 1/(x + c)`` splits.  This is partial fractions: linear, so valid under
    sums.  None where neither form applies.
    """
    base: Poly = atom.data[0]
    lead = base.lead
    if not lead or any(e <= 0 or exponents.get(a, 0) < e for a, e in lead):
        if not _splits(exponents, base, atom):
            return None
        lead = ()
    value = base.terms[lead]
    rest = joined(exponents, lead, -1)
    context.spend(len(base.terms))
    terms = [monomial_poly(context, {**rest, atom: rest[atom] + 1})]
    for monomial, coefficient in base.terms.items():
        if monomial != lead:
            product = monomial_poly(context, joined(rest, monomial))
            terms.append(product.scaled(-coefficient))
    return total(terms).scaled(exact(Fraction(1) / value))


def _splits(exponents: Exponents, base: Poly, atom: Atom) -> bool:
    if not base.offset:
        return False
    others = [dict(monomial) for monomial in base.terms if monomial]
    return any(
        exponent < 0 and other is not atom and all(m.get(other, 0) > 0 for m in others)
        for other, exponent in exponents.items()
    )


# -- pieces: a function of conditions becomes conditions times functions


def lift(context: Proof, poly: Poly, function: Callable[[Poly], Poly]) -> Poly | None:
    """``f(P) = g f(P with g = 1) + (1 - g) f(P with g = 0)`` for a condition g.  [rule: lift].

    None where no condition is a factor of any term.  Each piece stands beside g or 1 - g, so that
    the sign that g gives to what it compares with 0 is known in it.  [rule: signs]
    """
    atom = visible_indicator(poly)
    if atom is None:
        return None
    context.spend(len(poly.terms))
    pieces = by_condition(context, poly, atom)
    if _may_be_held(atom):
        compared: Poly = atom.data[0]
        with context.holding(compared, strict=True):
            holds = function(pieces[0])
        with context.holding(-compared, strict=False):
            fails = function(pieces[1])
    else:
        holds, fails = map(function, pieces)
    if holds == fails:
        return holds
    condition = of_atom(atom)
    chosen = multiply(context, condition, holds)
    return chosen + multiply(context, ONE - condition, fails)


def _may_be_held(condition: Atom) -> bool:
    """May the sign that a condition gives be used beside it?

    Not that of a difference: what two of these imply of a third one would be written in one way
    beside both, and in another way elsewhere.
    """
    if condition.kind != kinds.POSITIVE or len(condition.data[0].terms) != 1:
        return False
    return not any(map(is_canonical, condition.free))


def visible_indicator(poly: Poly) -> Atom | None:
    """The first condition, in the order of keys, that is a factor of a term."""
    found = {a for m in poly.terms for a, _ in m if a.indicator}
    return min(found, key=lambda a: (a.erased, a.key)) if found else None


def with_value(context: Proof, poly: Poly, atom: Atom, holds: bool) -> Poly:
    """The polynomial where a condition holds, or fails."""
    if not holds:
        return Poly({m: c for m, c in poly.terms.items() if all(a is not atom for a, _ in m)})
    reduced = []
    for monomial, value in poly.terms.items():
        rest = {a: e for a, e in monomial if a is not atom}
        reduced.append(monomial_poly(context, rest).scaled(value))
    return total(reduced)


def by_condition(context: Proof, poly: Poly, atom: Atom) -> tuple[Poly, Poly]:
    """The polynomial where a condition holds, and where it fails."""
    return with_value(context, poly, atom, True), with_value(context, poly, atom, False)


# -- conditions: [P > 0] on the reals, [P >= 0] and [P == 0] on the integers


def positive(context: Proof, poly: Poly) -> Poly:
    """[P > 0] for a real P.

    Exact, but for one rule: where P is analytic in the leaves, [P > 0] + [-P > 0] is 1, because
    P vanishes on a null set only; that P does not vanish identically is recorded.
    [rule: complement]
    """
    with context.using_domain(False):
        return _positive(context, poly)


def _positive(context: Proof, poly: Poly) -> Poly:
    if not poly.terms:
        return ZERO
    special = context.apply_rules(context.rules.comparisons, poly)
    if special is not None:
        return special
    lifted = lift(context, poly, lambda piece: _positive(context, piece))
    if lifted is not None:
        return lifted
    if is_positive(context, poly):
        return ONE
    if is_nonnegative(context, -poly):
        return ZERO
    if _has_infinity(poly):
        return _infinite_positive(poly)
    if is_integral(poly):
        return at_least(context, _over_integers(poly).plus(-1))
    special = context.apply_rules(context.rules.piece_comparisons, poly)
    return special if special is not None else _real_positive(context, poly)


def _over_integers(poly: Poly) -> Poly:
    """A positive multiple with integer coefficients."""
    return poly.scaled(lcm(*(Fraction(c).denominator for c in poly.terms.values()), 1))


def _real_positive(context: Proof, poly: Poly) -> Poly:
    value, shared, base = content(context, poly)
    if context.reading.apart:
        told = _integers_apart(context, value, shared, base)
        if told is not None:
            return told
    rest = base
    for atom, exponent in sorted(shared.items(), key=lambda item: item[0].key):
        if not _removable(context, atom, exponent):
            kept = 2 - exponent % 2 if isinstance(exponent, int) else exponent
            rest = multiply(context, rest, of_atom(atom, kept))
    if rest.constant is not None or is_positive(context, rest):
        return ONE if value > 0 else ZERO
    if is_positive(context, -rest):
        return ZERO if value > 0 else ONE
    if context.held and is_nonnegative(context, -rest if value > 0 else rest):
        return ZERO
    unknown = any(_is_computed(context, atom) for monomial in rest.terms for atom, _ in monomial)
    if value > 0 and not unknown and is_nonnegative(context, rest) and _is_generic(context, rest):
        context.require_nonzero("complement", rest)
        return ONE
    odd = _without_squares(context, rest)
    if odd is not None:
        return _real_positive(context, odd if value > 0 else -odd)
    return _simplified_positive(context, rest, value > 0)


def _simplified_positive(context: Proof, rest: Poly, upward: bool) -> Poly:
    """[P > 0], or [-P > 0], of what has the same sign and is simpler."""
    compared = _compare_exponentials(context, rest if upward else -rest)
    if compared is not None:
        return compared
    simpler = _without_growing(context, rest)
    if simpler is None:
        simpler = _without_divisors(context, rest)
    if simpler is not None:
        return positive(context, simpler if upward else -simpler)
    return _oriented_positive(context, rest, upward)


def _integers_apart(
    context: Proof, value: Number, shared: Exponents, base: Poly
) -> Poly | None:  # fmt: skip
    """``[E > 0] [Q > 0] + [E < 0] [-Q > 0]`` for ``[E Q > 0]``; None where no factor is an integer.

    So what holds where E is 0 is proved as what holds elsewhere is, and needs no exception.
    [rule: integers-apart]
    """
    whole, rest = ONE, constant(1 if value > 0 else -1)
    for atom, exponent in sorted(shared.items(), key=lambda item: item[0].key):
        integer = not atom.indicator and isinstance(exponent, int) and exponent > 0
        factor = of_atom(atom, 2 - exponent % 2 if isinstance(exponent, int) else exponent)
        if integer and is_integral(of_atom(atom)):
            whole = multiply(context, whole, factor)
        else:
            rest = multiply(context, rest, factor)
    for part, times in irreducible_factors(context, base):
        odd = multiply_all(context, [part] * (2 - times % 2))
        if is_integral(part):
            whole = multiply(context, whole, odd)
        else:
            rest = multiply(context, rest, odd)
    if whole.constant is not None or not has_real_leaf(rest):
        return None
    above, below = (
        multiply(context, at_least(context, side.plus(-1)), positive(context, other))
        for side, other in ((_over_integers(whole), rest), (_over_integers(-whole), -rest))
    )
    return above + below


def _without_growing(context: Proof, base: Poly) -> Poly | None:
    """A product that has the sign of ``f(P) Q``: ``(P - r) Q`` for a growing f with f(r) = 0.

    None where no factor is such a function.  [rule: monotone]
    """
    if len(base.terms) != 1:
        return None
    ((monomial, value),) = base.terms.items()
    for atom, exponent in monomial:
        if atom.kind != kinds.FUNCTION or not isinstance(exponent, int) or exponent % 2 == 0:
            continue
        root = _growing_root(context, atom.data[0])
        if root is not None:
            rest = monomial_poly(context, {a: e for a, e in monomial if a is not atom})
            return multiply(context, rest.scaled(value), atom.data[1].plus(-root))
    return None


def _growing_root(context: Proof, function: str) -> int | None:
    """Where a growing function is 0, if that is at 0 or 1; None where it is not known."""
    op = op_of(function)
    if op is None or op.scalar is None or not op.scalar.growing:
        return None
    apart = Proof(context.rules)  # what the value at 0 would require is not asked for
    make = partial(apart.make, kinds.FUNCTION, function)
    return next((root for root in (0, 1) if not make(constant(root)).terms), None)


def _without_divisors(context: Proof, base: Poly) -> Poly | None:
    """The sum times divisors of its terms that are positive; None where it has none.

    [rule: signs]
    """
    lowest: Exponents = {}
    for monomial in base.terms:
        for atom, exponent in monomial:
            if exponent < 0 and factor_sign(context, atom, exponent) == POSITIVE:
                lowest[atom] = min(lowest.get(atom, 0), exponent)
    if not lowest or len(base.terms) == 1:
        return None
    scale = monomial_poly(context, {atom: -exponent for atom, exponent in lowest.items()})
    return multiply(context, base, scale)


def primitive(context: Proof, poly: Poly) -> Poly:
    """What has the same sign, 0 included: without divisors and factors that are positive.

    [rule: signs]
    """
    if not poly.terms:
        return poly
    whole = _without_divisors(context, poly) or poly
    value, shared, base = content(context, whole)
    for atom, exponent in sorted(shared.items(), key=lambda item: item[0].key):
        if factor_sign(context, atom, exponent) != POSITIVE:
            base = multiply(context, base, of_atom(atom, exponent))
    return base if value > 0 else -base


def _without_squares(context: Proof, base: Poly) -> Poly | None:
    """What [P > 0] depends on: the factors of odd multiplicity, each once; None where all are.

    The others are positive almost everywhere.  [rule: complement]
    """
    if not _is_generic(context, base):
        return None
    factors = irreducible_factors(context, base)
    if all(times == 1 for _, times in factors):
        return None
    for part, times in factors:
        if times > 1:
            context.require_nonzero("complement", part)
    return multiply_all(context, (part for part, times in factors if times % 2))


def _oriented_positive(context: Proof, rest: Poly, upward: bool) -> Poly:
    if upward:
        context.refuse_triangles(rest)
    if upward or not _is_generic(context, rest):
        return of_atom(context.atom(kinds.POSITIVE, rest if upward else -rest))
    context.require_nonzero("complement", rest)
    return ONE - of_atom(context.atom(kinds.POSITIVE, rest))


def _removable(context: Proof, atom: Atom, exponent: Number) -> bool:
    """May a factor be dropped from [... > 0]?  It is positive almost everywhere."""
    sign = factor_sign(context, atom, exponent)
    if sign == POSITIVE:
        return True
    if sign == UNKNOWN or atom.piecewise or not has_real_leaf(atom) or _is_computed(context, atom):
        return False
    if not context.reading.generic:
        return False
    context.require_nonzero("complement", of_atom(atom))
    return True


def _is_computed(context: Proof, atom: Atom) -> bool:
    """Is it an element of a node that may be 0 on an open set, such as a maximum?"""
    return atom.kind == kinds.LEAF and context.facts.may_vanish(atom.data[0])


def not_negative(context: Proof, poly: Poly) -> Poly:
    """[P >= 0] for a real or an integer P."""
    if is_integral(poly):
        return at_least(context, _over_integers(poly))
    return ONE - positive(context, -poly)


def sign(context: Proof, poly: Poly) -> Poly:
    """-1, 0 or 1."""
    return positive(context, poly) - positive(context, -poly)


def equal(context: Proof, poly: Poly) -> Poly:
    """[P == 0] for a real or an integer P; almost everywhere 0 where P is analytic."""
    if is_integral(poly):
        return equal_integers(context, _over_integers(poly))
    return ONE - positive(context, poly) - positive(context, -poly)


def _is_generic(context: Proof, poly: Poly) -> bool:
    """Is it analytic in real leaves, and zero on a null set for each value of the indices?

    That it does not vanish identically has to be recorded.
    """
    return (
        context.reading.generic
        and not poly.piecewise
        and has_real_leaf(poly)
        and not _may_coincide(poly)
    )


def _may_coincide(poly: Poly) -> bool:
    """Does a tensor occur with different indices, so that it might vanish where they are equal?"""
    tensors = [atom.data[0] for atom in all_atoms(poly) if atom.kind == kinds.LEAF]
    return len(tensors) != len(set(tensors))


def has_real_leaf(item: Any) -> bool:
    """Does an element of a real tensor occur in it, at any depth but not in an index?"""
    todo, seen = [*direct_atoms(item)], set[Atom]()
    while todo:
        atom = todo.pop()
        if atom.kind == kinds.LEAF:
            if atom.data[2] == "real":
                return True
        elif atom not in seen:
            seen.add(atom)
            todo.extend(direct_atoms(atom.data))
    return False


def _has_infinity(poly: Poly) -> bool:
    return any(map(_is_infinite, poly.terms))


def _is_infinite(monomial: Monomial) -> bool:
    return any(atom.kind == kinds.INFINITY for atom, _ in monomial)


def _infinite_positive(poly: Poly) -> Poly:
    """[+-infinity + finite > 0]."""
    values = [c for m, c in poly.terms.items() if any(a.kind == kinds.INFINITY for a, _ in m)]
    if len(values) != 1:
        raise Undecided("infinities of both signs are compared")
    return ONE if values[0] > 0 else ZERO


def _compare_exponentials(context: Proof, poly: Poly) -> Poly | None:
    """[a exp(u) > b exp(v)] is [log a + u > log b + v] for positive a, b.  [rule: monotone]."""
    if len(poly.terms) != 2:
        return None
    (first, value), (second, other) = poly.terms.items()
    if value * other > 0 or not any(a.kind == kinds.EXP for a, _ in first + second):
        return None
    up, down = Poly({first: magnitude(value)}), Poly({second: magnitude(other)})
    if not (is_positive(context, up) and is_positive(context, down)):
        return None
    up, down = (context.make(kinds.FUNCTION, "log", side) for side in (up, down))
    gap = up - down
    return positive(context, gap if value > 0 else -gap)


# -- conditions on integers


def equal_integers(context: Proof, poly: Poly) -> Poly:
    """[P == 0] for an integer P.  [rule: integer-range]."""
    if poly.constant is not None:
        return ZERO if poly.constant else ONE
    lifted = lift(context, poly, lambda piece: equal_integers(context, piece))
    if lifted is not None:
        return lifted
    if integer_nonnegative(context, poly.plus(-1)):
        return ZERO
    if integer_nonnegative(context, (-poly).plus(-1)):
        return ZERO
    value, shared, base = content(context, poly)
    never_zero = all(factor_sign(context, a, 1) == POSITIVE for a in shared)
    reduced = base if never_zero else poly.scaled(Fraction(1) / value)
    if any(c % 1 for c in reduced.terms.values()):
        reduced = poly
    apart = _congruent(context, reduced)
    if apart is not None:
        whole, rest = (equal_integers(context, part) for part in apart)
        return multiply(context, whole, rest)
    special = context.apply_rules(context.rules.equalities, reduced)
    if special is not None:
        return special
    unique = _unique_elements(context, reduced)
    if unique is not None:
        return equal_integers(context, unique)
    if reduced.terms[reduced.lead] < 0:
        reduced = -reduced
    return of_atom(context.atom(kinds.EQUAL, reduced))


def _unique_elements(context: Proof, poly: Poly) -> Poly | None:
    """[idx[i] == idx[j]] is [i == j] where no value occurs twice.

    [rule: unique-index] [rule: permutation]
    """
    leaves = {sign: atom for atom, sign, _ in poly.solved(kinds.LEAF)}
    if not len(leaves) == len(poly.terms) == 2:
        return None
    left, right = leaves.values()
    if left.data[0] != right.data[0]:
        return None
    axis = context.facts.permutations.get(left.data[0])
    if left.data[0] in context.facts.unique and len(left.data[1]) == 1:
        axis = 0
    if axis is None:
        return None
    apart = [one - two for one, two in zip(left.data[1], right.data[1], strict=True)]
    difference: Poly = apart.pop(axis)
    return None if any(other.terms for other in apart) else difference


def at_least(context: Proof, poly: Poly) -> Poly:
    """[P >= 0] for an integer P.  [rule: integer-range]."""
    if poly.constant is not None:
        return ONE if poly.constant >= 0 else ZERO
    lifted = lift(context, poly, lambda piece: at_least(context, piece))
    if lifted is not None:
        return lifted
    if integer_nonnegative(context, poly):
        return ONE
    if integer_nonnegative(context, (-poly).plus(-1)):
        return ZERO
    whole = _without_quotient(poly)
    if whole is not None:
        return at_least(context, whole)
    if integer_nonnegative(context, -poly):
        return equal_integers(context, poly)
    if integer_nonnegative(context, poly.plus(1)):
        return ONE - equal_integers(context, poly.plus(1))
    labelled = _of_labels(context, poly)
    if labelled is not None:
        return labelled
    return of_atom(context.atom(kinds.ATLEAST, _tightened(poly)))


def _of_labels(context: Proof, poly: Poly) -> Poly | None:
    """[P >= 0], where it is the same for all labels but those that forward replaces.

    ``[t >= 0]`` is ``1 - [t == -100]`` for labels that are places or -100.  [rule: labels]
    """
    for leaf, sign, rest in poly.solved(kinds.LEAF):
        known = context.facts.labels.get(leaf.data[0]) if leaf.data[2] == "int" else None
        if known is None or substitute(context, rest, {leaf: ZERO}) != rest:
            continue
        size = from_dim(context, known.size)
        first, last = (substitute(context, poly, {leaf: end}) for end in (ZERO, size.plus(-1)))
        least, most = (first, last) if sign > 0 else (last, first)
        if (sign < 0 or known.counted) and integer_nonnegative(context, least):
            found = ONE
        elif (sign > 0 or known.counted) and integer_nonnegative(context, (-most).plus(-1)):
            found = ZERO
        else:
            continue
        usual = found
        for mark in known.marks:
            is_mark = equal_integers(context, of_atom(leaf).plus(-mark))
            there = at_least(context, substitute(context, poly, {leaf: constant(mark)}))
            found = found + multiply(context, is_mark, there - usual)
        return found
    return None


def _tightened(poly: Poly) -> Poly:
    """[2P + 1 >= 0] is [P >= 0]: the common factor divided out, the constant rounded down."""
    values = [Fraction(c) for m, c in poly.terms.items() if m]
    if any(value.denominator != 1 for value in values):
        return poly
    common = gcd(*(value.numerator for value in values))
    if common == 1:
        return poly
    rest = poly.offset
    whole = (poly - constant(rest)).scaled(Fraction(1, common))
    return whole.plus((Fraction(rest) / common).__floor__())


# -- signs and ranges: sufficient tests that never guess; False means "not proved"


def factor_sign(context: Proof, atom: Atom, exponent: Number) -> int:
    """The sign of ``atom**exponent`` wherever it is defined.  [rule: signs]."""
    kind = atom.kind
    if kind in (kinds.EXP, kinds.SIZE, kinds.NUMBER):
        return POSITIVE
    if atom.indicator:
        return NONNEGATIVE
    if isinstance(exponent, Fraction):
        inside = atom.data[0] if kind == kinds.POWER else of_atom(atom)
        return POSITIVE if exponent < 0 or is_positive(context, inside) else NONNEGATIVE
    own = _own_sign(context, atom)
    if own == POSITIVE or (own == NONNEGATIVE and exponent < 0):
        return POSITIVE
    if own == NONNEGATIVE or exponent % 2 == 0:
        return NONNEGATIVE
    return UNKNOWN


def _held_sign(context: Proof, atom: Atom) -> int:
    """The sign that a condition beside the piece at work, or a printed one, gives to an atom."""
    for held, strict in context.held:
        if held.lead == ((atom, 1),) and len(held.terms) == 1 and held.terms[held.lead] > 0:
            return POSITIVE if strict else NONNEGATIVE
    return _domain_sign(context, of_atom(atom))


def _domain_sign(context: Proof, poly: Poly) -> int:
    """The sign that a printed condition gives.  [rule: domain]."""
    if not context.in_domain:
        return UNKNOWN
    if poly in context.domain:
        return POSITIVE if context.domain[poly] else NONNEGATIVE
    return max(
        (POSITIVE if strict else NONNEGATIVE
         for own, strict in context.domain.items() if is_instance(context, own, poly)),
        default=UNKNOWN,
    )  # fmt: skip


def is_instance(context: Proof, condition: Poly, poly: Poly) -> bool:
    """Is it a condition at other index variables, each over the values of the one it is put for?"""
    if condition == poly:
        return True
    if len(condition.terms) != len(poly.terms) or len(condition.free) != len(poly.free):
        return False
    indices = tuple(sorted(condition.free, key=lambda one: one.key))
    template = stated.Template(condition, indices, strict=False)
    for places in stated.places(template, poly):
        renaming = {own: value.atom for own, value in places.items() if value.atom is not None}
        others = frozenset(renaming.values())
        alike = all(v.kind == kinds.INDEX and v.data[1] == i.data[1] for i, v in renaming.items())
        is_renaming = alike and len(others) == len(indices)
        if is_renaming and Renamer(context, renaming).poly(condition) == poly:
            return True
    return False


def _own_sign(context: Proof, atom: Atom) -> int:
    held = _held_sign(context, atom)
    if held != UNKNOWN:
        return held
    kind, data = atom.kind, atom.data
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
        found = min(factor_sign(context, a, e) for a, e in data[1])
        extents = [binder.data[1] for binder in data[0]]
        return found if found != POSITIVE or is_filled(context, extents) else NONNEGATIVE
    if kind == kinds.POWER:
        return poly_sign(context, data[0])
    if kind in (kinds.MAXIMUM, kinds.PRODUCT):
        return poly_sign(context, data[1])
    if is_floor(atom):
        ends = _floor_ends(context, atom)
        return NONNEGATIVE if ends is not None and (ends[0].constant or 0) >= 0 else UNKNOWN
    if kind == kinds.FLOORDIV:
        both = is_nonnegative(context, data[0]) and is_positive(context, data[1])
        return NONNEGATIVE if both else UNKNOWN
    return UNKNOWN


def is_filled(context: Proof, extents: Iterable[Poly]) -> bool:
    """Has a sum of these extents a summand for all admissible sizes?  One over nothing is 0."""
    return all(integer_nonnegative(context, extent.plus(-1)) for extent in extents)


def is_positive(context: Proof, poly: Poly) -> bool:
    """Is ``poly > 0`` wherever it is defined?"""
    return poly_sign(context, poly) == POSITIVE


def is_nonnegative(context: Proof, poly: Poly) -> bool:
    """Is ``poly >= 0`` wherever it is defined?"""
    return poly_sign(context, poly) != UNKNOWN


def poly_sign(context: Proof, poly: Poly, ends: int = 0) -> int:
    """What is known of the sign of ``poly`` wherever it is defined: POSITIVE, NONNEGATIVE, UNKNOWN.

    ``ends``: how many bounded atoms have been put at an end already.
    """
    memo = context.memo.setdefault("sign", {})
    key = poly, ends, context.in_domain, context.held
    found = memo.get(key)
    if found is None:
        context.spend(1)
        found = memo[key] = _find_sign(context, poly, ends)
    known: int = found
    return known


def _find_sign(context: Proof, poly: Poly, ends: int) -> int:
    if not poly.terms:
        return NONNEGATIVE
    if (known := _domain_sign(context, poly)) != UNKNOWN:
        return known
    signs = [_term_sign(context, m, c) for m, c in poly.terms.items()]
    if UNKNOWN not in signs:
        return max(signs)
    if context.held and ends < MOST_ENDS and (held := _sign_beside(context, poly, ends)) != UNKNOWN:
        return held
    if is_integral(poly):
        if integer_nonnegative(context, poly.plus(-1)):
            return POSITIVE
        return NONNEGATIVE if integer_nonnegative(context, poly) else UNKNOWN
    if context.stated and (found := _stated_sign(context, poly, ends)) != UNKNOWN:
        return found
    if context.decided and context.apply_rules(context.rules.signs, poly) == ONE:
        return POSITIVE
    if ends >= MOST_ENDS or not _may_be_decided(context, poly):
        return UNKNOWN
    return _sign_at_ends(context, poly, ends)


def _stated_sign(context: Proof, poly: Poly, ends: int) -> int:
    """The sign of a positive multiple of a stated relation, and of what is more than that.

    [rule: stated-relation]
    """
    if ends >= MOST_ENDS:
        return UNKNOWN
    best = UNKNOWN
    for template in context.stated:
        for places in stated.places(template, poly):
            if not all(in_range(context, places[own], own.data[1]) for own in template.indices):
                continue
            known = substitute(context, template.poly, places)
            for factor in multiples(poly, known):
                rest = poly - known.scaled(factor)
                found = poly_sign(context, rest, ends + 1)
                if found == POSITIVE or (found == NONNEGATIVE and template.strict):
                    return POSITIVE
                best = max(best, found)
    if best == UNKNOWN and len(poly.terms) == 1:
        return _sign_of_product(context, poly, ends)
    return best if best != UNKNOWN else _sign_of_factors(context, poly, ends)


def _sign_of_product(context: Proof, poly: Poly, ends: int) -> int:
    """The sign of a product of powers, some of which have a base that is less than 0."""
    monomial, value = next(iter(poly.terms.items()))
    found = POSITIVE
    for atom, exponent in monomial:
        own = factor_sign(context, atom, exponent)
        if own == UNKNOWN and atom.kind == kinds.POWER and isinstance(exponent, int):
            own = poly_sign(context, -atom.data[0], ends + 1)
            value = -value  # an even power has a sign that is known
        found = min(found, own)
        if found == UNKNOWN:
            return UNKNOWN
    return found if value > 0 else UNKNOWN


def _sign_of_factors(context: Proof, poly: Poly, ends: int) -> int:
    """The sign of what is not linear, by those of its irreducible factors."""
    if all(sum(e for _, e in monomial) == 1 for monomial in poly.terms if monomial):
        return UNKNOWN
    parts = irreducible_factors(context, poly)
    if len(parts) < 2:
        return UNKNOWN
    found, whole = POSITIVE, ONE
    for part, times in parts:
        own = poly_sign(context, part, ends + 1)
        if own == UNKNOWN:
            part = -part
            own = poly_sign(context, part, ends + 1)
        if own == UNKNOWN:
            return UNKNOWN
        found = min(found, own)
        whole = multiply(context, whole, raise_to(context, part, times))
    scale = Fraction(poly.terms[poly.lead]) / whole.terms.get(poly.lead, 1)
    return found if scale > 0 and poly == whole.scaled(exact(scale)) else UNKNOWN


def multiples(poly: Poly, known: Poly) -> list[Number]:
    """The positive numbers by which a relation may be in a polynomial."""
    found: dict[Number, None] = {}
    for monomial, value in known.terms.items():
        share = poly.terms.get(monomial)
        if share is not None and (share > 0) == (value > 0):
            found[exact(Fraction(share) / Fraction(value))] = None
    return [*found][:MOST_MULTIPLES]


def _sign_beside(context: Proof, poly: Poly, ends: int) -> int:
    """The sign of a multiple of what is held to have one, and of something else that has one."""
    for held, strict in context.held:
        value = Fraction(poly.terms.get(held.lead, 0)) / Fraction(held.terms[held.lead])
        if value <= 0:
            continue
        rest = poly_sign(context, poly - held.scaled(exact(value)), ends + 1)
        if rest != UNKNOWN:
            return POSITIVE if strict else rest
    return UNKNOWN


def _may_be_decided(context: Proof, poly: Poly) -> bool:
    """Does each term that is not plainly nonnegative hold an atom with known bounds?

    Beside a condition on reals, what is not known may be known in both of its pieces.
    """
    pieces = any(a.kind == kinds.POSITIVE for m in poly.terms for a, _ in m)
    for monomial, value in poly.terms.items():
        if _term_sign(context, monomial, value) != UNKNOWN:
            continue
        bounded = [a for a, _ in monomial if _interval(context, a) is not None]
        if pieces and not any(is_canonical(v) for a, _ in monomial for v in a.free):
            continue
        free = [
            a for a, e in monomial
            if a not in bounded and factor_sign(context, a, e) == UNKNOWN
        ]  # fmt: skip
        if free or (not bounded and monomial):
            return False
    return True


def _term_sign(context: Proof, monomial: Monomial, value: Number) -> int:
    signs = []
    for atom, exponent in monomial:
        signs.append(factor_sign(context, atom, exponent))
        if context.held and signs[-1] == UNKNOWN and _is_negative(context, atom, exponent):
            signs[-1], value = NONNEGATIVE, -value
    return UNKNOWN if value < 0 else min(signs, default=POSITIVE)


def _is_negative(context: Proof, atom: Atom, exponent: Number) -> bool:
    """Is an odd power held to be negative, or 0?"""
    negated = -of_atom(atom)
    odd = isinstance(exponent, int) and exponent % 2 == 1
    return odd and any(held == negated for held, _ in context.held)


def _sign_at_ends(context: Proof, poly: Poly, ends: int) -> int:
    """The sign of a polynomial that is affine in an atom with known bounds.  [rule: signs]."""
    for atom in sorted({a for m in poly.terms for a, _ in m}, key=lambda a: a.key):
        interval = _interval(context, atom)
        if interval is None:
            continue
        slope, rest = _affine(poly, atom)
        if slope is None:
            continue
        if _may_be_held(atom):
            found = _sign_in_pieces(context, atom.data[0], rest + slope, rest, ends + 1)
        else:
            found = _sign_between(context, slope, rest, interval, ends + 1)
        if found != UNKNOWN:
            return found
    return UNKNOWN


def _sign_in_pieces(context: Proof, compared: Poly, above: Poly, other: Poly, ends: int) -> int:
    """The sign of what is ``above`` where ``compared`` is positive, and ``other`` elsewhere."""
    with context.holding(compared, strict=True):
        found = poly_sign(context, above, ends)
    if found == UNKNOWN:
        return UNKNOWN
    with context.holding(-compared, strict=False):
        return min(found, poly_sign(context, other, ends))


def _sign_between(context: Proof, slope: Poly, rest: Poly, interval: Interval, ends: int) -> int:
    """The sign of ``slope * a + rest`` for a in the interval."""
    if interval.low is None and interval.high is None:
        return UNKNOWN
    if interval.low is None or interval.high is None:
        end, is_open = interval.low, interval.low_open
        if end is None and interval.high is not None:
            end, is_open, slope = interval.high, interval.high_open, -slope
            start = poly_sign(context, rest - slope.scaled(exact(end)), ends)
        else:
            start = poly_sign(context, rest + slope.scaled(exact(end or 0)), ends)
        away = poly_sign(context, slope, ends)
        if UNKNOWN in (start, away):
            return UNKNOWN
        return POSITIVE if start == POSITIVE or (is_open and away == POSITIVE) else NONNEGATIVE
    low = poly_sign(context, rest + slope.scaled(exact(interval.low)), ends)
    high = poly_sign(context, rest + slope.scaled(exact(interval.high)), ends)
    if UNKNOWN in (low, high):
        return UNKNOWN
    strict = (low == POSITIVE or interval.low_open) and (high == POSITIVE or interval.high_open)
    return POSITIVE if strict and POSITIVE in (low, high) else NONNEGATIVE


def _interval(context: Proof, atom: Atom) -> Interval | None:
    if atom.kind == kinds.LEAF and atom.data[2] != "bool":
        return context.facts.intervals.get(atom.data[0])
    if atom.kind == kinds.FUNCTION:
        return _bounds(atom.data[0])
    if atom.indicator:
        return Interval(Fraction(0), Fraction(1), False, False)
    return None


def _bounds(function: str) -> Interval | None:
    op = op_of(function)
    bounds = op and op.scalar and op.scalar.bounds
    if not bounds:
        return None
    low, high = (None if end is None else Fraction(end) for end in (bounds.low, bounds.high))
    return Interval(low, high, bounds.open, bounds.open)


def _affine(poly: Poly, atom: Atom) -> tuple[Poly | None, Poly]:
    """``(slope, rest)`` with ``poly == slope * atom + rest``; no slope where it is not affine."""
    slope: dict[Monomial, Number] = {}
    rest: dict[Monomial, Number] = {}
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


# -- ranges of integers


def is_integral(poly: Poly) -> bool:
    """Is it made of sizes, indices, integer leaves and floors alone, with integer exponents?"""
    return all(_integral(a) and isinstance(e, int) and e > 0 for m in poly.terms for a, e in m)


def _integral(atom: Atom) -> bool:
    if atom.kind == kinds.LEAF:
        return bool(atom.data[2] != "real")
    if atom.kind == kinds.SUM:
        return all(_integral(a) and isinstance(e, int) and e > 0 for a, e in atom.data[1])
    return atom.kind in _INTEGRAL or is_floor(atom)


def is_whole(poly: Poly) -> bool:
    """Is its value always an integer?"""
    return is_integral(poly) and all(isinstance(c, int) for c in poly.terms.values())


def is_floor(atom: Atom) -> bool:
    """Is it a number rounded down?"""
    return atom.kind == kinds.FUNCTION and atom.data[0] == "floor"


def _floor_ends(context: Proof, atom: Atom) -> tuple[Poly, Poly] | None:
    """The least and greatest floor of a number that is affine in one bounded element."""
    argument: Poly = atom.data[1]
    offset = argument.offset
    rest = argument.plus(-offset)
    interval = None if rest.atom is None else _interval(context, rest.atom)
    if interval is None or interval.low is None or interval.high is None:
        return None
    low, high = interval.low + offset, interval.high + offset
    greatest = math.ceil(high) - 1 if interval.high_open else math.floor(high)
    return constant(math.floor(low)), constant(greatest)


def extent_of(context: Proof, atom: Atom) -> Poly | None:
    """The number of values of an index-like atom, which lies in ``0 <= atom < extent``."""
    extent: Poly | None = None
    if atom.kind == kinds.INDEX:
        extent = atom.data[1]
    elif atom.kind == kinds.ARGMAX:
        extent = atom.data[0].data[1]
    elif atom.kind == kinds.LEAF and atom.data[2] == "int":
        bound = context.facts.range_of(atom.data[0])
        extent = None if bound is None else from_dim(context, bound)
    elif atom.indicator:
        extent = constant(2)
    return extent


def integer_nonnegative(context: Proof, poly: Poly) -> bool:
    """Is an integer polynomial ``>= 0`` for all sizes >= 1 and all indices in range?

    See ``ir.bounds``.  [rule: integer-range]
    """
    memo = context.memo.setdefault("nonnegative", {})
    found = memo.get(poly)
    if found is None:
        found = memo[poly] = _find_nonnegative(context, poly)
    known: bool = found
    return known


def _find_nonnegative(context: Proof, poly: Poly) -> bool:
    if all(c >= 0 for c in poly.terms.values()) and all(
        _integral(a) and factor_sign(context, a, 1) for m in poly.terms for a, _ in m
    ):
        return True
    if _is_negative_somewhere(context, poly):
        return False
    whole = is_whole(poly)
    return nonnegative(_divide_indices(context, poly).terms, _Ranges(context), whole=whole)


def _is_negative_somewhere(context: Proof, poly: Poly) -> bool:
    """Is it negative for some sizes and indices?  A quick no for most of what is asked.

    Only polynomials in sizes and indices are looked at: sizes at their least or a little above,
    all indices first, all last, or the first in one order first and the others last.
    """
    indices = []
    for atom in dict.fromkeys(a for m in poly.terms for a, _ in m):
        if atom.kind == kinds.INDEX:
            indices.append(atom)
        elif atom.kind != kinds.SIZE:
            return False
    ends = [frozenset[Atom](), frozenset(indices)]
    if len(indices) > 1:
        ends += [frozenset(indices[:1]), frozenset(indices[1:])]
    values: list[dict[Atom, Number]] = [{}, {}]
    for last in ends:
        for above, sizes in enumerate(values):
            value = _value_at(context, poly, sizes, above > 0, last)
            if value is None:
                return False
            if value < 0:
                return True
    return False


def _value_at(
    context: Proof, poly: Poly, sizes: dict[Atom, Number], above: bool, last: frozenset[Atom]
) -> Number | None:
    """A polynomial where indices are last or 0; ``sizes``: their values, as far as known."""
    total_value: Number = 0
    for monomial, value in poly.terms.items():
        for atom, exponent in monomial:
            if not isinstance(exponent, int) or exponent < 0:
                return None
            own: Number | None
            if atom.kind == kinds.SIZE:
                own = sizes.get(atom)
                if own is None:
                    least = context.facts.least_sizes.get(atom.data[0], 1)
                    own = sizes[atom] = least + (2 + atom.key % 11 if above else 0)
            elif atom.kind != kinds.INDEX:
                return None
            elif atom in last or any(c < 0 for c in atom.data[1].terms.values()):
                extent = _value_at(context, atom.data[1], sizes, above, frozenset())
                if extent is None or extent < 1:
                    return None
                own = extent - 1 if atom in last else 0
            else:
                own = 0
            value = value * own**exponent
        total_value += value
    return total_value


class _Ranges:
    """The ranges of integer atoms, for ``bounds.nonnegative``."""

    def __init__(self, context: Proof) -> None:
        self._context = context

    def least(self, atom: Atom) -> int | None:
        """What a size is declared to be at least; other atoms have ends, or none."""
        if atom.kind != kinds.SIZE:
            return None
        return self._context.facts.least_sizes.get(atom.data[0], 1)

    def ends(self, atom: Atom) -> tuple[Terms, Terms] | None:
        """The least and the greatest value of an index, a count, a floor or a quotient."""
        found = _integer_ends(self._context, atom)
        return None if found is None else (found[0].terms, found[1].terms)

    def has_sign(self, atom: Atom, power: Number) -> bool:
        """Is this power of the atom never negative?"""
        return factor_sign(self._context, atom, power) != UNKNOWN

    def order(self, atom: Atom) -> tuple[str, int]:
        """By kind: quotients before the indices in them."""
        return atom.kind, atom.key


def _integer_ends(context: Proof, atom: Atom) -> tuple[Poly, Poly] | None:
    """The least and the greatest value of an integer atom."""
    if is_count(atom):
        return _count_bounds(context, atom)
    if is_floor(atom):
        return _floor_ends(context, atom)
    if atom.kind == kinds.FLOORDIV and isinstance(atom.data[1].constant, int):
        left, divisor = atom.data[0], atom.data[1].constant
        part = Fraction(1, divisor)
        return left.plus(1 - divisor).scaled(part), left.scaled(part)
    extent = extent_of(context, atom)
    return None if extent is None else (Poly({}), extent.plus(-1))


def _divide_indices(context: Proof, poly: Poly) -> Poly:
    """Write k as ``q * (k // q) + remainder`` where ``k // q`` occurs and q divides the extent."""
    if not poly.divides:
        return poly
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
        terms = replaced(replaced(poly.terms, atom, high.terms), index, whole.terms)
        poly = Poly({monomial: exact(value) for monomial, value in terms.items()})
    return poly


def quotient(left: Poly, right: Poly) -> Poly | None:
    """The polynomial q with ``q * right == left`` and integer coefficients, or None."""
    if right == ONE:
        return left
    result, rest = Poly({}), left
    if not right.terms:
        return None
    top, top_value = right.lead, right.terms[right.lead]
    for _ in range(DIVISION_STEPS):
        if not rest.terms:
            return result
        exponents = joined(rest.lead, top, -1)
        value = exact(Fraction(rest.terms[rest.lead]) / top_value)
        if any(e < 0 for e in exponents.values()) or not isinstance(value, int):
            return None
        step = Poly({ordered(exponents): value})
        result, rest = result + step, rest - plain_product(step, right)
    return None


# -- counts: sums of conditions, and what follows when a count is positive


def is_count(atom: Atom) -> bool:
    """Is it a sum of products of conditions?"""
    return atom.kind == kinds.SUM and all(a.indicator for a, _ in atom.data[1])


def _count_bounds(context: Proof, atom: Atom) -> tuple[Poly, Poly]:
    """The least and greatest value of a count.  [rule: count].

    It is at least 1 where some index makes the conditions true whatever the inputs.
    """
    greatest = ONE
    for binder in atom.data[0]:
        greatest = plain_product(greatest, binder.data[1])
    return (ONE if _met_somewhere(context, atom) else Poly({})), greatest


def _met_somewhere(context: Proof, atom: Atom) -> bool:
    binders, monomial = atom.data
    if len(binders) != 1:
        return False
    (binder,) = binders
    for variable in sorted(atom.free, key=lambda v: v.key):
        if variable.data[1] == binder.data[1]:
            body = Poly({monomial: 1})
            value = substitute(context, body, {binder: of_atom(variable)})
            if value == ONE:
                return True
    return False


def _excluded_by_empty_count(context: Proof, none: Atom, condition: Atom) -> bool:
    """Does a condition that is c at some k contradict [sum_k [c(k)] == 0]?  [rule: count]."""
    counted = none.data[0].atom
    if counted is None or counted.kind != kinds.SUM or len(counted.data[0]) != 1:
        return False
    (binder,), monomial = counted.data
    inner = monomial[0][0]
    if len(monomial) != 1 or not inner.indicator or inner.kind != condition.kind:
        return False
    return any(
        variable.data[1] == binder.data[1]
        and Renamer(context, {binder: variable}).atom(inner) is condition
        for variable in condition.free
    )


def _empty_count_times_counted(context: Proof, exponents: Exponents) -> bool:
    """[count == 0] beside an element of a mask that is counted.  [rule: count]."""
    empty = [a for a in exponents if a.kind == kinds.EQUAL and a.data[0].atom is not None]
    masks = [a for a in exponents if a.indicator and a.kind == kinds.LEAF]
    return any(_excluded_by_empty_count(context, one, mask) for one in empty for mask in masks)


def _empty_count_times_sum(exponents: Exponents) -> bool:
    """[count == 0] beside a sum whose terms vanish where the conditions counted fail.

    [rule: count]
    """
    totals = [a for a, e in exponents.items() if a.kind == kinds.SUM and e > 0]
    for atom in [a for a in exponents if totals and a.kind == kinds.EQUAL]:
        counted = atom.data[0].atom
        if counted is None or not is_count(counted):
            continue
        for whole in totals:
            if counted.data[0] == whole.data[0] and set(counted.data[1]) <= set(whole.data[1]):
                return True
    return False


# -- integer arithmetic: index expressions, quotients and remainders


@dataclass(frozen=True)
class IndexValues:
    """What the atoms of index expressions stand for.

    ``axes``: the index variables.  ``element``: the value of an element of an integer tensor that
    is computed rather than given; None for a given one.
    """

    axes: Mapping[dims.Axis, Poly] = field(default_factory=dict)
    element: Callable[[dims.Element], Poly | None] = lambda element: None


_NO_VALUES = IndexValues()


def from_dim(context: Proof, dim: dims.Dim, environment: IndexValues = _NO_VALUES) -> Poly:
    """An index expression or size as a polynomial."""
    value = dim.constant
    if value is not None:
        return constant(value)
    result = ZERO
    for monomial, coefficient in dim.terms:
        powers = ([_from_atom(context, atom, environment)] * times for atom, times in monomial)
        factors = itertools.chain([constant(coefficient)], *powers)
        result = result + multiply_all(context, factors)
    return result


def _from_atom(context: Proof, atom: dims.Atom, environment: IndexValues) -> Poly:
    if isinstance(atom, dims.Size):
        return of_atom(context.atom(kinds.SIZE, atom.name))
    if isinstance(atom, dims.Axis):
        return environment.axes[atom]
    if isinstance(atom, dims.Element):
        computed = environment.element(atom)
        if computed is not None:
            return computed
        indices = tuple(from_dim(context, index, environment) for index in atom.indices)
        return leaf(context, atom.tensor, indices, "int")
    if isinstance(atom, dims.Derived):
        left = from_dim(context, atom.left, environment)
        right = from_dim(context, atom.right, environment)
        return _DERIVED[atom.function](context, left, right)
    raise Undecided(f"an index expression of an unknown kind: {atom}")


def floordiv(context: Proof, left: Poly, right: Poly) -> Poly:
    """``left // right`` rounded down, for ``right >= 1``.  [rule: floordiv].

    Multiples of ``right`` come out; what is left and lies in ``0 <= rest < right`` vanishes.
    """
    if right == ONE:
        return left
    if right.constant == 0:
        raise Undecided("an integer division by zero")
    if left.constant is not None and right.constant is not None:
        return constant(int(left.constant) // int(right.constant))
    if not integer_nonnegative(context, right.plus(-1)):
        raise Undecided("an integer division by something not known to be positive")
    lifted = lift(context, left, lambda piece: floordiv(context, piece, right))
    if lifted is not None:
        return lifted
    whole, rest = _divide_terms(left, right)
    if in_range(context, rest, right):
        return whole
    return whole + _nested_quotient(context, rest, right)


def _nested_quotient(context: Proof, left: Poly, right: Poly) -> Poly:
    """``(k // a) // b`` is ``k // (a b)``."""
    atom = left.atom
    if atom is not None and atom.kind == kinds.FLOORDIV:
        return floordiv(context, atom.data[0], plain_product(atom.data[1], right))
    reduced = _reduced_quotient(context, left, right)
    if reduced is not None:
        return reduced
    return of_atom(context.atom(kinds.FLOORDIV, left, right))


def _reduced_quotient(context: Proof, left: Poly, right: Poly) -> Poly | None:
    """``(s a + b) // (s c)`` is ``a // c`` where ``0 <= b < s``."""
    if len(right.terms) != 1:
        return None
    ((whole, size),) = right.terms.items()
    for monomial, value in sorted(left.terms.items(), key=lambda term: monomial_key(term[0])):
        shared = _common_divisor(monomial, int(value), whole, int(size))
        divided = quotient(right, shared)
        if shared in (ONE, right) or divided is None:
            continue
        multiple, rest = _divide_terms(left, shared)
        if multiple.terms and in_range(context, rest, shared):
            return floordiv(context, multiple, divided)
    return None


def _common_divisor(first: Monomial, value: int, second: Monomial, size: int) -> Poly:
    """The greatest common divisor of two terms."""
    powers = dict(second)
    shared: Exponents = {a: min(e, powers.get(a, 0)) for a, e in first}
    return Poly({ordered(shared): gcd(value, size)})


def _without_quotient(poly: Poly) -> Poly | None:
    """``P // q + c >= 0`` is ``P + c q >= 0``; the same for ``c - P // q``.

    [rule: floordiv]
    """
    for atom, value, bound in poly.solved(kinds.FLOORDIV):
        left: Poly = atom.data[0]
        right: Poly = atom.data[1]
        end = plain_product(bound, right)
        return left - end if value == 1 else (end + right - left).plus(-1)
    return None


def _congruent(context: Proof, poly: Poly) -> tuple[Poly, Poly] | None:
    """``(q, r)``: ``s q + r == 0`` means ``q == 0`` and ``r == 0``, since ``|r| < s``.

    [rule: flatten]
    """
    strides = {}
    for monomial, value in poly.terms.items():
        sizes = tuple((a, e) for a, e in monomial if a.kind == kinds.SIZE)
        if monomial and (sizes or value not in (1, -1)):
            stride = Poly({sizes: magnitude(value)})
            strides[stride.key] = stride
    for key in sorted(strides):
        stride = strides[key]
        first, left = _divide_terms(poly, stride)
        for shift in (0, 1, -1):
            whole, rest = first.plus(shift), left - stride.scaled(shift)
            if not whole.terms or not rest.terms or stride == ONE:
                continue
            below = (stride - rest).plus(-1), (stride + rest).plus(-1)
            if all(integer_nonnegative(context, side) for side in below):
                return whole, rest
    return None


def remainder(context: Proof, left: Poly, right: Poly) -> Poly:
    """``left % right`` for ``right >= 1``: ``left - right * (left // right)``."""
    product = multiply(context, right, floordiv(context, left, right))
    return left - product


def lesser_integer(context: Proof, left: Poly, right: Poly) -> Poly:
    """The lesser integer: ``right + [right >= left] (left - right)``."""
    smaller = at_least(context, right - left)
    return right + multiply(context, smaller, left - right)


def greater_integer(context: Proof, left: Poly, right: Poly) -> Poly:
    """The greater integer."""
    return left + right - lesser_integer(context, left, right)


_DERIVED = {"floordiv": floordiv, "mod": remainder, "min": lesser_integer, "max": greater_integer}


def _divide_terms(left: Poly, right: Poly) -> tuple[Poly, Poly]:
    """``(q, r)`` with ``left == q * right + r``: the terms of ``left`` that divide by ``right``."""
    exact = quotient(left, right)
    if exact is not None:
        return exact, ZERO
    whole, rest = ZERO, left
    lead = right.lead
    for monomial, value in left.terms.items():
        exponents = joined(monomial, lead, -1)
        if any(e < 0 for e in exponents.values()):
            continue
        times = int(value) // int(right.terms[lead])
        if times and (lead or not monomial or times * int(right.terms[lead]) == value):
            step = Poly({tuple((a, e) for a, e in exponents.items() if e): times})
            whole, rest = whole + step, rest - plain_product(step, right)
    return whole, rest


def in_range(context: Proof, value: Poly, extent: Poly) -> bool:
    """Is ``0 <= value < extent`` for an integer value, whatever the inputs?"""
    below = (extent - value).plus(-1)
    return integer_nonnegative(context, value) and integer_nonnegative(context, below)


# -- elements of tensors, as declared facts make them


def leaf(context: Proof, tensor: str, indices: tuple[Poly, ...], sort: str = "real") -> Poly:
    """An element of a tensor; ``sort`` is ``real``, ``int`` or ``bool``.  [rule: declared-leaf].

    One-hot tensors become ``[hot(n) == c]``, binary ones conditions, and the last two indices
    of symmetric ones are put in order.
    """
    facts = context.facts
    if tensor in facts.one_hot and indices:
        hot = of_atom(context.atom(kinds.LEAF, HOT + tensor, indices[:-1], "int"))
        return equal_integers(context, hot - indices[-1])
    if tensor in facts.binary:
        sort = "bool"
    if tensor in facts.symmetric and len(indices) >= 2:
        indices = symmetric_order(indices)
    chosen = _at_choice(context, tensor, indices, sort)
    if chosen is not None:
        return chosen
    if _is_outside_triangle(context, tensor, indices):
        return ZERO
    turned = _inverted_diagonal(context, tensor, indices)
    if turned is not None:
        return turned
    return of_atom(context.atom(kinds.LEAF, tensor, indices, sort))


def _at_choice(
    context: Proof, tensor: str, indices: tuple[Poly, ...], sort: str
) -> Poly | None:  # fmt: skip
    """An element at a place that a condition chooses; None for another.  [rule: lift]."""
    chosen = [k for k, place in enumerate(indices) if visible_indicator(place) is not None]
    if not chosen:
        return None
    axis = chosen[0]
    before, after = indices[:axis], indices[axis + 1 :]
    return lift(
        context, indices[axis], lambda place: leaf(context, tensor, (*before, place, *after), sort)
    )


def _inverted_diagonal(context: Proof, tensor: str, indices: tuple[Poly, ...]) -> Poly | None:
    """The diagonal of the inverse of a triangular matrix: one over its own.  [rule: triangular]."""
    facts = context.facts
    matrix = facts.inverses.get(tensor)
    if matrix is None or tensor not in facts.lower | facts.upper or indices[-1] != indices[-2]:
        return None
    return power(context, leaf(context, matrix, indices), -1)


# -- substitution: what surrounds a replaced atom is built anew by its own rule


def substitute(context: Proof, poly: Poly, mapping: Mapping[Atom, Poly]) -> Poly:
    """``poly`` with the atoms of ``mapping`` replaced, all at once.

    The replacement of an index variable must lie in its range.  [rule: substitution]
    """
    if not mapping:
        return poly
    return Substitution(context, mapping).poly(poly)


class Substitution:
    """One simultaneous replacement, with a memo over atoms."""

    def __init__(self, context: Proof, mapping: Mapping[Atom, Poly]) -> None:
        self.context = context
        self.mapping = dict(mapping)
        self.indices_only = all(atom.kind == kinds.INDEX for atom in mapping)
        self._targets = frozenset(mapping)
        self._memo: dict[Atom, Poly] = {}

    def poly(self, poly: Poly) -> Poly:
        """The replacement in a polynomial."""
        if self.indices_only and not (poly.free & self._targets):
            return poly
        self.context.spend(len(poly.terms))
        return total(self.monomial(m).scaled(c) for m, c in poly.terms.items())

    def monomial(self, monomial: Monomial) -> Poly:
        """The replacement in a product of powers."""
        kept: Exponents = {}
        changed: list[Poly] = []
        for atom, exponent in monomial:
            if self.indices_only and not (atom.free & self._targets):
                kept[atom] = exponent
                continue
            value = self.atom(atom)
            changed.append(value if exponent == 1 else self._power(atom, value, exponent))
        result = monomial_poly(self.context, kept) if kept else ONE
        for value in changed:
            result = multiply(self.context, result, value)
        return result

    def _power(self, atom: Atom, value: Poly, exponent: Number) -> Poly:
        """The power of what an atom has become; other indices need nothing new on record."""
        if not self.indices_only and (exponent < 0 or not isinstance(exponent, int)):
            return power(self.context, value, exponent)
        return raise_to(self.context, value, exponent)

    def atom(self, atom: Atom) -> Poly:
        """The replacement in an atom; for a power atom, in its base."""
        if atom in self.mapping:
            return self.mapping[atom]
        found = self._memo.get(atom)
        if found is None:
            found = self._memo[atom] = self._rebuilt(atom)
        return found

    def _rebuilt(self, atom: Atom) -> Poly:
        context, kind = self.context, atom.kind
        if kind in (kinds.SIZE, kinds.NUMBER, kinds.INFINITY):
            return of_atom(atom)
        if kind == kinds.INDEX:
            return of_atom(context.atom(kinds.INDEX, atom.data[0], self.poly(atom.data[1])))
        if kind == kinds.SUM:
            binders, monomial = opened(context, atom, self)
            return context.make(kind, binders, self.monomial(monomial))
        if kind in kinds.BINDERS:
            binder, body = atom.data
            fresh = context.fresh(self.poly(binder.data[1]))
            renamed = substitute(context, body, {binder: of_atom(fresh)})
            return context.make(kind, fresh, self.poly(renamed))
        return context.make(kind, *map(self._part, atom.data))

    def _part(self, part: Any) -> Any:
        if isinstance(part, Poly):
            return self.poly(part)
        return tuple(map(self._part, part)) if isinstance(part, tuple) else part


def opened(
    context: Proof, atom: Atom, task: Substitution | None = None
) -> tuple[list[Atom], Monomial]:
    """The binders of a sum atom as fresh variables, and its monomial in them."""
    extents = [binder.data[1] for binder in atom.data[0]]
    if task is not None:
        extents = [task.poly(extent) for extent in extents]
    fresh = [context.fresh(extent) for extent in extents]
    renaming = dict(zip(atom.data[0], fresh, strict=True))
    return fresh, rename_monomial(context, atom.data[1], renaming)
