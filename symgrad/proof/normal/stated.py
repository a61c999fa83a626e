"""What stated relations say of signs: ``P > 0`` where ``P`` is a relation and something positive.

In: relations as index notation (``Facts.stated``).  Out: templates of a proof, signs.

A relation holds for all elements, so that the indices of its template may be put as any index
variable of the same range.  ``P`` is positive where ``P - c T`` is not negative, for a template
``T`` and a number ``c > 0``.  [rule: stated-relation]
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from symgrad.budgets import MOST_INSTANCES
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.atoms import Atom
from symgrad.proof.normal.poly import Poly, all_atoms, of_atom


@dataclass(frozen=True)
class Template:
    """``poly > 0`` (``strict``) or ``poly >= 0`` for all values of some index variables."""

    poly: Poly
    indices: tuple[Atom, ...]
    strict: bool


@dataclass(frozen=True)
class Decided:
    """``template.poly > 0`` exactly where ``holds``.  ``tensors``: of what elements it is made."""

    template: Template
    holds: Poly
    tensors: frozenset[str]


def tensors(poly: Poly) -> frozenset[str]:
    """The tensors whose elements occur in a polynomial, at any depth."""
    return frozenset(atom.data[0] for atom in all_atoms(poly) if atom.kind == kinds.LEAF)


def places(template: Template, poly: Poly) -> Iterator[dict[Atom, Poly]]:
    """Where the indices of a template may be put so that it speaks of the elements in ``poly``.

    Indices that sums in ``poly`` bind are no places, since there they have no value.  Not checked
    here: whether a value is in the range of its index.
    """
    wanted: dict[Atom, dict[Poly, None]] = {index: {} for index in template.indices}
    elements = [atom for atom in all_atoms(poly) if atom.kind == kinds.LEAF]
    for own in all_atoms(template.poly):
        if own.kind != kinds.LEAF:
            continue
        for place, index in enumerate(own.data[1]):
            if index.atom in wanted:
                for atom in elements:
                    value = atom.data[1][place] if atom.data[0] == own.data[0] else None
                    if value is not None and value.free <= poly.free:
                        wanted[index.atom][value] = None
    for index, known in wanted.items():
        if not known:  # no element is read at it: any variable of its range
            same = (one for one in poly.free if one.data[1] == index.data[1])
            known.update((of_atom(one), None) for one in sorted(same, key=lambda one: one.key))
    choices = itertools.product(*wanted.values())
    for values in itertools.islice(choices, MOST_INSTANCES):
        yield dict(zip(wanted, values, strict=True))
