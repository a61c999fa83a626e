"""Softmax and normalisations, each with its hand-written backward.

In: tensors and axes.  Out: tensors; and the Functions that differentiate the operations.

A backward computes the statistics again from the input: what is neither an input nor an output
would be a constant when it is differentiated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

from symgrad.errors import ShapeError
from symgrad.frontend.caller import here
from symgrad.frontend.dtypes import as_dtype, finfo
from symgrad.frontend.function import Function, assume, backward_of, own_backward
from symgrad.frontend.functions.arithmetic import add, div, mul, neg, sub
from symgrad.frontend.functions.casting import constant, converted
from symgrad.frontend.functions.reductions import mean, shift, sum
from symgrad.frontend.kinds import refused
from symgrad.frontend.lift import as_tensor, elementwise
from symgrad.frontend.session import current
from symgrad.frontend.sizes import Shape, as_dim, size_text
from symgrad.frontend.table import OperationCallError, operation
from symgrad.frontend.table import functions as sg
from symgrad.frontend.tensor import SymbolicTensor

Tensor = SymbolicTensor
Rows = Annotated[Any, "f32[n m]"]
Row = Annotated[Any, "f32[m]"]
Channels = Annotated[Any, "f32[n c s]"]
Channel = Annotated[Any, "f32[c]"]
Grouped = Annotated[Any, "f32[n g c s]"]
Group = Annotated[Any, "f32[g c]"]


# -- softmax


def _in(dtype: Any, input: Any) -> Tensor:
    source = as_tensor(input)
    return source if dtype is None else converted(source, as_dtype(dtype))


def _axis(name: str, input: Any, dim: Any) -> int:
    """The axis; where none is named, that which torch takes, with its warning."""
    if dim is not None:
        return dim  # type: ignore[no-any-return]
    current().warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument."
    )
    return 0 if as_tensor(input).ndim in (0, 1, 3) else 1


@backward_of("softmax")
def Softmax(grad_y: Any, y: Rows, dim: Any = -1) -> Any:
    """``exp(x) / sum(exp(x))`` along an axis, without overflow."""
    return y * (grad_y - (grad_y * y).sum(dim, keepdim=True))


@own_backward(Softmax)
def _softmax(input: Any, dim: int) -> Tensor:
    powers = elementwise("exp", sub(input, shift(input, dim)))
    return div(powers, sum(powers, dim, True))


@operation("softmax")
def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """``exp(x) / sum(exp(x))`` along an axis, shifted by the greatest element."""
    return _softmax(_in(dtype, input), _axis("softmax", input, dim))


@backward_of("log_softmax")
def LogSoftmax(grad_y: Any, y: Rows, dim: Any = -1) -> Any:
    """The logarithm of softmax along an axis, without overflow."""
    return grad_y - sg.exp(y) * grad_y.sum(dim, keepdim=True)


@own_backward(LogSoftmax)
def _log_softmax(input: Any, dim: int) -> Tensor:
    shifted = sub(input, shift(input, dim))
    total = sum(elementwise("exp", shifted), dim, True)
    return sub(shifted, elementwise("log", total))


@operation("log_softmax")
def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:  # fmt: skip
    """The logarithm of softmax."""
    return _log_softmax(_in(dtype, input), _axis("log_softmax", input, dim))


@operation("softmin", method=False)
def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """``softmax(-x)``."""
    return _softmax(_in(dtype, neg(input)), _axis("softmin", input, dim))


# -- over the last axes


def _normalized(x: Any, axes: Sequence[int], eps: Any) -> tuple[Any, Any]:
    """``(x - mean) / deviation`` over the axes, and ``1 / deviation``."""
    centred = x - x.mean(axes, keepdim=True)
    inverse_deviation = sg.rsqrt((centred * centred).mean(axes, keepdim=True) + eps)
    return centred * inverse_deviation, inverse_deviation


def _grad_normalized(grad: Any, normalized: Any, inverse_deviation: Any, axes: Any) -> Any:
    """The gradient of what was normalised, from that of the normal form."""
    mean = grad.mean(axes, keepdim=True)
    projection = (grad * normalized).mean(axes, keepdim=True)
    return (grad - mean - normalized * projection) * inverse_deviation


def _over_rows(gradient: Any, axes: Sequence[int]) -> Any:
    """What belongs to a weight that all rows share."""
    before = gradient.ndim - len(axes)
    return gradient.sum(tuple(range(before))) if before else gradient


def _last_axes(input: Tensor, normalized_shape: Any) -> tuple[int, ...]:
    """The axes that ``normalized_shape`` covers.  Raises ShapeError when it does not fit."""
    if not isinstance(normalized_shape, (tuple, list)):
        raise refused("layer_norm", "normalized_shape", "tuple of ints", normalized_shape)
    given = normalized_shape
    wanted = tuple(map(as_dim, given))
    found = input.node.shape[max(input.ndim - len(wanted), 0) :]
    if not wanted or found != wanted:
        words = ", ".join(str(size) for size in ("*", *given))
        equal = zip(found, wanted, strict=True) if len(found) == len(wanted) else ()
        raise ShapeError(
            f"Given normalized_shape={list(given)}, expected input with shape [{words}], but got "
            f"input of size{list(input.shape)}", location=here(), equal=equal,
        )  # fmt: skip
    return tuple(range(-len(wanted), 0))


def _check_rows(input: Tensor, axes: Sequence[int], **params: Any) -> None:
    """Raises ShapeError for a parameter that has not the shape of the axes."""
    wanted = input.node.shape[-len(axes) :]
    for name, given in params.items():
        _check_shape(
            given, wanted, f"Expected {name} to be of same shape as normalized_shape, but got "
            f"{name} of shape {{}} and normalized_shape = {list(Shape.of(wanted))}",
        )  # fmt: skip


def _check_channels(input: Tensor, **params: Any) -> None:
    """Raises ShapeError for a parameter that has not one number for each channel (axis 1)."""
    if input.ndim < 2:
        raise ShapeError(
            f"Expected at least 2 dimensions for input tensor but received {input.ndim}",
            location=here(),
        )
    channels = input.node.shape[1]
    for name, given in params.items():
        words = f"{name} should contain {channels} elements, but has shape {{}}"
        _check_shape(given, (channels,), words)


def _check_shape(given: Any, wanted: Sequence[Any], words: str) -> None:
    """Raises ShapeError with the words, ``{}`` of which is the shape, where it is another."""
    found = () if given is None else as_tensor(given).node.shape
    if given is not None and found != tuple(wanted):
        equal = zip(found, wanted, strict=True) if len(found) == len(wanted) else ()
        raise ShapeError(words.format(list(Shape.of(found))), location=here(), equal=equal)


def _standardised(input: Tensor, axes: Any, eps: Any) -> Tensor:
    centred = sub(input, mean(input, axes, True))
    spread = mean(elementwise("square", centred), axes, True)
    return mul(centred, elementwise("rsqrt", add(spread, eps)))


class LayerNorm(Function):
    """The last axes centred and scaled to unit variance, then ``y = x̂ w + b``."""

    @staticmethod
    def forward(
        ctx: Any, x: Rows, weight: Row = None, bias: Row = None, eps: Any = 1e-5, axes: Any = (-1,)
    ) -> Any:
        ctx.save_for_backward(x, weight)
        ctx.eps, ctx.axes, ctx.has_bias = eps, axes, bias is not None
        return sg.layer_norm(x, x.shape[-len(axes) :], weight, bias, eps)

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        x, weight = ctx.saved_tensors
        normalized, inverse_deviation = _normalized(x, ctx.axes, ctx.eps)
        grad = grad_y if weight is None else grad_y * weight
        grad_x = _grad_normalized(grad, normalized, inverse_deviation, ctx.axes)
        grad_weight = None if weight is None else _over_rows(grad_y * normalized, ctx.axes)
        grad_bias = _over_rows(grad_y, ctx.axes) if ctx.has_bias else None
        return grad_x, grad_weight, grad_bias, None, None


@own_backward(LayerNorm)
def _layer_norm(input: Tensor, weight: Any, bias: Any, eps: Any, axes: Any) -> Tensor:
    result = _standardised(input, axes, eps)
    result = result if weight is None else mul(result, weight)
    return result if bias is None else add(result, bias)


@operation("layer_norm", method=False)
def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None,
    bias: Tensor | None = None, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last axes."""
    source = as_tensor(input)
    axes = _last_axes(source, normalized_shape)
    _check_rows(source, axes, weight=weight, bias=bias)
    return _layer_norm(source, weight, bias, eps, axes)


