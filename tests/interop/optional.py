"""Functions of which an argument may be None."""

from __future__ import annotations

from typing import Any, Optional, Union

import torch
from torch import Tensor

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


class _Forgotten(Function):
    """No gradient of y."""

    @staticmethod
    def backward(ctx, g):
        return g, None


class Unsaid(_Forgotten):
    @staticmethod
    def forward(ctx, x, y):
        return x.clone() if y is None else x + y


class ByDefault(_Forgotten):
    @staticmethod
    def forward(ctx, x, y=None):
        return x.clone() if y is None else torch.add(x, y)


class Renamed(_Forgotten):
    @staticmethod
    def forward(ctx, x, y=None):
        other = y
        return x.clone() if other is None else x + other


class InPlace(_Forgotten):
    @staticmethod
    def forward(ctx, x, y=None):
        result = x.clone()
        if y is not None:
            result += y
        return result


class Annotated(_Forgotten):
    @staticmethod
    def forward(ctx, x, y: Optional[Tensor]):  # noqa: UP045
        return x.clone() if y is None else torch.where(x > 0, x, x + y)


class Piped(_Forgotten):
    @staticmethod
    def forward(ctx, x, y: torch.Tensor | None = None):
        return x.clone() if y is None else x + y


class Kept(Function):
    """A tensor, as the annotation says, that is an attribute of ctx."""

    @staticmethod
    def forward(ctx, x, y: Union[Tensor, None] = None):  # noqa: UP007
        ctx.y = y
        return x.clone() if y is None else x * y

    @staticmethod
    def backward(ctx, g):
        return g if ctx.y is None else g * ctx.y, None


class Bias(Function):
    @staticmethod
    def forward(ctx, x, weight, bias: Optional[Tensor] = None):  # noqa: UP045
        ctx.save_for_backward(x, weight)
        y = x @ weight.t()
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        return g @ weight, g.t() @ x, None


class Given(Function):
    @staticmethod
    def forward(ctx, x, y: Tensor | None):
        ctx.given = y is not None
        return x.clone() if y is None else x + y

    @staticmethod
    def backward(ctx, g):
        return g, g if ctx.given else None


class Number(_Forgotten):
    @staticmethod
    def forward(ctx, x, y: float | None = None):
        return x.clone() if y is None else x + y


class _Scaled(Function):
    """A number that backward finds in an attribute of ctx."""

    @staticmethod
    def backward(ctx, g):
        return g if ctx.scale is None else g * ctx.scale, None


class Scaled(_Scaled):
    @staticmethod
    def forward(ctx, x, scale=None):
        ctx.scale, ctx.shape = scale, x.shape
        return x.clone() if scale is None else x * scale


class OneByDefault(_Scaled):
    @staticmethod
    def forward(ctx, x, scale=None):
        ctx.scale = 1.0 if scale is None else scale
        return x.clone() if scale is None else x * scale


class SetUp(_Scaled):
    @staticmethod
    def forward(x, scale=None):
        return x.clone() if scale is None else x * scale

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, factor = inputs
        ctx.scale = factor


class Epsilon(Function):
    @staticmethod
    def forward(ctx, x, eps=None):
        y = (x * x + (1e-5 if eps is None else eps)).sqrt()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * x / y, None


class Summed(Function):
    @staticmethod
    def forward(ctx, x, dim=None):
        ctx.shape = x.shape
        return x.sum() if dim is None else x.sum(dim, keepdim=True)

    @staticmethod
    def backward(ctx, g):
        return g.expand(ctx.shape), None
