"""Products over an index: split, shifted, and taken apart where a condition divides the range.

In: a fresh binder and a body.  Out: a polynomial over product atoms.
"""

from __future__ import annotations

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.algebra import (
    at_least,
    by_condition,
    equal_integers,
    is_positive,
    monomial_poly,
    multiply,
    power,
    raise_to,
    substitute,
)
from symgrad.proof.normal.atoms import Atom
from symgrad.proof.normal.context import Proof
from symgrad.proof.normal.functions import exponential, logarithm
from symgrad.proof.normal.maxima import bind
from symgrad.proof.normal.poly import ONE, ZERO, Poly, constant, of_atom
from symgrad.proof.normal.sums import index_expressions, solved_in_range, sum_over

_FEW = 16
"""Factors that are multiplied out."""


def product(context: Proof, binder: Atom, body: Poly) -> Poly:
    """The product of ``body`` over the binder.  [rule: product]."""
    extent: Poly = binder.data[1]
    if extent.constant == 1:
        return substitute(context, body, {binder: ZERO})
    if body.constant == 1:
        return ONE
    if not body.terms:
        return ZERO
    for rule in (_tabled, _reversed, _shifted, _directed, _punched, _ranged):
        changed = rule(context, binder, body)
        if changed is not None:
            return changed
    if len(body.terms) == 1:
        return _product_of_factors(context, binder, body)
    return of_atom(bind(context, kinds.PRODUCT, binder, body))


def _product_of_factors(context: Proof, binder: Atom, body: Poly) -> Poly:
    """Products of products split; exponentials turn into sums."""
    ((monomial, value),) = body.terms.items()
    extent: Poly = binder.data[1]
    result = _repeated(context, constant(value), extent)
    for atom, exponent in monomial:
        if binder not in atom.free:
            factor = _repeated(context, monomial_poly(context, {atom: exponent}), extent)
        elif atom.kind == kinds.EXP:
            total_exponent = sum_over(context, [binder], atom.data[0]).scaled(exponent)
            factor = exponential(context, total_exponent)
        else:
            own = of_atom(bind(context, kinds.PRODUCT, binder, of_atom(atom)))
            factor = power(context, own, exponent)
        result = multiply(context, result, factor)
    return result


def _repeated(context: Proof, factor: Poly, times: Poly) -> Poly:
    """``factor**times`` for a number of times that is a size."""
    count = times.constant
    if factor.constant == 1:
        return ONE
    if isinstance(count, int):
        return raise_to(context, factor, count)
    if is_positive(context, factor):
        return exponential(context, multiply(context, logarithm(context, factor), times))
    binder = context.fresh(times)
    return of_atom(bind(context, kinds.PRODUCT, binder, factor))


def _tabled(context: Proof, binder: Atom, body: Poly) -> Poly | None:
    """A product of few factors that tell places apart, as of a table: factor by factor.

    [rule: product-table]
    """
    count = binder.data[1].constant
    if not isinstance(count, int) or count > _FEW:
        return None
    if not any(
        atom.kind in (kinds.ATLEAST, kinds.EQUAL) and binder in atom.free
        for monomial in body.terms for atom, _ in monomial
    ):  # fmt: skip
        return None
    result = ONE
    for place in range(count):
        result = multiply(context, result, substitute(context, body, {binder: constant(place)}))
    return result


def _punched(context: Proof, binder: Atom, body: Poly) -> Poly | None:
    """``prod_k f(k)`` where f has another value at one index e: taken out at e.

    ``prod_k ([k == e] a(k) + (1 - [k == e]) b(k)) = a(e) prod_k b(k) / b(e)``, for b(e) != 0.
    [rule: punched-product]
    """
    for monomial in body.terms:
        for atom, _ in monomial:
            if atom.kind != kinds.EQUAL or binder not in atom.free:
                continue
            value = solved_in_range(context, atom.data[0], binder)
            if value is None:
                continue
            there, elsewhere = by_condition(context, body, atom)
            if not elsewhere.terms:
                return None
            special = substitute(context, there, {binder: value})
            usual = substitute(context, elsewhere, {binder: value})
            whole = product(context, binder, elsewhere)
            ratio = multiply(context, special, power(context, usual, -1))
            return multiply(context, whole, ratio)
    return None


