"""Operations that are seldom met, composed of those that are often.

In: tensors.  Out: tensors.
"""

from __future__ import annotations

import math
import sys
from typing import Any

from symgrad.errors import DTypeError, UnsupportedOpError
from symgrad.frontend.functions.arithmetic import add, div, mul, sub
from symgrad.frontend.functions.casting import converted
from symgrad.frontend.functions.comparisons import (
    isfinite,
    isnan,
    logical_and,
    logical_or,
    where,
)
from symgrad.frontend.functions.joining import cat, flip
from symgrad.frontend.functions.mathematics import absolute, clamp_min
from symgrad.frontend.functions.movement import axis_of, expand, permute
from symgrad.frontend.functions.products import bmm
from symgrad.frontend.functions.reductions import finite_shift, norm, sum
from symgrad.frontend.functions.scans import cumsum, diag
from symgrad.frontend.lift import as_tensor, broadcast_shapes, elementwise, result_dtype
from symgrad.frontend.session import here
from symgrad.frontend.sizes import as_size
from symgrad.frontend.table import operation
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.ir.dtype import int64

Tensor = SymbolicTensor


# -- elementwise


@operation("fmax")
def fmax(input: Any, other: Any) -> Tensor:
    """The greater of two, the first where they are equal; the other one where one is NaN."""
    first = logical_or(elementwise("ge", input, other), isnan(other))
    return where(first, input, other)


@operation("fmin")
def fmin(input: Any, other: Any) -> Tensor:
    """The lesser of two; the other one where one is NaN."""
    return elementwise("neg", fmax(elementwise("neg", input), elementwise("neg", other)))


@operation("copysign", inplace=True)
def copysign(input: Any, other: Any) -> Tensor:
    """The size of one with the sign of the other."""
    return elementwise("copysign", input, other, floats=True)


@operation("isclose")
def isclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8) -> Tensor:
    """Where two tensors differ by no more than the tolerances."""
    allowed = add(mul(absolute(other), rtol), atol)
    return elementwise("le", absolute(sub(input, other)), allowed)


@operation("polygamma", method=False)
def polygamma(n: int, input: Any) -> Tensor:
    """The n-th derivative of digamma, n from 0 to 2."""
    ops = ("digamma", "trigamma", "tetragamma")
    if not 0 <= n < len(ops):
        raise UnsupportedOpError(f"polygamma of order {n}", location=here())
    return elementwise(ops[n], input, floats=True)


