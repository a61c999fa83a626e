"""Piecewise lifting: a function of conditions becomes conditions times functions.

In: a polynomial and what to do with each piece.  Out: the combined polynomial.
"""

from __future__ import annotations

from collections.abc import Callable

from symgrad.proof.normal import multiply
from symgrad.proof.normal.atoms import Atom
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.poly import ONE, Poly, of_atom, total


def lift(context: Context, poly: Poly, function: Callable[[Poly], Poly]) -> Poly | None:
    """``f(P) = g f(P with g = 1) + (1 - g) f(P with g = 0)`` for a condition g.  [rule: lift].

    None where no condition is a factor of any term.
    """
    atom = visible_indicator(poly)
    if atom is None:
        return None
    context.spend(len(poly.terms))
    holds = function(with_value(context, poly, atom, True))
    fails = function(with_value(context, poly, atom, False))
    if holds == fails:
        return holds
    condition = of_atom(atom)
    chosen = multiply.multiply(context, condition, holds)
    return chosen + multiply.multiply(context, ONE - condition, fails)


def visible_indicator(poly: Poly) -> Atom | None:
    """The first condition, in the order of keys, that is a factor of a term."""
    found = {a for m in poly.terms for a, _ in m if a.indicator}
    return min(found, key=lambda a: (a.erased, a.key)) if found else None


def with_value(context: Context, poly: Poly, atom: Atom, holds: bool) -> Poly:
    """The polynomial where a condition holds, or fails."""
    if not holds:
        return Poly({m: c for m, c in poly.terms.items() if all(a is not atom for a, _ in m)})
    reduced = []
    for monomial, value in poly.terms.items():
        rest = {a: e for a, e in monomial if a is not atom}
        reduced.append(multiply.monomial_poly(context, rest).scaled(value))
    return total(reduced)
