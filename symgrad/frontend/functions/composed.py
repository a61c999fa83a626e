"""Less common operations, composed of the common ones."""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.errors import DTypeError, ShapeError, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.functions.arithmetic import add, div, floor_divide, mul, sub
from symgrad.frontend.functions.casting import converted
from symgrad.frontend.functions.comparisons import (
    isfinite,
    isnan,
    logical_and,
    logical_not,
    logical_or,
    where,
)
from symgrad.frontend.functions.creation import arange, filled
from symgrad.frontend.functions.gathering import gather
from symgrad.frontend.functions.joining import cat, flip, pad, stack
from symgrad.frontend.functions.mathematics import absolute, clamp, clamp_min
from symgrad.frontend.functions.movement import axis_of, expand, movedim, permute, reshape, share
from symgrad.frontend.functions.products import bmm, einsum, matmul
from symgrad.frontend.functions.reductions import (
    Extremum,
    amax,
    any_,
    argmax,
    argmin,
    finite_shift,
    mean,
    norm,
    sum,
)
from symgrad.frontend.functions.scans import cumsum, diag
from symgrad.frontend.functions.sorting import Sorted, argsort
from symgrad.frontend.kinds import OperationTypeError, is_tensor, refused
from symgrad.frontend.lift import as_tensor, broadcast_shapes, elementwise, result_dtype
from symgrad.frontend.session import current
from symgrad.frontend.sizes import as_size
from symgrad.frontend.table import OperationCallError, operation
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.frontend.views import Slice
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import bool_, int64

Tensor = SymbolicTensor


# -- elementwise


@operation("fmax", elementwise=True)
def fmax(input: Tensor, other: Tensor) -> Tensor:
    """The greater of two, the first where they are equal; the other one where one is NaN."""
    first = logical_or(elementwise("ge", input, other), isnan(other))
    return where(first, input, other)


@operation("fmin", elementwise=True)
def fmin(input: Tensor, other: Tensor) -> Tensor:
    """The lesser of two; the other one where one is NaN."""
    return elementwise("neg", fmax(elementwise("neg", input), elementwise("neg", other)))


@operation("copysign", inplace=True)
def copysign(input: Tensor, other: Any) -> Tensor:
    """The size of one with the sign of the other."""
    return elementwise("copysign", input, other, floats=True)


@operation("sinc", inplace=True, elementwise=True)
def sinc(input: Any) -> Tensor:
    """``sin(πx) / (πx)``, and 1 at 0."""
    x = elementwise("add", input, 0.0, floats=True)
    zero = elementwise("eq", x, 0)
    angle = mul(where(zero, 1.0, x), math.pi)
    return where(zero, 1.0, div(elementwise("sin", angle), angle))


@operation("signbit", elementwise=True)
def signbit(input: Any) -> Tensor:
    """Whether the sign is negative, that of a zero too."""
    if not as_tensor(input).dtype.is_float:
        return elementwise("lt", input, 0)
    return elementwise("lt", elementwise("copysign", 1.0, input), 0)


@operation("isclose", elementwise=True)
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8) -> Tensor:
    """Where two tensors differ by no more than the tolerances."""
    allowed = add(mul(absolute(other), rtol), atol)
    return elementwise("le", absolute(sub(input, other)), allowed)


@operation("allclose")
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8) -> bool:
    """Whether two tensors differ by no more than the tolerances: a question about elements."""
    return bool(isclose(input, other, rtol, atol).all())


