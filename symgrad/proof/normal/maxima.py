"""Greatest values over an index, their first index, and comparisons with them.

In: a fresh binder and a body, or a polynomial to compare.  Out: a polynomial over maximum and
argmax atoms; [P > 0] by the first index of the greatest value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from symgrad.budgets import MOST_CONDITIONS
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.algebra import (
    POSITIVE,
    by_condition,
    content,
    equal_integers,
    factor_sign,
    in_range,
    integer_nonnegative,
    is_instance,
    is_integral,
    monomial_poly,
    multiply,
    positive,
    substitute,
    visible_indicator,
    with_value,
)
from symgrad.proof.normal.atoms import Atom, Monomial, Number, Undecided
from symgrad.proof.normal.context import Proof
from symgrad.proof.normal.labels import Renamer
from symgrad.proof.normal.poly import ONE, ZERO, Poly, exact, magnitude, of_atom


def maximum(context: Proof, binder: Atom, body: Poly) -> Poly:
    """The greatest value of ``body`` over the binder.  [rule: max].

    What does not depend on the binder comes out: terms, and positive factors.
    """
    if binder.data[1].constant == 1:
        return substitute(context, body, {binder: ZERO})
    masked = _masked(context, binder, body, maximum)
    if masked is not None:
        return masked
    outside, inside = _split(body, binder)
    if not inside.terms:
        return body
    last = _at_its_end(context, binder, inside)
    if last is not None:
        return outside + last
    factor, rest = _positive_factor(context, binder, inside)
    atom = bind(context, kinds.MAXIMUM, binder, rest)
    return outside + multiply(context, factor, of_atom(atom))


def _at_its_end(context: Proof, binder: Atom, body: Poly) -> Poly | None:
    """``max_i [i <= e] f(i)`` is ``f(e)`` for integers f that grow and are not negative.

    [rule: max]
    """
    shared = frozenset.intersection(*(frozenset(a for a, _ in m) for m in body.terms))
    for bound in sorted((a for a in shared if a.kind == kinds.ATLEAST), key=lambda a: a.key):
        end = bound.data[0] + of_atom(binder)
        if binder in end.free or not in_range(context, end, binder.data[1]):
            continue
        values = with_value(context, body, bound, True)
        if not is_integral(values):
            continue
        there, here = (substitute(context, values, {binder: place}) for place in (end, ZERO))
        after = substitute(context, values, {binder: of_atom(binder).plus(1)})
        if integer_nonnegative(context, here) and integer_nonnegative(context, after - values):
            return there
    return None


def argmax(context: Proof, binder: Atom, body: Poly) -> Poly:
    """The first index at which ``body`` is greatest.  [rule: argmax]."""
    if binder.data[1].constant == 1:
        return ZERO
    masked = _masked(context, binder, body, argmax)
    if masked is not None:
        return masked
    _, inside = _split(body, binder)
    if not inside.terms:
        return ZERO
    _, rest = _positive_factor(context, binder, inside)
    return of_atom(bind(context, kinds.ARGMAX, binder, rest))


def _masked(
    context: Proof, binder: Atom, body: Poly, function: Callable[[Proof, Atom, Poly], Poly]
) -> Poly | None:
    """What a mask that does not depend on the binder leaves; None where there is none.

    That a mask which does keeps an entry is recorded, unless it plainly does.
    [rule: minus-infinity]
    """
    coefficient = _of_infinity(body)
    if not coefficient.terms or coefficient.constant is not None:
        return None
    for monomial in coefficient.terms:
        for atom, _ in monomial:
            if atom.indicator and binder not in atom.free:
                pieces = by_condition(context, body, atom)
                for piece, condition in zip(
                    pieces, (of_atom(atom), ONE - of_atom(atom)), strict=True
                ):
                    if _of_infinity(piece).constant:
                        context.memo.setdefault(_ROWS, {})[condition] = None
                holds, fails = (function(context, binder, piece) for piece in pieces)
                chosen = multiply(context, of_atom(atom), holds)
                other = multiply(context, ONE - of_atom(atom), fails)
                return chosen + other
    if not _kept_somewhere(context, binder, coefficient):
        context.require("minus-infinity", "row", coefficient.plus(1))
    return None


_ROWS = "rows that are masked throughout"


def without_masked(context: Proof, poly: Poly) -> Poly:
    """Without what stands beside a mask that cannot hold there.  [rule: minus-infinity].

    Beside ``[i == argmax f]`` no condition holds that makes ``f(i)`` -inf: f is more somewhere,
    which was recorded.  Where one masks a whole row, nothing is claimed, which is recorded here.
    """
    kept = dict[Monomial, Number]()
    for monomial, value in poly.terms.items():
        unmasked = _unmasked(context, monomial)
        if unmasked is not None:
            kept[unmasked] = kept.get(unmasked, 0) + value
    return Poly({monomial: exact(value) for monomial, value in kept.items() if value})


def _unmasked(context: Proof, monomial: Monomial) -> Monomial | None:
    """A monomial without conditions that hold anyway; None where one does not hold."""
    masks = [atom for atom, _ in monomial if atom.indicator]
    for row in context.memo.get(_ROWS, ()):
        if any(is_instance(context, row, of_atom(mask)) for mask in masks):
            context.require("minus-infinity", "row", ONE - row)
            return None
    holding = set[Atom]()
    for there in _greatest(context, masks):
        for mask in masks:
            for holds, piece in zip((True, False), by_condition(context, there, mask), strict=True):
                coefficient = _of_infinity(piece).constant
                if coefficient is not None and coefficient < 0:
                    if holds:
                        return None
                    holding.add(mask)
    return tuple((atom, exponent) for atom, exponent in monomial if atom not in holding)


def _greatest(context: Proof, conditions: Sequence[Atom]) -> Iterator[Poly]:
    """``f(i)`` for each ``[i == argmax f]`` whose f is -inf somewhere."""
    for condition in conditions:
        if condition.kind == kinds.EQUAL:
            for place, _, index in condition.data[0].solved(kinds.ARGMAX):
                binder, body = place.data
                if _of_infinity(body).terms:
                    yield substitute(context, body, {binder: index})


def _of_infinity(body: Poly) -> Poly:
    """What infinity is multiplied with."""
    return Poly({
        tuple((a, e) for a, e in monomial if a.kind != kinds.INFINITY): value
        for monomial, value in body.terms.items()
        if any(a.kind == kinds.INFINITY for a, _ in monomial)
    })  # fmt: skip


def _kept_somewhere(context: Proof, binder: Atom, coefficient: Poly) -> bool:
    """Is an entry not masked, whatever the inputs?"""
    extent: Poly = binder.data[1]
    places = [ZERO, extent.plus(-1)]
    for variable in sorted(coefficient.free, key=lambda v: v.key):
        if variable is not binder and variable.data[1] == extent:
            places.append(of_atom(variable))
    return any(not substitute(context, coefficient, {binder: place}).terms for place in places)


def _split(body: Poly, binder: Atom) -> tuple[Poly, Poly]:
    """The terms without and with the binder; an infinity stays with the terms that it masks."""
    inside = {
        m: c
        for m, c in body.terms.items()
        if any(binder in atom.free or atom.kind == kinds.INFINITY for atom, _ in m)
    }
    if not any(binder in atom.free for m in inside for atom, _ in m):
        inside = {}
    outside = {m: c for m, c in body.terms.items() if m not in inside}
    return Poly(outside), Poly(inside)


def _positive_factor(context: Proof, binder: Atom, body: Poly) -> tuple[Poly, Poly]:
    """A positive factor of ``body`` that does not depend on the binder, and the other factor."""
    value, shared, base = content(context, body)
    positive = {
        a: e
        for a, e in shared.items()
        if binder not in a.free and factor_sign(context, a, e) == POSITIVE
    }
    kept = {a: e for a, e in shared.items() if a not in positive}
    rest = multiply(context, monomial_poly(context, kept), base)
    factor = monomial_poly(context, positive).scaled(magnitude(value))
    return factor, rest if value > 0 else -rest


def bind(context: Proof, kind: str, binder: Atom, body: Poly) -> Atom:
    """The atom that binds ``binder`` under its canonical name."""
    name = context.atom(kinds.INDEX, f"b{1 + body.height}.0", binder.data[1])
    return context.atom(kind, name, Renamer(context, {binder: name}).poly(body))


# -- comparisons with a maximum: where it is reached, and that it is reached once


def against_maximum(context: Proof, poly: Poly) -> Poly | None:
    """[max_k f(k) > f(j)] is 1 - [j == argmax f] where there are no ties.  [rule: no-ties]."""
    for atom, value, other in poly.solved(kinds.MAXIMUM):
        binder, body = atom.data
        index = _instance(context, binder, body, other)
        if index is None:
            continue
        if value < 0:
            return ZERO
        reached = _reached(context, atom, index, other)
        return None if reached is None else ONE - reached
    return None


def _reached(context: Proof, atom: Atom, index: Poly, other: Poly) -> Poly | None:
    """[max_k f(k) == f(j)], as [j == argmax f]; maxima of maxima one by one.

    None where ties may fill an open set, but conditions can be lifted first, or have been.
    """
    binder, body = atom.data
    if not _without_ties(context, binder, body, finite=not _of_infinity(other).terms):
        if visible_indicator(other) is not None or context.held:
            return None
        raise Undecided("an equality test on a piecewise value: ties have positive measure")
    first = of_atom(context.atom(kinds.ARGMAX, binder, body))
    here = equal_integers(context, index - first)
    inner = substitute(context, body, {binder: index})
    if inner == other:
        return here
    return multiply(context, here, ONE - positive(context, inner - other))


def _without_ties(context: Proof, binder: Atom, body: Poly, *, finite: bool) -> bool:
    """Record that two bodies are not equal for all inputs, piece by piece where they have pieces.

    False where a piece is not analytic.  ``finite``: so is what they are compared with, which no
    infinite piece is equal to.
    """
    left, right = context.fresh(binder.data[1]), context.fresh(binder.data[1])
    sides = []
    for variable in (left, right):
        side = substitute(context, body, {binder: of_atom(variable)})
        while side.atom is not None and side.atom.kind == kinds.MAXIMUM:
            inner, side = side.atom.data
            fresh = of_atom(context.fresh(inner.data[1]))
            side = substitute(context, side, {inner: fresh})
        sides.append(side)
    if not finite or not _of_infinity(body).terms:
        sides = [sides[0] - sides[1], ZERO]
    pairs = _pieces(context, (sides[0], sides[1]))
    whole = len(pairs) == 1
    if finite:
        pairs = [pair for pair in pairs if not any(_of_infinity(side).terms for side in pair)]
    pieces = list(dict.fromkeys(one - other for one, other in pairs))
    if any(piece.piecewise or not piece.terms for piece in pieces):
        return False
    for piece in pieces:
        context.require_distinct("no-ties", piece, left, right, of_greatest=whole)
    return True


def _pieces(context: Proof, sides: tuple[Poly, Poly]) -> list[tuple[Poly, Poly]]:
    """What two polynomials are where conditions on elements hold or fail: all combinations."""
    pieces = [sides]
    for _ in range(MOST_CONDITIONS):
        found = {
            a for pair in pieces for p in pair for m in p.terms for a, _ in m
            if a.indicator and a.piecewise
        }  # fmt: skip
        if not found:
            break
        atom = min(found, key=lambda a: (a.erased, a.key))
        split = [[by_condition(context, side, atom) for side in pair] for pair in pieces]
        pieces = list(dict.fromkeys((one[at], other[at]) for one, other in split for at in (0, 1)))
    return pieces


def _is_among(context: Proof, whole: Poly, other: Poly) -> bool:
    """Is ``other`` the whole, or one of the values that a maximum is taken of?"""
    if whole == other:
        return True
    atom = whole.atom
    if atom is None or atom.kind != kinds.MAXIMUM:
        return False
    return _instance(context, atom.data[0], atom.data[1], other) is not None


def _instance(context: Proof, binder: Atom, body: Poly, other: Poly) -> Poly | None:
    """The index j with ``body(j) == other``, sought among the indices that occur."""
    extent: Poly = binder.data[1]
    candidates = [of_atom(v) for v in sorted(other.free, key=lambda v: v.key)]
    candidates += _index_arguments(other)
    for index in candidates:
        if not in_range(context, index, extent):
            continue
        if _is_among(context, substitute(context, body, {binder: index}), other):
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
