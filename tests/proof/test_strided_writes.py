"""Writes into every k-th element, as rotary embeddings make them, are judged for all sizes."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg


class Swap(sg.Function):
    """Pairs (a, b) become (-b, a)."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = sg.zeros_like(x)
        y[..., 0::2] = -x[..., 1::2]
        y[..., 1::2] = x[..., 0::2]
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        grad = sg.zeros_like(g)
        grad[..., 0::2] = g[..., 1::2]
        grad[..., 1::2] = -g[..., 0::2]
        return grad


class SwapSlip(Swap):
    """The sign is forward's."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        grad = sg.zeros_like(g)
        grad[..., 0::2] = -g[..., 1::2]
        grad[..., 1::2] = g[..., 0::2]
        return grad


class InPlace(sg.Function):
    """The even elements are doubled, the odd ones stay."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = sg.zeros_like(x)
        y[..., 0::2] = 2 * x[..., 0::2]
        y[..., 1::2] = x[..., 1::2]
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        grad = sg.zeros_like(g)
        grad[..., 0::2] = 2 * g[..., 0::2]
        grad[..., 1::2] = g[..., 1::2]
        return grad


class InPlaceSlip(InPlace):
    """The odd ones are doubled."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        grad = sg.zeros_like(g)
        grad[..., 0::2] = g[..., 0::2]
        grad[..., 1::2] = 2 * g[..., 1::2]
        return grad


class Turn(sg.Function):
    """Triples (a, b, c) become (b, 2 c, a^2)."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        y = sg.zeros_like(x)
        y[..., 0::3] = x[..., 1::3]
        y[..., 1::3] = 2 * x[..., 2::3]
        y[..., 2::3] = x[..., 0::3] ** 2
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        grad = sg.zeros_like(g)
        grad[..., 0::3] = 2 * x[..., 0::3] * g[..., 2::3]
        grad[..., 1::3] = g[..., 0::3]
        grad[..., 2::3] = 2 * g[..., 1::3]
        return grad


class TurnSlip(Turn):
    """Two gradients are exchanged."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        grad = sg.zeros_like(g)
        grad[..., 0::3] = 2 * x[..., 0::3] * g[..., 2::3]
        grad[..., 1::3] = 2 * g[..., 1::3]
        grad[..., 2::3] = g[..., 0::3]
        return grad


@pytest.mark.parametrize(
    ("right", "slip", "shape"),
    [
        (Swap, SwapSlip, "n 2*m"),
        (Swap, SwapSlip, "b h n 2*m"),
        (InPlace, InPlaceSlip, "2*m"),
        (Turn, TurnSlip, "n 3*m"),
    ],
)
def test_writes_into_every_kth_element(
    right: type[sg.Function], slip: type[sg.Function], shape: str
) -> None:
    assert sg.verify(right, shape).verdict == "PROVED"
    assert sg.verify(slip, shape).verdict == "REFUTED"
