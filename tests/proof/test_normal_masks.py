"""Masks by minus infinity, and conditions of which one always holds."""

from __future__ import annotations

import pytest

from symgrad.proof.normal.atoms import Undecided
from symgrad.proof.normal.facts import POSITIVE_INTERVAL, Facts
from tests.proof.normal_terms import Standard, Term


class Masked(Standard):
    """A mask that is an input, over rows i and entries j."""

    def __init__(self, facts: Facts | None = None) -> None:
        super().__init__(facts)
        self.v = self.at("v", self.i, self.j)

    def mask(self, *at: Term) -> Term:
        return self.leaf("mask", *at, sort="bool")

    def masked(self, kept: Term, value: Term) -> Term:
        return self.where(kept, value, -self.infinity())


def test_the_infinity_of_a_mask_stays_in_the_maximum() -> None:
    """[rule: minus-infinity]."""
    a = Masked()
    scores = a.masked(a.mask(a.i, a.j), a.v)
    whole = a.max(a.j, scores)
    assert whole.poly.atom is not None
    assert a.max(a.j, scores + a.x) != whole + a.x + 1
    kept = a.exp(scores - whole)
    assert kept == a.mask(a.i, a.j) * a.exp(a.v) / a.exp(whole)
    assert a.assumed("minus-infinity") == [("row", a.mask(a.i, a.j).poly)]


def test_a_mask_of_whole_rows_comes_out_of_the_maximum() -> None:
    """[rule: minus-infinity]."""
    a = Masked()
    scores = a.masked(a.mask(a.i), a.v)
    assert a.max(a.j, scores) == a.masked(a.mask(a.i), a.max(a.j, a.v))
    assert a.argmax(a.j, scores) == a.mask(a.i) * a.argmax(a.j, a.v)
    assert a.assumed("minus-infinity") == []


def test_a_row_that_plainly_keeps_an_entry_is_no_condition() -> None:
    a = Masked()
    causal = a.masked(a.compare(a.l, "le", a.k), a.at("v", a.k, a.l))
    a.max(a.l, causal)
    assert a.assumed("minus-infinity") == []
    strict = a.masked(a.compare(a.l, "lt", a.k), a.at("v", a.k, a.l))
    a.max(a.l, strict)
    assert len(a.assumed("minus-infinity")) == 1


def test_masks_are_not_mistaken_for_each_other() -> None:
    a = Masked()
    one, other = a.mask(a.i, a.j), a.leaf("other", a.i, a.j, sort="bool")
    first, second = a.max(a.j, a.masked(one, a.v)), a.max(a.j, a.masked(other, a.v))
    assert first != second
    assert a.stage(a.exp(a.masked(one, a.v) - first) - a.exp(a.masked(one, a.v) - second)) is None
    assert a.max(a.j, a.masked(one, a.v)) != a.max(a.j, one * a.v)


def test_of_two_conditions_one_always_holds() -> None:
    """[rule: implied-relation]."""
    a = Standard(Facts(intervals={"p": POSITIVE_INTERVAL}))
    p = a.at("p", a.i)
    below, above = a.compare(p - a.x, "gt", 0), a.compare(a.x, "gt", 0)
    assert below * above == below + above - 1
    assert (1 - below) * (1 - above) == 0
    assert a.y * below * above == a.y * below + a.y * above - a.y


def test_of_two_conditions_both_may_fail() -> None:
    a = Standard(Facts(intervals={"p": POSITIVE_INTERVAL}))
    p, q = a.at("p", a.i), a.at("q", a.i)
    above = a.compare(a.x, "gt", 0)
    for other in (q - a.x, -p - a.x, p - a.y, p * q - a.x, p - a.x * a.x):
        below = a.compare(other, "gt", 0)
        assert below * above != below + above - 1, str(other.poly.terms)
    shifted = a.compare(2 * p - a.x, "gt", 0) * a.compare(a.x - 3 * p, "gt", 0)
    assert shifted == 0


def test_infinities_beside_conditions_are_multiplied_piece_by_piece() -> None:
    """[rule: minus-infinity]."""
    a = Masked()
    far = a.where(a.mask(a.i), a.infinity(), a.at("v", a.i))
    assert far * far == a.where(a.mask(a.i), a.infinity(), a.at("v", a.i) * a.at("v", a.i))
    assert far * -far != far * far
    scaled = far * a.exp(a.at("w", a.i))
    assert scaled == a.where(a.mask(a.i), a.infinity(), a.at("v", a.i) * a.exp(a.at("w", a.i)))
    with pytest.raises(Undecided):
        far * a.at("w", a.i)


def test_the_first_of_the_greatest_is_not_masked() -> None:
    """[rule: minus-infinity]."""
    a = Masked()
    first = a.argmax(a.j, a.masked(a.mask(a.i, a.j), a.v))
    here = a.compare(a.j, "eq", first)
    assert a.stage(here * (1 - a.mask(a.i, a.j))) is not None
    assert a.stage(here * a.mask(a.i, a.j)) is None
    assert a.stage(here * (1 - a.leaf("other", a.i, a.j, sort="bool"))) is None
