"""Denominators cleared: equal quotients need not have equal normal forms.

In: a polynomial.  Out: whether it is zero once multiplied with its denominators.
"""

from __future__ import annotations

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import labels, multiply, power
from symgrad.proof.normal.atoms import Atom, Monomial, Number
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.poly import ZERO, Poly, constant, exact, total

ROUNDS = 4


def clear(context: Context, poly: Poly) -> bool:
    """Is ``poly`` zero after multiplying with the bases of its negative powers?

    These bases are nonzero almost everywhere: that they do not vanish identically is on record
    since they were inverted.  [rule: clear-denominators]
    """
    for _ in range(ROUNDS):
        if not poly.terms:
            return True
        lowest = _lowest_exponents(poly)
        if not lowest:
            return False
        poly = total(_raised(context, m, lowest).scaled(c) for m, c in poly.terms.items())
    return not poly.terms


def _lowest_exponents(poly: Poly) -> dict[Atom, Number]:
    atoms = {a: None for m in poly.terms for a, _ in m if a.kind == kinds.POWER}
    found: dict[Atom, Number] = {}
    for atom in sorted(atoms, key=lambda a: a.key):
        lowest = min(dict(m).get(atom, 0) for m in poly.terms)
        if lowest < 0:
            found[atom] = -lowest
    return found


def _raised(context: Context, monomial: Monomial, raise_by: dict[Atom, Number]) -> Poly:
    exponents = dict(monomial)
    result = constant(1)
    for atom, amount in raise_by.items():
        exponent = exact(exponents.pop(atom, 0) + amount)
        whole = exponent.__floor__()
        if exponent != whole:
            rest = multiply.monomial_poly(context, {atom: exponent - whole})
            result = multiply.multiply(context, result, rest)
        raised = power.raise_to(context, atom.data[0], whole)
        result = multiply.multiply(context, result, raised)
    return multiply.multiply(context, result, multiply.monomial_poly(context, exponents))


def combine(context: Context, poly: Poly) -> bool:
    """Is ``poly`` zero when sums over equal ranges are put under one sum?  [rule: combine]."""
    groups: dict[tuple[int, ...], list[tuple[Atom, list[Atom], Monomial, Number]]] = {}
    for monomial, value in poly.terms.items():
        atom = _main_sum(monomial)
        if atom is None:
            return False
        binders = sorted(atom.data[0], key=lambda v: (v.data[1].key, v.data[0]))
        rest = tuple((a, e) for a, e in monomial if a is not atom)
        ranges = tuple(v.data[1].key for v in binders)
        groups.setdefault(ranges, []).append((atom, binders, rest, value))
    return all(_integrand_is_zero(context, groups[ranges]) for ranges in sorted(groups))


def _main_sum(monomial: Monomial) -> Atom | None:
    candidates = [a for a, e in monomial if a.kind == kinds.SUM and e == 1]
    inverted = [a for a in candidates if any(b.kind == kinds.POWER for b, _ in a.data[1])]
    chosen = inverted or candidates
    return max(chosen, key=lambda a: (len(a.data[0]), a.height, a.key)) if chosen else None


def _integrand_is_zero(
    context: Context, group: list[tuple[Atom, list[Atom], Monomial, Number]]
) -> bool:
    fresh = [context.fresh(binder.data[1]) for binder in group[0][1]]
    integrand = ZERO
    for atom, binders, rest, value in group:
        renaming = dict(zip(binders, fresh, strict=True))
        body = Poly({labels.rename_monomial(context, atom.data[1], renaming): value})
        outside = Poly({rest: 1})
        integrand = integrand + multiply.multiply(context, outside, body)
    return clear(context, integrand)
