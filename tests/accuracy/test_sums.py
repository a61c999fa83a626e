"""The error of a sum does not grow with the number of its terms, and its bits not with threads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import symgrad as sg

UNIT = 2.0**-24


class Sum(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.shape = x.shape
        return x.sum(0)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g.expand(ctx.shape)


class Squares(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return (x * x).sum()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * g * x


def _terms(count: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(count).random(count, dtype=np.float32)


@pytest.mark.parametrize(
    "count", [1, 1000, 1025, 10**5, pytest.param(10**7, marks=pytest.mark.slow)]
)
def test_sums_of_float32_are_right_to_a_few_units(count: int) -> None:
    x = _terms(count)
    total, _ = sg.compile(Sum, "f32[n]").forward(x)
    assert abs(float(total) / math.fsum(x.tolist()) - 1) < 4 * UNIT
    squares, _ = sg.compile(Squares, "f32[n]").forward(x)
    assert abs(float(squares) / math.fsum((x.astype(float) ** 2).tolist()) - 1) < 4 * UNIT


@pytest.mark.slow
def test_sums_down_columns_are_as_good() -> None:
    x = _terms(4 * 10**6).reshape(-1, 4)
    found, _ = sg.compile(Sum, "f32[n m]").forward(x)
    assert np.abs(found / x.astype(np.float64).sum(0) - 1).max() < 4 * UNIT


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_a_sum_has_the_same_bits_on_any_number_of_threads(threads: int) -> None:
    x, op = _terms(10**6 + 7), sg.compile(Squares, "f32[n]")
    before = sg.get_num_threads()
    try:
        sg.set_num_threads(1)
        alone, _ = op.forward(x)
        sg.set_num_threads(threads)
        together, _ = op.forward(x)
    finally:
        sg.set_num_threads(before)
    assert alone.tobytes() == together.tobytes()