class RMSNorm(Function):
    """The last axes divided by the root of their mean square, then ``y = x̂ w``; eps: float32's."""

    @staticmethod
    def forward(
        ctx: Any, x: Rows, weight: Row = None, eps: Any = 2.0**-23, axes: Any = (-1,)
    ) -> Any:  # fmt: skip
        ctx.save_for_backward(x, weight)
        ctx.eps, ctx.axes = eps, axes
        return sg.rms_norm(x, x.shape[-len(axes) :], weight, eps)

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        x, weight = ctx.saved_tensors
        inverse_root = sg.rsqrt((x * x).mean(ctx.axes, keepdim=True) + ctx.eps)
        normalized = x * inverse_root
        grad = grad_y if weight is None else grad_y * weight
        projection = (grad * normalized).mean(ctx.axes, keepdim=True)
        grad_x = (grad - normalized * projection) * inverse_root
        grad_weight = None if weight is None else _over_rows(grad_y * normalized, ctx.axes)
        return grad_x, grad_weight, None, None


@own_backward(RMSNorm)
def _rms_norm(input: Tensor, weight: Any, eps: Any, axes: Any) -> Tensor:
    spread = mean(elementwise("square", input), axes, True)
    result = mul(input, elementwise("rsqrt", add(spread, eps)))
    return result if weight is None else mul(result, weight)


