"""Discharges almost-everywhere obligations, for all sizes and all index values.

In: an ``Obligation`` of the normal form.  Out: the conditions to print, or why it is not met.

``families`` shows where the base does not vanish identically; the sizes and indices at which it
may are printed.  Where nothing is shown, ``base != 0`` is printed, if there is a point at all at
which it holds: one is sought among small sizes, with elements drawn, and values enclosed in
intervals.  No obligation is met by such a point.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np

from symgrad.budgets import (
    DOMAIN_WORK,
    WITNESS_INTEGERS,
    WITNESS_TRIES,
    ZERO_POSITIONS,
    ZERO_TRIES,
)
from symgrad.ir.graph import Node, ancestors
from symgrad.proof.judge.domain_text import condition_about
from symgrad.proof.judge.families import DIGITS, Families, inside
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.algebra import substitute
from symgrad.proof.normal.atoms import Atom, Undecided
from symgrad.proof.normal.context import Obligation, Proof, Requirement
from symgrad.proof.normal.facts import HOT, Facts
from symgrad.proof.normal.numeric import Enclosure, Evaluation, NotEvaluable
from symgrad.proof.normal.poly import Poly, of_atom
from symgrad.proof.oracle.numbers import Precise
from symgrad.proof.oracle.values import DomainError, Evaluator, is_finite
from symgrad.proof.report.records import Condition
from symgrad.proof.words.polytext import PolyText

_SIZES = (2, 3, 1, 5)


@dataclass(frozen=True)
class Discharge:
    """What follows from an obligation; ``problem`` says why it is not met.

    ``exceptions``: integer polynomials outside whose zeros the base does not vanish identically.
    ``nonzero``: the base may vanish on more than a null set; the proof holds where it does not.
    """

    conditions: tuple[Condition, ...] = ()
    problem: str = ""
    nonzero: bool = False
    exceptions: tuple[Poly, ...] = ()


def discharge(obligation: Obligation, families: Families, text: PolyText) -> Discharge:
    """Show that the base vanishes identically for no sizes and indices, or say for which it may.

    The ties of ``no-ties`` are printed in any case, so that nothing else has to be.
    """
    base, distinct, facts = obligation.base, obligation.distinct, families.facts
    if distinct is not None and obligation.piecewise:
        return Discharge(problem=f"ties of {text.of(base)} may fill an open set")
    apart = () if distinct is None else (of_atom(distinct[0]) - of_atom(distinct[1]),)
    ties = () if distinct is None else (text.condition("ties", base, "=="),)
    exceptions = families.exceptions(base, apart)
    if exceptions is not None and all(exception.free <= base.free for exception in exceptions):
        return Discharge(ties, exceptions=tuple(exceptions))
    if not _is_nonzero_somewhere(base, facts, distinct):
        return Discharge(problem=f"no point was found at which {text.of(base)} is not zero")
    return Discharge(ties, nonzero=not ties)


def exceptional(
    exceptions: Iterable[Poly], required: Iterable[Requirement], context: Proof, text: PolyText
) -> list[Condition]:
    """``n == 29`` for a polynomial that is 0 there, unless a condition that is printed says so."""
    found = []
    for exception in exceptions:
        solved = next(exception.solved(kinds.INDEX, kinds.SIZE), None)
        if solved is None:
            said = text.condition("nonzero", exception, "==")
        elif not _is_said(required, context, {solved[0]: solved[2]}):
            said = text.equation("nonzero", of_atom(solved[0]), solved[2])
        else:
            continue
        about = condition_about(context, exception, "!=", text.leaves)
        found.append(replace(said, about=about))
    return found


def _is_said(required: Iterable[Requirement], context: Proof, where: Mapping[Atom, Poly]) -> bool:
    """Does a condition, of which it is printed that it is not 0, fail there?"""
    before, context.budget = context.budget, context.work + DOMAIN_WORK
    try:
        return any(
            one.relation in (">", "!=") and not substitute(context, one.poly, where).terms
            for one in required
        )
    except Undecided:
        return False
    finally:
        context.budget = before


def _is_nonzero_somewhere(base: Poly, facts: Facts, distinct: tuple[Atom, Atom] | None) -> bool:
    names = _size_names(base, facts)
    return any(_nonzero_at(base, facts, sizes, distinct) for sizes in _size_choices(names, facts))


def _size_choices(names: list[str], facts: Facts) -> Iterator[dict[str, int]]:
    """Generic sizes, equal sizes, and each size by itself at its least."""
    least = {name: facts.least_sizes.get(name, 1) for name in names}
    generic = {name: max(_SIZES[i % 2], least[name]) for i, name in enumerate(names)}
    yield generic
    for name in names:
        yield {**generic, name: least[name]}
    for value in (1, 2, 3):
        yield {name: max(value, least[name]) for name in names}


def _nonzero_at(
    base: Poly, facts: Facts, sizes: dict[str, int], distinct: tuple[Atom, Atom] | None
) -> bool | None:
    """Is the base rigorously nonzero somewhere, for every index?  None: it cannot be evaluated."""
    free = sorted(base.free, key=lambda v: v.key)
    evaluable = False
    saved = mpmath.iv.dps
    mpmath.iv.dps = DIGITS
    try:
        positions = _positions(free, sizes, facts, distinct)
        for position in positions:
            found = _witness(base, facts, sizes, dict(zip(free, position, strict=True)))
            if found is None:
                continue
            evaluable = True
            if not found:
                return False
        return True if evaluable else None
    finally:
        mpmath.iv.dps = saved


def vanishes_in_part(
    base: Poly, required: Iterable[Requirement], facts: Facts, leaves: Mapping[str, Node],
    outputs: Sequence[Node] = (),
) -> bool:  # fmt: skip
    """Is it 0 at some points that are drawn, and not at others, as ``x.abs() - x`` is?

    No point that is drawn lies on a null set of the reals, so that the zeros have inner points;
    integers are left aside.  Points at which what is required does not hold do not count, nor
    those at which forward is not finite, as the mean of what a mask selects is where it selects
    nothing.  ``leaves``: the nodes that names stand for; ``outputs``: those of forward.
    """
    cut = {name: leaves[name] for name in _sorts_in(base) if name in leaves}
    inputs = _inputs([*cut.values()])
    if not all(node.dtype.is_float for node in inputs):
        return False
    if any(sort != "real" for sort in _sorts_in(base).values()):
        return False
    needed = [one for one in required if one.relation in _HOLDS]
    every = [*inputs, *_inputs(outputs)]
    own = {name for node in every for size in node.shape for name in size.sizes}
    sizes = next(_size_choices(sorted(own.union(_size_names(base, facts))), facts))
    sorts, program, forward = _sorts_in(base), Evaluator([*cut.values()]), Evaluator(outputs)

    @cache
    def drawn(seed: int) -> Drawn:
        return _computed(cut, program, sizes, Elements(facts, sizes, seed, sorts))

    @cache
    def is_finite_at(seed: int) -> bool:
        if not all(node.dtype.is_float for node in every):
            return True
        values = _values(forward, sizes, Elements(facts, sizes, seed, sorts))
        return all(is_finite(values[node]) for node in outputs)

    free = sorted(base.free, key=lambda v: v.key)
    saved, mpmath.iv.dps = mpmath.iv.dps, DIGITS
    try:
        return any(
            _is_mixed(
                base, needed, sizes, dict(zip(free, position, strict=True)), drawn, is_finite_at
            )
            for position in _positions(free, sizes, facts, None)[:ZERO_POSITIONS]
        )
    finally:
        mpmath.iv.dps = saved


def _inputs(nodes: Iterable[Node]) -> list[Node]:
    return [node for node in ancestors(nodes) if node.op == "input"]


Drawn = Callable[[str, tuple[int, ...]], Any]
"""An element of a tensor."""
_HOLDS: dict[str, Callable[[Any], bool]] = {
    ">": lambda value: value.b > 0,
    ">=": lambda value: value.b >= 0,
    "!=": lambda value: 0 not in value,
}


def _is_mixed(
    base: Poly, needed: Sequence[Requirement], sizes: dict[str, int], indices: dict[Atom, int],
    drawn: Callable[[int], Drawn], is_finite_at: Callable[[int], bool],
) -> bool:  # fmt: skip
    """``drawn``: the elements of a seed; ``is_finite_at``: is forward finite there?"""
    seen = set[bool]()
    for seed in range(ZERO_TRIES):
        try:
            point = Evaluation(sizes, drawn(seed), indices, Enclosure())
            zero = 0 in mpmath.iv.mpf(point.value(base))
            if zero and not (all(_may_hold(one, point) for one in needed) and is_finite_at(seed)):
                continue
        except (NotEvaluable, DomainError, KeyError, ArithmeticError, ValueError, IndexError):
            continue
        seen.add(zero)
        if len(seen) > 1:
            return True
    return False


def _computed(
    cut: Mapping[str, Node], program: Evaluator, sizes: dict[str, int], drawn: Elements
) -> Drawn:
    """The elements of inputs as they are drawn, and those of nodes computed of these."""
    values = _values(program, sizes, drawn)

    def element(tensor: str, at: tuple[int, ...]) -> Any:
        if tensor not in cut:
            return drawn(tensor, at)
        return mpmath.iv.mpf(values[cut[tensor]][at]) + mpmath.iv.mpf([-_ROUNDED, _ROUNDED])

    return element


def _values(program: Evaluator, sizes: dict[str, int], drawn: Elements) -> dict[Node, Any]:
    feeds = {}
    for node in program.nodes:
        if node.op == "input":
            shape, name = tuple(size.at(sizes) for size in node.shape), str(node.attributes["name"])
            feeds[name] = np.empty(shape, dtype=object)
            for at in np.ndindex(*shape):
                feeds[name][at] = mpmath.mpf(drawn(name, at).mid)
    with mpmath.workdps(DIGITS):
        return program.run(Precise(lambda number: mpmath.mpf(repr(number))), feeds, sizes)


_ROUNDED = 1e-24
"""By how much a number that is computed with ``DIGITS`` digits may be off."""


def _may_hold(one: Requirement, point: Evaluation) -> bool:
    """Does it hold at a point, as far as its indices are known there?"""
    try:
        return _HOLDS[one.relation](mpmath.iv.mpf(point.value(one.poly)))
    except (NotEvaluable, KeyError):
        return False


def _positions(
    free: list[Atom], sizes: dict[str, int], facts: Facts, distinct: tuple[Atom, Atom] | None
) -> list[tuple[int, ...]]:
    """Some values of the free indices: the first, the last, and some in between."""
    point = Evaluation(sizes, lambda tensor, at: 0)
    try:
        extents = [max(point.integer(v.data[1]), 0) for v in free]
    except (NotEvaluable, KeyError):
        return []
    ranges = [sorted({0, extent - 1, extent // 2}) if extent else [] for extent in extents]
    every = list(itertools.islice(itertools.product(*ranges), 27))
    if distinct is None:
        return every
    left, right = (free.index(v) if v in free else None for v in distinct)
    if left is None or right is None:
        return every
    return [position for position in every if position[left] != position[right]][:6]


def _witness(
    base: Poly, facts: Facts, sizes: dict[str, int], indices: dict[Atom, int]
) -> bool | None:
    """Is some sampled value rigorously nonzero?  None where no value could be computed."""
    evaluated = False
    sorts = _sorts_in(base)
    for seed in range(WITNESS_TRIES):
        elements = Elements(facts, sizes, seed, sorts)
        try:
            value = Evaluation(sizes, elements, indices, Enclosure()).value(base)
        except (NotEvaluable, KeyError, ZeroDivisionError, ValueError, IndexError):
            continue
        evaluated = True
        if 0 not in mpmath.iv.mpf(value):
            return True
    return False if evaluated else None


class Elements:
    """Rational elements of every tensor that meet the declared facts; the same in every run.

    ``sorts``: which tensors hold integers (``int``) or truth values (``bool``).
    """

    def __init__(
        self, facts: Facts, sizes: dict[str, int], seed: int, sorts: Mapping[str, str]
    ) -> None:
        self.facts, self.sizes, self.seed, self.sorts = facts, sizes, seed, sorts

    def __call__(self, tensor: str, at: tuple[int, ...]) -> Any:
        """An element: an int for integer and truth-valued tensors, else an interval."""
        facts = self.facts
        if tensor in facts.ranges:
            extent = facts.ranges[tensor].at(self.sizes)
            return self._draw(tensor, at) % max(extent, 1)
        if tensor in facts.binary or self.sorts.get(tensor) == "bool":
            return self._draw(tensor, at) % 2
        if self.sorts.get(tensor) == "int":
            hot = facts.one_hot.get(tensor.removeprefix(HOT))
            values = WITNESS_INTEGERS if hot is None else max(hot.at(self.sizes), 1)
            return self._draw(tensor, at) % values
        if tensor in facts.symmetric:
            at = (*at[:-2], *sorted(at[-2:]))
        if tensor in facts.one_hot:
            classes = max(facts.one_hot[tensor].at(self.sizes), 1)
            return int(self._draw(tensor, at[:-1]) % classes == at[-1])
        number = Fraction(self._draw(tensor, at) % 2003 - 1001, 512) or Fraction(1, 7)
        interval = facts.intervals.get(tensor)
        if interval is not None:
            number = inside(number, interval.low, interval.high)
        return mpmath.iv.mpf(number.numerator) / number.denominator

    def _draw(self, tensor: str, at: tuple[int, ...]) -> int:
        return kinds.text_key(f"{tensor} {at} {self.seed}") & 0xFFFFFFF


def _size_names(base: Poly, facts: Facts) -> list[str]:
    """The sizes that matter: those of the base and of the ranges of integer tensors."""
    ranges = [*facts.ranges.values(), *facts.one_hot.values()]
    return sorted(_sizes_in(base).union(*(extent.sizes for extent in ranges)))


def _sizes_in(item: Any) -> set[str]:
    """The size symbols in a polynomial, those in extents included."""
    return {atom.data[0] for atom in _atoms_in(item) if atom.kind == kinds.SIZE}


def _sorts_in(item: Any) -> dict[str, str]:
    """What the tensors hold whose elements occur: ``real``, ``int`` or ``bool``."""
    return {atom.data[0]: atom.data[2] for atom in _atoms_in(item) if atom.kind == kinds.LEAF}


def _atoms_in(item: Any) -> Iterator[Atom]:
    """The atoms of a polynomial, those in extents included."""
    todo: list[Any] = [item]
    seen: set[int] = set()
    while todo:
        part = todo.pop()
        if isinstance(part, Atom):
            if id(part) in seen:
                continue
            seen.add(id(part))
            yield part
            todo.extend(part.data)
        elif isinstance(part, Poly):
            todo.extend(atom for monomial in part.terms for atom, _ in monomial)
        elif isinstance(part, tuple):
            todo.extend(part)
