"""Conditions of a report: only those that may fail, each once, in the user's words."""

from __future__ import annotations

import pytest

import symgrad as sg
from tests.proof.written import function_from

NORM = """
def forward(ctx, x):
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    std = {}
    y = (x - mean) / std
    ctx.save_for_backward(y, std)
    return y

def backward(ctx, g):
    y, std = ctx.saved_tensors
    return (g - g.mean(-1, keepdim=True) - y * (g * y).mean(-1, keepdim=True)) / std
"""

SHIFTED = """
def forward(ctx, x, w):
    offset = x * w + 3
    ctx.save_for_backward(x, w, offset)
    return {}

def backward(ctx, g):
    x, w, offset = ctx.saved_tensors
    t = {}
    return t * w, t * x
"""


def _conditions(source: str, *specs: str) -> list[str]:
    report = sg.verify(function_from(source), *specs)
    assert report.verdict is sg.PROVED, str(report)
    return [str(condition) for condition in report.conditions]


@pytest.mark.parametrize("spec", ["m", "n m", "b n m"])
def test_a_variance_and_a_little_is_positive(spec: str) -> None:
    assert _conditions(NORM.format("(variance + 1e-5).sqrt()"), spec) == []


def test_a_condition_that_may_fail_is_told_with_the_size_at_which_it_does() -> None:
    (condition,) = _conditions(NORM.format("variance.sqrt()"), "n c l")
    assert condition == "variance > 0 (at l == 1 it is always 0)"


def test_the_mean_of_squares_is_no_variance() -> None:
    source = NORM.format("(x.mean(-1, keepdim=True) + 5).sqrt()").replace("/ std\n\n", "\n\n")
    report = sg.verify(function_from(source), "n m")
    assert report.verdict is not sg.PROVED


@pytest.mark.parametrize(
    ("value", "slope", "text"),
    [
        ("offset.sqrt()", "g / (2 * offset.sqrt())", "x * w > -3"),
        ("(2 * offset).sqrt()", "g / (2 * offset).sqrt()", "x * w > -3"),
        ("(offset * offset + 1).sqrt()", "g * offset / (offset * offset + 1).sqrt()", None),
        ("(x * w + 2.5) ** 1.5", "1.5 * g * (x * w + 2.5).sqrt()", "x * w >= -2.5"),
    ],
)
def test_a_condition_is_told_once_in_the_words_of_forward(
    value: str, slope: str, text: str | None
) -> None:
    assert _conditions(SHIFTED.format(value, slope), "n", "n") == ([text] if text else [])


def test_conditions_of_two_branches_do_not_exclude_each_other() -> None:
    source = """
def forward(ctx, x):
    ctx.save_for_backward(x)
    return x.abs() ** 1.5

def backward(ctx, g):
    (x,) = ctx.saved_tensors
    return 1.5 * g * x.sign() * x.abs().sqrt()
"""
    assert _conditions(source, "n") == ["x == 0"]  # the kink: abs(x) is not negative
    source = """
def forward(ctx, x, y):
    ctx.save_for_backward(x, y)
    return sg.where(x > y, x + y, -x - y) ** 1.5

def backward(ctx, g):
    x, y = ctx.saved_tensors
    side = sg.where(x > y, 1.0, -1.0)
    root = 1.5 * g * side * (side * (x + y)).sqrt()
    return root, root
"""
    stated = _conditions(source, "n", "n")
    assert "sg.where(x > y, x + y, -x - y) > 0" in stated
    assert not any(text.startswith(("x + y >", "-x - y >")) for text in stated)
