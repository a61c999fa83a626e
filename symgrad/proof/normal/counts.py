"""Counts: sums of conditions, their bounds, and what their being positive says.

In: atoms.  Out: bounds, or which conditions are implied.
"""

from __future__ import annotations

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import labels, substitute
from symgrad.proof.normal.atoms import Atom, Number
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.poly import ONE, Poly, of_atom, plain_product


def is_count(atom: Atom) -> bool:
    """Is it a sum of products of conditions?"""
    return atom.kind == kinds.SUM and all(a.indicator for a, _ in atom.data[1])


def bounds(context: Context, atom: Atom) -> tuple[Poly, Poly]:
    """The least and greatest value of a count.  [rule: count].

    It is at least 1 where some index makes the conditions true whatever the inputs.
    """
    greatest = ONE
    for binder in atom.data[0]:
        greatest = plain_product(greatest, binder.data[1])
    return (ONE if _met_somewhere(context, atom) else Poly({})), greatest


def _met_somewhere(context: Context, atom: Atom) -> bool:
    binders, monomial = atom.data
    if len(binders) != 1:
        return False
    (binder,) = binders
    for variable in sorted(atom.free, key=lambda v: v.key):
        if variable.data[1] == binder.data[1]:
            body = Poly({monomial: 1})
            value = substitute.substitute(context, body, {binder: of_atom(variable)})
            if value == ONE:
                return True
    return False


def excluded_by(context: Context, none: Atom, condition: Atom) -> bool:
    """Does a condition that is c at some k contradict [sum_k [c(k)] == 0]?  [rule: count]."""
    counted = none.data[0].atom
    if counted is None or counted.kind != kinds.SUM or len(counted.data[0]) != 1:
        return False
    (binder,), monomial = counted.data
    if len(monomial) != 1 or monomial[0][0].kind != kinds.EQUAL:
        return False
    inner = monomial[0][0]
    return any(
        variable.data[1] == binder.data[1]
        and labels.rename(context, inner, {binder: variable}) is condition
        for variable in condition.free
    )


def no_terms(exponents: dict[Atom, Number]) -> bool:
    """[count == 0] beside a sum whose terms vanish where the conditions counted fail.

    [rule: count]
    """
    totals = [a for a, e in exponents.items() if a.kind == kinds.SUM and e > 0]
    for atom in [a for a in exponents if totals and a.kind == kinds.EQUAL]:
        counted = atom.data[0].atom
        if counted is None or not is_count(counted):
            continue
        for whole in totals:
            if counted.data[0] == whole.data[0] and set(counted.data[1]) <= set(whole.data[1]):
                return True
    return False