@operation("rms_norm", method=False)
def rms_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:  # fmt: skip
    """``x / sqrt(mean(x²) + eps) * weight`` over the last axes."""
    source = as_tensor(input)
    small = finfo(source.dtype).eps if eps is None else eps
    axes = _last_axes(source, normalized_shape)
    _check_rows(source, axes, weight=weight)
    return _rms_norm(source, weight, float(small), axes)


# -- over channels (axis 1) and groups of them


def _by_channel(weight: Any, shape: Sequence[Any], ones: int) -> Any:
    """A weight for each channel, laid along the axes of channels; None where there is none."""
    return None if weight is None else as_tensor(weight).reshape(*shape, *[1] * ones)


def _scaled(input: Tensor, weight: Any, bias: Any) -> Tensor:
    """Scale and shift by channel: the last axis but one."""
    if weight is not None:
        input = mul(input, weight.unsqueeze(-1))
    return input if bias is None else add(input, bias.unsqueeze(-1))


def _places(input: Tensor) -> Tensor:
    """(examples, channels, the rest) as (examples, channels, places)."""
    if input.ndim == 3:
        return input
    found: Tensor = input.reshape(*input.shape[:2], math.prod(input.shape[2:]))
    return found


def _more_than_one(count: Any, words: str, input: Tensor) -> None:
    """Raises ShapeError where nothing varies."""
    if isinstance(count, int) and count == 1:
        raise ShapeError(
            f"Expected more than 1 {words} when training, got input size {size_text(input.shape)}",
            location=here(),
        )


