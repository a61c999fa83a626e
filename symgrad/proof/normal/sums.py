"""Sums over index variables.

In: index variables and a polynomial.  Out: the sum in normal form, in which every sum atom is one
connected component.

The steps for one monomial, in order: sums inside that depend on the variables are merged, deltas
eliminated, flattened indices split where a quotient of them occurs, and what is left is taken
apart into connected components; factors that depend on no variable come out.
"""

from __future__ import annotations

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import components, deltas, multiply, power, substitute
from symgrad.proof.normal.atoms import Atom, Number
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.poly import ONE, ZERO, Poly, total

Exponents = dict[Atom, Number]


def sum_over(context: Context, binders: list[Atom], poly: Poly) -> Poly:
    """The sum of ``poly`` over all values of the binders.  [rule: sum-linear]."""
    if not binders or not poly.terms:
        return poly
    single = {v: ZERO for v in binders if v.data[1].constant == 1}
    if single:
        rest = [v for v in binders if v not in single]
        return sum_over(context, rest, substitute.substitute(context, poly, dict(single)))
    if any(v.data[1].constant == 0 for v in binders):
        return ZERO
    if context.factored and len(poly.terms) > 1:
        poly = power.condense(context, poly)
    return total(
        sum_monomial(context, list(binders), dict(monomial)).scaled(value)
        for monomial, value in poly.terms.items()
    )


def sum_monomial(context: Context, binders: list[Atom], factors: Exponents) -> Poly:
    """The sum of one monomial."""
    context.spend(1 + len(factors))
    bound = frozenset(binders)
    for atom, exponent in factors.items():
        if atom.kind != kinds.SUM or not atom.free & bound:
            continue
        if isinstance(exponent, int) and exponent > 0:
            return _merge(context, binders, factors, atom, exponent)
    for step in (deltas.eliminate, deltas.split_flattened):
        changed = step(context, binders, factors)
        if changed is not None:
            return changed
    return _take_apart(context, binders, factors, bound)


def _merge(
    context: Context, binders: list[Atom], factors: Exponents, atom: Atom, exponent: int
) -> Poly:
    """An inner sum that depends on the binders becomes part of the outer one.  [rule: merge]."""
    rest = {a: e for a, e in factors.items() if a is not atom}
    body, everything = multiply.monomial_poly(context, rest), list(binders)
    for _ in range(exponent):
        fresh, monomial = substitute.opened(context, atom)
        everything += fresh
        inner = multiply.monomial_poly(context, dict(monomial))
        body = multiply.multiply(context, body, inner)
    return sum_over(context, everything, body)


def _take_apart(
    context: Context, binders: list[Atom], factors: Exponents, bound: frozenset[Atom]
) -> Poly:
    """Connected components; a variable that nothing depends on counts its values.

    [rule: components]
    """
    outside: Exponents = {}
    groups: list[tuple[set[Atom], Exponents]] = []
    for atom, exponent in factors.items():
        touched = set(atom.free & bound)
        if not touched:
            outside[atom] = exponent
            continue
        members: Exponents = {}
        for group in [g for g in groups if g[0] & touched]:
            groups.remove(group)
            touched |= group[0]
            members.update(group[1])
        members[atom] = exponent
        groups.append((touched, members))
    result = multiply.monomial_poly(context, outside) if outside else ONE
    for binder in binders:
        if not any(binder in touched for touched, _ in groups):
            result = multiply.multiply(context, result, binder.data[1])
    for touched, members in groups:
        order = sorted(touched, key=lambda v: v.key)
        result = multiply.multiply(context, result, components.component(context, order, members))
    return result
