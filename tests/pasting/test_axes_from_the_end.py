"""Repairs count axes as the user's class does."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg


class FromTheEnd(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: sg.Tensor, w: sg.Tensor) -> sg.Tensor:
        centred = x - x.mean(dim=-1, keepdim=True)
        ctx.save_for_backward(x, w)
        return centred * w

    @staticmethod
    def backward(ctx: Any, g: sg.Tensor) -> Any:
        x, w = ctx.saved_tensors
        return g * w, g * (x - x.mean(dim=-1, keepdim=True))


class FromTheFront(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: sg.Tensor, w: sg.Tensor) -> sg.Tensor:
        centred = x - x.mean(dim=1, keepdim=True)
        ctx.save_for_backward(x, w)
        return centred * w

    @staticmethod
    def backward(ctx: Any, g: sg.Tensor) -> Any:
        x, w = ctx.saved_tensors
        return g * w, g * (x - x.mean(dim=1, keepdim=True))


@pytest.mark.parametrize("specs", ["n m; n m", "b n m; b n m", None])
def test_from_the_end(specs: str | None) -> None:
    report = sg.verify(FromTheEnd, *([specs] if specs else []))
    code = str(report.inputs["x"].suggestion)
    assert "-1, keepdim=True" in code
    assert "(1, " not in code
    assert "(2, " not in code


def test_from_the_front() -> None:
    report = sg.verify(FromTheFront, "n m; n m")
    assert "(1, keepdim=True" in str(report.inputs["x"].suggestion)
