"""Balls: they contain what 60 digits say, and two sides that they part are different."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad as sg
from symgrad.ir.registry import names
from symgrad.ops.record import get
from symgrad.proof.oracle import balls
from symgrad.proof.oracle.balls import Asking, Jet, OnBoundary, Uncertain
from symgrad.proof.oracle.enclosure import ELEMENTWISE, applied, literal, shown
from symgrad.proof.scalars.bodies import partial_function, value_function
from symgrad.proof.scalars.literals import exact, recognise, slack
from tests.proof.written import saving_input

REAL = [
    op.name for op in map(get, sorted(names()))
    if op.scalar is not None and op.name not in ("cast", "where")
    and not op.name.startswith(("wrap_", "logical_")) and op.name not in balls._RELATIONS
]  # fmt: skip


def _contains(x: Any, value: Any) -> bool:
    """Does a number contain a 60-digit one, but for the last digits of that?"""
    if balls.is_special(x) or not mpmath.isfinite(value):
        return bool(balls.is_undefined(x) or x == float(value)) and not mpmath.isfinite(value)
    with balls.working(300):
        near = arb(mpmath.nstr(value, 58)) + arb(0, 1e-40) * (1 + abs(arb(float(value))))
        return bool(balls.ball(x).overlaps(near))


@pytest.mark.parametrize("name", REAL)
@settings(max_examples=8)
@given(st.lists(st.fractions(-4, 4, max_denominator=97), min_size=3, max_size=3))
def test_balls_contain_values_and_derivatives(name: str, numbers: list[Fraction]) -> None:
    """The rules of forward mode against sympy's bodies and partials."""
    count = get(name).arity or 1
    points = numbers[:count]
    with mpmath.workdps(60), balls.working(256):
        given = [mpmath.mpf(p.numerator) / p.denominator for p in points]
        value = value_function(name, count)(*given)
        if isinstance(value, mpmath.mpc):
            return
        for place in range(count):
            jets = [Jet(fmpq(p.numerator, p.denominator), fmpq(1) if i == place else None)
                    for i, p in enumerate(points)]  # fmt: skip
            try:
                found = applied(name, Asking(), *jets)
            except Uncertain:
                continue
            assert _contains(found.v, value), (found.v, value)
            slope = partial_function(name, count, place)(*given)
            if name == "shift" or balls.is_special(found.v) or isinstance(slope, mpmath.mpc):
                continue
            if mpmath.isfinite(slope):
                assert _contains(balls.ZERO if found.d is None else found.d, slope)


@given(st.integers(-9, 9), st.sampled_from([-1, 0, 1]))
def test_rounding_jumps_beside_halves_alone(quarters: int, side: int) -> None:
    """Where what moves is an integer, its rounding does not; beside a tie it is on either side."""
    value, moving = Fraction(quarters, 4), Jet(fmpq(quarters, 4), fmpq(1))
    if value.denominator == 2 and side == 0:
        with pytest.raises(OnBoundary):
            applied("round", Asking(side), moving)
        assert applied("round", Asking(side), Jet(moving.v)).v == round(value)
    else:
        found = applied("round", Asking(side), moving)
        assert (found.v, found.d) == (round(value + side * Fraction(1, 8)), None)


def test_every_elementwise_op_has_a_rule_of_its_own() -> None:
    """Sympy's body is for ops that users declare; the others do not depend on it."""
    assert set(REAL) <= set(ELEMENTWISE)


@given(st.floats(1e-6, 1e6), st.integers(6, 12))
def test_a_literal_is_all_that_it_may_round(value: float, digits: int) -> None:
    written = float(f"{value:.{digits}g}")
    lower, upper = exact(written) - slack(written), exact(written) + slack(written)
    assert lower <= exact(value) <= upper or not slack(written)
    known = recognise(written)
    if known is not None:
        assert known.error <= slack(written) * Fraction(201, 100)  # cut, not rounded


@pytest.mark.parametrize("value", [0.5, 0.04471, 1.702, 1e-5, 123456789.0, 0.0009765625, 1e300])
def test_short_literals_are_exact(value: float) -> None:
    found = literal(value)
    assert isinstance(found, fmpq)
    assert Fraction(int(found.p), int(found.q)) == exact(value)


def test_five_digits_of_forward_are_exact_unless_they_are_a_constant() -> None:
    assert slack(0.044715) > slack(0.044715, own=True) == 0
    assert slack(0.79788, own=True) > 0
    assert slack(0.0447152, own=True) > 0


@given(st.fractions(-9, 9), st.integers(1, 45))
def test_numbers_that_differ_are_printed_differently(value: Fraction, digits: int) -> None:
    x = fmpq(value.numerator, value.denominator)
    y = x + fmpq(1, 10) ** digits
    texts = shown(x, y)
    assert texts is not None
    assert texts.hand != texts.true


# -- whole backwards


