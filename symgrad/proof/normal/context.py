"""The state of one proof: facts, interned atoms, what was relied upon, and the budget.

In: ``Facts``.  Out: ``Proof``, which every rule takes as its first argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from symgrad import deadline
from symgrad.budgets import CHECKED_WORK, NORMAL_FORM_WORK
from symgrad.proof.normal.atoms import (
    EXP,
    INDEX,
    LEAF,
    NUMBER,
    SIZE,
    Atom,
    AtomTable,
    Undecided,
)
from symgrad.proof.normal.facts import Facts
from symgrad.proof.normal.poly import Poly, all_atoms, direct_atoms
from symgrad.proof.normal.stated import Decided, Template


@dataclass(frozen=True)
class Obligation:
    """What an almost-everywhere rule relies on: ``base`` must not vanish identically.

    For all sizes, and each value of its index variables, ``base`` as a function of the leaves must
    be nonzero almost everywhere.  Where ``piecewise`` is false it is analytic, so that for fixed
    integers one nonzero value shows that, on a connected domain; where it is true, one nonzero
    value proves nothing.  ``distinct``: two index variables that are not equal; ``base`` is then
    the difference of two bodies at different index values.  ``of_greatest``: that they are not
    equal is needed only where one of them is the greatest of all.
    """

    rule: str
    base: Poly
    piecewise: bool = False
    distinct: tuple[Atom, Atom] | None = None
    of_greatest: bool = False


@dataclass(frozen=True)
class Requirement:
    """A condition to print beside the verdict: ``poly`` is ``relation`` 0.

    ``relation``: one of ``> >= !=``; or ``"row"`` for a mask that leaves an entry in each row.
    """

    rule: str
    relation: str
    poly: Poly


@dataclass(frozen=True)
class Reading:
    """What is done with conditions on reals, ``[P > 0]`` and ``[P == 0]``.

    ``apart``: factors of P that are integers are told apart, as ``[n - 6 > 0]`` and ``[n < 6]``.
    ``generic``: an analytic P is taken not to vanish, which is an obligation.
    """

    apart: bool = False
    generic: bool = True


EXACT = Reading(apart=True, generic=False)
APART = Reading(apart=True)

Rule = Callable[["Proof", Poly], Poly | None]
"""What a polynomial turns into, or None where the rule does not apply."""


@dataclass(frozen=True)
class Rules:
    """How ``algebra`` reaches what is built on it; ``rules.RULES`` is the one table.

    ``make``: the constructor of each kind of atom, which takes what ``Atom.data`` holds.
    ``comparisons``: rules for [P > 0], before conditions in P are lifted; ``signs``: those of them
    that say 1 of what is positive; ``piece_comparisons``: those for a real P without conditions
    whose sign is not known.  ``equalities``: rules for [P == 0] on the integers.
    """

    make: Mapping[str, Callable[..., Poly]]
    comparisons: tuple[Rule, ...]
    signs: tuple[Rule, ...]
    piece_comparisons: tuple[Rule, ...]
    equalities: tuple[Rule, ...]


class Proof:
    """The state of one proof: facts, atoms, obligations, requirements, memo tables, the budget.

    ``factored``: products of several-term factors stay products (let-atoms), which keeps deep
    chains small.  ``domain``: what is known to be positive (True) or not negative (False), at all
    values of its indices, because that is a printed condition already; used where ``in_domain`` is
    set, that is for splitting roots and logarithms, never to decide a condition.  ``stated``: what
    is stated of the inputs, which decides conditions.  ``decided``: what is positive exactly where
    a condition on integers holds.  ``held``: polynomials known to be so inside of the piece at
    work, which is a factor beside the condition that says so.  ``reading``: what is done with
    conditions on reals.  All polynomials combined with each other must come from one proof.
    """

    def __init__(
        self,
        rules: Rules,
        facts: Facts | None = None,
        *,
        budget: int = NORMAL_FORM_WORK,
        factored: bool = False,
        reading: Reading | None = None,
    ) -> None:
        self.rules = rules
        self.reading = reading if reading is not None else Reading()
        self.facts = facts if facts is not None else Facts()
        self.budget = budget
        self.factored = factored
        self.work = 0
        self.obligations: dict[tuple[str, Poly], Obligation] = {}
        self.requirements: dict[tuple[str, str, Poly], Requirement] = {}
        self.readings: dict[Any, str] = {}
        self.domain: dict[Poly, bool] = {}
        self.in_domain = False
        self.stated: tuple[Template, ...] = ()
        self.decided: tuple[Decided, ...] = ()
        self.held: tuple[tuple[Poly, bool], ...] = ()
        self.memo: dict[Any, Any] = {}
        self._table = AtomTable(self.facts.lower | self.facts.upper)
        self._fresh = 0
        self._looked = 0

    def atom(self, kind: str, *data: Any) -> Atom:
        """The interned atom, taken as it is: no rule is applied."""
        return self._table.get(kind, *data)

    def make(self, kind: str, *data: Any) -> Poly:
        """An atom of this kind in normal form: the constructor of its kind is applied."""
        return self.rules.make[kind](self, *data)

    def apply_rules(self, rules: tuple[Rule, ...], poly: Poly) -> Poly | None:
        """What the first rule that applies makes of a polynomial; None where none does."""
        for rule in rules:
            result = rule(self, poly)
            if result is not None:
                return result
        return None

    def fresh(self, extent: Poly) -> Atom:
        """A new index variable over ``0 <= index < extent``."""
        self._fresh += 1
        return self._table.get(INDEX, f"~{self._fresh}", extent)

    def spend(self, amount: int) -> None:
        """Count work.  Raises Undecided when the budget is used up, TimeUp when the time is."""
        self.work += amount
        if self.work > self._looked:
            self._looked = self.work + CHECKED_WORK
            deadline.check()
        if self.work > self.budget:
            raise Undecided(f"normalization takes more than {self.budget} steps")

    def require_nonzero(self, rule: str, base: Poly) -> None:
        """Record that ``base`` must not vanish identically, unless that is plain to see."""
        self.refuse_triangles(base)
        if not _plainly_nonzero(base, self.facts):
            self.obligations.setdefault((rule, base), Obligation(rule, base, base.piecewise))

    def require_distinct(
        self, rule: str, base: Poly, left: Atom, right: Atom, *, of_greatest: bool = False
    ) -> None:
        """Record that ``base`` must not vanish identically where ``left != right``."""
        self.refuse_triangles(base)
        known = self.obligations.get((rule, base))
        if known is None or (known.of_greatest and not of_greatest):
            relied_on = Obligation(rule, base, base.piecewise, (left, right), of_greatest)
            self.obligations[rule, base] = relied_on

    def refuse_triangles(self, base: Poly) -> None:
        """Elements of triangular matrices are 0 on one side: they are not generic."""
        triangular = self.facts.lower | self.facts.upper
        if triangular and any(_off_diagonal(atom, triangular) for atom in all_atoms(base)):
            raise Undecided("an element of a triangular matrix may be 0 for all inputs")

    @contextmanager
    def using_domain(self, used: bool) -> Iterator[None]:
        """Use the printed conditions as signs inside this block, or none of them."""
        before, self.in_domain = self.in_domain, used and bool(self.domain)
        try:
            yield
        finally:
            self.in_domain = before

    @contextmanager
    def holding(self, poly: Poly, *, strict: bool) -> Iterator[None]:
        """Inside this block ``poly`` is positive, or not negative."""
        before, self.held = self.held, (*self.held, (poly, strict))
        try:
            yield
        finally:
            self.held = before

    def require(self, rule: str, relation: str, poly: Poly) -> None:
        """Record a condition that has to be printed."""
        self.requirements.setdefault((rule, relation, poly), Requirement(rule, relation, poly))


def _off_diagonal(atom: Atom, tensors: frozenset[str]) -> bool:
    """Is it an element of one of these tensors, but not one of a diagonal?"""
    return atom.kind == LEAF and atom.data[0] in tensors and atom.data[1][-1] != atom.data[1][-2]


def _plainly_nonzero(base: Poly, facts: Facts) -> bool:
    """Is it a nonzero number times powers of free real leaves and of positive atoms?"""
    if len(base.terms) != 1:
        return False
    return all(
        atom.kind in (EXP, SIZE, NUMBER)
        or (atom.kind == LEAF and atom.data[2] == "real" and not facts.may_vanish(atom.data[0]))
        for atom in direct_atoms(base)
    )
