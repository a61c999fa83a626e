"""Functions written for torch, of the kinds that public code has, each right.

``CASES``: for each its shapes, the values of plain arguments, and inputs for gradcheck.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch.autograd import Function
from torch.autograd.function import once_differentiable

SCALES = torch.tensor([0.5, 2.0, -1.5])
OFFSET = torch.tensor(0.25)


class SavedOutput(Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * (1 - y**2)


class OptionalBias(Function):
    @staticmethod
    def forward(ctx, x, weight, bias=None):
        ctx.save_for_backward(x, weight, bias)
        out = x.mm(weight.t())
        if bias is not None:
            out += bias.unsqueeze(0).expand_as(out)
        return out

    @staticmethod
    def backward(ctx, grad):
        x, weight, bias = ctx.saved_tensors
        grad_x = grad_w = grad_b = None
        if ctx.needs_input_grad[0]:
            grad_x = grad.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_w = grad.t().mm(x)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_b = grad.sum(0)
        return grad_x, grad_w, grad_b


class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps=1e-5):
        mean = x.mean(-1, keepdim=True)
        rstd = torch.rsqrt(x.var(-1, unbiased=False, keepdim=True) + eps)
        normal = (x - mean) * rstd
        ctx.save_for_backward(normal, weight, rstd)
        return normal * weight + bias

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        normal, weight, rstd = ctx.saved_tensors
        inner = grad * weight
        grad_x = rstd * (
            inner
            - inner.mean(dim=-1, keepdim=True)
            - normal * (inner * normal).mean(dim=-1, keepdim=True)
        )
        return grad_x, (grad * normal).sum(0), grad.sum(0), None


class Softmax(Function):
    @staticmethod
    def forward(ctx, x):
        y = F.softmax(x, dim=-1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return y * (grad - torch.sum(grad * y, dim=-1, keepdim=True))


class InPlace(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        out = torch.empty_like(x)
        out.copy_(x)
        out.mul_(2).add_(torch.sin(x))
        first = out[0]
        first.zero_()
        return out

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        result = grad.clone()
        result *= 2 + x.cos()
        result[0].fill_(0)
        return result


class Masked(Function):
    @staticmethod
    def forward(ctx, x, low=-1.0, high=1.0):
        ctx.save_for_backward(x)
        ctx.low, ctx.high = low, high
        return x.clamp(min=low, max=high)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        grad_x = grad.clone()
        grad_x[x < ctx.low] = 0
        grad_x[x > ctx.high] = 0
        return grad_x, None, None


class Selected(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = x.clone()
        y[x > 0] = torch.exp(-x[x > 0])
        return y

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        grad_x = grad.clone()
        grad_x[x > 0] = -grad_x[x > 0] * (-x[x > 0]).exp()
        return grad_x


class SqueezedDim(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).sum(dim=1, keepdim=True).squeeze(1)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad.unsqueeze(1)


class SizeBranch(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.count = x.shape[0]
        if x.shape[0] > 1:
            return x - x.mean(0)
        return x * 1.0

    @staticmethod
    def backward(ctx, grad):
        if ctx.count > 1:
            return grad - grad.sum(0) / ctx.count
        return grad


class Einsum(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return torch.einsum("bij,bjk->bik", a, b)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return torch.einsum("bik,bjk->bij", grad, b), torch.einsum("bij,bik->bjk", a, grad)


def swish(x):
    return x * torch.sigmoid(x)


def swish_slope(g, x):
    s = torch.sigmoid(x)
    return g * (s * (1.0 + x * (1.0 - s)))


with warnings.catch_warnings():  # scripts are deprecated, and public code is full of them
    warnings.simplefilter("ignore", DeprecationWarning)
    scripted_swish = torch.jit.script(swish)
    scripted_slope = torch.jit.script(swish_slope)


class Scripted(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return scripted_swish(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return scripted_slope(grad, x)


class Autocast(Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad * (s * (1 + x * (1 - s)))


class InnerGradient(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        with torch.no_grad():
            return torch.sin(x) * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            again = x.detach().requires_grad_(True)
            y = torch.sin(again) * again
        (found,) = torch.autograd.grad(y, again, grad)
        return found


class Data(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.data)
        return x.data.exp()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad.data * x.exp()


class Detached(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.detach().clone()
        ctx.positive = y > 0
        return torch.where(ctx.positive, y, 0.1 * y)

    @staticmethod
    def backward(ctx, grad):
        return torch.where(ctx.positive, grad, 0.1 * grad)


class AsksRequiresGrad(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.both = x.requires_grad and y.requires_grad
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        if ctx.both:
            return grad * y, grad * x
        return (grad * y if ctx.needs_input_grad[0] else None), (
            grad * x if ctx.needs_input_grad[1] else None
        )


class Gathered(Function):
    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(index)
        ctx.size = x.size()
        return x.gather(1, index)

    @staticmethod
    def backward(ctx, grad):
        (index,) = ctx.saved_tensors
        return grad.new_zeros(ctx.size).scatter_add_(1, index, grad), None


class SetupContext(Function):
    @staticmethod
    def forward(x, scale=2.0):
        return x * scale, x.sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.scale = inputs
        ctx.shape = x.shape
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, grad_y, grad_total):
        found = None
        if grad_y is not None:
            found = grad_y * ctx.scale
        if grad_total is not None:
            spread = grad_total.expand(ctx.shape)
            found = spread if found is None else found + spread
        return found, None


class ClassMethods(Function):
    slope = 0.5

    @classmethod
    def forward(cls, ctx, x):
        ctx.save_for_backward(x)
        return cls.slope * x * x

    @classmethod
    def backward(cls, ctx, grad):
        return 2 * cls.slope * ctx.saved_tensors[0] * grad


class Nested(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return SavedOutput.apply(x) + Softmax.apply(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        y, p = torch.tanh(x), torch.softmax(x, -1)
        return grad * (1 - y * y) + p * (grad - (grad * p).sum(-1, keepdim=True))


class Constants(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, SCALES)
        return torch.sin(x * SCALES) + OFFSET.item() * x + SCALES.sum() * OFFSET

    @staticmethod
    def backward(ctx, grad):
        x, scales = ctx.saved_tensors
        return grad * (scales * (SCALES * x).cos() + OFFSET)


class Manifold:
    __slots__ = ["eps"]

    def __init__(self):
        self.eps = 1e-6

    @staticmethod
    def dot(u, v):
        uv = u * v
        uv.narrow(-1, 0, 1).mul_(-1)
        return uv.sum(dim=-1, keepdim=False)


class LorentzProduct(Function):
    @staticmethod
    def forward(ctx, u, v):
        ctx.save_for_backward(u, v)
        return Manifold.dot(u, v)

    @staticmethod
    def backward(ctx, grad):
        u, v = ctx.saved_tensors
        grad = grad.unsqueeze(-1).expand_as(u).clone()
        grad.narrow(-1, 0, 1).mul_(-1)
        return grad * v, grad * u


class Factories(Function):
    @staticmethod
    def forward(ctx, x):
        n, m = x.shape
        ctx.mask = torch.ones(n, m, device=x.device, dtype=torch.bool).tril()
        ctx.ramp = torch.arange(m, dtype=x.dtype, device=x.device) / m
        ctx.save_for_backward(x)
        kept = x.masked_fill(~ctx.mask, 0.0)
        return kept * ctx.ramp + torch.zeros_like(x) + torch.full((m,), 1 / math.sqrt(m))

    @staticmethod
    def backward(ctx, grad):
        assert isinstance(grad, torch.Tensor)
        assert isinstance(grad.shape, torch.Size)
        zero = torch.tensor(0.0, dtype=grad.dtype)
        assert zero.item() == 0.0
        assert float(torch.full((), 0.1).item()) != 0.1
        return torch.where(ctx.mask, grad * ctx.ramp, zero)


class MarkedDirty(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(3)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 3


class NotDifferentiable(Function):
    @staticmethod
    def forward(ctx, x):
        values, places = x.max(dim=1)
        ctx.mark_non_differentiable(places)
        ctx.save_for_backward(places)
        ctx.shape = x.shape
        return values, places

    @staticmethod
    def backward(ctx, grad, _):
        (places,) = ctx.saved_tensors
        found = torch.zeros(ctx.shape, dtype=grad.dtype, device=grad.device)
        return found.scatter_(1, places.unsqueeze(1), grad.unsqueeze(1))


class Convolved(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return torch.nn.functional.conv2d(x, weight, padding=1)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        by_input = torch.nn.grad.conv2d_input(x.shape, weight, grad, padding=1)
        return by_input, torch.nn.grad.conv2d_weight(x, weight.shape, grad, padding=1)


class Transposed(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return torch.nn.functional.conv1d(x, weight)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        crossed = torch.nn.functional.conv1d(x.transpose(0, 1), grad.transpose(0, 1))
        return torch.nn.functional.conv_transpose1d(grad, weight), crossed.transpose(0, 1)


class Pooled(Function):
    @staticmethod
    def forward(ctx, x):
        return torch.nn.functional.avg_pool2d(x, 2)

    @staticmethod
    def backward(ctx, grad):
        return torch.nn.functional.interpolate(grad, scale_factor=2, mode="nearest") / 4


class Columns(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.size = x.shape[2:]
        return torch.nn.functional.unfold(x, 3, padding=1)

    @staticmethod
    def backward(ctx, grad):
        return torch.nn.functional.fold(grad, ctx.size, 3, padding=1)


class Case(NamedTuple):
    """How one Function is judged, and the inputs that gradcheck calls it with."""

    function: Any
    specs: tuple[str, ...]
    inputs: tuple[Any, ...]


def _drawn(*shape: int) -> Any:
    generator = torch.Generator().manual_seed(7)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


_INDEX = torch.tensor([[0, 2], [1, 1], [2, 0]])
CASES = {
    case.function.__name__: case
    for case in (
        Case(SavedOutput, ("n m",), (_drawn(2, 3),)),
        Case(OptionalBias, ("n k", "m k", "m"), (_drawn(2, 3), _drawn(4, 3), _drawn(4))),
        Case(LayerNorm, ("n m", "m", "m"), (_drawn(3, 4), _drawn(4), _drawn(4))),
        Case(Softmax, ("n m",), (_drawn(2, 3),)),
        Case(InPlace, ("n m",), (_drawn(2, 3),)),
        Case(Masked, ("n m",), (_drawn(2, 3),)),
        Case(Selected, ("n m",), (_drawn(2, 3),)),
        Case(SqueezedDim, ("n m",), (_drawn(2, 3),)),
        Case(SizeBranch, ("n m",), (_drawn(2, 3),)),
        Case(Einsum, ("b i j", "b j k"), (_drawn(2, 3, 4), _drawn(2, 4, 2))),
        Case(Scripted, ("n m",), (_drawn(2, 3),)),
        Case(Autocast, ("n m",), (_drawn(2, 3),)),
        Case(InnerGradient, ("n m",), (_drawn(2, 3),)),
        Case(Data, ("n m",), (_drawn(2, 3),)),
        Case(Detached, ("n m",), (_drawn(2, 3),)),
        Case(AsksRequiresGrad, ("n", "n"), (_drawn(3), _drawn(3))),
        Case(Gathered, ("n m", "i64[n k]"), (_drawn(3, 3), _INDEX)),
        Case(SetupContext, ("n m",), (_drawn(2, 3),)),
        Case(ClassMethods, ("n m",), (_drawn(2, 3),)),
        Case(Nested, ("n m",), (_drawn(2, 3),)),
        Case(Constants, ("n 3",), (_drawn(2, 3),)),
        Case(LorentzProduct, ("n m", "n m"), (_drawn(2, 3), _drawn(2, 3))),
        Case(Factories, ("n m",), (_drawn(2, 3),)),
        Case(MarkedDirty, ("n m",), (_drawn(2, 3),)),
        Case(Convolved, ("b c n m", "o c 3 3"), (_drawn(2, 2, 3, 4), _drawn(1, 2, 3, 3))),
        Case(Transposed, ("b c n", "o c 2"), (_drawn(2, 2, 4), _drawn(3, 2, 2))),
        Case(Pooled, ("b c 2*n 2*m",), (_drawn(1, 2, 4, 2),)),
        Case(Columns, ("b c n m",), (_drawn(1, 2, 3, 4),)),
        Case(NotDifferentiable, ("n m",), (_drawn(2, 3),)),
    )
}


def doubled(function: Any) -> Any:
    """The same Function with all its gradients doubled."""

    def backward(*args: Any) -> Any:
        found = function.backward(*args)
        if isinstance(found, tuple):
            return tuple(None if one is None else 2 * one for one in found)
        return 2 * found

    return type(f"Doubled{function.__name__}", (function,), {"backward": staticmethod(backward)})