def _square(backward: Any) -> type[sg.Function]:
    class Square(sg.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            return backward(g, x)

    return Square


def test_a_small_difference_is_printed() -> None:
    report = sg.verify(_square(lambda g, x: g * (2 * x + 1e-12)), "n", suggest=False)
    found = report.inputs["x"].counterexample
    assert found is not None
    assert found.hand_text != found.true_text
    assert f"yours {found.hand_text}, true {found.true_text}" in str(report)
    assert f"# as written {found.hand_text}, true {found.true_text}" in found.snippet


def test_the_element_that_is_shown_is_the_one_that_has_no_value() -> None:
    report = sg.verify(_square(lambda g, x: 2 * g * sg.exp(sg.log(x))), "n", suggest=False)
    found = report.inputs["x"].counterexample
    assert found is not None
    assert np.isnan(found.hand)
    assert not np.isnan(found.true)


@pytest.mark.parametrize("wrong", [3e-8, 1e-9])
def test_what_a_literal_may_round_refutes_nothing(wrong: float) -> None:
    """Forward has the number with seven digits; backward has another one that rounds to it."""

    class Scaled(sg.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            return 0.1234567 * x * x

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            return g * x * (2 * 0.1234567 + wrong)

    report = sg.verify(Scaled, "n", suggest=False)
    assert str(report.verdict) == "UNDECIDED"
    assert "0.1234567" in report.inputs["x"].reason


# -- readings of literals and of approximations


@settings(max_examples=4, deadline=None)
@given(st.integers(10**6, 10**7 - 1), st.integers(10**6, 10**7 - 1), st.sampled_from((6, 8, 10)))
def test_rounded_products_of_literals_are_read_as_such(a: int, b: int, digits: int) -> None:
    left, right = a / 10**7, b / 10**6
    made = float(f"{2 * left * right:.{digits}g}")
    report = sg.verify(saving_input(lambda x: left * x * x * right, lambda g, x: g * made * x), "n",
                       suggest=False)  # fmt: skip
    assert report.verdict == sg.PROVED, str(report)
    if Fraction(repr(made)) != 2 * Fraction(repr(left)) * Fraction(repr(right)):
        assert any(condition.kind == "literal" for condition in report.conditions)


def _steep(x: Any, beta: float, threshold: float) -> Any:
    u = x * beta
    return sg.where(u > threshold, x, sg.log(1 + sg.exp(u)) / beta)


@pytest.mark.parametrize(("beta", "threshold"), [(1.0, 20.0), (2.0, 20.0), (1.0, 30.0)])
def test_softplus_that_is_linear_above_is_read_as_smooth(beta: float, threshold: float) -> None:
    forward = partial(_steep, beta=beta, threshold=threshold)
    smooth = saving_input(forward, lambda g, x: g * sg.sigmoid(x * beta))
    report = sg.verify(smooth, "n", suggest=False, audit=True)
    assert report.verdict == sg.PROVED, str(report)
    (reading,) = (one for one in report.conditions if one.kind == "reading")
    assert f"linear where x > {threshold / beta:g}" in reading.text
    assert f"differs by at most {math.exp(-threshold) / beta:.1e}" in reading.text
    assert not [one for one in report.conditions if one.excepted], str(report)


def test_where_softplus_is_linear_is_left_out_if_something_grows_with_it() -> None:
    def forward(x: Any) -> Any:
        return (_steep(x, 1.0, 20.0) - x) * sg.exp(3 * x)

    def backward(g: Any, x: Any) -> Any:
        off = sg.softplus(x) - x
        return g * (sg.sigmoid(x) - 1 + 3 * off) * sg.exp(3 * x)

    report = sg.verify(saving_input(forward, backward), "n", suggest=False, audit=True)
    assert report.verdict == sg.PROVED, str(report)
    assert "x > 20" in [str(one) for one in report.conditions if one.excepted]


def test_a_threshold_of_softplus_that_is_not_reached_is_not_printed() -> None:
    report = sg.verify(
        saving_input(
            lambda x: _steep(-x.abs(), 1.0, 20.0), lambda g, x: -g * x.sign() * sg.sigmoid(-x.abs())
        ),
        "n", suggest=False,
    )  # fmt: skip
    assert report.verdict == sg.PROVED, str(report)
    assert not [one for one in report.conditions if one.kind == "reading"], str(report)


@pytest.mark.parametrize(
    ("threshold", "slope"), [(5.0, lambda x: sg.sigmoid(x)), (20.0, lambda x: sg.sigmoid(2 * x))]
)
def test_other_thresholds_and_other_slopes_are_wrong(threshold: float, slope: Any) -> None:
    forward = partial(_steep, beta=1.0, threshold=threshold)
    report = sg.verify(saving_input(forward, lambda g, x: g * slope(x)), "n", suggest=False)
    assert report.verdict == sg.REFUTED, str(report)


@pytest.mark.parametrize(
    "backward",
    [lambda g, x: 2 * g * x + 0 * sg.log(x + 1e6), lambda g, x: 2 * g * x * (x != x.shape[0])],
)
def test_a_found_condition_is_not_said_where_the_gradient_is_wrong(backward: Any) -> None:
    """What has no value below -1e6 has none for three elements either; x may be any size."""
    report = sg.verify(_square(backward), "n", suggest=False)
    assert report.verdict == sg.REFUTED
    assert "n == " not in str(report)


def test_a_ball_around_zero_is_shown_as_zero() -> None:
    texts = shown(fmpq(-3, 10), arb(1e-70, 1e-60))
    assert texts is not None
    assert (texts.hand, texts.true) == ("-0.3", "0")
    texts = shown(fmpq(-3, 10), arb(1e-30, 1e-60))
    assert texts is not None
    assert texts.true == "1e-30"


def test_an_element_less_itself_is_nothing() -> None:
    one, other = (Jet(arb(2).sqrt(), arb(1)) for _ in range(2))
    assert (one - one).v == 0
    assert (one - one).d is None
    assert not (one - other).v.is_exact()
    far = Jet(balls.INFINITY)
    assert math.isnan((far - far).v)
