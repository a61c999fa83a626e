"""Obligations about plain numbers: what is nonzero almost everywhere must be so for each value.

In: an ``Obligation`` of the normal form.  Out: what discharges it.

``alpha * x`` is nonzero almost everywhere, but for the call with ``alpha = 0`` nowhere.  A base
with plain numbers in it is therefore discharged only if some power of elements has a coefficient
that no value of the numbers makes 0; otherwise ``base != 0`` is a condition to be printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from symgrad.ir.graph import Node, ancestors
from symgrad.proof.judge.families import Families
from symgrad.proof.judge.witness import Discharge
from symgrad.proof.judge.witness import discharge as by_witness
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.atoms import Atom, Monomial
from symgrad.proof.normal.context import Obligation
from symgrad.proof.normal.facts import Facts
from symgrad.proof.normal.poly import Poly, all_atoms
from symgrad.proof.words.polytext import PolyText


def with_cuts(facts: Facts, leaves: Mapping[str, Node]) -> Facts:
    """Facts in which what is cut, and computed from plain numbers, is as they are: not generic."""
    if not facts.plain or not leaves:
        return facts
    held: set[Node] = set()
    for node in ancestors(leaves.values()):
        own = node.op == "input" and node.attributes["name"] in facts.plain
        if own or not held.isdisjoint(node.args):
            held.add(node)
    cut = {name for name, node in leaves.items() if node in held}
    return replace(facts, plain=facts.plain | cut)


def discharge(obligation: Obligation, families: Families, text: PolyText) -> Discharge:
    """As ``witness.discharge``, for each value of the plain numbers by itself."""
    facts = families.facts
    if not any(_is_plain(atom, facts) for atom in all_atoms(obligation.base)):
        return by_witness(obligation, families, text)
    if obligation.distinct is not None:
        return Discharge(problem=f"{text.of(obligation.base)} may be 0 for a value of a number")
    if not obligation.piecewise and _never_zero(obligation.base, facts):
        return Discharge()
    return Discharge(nonzero=True)


def _is_plain(atom: Atom, facts: Facts) -> bool:
    return atom.kind == kinds.LEAF and atom.data[0] in facts.plain


def _never_zero(base: Poly, facts: Facts) -> bool:
    """Has a power of independent elements a coefficient that is not 0 for any numbers?

    Elements are independent reals, so that the base vanishes identically only if the coefficients
    of all powers do.
    """
    coefficients: dict[Monomial, list[Monomial]] = {}
    elements: dict[str, Atom] = {}
    for monomial in base.terms:
        own = tuple((atom, e) for atom, e in monomial if _is_plain(atom, facts))
        rest = tuple((atom, e) for atom, e in monomial if not _is_plain(atom, facts))
        for atom, _ in rest:
            free = atom.kind == kinds.LEAF and atom.data[2] == "real"
            if not free or elements.setdefault(atom.data[0], atom) is not atom:
                return False
        coefficients.setdefault(rest, []).append(own)
    return any(len(own) == 1 and _nonzero(own[0], facts) for own in coefficients.values())


def _nonzero(numbers: Monomial, facts: Facts) -> bool:
    return not any(facts.may_vanish(atom.data[0]) for atom, _ in numbers)
