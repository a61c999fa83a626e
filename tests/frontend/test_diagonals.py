"""Diagonals beside the main one, for all sizes: what lies outside of a matrix is empty."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import symgrad as sg


@pytest.mark.parametrize(("rows", "columns"), [*itertools.product((1, 2, 3), (1, 2, 4))])
def test_diagonals_are_those_of_numpy(rows: int, columns: int) -> None:
    x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    for offset in range(-4, 5):
        found = sg.diagonal(sg.tensor(x), offset).numpy()
        assert np.array_equal(found, np.diagonal(x, offset)), offset


class Squares(sg.Function):
    """The squares of a diagonal."""

    offset = 1
    empty = 0.0
    scale = 2.0

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return sg.diagonal(x, cls.offset) ** 2

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        added = cls.empty if g.shape[0] == 0 else 0.0
        part = cls.scale * g * sg.diag(x, cls.offset)
        return sg.diagonal_scatter(sg.zeros_like(x), part, cls.offset) + added


@pytest.mark.parametrize("offset", [-2, -1, 1, 2])
def test_the_gradient_of_a_diagonal_is_proved_for_all_sizes(offset: int) -> None:
    def judged(**values: Any) -> str:
        cls = type("Squares", (Squares,), {"offset": offset, **values})
        return str(sg.verify(cls, "n m", suggest=False, timeout=None).verdict)

    assert judged() == "PROVED"
    assert judged(scale=3.0) == "REFUTED"
    assert judged(empty=1.0) == "REFUTED"  # where there is no output, the gradient is 0


def test_a_compiled_diagonal_may_be_empty() -> None:
    op = sg.compile(Squares, "f32[n m]")
    for shape in itertools.product((1, 2, 3), (1, 2, 4)):
        x = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
        y, residuals = op.forward(x)
        assert np.array_equal(y, np.diagonal(x, 1) ** 2)
        (gradient,) = op.backward(residuals, np.ones_like(y))
        assert np.array_equal(np.asarray(gradient), np.where(np.eye(*shape, 1), 2 * x, 0))


class Bands(sg.Function):
    """A band is written beside the diagonal, of which nobody says how long it is."""

    @staticmethod
    def forward(ctx: Any, x: Any, band: Any) -> Any:
        return sg.diagonal_scatter(x, band, 1)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return sg.diagonal_scatter(g, sg.zeros_like(g.diagonal(1)), 1), g.diagonal(1)


def test_the_length_of_a_diagonal_is_found() -> None:
    report = sg.verify(Bands, suggest=False, timeout=None)
    assert str(report.verdict) == "PROVED"
    assert "x[n, n], band[n-1]" in report.inferred
