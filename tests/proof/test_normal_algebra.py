"""Rules of docs/rules.md on rings, powers and functions."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgrad.ir.bounds import nonnegative
from symgrad.proof.normal.algebra import _is_negative_somewhere, _Ranges, substitute
from symgrad.proof.normal.atoms import Undecided
from symgrad.proof.normal.facts import NONNEGATIVE_INTERVAL, POSITIVE_INTERVAL, Facts, Interval
from symgrad.proof.normal.poly import ONE, ZERO, Poly
from tests.proof.normal_terms import Standard

HALF = Fraction(1, 2)
_INTEGER_TERMS = ("1", "n", "i", "k", "i k", "n i")


@pytest.fixture
def a() -> Standard:
    return Standard()


def positive_x() -> Standard:
    return Standard(Facts(intervals={"x": POSITIVE_INTERVAL}))


# -- rings and powers


def test_products_distribute(a: Standard) -> None:
    """[rule: ring]."""
    assert (a.x + a.y) * (a.x - a.y) == a.x**2 - a.y**2
    assert (a.x + a.y) ** 3 == a.x**3 + 3 * a.x**2 * a.y + 3 * a.x * a.y**2 + a.y**3


def test_roots_of_numbers(a: Standard) -> None:
    """[rule: numbers]."""
    two, eight = a.x**0 * 2, a.x**0 * 8
    assert two**HALF * two**HALF == 2
    assert eight**HALF == 2 * two**HALF
    assert 1 / two**HALF == two**HALF / 2


def test_an_inverse_cancels_and_owes_its_base(a: Standard) -> None:
    """[rule: inverse]."""
    base = a.x + a.y
    assert base / base == 1
    assert a.owed("inverse") == [base.poly]


def test_what_is_plainly_positive_owes_nothing(a: Standard) -> None:
    """[rule: inverse]."""
    base = 1 + a.exp(a.x)
    assert base / base == 1
    assert a.x / a.x == 1  # an element is generic
    assert a.context.obligations == {}


def test_division_by_zero_is_refused(a: Standard) -> None:
    """[rule: inverse]."""
    with pytest.raises(Undecided):
        a.x / (a.x - a.x)


def test_the_root_of_a_square_is_the_absolute_value(a: Standard) -> None:
    """[rule: fractional-power]."""
    root = (a.x**2) ** HALF
    assert root != a.x
    assert root == a.x * (a.positive(a.x) - a.positive(-a.x))
    assert (a.x**2) ** Fraction(3, 2) == root**3


def test_roots_print_what_they_need(a: Standard) -> None:
    """[rule: fractional-power]."""
    assert a.x**HALF * a.x**HALF == a.x
    assert a.assumed("fractional-power") == [(">=", a.x.poly)]
    free = positive_x()
    assert (free.x * free.y**2) ** HALF == free.x**HALF * (free.y**2) ** HALF
    assert free.assumed("fractional-power") == []


def test_roots_of_products_of_unknown_sign_stay_whole(a: Standard) -> None:
    """[rule: fractional-power]."""
    whole = (a.x * a.y) ** HALF
    assert whole != a.x**HALF * a.y**HALF
    assert whole * whole == a.x * a.y


@given(st.lists(st.tuples(st.integers(-3, 3), st.sampled_from(_INTEGER_TERMS)), max_size=4))
def test_what_is_negative_somewhere_is_never_shown_to_be_nonnegative(
    terms: list[tuple[int, str]],
) -> None:
    """[rule: integer-range]."""
    a = Standard()
    known = {"1": a.term(ONE), "n": a.n, "i": a.i, "k": a.k, "i k": a.i * a.k, "n i": a.n * a.i}
    poly = sum((value * known[name] for value, name in terms), a.term(ZERO)).poly
    if _is_negative_somewhere(a.context, poly):
        assert not nonnegative(poly.terms, _Ranges(a.context))


def test_bases_are_factored(a: Standard) -> None:
    """[rule: factor]."""
    assert 1 / (a.x**2 - a.y**2) == 1 / (a.x - a.y) / (a.x + a.y)
    assert (a.x**2 + 2 * a.x + 1) ** -1 == (a.x + 1) ** -2
    assert (a.x * a.y + a.x + a.y + 1) ** -1 == (a.x + 1) ** -1 * (a.y + 1) ** -1


@pytest.mark.parametrize("digits", [5, 10, 20])
def test_bases_of_large_coefficients_need_no_factors(a: Standard, digits: int) -> None:
    """[rule: factor]: FLINT orders factors by machine integers and raises beyond these."""
    large = 10**digits
    base = ((a.x - large) * (a.x + large + 1) * (a.y - large)).poly
    assert (a.term(base) ** -1 * a.term(base)) == 1


@pytest.mark.parametrize("beta", [7, 11, Fraction(11, 4), Fraction(7, 2), Fraction(851, 500)])
def test_exponentials_are_factored_at_their_common_exponent(beta: int | Fraction) -> None:
    """[rule: factor]: in exp(x / 4), exp(11 x / 4) + 1 has a factor of eleven terms."""
    a = Standard()
    e = a.exp(beta * a.x)
    s = 1 / (1 + e)
    assert s * (1 - s) == e * s**2
    assert (e**2 - 1) * s == e - 1
    assert len((a.x * s * (1 - s)).poly.terms) <= 4


def test_leading_monomials_reduce(a: Standard) -> None:
    """[rule: lead-reduction]."""
    assert a.x / (a.x + 1) == 1 - 1 / (a.x + 1)
    assert 1 / a.x / (a.x + 1) == 1 / a.x - 1 / (a.x + 1)
    e = a.exp(a.x)
    s = 1 / (1 + 1 / e)
    assert s * (1 - s) == e / (1 + e) ** 2


def test_lets_keep_products_and_agree_with_what_they_stand_for() -> None:
    """[rule: let]."""
    a = Standard(factored=True)
    product = (a.x + 1) * (a.y + 2)
    assert len(product.poly) == 1
    plain = Standard()
    expected = (plain.x + 1) * (plain.y + 2)
    assert len(expected.poly) > 1
    for seed in range(3):
        assert mpmath.almosteq(product.value({"i": 1}, seed), expected.value({"i": 1}, seed), 1e-12)
    assert (a.x + 1) * (a.y + 2) / (a.x + 1) == a.y + 2


def test_deltas_stay_visible_beside_lets() -> None:
    """[rule: let]."""
    a = Standard(factored=True)
    delta = a.compare(a.k, "eq", a.i)
    body = (delta + a.at("y", a.k)) * (a.at("x", a.k) + 1)
    whole = a.sum([a.k], body)
    assert "equal" not in repr(whole)
    plain = Standard()
    rest = plain.sum([plain.k], plain.at("y", plain.k) * (plain.at("x", plain.k) + 1))
    assert mpmath.almosteq(whole.value({"i": 1}), (rest + plain.x + 1).value({"i": 1}), 1e-12)


def test_quotients_over_other_denominators_are_equal(a: Standard) -> None:
    """[rule: clear-denominators]."""
    left = 1 / (a.x + 1) - 1 / (a.x + 2)
    right = 1 / ((a.x + 1) * (a.x + 2))
    assert a.stage(left - right) == "clear denominators"
    assert a.stage(left - 2 * right) is None
    assert len(a.owed("inverse")) == 3


def test_substitution_rebuilds_by_the_rules(a: Standard) -> None:
    """[rule: substitution]."""
    index = a.i.poly.atom
    assert index is not None
    delta = a.compare(a.i, "eq", a.k) * a.exp(a.x)
    at_zero = substitute(a.context, delta.poly, {index: Poly({})})
    assert a.term(at_zero) == a.compare(a.k, "eq", 0) * a.exp(a.at("x", 0))
    size = a.n.poly.atom
    assert size is not None
    whole = a.sum([a.k], a.at("x", a.k))
    one = substitute(a.context, whole.poly, {size: (a.n - a.n + 1).poly})
    assert a.term(one) == a.at("x", 0)


# -- functions


def test_exponentials_multiply(a: Standard) -> None:
    """[rule: exp]."""
    assert a.exp(a.x + a.y) == a.exp(a.x) * a.exp(a.y)
    assert a.exp(2 * a.x) == a.exp(a.x) ** 2
    assert a.exp(3 * a.log(1 + a.x**2)) == (1 + a.x**2) ** 3
    assert a.exp(a.x - a.x) == 1


def test_logarithms_split_and_print_what_they_need(a: Standard) -> None:
    """[rule: log]."""
    assert a.log(a.exp(a.x) * (1 + a.y**2)) == a.x + a.log(1 + a.y**2)
    assert a.assumed("log") == []
    assert a.log(a.x * a.y) != a.log(a.x) + a.log(a.y)
    assert (">", (a.x * a.y).poly) in a.assumed("log")
    free = positive_x()
    assert free.log(free.x**2) == 2 * free.log(free.x)
    assert a.log(a.x**2) != 2 * a.log(a.x)


def test_functions_made_of_others(a: Standard) -> None:
    """[rule: lowered]."""
    e = a.exp(a.x)
    assert a.apply("tanh", a.x) == 1 - 2 / (1 + e**2)
    assert a.apply("sinh", a.x) + a.apply("cosh", a.x) == e
    assert a.apply("erfc", a.x) + a.apply("erf", a.x) == 1
    assert a.apply("tan", a.x) * a.apply("cos", a.x) == a.apply("sin", a.x)
    assert a.apply("ceiling", a.x) == -a.apply("floor", -a.x)
    with pytest.raises(Undecided):
        a.apply("zeta", a.x)


def test_parity(a: Standard) -> None:
    """[rule: parity]."""
    for name in ("erf", "sin", "atan", "asinh", "asin"):
        assert a.apply(name, -a.x) == -a.apply(name, a.x)
    assert a.apply("cos", -a.x) == a.apply("cos", a.x)
    assert a.apply("erf", a.x - a.x) == 0


def test_trigonometry(a: Standard) -> None:
    """[rule: trigonometry]."""
    sine, cosine = a.apply("sin", a.x), a.apply("cos", a.x)
    assert sine**2 + cosine**2 == 1
    assert a.apply("sin", 2 * a.x) == 2 * sine * cosine
    assert a.apply("cos", a.x + a.y) == cosine * a.apply("cos", a.y) - sine * a.apply("sin", a.y)


def test_gamma_functions_shift(a: Standard) -> None:
    """[rule: gamma-recurrence]."""
    free = positive_x()
    x = free.x
    assert free.apply("loggamma", x + 1) == free.apply("loggamma", x) + free.log(x)
    assert free.apply("polygamma0", x + 2) == free.apply("polygamma0", x) + 1 / x + 1 / (x + 1)
    assert free.apply("polygamma1", x + 1) == free.apply("polygamma1", x) - x**-2
    assert free.apply("polygamma2", x + 1) == free.apply("polygamma2", x) + 2 * x**-3
    assert a.apply("loggamma", a.x + 1) != a.apply("loggamma", a.x) + a.log(a.x)


def test_integers_come_out_of_floor(a: Standard) -> None:
    """[rule: floor]."""
    assert a.apply("floor", a.x + 3 + a.n) == a.apply("floor", a.x) + 3 + a.n
    assert a.apply("floor", a.x**0 * Fraction(7, 2)) == 3
    assert a.apply("floor", a.x + HALF) != a.apply("floor", a.x) + HALF


def test_signs_of_bounded_atoms() -> None:
    """[rule: signs]."""
    a = Standard(Facts(intervals={"x": Interval(Fraction(0), Fraction(1))}))
    assert a.positive(1 - a.x) == 1
    assert a.positive(a.x * (1 - a.x)) == 1
    assert a.positive(1 - 2 * a.x) not in (a.x**0, a.x - a.x)
    assert a.positive(2 + a.apply("erf", a.y)) == 1
    assert a.positive(a.apply("sin", a.y) - 1) == 0
    closed = Standard(Facts(intervals={"x": Interval(Fraction(0), Fraction(1), False, False)}))
    assert closed.positive(1 - closed.x) != 1
    low = Standard(Facts(intervals={"x": Interval(high=Fraction(0))}))
    assert low.positive(-low.x) == 1
    assert low.positive(low.x) == 0
    zero = Standard(Facts(intervals={"x": NONNEGATIVE_INTERVAL}))
    assert zero.positive(zero.x + 1) == 1
    assert zero.positive(-zero.x) == 0


def test_choices(a: Standard) -> None:
    """[rule: where]."""
    condition = a.positive(a.x)
    assert a.where(condition, a.y, a.y) == a.y
    assert a.where(condition, a.x, 0) == condition * a.x
    assert a.where(condition, 1 / a.x, 0) * a.x == condition


def test_lifting(a: Standard) -> None:
    """[rule: lift]."""
    condition = a.positive(a.x)
    relu = condition * a.x
    assert a.exp(relu) == condition * a.exp(a.x) + 1 - condition
    assert a.positive(relu) == condition
    assert a.compare(relu, "eq", 0) == 1 - condition
    assert a.log(a.x * (condition - a.positive(-a.x))) == a.where(
        condition, a.log(a.x), a.log(-a.x)
    )


def test_places_that_are_chosen(a: Standard) -> None:
    """[rule: lift]."""
    label = a.leaf("t", a.i, sort="int")
    known = a.compare(label, "ge", 0) * a.compare(a.m - 1, "ge", label)
    chosen = a.at("W", a.i, known * (label - 2) + 1)
    assert chosen == a.where(known, a.at("W", a.i, label - 1), a.at("W", a.i, 1))
    assert chosen != a.at("W", a.i, label - 1)


def test_a_piecewise_base_owes_more_than_a_witness(a: Standard) -> None:
    """[rule: lift]."""
    relu = a.positive(a.x) * a.x
    assert relu / relu == a.positive(a.x)
    (obligation,) = a.context.obligations.values()
    assert obligation.piecewise


def test_masks_of_minus_infinity(a: Standard) -> None:
    """[rule: minus-infinity]."""
    mask = a.leaf("mask", a.i, sort="bool")
    masked = a.where(mask, -a.infinity(), a.x)
    assert a.exp(masked) == (1 - mask) * a.exp(a.x)
    with pytest.raises(Undecided):
        a.exp(a.infinity())
    with pytest.raises(Undecided):
        masked * a.y
    assert a.exp(a.log(mask) + a.x) == mask * a.exp(a.x)
    masked_k = a.where(a.leaf("mask", a.k, sort="bool"), -a.infinity(), a.at("x", a.k))
    top = a.max(a.k, masked_k)
    shifted = a.exp(masked_k - top)
    softmax = shifted / a.sum([a.k], shifted)
    assert softmax == a.exp(masked_k) / a.sum([a.k], a.exp(masked_k))