@operation("equal")
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape and the same elements: a question about elements."""
    if input.ndim != other.ndim:
        return False
    if any(left != right for left, right in zip(input.shape, other.shape, strict=True)):
        return False
    return bool(elementwise("eq", input, other).all())


@operation("polygamma", method=False, elementwise=True)
def polygamma(n: int, input: Any) -> Tensor:
    """The n-th derivative of digamma, n from 0 to 2."""
    ops = ("digamma", "trigamma", "tetragamma")
    if not 0 <= n < len(ops):
        raise UnsupportedOpError(
            f"polygamma supports orders 0 to {len(ops) - 1}, not {n}", location=here()
        )
    return elementwise(ops[n], input, floats=True)


@operation("polygamma", function=False, elementwise=True)
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


@operation("cummax")
def cummax(input: Any, dim: int) -> Extremum:
    """The greatest element up to each one, and where the last such element is."""
    return _running("cummax", input, dim, argmax, -math.inf)


@operation("cummin")
def cummin(input: Any, dim: int) -> Extremum:
    """The least element up to each one, and where the last such element is."""
    return _running("cummin", input, dim, argmin, math.inf)


def _running(
    name: str, input: Any, dim: int, place: Callable[..., Tensor], outside: float
) -> Extremum:  # fmt: skip
    """Each prefix is searched from its end: of equal elements, torch takes the last."""
    source = as_tensor(input)
    if not source.dtype.is_float:
        raise UnsupportedOpError(f"{name} takes floats, not {source.dtype}", location=here())
    if not source.ndim:
        return Extremum(elementwise("add", source, 0.0), filled(0, (), int64))
    axis = axis_of(dim, source.ndim)
    row = movedim(source, axis, -1)
    steps = arange(row.shape[-1])
    earlier = elementwise("le", steps.unsqueeze(0), steps.unsqueeze(1))
    prefixes = where(earlier, row.unsqueeze(-2), outside)
    found = sub(row.shape[-1] - 1, place(flip(prefixes, -1), -1))
    index = movedim(elementwise("minimum", found, steps), -1, axis)
    return Extremum(gather(source, axis, index), index)


_MOST_DOUBLE, _LEAST_DOUBLE = sys.float_info.max, sys.float_info.min


@operation("pairwise_distance", method=False)
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: Any = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:  # fmt: skip
    """The p-norm of ``x1 - x2 + eps`` along the last axis."""
    return norm(add(sub(x1, x2), eps), p, -1, keepdim)


@operation("cdist", method=False)
def cdist(x1: Tensor, x2: Tensor, p: Any = 2.0, compute_mode: Any = None) -> Tensor:
    """The p-norm of the difference of each pair of rows."""
    left, right = as_tensor(x1), as_tensor(x2)
    return norm(sub(left.unsqueeze(-2), right.unsqueeze(-3)), p, -1)


@operation("pdist", method=False)
def pdist(input: Tensor, p: Any = 2.0) -> Tensor:
    """The p-norm of the difference of each two rows, of which there are as many as are known."""
    source = as_tensor(input)
    rows = source.shape[0]
    if source.ndim != 2 or not isinstance(rows, int):
        raise UnsupportedOpError(
            f"pdist takes a matrix of a known number of rows, not {source.node.type}",
            location=here(), hint="cdist(x, x) has all distances",
        )  # fmt: skip
    first, second = np.triu_indices(rows, 1)
    return norm(sub(source[first], source[second]), p, -1)


@operation("vander", method=False)
def vander(x: Tensor, N: Any = None, increasing: bool = False) -> Tensor:
    """The powers of each element, ``N`` of them, the greatest first unless ``increasing``."""
    source = as_tensor(x)
    count = source.shape[0] if N is None else N
    if source.ndim != 1 or not isinstance(count, int) or count < 1:
        raise UnsupportedOpError(
            "vander takes a row, and a known number of powers", location=here(), hint="give N"
        )
    powers = [source**exponent for exponent in range(count)]
    return stack(powers if increasing else powers[::-1], -1)


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
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along an axis of their common shape.

    No length counts as less than ``eps``; the gradient is that of this, for shorter ones too.
    """
    if not result_dtype((x1, x2)).is_float:
        raise DTypeError("cosine_similarity takes floats", location=here())
    pair = broadcast_tensors(x1, x2)
    alike = x1.dtype == x2.dtype  # else each is rounded as its own dtype rounds, as in torch
    lengths = [clamp_min(norm(one, 2, dim, keepdim=not alike), eps) for one in pair]
    if not alike:
        return sum(mul(*map(div, pair, lengths)), dim)
    return div(sum(mul(*pair), dim), mul(*lengths))


