"""What is left out for indices of a sum is left out for every input, and proves nothing."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg


class Distances(sg.Function):
    """All distances: that of a row from itself is 0, where the root has no derivative."""

    at_zero: Any = staticmethod(sg.zeros_like)

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        d = ((x[:, None] - x[None]) ** 2).sum(-1).sqrt()
        ctx.save_for_backward(x, d)
        return d.sum()

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, d = ctx.saved_tensors
        w = sg.where(d > 0, 1 / d, cls.at_zero(d))
        part = 2 * g * (w.sum(1, keepdim=True) * x - w @ x)
        return part + g * sg.where(d > 0, sg.zeros_like(d), cls.at_zero(d)).sum(1, keepdim=True)


@pytest.mark.parametrize("at_zero", [sg.ones_like, lambda d: 3 * sg.ones_like(d)])
def test_a_wrong_diagonal_is_not_proved(at_zero: Any) -> None:
    wrong = type("Distances", (Distances,), {"at_zero": staticmethod(at_zero)})
    report = sg.verify(wrong, "n m", suggest=False, timeout=None)
    assert str(report.verdict) != "PROVED"