def _directed(context: Proof, binder: Atom, body: Poly) -> Poly | None:
    """``[k >= e + 1]`` is ``1 - [e >= k]``, ``[e - 1 >= k]`` is ``[e >= k] - [e == k]``.

    [rule: orient]
    """
    for atom in _conditions(body, binder):
        turned = _turned(context, binder, atom.data[0])
        if turned is not None:
            there, elsewhere = by_condition(context, body, atom)
            chosen = multiply(context, turned, there - elsewhere)
            return product(context, binder, elsewhere + chosen)
    return None


def _turned(context: Proof, binder: Atom, poly: Poly) -> Poly | None:
    """[P >= 0] with the binder's coefficient -1 and no offset from an index, where it is not."""
    slope = poly.terms.get(((binder, 1),))
    if slope == 1:
        return ONE - at_least(context, (-poly).plus(-1))
    offset = poly.offset
    end = poly.plus(-offset) + of_atom(binder)
    if slope != -1 or offset not in (1, -1) or end.atom is None or end.atom.kind != kinds.INDEX:
        return None
    place = end if offset == -1 else end.plus(1)
    if solved_in_range(context, place - of_atom(binder), binder) is None:
        return None
    delta = equal_integers(context, place - of_atom(binder))
    return at_least(context, end - of_atom(binder)) + delta.scaled(int(offset))


def _ranged(context: Proof, binder: Atom, body: Poly) -> Poly | None:
    """A product of a(k) where c(k) holds and of b(k) where it does not, in products with 1 for b.

    ``prod_k (c a + (1 - c) b) = prod_k (c a + 1 - c) prod_k b / prod_k (c b + 1 - c)``, for
    b != 0.  [rule: product-range]
    """
    for atom in _conditions(body, binder):
        there, elsewhere = by_condition(context, body, atom)
        if elsewhere == ONE or not elsewhere.terms:
            continue
        condition = of_atom(atom)
        chosen, other = (
            product(context, binder, multiply(context, condition, part - ONE) + ONE)
            for part in (there, elsewhere)
        )
        whole = product(context, binder, elsewhere)
        ratio = multiply(context, whole, power(context, other, -1))
        return multiply(context, chosen, ratio)
    return None


def _conditions(body: Poly, binder: Atom) -> list[Atom]:
    """The order relations on the binder that are factors of terms."""
    found = {
        atom for monomial in body.terms for atom, _ in monomial
        if atom.kind == kinds.ATLEAST and binder in atom.free
    }  # fmt: skip
    return sorted(found, key=lambda atom: (atom.erased, atom.key))


def _accesses(body: Poly, binder: Atom) -> list[Poly]:
    """The index expressions of elements that the binder occurs in."""
    atoms = [atom for monomial in body.terms for atom, _ in monomial]
    found = (index for atom in atoms for index in index_expressions(atom))
    return [index for index in found if binder in index.free]


def _reversed(context: Proof, binder: Atom, body: Poly) -> Poly | None:
    """``k`` becomes ``n - 1 - k`` where every access runs backwards in it.  [rule: reverse]."""
    slopes = [index.terms.get(((binder, 1),), 0) for index in _accesses(body, binder)]
    if not slopes or max(slopes) >= 0:
        return None
    fresh = context.fresh(binder.data[1])
    value = (binder.data[1] - of_atom(fresh)).plus(-1)
    return product(context, fresh, substitute(context, body, {binder: value}))


def _shifted(context: Proof, binder: Atom, body: Poly) -> Poly | None:
    """``prod_k b(k) = prod_k b(k + 1) b(0) / b(n)`` where every access is at ``k - 1``.

    The other way round where it is at ``k + 1``.  What lies outside of a tensor may have any
    values but 0.  [rule: product-range]
    """
    accesses = _accesses(body, binder)
    offsets = {(index - of_atom(binder)).constant for index in accesses}
    (offset,) = offsets if len(offsets) == 1 else (None,)
    if offset not in (1, -1):
        return None
    extent: Poly = binder.data[1]
    first, last = (constant(-1), extent.plus(-1)) if offset == 1 else (extent, constant(0))
    added, dropped = (substitute(context, body, {binder: place}) for place in (first, last))
    if not added.terms:
        return None
    moved = substitute(context, body, {binder: of_atom(binder).plus(-int(offset))})
    ratio = multiply(context, dropped, power(context, added, -1))
    return multiply(context, product(context, binder, moved), ratio)
