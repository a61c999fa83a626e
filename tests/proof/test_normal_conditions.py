"""Rules of docs/rules.md on conditions: real and integer relations, counts, ties."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgrad.ir.dim import Dim
from symgrad.ops.integers import Labels
from symgrad.proof.normal.atoms import Undecided
from symgrad.proof.normal.context import APART, EXACT, Reading
from symgrad.proof.normal.facts import NONNEGATIVE_INTERVAL, Facts
from tests.proof.normal_terms import Standard


@pytest.fixture
def a() -> Standard:
    return Standard()


# -- conditions


def test_conditions_are_idempotent(a: Standard) -> None:
    """[rule: indicator]."""
    for condition in (a.positive(a.x), a.compare(a.i, "eq", a.k), a.compare(a.i, "ge", a.k)):
        assert condition * condition == condition
    mask = a.leaf("mask", a.i, sort="bool")
    assert mask**3 == mask


def test_opposite_conditions_add_up_where_nothing_vanishes(a: Standard) -> None:
    """[rule: complement]."""
    assert a.positive(a.x - 2) + a.positive(2 - a.x) == 1
    assert a.owed("complement") == [(a.x - 2).poly]
    assert a.positive(a.x**2 * a.y) == a.positive(a.y)


def test_opposite_conditions_of_piecewise_values_do_not_add_up(a: Standard) -> None:
    """[rule: complement]."""
    total = a.sum([a.k], a.positive(a.at("x", a.k)) * a.at("x", a.k) * a.at("z", a.k))
    assert a.positive(total) + a.positive(-total) != 1
    assert a.stage(a.positive(total) + a.positive(-total) - 1) is None
    assert a.positive(total**2) != 1
    assert a.positive(a.x * total**2) != a.positive(a.x)


@pytest.mark.parametrize("reading", [APART, EXACT])
def test_integers_are_told_apart_from_reals(reading: Reading) -> None:
    """[rule: integers-apart]."""
    a = Standard(reading=reading)
    wholes = [a.n - 2, (a.n - 2) * (a.m - 3), a.i - 1, a.n - 3 * a.i, (a.i - 1) ** 2, a.n * a.m - 6]
    reals = [a.x, a.x * a.y, a.x**2 - 1, -a.x - 3, a.apply("sin", a.x) * a.x]
    for whole, real in itertools.product(wholes, reals):
        base = whole * real
        found = a.positive(base), a.positive(-base), a.compare(base, "eq", 0)
        for n, m, i, seed in itertools.product((1, 2, 3), (2, 3), (0, 1), (0, 1)):
            if i < n:
                at = {"i": i, "k": 0, "l": 0}
                value = whole.value(at, seed, n=n, m=m) * real.value(at, seed, n=n, m=m)
                given = [condition.value(at, seed, n=n, m=m) for condition in found]
                assert given == [value > 0, value < 0, value == 0]


def test_nothing_is_taken_to_be_generic_where_conditions_are_exact() -> None:
    """[rule: integers-apart]."""
    a = Standard(reading=EXACT)
    for base in (a.x - 2, a.x**2 * a.y, (a.n - 6) * (a.x**2 - a.y), a.x**2 - 2 * a.x + 1):
        both = a.positive(base) + a.positive(-base)
        assert a.stage(both - 1) is None
        assert a.stage(both + a.compare(base, "eq", 0) - 1) is not None
    assert not a.owed("complement")


def test_conditions_of_integers_are_exact(a: Standard) -> None:
    """[rule: complement]."""
    assert a.positive(a.i - a.k) + a.positive(a.k - a.i) != 1
    both = a.positive(a.i - a.k) + a.positive(a.k - a.i) + a.compare(a.i, "eq", a.k)
    assert a.stage(both - 1) is not None


def test_differences_that_vanish_at_equal_indices(a: Standard) -> None:
    """[rule: complement]."""
    gap = a.at("x", a.k) - a.at("x", a.l)
    assert a.positive(gap) + a.positive(-gap) != 1
    same = a.compare(a.k, "eq", a.l)
    assert a.stage(a.positive(gap) + a.positive(-gap) + same - 1) is not None
    assert a.stage(a.positive(gap) + a.positive(-gap) - 1) is None


def test_exponentials_compare_like_their_exponents(a: Standard) -> None:
    """[rule: monotone]."""
    assert a.positive(a.exp(a.x) - a.exp(a.y)) == a.positive(a.x - a.y)
    assert a.positive(1 - a.exp(a.x)) == a.positive(-a.x)
    index = a.exp(a.i * 1)
    assert a.positive(1 - index) == 0  # exp(i) == 1 at i == 0: no complement here
    assert a.positive(index - 1) == 1 - a.compare(a.i, "eq", 0)


def test_implied_conditions_are_dropped(a: Standard) -> None:
    """[rule: implied-relation]."""
    assert a.positive(a.x - 1) * a.positive(a.x) == a.positive(a.x - 1)
    assert a.positive(a.x - 1) * a.positive(-a.x) == 0
    assert a.positive(5 * a.x - 4) * a.positive(a.x) == a.positive(5 * a.x - 4)
    at_least, equal = a.compare(a.i, "ge", a.k), a.compare(a.i, "eq", a.k)
    assert at_least * equal == equal
    assert a.compare(a.i, "gt", a.k) * equal == 0
    assert equal * a.compare(a.i, "eq", a.k + 1) == 0


def test_one_of_two_conditions_holds(a: Standard) -> None:
    """[rule: complement] Their sum, ``15 y y``, is 0 on a null set alone."""
    first, second = 7 * a.y**2 - a.x * a.y, 8 * a.y**2 + a.x * a.y
    both = a.positive(first) * a.positive(second)
    assert a.stage(both - a.positive(first) - a.positive(second) + 1) is not None
    third = a.positive(first) * a.positive(a.x * a.y - 8 * a.y**2)
    assert a.stage(third) is not None  # never both
    assert a.stage(both - 1) is None


def test_the_greatest_value_is_that_at_the_argmax(a: Standard) -> None:
    """[rule: reached]."""
    for body in (a.at("x", a.k), a.at("x", a.k) ** 2 - a.at("y", a.k)):
        first, most = a.argmax(a.k, body), a.max(a.k, body)
        there = a.compare(a.i, "eq", first)
        here = a.at("x", a.i) if body == a.at("x", a.k) else a.at("x", a.i) ** 2 - a.at("y", a.i)
        assert a.stage(there * (most - here)) is not None
        assert a.stage(there * (most**2 - here * most)) is not None
        assert a.stage(most - here) is None
        assert a.stage(there * (most - here) + (1 - there) * a.x) is None
        assert a.stage(a.compare(a.i, "eq", a.argmax(a.k, a.at("z", a.k))) * (most - here)) is None


def test_the_greatest_element_is_at_the_argmax(a: Standard) -> None:
    """[rule: no-ties]."""
    body = a.at("x", a.k)
    reached = a.compare(a.x, "eq", a.max(a.k, body))
    assert reached == a.compare(a.i, "eq", a.argmax(a.k, body))
    (obligation,) = [o for o in a.context.obligations.values() if o.rule == "no-ties"]
    assert obligation.distinct is not None
    relu = a.positive(body) * body
    clipped = a.compare(a.positive(a.x) * a.x, "eq", a.max(a.k, relu))
    assert clipped != a.compare(a.i, "eq", a.argmax(a.k, relu))  # all may be clipped to 0
    total = a.sum([a.l], a.positive(a.at("v", a.k, a.l)) * a.at("v", a.k, a.l))
    own = a.sum([a.l], a.positive(a.at("v", a.i, a.l)) * a.at("v", a.i, a.l))
    with pytest.raises(Undecided):
        a.compare(own, "eq", a.max(a.k, total))


def test_integer_conditions_know_their_ranges(a: Standard) -> None:
    """[rule: integer-range]."""
    assert a.compare(a.i, "lt", a.n) == 1
    assert a.compare(a.i, "ge", a.n) == 0
    assert a.compare(a.i + a.n, "eq", a.k) == 0
    assert a.compare(a.i, "ge", a.k) not in (a.x**0, a.x - a.x)
    free = Standard(Facts(ranges={"index": Dim.size("n")}, least_sizes={"m": 2}))
    element = free.leaf("index", free.j, sort="int")
    assert free.compare(element, "lt", free.n) == 1
    assert free.compare(free.m, "gt", 1) == 1
    assert a.compare(a.m, "gt", 1) != 1


def test_labels_are_places_but_for_marks() -> None:
    """[rule: labels]."""
    marked = Standard(Facts(labels={"t": Labels(Dim.size("n"), marks=(-100, 255))}))
    t = marked.leaf("t", marked.i, sort="int")
    low, high = marked.compare(t, "eq", -100), marked.compare(t, "eq", 255)
    assert marked.compare(t, "ge", 0) == 1 - low
    beyond = marked.compare(marked.n, "le", 255)
    assert marked.compare(t, "ge", marked.n) == high * beyond
    assert marked.compare(t, "ge", 1) not in (1 - low, 0)
    assert marked.compare(t * marked.n - t, "ge", 0) != 1 - low  # no end of t is one of it
    clipped = Standard(Facts(labels={"t": Labels(Dim.size("n"), counted=False)}))
    t = clipped.leaf("t", clipped.i, sort="int")
    assert clipped.compare(t, "ge", clipped.n) == 0
    assert clipped.compare(t, "ge", 0) != 1


def test_orientation_of_integer_conditions(a: Standard) -> None:
    """[rule: orient]."""
    lower, upper = a.compare(a.i, "ge", a.k), a.compare(a.k, "ge", a.i)
    assert a.stage(lower + upper - a.compare(a.i, "eq", a.k) - 1) == "orient [i >= j]"
    assert a.stage(lower + upper - 1) is None
    total = a.sum([a.k], a.at("x", a.k))
    after = a.sum([a.k], a.compare(a.k, "gt", a.i) * a.at("x", a.k))
    before = a.sum([a.k], a.compare(a.k, "le", a.i) * a.at("x", a.k))
    assert a.stage(total - after - before) is not None


def test_boundary_values(a: Standard) -> None:
    """[rule: boundary]."""
    wide = a.index("w", a.n + 2)
    beyond = a.compare(wide, "ge", a.n)
    ends = a.compare(wide, "eq", a.n) + a.compare(wide, "eq", a.n + 1)
    assert a.stage(beyond - ends) == "boundary values"
    assert a.compare(a.i, "ge", 1) == 1 - a.compare(a.i, "eq", 0)


def test_deltas_act_on_their_cofactors(a: Standard) -> None:
    """[rule: delta-cofactor]."""
    delta = a.compare(a.i, "eq", a.k)
    assert a.stage(delta * a.x - delta * a.at("x", a.k)) == "delta propagation"
    best = a.argmax(a.k, a.at("x", a.k))
    here = a.compare(a.i, "eq", best)
    assert a.stage(here * a.y - here * a.at("y", best)) == "delta propagation"
    assert a.stage(delta * a.x - a.x) is None


def test_deltas_of_quotients_act_on_their_cofactors(a: Standard) -> None:
    """[rule: delta-cofactor]."""
    half, other = a.floordiv(a.i + 1, 2), a.index("j", a.n)
    here = a.compare(half, "eq", other)
    assert a.stage(here * a.at("x", half) - here * a.at("x", other)) == "delta propagation"
    assert a.stage(here * a.at("x", half) - here * a.at("x", other + 1)) is None


def test_unique_indices() -> None:
    """[rule: unique-index]."""
    a = Standard(Facts(ranges={"index": Dim.size("m")}, unique=frozenset({"index"})))
    left, right = a.leaf("index", a.i, sort="int"), a.leaf("index", a.k, sort="int")
    assert a.compare(left, "eq", right) == a.compare(a.i, "eq", a.k)
    plain = Standard(Facts(ranges={"index": Dim.size("m")}))
    left, right = plain.leaf("index", plain.i, sort="int"), plain.leaf("index", plain.k, sort="int")
    assert plain.compare(left, "eq", right) != plain.compare(plain.i, "eq", plain.k)


def test_counts(a: Standard) -> None:
    """[rule: count]."""
    element = a.leaf("index", a.k, sort="int")
    own = a.leaf("index", a.i, sort="int")
    same = a.sum([a.k], a.compare(element, "eq", own))
    assert a.compare(same, "ge", 1) == 1
    here = a.compare(element, "eq", a.j)
    count, total = a.sum([a.k], here), a.sum([a.k], here * a.at("x", a.k))
    assert a.compare(count, "gt", 0) * total == total
    assert a.compare(count, "eq", 0) * total == 0
    assert a.compare(count, "gt", 0) != 1


def test_small_axes_case_by_case(a: Standard) -> None:
    """[rule: case-split]."""
    three = a.index("t", 3)
    deltas = [a.compare(three, "eq", value) for value in range(3)]
    whole = deltas[0] + deltas[1] + deltas[2]
    assert a.stage(whole - 1) == "case split over t"
    assert a.stage(deltas[0] + deltas[1] - 1) is None
    single = a.compare(a.n, "eq", 1)
    assert a.stage(single * a.sum([a.k], a.at("x", a.k)) - single * a.at("x", 0)) is not None


def test_sizes_by_their_remainders(a: Standard) -> None:
    """[rule: case-split]."""
    half, more = a.floordiv(a.n, 2), a.floordiv(a.n + 1, 2)
    assert a.stage(half + more - a.n) == "case split over n by its remainder"
    assert a.stage(half + more - a.n + 1) is None
    last = a.compare(2 * more, "eq", a.n) * a.at("x", more - 1)
    assert a.stage(last - a.compare(2 * half, "eq", a.n) * a.at("x", half - 1)) is not None
    assert a.stage(last - a.compare(2 * half, "eq", a.n) * a.at("x", half)) is None
    third = a.floordiv(a.n, 3)
    assert a.stage(a.floordiv(a.n + 1, 3) - third) is None  # differs for one remainder
    assert a.stage((a.n - 1) * (a.n - 2) * (third - a.floordiv(a.n + 3, 3) + 1)) is not None
    assert a.stage((a.n - 4) * (third - a.floordiv(a.n + 2, 3))) is None  # right for n == 4 alone
    assert a.stage(a.compare(third, "eq", 0) * a.floordiv(a.n, 2)) is None  # wrong for n == 2


@given(
    st.integers(1, 7),
    st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 5), st.integers(2, 4)), max_size=3),
    st.integers(-2, 2), st.integers(-1, 1), st.integers(0, 7),
)  # fmt: skip
def test_sizes_by_their_remainders_from_the_least_on(
    least: int, quotients: list[tuple[int, int, int]], slope: int, offset: int, special: int
) -> None:
    """[rule: case-split]: what is zero by that is zero for all sizes from the least on."""
    a = Standard(Facts(least_sizes={"n": least}))
    term = slope * a.n + offset
    for factor, shift, divisor in quotients:
        term += factor * a.floordiv(a.n + shift, divisor)
    if special:
        term *= a.compare(a.n, "ge", special)
    values = [
        slope * n + offset + sum(f * ((n + shift) // c) for f, shift, c in quotients)
        for n in range(max(least, special), 40)
    ]  # fmt: skip
    if a.stage(term) is not None:
        assert not any(values)


def test_beside_a_condition_its_sign_is_known(a: Standard) -> None:
    """[rule: signs]: x / (1 + |x|), and what has its sign."""
    above = a.compare(a.x, "gt", 0)
    size = a.where(above, a.x, -a.x)
    y = a.x / (1 + size)
    assert a.compare(y, "gt", 0) == above
    assert a.compare(-y, "gt", 0) == 1 - above
    assert a.where(a.compare(y, "gt", 0), y, -y) == size / (1 + size)
    logarithm = a.log(1 + size)
    assert not a.assumed("log")
    assert logarithm == a.where(above, a.log(1 + a.x), a.log(1 - a.x))


def test_the_sign_beside_a_condition_is_not_known_elsewhere(a: Standard) -> None:
    above = a.compare(a.x, "gt", 0)
    assert a.compare(a.x + a.y, "gt", 0) != above
    assert a.where(above, a.compare(a.x - 1, "gt", 0), a.y) != above + (1 - above) * a.y
    assert a.compare(a.where(above, a.x, a.x + 1), "gt", 0) not in (above, 1 - above)
    shifted = a.at("x", a.k)
    body = a.where(a.compare(shifted, "gt", 0), shifted, a.x)
    assert a.compare(a.sum([a.k], body), "gt", 0) != a.x**0


@pytest.mark.parametrize("function", ["tanh", "erf", "asinh", "atan", "sinh"])
def test_growing_functions_have_the_sign_of_their_argument(a: Standard, function: str) -> None:
    """[rule: monotone]."""
    above = a.compare(a.x, "gt", 0)
    assert a.compare(a.apply(function, a.x), "gt", 0) == above
    assert a.compare(-a.apply(function, a.x), "gt", 0) == 1 - above


def test_a_factor_that_grows_with_its_argument(a: Standard) -> None:
    """[rule: monotone]."""
    assert a.compare(a.apply("atan", a.x) * a.y, "gt", 0) == a.compare(a.x * a.y, "gt", 0)


def test_the_logarithm_grows_from_one(a: Standard) -> None:
    """[rule: monotone]."""
    assert a.compare(a.log(a.x), "gt", 0) == a.compare(a.x, "gt", 1)
    assert a.compare(a.apply("cos", a.x), "gt", 0) != a.compare(a.x, "gt", 0)


def test_what_a_maximum_is_is_not_generic() -> None:
    """An element of a cut node that may be 0 on an open set owes nothing for its condition."""
    a = Standard(Facts(intervals={"%1": NONNEGATIVE_INTERVAL}, computed=frozenset({"%1"})))
    element = a.leaf("%1", a.i)
    assert a.compare(element, "gt", 0) != a.x**0
    assert not a.owed("complement")
