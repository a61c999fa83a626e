"""Branches on values: kernels are made where both ways give the same, and none raises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symgrad as sg


class Square(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        if (x < 0).any():
            print("negative")
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * g * x


class Raises(Square):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        if x.sum() < 0:
            raise ValueError("negative")
        ctx.save_for_backward(x)
        return x * x


class RaisesBehind(Square):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        if x.min() < 0:
            raise ValueError("negative")
        return 2 * g * x


def test_what_a_branch_prints_keeps_from_no_kernel() -> None:
    x = np.array([1, -2], np.float32)
    np.testing.assert_array_equal(sg.compile(Square, "n")(x), [1, 4])


@pytest.mark.parametrize("function", [Raises, RaisesBehind])
def test_what_raises_for_some_values_gets_no_kernel(function: Any) -> None:
    assert sg.verify(function, "n", suggest=False).verdict == sg.PROVED
    with pytest.raises(sg.SymgradError, match=r"cannot raise for .*: .*negative"):
        sg.compile(function, "n")
