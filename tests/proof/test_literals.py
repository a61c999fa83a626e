"""Literals: shortest decimals first, rounded known constants on demand."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad as sg
from symgrad.ir.assume import parse_all
from symgrad.proof.judge.decide import judge
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.report.verdict import Verdict
from symgrad.proof.scalars.literals import (
    LEAST_DIGITS,
    exact,
    precise,
    printed_digits,
    reach,
    recognise,
    slack,
)  # fmt: skip
from tests.proof.registry import subject_of, variants
from tests.suite.adversarial.program import class_of, class_text


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
        (0.79788, "sqrt(2/pi)", math.sqrt(2 / math.pi)),
        (0.7978845834732056, "sqrt(2/pi)", math.sqrt(2 / math.pi)),  # a float32 in full
        (0.10000000149011612, "1/10", 0.1),
        (3.1415926, "pi", math.pi),  # cut
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
        assert abs(precise(value, recognised=True) - value) < 1e-4
        assert precise(value, recognised=True) != precise(value, recognised=False)


@pytest.mark.parametrize("value", [0.5, 0.044715, 1.702, 0.7979, 0.797886, 1e-5, math.inf, 0.0, 3])
def test_other_numbers_are_themselves(value: float) -> None:
    assert recognise(value) is None


@pytest.mark.parametrize(
    ("value", "unit"),
    [(0.031234, 1e-6), (-12.3456, 1e-4), (0.044715, 1e-6), (0.5, 0), (1.702, 0), (31234.5, 0)],
)
def test_a_literal_stands_for_half_a_unit_of_its_last_digit(value: float, unit: float) -> None:
    assert reach(value) == Fraction(str(unit)) / 2
    assert slack(value) == reach(value)


def test_a_literal_that_is_a_float32_stands_for_half_a_unit_of_its_last_place() -> None:
    single = float(np.float32(0.044715))
    assert float(reach(single)) == pytest.approx(float(np.spacing(np.float32(single))) / 2)
    assert slack(single) > reach(single)
    assert abs(Fraction(single) - Fraction("0.044715")) <= reach(single)
    assert reach(0.0447149985) < reach(single) < reach(0.044714998454)  # 11 digits tell, 9 do not


@given(st.integers(10**4, 10**5 - 1), st.integers(-4, 4))
def test_what_a_literal_is_read_as_rounds_to_it(digits: int, exponent: int) -> None:
    value = float(f"{digits}e{exponent}")
    known = recognise(value)
    if known is not None:
        assert abs(known.error) <= float(reach(value)) * 1.0001 + 1e-300


# -- literals of backward that the derivative of forward asks for

TANH = "t = (0.7978845608 * (x + 0.044715 * x ** 3)).tanh()\n"
GELU = "0.5 * x * (1 + ({} * (x + 0.044715 * x ** 3)).tanh())"
GELU_SLOPE = "g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (0.7978845608 + {} * x * x))"
ROUNDED = {
    "square": ("(0.1 * x) ** 2 * 1.561679", "g * {} * x", "0.03123358"),
    "cube": ("(0.3217 * x) ** 3 * 2.4", "g * {} * x * x", "0.2397097390536"),
    "quotient": ("x * x / 0.35355339", "g * {} * x", "5.65685432494"),
    "sum of products": ("0.12345 * x + 0.54321 * x * 0.777", "g * {}", "0.54552417"),
    "rational power": ("(0.123 * x.exp()) ** 0.3", "g * {} * (0.3 * x).exp()", "0.159989981463"),
    "logarithm": ("0.7 ** x", "-g * {} * 0.7 ** x", "0.356674943939"),
    "logarithm of a long number": (
        "1.75999968 * 0.55488977 ** x", "-g * {} * 0.55488977 ** x", "1.0366148152555",
    ),
    "many primes": (
        "(x * 0.7071067811865476 * 3.876477129).erf() * 0.145639721",
        "g * {} * (-0.5 * (3.876477129 * x) ** 2).exp()", "0.45046092653172",
    ),
    "nested": (GELU.format("0.7978845608"), TANH + GELU_SLOPE, "0.107032224409"),
    "single": (GELU.format("0.7978845834732056"), TANH + GELU_SLOPE, "0.107032224409"),
    "constant": ("(x * 0.70710678).erf()", "g * {} * (-0.5 * x * x).exp()", "0.797884560803"),
    "inside a function": ("(0.57721 * x) .sin() ** 2", "0.57721 * g * ({} * x).sin()", "1.15442"),
}  # fmt: skip


def _verdict(forward: str, backward: str) -> sg.Report:
    made = class_of("Rounded", class_text("Rounded", forward, backward, "x"), sg)
    return sg.verify(made, "n", suggest=False)


def _digits(exact_: str, count: int, units: int = 0) -> str:
    """A decimal rounded to so many digits, and off by some units of the last."""
    value = Decimal(exact_)
    last = value.adjusted() - count + 1
    return str(round(value, -last) + units * Decimal(1).scaleb(last))


@pytest.mark.parametrize("digits", [5, 7])
@pytest.mark.parametrize("name", ROUNDED)
def test_a_literal_that_is_rounded_is_proved_as_what_it_has_to_be(name: str, digits: int) -> None:
    forward, backward, value = ROUNDED[name]
    written = _digits(value, digits)
    report = _verdict(forward, backward.format(written))
    assert report.verdict == sg.PROVED, str(report)
    said = [c.text for c in report.conditions if c.kind == "literal"]
    assert Decimal(written) == Decimal(value) or any("is read as" in text for text in said)


@pytest.mark.parametrize("units", [1, -2, 10])
@pytest.mark.parametrize("name", ROUNDED)
def test_a_literal_that_is_off_by_more_is_never_proved(name: str, units: int) -> None:
    forward, backward, value = ROUNDED[name]
    report = _verdict(forward, backward.format(_digits(value, 7, units)))
    assert report.verdict != sg.PROVED, str(report)
    if abs(units) > 5:
        assert report.verdict == sg.REFUTED, str(report)


def test_zeros_at_the_end_are_digits() -> None:
    """0.3566749 is the logarithm to seven digits; 0.3566750 is not, though 0.356675 would be."""
    assert printed_digits("0.3566750 * x + 0.5 - 1.50 * 2.0000 + 192.70 + a0.10000") == {
        0.356675: 7, 2.0: 5, 192.7: 5,
    }  # fmt: skip
    forward, backward, _ = ROUNDED["logarithm"]
    for written, verdict in (("0.356675", sg.PROVED), ("0.3566750", sg.REFUTED)):
        assert _verdict(forward, backward.format(written)).verdict == verdict
    for written, verdict in (("0.100000", sg.PROVED), ("0.1", sg.REFUTED)):
        assert _verdict("0.5 * 0.2000004 * x", f"g * {written}").verdict == verdict
    assert _verdict("x.sin() / 3.14159265", "g * 0.3183100 * x.cos()").verdict != sg.PROVED


def test_one_literal_has_one_value() -> None:
    """Each place alone could be a rounding; both together are none."""
    forward = "0.12345678 * x.sin() + 0.12346321 * x.exp()"
    report = _verdict(forward, "g * (0.12346 * x.cos() + 0.12346 * x.exp())")
    assert report.verdict == sg.UNDECIDED, str(report)


def test_a_number_of_eight_digits_may_be_cut() -> None:
    forward = "(x * 1.23456789) * 0.7"  # 0.864197523
    for written in ("0.8641975", "0.86419752"):
        assert _verdict(forward, f"g * {written}").verdict == sg.PROVED
    for written in ("0.86419753", "0.86419751", "0.8641976"):
        assert _verdict(forward, f"g * {written}").verdict != sg.PROVED
    assert _verdict("0.123456789 * x", "g * 0.12345678").verdict == sg.PROVED
    assert _verdict("0.12345679 * x", "g * 0.12345678").verdict != sg.PROVED  # a whole unit
    assert _verdict("0.1234569 * x", "g * 0.123456").verdict != sg.PROVED  # of six digits
    for written in ("0.3124999999", "0.3125000001"):  # a whole unit beside a number of four digits
        assert _verdict("(0.5 * x) ** 3 / 1.2", f"g * {written} * x * x").verdict != sg.PROVED


def test_short_literals_are_meant_as_written() -> None:
    assert _verdict("0.4999 * x", "g * 0.5").verdict == sg.REFUTED
    assert _verdict("0.49999 * x", "g * 0.5").verdict == sg.REFUTED


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
