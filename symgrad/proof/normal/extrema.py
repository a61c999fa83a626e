"""Greatest values, their first index, and products over an index.

In: a fresh binder and a body.  Out: a polynomial over maximum, argmax and product atoms.
Imports: ``atoms``, ``poly``, ``context``, ``functions``, ``labels``, ``multiply``, ``power``,
``signs``, ``substitute``.
"""

from __future__ import annotations

from collections.abc import Callable

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import (
    functions,
    labels,
    lifting,
    multiply,
    power,
    signs,
    substitute,
    sums,
)
from symgrad.proof.normal.atoms import Atom, Number
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.poly import ONE, ZERO, Poly, constant, magnitude, of_atom


def maximum(context: Context, binder: Atom, body: Poly) -> Poly:
    """The greatest value of ``body`` over the binder.  [rule: max].

    What does not depend on the binder comes out: terms, and positive factors.
    """
    if binder.data[1].constant == 1:
        return substitute.substitute(context, body, {binder: ZERO})
    masked = _masked(context, binder, body, maximum)
    if masked is not None:
        return masked
    outside, inside = _split(body, binder)
    if not inside.terms:
        return body
    value, shared, base = power.content(context, inside)
    pulled: dict[Atom, Number] = {}
    for atom, exponent in shared.items():
        free_of_binder = binder not in atom.free
        if free_of_binder and signs.factor_sign(context, atom, exponent) == signs.POSITIVE:
            pulled[atom] = exponent
    factor = multiply.monomial_poly(context, pulled).scaled(magnitude(value))
    rest = _without(context, base, shared, pulled)
    atom = _bind(context, kinds.MAXIMUM, binder, rest if value > 0 else -rest)
    return outside + multiply.multiply(context, factor, of_atom(atom))


def argmax(context: Context, binder: Atom, body: Poly) -> Poly:
    """The first index at which ``body`` is greatest.  [rule: argmax]."""
    if binder.data[1].constant == 1:
        return ZERO
    masked = _masked(context, binder, body, argmax)
    if masked is not None:
        return masked
    _, inside = _split(body, binder)
    if not inside.terms:
        return ZERO
    value, shared, base = power.content(context, inside)
    dropped = {
        a: e
        for a, e in shared.items()
        if binder not in a.free and signs.factor_sign(context, a, e) == signs.POSITIVE
    }
    rest = _without(context, base, shared, dropped)
    return of_atom(_bind(context, kinds.ARGMAX, binder, rest if value > 0 else -rest))