@operation("polygamma", function=False)
def polygamma_method(self: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma, n from 0 to 2."""
    return polygamma(n, self)


# -- reductions and scans


@operation("nansum")
def nansum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum, NaN counted as 0; of integers in int64, as ``sum`` is."""
    return sum(where(isnan(input), False, input), dim, keepdim, dtype=dtype)


@operation("nanmean")
def nanmean(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The mean of what is not NaN."""
    dtype = as_tensor(input).dtype
    if not dtype.is_float:
        raise DTypeError(
            f"nanmean(): expected input to have floating point dtype but got {dtype}",
            location=here(),
        )
    count = sum(elementwise("eq", input, input), dim, keepdim)
    return div(nansum(input, dim, keepdim), count)


@operation("logcumsumexp")
def logcumsumexp(input: Any, dim: int) -> Tensor:
    """``log(cumsum(exp(x)))``, shifted by the greatest finite element of the whole axis, in double.

    What lies more than 708 below it is lost in that sum: until something greater comes, NaN.
    """
    source = as_tensor(input)
    if not source.dtype.is_float or not source.ndim:
        return elementwise("add", source, 0.0, floats=True)
    x = source.double()
    high = finite_shift(where(isfinite(x), x, -math.inf), dim)
    high = where(elementwise("gt", high, -_MOST_DOUBLE), high, 0.0)
    total = cumsum(elementwise("exp", sub(x, high)), dim)
    some = cumsum(converted(elementwise("gt", x, -math.inf), int64), dim)
    lost = logical_and(elementwise("lt", total, _LEAST_DOUBLE), elementwise("gt", some, 0))
    found = add(add(elementwise("log", total), high), where(lost, math.nan, 0.0))
    return converted(found, source.dtype)


_MOST_DOUBLE, _LEAST_DOUBLE = sys.float_info.max, sys.float_info.min


@operation("pairwise_distance", method=False)
def pairwise_distance(
    x1: Any, x2: Any, p: Any = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:  # fmt: skip
    """The p-norm of ``x1 - x2 + eps`` along the last axis."""
    return norm(add(sub(x1, x2), eps), p, -1, keepdim)


@operation("cdist", method=False)
def cdist(x1: Any, x2: Any, p: Any = 2.0, compute_mode: Any = None) -> Tensor:
    """The p-norm of the difference of each pair of rows."""
    left, right = as_tensor(x1), as_tensor(x2)
    return norm(sub(left.unsqueeze(-2), right.unsqueeze(-3)), p, -1)


@operation("normalize", method=False)
def normalize(
    input: Any, p: Any = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None
) -> Tensor:  # fmt: skip
    """``x / max(norm(x), eps)``, the p-norm along axes; ``out`` is written and returned."""
    source = as_tensor(input)
    if not source.dtype.is_float:
        raise DTypeError(f"normalize takes floats, not {source.dtype}", location=here())
    found = div(source, clamp_min(norm(source, p, dim, True), eps))
    if out is None:
        return found
    out.write(found.node)
    return out  # type: ignore[no-any-return]


@operation("cosine_similarity", method=False)
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along an axis of their common shape.

    No length counts as less than ``eps``; the gradient is that of this, for shorter ones too.
    """
    if not result_dtype((x1, x2)).is_float:
        raise DTypeError("cosine_similarity takes floats", location=here())
    units = (div(one, clamp_min(norm(one, 2, dim, True), eps)) for one in broadcast_tensors(x1, x2))
    return sum(mul(*units), dim)


# -- movement


@operation("broadcast_tensors", method=False)
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors, each broadcast to their common shape."""
    found = [as_tensor(tensor) for tensor in tensors]
    shape = [as_size(size) for size in broadcast_shapes(*(one.node.shape for one in found))]
    return tuple(expand(tensor, *shape) for tensor in found)


@operation("column_stack", method=False)
def column_stack(tensors: Any) -> Tensor:
    """Vectors as columns, and matrices, side by side."""
    found = [as_tensor(tensor) for tensor in tensors]
    return cat([one.unsqueeze(1) if one.ndim == 1 else one for one in found], 1)


@operation("rot90")
def rot90(input: Any, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """A quarter turn from the first to the second of two axes, ``k`` times."""
    source = as_tensor(input)
    first, second = (axis_of(axis, source.ndim) for axis in dims)
    if k % 4 == 0:
        return fresh(source.node)
    if k % 4 == 2:
        return flip(source, first, second)
    order = list(range(source.ndim))
    order[first], order[second] = second, first
    turned = permute(source, *order)
    return flip(turned, first if k % 4 == 1 else second)


@operation("diagflat")
def diagflat(input: Any, offset: int = 0) -> Tensor:
    """A matrix with all elements on its diagonal."""
    return diag(as_tensor(input).flatten(), offset)


@operation("pixel_shuffle", method=False)
def pixel_shuffle(input: Any, upscale_factor: int) -> Tensor:
    """Channels moved into an image that is larger by a factor."""
    source, by = as_tensor(input), upscale_factor
    *batch, channels, height, width = source.shape
    split = source.reshape(*batch, channels // (by * by), by, by, height, width)
    rank = len(batch)
    order = (*range(rank), *(rank + axis for axis in (0, 3, 1, 4, 2)))
    result: Tensor = split.permute(*order).reshape(
        *batch, channels // (by * by), height * by, width * by
    )
    return result


# -- products


@operation("addbmm", inplace=True)
def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * (sum of batch1 @ batch2)``."""
    return add(mul(input, beta), mul(sum(bmm(batch1, batch2), 0), alpha))
