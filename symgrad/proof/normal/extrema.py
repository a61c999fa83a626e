"""Greatest values, their first index, and products over an index.

In: a fresh binder and a body.  Out: a polynomial over maximum, argmax and product atoms.
"""

from __future__ import annotations

from collections.abc import Callable

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import (
    labels,
    lifting,
    multiply,
    power,
    signs,
    substitute,
)
from symgrad.proof.normal.atoms import Atom, Number
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.poly import ONE, ZERO, Poly, magnitude, of_atom


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
    atom = bind(context, kinds.MAXIMUM, binder, rest if value > 0 else -rest)
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
    return of_atom(bind(context, kinds.ARGMAX, binder, rest if value > 0 else -rest))


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


def bind(context: Context, kind: str, binder: Atom, body: Poly) -> Atom:
    """The atom that binds ``binder`` under its canonical name."""
    name = context.atom(kinds.INDEX, f"b{1 + body.height}.0", binder.data[1])
    renamed = labels.rename_poly(context, body, {binder: name})
    return context.atom(kind, name, renamed)


Builder = Callable[[Context, Atom, Poly], Poly]
BUILD: dict[str, Builder] = {
    kinds.MAXIMUM: maximum, kinds.ARGMAX: argmax,
}  # fmt: skip
