"""Multiplication: exponents are added and the rules of a single monomial applied.

In: two polynomials of one context.  Out: their product in normal form.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import counts, power, signs, triangular
from symgrad.proof.normal.atoms import Atom, Monomial, Number, Undecided
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.poly import (
    ONE,
    ZERO,
    Poly,
    exact,
    exponent_of,
    magnitude,
    monomial_key,
    of_atom,
    ordered,
    total,
)

Exponents = dict[Atom, Number]


def multiply(context: Context, left: Poly, right: Poly) -> Poly:
    """The product.  [rule: ring]."""
    if not left.terms or not right.terms:
        return ZERO
    if len(left.terms) > len(right.terms):
        left, right = right, left
    if left.constant is not None:
        return right.scaled(left.constant)
    if context.factored and len(left.terms) > 1:
        left, right = power.condense(context, left), power.condense(context, right)
    context.spend(len(left.terms) * len(right.terms))
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


def multiply_all(context: Context, polys: list[Poly]) -> Poly:
    """The product of several."""
    result = ONE
    for poly in polys:
        result = multiply(context, result, poly)
    return result


def _product(context: Context, first: Monomial, second: Monomial) -> Monomial | Poly:
    if not first or not second:
        return first or second
    exponents = dict(first)
    special = any(atom.special for atom, _ in second) or any(atom.special for atom, _ in first)
    for atom, exponent in second:
        exponents[atom] = exponents.get(atom, 0) + exponent
    return normalise(context, exponents) if special else ordered(exponents)


def monomial_poly(context: Context, exponents: Exponents) -> Poly:
    """The polynomial of one monomial with these exponents, rules applied."""
    result = normalise(context, exponents)
    return result if isinstance(result, Poly) else Poly({result: 1})


def renormalised(context: Context, poly: Poly) -> Poly:
    """The polynomial with the rules applied to each monomial anew."""
    return total(monomial_poly(context, dict(m)).scaled(c) for m, c in poly.terms.items())


def normalise(context: Context, exponents: Exponents) -> Monomial | Poly:
    """A monomial in normal form, or the polynomial that a rule turned it into."""
    exponents = {atom: exponent_of(e) for atom, e in exponents.items() if e}
    special = [atom for atom in exponents if atom.special]
    if not special:
        return ordered(exponents)
    for atom in special:
        changed = _rewrite_atom(context, exponents, atom)
        if changed is not None:
            return changed
    if counts.no_terms(exponents):
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
            reduced = power.reduce_lead(context, exponents, atom)
            if reduced is not None:
                return reduced
    return ordered(exponents)


def _with_relations(
    context: Context, exponents: Exponents, relations: list[Atom]
) -> Exponents | Poly:
    """The factors without conditions that others decide; a polynomial where a rule makes one."""
    if len(relations) > 1:
        if not _combine_relations(context, exponents, relations):
            return ZERO
        split = _one_holds(context, exponents)
        if split is not None:
            return split
    return triangular.implied(context, exponents)


def _rewrite_atom(context: Context, exponents: Exponents, atom: Atom) -> Poly | None:
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
            raise Undecided("an infinity is multiplied with something other than a condition")
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
    context: Context, exponents: Exponents, atom: Atom, exponent: Number
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
        return multiply(context, monomial_poly(context, rest), power.raise_to(context, base, whole))
    return None


def _expand_single_let(
    context: Context, exponents: Exponents, special: list[Atom]
) -> Monomial | Poly:
    """A several-term factor that stands alone in its monomial is multiplied out.  [rule: let]."""
    lets = [a for a in special if a.kind == kinds.POWER and exponents.get(a, 0) >= 1]
    if len(lets) == 1 and exponents[lets[0]].__floor__() == 1:
        (atom,) = lets
        rest = {**exponents, atom: exponents[atom] - 1}
        context.spend(len(atom.data[0].terms))
        return total(
            monomial_poly(context, _merged(rest, monomial)).scaled(value)
            for monomial, value in atom.data[0].terms.items()
        )
    return ordered(exponents)


def _merged(exponents: Exponents, monomial: Monomial) -> Exponents:
    result = dict(exponents)
    for atom, exponent in monomial:
        result[atom] = result.get(atom, 0) + exponent
    return result


# -- products of conditions


def _combine_relations(context: Context, exponents: Exponents, relations: list[Atom]) -> bool:
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


def _combine_same(context: Context, exponents: Exponents, left: Atom, right: Atom) -> bool:
    """[E > 0][F > 0], or [E >= 0][F >= 0], compared with F scaled to E's size."""
    first: Poly = left.data[0]
    if left.kind == kinds.POSITIVE:
        nonnegative, slack = signs.is_nonnegative, 0
    else:
        nonnegative, slack = signs.integer_nonnegative, -1
    for scale in _ratios(first, right.data[0]):
        second = right.data[0].scaled(magnitude(scale))
        if scale < 0:
            if nonnegative(context, (-first - second).plus(slack)):
                return False
        elif nonnegative(context, first - second):
            del exponents[left]
            return True
        elif nonnegative(context, second - first):
            del exponents[right]
            return True
    return True


def _one_holds(context: Context, exponents: Exponents) -> Poly | None:
    """``[E > 0][F > 0] = [E > 0] + [F > 0] - 1`` where ``E + F > 0``: one of the two holds.

    [rule: implied-relation]
    """
    signed = [atom for atom in exponents if atom.kind == kinds.POSITIVE]
    for left, right in itertools.combinations(signed, 2):
        first, second = left.data[0], right.data[0]
        for scale in _ratios(first, second):
            if scale < 0 and signs.is_positive(context, first + second.scaled(-scale)):
                rest = {a: e for a, e in exponents.items() if a is not left and a is not right}
                each = [monomial_poly(context, {**rest, atom: 1}) for atom in (left, right)]
                return total([*each, -monomial_poly(context, rest)])
    return None


def _ratios(first: Poly, second: Poly) -> list[Number]:
    """What ``second`` may be scaled by so that a term cancels; 1 where the two share none.

    Negative where the terms have opposite signs.
    """
    common = sorted((m for m in first.terms if m and m in second.terms), key=monomial_key)
    found = [exact(Fraction(first.terms[m]) / second.terms[m]) for m in reversed(common)]
    return list(dict.fromkeys(found)) or [1]


def _never_both_equal(context: Context, left: Atom, right: Atom) -> bool:
    if counts.excluded_by(context, left, right) or counts.excluded_by(context, right, left):
        return True
    for other in (right.data[0], -right.data[0]):
        apart = left.data[0] - other
        if signs.integer_nonnegative(context, apart.plus(-1)):
            return True
        if signs.integer_nonnegative(context, (-apart).plus(-1)):
            return True
    return False


def _combine_equal(context: Context, exponents: Exponents, equal: Atom, least: Atom) -> bool:
    """[E == 0][F >= 0]: F may have multiples of E added."""
    for shifted in (least.data[0] + equal.data[0], least.data[0] - equal.data[0]):
        if signs.integer_nonnegative(context, shifted):
            del exponents[least]
            return True
        if signs.integer_nonnegative(context, (-shifted).plus(-1)):
            return False
    return True
