"""Angles of points: what is and what is not true of atan2."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgrad.proof.judge.families import Families
from symgrad.proof.judge.witness import discharge
from symgrad.proof.normal.facts import POSITIVE_INTERVAL, Facts
from symgrad.proof.normal.functions import angle
from symgrad.proof.words.polytext import PolyText
from tests.proof.normal_terms import Standard, Term


class Plane(Standard):
    def angle(self, y: Term | int, x: Term | int) -> Term:
        sides = [side if isinstance(side, Term) else self.x * 0 + side for side in (y, x)]
        return self.term(angle(self.context, *(side.poly for side in sides)))


@pytest.fixture
def a() -> Plane:
    return Plane(Facts(intervals={"p": POSITIVE_INTERVAL}))


def test_positive_factors_come_out(a: Plane) -> None:
    """[rule: angle]."""
    p = a.at("p", a.i)
    whole = a.angle(a.y, a.x)
    assert a.angle(3 * a.y, 3 * a.x) == whole
    assert a.angle(p * a.y, p * a.x) == whole
    assert a.angle(a.exp(a.x) * a.y, a.exp(a.x) * a.x) == whole
    assert a.angle(-2 * a.y, 2 * a.x) == -whole
    assert a.owed("angle") == []  # an element is plainly not always 0
    a.angle(-a.y - 1, a.x)
    assert a.owed("angle") == [(-a.y - 1).poly]


def test_other_factors_stay(a: Plane) -> None:
    z = a.at("z", a.i)
    whole = a.angle(a.y, a.x)
    assert a.angle(z * a.y, z * a.x) != whole
    assert a.angle(-a.y, -a.x) != whole
    assert a.angle(-a.y, -a.x) != -whole
    assert a.angle(a.y, -a.x) != -whole
    assert a.angle(2 * a.y, a.x) != whole
    assert a.angle(a.x, a.y) != whole
    assert a.angle(a.y * a.y, a.x * a.y) != whole
    assert a.apply("atan", a.y / a.x) != whole


def test_sine_and_cosine(a: Plane) -> None:
    """[rule: angle]."""
    whole, radius = a.angle(a.y, a.x), (a.x * a.x + a.y * a.y) ** Fraction(1, 2)
    assert a.apply("sin", whole) * radius == a.y
    assert a.apply("cos", whole) * radius == a.x
    assert a.apply("sin", 2 * whole) * radius * radius == 2 * a.x * a.y
    assert a.apply("sin", whole + a.x) != a.apply("sin", whole)


def test_conditions_inside_are_lifted(a: Plane) -> None:
    above = a.compare(a.y, "gt", 0)
    both = a.where(above, a.angle(a.y, a.x), a.angle(0, a.x))
    assert a.angle(above * a.y, a.x) == both


def test_being_odd_is_owed_a_witness(a: Plane) -> None:
    a.angle(-a.y - 1, a.x)
    (owed,) = [o for o in a.context.obligations.values() if o.rule == "angle"]
    assert not discharge(owed, Families(a.context), PolyText()).problem


@given(st.floats(-3, 3).filter(bool), st.floats(-3, 3).filter(bool), st.floats(0.1, 5))
def test_the_rules_hold_for_numbers(y: float, x: float, scale: float) -> None:
    angle, radius = mpmath.atan2(y, x), mpmath.hypot(x, y)
    assert mpmath.almosteq(mpmath.atan2(scale * y, scale * x), angle, abs_eps=1e-12)
    assert mpmath.almosteq(mpmath.atan2(-y, x), -angle)
    assert mpmath.almosteq(mpmath.sin(angle) * radius, y, abs_eps=1e-12)
    assert mpmath.almosteq(mpmath.cos(angle) * radius, x, abs_eps=1e-12)
