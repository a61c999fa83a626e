"""Permutations: integer tensors that hold every index of an axis once, such as ranks.

In: atoms and factors.  Out: what follows from being a permutation, or None.
"""

from __future__ import annotations

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import stated
from symgrad.proof.normal.algebra import (
    at_least,
    equal_integers,
    from_dim,
    in_range,
    leaf,
    monomial_poly,
    primitive,
    substitute,
)
from symgrad.proof.normal.atoms import Atom, Monomial, Number
from symgrad.proof.normal.context import Proof
from symgrad.proof.normal.maxima import argmax
from symgrad.proof.normal.poly import ONE, Poly, direct_atoms, of_atom


def counted_once(context: Proof, binders: list[Atom], factors: dict[Atom, Number]) -> Poly | None:
    """``sum_b f(r(b))`` is ``sum_i f(i)`` for a permutation r; ``sum_b [r(b) == j]`` is 1.

    ``sum_b [r(b) == j] f(b)`` is f at the inverse of j.
    [rule: permutation]
    """
    if not context.facts.permutations:
        return None
    if len(binders) == 1 and len(factors) == 1:
        (condition,) = factors
        if condition.kind == kinds.EQUAL and _place(context, condition, binders[0]) is not None:
            return ONE
    for binder in binders:
        found = _by_rank(context, binders, factors, binder)
        if found is None:
            found = _at_inverse(context, binders, factors, binder)
        if found is not None:
            return found
    return None


def _by_rank(
    context: Proof, binders: list[Atom], factors: dict[Atom, Number], binder: Atom
) -> Poly | None:
    """The same sum over the ranks, where nothing but ranks depends on a variable."""
    read: dict[Atom, None] = {}
    todo = [atom for atom in factors if binder in atom.free]
    while todo:
        atom = todo.pop()
        axis = context.facts.permutations.get(atom.data[0]) if atom.kind == kinds.LEAF else None
        if axis is not None and _runs_along(context, atom, axis, binder):
            read[atom] = None
        elif atom is binder or atom.kind in kinds.BINDERS or atom.kind == kinds.SUM:
            return None
        else:
            todo += [part for part in direct_atoms(atom.data) if binder in part.free]
    if len(read) != 1:
        return None
    (rank,) = read
    others = [index for index in rank.data[1] if index.atom is not binder]
    if any(other in index.free for other in binders for index in others):
        return None
    place = context.fresh(binder.data[1])
    body = substitute(context, monomial_poly(context, factors), {rank: of_atom(place)})
    return context.make(kinds.SUM, [place if one is binder else one for one in binders], body)


def _at_inverse(
    context: Proof, binders: list[Atom], factors: dict[Atom, Number], binder: Atom
) -> Poly | None:
    """``sum_b [r(b) == j] f(b)`` as f at the inverse of j, which is that sum of b itself.

    Of permutations that are declared: those of a sort have their ranks for inverses.
    """
    held = [atom for atom in factors if atom.kind == kinds.EQUAL and _declared(context, atom)]
    found = [atom for atom in held if _place(context, atom, binder) is not None]
    rest = {atom: exponent for atom, exponent in factors.items() if atom not in found}
    if len(found) != 1 or rest == {binder: 1}:
        return None
    inverse = context.make(kinds.SUM, [binder], monomial_poly(context, {found[0]: 1, binder: 1}))
    body = substitute(context, monomial_poly(context, rest), {binder: inverse})
    others = [one for one in binders if one is not binder]
    return context.make(kinds.SUM, others, body) if others else body


def _declared(context: Proof, condition: Atom) -> bool:
    """Does it compare an element of a tensor that is declared to have no value twice?"""
    leaves = (atom for atom, *_ in condition.data[0].solved(kinds.LEAF))
    return any(atom.data[0] in context.facts.unique for atom in leaves)


def _runs_along(context: Proof, rank: Atom, axis: int, binder: Atom) -> bool:
    """Is it the rank of an element, and its place a variable that nothing else in it depends on?

    The variable runs along the whole axis.
    """
    others = (index for at, index in enumerate(rank.data[1]) if at != axis)
    length = context.facts.ranges.get(rank.data[0])
    whole = length is not None and binder.data[1] == from_dim(context, length)
    alone = not any(binder in index.free for index in others)
    return whole and alone and rank.data[1][axis].atom is binder


def decided(context: Proof, poly: Poly) -> Poly | None:
    """``[P > 0]`` is a condition on integers where that is known of P.  [rule: support].

    What stands in one such P is decided by those before it.  That P is defined has been recorded.
    """
    if not context.decided:
        return None
    memo = context.memo.setdefault("decided", {})
    key = poly, len(context.decided)
    if key not in memo:
        everything = context.decided
        kept = dict(context.obligations), dict(context.requirements)
        try:
            memo[key] = _decided(context, poly)
        finally:
            context.decided = everything
            context.obligations, context.requirements = kept
    found: Poly | None = memo[key]
    return found


def _decided(context: Proof, poly: Poly) -> Poly | None:
    everything, read = context.decided, stated.tensors(poly)
    same: Poly | None = None
    for number, known in enumerate(everything):
        if known.tensors != read:
            continue
        context.decided = everything[:number]
        same = primitive(context, poly) if same is None else same
        if len(same.terms) == len(known.template.poly.terms):
            found = _decided_by(context, known, same)
            if found is not None:
                return found
    return None


