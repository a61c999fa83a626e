"""Canonical labelling: the names of bound variables chosen by structure alone.

In: binders and the factors they connect.  Out: one sum atom, the same for equal components.

Binders are coloured by what they touch, colours are refined until stable, ties are broken by
individualising one binder at a time (at most ``MOST_LABELLINGS`` ways), and the least key wins.  A
permutation search would die at seven like binders.  The labelling only decides whether equal
sums are seen to be equal: any labelling is sound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from symgrad.budgets import MOST_LABELLINGS
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.atoms import Atom, Monomial, Number
from symgrad.proof.normal.context import Proof
from symgrad.proof.normal.poly import Poly, exact, monomial_key, ordered

Renaming = Mapping[Atom, Atom]
Colours = dict[Atom, int]


def close(context: Proof, binders: list[Atom], factors: dict[Atom, Number]) -> Atom:
    """The sum atom of one connected component.  [rule: rename]."""
    height = 1 + max(atom.height for atom in factors)
    monomial = ordered(factors)
    best: tuple[int, tuple[Atom, ...], Monomial] | None = None
    for order in _orders(context, binders, factors):
        names = [
            context.atom(kinds.INDEX, f"b{height}.{position}", binder.data[1])
            for position, binder in enumerate(order)
        ]
        renamed = rename_monomial(context, monomial, dict(zip(order, names, strict=True)))
        key = monomial_key(renamed)
        if best is None or key < best[0]:
            best = key, tuple(names), renamed
    assert best is not None
    return context.atom(kinds.SUM, best[1], best[2])


def is_canonical(binder: Atom) -> bool:
    """Is it a name that sums bind, so that another sum may bind it, too?"""
    name = str(binder.data[0])
    return name.startswith("b") and name[1:2].isdigit() and "." in name


class Renamer:
    """Index variables renamed structurally, with a memo: no rule is applied."""

    def __init__(self, context: Proof, renaming: Renaming) -> None:
        self.context = context
        self.renaming = renaming
        self._targets = frozenset(renaming)
        self._atoms: dict[Atom, Atom] = dict(renaming)
        self._polys: dict[Poly, Poly] = {}

    def monomial(self, monomial: Monomial) -> Monomial:
        """A product of powers."""
        result: dict[Atom, Number] = {}
        for atom, exponent in monomial:
            renamed = self.atom(atom)
            result[renamed] = result.get(renamed, 0) + exponent
        return ordered(result)

    def poly(self, poly: Poly) -> Poly:
        """A polynomial."""
        if self._targets.isdisjoint(poly.free):
            return poly
        found = self._polys.get(poly)
        if found is None:
            terms: dict[Monomial, Number] = {}
            for monomial, value in poly.terms.items():
                key = self.monomial(monomial)
                terms[key] = terms.get(key, 0) + value
            found = self._polys[poly] = Poly({m: exact(c) for m, c in terms.items() if c})
        return found

    def atom(self, atom: Atom) -> Atom:
        """An atom; inner sums are labelled anew."""
        if self._targets.isdisjoint(atom.free):
            return atom
        found = self._atoms.get(atom)
        if found is None:
            self.context.spend(1)
            found = self._atoms[atom] = self._renamed(atom)
        return found

    def _renamed(self, atom: Atom) -> Atom:
        context = self.context
        if atom.kind == kinds.SUM and len(atom.data[0]) > 1:
            fresh = [context.fresh(binder.data[1]) for binder in atom.data[0]]
            both = {**self.renaming, **dict(zip(atom.data[0], fresh, strict=True))}
            return close(context, fresh, dict(Renamer(context, both).monomial(atom.data[1])))
        if atom.kind == kinds.SUM:
            return context.atom(kinds.SUM, atom.data[0], self.monomial(atom.data[1]))
        data = tuple(self._item(item) for item in atom.data)
        if atom.kind == kinds.LEAF and atom.data[0] in context.facts.symmetric:
            data = (data[0], symmetric_order(data[1]), data[2])
        elif atom.kind == kinds.EQUAL and data[0].terms[data[0].lead] < 0:
            data = (-data[0],)
        return context.atom(atom.kind, *data)

    def _item(self, item: Any) -> Any:
        if isinstance(item, Poly):
            return self.poly(item)
        if isinstance(item, Atom):
            return self.atom(item)
        if isinstance(item, tuple):
            return tuple(self._item(part) for part in item)
        return item


def rename_monomial(context: Proof, monomial: Monomial, renaming: Renaming) -> Monomial:
    """A monomial with index variables renamed structurally: no rule is applied."""
    return Renamer(context, renaming).monomial(monomial)


def symmetric_order(indices: tuple[Poly, ...]) -> tuple[Poly, ...]:
    """The last two indices in the order of their keys."""
    *rest, row, column = indices
    if (column.erased, column.key) < (row.erased, row.key):
        row, column = column, row
    return (*rest, row, column)


# -- the order of binders


def _orders(
    context: Proof, binders: list[Atom], factors: dict[Atom, Number]
) -> Iterator[list[Atom]]:
    if len(binders) == 1:
        yield binders
        return
    colours = {binder: binder.data[1].key for binder in binders}
    values = {a: e for a, e in factors.items() if a.kind != kinds.ATLEAST}
    if 0 < len(values) < len(factors):  # so that sums which differ by order relations agree
        colours = _refine(context, binders, values, colours)
    left = [MOST_LABELLINGS]
    yield from _individualise(context, binders, factors, colours, left)


def _individualise(
    context: Proof,
    binders: list[Atom],
    factors: dict[Atom, Number],
    colours: Colours,
    left: list[int],
) -> Iterator[list[Atom]]:
    colours = _refine(context, binders, factors, colours)
    classes: dict[int, list[Atom]] = {}
    for binder in binders:
        classes.setdefault(colours[binder], []).append(binder)
    tied = next((c for c in sorted(classes) if len(classes[c]) > 1), None)
    if tied is None:
        yield sorted(binders, key=lambda binder: colours[binder])
        return
    for binder in classes[tied]:
        if left[0] <= 0:
            return
        marked = {**colours, binder: hash((colours[binder], 1))}
        yield from _individualise(context, binders, factors, marked, left)
        left[0] -= 1


def _refine(
    context: Proof, binders: list[Atom], factors: dict[Atom, Number], colours: Colours
) -> Colours:
    """Colours split by the coloured keys of the factors that each binder touches."""
    touching = {
        binder: [(a, e) for a, e in factors.items() if binder in a.free] for binder in binders
    }
    while True:
        context.spend(len(binders))
        split: dict[Atom, tuple[int, tuple[int, ...]]] = {}
        for binder in binders:
            colouring = Colouring(context.facts.symmetric, {**colours, binder: -7})
            seen = [hash((colouring.atom(a), hash(e))) for a, e in touching[binder]]
            split[binder] = (colours[binder], tuple(sorted(seen)))
        ranks = {value: rank for rank, value in enumerate(sorted(set(split.values())))}
        refined = {binder: ranks[split[binder]] for binder in binders}
        if len(ranks) == len(set(colours.values())):
            return refined
        colours = refined


class Colouring:
    """Keys of atoms in which index variables are replaced by their colours, each found once."""

    def __init__(self, symmetric: frozenset[str], colours: Colours) -> None:
        self._symmetric = symmetric
        self._colours = colours
        self._coloured = frozenset(colours)
        self._keys: dict[Atom, int] = {}

    def atom(self, atom: Atom) -> int:
        """The key of an atom."""
        if self._coloured.isdisjoint(atom.free):
            return atom.key
        found = self._keys.get(atom)
        if found is None:
            found = self._keys[atom] = self._key(atom)
        return found

    def _key(self, atom: Atom) -> int:
        kind, data = atom.kind, atom.data
        if kind == kinds.INDEX:
            return hash((self._colours[atom], 3))
        name = kinds.text_key(kind)
        if kind == kinds.SUM:
            return hash((name, self._inside(data[0])._monomial(data[1])))
        if kind in kinds.BINDERS:
            return hash((name, self._inside(data[:1])._item(data[1])))
        if kind == kinds.LEAF:
            indices = [self._item(index) for index in data[1]]
            if data[0] in self._symmetric:
                indices[-2:] = sorted(indices[-2:])
            return hash((kinds.text_key(data[0]), tuple(indices)))
        if kind in (kinds.EQUAL, kinds.ATLEAST):  # either way round
            rest = data[0]
            if kind == kinds.ATLEAST:  # so that orienting it is well defined
                rest = Poly({m: c for m, c in rest.terms.items() if m})
            sides = (self._item(rest), self._item(-rest))
            return hash((name, min(sides), max(sides)))
        return hash((name, *[self._item(item) for item in data]))

    def _inside(self, binders: Iterable[Atom]) -> Colouring:
        """The same inside a binder of index variables, which have a colour of their own there."""
        inner = {binder: hash((binder.data[1].key, 5)) for binder in binders}
        return Colouring(self._symmetric, {**self._colours, **inner})

    def _item(self, item: Any) -> int:
        if isinstance(item, Poly):
            if self._coloured.isdisjoint(item.free):
                return item.key
            terms = item.terms.items()
            parts = [hash((self._monomial(monomial), hash(value))) for monomial, value in terms]
            parts.sort()
            return hash(tuple(parts))
        if isinstance(item, Atom):
            return self.atom(item)
        if isinstance(item, tuple):
            return hash(tuple([self._item(part) for part in item]))
        return kinds.text_key(item) if isinstance(item, str) else hash(item)

    def _monomial(self, monomial: Monomial) -> int:
        parts = [hash((self.atom(atom), hash(exponent))) for atom, exponent in monomial]
        parts.sort()
        return hash(tuple(parts))
