"""Rows of nothing, however many there are, take no time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symgrad as sg

ROWS = 1 << 60
"""To go through them all would take years."""


class Affine(sg.Function):
    """Every output is empty where a row is."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        return x * 2 + w


class Weighted(sg.Function):
    """A number, whatever the sizes are."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        return (x * w).sum()


@pytest.mark.slow
def test_rows_of_nothing() -> None:
    x, w = np.zeros((ROWS, 0), np.float32), np.zeros(0, np.float32)
    for function, shape in ((Affine, (ROWS, 0)), (Weighted, ())):
        op = sg.compile(function, "f32[n m]", "f32[m]")
        y, residuals = op.forward(x, w)
        assert y.shape == shape
        assert not y.any()
        gradients = op.backward(residuals, np.ones(shape, np.float32))
        assert [one.shape for one in gradients if one is not None] == [x.shape, w.shape]
