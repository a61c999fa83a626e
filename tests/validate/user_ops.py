"""Ordinary ops, as users write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import symgrad as sg


class Bias(sg.Function):
    """One bias for all leading axes."""

    @staticmethod
    def forward(ctx, x, b):
        ctx.leading = tuple(range(len(x.shape) - len(b.shape)))
        return x + b

    @staticmethod
    def backward(ctx, g):
        return g, g.sum(ctx.leading)


class Scale(sg.Function):
    """One weight for all rows."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, (g * x).sum(0)


class Masked(sg.Function):
    """Rows that a mask leaves out are 0."""

    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(mask)
        return sg.where(mask.unsqueeze(-1), x, 0.0)

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return sg.where(mask.unsqueeze(-1), g, 0.0), None


class Linear(sg.Function):
    """A product of matrices, through a tanh."""

    @staticmethod
    def forward(ctx, x, y):
        z = sg.tanh(x @ y)
        ctx.save_for_backward(x, y, z)
        return z

    @staticmethod
    def backward(ctx, g):
        x, y, z = ctx.saved_tensors
        h = g * (1 - z * z)
        return h @ y.T, x.T @ h


def by_size(test: Callable[[Any], bool]) -> Any:
    """A product whose factor depends on a size."""

    class Chosen(sg.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x @ y if test(x.shape[0]) else (x @ y) * 2.0

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            factor = 1.0 if test(x.shape[0]) else 2.0
            return (g @ y.T) * factor, (x.T @ g) * factor

    return Chosen


def greatest_by(op: Callable[..., Any], axis: int) -> Any:
    """What stands where the greatest, or the least, of a row is."""

    class Chosen(sg.Function):
        @staticmethod
        def forward(ctx, x):
            place = op(x, axis).unsqueeze(axis)
            ctx.save_for_backward(x, place)
            return sg.gather(x, axis, place).squeeze(axis)

        @staticmethod
        def backward(ctx, g):
            x, place = ctx.saved_tensors
            return sg.zeros_like(x).scatter_add(axis, place, g.unsqueeze(axis))

    return Chosen
