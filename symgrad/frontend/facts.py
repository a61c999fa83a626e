"""What is known about the sizes in one case of a trace.

In: relations between sizes.  Out: whether another one follows, and the facts of its two branches.

Sizes are integers, at least 1 (or at least 0, to find what holds only because of that).  A
relation that follows neither way splits the trace: one branch assumes it, the other its opposite.
An equality that can be solved for a size replaces that size everywhere, so that the branch
``k == 1`` is traced with 1 for ``k``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from math import gcd

from symgrad.ir.dim import Atom, Dim, DimLike, Size
from symgrad.ir.function import SizeCondition

OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


class NeedsDecision(BaseException):
    """A relation between sizes that does not follow: the trace has to be split.

    Not an ``Exception``, so that no handler in the traced program catches it.
    """

    def __init__(self, left: Dim, relation: str, right: Dim) -> None:
        self.left = left
        self.relation = relation
        self.right = right
        super().__init__(f"{left} {relation} {right}")


@dataclass(frozen=True)
class SizeFacts:
    """The assumptions of one case.

    ``order``: size names as the specs introduce them; an equality replaces the later one.
    ``conditions``: what was assumed, for people and kernels.  ``substitution``: sizes that an
    equality replaced.  ``nonnegative``, ``unequal``, ``equal``: polynomials known to be ``>= 0``,
    ``!= 0`` and ``== 0``.  ``least``: what every size is at least.
    """

    order: tuple[str, ...] = ()
    conditions: tuple[SizeCondition, ...] = ()
    substitution: tuple[tuple[str, Dim], ...] = ()
    nonnegative: tuple[Dim, ...] = ()
    unequal: tuple[Dim, ...] = ()
    equal: tuple[Dim, ...] = ()
    least: int = 1

    @property
    def mapping(self) -> dict[Atom, Dim]:
        """The replaced sizes, for ``Dim.substitute``."""
        return {Size(name): dim for name, dim in self.substitution}

    # -- what follows

    def decide(self, left: DimLike, relation: str, right: DimLike) -> bool | None:
        """Does ``left relation right`` hold for all sizes (True), for none (False), or neither?"""
        difference = Dim.of(left) - right
        if relation in ("==", "!="):
            equal = self._equal(difference)
            return equal if relation == "==" or equal is None else not equal
        if relation in ("<", "<="):
            difference = -difference
        if relation in ("<", ">"):
            difference = difference - 1
        if self._nonnegative(difference):
            return True
        return False if self._nonnegative(-difference - 1) else None

    def _equal(self, difference: Dim) -> bool | None:
        if difference == 0 or difference in self.equal or -difference in self.equal:
            return True
        if difference in self.unequal or -difference in self.unequal or _parity(difference):
            return False
        if self._nonnegative(difference - 1) or self._nonnegative(-difference - 1):
            return False
        return None

    def _nonnegative(self, value: Dim) -> bool:
        """Is ``value >= 0`` for all sizes that fit the facts?  True only with a proof."""
        return _is_nonnegative(value, self.nonnegative, self.least)

    def including_zero(self) -> SizeFacts:
        """What the same conditions say when sizes may be 0 as well."""
        return _including_zero(self.order, self.conditions)

    # -- the branches

    def assume(self, left: DimLike, relation: str, right: DimLike) -> SizeFacts | None:
        """These facts and one more; None when it contradicts them."""
        left, right = Dim.of(left), Dim.of(right)
        decided = self.decide(left, relation, right)
        if decided is not None:
            return self if decided else None
        condition = SizeCondition(left, relation, right)
        difference = left - right
        if relation == "==":
            return self._assume_equal(difference, condition)
        if relation == "!=":
            return self._assume_unequal(difference, condition)
        if relation in ("<", "<="):
            difference = -difference
        if relation in ("<", ">"):
            difference = difference - 1
        return self._assume_nonnegative(difference, condition)

    def answer(self, question: NeedsDecision, holds: bool) -> SizeFacts | None:
        """These facts and an answer to an open question; None when it contradicts them."""
        relation = question.relation if holds else OPPOSITE[question.relation]
        return self.assume(question.left, relation, question.right)

    def _assume_nonnegative(self, value: Dim, condition: SizeCondition) -> SizeFacts | None:
        if self._nonnegative(-value):
            return self._assume_equal(value, condition)
        if value in self.unequal or -value in self.unequal:
            value = value - 1
        return replace(
            self, conditions=(*self.conditions, condition), nonnegative=self._stronger(value)
        )

    def _stronger(self, value: Dim) -> tuple[Dim, ...]:
        """What is known not to be negative, and ``value``: without what follows from that alone."""
        differences = ((fact, (fact - value).constant) for fact in self.nonnegative)
        return (*(fact for fact, more in differences if more is None or more < 0), value)

    def _assume_unequal(self, value: Dim, condition: SizeCondition) -> SizeFacts | None:
        conditions = (*self.conditions, condition)
        for side in (value, -value):
            if self._nonnegative(side):
                if self._nonnegative(-side):
                    return None
                return replace(self, conditions=conditions, nonnegative=self._stronger(side - 1))
        return replace(self, conditions=conditions, unequal=(*self.unequal, value))

    def _assume_equal(self, value: Dim, condition: SizeCondition) -> SizeFacts | None:
        solved = self._solve(value)
        if solved is None:
            conditions = (*self.conditions, condition)
            return replace(self, conditions=conditions, equal=(*self.equal, value))
        facts: SizeFacts | None = self
        for name, dim in solved:
            facts = facts and facts._replace_size(name, dim)
        return facts

    def _replace_size(self, name: str, value: Dim) -> SizeFacts | None:
        """Put ``value`` for the size ``name`` in everything known; None at a contradiction."""
        mapping: dict[Atom, Dim] = {Size(name): value}
        facts = SizeFacts(
            self.order,
            (*self.conditions, SizeCondition(Dim.size(name), "==", value)),
            (*((old, dim.substitute(mapping)) for old, dim in self.substitution), (name, value)),
            least=self.least,
        )
        known = (dim.substitute(mapping) for dim in self.nonnegative)
        for fact in (*known, value - self.least):
            if facts._nonnegative(-fact - 1):
                return None
            if not facts._nonnegative(fact):
                facts = replace(facts, nonnegative=(*facts.nonnegative, fact))
        for fact in (dim.substitute(mapping) for dim in self.unequal):
            if (decided := facts._equal(fact)) is True:
                return None
            if decided is None:
                facts = replace(facts, unequal=(*facts.unequal, fact))
        for fact in (dim.substitute(mapping) for dim in self.equal):
            if facts._equal(fact) is False:
                return None
            facts = replace(facts, equal=(*facts.equal, fact))
        return facts

    def _solve(self, value: Dim) -> tuple[tuple[str, Dim], ...] | None:
        """Sizes and what they are when ``value == 0``; None when no size can be replaced."""
        ones = _product_is_one(value)
        if ones:
            return tuple((name, Dim.of(1)) for name in ones)
        names = [name for name in reversed(self.order) if name in value.sizes]
        names += [name for name in reversed(value.sizes) if name not in names]
        solutions = [(name, dim) for name in names if (dim := _isolate(value, name)) is not None]
        for name, dim in solutions:
            if self._nonnegative(dim - self.least):
                return ((name, dim),)
        return (solutions[0],) if solutions else None


# the same is asked in each trace of a program, of which a verdict takes many


@lru_cache(maxsize=4096)
def _is_nonnegative(value: Dim, facts: tuple[Dim, ...], least: int) -> bool:
    """Is ``value >= 0`` where all ``facts`` are and sizes are at least ``least``?"""

    def least_of(size: Size) -> int:
        """The least value of a size that a fact ``size - c >= 0`` gives."""
        bounds = ((Dim.of(size) - fact).constant for fact in facts)
        return max([least, *(bound for bound in bounds if bound is not None)])

    near = [fact for fact in facts if fact.atoms & value.atoms]
    sums = [Dim.of(0), *near, *(fact * 2 for fact in near)]
    sums += [first + second for first, second in combinations(near, 2)]
    return any(value.at_least(known, least_size=least_of) for known in sums)


@lru_cache(maxsize=1024)
def _including_zero(order: tuple[str, ...], conditions: tuple[SizeCondition, ...]) -> SizeFacts:
    """The facts of these conditions where sizes may be 0; one that contradicts is left out."""
    facts = SizeFacts(order, least=0)
    for condition in conditions:
        found = facts.assume(condition.left, condition.relation, condition.right)
        facts = facts if found is None else found
    return facts


def _parity(value: Dim) -> bool:
    """Can it never be 0, because its coefficients have a divisor that its constant lacks?"""
    factors = [coefficient for monomial, coefficient in value.terms if monomial]
    constant = sum(coefficient for monomial, coefficient in value.terms if not monomial)
    return bool(factors) and constant % gcd(*factors) != 0


def _product_is_one(value: Dim) -> tuple[str, ...]:
    """The sizes in ``c * n * m - c``: where that is 0, each of them is 1."""
    if len(value.terms) != 2 or value.terms[0][0] or sum(term[1] for term in value.terms):
        return ()
    monomial, _ = value.terms[1]
    names = tuple(atom.name for atom, _ in monomial if isinstance(atom, Size))
    return names if len(names) == len(monomial) else ()


def _isolate(value: Dim, name: str) -> Dim | None:
    """What the size ``name`` is where ``value == 0``, when it occurs once and linearly."""
    size = Size(name)
    factor = sum(coefficient for monomial, coefficient in value.terms if monomial == ((size, 1),))
    if not factor:
        return None
    rest = value - Dim.of(size) * factor
    return None if size in rest.atoms else (-rest).exact_quotient(factor)
