"""Substitution: atoms replaced inside a polynomial, everything around them rebuilt by its rule.

In: a polynomial and what to put for index variables, sizes or leaves.  Out: the new normal form.
"""

from __future__ import annotations

from collections.abc import Mapping

from symgrad.proof.normal import (
    angles,
    extrema,
    functions,
    integers,
    labels,
    leaves,
    multiply,
    power,
    products,
    relations,
    sums,
)
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.atoms import Atom, Monomial
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.poly import ONE, Poly, of_atom, total


def substitute(context: Context, poly: Poly, mapping: Mapping[Atom, Poly]) -> Poly:
    """``poly`` with the atoms of ``mapping`` replaced, all at once.

    The replacement of an index variable must lie in its range.  [rule: substitution]
    """
    if not mapping:
        return poly
    return Substitution(context, mapping).poly(poly)


class Substitution:
    """One simultaneous replacement, with a memo over atoms."""

    def __init__(self, context: Context, mapping: Mapping[Atom, Poly]) -> None:
        self.context = context
        self.mapping = dict(mapping)
        self.indices_only = all(atom.kind == kinds.INDEX for atom in mapping)
        self._targets = frozenset(mapping)
        self._memo: dict[Atom, Poly] = {}

    def poly(self, poly: Poly) -> Poly:
        """The replacement in a polynomial."""
        if self.indices_only and not (poly.free & self._targets):
            return poly
        self.context.spend(len(poly.terms))
        return total(self.monomial(m).scaled(c) for m, c in poly.terms.items())

    def monomial(self, monomial: Monomial) -> Poly:
        """The replacement in a product of powers."""
        kept: dict[Atom, kinds.Number] = {}
        changed: list[Poly] = []
        for atom, exponent in monomial:
            if self.indices_only and not (atom.free & self._targets):
                kept[atom] = exponent
                continue
            value = self.atom(atom)
            changed.append(value if exponent == 1 else self._power(atom, value, exponent))
        result = multiply.monomial_poly(self.context, kept) if kept else ONE
        for value in changed:
            result = multiply.multiply(self.context, result, value)
        return result

    def _power(self, atom: Atom, value: Poly, exponent: kinds.Number) -> Poly:
        if exponent < 0 or not isinstance(exponent, int):
            return power.power(self.context, value, exponent)
        return power.raise_to(self.context, value, exponent)

    def atom(self, atom: Atom) -> Poly:
        """The replacement in an atom; for a power atom, in its base."""
        if atom in self.mapping:
            return self.mapping[atom]
        found = self._memo.get(atom)
        if found is None:
            found = self._memo[atom] = _REBUILD[atom.kind](self, atom)
        return found


def _same(task: Substitution, atom: Atom) -> Poly:
    return of_atom(atom)


def _index(task: Substitution, atom: Atom) -> Poly:
    return of_atom(task.context.atom(kinds.INDEX, atom.data[0], task.poly(atom.data[1])))


def _leaf(task: Substitution, atom: Atom) -> Poly:
    indices = tuple(task.poly(index) for index in atom.data[1])
    return leaves.leaf(task.context, atom.data[0], indices, atom.data[2])


def _exp(task: Substitution, atom: Atom) -> Poly:
    return functions.exponential(task.context, task.poly(atom.data[0]))


def _function(task: Substitution, atom: Atom) -> Poly:
    return functions.apply(task.context, atom.data[0], task.poly(atom.data[1]))


def _angle(task: Substitution, atom: Atom) -> Poly:
    return angles.angle(task.context, task.poly(atom.data[0]), task.poly(atom.data[1]))


def _base(task: Substitution, atom: Atom) -> Poly:
    return task.poly(atom.data[0])


def _positive(task: Substitution, atom: Atom) -> Poly:
    return relations.positive(task.context, task.poly(atom.data[0]))


def _atleast(task: Substitution, atom: Atom) -> Poly:
    return relations.at_least(task.context, task.poly(atom.data[0]))


def _equal(task: Substitution, atom: Atom) -> Poly:
    return relations.equal_integers(task.context, task.poly(atom.data[0]))


def _floordiv(task: Substitution, atom: Atom) -> Poly:
    left, right = (task.poly(part) for part in atom.data)
    return integers.floordiv(task.context, left, right)


def _sum(task: Substitution, atom: Atom) -> Poly:
    binders, monomial = opened(task.context, atom, task)
    return sums.sum_over(task.context, binders, task.monomial(monomial))


def _bound(task: Substitution, atom: Atom) -> Poly:
    binder, body = atom.data
    fresh = task.context.fresh(task.poly(binder.data[1]))
    renamed = substitute(task.context, body, {binder: of_atom(fresh)})
    build = products.product if atom.kind == kinds.PRODUCT else extrema.BUILD[atom.kind]
    return build(task.context, fresh, task.poly(renamed))


def opened(
    context: Context, atom: Atom, task: Substitution | None = None
) -> tuple[list[Atom], Monomial]:
    """The binders of a sum atom as fresh variables, and its monomial in them."""
    extents = [binder.data[1] for binder in atom.data[0]]
    if task is not None:
        extents = [task.poly(extent) for extent in extents]
    fresh = [context.fresh(extent) for extent in extents]
    renaming = dict(zip(atom.data[0], fresh, strict=True))
    return fresh, labels.rename_monomial(context, atom.data[1], renaming)


_REBUILD = {
    kinds.SIZE: _same, kinds.NUMBER: _same, kinds.INFINITY: _same, kinds.INDEX: _index,
    kinds.LEAF: _leaf, kinds.EXP: _exp, kinds.ANGLE: _angle, kinds.FUNCTION: _function,
    kinds.POWER: _base, kinds.POSITIVE: _positive, kinds.ATLEAST: _atleast,
    kinds.EQUAL: _equal, kinds.FLOORDIV: _floordiv, kinds.SUM: _sum, kinds.MAXIMUM: _bound,
    kinds.ARGMAX: _bound, kinds.PRODUCT: _bound,
}  # fmt: skip
