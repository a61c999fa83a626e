"""A gradient that is proved but in a small region: UNDECIDED says which one is open."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg


class Normalized(sg.Function):
    """Backward forgets that the norm is a constant where it is small."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        norm = (x * x).sum(-1, keepdim=True).sqrt().clamp(min=1e-12)
        y = x / norm
        ctx.save_for_backward(y, norm)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        y, norm = ctx.saved_tensors
        return (g - y * (g * y).sum(-1, keepdim=True)) / norm


class NormalizedRight(Normalized):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        length = (x * x).sum(-1, keepdim=True).sqrt()
        norm = length.clamp(min=1e-12)
        y = x / norm
        ctx.save_for_backward(y, norm, length > 1e-12)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        y, norm, large = ctx.saved_tensors
        return (g - large * y * (g * y).sum(-1, keepdim=True)) / norm


def test_the_open_region_is_named() -> None:
    report = sg.verify(Normalized, "n m")
    assert report.verdict == sg.UNDECIDED
    said = report.inputs["x"].reason
    assert "which is 0 except where" in said
    assert said.endswith("- 1 <= 0"), said
    assert "sqrt(sum_{" in said


def test_nothing_is_open_where_the_region_is_right() -> None:
    assert sg.verify(NormalizedRight, "n m").verdict == sg.PROVED


@pytest.mark.parametrize("bound", [1e-12, 1e-9])
def test_a_region_on_one_side(bound: float) -> None:
    class Limited(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.clamp(min=bound).log()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g / x.clamp(min=bound)

    report = sg.verify(Limited, "n")
    assert report.verdict != sg.PROVED
