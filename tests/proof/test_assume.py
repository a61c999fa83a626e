"""Assumptions as text: what can be written, and what is refused with advice."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from symgrad.errors import SpecError
from symgrad.ir.assume import check_names, parse, parse_all
from symgrad.ir.dim import Dim
from symgrad.proof.oracle.sample import DENOMINATOR, impose


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("positive", ["positive"]), ("> 0", ["positive"]), ("nonnegative", ["nonnegative"]),
        (">= 0", ["nonnegative"]), ("negative", ["negative"]), ("symmetric", ["symmetric"]),
        ("one-hot", ["one-hot"]), ("{0, 1}", ["binary"]), ("index v", ["index"]),
        ("unique index v", ["unique", "index"]), ("symmetric, positive", ["symmetric", "positive"]),
        ("symmetric and (0, 1)", ["symmetric", "interval"]), ("constant", ["constant"]),
    ],
)  # fmt: skip
def test_words(text: str, kinds: list[str]) -> None:
    assert [assumption.kind for assumption in parse("x", text)] == kinds


def test_intervals_keep_their_ends() -> None:
    (found,) = parse("p", "[0.1, inf)")
    assert (found.low, found.high) == (Fraction(1, 10), None)
    assert (found.low_open, found.high_open) == (False, True)
    assert str(found) == "p >= 1/10"


def test_an_index_has_an_extent() -> None:
    assert parse("i", "index vocabulary")[0].extent == Dim.size("vocabulary")
    assert parse("i", "index 7")[0].extent == 7


@pytest.mark.parametrize("text", ["", "positve", "(1, 0)", "(a, b)", "index", "positivex"])
def test_what_cannot_be_read_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse("x", text)
    assert caught.value.hint


def test_names_must_be_inputs() -> None:
    with pytest.raises(SpecError, match="not a tensor input"):
        check_names(parse_all({"z": "positive"}), ["x"])


@pytest.mark.parametrize(
    "text", ["positive", "negative", "(0, 1)", "(2, inf)", "(-inf, -2)", "{0, 1}", "symmetric",
             "one-hot", "nonnegative", "[-1, 1]"],
)  # fmt: skip
def test_samples_meet_the_assumption(text: str) -> None:
    (assumption,) = parse("x", text)
    random = np.random.default_rng(1)
    values = random.integers(-4 * DENOMINATOR, 4 * DENOMINATOR, (2, 3, 3))
    real = impose(assumption, values, random) / DENOMINATOR
    holds = {
        "positive": (real > 0).all(), "nonnegative": (real >= 0).all(),
        "negative": (real < 0).all(), "binary": np.isin(real, (0, 1)).all(),
        "symmetric": (real == np.swapaxes(real, -1, -2)).all(),
        "one-hot": (real.sum(-1) == 1).all() and np.isin(real, (0, 1)).all(),
    }  # fmt: skip
    if assumption.kind == "interval":
        low = -np.inf if assumption.low is None else float(assumption.low)
        high = np.inf if assumption.high is None else float(assumption.high)
        assert ((real > low) & (real < high)).all()
    else:
        assert holds[assumption.kind]
