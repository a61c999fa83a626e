"""Numbers are rounded once, as C rounds them."""

from __future__ import annotations

import ctypes
import math
import warnings
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from symgrad.validate.rounding import least_normal, nearest, stored

TWICE = {
    "1.00000005960464478f": 1.00000011920928955078125,
    "1.000000059604644775390625f": 1.0,
    "1.0000000596046447753906251f": 1.00000011920928955078125,
    "1.000000178813934326171874f": 1.00000011920928955078125,
    "0.1f": 0.100000001490116119384765625,
    "7.006492321624085e-46f": 0.0,
    "7.006492321624086e-46f": 2.0**-149,
    "1e-99999999999f": 0.0,
    "1e99999999999f": math.inf,
    "3.4028235677973367e38f": math.inf,
    "3.4028235677973365e38f": float(np.finfo("f4").max),
}
"""Texts of floats; rounded to double first, some of them become others."""


@pytest.mark.parametrize("text", TWICE)
def test_a_text_is_rounded_once(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert stored(text) == TWICE[text]
        assert stored(f"{text}".removesuffix("f")) == float(text.removesuffix("f"))


def test_exact_numbers_as_the_machine_rounds_them() -> None:
    draw = Random(0)
    for _ in range(3000):
        double = draw.uniform(-2, 2) * 2.0 ** draw.randint(-155, 130)
        assert nearest(double, "float") == ctypes.c_float(double).value
        assert nearest(double, "double") == double
        whole = draw.randrange(-(2**63), 2**63) >> draw.randrange(60)
        with np.errstate(over="ignore"):
            assert nearest(whole, "float") == float(np.int64(whole).astype("f4"))
        part = Fraction(whole, draw.randrange(1, 2**40))
        assert nearest(part, "double") == float(part)


def test_ties_go_to_even_and_zeros_keep_their_signs() -> None:
    assert [nearest(2**24 + odd, "float") for odd in (1, 3)] == [2.0**24, 2.0**24 + 4]
    assert math.copysign(1, nearest(-0.0, "float")) == -1
    assert (nearest(math.inf, "float"), nearest(-1e39, "float")) == (math.inf, -math.inf)
    assert least_normal("float") == Fraction(2) ** -126
    assert least_normal("double") == Fraction(2) ** -1022
