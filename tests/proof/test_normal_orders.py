"""Ranks: what sorted elements are compared by, and when they are not."""

from __future__ import annotations

import pytest

from symgrad.ir.dim import Dim
from symgrad.proof.judge.families import Families
from symgrad.proof.judge.witness import discharge
from symgrad.proof.normal.facts import Facts
from symgrad.proof.normal.poly import ONE
from symgrad.proof.normal.stated import Decided, Template, tensors
from symgrad.proof.words.polytext import PolyText
from tests.proof.normal_terms import Standard, Term


class Sorted(Standard):
    """``x`` over rows i and columns k, its ranks along the columns."""

    def __init__(self, *, downward: bool = False, known: bool = True) -> None:
        orders = {"rank": ("x", downward)} if known else {}
        super().__init__(
            Facts(permutations={"rank": 1}, ranges={"rank": Dim.size("n")}, orders=orders)
        )
        self.p, self.q = self.index("p", self.n), self.index("q", self.n)

    def rank(self, at: Term, row: Term | None = None) -> Term:
        return self.leaf("rank", self.j if row is None else row, at, sort="int")

    def value(self, at: Term, row: Term | None = None) -> Term:
        return self.at("x", self.j if row is None else row, at)

    def sorted(self, place: Term) -> Term:
        return self.sum([self.k], self.compare(self.rank(self.k), "eq", place) * self.value(self.k))


@pytest.mark.parametrize("downward", [False, True])
def test_sorted_elements_are_compared_by_rank(downward: bool) -> None:
    """[rule: order]."""
    a = Sorted(downward=downward)
    less = "lt" if downward else "gt"
    assert a.compare(a.value(a.p), "gt", a.sorted(a.q)) == a.compare(a.rank(a.p), less, a.q)
    assert a.compare(a.sorted(a.q), "gt", a.value(a.p)) == a.compare(a.q, less, a.rank(a.p))
    assert a.compare(a.sorted(a.p), "gt", a.sorted(a.q)) == a.compare(a.p, less, a.q)
    (owed,) = [o for o in a.context.obligations.values() if o.rule == "order"]
    paid = discharge(owed, Families(a.context), PolyText())
    assert not paid.problem
    assert [condition.kind for condition in paid.conditions] == ["ties"]


def test_what_is_not_compared_by_rank() -> None:
    a = Sorted()
    here = a.compare(a.rank(a.p), "gt", a.q)
    assert a.compare(a.value(a.p), "gt", 2 * a.sorted(a.q)) != here
    assert a.compare(a.value(a.p), "gt", -a.sorted(a.q)) != here
    assert a.compare(a.value(a.p, a.i), "gt", a.sorted(a.q)) != a.compare(
        a.rank(a.p, a.i), "gt", a.q
    )
    assert a.compare(a.at("y", a.j, a.p), "gt", a.sorted(a.q)) != here
    other = a.sum([a.k], a.compare(a.rank(a.k), "eq", a.q) * a.at("y", a.j, a.k))
    assert a.compare(a.value(a.p), "gt", other) != here
    unknown = Sorted(known=False)
    met = unknown.compare(unknown.value(unknown.p), "gt", unknown.sorted(unknown.q))
    assert met != unknown.compare(unknown.rank(unknown.p), "gt", unknown.q)


@pytest.mark.parametrize("downward", [False, True])
def test_rank_zero_is_the_first_extreme(downward: bool) -> None:
    """[rule: order]."""
    a = Sorted(downward=downward)
    least = a.argmax(a.k, a.value(a.k) if downward else -a.value(a.k))
    most = a.argmax(a.k, -a.value(a.k) if downward else a.value(a.k))
    assert a.compare(a.rank(a.p), "eq", 0) == a.compare(a.p, "eq", least)
    assert a.compare(a.rank(a.p), "eq", 0) != a.compare(a.p, "eq", most)
    assert a.compare(a.rank(a.p), "eq", 1) != a.compare(a.p, "eq", least)


def test_a_permutation_takes_no_value_twice() -> None:
    """[rule: permutation]."""
    a = Sorted()
    assert a.compare(a.rank(a.p), "eq", a.rank(a.q)) == a.compare(a.p, "eq", a.q)
    apart = a.compare(a.rank(a.p), "eq", a.rank(a.q, a.i))
    assert apart != a.compare(a.p, "eq", a.q)
    assert a.compare(a.rank(a.p), "eq", a.rank(a.q) + 1) != a.compare(a.p, "eq", a.q)


def test_sums_of_ranks_are_sums_of_indices() -> None:
    """[rule: permutation]."""
    a = Sorted()
    counted = a.sum([a.k], a.compare(a.rank(a.k), "le", a.q))
    assert counted == a.q + 1
    assert a.sum([a.k], a.rank(a.k) * a.rank(a.k)) == a.sum([a.k], a.k * a.k)
    assert a.sum([a.k], a.rank(a.k) * a.k) != a.sum([a.k], a.k * a.k)
    assert a.sum([a.k], a.rank(a.k) * a.value(a.k)) != a.sum([a.k], a.k * a.value(a.k))


def test_a_growing_integer_is_greatest_at_its_end() -> None:
    """[rule: max]."""
    a = Sorted()
    kept = a.compare(a.k, "le", a.q)
    assert a.max(a.k, kept * (a.k + 1)) == a.q + 1
    assert a.max(a.k, kept * (a.k - 1)) != a.q - 1
    assert a.max(a.k, kept * (a.n - a.k)) != a.n - a.q
    assert a.max(a.k, a.compare(a.k, "le", a.q + 1) * (a.k + 1)) != a.q + 2


def test_conditions_that_integers_decide() -> None:
    """[rule: support]."""
    a = Sorted()
    row, place = a.index("@0", a.size("m")), a.index("@1", a.n)
    gap = a.value(place, row) - a.at("level", row)
    holds = a.compare(a.rank(place, row), "le", a.q)
    variables = tuple(next(iter(one.poly.free)) for one in (row, place))
    known = Template(gap.poly, variables, True)
    a.context.decided = (Decided(known, holds.poly, tensors(gap.poly)),)
    there = a.compare(a.rank(a.p), "le", a.q)
    level = a.at("level", a.j)
    assert a.compare(a.value(a.p), "gt", level) == there
    assert a.compare(3 * a.value(a.p), "gt", 3 * level) == there
    assert a.compare(a.value(a.p), "lt", level) == 1 - there
    assert a.compare(a.value(a.p), "gt", 2 * level) != there
    assert a.compare(a.value(a.p), "gt", level + 1) != there
    assert a.compare(a.value(a.p, a.i), "gt", level) != a.compare(a.rank(a.p, a.i), "le", a.q)


def test_conditions_on_one_element_alone() -> None:
    """[rule: support]."""
    a = Sorted()
    level, one = a.at("level", 0), a.term(ONE)
    known = Template(level.poly, (), True)
    a.context.decided = (Decided(known, one.poly, tensors(level.poly)),)
    assert a.compare(2 * level, "gt", 0) == 1
    assert a.compare(level, "lt", 0) == 0
    assert a.compare(level, "gt", 1) != 1
    assert a.compare(a.at("level", 1), "gt", 0) != 1