# -- movement


@operation("broadcast_tensors", method=False)
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors, each broadcast to their common shape."""
    found = [as_tensor(tensor) for tensor in tensors]
    wanted = broadcast_shapes(*(one.node.shape for one in found))
    shape = [as_size(size) for size in wanted]
    return tuple(one if one.node.shape == wanted else expand(one, *shape) for one in found)


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
    if by <= 0:
        raise OperationCallError(
            f"pixel_shuffle expects a positive upscale_factor, but got {by}", location=here()
        )
    if source.ndim < 3:
        raise OperationCallError(
            "pixel_shuffle expects input to have at least 3 dimensions, but got input with "
            f"{source.ndim} dimension(s)", location=here(),
        )  # fmt: skip
    *batch, channels, height, width = source.shape
    if isinstance(channels, int) and channels % (by * by):
        raise OperationCallError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={channels} is not divisible by {by * by}",
            location=here(),
        )
    split = source.reshape(*batch, channels // (by * by), by, by, height, width)
    rank = len(batch)
    order = (*range(rank), *(rank + axis for axis in (0, 3, 1, 4, 2)))
    moved = split.permute(*order).clone()
    result: Tensor = moved.reshape(*batch, channels // (by * by), height * by, width * by)
    return result


@operation("block_diag", method=False)
def block_diag(*tensors: Any) -> Tensor:
    """Matrices along the diagonal of a larger one; a vector is a row."""
    for one in tensors:
        if not is_tensor(one):
            raise refused("block_diag", "tensors", "Tensor", one)
    blocks = [as_tensor(one) for one in tensors]
    if any(one.ndim > 2 for one in blocks) or not blocks:
        raise OperationCallError("block_diag takes matrices, vectors and numbers", location=here())
    blocks = [reshape(one, *(1,) * (2 - one.ndim), *one.shape) for one in blocks]
    width = functools.reduce(operator.add, (one.shape[1] for one in blocks))
    rows, before = [], as_size(Dim.of(0))
    for one in blocks:
        rows.append(pad(one, (before, width - before - one.shape[1])))
        before = before + one.shape[1]
    return cat(rows)


# -- products


@operation("addbmm", inplace=True)
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    """``beta * input + alpha * (sum of batch1 @ batch2)``."""
    return add(mul(input, beta), mul(sum(bmm(batch1, batch2), 0), alpha))


@operation("bilinear", method=False)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Any = None) -> Tensor:
    """``x₁ᵀ W x₂`` for each matrix of the weight."""
    left, right, matrices = (as_tensor(one).node.shape for one in (input1, input2, weight))
    if not left or not right or len(matrices) != 3:
        raise ShapeError("bilinear takes inputs with axes, and a matrix for each output",
                         location=here())  # fmt: skip
    sizes = [*zip(left[:-1], right[:-1], strict=False), (left[-1], matrices[1]),
             (right[-1], matrices[2])]  # fmt: skip
    if len(left) != len(right) or any(one != other for one, other in sizes):
        raise ShapeError("bilinear takes inputs of the sizes of its matrices, and as many rows",
                         location=here(), equal=sizes)  # fmt: skip
    found = einsum("...i,kij,...j->...k", input1, weight, input2)
    return found if bias is None else add(found, bias)


@operation("chain_matmul", method=False)
def chain_matmul(*matrices: Any) -> Tensor:
    """The product of matrices."""
    found: Tensor = functools.reduce(matmul, matrices)
    return found


# -- statistics


@operation("cov")
def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    """The covariances of the rows."""
    if fweights is not None or aweights is not None:
        raise UnsupportedOpError("cov takes no weights", location=here())
    source = as_tensor(input)
    if source.ndim > 2 or not source.dtype.is_float:
        raise UnsupportedOpError("cov takes floats of one or two axes", location=here())
    rows = source.reshape(1, -1) if source.ndim < 2 else source
    less = sub(rows, mean(rows, 1, True))
    found: Tensor = div(matmul(less, less.t()), rows.shape[1] - correction).squeeze()
    return found


@operation("corrcoef")
def corrcoef(input: Any) -> Tensor:
    """The covariances of the rows over their standard deviations."""
    found = cov(input)
    if not found.ndim:
        return div(found, found)
    size = elementwise("sqrt", found.diagonal())
    return clamp(div(div(found, size.unsqueeze(1)), size.unsqueeze(0)), -1, 1)


# -- medians: the lower of the two middle elements, as in torch

_NOT_GIVEN = object()


def _median(name: str, *, skipping: bool) -> Callable[..., Any]:
    """A row with NaN has NaN for its median; ``skipping`` leaves NaN out instead."""

    def call(input: Any, dim: Any = _NOT_GIVEN, keepdim: Any = _NOT_GIVEN) -> Any:
        source = as_tensor(input)
        if source.dtype == bool_:
            raise DTypeError(f"{name} does not take bools", location=here())
        if dim is keepdim is _NOT_GIVEN:
            return _of_all(name, source, skipping)
        if not isinstance(dim, int):
            raise OperationTypeError(f"{name}() {_wrong(dim)}", location=here())
        if not source.ndim:
            return Sorted(fresh(source.node), fresh(current().constant(0, int64)))
        axis = axis_of(dim, source.ndim)
        if not current().truth(source.node.shape[axis], ">", 0):
            raise ShapeError(
                f"{name}(): Expected reduction dim {axis} to have non-zero size.", location=here()
            )
        kept = keepdim is not _NOT_GIVEN and bool(keepdim)
        places = _places(source, axis, skipping)
        found = (gather(source, axis, places), places)
        return Sorted(*(part if kept else part.squeeze(axis) for part in found))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "Of all elements; along one axis with the places."
    return call


def _wrong(dim: Any) -> str:
    """What is wrong with an axis that is no int; what keepdim says needs one."""
    if dim is _NOT_GIVEN:
        return 'missing 1 required positional arguments: "dim"'
    return f"argument 'dim' must be int, not {type(dim).__name__}"


def _places(source: Tensor, axis: int, skipping: bool) -> Tensor:
    """Where the median of each row is; the axis stays with size 1."""
    order = argsort(source, axis)
    if not skipping:
        middle = share(order, Slice(axis, (source.node.shape[axis] - 1) // 2, 1, Dim.of(1)))
        if not source.dtype.is_float:
            return middle
        odd = isnan(source)
        return where(any_(odd, axis, True), argmax(converted(odd, int64), axis, True), middle)
    counted = sum(logical_not(isnan(source)), axis, True)  # NaN comes last
    return gather(order, axis, clamp(floor_divide(sub(counted, 1), 2), 0))


def _of_all(name: str, source: Tensor, skipping: bool) -> Tensor:
    """The median of all elements; those that are equal to it share its gradient."""
    flat = source.flatten()
    if not current().truth(flat.node.shape[0], ">", 0):
        if not source.dtype.is_float:
            raise ShapeError(
                f"{name}(): an empty tensor of integers has no median", location=here()
            )
        return filled(float("nan"), (), source.dtype)
    value = gather(flat, 0, _places(flat, 0, skipping))
    if not source.dtype.is_float:
        return value.squeeze(0)  # type: ignore[no-any-return]
    alike = amax(where(elementwise("eq", flat, value), flat, float("-inf")))
    return where(isnan(value.squeeze(0)), value.squeeze(0), alike)


median = operation("median")(_median("median", skipping=False))
nanmedian = operation("nanmedian")(_median("nanmedian", skipping=True))