def _masked(
    context: Context, binder: Atom, body: Poly, function: Callable[[Context, Atom, Poly], Poly]
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
                holds, fails = (
                    function(context, binder, lifting.with_value(context, body, atom, value))
                    for value in (True, False)
                )
                chosen = multiply.multiply(context, of_atom(atom), holds)
                other = multiply.multiply(context, ONE - of_atom(atom), fails)
                return chosen + other
    if not _kept_somewhere(context, binder, coefficient):
        context.assume("minus-infinity", "row", coefficient.plus(1))
    return None


def _of_infinity(body: Poly) -> Poly:
    """What infinity is multiplied with."""
    return Poly({
        tuple((a, e) for a, e in monomial if a.kind != kinds.INFINITY): value
        for monomial, value in body.terms.items()
        if any(a.kind == kinds.INFINITY for a, _ in monomial)
    })  # fmt: skip


def _kept_somewhere(context: Context, binder: Atom, coefficient: Poly) -> bool:
    """Is an entry not masked, whatever the inputs?"""
    extent: Poly = binder.data[1]
    places = [ZERO, extent.plus(-1)]
    for variable in sorted(coefficient.free, key=lambda v: v.key):
        if variable is not binder and variable.data[1] == extent:
            places.append(of_atom(variable))
    return any(
        not substitute.substitute(context, coefficient, {binder: place}).terms for place in places
    )


def product(context: Context, binder: Atom, body: Poly) -> Poly:
    """The product of ``body`` over the binder.  [rule: product]."""
    extent: Poly = binder.data[1]
    if extent.constant == 1:
        return substitute.substitute(context, body, {binder: ZERO})
    if body.constant == 1:
        return ONE
    if not body.terms:
        return ZERO
    punched = _punched(context, binder, body)
    if punched is not None:
        return punched
    if len(body.terms) == 1:
        return _product_of_factors(context, binder, body)
    return of_atom(_bind(context, kinds.PRODUCT, binder, body))


def _product_of_factors(context: Context, binder: Atom, body: Poly) -> Poly:
    """Products of products split; exponentials turn into sums."""
    ((monomial, value),) = body.terms.items()
    extent: Poly = binder.data[1]
    result = _repeated(context, constant(value), extent)
    for atom, exponent in monomial:
        if binder not in atom.free:
            factor = _repeated(context, multiply.monomial_poly(context, {atom: exponent}), extent)
        elif atom.kind == kinds.EXP:
            total_exponent = sums.sum_over(context, [binder], atom.data[0]).scaled(exponent)
            factor = functions.exponential(context, total_exponent)
        else:
            own = of_atom(_bind(context, kinds.PRODUCT, binder, of_atom(atom)))
            factor = power.power(context, own, exponent)
        result = multiply.multiply(context, result, factor)
    return result


def _repeated(context: Context, factor: Poly, times: Poly) -> Poly:
    """``factor**times`` for a number of times that is a size."""
    count = times.constant
    if factor.constant == 1:
        return ONE
    if isinstance(count, int):
        return power.raise_to(context, factor, count)
    if signs.is_positive(context, factor):
        logarithm = functions.logarithm(context, factor)
        return functions.exponential(context, multiply.multiply(context, logarithm, times))
    binder = context.fresh(times)
    return of_atom(_bind(context, kinds.PRODUCT, binder, factor))


def _punched(context: Context, binder: Atom, body: Poly) -> Poly | None:
    """``prod_k f(k)`` where f has another value at one index e: taken out at e.

    ``prod_k ([k == e] a(k) + (1 - [k == e]) b(k)) = a(e) prod_k b(k) / b(e)``, for b(e) != 0.
    [rule: punched-product]
    """
    for monomial in body.terms:
        for atom, _ in monomial:
            if atom.kind != kinds.EQUAL or binder not in atom.free:
                continue
            value = _solved(context, atom.data[0], binder)
            if value is None:
                continue
            there = lifting.with_value(context, body, atom, True)
            elsewhere = lifting.with_value(context, body, atom, False)
            if not elsewhere.terms:
                return None
            special = substitute.substitute(context, there, {binder: value})
            usual = substitute.substitute(context, elsewhere, {binder: value})
            whole = product(context, binder, elsewhere)
            ratio = multiply.multiply(context, special, power.power(context, usual, -1))
            return multiply.multiply(context, whole, ratio)
    return None


def _solved(context: Context, poly: Poly, binder: Atom) -> Poly | None:
    slope = poly.terms.get(((binder, 1),))
    if slope not in (1, -1):
        return None
    value = (poly - of_atom(binder).scaled(slope)).scaled(-slope)
    if binder in value.free or not signs.integer_nonnegative(context, value):
        return None
    inside = signs.integer_nonnegative(context, (binder.data[1] - value).plus(-1))
    return value if inside else None


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


def _without(
    context: Context, base: Poly, shared: dict[Atom, Number], removed: dict[Atom, Number]
) -> Poly:
    kept = {a: e for a, e in shared.items() if a not in removed}
    return multiply.multiply(context, multiply.monomial_poly(context, kept), base)


def _bind(context: Context, kind: str, binder: Atom, body: Poly) -> Atom:
    """The atom that binds ``binder`` under its canonical name."""
    name = context.atom(kinds.INDEX, f"b{1 + body.height}.0", binder.data[1])
    renamed = labels.rename_poly(context, body, {binder: name})
    return context.atom(kind, name, renamed)


Builder = Callable[[Context, Atom, Poly], Poly]
BUILD: dict[str, Builder] = {
    kinds.MAXIMUM: maximum, kinds.ARGMAX: argmax, kinds.PRODUCT: product,
}  # fmt: skip