class GroupNorm(Function):
    """Groups of channels normalised for each example.

    ``x`` is (examples, groups, channels, places).  The weight and the bias are
    (groups, channels).  With one channel a group it is InstanceNorm.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Grouped, weight: Group = None, bias: Group = None, eps: Any = 1e-5
    ) -> Any:  # fmt: skip
        ctx.save_for_backward(x, weight)
        ctx.eps, ctx.has_bias = eps, bias is not None
        y, _ = _normalized(x, (2, 3), eps)
        y = y if weight is None else y * weight.unsqueeze(-1)
        return y if bias is None else y + bias.unsqueeze(-1)

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        x, weight = ctx.saved_tensors
        normalized, inverse_deviation = _normalized(x, (2, 3), ctx.eps)
        grad = grad_y if weight is None else grad_y * weight.unsqueeze(-1)
        grad_x = _grad_normalized(grad, normalized, inverse_deviation, (2, 3))
        grad_weight = None if weight is None else (grad_y * normalized).sum((0, 3))
        return grad_x, grad_weight, grad_y.sum((0, 3)) if ctx.has_bias else None, None


@own_backward(GroupNorm)
def _group_norm(parts: Tensor, weight: Any, bias: Any, eps: Any) -> Tensor:
    return _scaled(_standardised(parts, (2, 3), eps), weight, bias)


@operation("group_norm", method=False)
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Each group of channels of each example normalised, then scaled and shifted by channel."""
    source = as_tensor(input)
    _check_channels(source, weight=weight, bias=bias)
    examples, channels = source.shape[:2]
    if num_groups <= 0:
        raise OperationCallError(
            f"Expected num groups to be greater than 0, got {num_groups}", location=here()
        )
    if isinstance(channels, int) and channels % num_groups:
        raise ShapeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(source.shape)} and num_groups={num_groups}", location=here(),
        )  # fmt: skip
    inner = channels // num_groups
    rest = math.prod(source.shape[2:])
    _more_than_one(examples * inner * rest, "value per channel", source)
    scale, shift = (_by_channel(one, (num_groups, inner), 0) for one in (weight, bias))
    parts = source.reshape(examples, num_groups, inner, rest)
    found: Tensor = _group_norm(parts, scale, shift, eps).reshape(*source.shape)
    return found


