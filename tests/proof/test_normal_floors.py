"""Floors are integers: as indices, in conditions, and in the range that is declared."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgrad.ir.dtype import float64
from symgrad.ir.expr import ExprPool
from symgrad.proof.normal.algebra import _congruent, floordiv, integer_nonnegative
from symgrad.proof.normal.facts import Facts, Interval
from symgrad.proof.normal.from_expr import Conversion
from symgrad.proof.normal.poly import constant
from tests.proof.normal_terms import Standard, Term

ZERO_TO_THREE = Interval(Fraction(0), Fraction(3), True, True)


class Grid(Standard):
    def __init__(self, interval: Interval | None = ZERO_TO_THREE) -> None:
        super().__init__(Facts(intervals={"x": interval, "y": interval} if interval else {}))
        self.f, self.h = self.floor(self.x), self.floor(self.y)

    def floor(self, value: Term) -> Term:
        return self.apply("floor", value)

    def holds(self, value: Term) -> bool:
        return integer_nonnegative(self.context, value.poly)


def test_a_floor_is_an_integer() -> None:
    """[rule: floor]."""
    a = Grid(None)
    assert a.floor(a.f + a.k) == a.f + a.k
    assert a.floor(-a.f) == -a.f
    assert a.floor(a.f / 2) != a.f / 2
    assert a.compare(a.f, "gt", a.k) == a.compare(a.f, "ge", a.k + 1)
    assert a.compare(a.f, "eq", a.k) + a.compare(a.f, "ne", a.k) == 1
    assert a.compare(a.x, "gt", a.k) != a.compare(a.x, "ge", a.k + 1)


@pytest.mark.parametrize("function", ["trunc", "round", "ceil", "floor"])
def test_rounding_leaves_integers_as_they_are(function: str) -> None:
    """[rule: floor]."""
    pool = ExprPool()
    x = pool.access("x", (), float64)
    floor = pool.call("floor", x, dtype=float64)
    half = pool.call("mul", floor, pool.literal(0.5, float64), dtype=float64)
    conversion = Conversion(Grid(None).context)
    assert conversion.poly(pool.call(function, floor, dtype=float64)) == conversion.poly(floor)
    assert conversion.poly(pool.call(function, half, dtype=float64)) != conversion.poly(half)
    assert conversion.poly(pool.call(function, x, dtype=float64)) != conversion.poly(x)


def test_a_declared_interval_bounds_the_floor() -> None:
    """[rule: floor]."""
    a = Grid()
    assert a.holds(a.f)
    assert a.holds(2 - a.f)
    assert not a.holds(1 - a.f)
    assert not a.holds(a.f - 1)
    assert not Grid(None).holds(Grid(None).f)
    closed = Grid(Interval(Fraction(0), Fraction(3), False, False))
    assert closed.holds(3 - closed.f)
    assert not closed.holds(2 - closed.f)
    shifted = a.floor(a.x - Fraction(1, 2))
    assert a.holds(shifted + 1)
    assert a.holds(2 - shifted)
    assert not a.holds(shifted)


@given(st.integers(-4, 4), st.integers(-4, 4))
def test_a_quotient_near_0_is_a_condition(slope: int, offset: int) -> None:
    """[rule: floor]: the remainders of the neighbours of an index are its neighbours."""
    a = Standard()
    top = a.argmax(a.i, a.x)
    for index in (a.k, top):
        found = a.apply("floor", (index + slope * a.n + offset) / a.n)
        for shift in (-1, 0, 1):
            below = a.compare(index + offset, "lt", 0) if offset < 0 else a.term(constant(0))
            above = a.compare(index + offset, "ge", a.n) if offset > 0 else a.term(constant(0))
            is_so = abs(offset) <= 1 and shift == slope
            assert (found == above - below + shift) == is_so
    assert a.apply("floor", a.k / (a.n * a.m)) == 0
    assert a.apply("floor", (a.k + offset) / a.m) != 0
    assert a.apply("floor", (a.x + a.k) / a.n) != 0


def test_flattened_floors_come_apart_with_an_offset() -> None:
    """[rule: flatten]."""
    a = Grid()
    p, q = a.index("p", 4), a.index("q", 4)
    flat = a.compare(4 * p + q, "eq", 4 * a.f + a.h + 1)
    assert flat == a.compare(p, "eq", a.f) * a.compare(q, "eq", a.h + 1)
    below = a.compare(4 * p + q, "eq", 4 * a.f + a.h + 5)
    assert below == a.compare(p, "eq", a.f + 1) * a.compare(q, "eq", a.h + 1)
    carried = a.compare(4 * p + q, "eq", 4 * a.f + a.h + 2)
    assert carried != a.compare(p, "eq", a.f) * a.compare(q, "eq", a.h + 2)


@given(st.integers(-6, 6), st.integers(2, 5), st.integers(-9, 9))
def test_coming_apart_is_true_for_numbers(offset: int, stride: int, shift: int) -> None:
    a = Standard()
    p, q = a.index("p", 3), a.index("q", min(stride, 3))
    poly = (stride * p + q + offset + 0 * shift).poly
    found = _congruent(a.context, poly)
    if found is None:
        return
    whole, rest = (a.term(part) for part in found)
    assert stride * whole + rest == a.term(poly)
    for i in range(3):
        for j in range(min(stride, 3)):
            both = [_value(part, i, j, p, q) for part in (whole, rest)]
            assert (stride * i + j + offset == 0) == (both == [0, 0])


def _value(term: Term, i: int, j: int, p: Term, q: Term) -> int:
    total = 0
    values = {p.poly.atom: i, q.poly.atom: j}
    for monomial, coefficient in term.poly.terms.items():
        total += int(coefficient) * math.prod(values[atom] for atom, _ in monomial)
    return total


def test_an_integer_over_sizes_rounded_down_is_an_integer_division() -> None:
    """[rule: floor]."""
    a = Grid(None)
    index = a.leaf("index", a.i, sort="int")
    for divisor in (a.n, a.n * 2):
        whole = floordiv(a.context, index.poly, divisor.poly)
        assert a.floor(index / divisor).poly == whole
    assert a.floor(index / 2).poly == floordiv(a.context, index.poly, constant(2))
    assert a.floor(a.x / a.n).poly != floordiv(a.context, index.poly, a.n.poly)
