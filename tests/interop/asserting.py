"""Functions with assertions, in a module whose assertions pytest leaves as they are."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

Function: Any = torch.autograd.Function


class Positive(Function):
    @staticmethod
    def forward(ctx, x, a):
        assert a > 0, f"not positive: {a}"
        ctx.save_for_backward(x, a)
        return x * a

    @staticmethod
    def backward(ctx, g):
        x, a = ctx.saved_tensors
        return g * a, (g * x).sum().reshape(1)


class Both(Positive):
    @staticmethod
    def forward(ctx, x, a):
        assert a > 0 and (x != 1).all()  # noqa: PT018
        ctx.save_for_backward(x, a)
        return x * a


class InBackward(Positive):
    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        return x * a

    @staticmethod
    def backward(ctx, g):
        x, a = ctx.saved_tensors
        assert a > 0
        return g * a, (g * x).sum().reshape(1)


class Caught(Positive):
    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        try:
            assert a > 0
        except AssertionError:
            return 2 * x * a
        return x * a


class Branch(Caught):
    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        return x * a if a > 0 else 2 * x * a


class Wrong(Positive):
    @staticmethod
    def backward(ctx, g):
        x, a = ctx.saved_tensors
        return g * a.abs() * (a < 2), (g * x).sum().reshape(1)


class Classes(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g + 0 * F.one_hot(torch.tensor([0, 4]), 3).sum()


class ClassesOfSize(Classes):
    @staticmethod
    def backward(ctx, g):
        return 2 * g + 0 * g[g.shape[0]]
