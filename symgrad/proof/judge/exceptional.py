"""Sizes at which an integer polynomial in sizes and indices is 0: where to look for a difference.

In: such polynomials, and what is known of sizes.  Out: a few choices of their sizes, small ones
first; whether the case has none.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from symgrad.budgets import EXCEPTIONAL_EXTENT, EXCEPTIONAL_SIZES, EXCEPTIONAL_TRIES
from symgrad.ir.dim import Dim, product
from symgrad.ir.function import SizeCondition
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.atoms import Atom
from symgrad.proof.normal.facts import Facts
from symgrad.proof.normal.numeric import Evaluation, NotEvaluable
from symgrad.proof.normal.poly import Poly, all_atoms, direct_atoms
from symgrad.proof.oracle.sizes import impossible

Values = dict[Atom, int]


def exceptional_sizes(polys: Iterable[Poly], facts: Facts) -> list[dict[str, int]]:
    """Sizes at which one of the polynomials is 0 for some indices; a few for each."""
    found: list[dict[str, int]] = []
    for poly in polys:
        own = (sizes for sizes in _sizes_of(poly, facts) if sizes not in found)
        found += itertools.islice(own, EXCEPTIONAL_SIZES)
    return found


def is_excluded(poly: Poly, facts: Facts) -> bool:
    """Is an integer polynomial 0 for none of the sizes that the case has?"""
    dim = _dim(poly)
    if dim is None or not facts.conditions:
        return False
    return impossible([*facts.conditions, *_equations(dim)])


def _equations(dim: Dim) -> list[SizeCondition]:
    """That it is 0, solved for each size that occurs once and alone."""
    found = [SizeCondition(dim, "==", Dim.of(0))]
    for name in dim.sizes:
        for sign in (1, -1):
            rest = Dim.size(name) - dim * sign
            if name not in rest.sizes:
                found.append(SizeCondition(Dim.size(name), "==", rest))
    return found


def _dim(poly: Poly) -> Dim | None:
    """A polynomial in sizes with integer coefficients as a size; None for any other."""
    total = Dim.of(0)
    for monomial, value in poly.terms.items():
        factors = [Dim.size(str(atom.data[0])) for atom, power in monomial
                   if atom.kind == kinds.SIZE and isinstance(power, int) and power > 0
                   for _ in range(power)]  # fmt: skip
        if not isinstance(value, int) or len(factors) < sum(power for _, power in monomial):
            return None
        total = total + product([Dim.of(value), *factors])
    return total


def _sizes_of(poly: Poly, facts: Facts) -> Iterator[dict[str, int]]:
    atoms = {a for a in all_atoms(poly) if a.kind in (kinds.INDEX, kinds.SIZE)}
    extents = {e for a in atoms if a.kind == kinds.INDEX for e in direct_atoms(a.data[1])}
    variables = sorted({*atoms, *extents}, key=lambda a: (a.kind != kinds.SIZE, a.key))
    if any(a.kind not in (kinds.INDEX, kinds.SIZE) for a in variables):
        return
    solved = _solved(poly)
    grown = None if solved is None else _extent_to_grow(solved[0], atoms)
    others = [a for a in variables if solved is None or a not in (solved[0], grown)]
    for values in itertools.islice(_choices(others, facts), EXCEPTIONAL_TRIES):
        sizes = {a.data[0]: v for a, v in values.items() if a.kind == kinds.SIZE}
        indices = {a: v for a, v in values.items() if a.kind == kinds.INDEX}
        try:
            if solved is not None:
                value = Evaluation(sizes, _no_element, indices).integer(solved[1])
                if solved[0].kind == kinds.SIZE:
                    sizes[solved[0].data[0]] = value
                else:
                    indices[solved[0]] = value
                    sizes.update({} if grown is None else {grown.data[0]: value + 1})
            point = Evaluation(sizes, _no_element, indices)
            if _is_admissible(point, sizes, indices, facts) and point.integer(poly) == 0:
                yield sizes
        except (NotEvaluable, KeyError, ZeroDivisionError):
            continue


def _solved(poly: Poly) -> tuple[Atom, Poly] | None:
    """A size or an index, and what it has to be."""
    for atom, _, value in poly.solved(kinds.SIZE, kinds.INDEX):
        if atom not in all_atoms(value):
            return atom, value
    return None


def _extent_to_grow(index: Atom, atoms: set[Atom]) -> Atom | None:
    """The size that only says how far the index goes."""
    extent: Atom | None = index.data[1].atom if index.kind == kinds.INDEX else None
    others = {e for a in atoms - {index} if a.kind == kinds.INDEX for e in direct_atoms(a.data[1])}
    return None if extent in atoms | others else extent


def _choices(atoms: list[Atom], facts: Facts) -> Iterator[Values]:
    """Values of the variables, those with the least greatest one first."""
    lows = [facts.least_sizes.get(a.data[0], 1) if a.kind == kinds.SIZE else 0 for a in atoms]
    if not atoms:
        yield {}
    for most in range(EXCEPTIONAL_EXTENT if atoms else 0):
        for steps in itertools.product(range(most + 1), repeat=len(atoms)):
            if max(steps) == most:
                pairs = zip(atoms, lows, steps, strict=True)
                yield {atom: low + step for atom, low, step in pairs}


def _is_admissible(point: Evaluation, sizes: dict[str, int], indices: Values, facts: Facts) -> bool:
    return all(
        facts.least_sizes.get(name, 1) <= size <= EXCEPTIONAL_EXTENT for name, size in sizes.items()
    ) and all(0 <= value < point.integer(atom.data[1]) for atom, value in indices.items())


def _no_element(tensor: str, at: tuple[int, ...]) -> int:
    raise NotEvaluable(f"an element of {tensor}")
