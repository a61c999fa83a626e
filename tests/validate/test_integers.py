"""What is said to follow for integers does, for all small numbers; 0 is one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symgrad.ir.dim import Atom, Axis, Dim, Size
from symgrad.ir.dtype import float64
from symgrad.validate.symbolic.integers import Integers, greatest, least, quotient
from symgrad.validate.symbolic.normal import INFINITE, LOWEST, ONE, Polynomial, Reals, Term
from symgrad.validate.symbolic.values import Values

N, M = Dim.size("n"), Dim.size("m")
ROW = Axis("row", N)
FLAT = Axis("flat", N * M)
REST = Axis("rest", least(N, 2 * Dim.of(ROW) + 2) - 2 * Dim.of(ROW))
"""The rows of a block that the end of all rows cuts."""
R, J, K = (Dim.of(axis) for axis in (ROW, FLAT, REST))
PARTS = [
    N, M, N * M, N * N, R, J, K, R * M, R * N, 2 * R + K, quotient(J, N), N * quotient(J, N),
    quotient(2 * R + K, M), least(N, M), greatest(N, Dim.of(1)), M * least(R, M), Dim.of(0),
]  # fmt: skip
VALUES = range(4)
Point = Mapping[Atom, int]


def points(*dims: Dim) -> Iterator[Point]:
    """Sizes, and rows in their ranges, at which no divisor is 0."""
    for n, m in product(VALUES, VALUES):
        for i, j in product(range(n), range(n * m)):
            for k in range(min(2, n - 2 * i)):
                yield {Size("n"): n, Size("m"): m, ROW: i, FLAT: j, REST: k}


def at(dim: Dim, point: Point) -> int:
    return dim.evaluate(point.__getitem__)


parts = st.sampled_from(PARTS)
gaps = st.builds(lambda one, two, more: one - two + more, parts, parts, st.integers(-2, 1))
ALWAYS = [N - 1, M - 1, R, N - 1 - R, J, N * M - 1 - J, K, N - 1 - 2 * R - K, 1 - K]
"""That there are rows, and that each lies in its range."""


@settings(max_examples=80, deadline=None, derandomize=True)
@given(facts=st.lists(gaps, max_size=2), goal=gaps)
def test_what_follows_is_true(facts: list[Dim], goal: Dim) -> None:
    integers = Integers()
    with integers.given(*ALWAYS, *facts):
        follows = integers.entails(goal)
    for point in points() if follows else ():
        assert at(goal, point) >= 0 or any(at(fact, point) < 0 for fact in facts), point


@settings(max_examples=100, deadline=None, derandomize=True)
@given(facts=st.lists(gaps, max_size=2), goal=gaps)
def test_what_follows_of_sizes_is_true_of_0(facts: list[Dim], goal: Dim) -> None:
    """Without divisors, as nothing says here that one is not 0."""
    dims = [*facts, goal]
    integers = Integers()
    if any("//" in str(dim) for dim in dims) or any(dim.axes for dim in dims):
        return
    with integers.given(*facts):
        follows = integers.entails(goal)
    for n, m in product(VALUES, VALUES) if follows else ():
        point: Point = {Size("n"): n, Size("m"): m}
        assert at(goal, point) >= 0 or any(at(fact, point) < 0 for fact in facts), point


GROUP = Axis("group", M)
ROWS = quotient(N + M - 1, M)
START = Dim.of(GROUP) * ROWS
OWN = Axis("own", least(N, START + ROWS) - START)
FOLLOWS = {
    "a row of a group is one of all rows": ([M - 1], [N - 1 - Dim.of(OWN)]),
    "there are rows where a group has one": ([M - 1, N - START - R - 1], [N - 1]),
    "a square of a size that is not 0": ([N * N - J - 1], [N - 1]),
    "a quotient of a place": ([N - 1], [M - 1 - quotient(J, N), (M - 1 - quotient(J, N)) * N]),
    "a product with a lesser length": ([100 - N * M], [100 - N * least(M, R)]),
    "a number below a product": ([], [N * least(M, R) + 100]),
}  # fmt: skip


@pytest.mark.parametrize("what", FOLLOWS)
def test_what_kernels_need_follows(what: str) -> None:
    facts, goals = FOLLOWS[what]
    integers = Integers()
    with integers.given(*facts):
        assert all(integers.entails(goal) for goal in goals)


def test_what_is_added_outlasts_what_is_given_around_it() -> None:
    integers = Integers()
    with integers.given(M - 5):
        integers.add(N - 3)
        assert integers.entails(M - 5)
    assert integers.entails(N - 3)
    assert not integers.entails(M - 5)


def test_what_is_not_0_is_beyond_the_end_that_is_known() -> None:
    integers = Integers()
    integers.differ(N - 1, N - 2, N - 9)
    integers.add(5 - N)
    assert not integers.entails(N - 1)
    integers.add(N - 1)
    assert integers.entails(N - 3)
    assert not integers.entails(N - 4)
    assert not integers.entails(4 - N)
    integers.add(2 - N)
    assert integers.contradictory


def test_what_holds_for_a_while_sharpens_nothing() -> None:
    integers = Integers()
    integers.differ(N - 1)
    with integers.given(N - 1):
        integers.add(5 - N)
    assert not integers.entails(N - 1)
    assert not integers.entails(N - 2)


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
def test_a_reduction_over_nothing_does_not_read(kind: str) -> None:
    values = Values(Integers())
    axis = values.axis("i", N)
    body = values.pool.access("x", (Dim.of(axis) + Dim.of(values.axis("j", M)),), float64)
    assert values.reduce(kind, axis, body).free
    with values.integers.given(-N):
        assert not values.reduce(kind, axis, body).free


def test_infinities_meet() -> None:
    reals = Reals(Values(Integers()))
    x = Polynomial.of(Term("element", ("x", Dim.of(0))))
    low, high = LOWEST, INFINITE
    assert reals._extreme("maximum", [low, x]) == x == reals._extreme("minimum", [high, x])
    assert reals._extreme("maximum", [high, x]) == high
    assert reals._extreme("minimum", [low, x]) == low


def test_a_choice_by_an_equality_is_what_both_sides_are_there() -> None:
    """``x == y ? 0 : -|x - y|`` is ``-|x - y|``; ``x == y ? 1 : -|x - y|`` is not."""
    values = Values(Integers())
    reals = Reals(values)
    pool = values.pool
    x, y = (pool.access(name, (Dim.of(0),), float64) for name in "xy")
    same = values.call("eq", x, y, dtype=float64)
    gap = values.call("abs", values.call("sub", x, y, dtype=float64), dtype=float64)
    for number, equal in ((0.0, True), (1.0, False)):
        chosen = values.call("where", same, pool.literal(number, float64), gap, dtype=float64)
        assert (reals.normal(chosen) == reals.normal(gap)) == equal
    assert reals.normal(values.call("where", same, x, y, dtype=float64)) == reals.normal(y)
    other = values.call("where", same, x, values.call("neg", y, dtype=float64), dtype=float64)
    assert reals.normal(other) != reals.normal(y)
    assert reals.normal(values.call("sub", other, other, dtype=float64)) != ONE
