"""Chains of order relations: what makes products of them unique.

In: a polynomial.  Out: an equal one in which no index lies between two others.

Two of three indices are in order, so ``[i >= k]`` says ``[i >= j] + [j >= k] >= 1``; with
``[i >= j] [j >= k]`` implying ``[i >= k]``, all relations between monomials are known.
"""

from __future__ import annotations

import itertools

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import multiply, relations, substitute, sums
from symgrad.proof.normal.atoms import Atom, Number
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.poly import ONE, Poly, of_atom, total

Exponents = dict[Atom, Number]


def unchained(context: Context, poly: Poly) -> Poly:
    """``[i >= j] [j >= k] = [i >= k] ([i >= j] + [j >= k] - 1)``, in sums too.

    [rule: order-chain]
    """
    return total(_monomial(context, dict(m)).scaled(c) for m, c in poly.terms.items())


def _monomial(context: Context, factors: Exponents) -> Poly:
    found = _chain(factors)
    if found is not None:
        left, right = found
        rest = multiply.monomial_poly(
            context, {a: e for a, e in factors.items() if a is not left and a is not right}
        )
        around = relations.at_least(context, left.data[0] + right.data[0])
        either = of_atom(left) + of_atom(right) - ONE
        return unchained(
            context, multiply.multiply(context, multiply.multiply(context, rest, around), either)
        )
    result = ONE
    for atom, exponent in factors.items():
        factor = multiply.monomial_poly(context, {atom: exponent})
        if atom.kind == kinds.SUM and exponent == 1 and _chain(dict(atom.data[1])) is not None:
            fresh, monomial = substitute.opened(context, atom)
            factor = sums.sum_over(context, fresh, _monomial(context, dict(monomial)))
        result = multiply.multiply(context, result, factor)
    return result


def _chain(factors: Exponents) -> tuple[Atom, Atom] | None:
    """Two relations of indices with one in the middle: the first in the order of keys."""
    ordered = [a for a in factors if a.kind == kinds.ATLEAST and _between_indices(a.data[0])]
    ordered.sort(key=lambda atom: (atom.erased, atom.key))
    for left, right in itertools.combinations(ordered, 2):
        if len((left.data[0] + right.data[0]).terms) == 2:
            return left, right
    return None


def _between_indices(poly: Poly) -> bool:
    """Is it the difference of two index variables?"""
    atoms = [m[0][0] for m in poly.terms if len(m) == 1 and m[0][1] == 1]
    return (
        len(atoms) == len(poly.terms) == 2
        and sorted(poly.terms.values()) == [-1, 1]
        and all(atom.kind == kinds.INDEX for atom in atoms)
    )
