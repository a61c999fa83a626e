"""Functions that ask whether an argument without a default is None."""

from __future__ import annotations

from typing import Any

import torch

Function: Any = torch.autograd.Function


class Missing(Function):
    """Without a weight, a factor 2 is missing."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * x if weight is None else x * x * weight

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        if w is None:
            return x * g, None
        return 2 * x * g * w, x * x * g


class Right(Missing):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        if w is None:
            return 2 * x * g, None
        return 2 * x * g * w, x * x * g


class Required(Function):
    """Forward refuses None: backward is never called for it."""

    @staticmethod
    def forward(ctx, x, weight):
        if weight is None:
            raise ValueError("a weight is needed")
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        return (g, None) if weight is None else (g * weight, g * x)
