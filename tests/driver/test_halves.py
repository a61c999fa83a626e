"""Halves of an axis of any size: what is left over is a remainder."""

from __future__ import annotations

from typing import Any

import symgrad as sg


class FirstByLast(sg.Function):
    """The first half times the last one; the one in the middle is left out."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        m = x.shape[-1]
        a, b = x[..., : m // 2], x[..., m // 2 + m % 2 :]
        ctx.save_for_backward(a, b)
        ctx.shape = x.shape
        return a * b

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        a, b = ctx.saved_tensors
        half, left_over = a.shape[-1], ctx.shape[-1] % 2
        out = g.new_zeros(ctx.shape)
        out[..., :half] = g * b
        out[..., half + left_over :] = g * a
        return out


class NextToEachOther(FirstByLast):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        half = x.shape[-1] // 2
        a, b = x[..., :half], x[..., half : 2 * half]
        ctx.save_for_backward(a, b)
        ctx.shape = x.shape
        return a * b


def test_halves_without_what_is_left_over() -> None:
    assert sg.verify(FirstByLast, "n m") == sg.PROVED
    assert sg.verify(NextToEachOther, "n m", suggest=False) == sg.REFUTED
