"""Comparisons with a maximum: where it is reached, and that it is reached once.

In: a polynomial.  Out: [P > 0] by the first index of the greatest value, or None.
"""

from __future__ import annotations

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import lifting, multiply, relations, signs, substitute
from symgrad.proof.normal.atoms import Atom, Undecided
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.poly import ONE, ZERO, Poly, of_atom

MOST_CONDITIONS = 4
"""Of more conditions in a body no pieces are made."""


def against_maximum(context: Context, poly: Poly) -> Poly | None:
    """[max_k f(k) > f(j)] is 1 - [j == argmax f] where there are no ties.  [rule: no-ties]."""
    for monomial, value in poly.terms.items():
        if len(monomial) != 1 or monomial[0][0].kind != kinds.MAXIMUM or monomial[0][1] != 1:
            continue
        if value not in (1, -1):
            continue
        atom = monomial[0][0]
        binder, body = atom.data
        other = (poly - Poly({monomial: value})).scaled(-value)
        index = _instance(context, binder, body, other)
        if index is None:
            continue
        if value < 0:
            return ZERO
        reached = _reached(context, atom, index, other)
        return None if reached is None else ONE - reached
    return None


def _reached(context: Context, atom: Atom, index: Poly, other: Poly) -> Poly | None:
    """[max_k f(k) == f(j)], as [j == argmax f]; maxima of maxima one by one.

    None where ties may fill an open set, but conditions can be lifted first.
    """
    binder, body = atom.data
    if not _without_ties(context, binder, body):
        if lifting.visible_indicator(other) is not None:
            return None
        raise Undecided("an equality test on a piecewise value: ties have positive measure")
    first = of_atom(context.atom(kinds.ARGMAX, binder, body))
    here = relations.equal_integers(context, index - first)
    inner = substitute.substitute(context, body, {binder: index})
    if inner == other:
        return here
    return multiply.multiply(context, here, ONE - relations.positive(context, inner - other))


def _without_ties(context: Context, binder: Atom, body: Poly) -> bool:
    """Record that two bodies are not equal for all inputs, piece by piece where they have pieces.

    False where a piece is not analytic.
    """
    left, right = context.fresh(binder.data[1]), context.fresh(binder.data[1])
    sides = []
    for variable in (left, right):
        side = substitute.substitute(context, body, {binder: of_atom(variable)})
        while side.atom is not None and side.atom.kind == kinds.MAXIMUM:
            inner, side = side.atom.data
            fresh = of_atom(context.fresh(inner.data[1]))
            side = substitute.substitute(context, side, {inner: fresh})
        sides.append(side)
    pieces = _pieces(context, sides[0] - sides[1])
    if any(piece.piecewise or not piece.terms for piece in pieces):
        return False
    for piece in pieces:
        context.require_distinct("no-ties", piece, left, right)
    return True


def _pieces(context: Context, poly: Poly) -> list[Poly]:
    """What the polynomial is where its conditions on elements hold or fail: all combinations."""
    pieces = [poly]
    for _ in range(MOST_CONDITIONS):
        found = {a for p in pieces for m in p.terms for a, _ in m if a.indicator and a.piecewise}
        if not found:
            break
        atom = min(found, key=lambda a: (a.erased, a.key))
        split = [
            lifting.with_value(context, piece, atom, value)
            for piece in pieces
            for value in (True, False)
        ]
        pieces = list(dict.fromkeys(split))
    return pieces


def _is_among(context: Context, whole: Poly, other: Poly) -> bool:
    """Is ``other`` the whole, or one of the values that a maximum is taken of?"""
    if whole == other:
        return True
    atom = whole.atom
    if atom is None or atom.kind != kinds.MAXIMUM:
        return False
    return _instance(context, atom.data[0], atom.data[1], other) is not None


def _instance(context: Context, binder: Atom, body: Poly, other: Poly) -> Poly | None:
    """The index j with ``body(j) == other``, sought among the indices that occur."""
    extent: Poly = binder.data[1]
    candidates = [of_atom(v) for v in sorted(other.free, key=lambda v: v.key)]
    candidates += _index_arguments(other)
    for index in candidates:
        inside = signs.integer_nonnegative(context, index) and signs.integer_nonnegative(
            context, (extent - index).plus(-1)
        )
        if inside and _is_among(
            context, substitute.substitute(context, body, {binder: index}), other
        ):
            return index
    return None


def _index_arguments(poly: Poly) -> list[Poly]:
    """The index expressions of the leaves that are factors."""
    found = [
        index
        for monomial in poly.terms
        for atom, _ in monomial
        if atom.kind == kinds.LEAF
        for index in atom.data[1]
    ]
    return sorted(found, key=lambda index: index.key)