def _decided_by(context: Proof, known: stated.Decided, poly: Poly) -> Poly | None:
    for places in stated.places(known.template, poly):
        if not all(in_range(context, value, own.data[1]) for own, value in places.items()):
            continue
        there = primitive(context, substitute(context, known.template.poly, places))
        if poly in (there, -there):
            holds = substitute(context, known.holds, places)
            return holds if poly == there else ONE - holds
    return None


def inverse_at(context: Proof, poly: Poly) -> Poly | None:
    """``[sum_b [r(b) == j] b == p]`` is ``[r(p) == j]`` for a permutation r.

    [rule: permutation]
    """
    if not context.facts.permutations:
        return None
    for atom, _, place in poly.solved(kinds.SUM):
        binders, inner = atom.data
        if len(binders) != 1 or len(inner) != 2:
            continue
        (binder,) = binders
        conditions = [a for a, e in inner if a.kind == kinds.EQUAL]
        if len(conditions) != 1 or (binder, 1) not in inner:
            continue
        if _place(context, conditions[0], binder) is None:
            continue
        if in_range(context, place, binder.data[1]):
            inside = conditions[0].data[0]
            there = substitute(context, inside, {binder: place})
            return equal_integers(context, there)
    return None


def compared(context: Proof, poly: Poly) -> Poly | None:
    """Elements of a sorted tensor are compared by their ranks, where there are no ties.

    ``[x(p) > sum_b [r(b) == q] x(b)]`` is ``[r(p) > q]`` for the ranks r of x.  [rule: order]
    """
    if not context.facts.orders or len(poly.terms) != 2:
        return None
    (first, value), (second, other) = poly.terms.items()
    if value != -other:
        return None
    ranks = sorted(context.facts.orders)
    for rank in ranks:
        sides = [_rank_of(context, rank, monomial) for monomial in (first, second)]
        if sides[0] is None or sides[1] is None or sides[0][1] != sides[1][1]:
            continue
        _require_no_ties(context, rank, sides[0][1])
        above = sides[0][0] - sides[1][0]
        upward = (value > 0) != context.facts.orders[rank][1]
        return at_least(context, (above if upward else -above).plus(-1))
    return None


Ranked = tuple[Poly, tuple[Poly, ...]]


def _rank_of(context: Proof, rank: str, monomial: Monomial) -> Ranked | None:
    """The rank of an element, and its indices along the other axes."""
    if len(monomial) != 1 or monomial[0][1] != 1:
        return None
    atom, axis = monomial[0][0], context.facts.permutations[rank]
    if atom.kind == kinds.LEAF and atom.data[0] == context.facts.orders[rank][0]:
        others = (*atom.data[1][:axis], *atom.data[1][axis + 1 :])
        return leaf(context, rank, atom.data[1], "int"), others
    if atom.kind != kinds.SUM or len(atom.data[0]) != 1 or len(atom.data[1]) != 2:
        return None
    (binder,), inner = atom.data
    conditions = [a for a, e in inner if a.kind == kinds.EQUAL]
    elements = [a for a, e in inner if a.kind == kinds.LEAF and e == 1]
    if len(conditions) != 1 or len(elements) != 1:
        return None
    (element,) = elements
    place = _place(context, conditions[0], binder)
    if place is None or element.data[0] != context.facts.orders[rank][0]:
        return None
    read = leaf(context, rank, element.data[1], "int")
    told = conditions[0].data[0]
    if element.data[1][axis].atom is not binder or read - place not in (told, -told):
        return None
    others = (*element.data[1][:axis], *element.data[1][axis + 1 :])
    return None if any(binder in index.free for index in others) else (place, others)


def _require_no_ties(context: Proof, rank: str, others: tuple[Poly, ...]) -> None:
    """Record that two elements along the axis are not equal for all inputs."""
    source, axis = context.facts.orders[rank][0], context.facts.permutations[rank]
    extent = extent_along(context, rank)
    left, right = (context.atom(kinds.INDEX, f"tie {side}", extent) for side in (1, 2))
    one, two = (
        leaf(context, source, (*others[:axis], of_atom(variable), *others[axis:]))
        for variable in (left, right)
    )
    context.require_distinct("order", one - two, left, right)


def extent_along(context: Proof, rank: str) -> Poly:
    """The number of elements that are ranked."""
    return from_dim(context, context.facts.ranges[rank])


def extreme(context: Proof, poly: Poly) -> Poly | None:
    """``[r(p) == 0]`` says that p is where the least (greatest) element is.

    That is so with ties too, since the sort is stable: the first of them.  [rule: order]
    """
    atom = poly.atom if poly.atom is not None else (-poly).atom
    if atom is None or atom.kind != kinds.LEAF or atom.data[0] not in context.facts.orders:
        return None
    rank, indices = atom.data[0], atom.data[1]
    (source, downward), axis = context.facts.orders[rank], context.facts.permutations[rank]
    binder = context.fresh(extent_along(context, rank))
    at = (*indices[:axis], of_atom(binder), *indices[axis + 1 :])
    body = leaf(context, source, at)
    first = argmax(context, binder, body if downward else -body)
    place: Poly = indices[axis]
    return equal_integers(context, place - first)


def _place(context: Proof, condition: Atom, binder: Atom) -> Poly | None:
    """The j of ``[r(b) == j]``, where r is a permutation along b and j is in its range."""
    inside: Poly = condition.data[0]
    for element, _, place in inside.solved(kinds.LEAF):
        axis = context.facts.permutations.get(element.data[0])
        if axis is None or not _runs_along(context, element, axis, binder):
            continue
        if binder in place.free:
            continue
        if in_range(context, place, binder.data[1]):
            return place
    return None
