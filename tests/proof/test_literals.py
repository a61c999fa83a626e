"""Literals: shortest decimals first, rounded known constants on demand."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgrad.ir.assume import parse_all
from symgrad.proof.judge.decide import judge
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.report.verdict import Verdict
from symgrad.proof.scalars.literals import LEAST_DIGITS, exact, precise, recognise
from tests.proof.registry import subject_of, variants


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_literal_is_the_decimal_that_prints_it(value: float) -> None:
    assert float(exact(value)) == value
    assert exact(0.9) + exact(0.1) == 1


@pytest.mark.parametrize(
    ("value", "name", "true"),
    [
        (0.3989422804014327, "1/sqrt(2*pi)", 1 / math.sqrt(2 * math.pi)),
        (0.7978845608, "sqrt(2/pi)", math.sqrt(2 / math.pi)),
        (0.797885, "sqrt(2/pi)", math.sqrt(2 / math.pi)),
        (0.9189385332, "log(2*pi)/2", math.log(2 * math.pi) / 2),
        (-0.70710678, "-1/sqrt(2)", -1 / math.sqrt(2)),
        (0.3333333333333333, "1/3", 1 / 3),
    ],
)
def test_known_constants(value: float, name: str, true: float) -> None:
    found = recognise(value)
    assert found is not None
    assert found.name == name
    assert found.error == pytest.approx(abs(value - true), rel=1e-3, abs=1e-16)
    with mpmath.workdps(40):
        assert abs(precise(value, recognised=True) - value) < 1e-5
        assert precise(value, recognised=True) != precise(value, recognised=False)


@pytest.mark.parametrize("value", [0.5, 0.044715, 1.702, 0.79788, 0.797886, 1e-5, math.inf, 0.0, 3])
def test_other_numbers_are_themselves(value: float) -> None:
    assert recognise(value) is None


@given(st.integers(10 ** (LEAST_DIGITS - 2), 10 ** (LEAST_DIGITS - 1) - 1))
def test_few_digits_are_never_recognised(digits: int) -> None:
    assert recognise(digits / 10 ** (LEAST_DIGITS - 1)) is None


def test_exact_values_in_sixty_digits() -> None:
    with mpmath.workdps(60):
        tenth = precise(0.1, recognised=False)
        assert abs(tenth - mpmath.mpf(1) / 10) < mpmath.mpf(10) ** -58
        assert Fraction(1, 10) == exact(0.1)


def test_a_steep_function_is_not_refuted_for_a_rounded_constant() -> None:
    """Near 1 doubles cannot tell the derivative of erfinv; 60 digits show sqrt(pi)/2 rounded."""
    made = subject_of(variants("erfinv")[0])
    near = parse_all({"x0": "(0.99, 0.999)"})
    subject = Subject(made.graph, made.inputs, made.outputs, made.gradients, assumptions=near)
    judgement = judge(subject)["x0"]
    assert judgement.verdict is Verdict.PROVED
    assert any("sqrt(pi)/2" in condition.text for condition in judgement.conditions)
