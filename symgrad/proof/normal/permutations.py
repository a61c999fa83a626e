"""Permutations: integer tensors that hold every index of an axis once, such as ranks.

In: atoms and factors.  Out: what follows from being a permutation, or None.
Imports: ``atoms``, ``poly``, ``context``, ``relations``, ``signs``, ``substitute``.
"""

from __future__ import annotations

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import relations, signs, substitute
from symgrad.proof.normal.atoms import Atom, Number
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.poly import ONE, Poly


def counted_once(context: Context, binders: list[Atom], factors: dict[Atom, Number]) -> Poly | None:
    """``sum_b [r(b) == j]`` is 1 for a permutation r and a j in range.  [rule: permutation]."""
    if not context.facts.permutations or len(binders) != 1 or len(factors) != 1:
        return None
    (condition,) = factors
    if condition.kind != kinds.EQUAL or _place(context, condition, binders[0]) is None:
        return None
    return ONE


def inverse_at(context: Context, poly: Poly) -> Poly | None:
    """``[sum_b [r(b) == j] b == p]`` is ``[r(p) == j]`` for a permutation r.

    [rule: permutation]
    """
    if not context.facts.permutations:
        return None
    for monomial, value in poly.terms.items():
        if len(monomial) != 1 or monomial[0][0].kind != kinds.SUM or value not in (1, -1):
            continue
        binders, inner = monomial[0][0].data
        if len(binders) != 1 or len(inner) != 2:
            continue
        (binder,) = binders
        conditions = [a for a, e in inner if a.kind == kinds.EQUAL]
        if len(conditions) != 1 or (binder, 1) not in inner:
            continue
        place = (poly - Poly({monomial: value})).scaled(-value)
        if _place(context, conditions[0], binder) is None:
            continue
        if _in_range(context, place, binder.data[1]):
            inside = conditions[0].data[0]
            there = substitute.substitute(context, inside, {binder: place})
            return relations.equal_integers(context, there)
    return None


def _place(context: Context, condition: Atom, binder: Atom) -> Poly | None:
    """The j of ``[r(b) == j]``, where r is a permutation along b and j is in its range."""
    inside: Poly = condition.data[0]
    for monomial, value in inside.terms.items():
        if len(monomial) != 1 or monomial[0][1] != 1 or value not in (1, -1):
            continue
        leaf = monomial[0][0]
        axis = context.facts.permutations.get(leaf.data[0]) if leaf.kind == kinds.LEAF else None
        if axis is None or leaf.data[1][axis].atom is not binder:
            continue
        others = [index for at, index in enumerate(leaf.data[1]) if at != axis]
        place = (inside - Poly({monomial: value})).scaled(-value)
        if binder in place.free or any(binder in index.free for index in others):
            continue
        if _in_range(context, place, binder.data[1]):
            return place
    return None


def _in_range(context: Context, value: Poly, extent: Poly) -> bool:
    return signs.integer_nonnegative(context, value) and signs.integer_nonnegative(
        context, (extent - value).plus(-1)
    )
