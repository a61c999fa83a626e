"""Functions with what an exported op may have: numbers, residuals of their own, several outputs."""

from __future__ import annotations

from functools import cache
from typing import Any

import symgrad as sg


class Weighted(sg.Function):
    """Two outputs, a float and an integer among the arguments, an array kept for backward."""

    @staticmethod
    def forward(ctx: Any, x: Any, alpha: Any = 1.5, *, k: int = 2) -> Any:
        e = sg.exp(alpha * x)
        y = e / e.sum(-1, keepdim=True)
        ctx.save_for_backward(y)
        ctx.alpha, ctx.k = alpha, k
        return y * 1.0, (x * k).sum(0)

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        (y,) = ctx.saved_tensors
        return ctx.alpha * y * (g - (g * y).sum(-1, keepdim=True)) + ctx.k * h, None


class Rows(sg.Function):
    """Rows by their indices; the gradient of one is none."""

    @staticmethod
    def forward(ctx: Any, x: Any, index: Any) -> Any:
        ctx.save_for_backward(index)
        ctx.rows = x.shape[0]
        return sg.index_select(x, 0, index)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (index,) = ctx.saved_tensors
        return g.new_zeros(ctx.rows, g.shape[1]).index_add(0, index, g), None


class Greatest(sg.Function):
    """An output that has no gradient beside one that has."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        place = x.argmax(-1)
        ctx.mark_non_differentiable(place)
        ctx.save_for_backward(x)
        return x * x, place

    @staticmethod
    def backward(ctx: Any, g: Any, _: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * g


class Cased(sg.Function):
    """One kernel for a single row, another for several, which keep different arrays."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        if x.shape[0] == 1:
            ctx.save_for_backward(x)
            return x * 3
        y = sg.exp(x)
        ctx.save_for_backward(y)
        return y.sum(0, keepdim=True)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (kept,) = ctx.saved_tensors
        if kept.shape[0] == 1:
            return g * 3
        return g * kept


class Dot(sg.Function):
    """Two inputs, each with a gradient of its own."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        return g @ w.t(), x.t() @ g


SPECS = {
    Weighted: ("n m",),
    Rows: ("n m", "i64[k]"),
    Greatest: ("n m",),
    Cased: ("n m",),
    Dot: ("n k", "k m"),
}


@cache
def compiled(function: Any, dtype: str = "f32") -> Any:
    """The op, compiled once for all tests."""
    specs = [one if "[" in one else f"{dtype}[{one}]" for one in SPECS[function]]
    return sg.compile(function, *specs)
