"""Where a maximum of piecewise values is reached: once, unless pieces coincide."""

from __future__ import annotations

import pytest

from symgrad.proof.judge.families import Families
from symgrad.proof.judge.witness import discharge
from symgrad.proof.normal.atoms import Undecided
from symgrad.proof.words.polytext import PolyText
from tests.proof.normal_terms import Standard, Term


class Pieces(Standard):
    def magnitude(self, value: Term) -> Term:
        return self.where(self.compare(value, "gt", 0), value, -value)

    def ramp(self, value: Term) -> Term:
        return self.where(self.compare(value, "gt", 0), value, 0)

    def reached(self, body: Term, at: Term) -> Term:
        """[max body == at], from the two strict comparisons."""
        top = self.max(self.k, body)
        return 1 - self.compare(top, "gt", at) - self.compare(at, "gt", top)


def test_the_greatest_magnitude_is_reached_once() -> None:
    """[rule: no-ties]."""
    a = Pieces()
    body = a.magnitude(a.at("x", a.k))
    reached = a.reached(body, a.magnitude(a.x))
    assert reached == a.compare(a.i, "eq", a.argmax(a.k, body))
    owed = [o for o in a.context.obligations.values() if o.rule == "no-ties"]
    assert len(owed) == 4
    assert all(not discharge(one, Families(a.context), PolyText()).problem for one in owed)


def test_pieces_with_different_slopes_are_apart() -> None:
    """[rule: no-ties]."""
    a = Pieces()
    x, v = a.at("x", a.k), a.at("v", a.k)
    body = a.where(a.compare(x, "gt", 0), x, v)
    here = a.where(a.compare(a.x, "gt", 0), a.x, a.at("v", a.i))
    assert a.reached(body, here) == a.compare(a.i, "eq", a.argmax(a.k, body))


def test_ramps_may_tie_at_zero() -> None:
    a = Pieces()
    body = a.ramp(a.at("x", a.k))
    reached = a.reached(body, a.ramp(a.x))
    assert reached != a.compare(a.i, "eq", a.argmax(a.k, body))


def test_pieces_of_constants_may_tie() -> None:
    a = Pieces()
    steps = a.where(a.compare(a.at("x", a.k), "gt", 0), a.at("x", a.k), a.y * 0 + 3)
    here = a.where(a.compare(a.x, "gt", 0), a.x, a.y * 0 + 3)
    assert a.reached(steps, here) != a.compare(a.i, "eq", a.argmax(a.k, steps))


def test_a_mask_that_is_an_input_may_tie() -> None:
    a = Pieces()
    body = a.leaf("mask", a.k, sort="bool") * a.at("x", a.k)
    reached = a.reached(body, a.leaf("mask", a.i, sort="bool") * a.x)
    assert reached != a.compare(a.i, "eq", a.argmax(a.k, body))


def test_rounded_values_may_tie() -> None:
    a = Pieces()
    body = a.apply("floor", a.at("x", a.k)) + a.at("y", a.k)
    with pytest.raises(Undecided, match="ties"):
        a.reached(body, a.apply("floor", a.x) + a.y)
