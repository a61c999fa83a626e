"""Order relations that imply each other, and elements of triangular matrices, which imply one.

In: the factors of a monomial.  Out: the factors without what is implied, or a polynomial.

An element ``L[i, k]`` of a lower triangular matrix stands for ``[i >= k] L[i, k]``.
"""

from __future__ import annotations

import itertools

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import multiply, relations, signs
from symgrad.proof.normal.atoms import Atom, Number
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.poly import ZERO, Poly

Exponents = dict[Atom, Number]
MOST = 12
"""Of more conditions in one monomial no triples are compared."""


def gap_of(context: Context, tensor: str, indices: tuple[Poly, ...]) -> Poly | None:
    """What must be at least 0 for an element of a triangular matrix not to be 0.

    [rule: triangular]
    """
    if len(indices) < 2:
        return None
    row, column = indices[-2:]
    if tensor in context.facts.lower:
        return row - column
    return column - row if tensor in context.facts.upper else None


def is_outside(context: Context, tensor: str, indices: tuple[Poly, ...]) -> bool:
    """Is it an element of a triangular matrix that is 0 whatever the indices?"""
    gap = gap_of(context, tensor, indices)
    return gap is not None and signs.integer_nonnegative(context, (-gap).plus(-1))


def implied(context: Context, exponents: Exponents) -> Exponents | Poly:
    """The factors less the order relations that others imply; zero where they contradict.

    ``P >= 0`` follows from ``Q >= 0`` and ``R >= 0`` where ``P - Q - R >= 0``.  Where instead
    ``P + Q + R == 0``, it says ``P == 0``.  [rule: implied-relation]
    """
    known = _gaps(context, exponents)
    written = [a for a in exponents if a.kind == kinds.ATLEAST]
    if not written or not 2 <= len(known) + len(written) <= MOST:
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
            same = relations.equal_integers(context, atom.data[0])
            return multiply.multiply(context, multiply.monomial_poly(context, kept), same)
    return kept


def _gaps(context: Context, exponents: Exponents) -> list[Poly]:
    facts = context.facts
    if not facts.lower and not facts.upper:
        return []
    found: dict[Poly, None] = {}
    for atom, exponent in exponents.items():
        if atom.kind == kinds.LEAF and exponent > 0:
            gap = gap_of(context, atom.data[0], atom.data[1])
            if gap is not None and gap.terms:
                found[gap] = None
    return list(found)


def _follows(context: Context, goal: Poly, others: list[Poly]) -> str:
    """``implied``, ``equal`` (it can only be 0), ``never`` or ``open``."""
    sums = others + [left + right for left, right in itertools.combinations(others, 2)]
    known = [one for one in sums if _related(goal, one)]
    if any(signs.integer_nonnegative(context, goal - one) for one in known):
        return "implied"
    both = [goal + one for one in known]
    if any(signs.integer_nonnegative(context, (-one).plus(-1)) for one in both):
        return "never"
    return "open" if all(one.terms for one in both) else "equal"


def _related(first: Poly, second: Poly) -> bool:
    """Do the two have a term in common, so that adding them cancels anything?"""
    return any(monomial in second.terms for monomial in first.terms if monomial)