class BatchNorm(Function):
    """Channels normalised over the batch: ``x`` is (examples, channels, places).

    Also returns the mean and the variance (divided by the number of values), for running averages;
    no gradient goes through these.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Channels, weight: Channel = None, bias: Channel = None, eps: Any = 1e-5
    ) -> Any:
        ctx.save_for_backward(x, weight)
        ctx.eps, ctx.has_bias = eps, bias is not None
        mean = x.mean((0, 2))
        centred = x - mean.unsqueeze(-1)
        variance = (centred * centred).mean((0, 2))
        y = centred * sg.rsqrt(variance + eps).unsqueeze(-1)
        y = y if weight is None else y * weight.unsqueeze(-1)
        y = y if bias is None else y + bias.unsqueeze(-1)
        ctx.mark_non_differentiable(mean, variance)
        return y, mean, variance

    @staticmethod
    def backward(ctx: Any, grad_y: Any, grad_mean: Any, grad_variance: Any) -> Any:
        x, weight = ctx.saved_tensors
        normalized, inverse_deviation = _normalized(x, (0, 2), ctx.eps)
        grad = grad_y if weight is None else grad_y * weight.unsqueeze(-1)
        grad_x = _grad_normalized(grad, normalized, inverse_deviation, (0, 2))
        grad_weight = None if weight is None else (grad_y * normalized).sum((0, 2))
        return grad_x, grad_weight, grad_y.sum((0, 2)) if ctx.has_bias else None, None


@own_backward(BatchNorm)
def _batch_norm(input: Tensor, weight: Any, bias: Any, eps: Any) -> tuple[Tensor, Tensor, Tensor]:
    average = mean(input, (0, 2))
    centred = sub(input, average.unsqueeze(-1))
    variance = mean(elementwise("square", centred), (0, 2))
    scale = elementwise("rsqrt", add(variance, eps)).unsqueeze(-1)
    return _scaled(mul(centred, scale), weight, bias), average, variance


@assume(variance="nonnegative")
class BatchNormInference(Function):
    """``(x - mean) / sqrt(variance + eps) w + b`` with given statistics of each channel."""

    @staticmethod
    def forward(
        ctx: Any, x: Channels, mean: Channel, variance: Channel, weight: Channel = None,
        bias: Channel = None, eps: Any = 1e-5,
    ) -> Any:  # fmt: skip
        ctx.save_for_backward(x, mean, variance, weight)
        ctx.eps, ctx.has_bias = eps, bias is not None
        return sg.batch_norm(x, mean, variance, weight, bias, eps=eps)

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        x, mean, variance, weight = ctx.saved_tensors
        scale = sg.rsqrt(variance + ctx.eps)
        normalized = (x - mean.unsqueeze(-1)) * scale.unsqueeze(-1)
        grad = grad_y if weight is None else grad_y * weight.unsqueeze(-1)
        grad_x = grad * scale.unsqueeze(-1)
        grad_variance = -0.5 * scale * scale * (grad * normalized).sum((0, 2))
        grad_weight = None if weight is None else (grad_y * normalized).sum((0, 2))
        grad_bias = grad_y.sum((0, 2)) if ctx.has_bias else None
        return grad_x, -grad_x.sum((0, 2)), grad_variance, grad_weight, grad_bias, None


@own_backward(BatchNormInference)
def _batch_norm_inference(
    input: Tensor, average: Tensor, variance: Tensor, weight: Any, bias: Any, eps: Any
) -> Tensor:
    scale = elementwise("rsqrt", add(variance, eps)).unsqueeze(-1)
    return _scaled(mul(sub(input, average.unsqueeze(-1)), scale), weight, bias)


def _update(running: Any, found: Tensor, momentum: Any) -> None:
    """Move a running average towards what was found."""
    if running is not None:
        new = add(mul(running, 1 - momentum), mul(constant(found), momentum))
        running.write(constant(new).node)


def _channel_parameters(input: Tensor, mean: Any, variance: Any, weight: Any, bias: Any) -> Any:
    """Running averages, weight and bias as tensors of one number for each channel, or None.

    Raises ShapeError where one has another shape, OperationCallError for one average of two.
    """
    _check_channels(input, running_mean=mean, running_var=variance, weight=weight, bias=bias)
    if (mean is None) != (variance is None):
        raise OperationCallError(
            "running_mean and running_var must either both be None or neither be None",
            location=here(),
        )
    found = (mean, variance, weight, bias)
    return [None if one is None else as_tensor(one) for one in found]


@operation("batch_norm", method=False)
def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
    weight: Tensor | None = None, bias: Tensor | None = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Each channel (axis 1) normalised: over the batch in training, else by running averages.

    In training the running averages, where given, are moved towards the statistics of the batch,
    the variance divided by one less than the number of values.
    """
    source = as_tensor(input)
    running_mean, running_var, weight, bias = _channel_parameters(
        source, running_mean, running_var, weight, bias
    )
    flat = _places(source)
    found: Tensor
    if not training:
        if running_mean is None or running_var is None:
            raise OperationCallError(
                "Expected running_mean and running_var to be defined when training=False",
                location=here(),
            )
        found = _batch_norm_inference(flat, running_mean, running_var, weight, bias, eps)
        return found.reshape(*source.shape)  # type: ignore[no-any-return]
    count = flat.shape[0] * flat.shape[2]
    _more_than_one(count, "value per channel", source)
    found, average, variance = _batch_norm(flat, weight, bias, eps)
    _update(running_mean, average, momentum)
    if running_var is not None:
        _update(running_var, mul(variance, count / (count - 1)), momentum)
    return found.reshape(*source.shape)  # type: ignore[no-any-return]


@operation("instance_norm", method=False)
def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
    weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Each channel of each example normalised; by running averages if not ``use_input_stats``."""
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    source = as_tensor(input)
    running_mean, running_var, weight, bias = _channel_parameters(
        source, running_mean, running_var, weight, bias
    )
    flat = _places(source)
    count = flat.shape[2]
    _more_than_one(count, "spatial element", source)
    scale, shift = (None if one is None else one.unsqueeze(-1) for one in (weight, bias))
    found = _group_norm(flat.unsqueeze(2), scale, shift, eps)
    if running_mean is not None:
        average = mean(flat, 2)
        centred = sub(flat, average.unsqueeze(-1))
        variance = div(sum(elementwise("square", centred), 2), count - 1)
        _update(running_mean, mean(average, 0), momentum)
        _update(running_var, mean(variance, 0), momentum)
    return found.reshape(*source.shape)  # type: ignore[no-any-return]
