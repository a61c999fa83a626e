"""Assumptions as text: what can be written, and what is refused with advice."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from symgrad.errors import SpecError
from symgrad.ir.assume import check_names, joined, parse, parse_all
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
        ("square", ["square"]), ("diagonal and positive", ["relation", "positive"]),
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


@pytest.mark.parametrize("facts", [5, {"x": 5}, {"x": None}, {"x": [3]}, {"x": b"positive"}, [7]])
def test_what_is_no_text_is_refused(facts: Any) -> None:
    with pytest.raises(SpecError, match="is no text"):
        joined(facts)


@pytest.mark.parametrize(
    "text",
    [
        "positive and (-2, -1)", "negative and positive", "{0, 1} and (3, 4)", "binary and (3, 4)",
        "nonnegative and (-3, -2)", "one-hot and (2, 3)", "binary, positive", "nonzero and binary",
        "index 3 and [5, 7]", "index n and (-3, -1)", "[0, 1] and [1, 2]", "(0, 1) and [1, 2]",
        "nonnegative and (-1, 0]", "symmetric, negative and [0, 1]", "one-hot and negative",
    ],
)  # fmt: skip
def test_what_no_tensor_meets_is_refused_before_any_proof(text: str) -> None:
    with pytest.raises(SpecError, match="contradicts itself") as caught:
        parse("x", text)
    assert "'x'" in caught.value.what
    assert text in caught.value.what
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("positive and (-2, 5)", ["x in (0, 5)"]), ("(-1, 2) and [0, 3]", ["x in [0, 2)"]),
        ("binary and [0, 1]", ["x is 0 or 1 everywhere"]), ("(0.1, inf), > 0", ["x > 1/10"]),
        ("symmetric, positive and (-1, 1)", ["x is symmetric", "x in (0, 1)"]),
        ("one-hot and binary", ["x is one-hot"]),
        ("nonzero and (-1, 1)", ["x != 0", "x in (-1, 1)"]),
    ],
)  # fmt: skip
def test_bounds_are_met_together(text: str, said: list[str]) -> None:
    assert [str(assumption) for assumption in parse("x", text)] == said


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
