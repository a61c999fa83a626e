"""Reductions over axes: sums, means, extrema, norms, variances.

In: tensors, axes, keepdim.  Out: tensors; for ``max`` and ``min`` along an axis, pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from symgrad.errors import ShapeError, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.dtypes import as_dtype
from symgrad.frontend.functions.arithmetic import add, div, mul, power, sub
from symgrad.frontend.functions.casting import converted
from symgrad.frontend.functions.comparisons import as_bool, isfinite, where
from symgrad.frontend.functions.mathematics import absolute, maximum, minimum, square
from symgrad.frontend.functions.movement import axes_of, axis_of, shape_of
from symgrad.frontend.kinds import OperationTypeError, refused
from symgrad.frontend.lift import as_tensor, broadcast_axes, elementwise, is_operand
from symgrad.frontend.session import current
from symgrad.frontend.sizes import Shape, as_size
from symgrad.frontend.table import operation
from symgrad.frontend.tensor import SelectedTensor, SymbolicTensor, fresh
from symgrad.ir.dim import Dim, product
from symgrad.ir.dtype import DType, bool_, int64, uint8
from symgrad.ir.graph import Node

Tensor = SymbolicTensor


class Extremum(NamedTuple):
    """What ``max`` and ``min`` along an axis return."""

    values: Any
    indices: Any


def reduce(op: str, node: Node, dim: Any, keepdim: bool = False) -> Node:
    """The op over the axes ``dim`` (None: all), which stay with size 1 if ``keepdim``."""
    axes = axes_of(dim, node.rank)
    session = current()
    result = session.apply(op, node, axes=axes) if axes else node
    if not keepdim:
        return result
    kept = tuple(Dim.of(1) if axis in axes else size for axis, size in enumerate(node.shape))
    return session.reshape(result, kept)


def accumulated(node: Node, dtype: Any, compute: Callable[[Node], Node]) -> Node:
    """A sum or product in ``dtype``; by default in int64 for integers and bools.

    Whatever is not float is added up in int64 and reduced to the range of ``dtype`` then.
    """
    default = node.dtype if node.dtype.is_float else int64
    wanted: DType = as_dtype(dtype) if dtype is not None else default
    session, given = current(), current().cast(node, wanted)
    found = compute(given if wanted.is_float else session.cast(given, int64))
    return session.cast(found, wanted)


def taken(input: SelectedTensor, dim: Any) -> tuple[tuple[int, ...], bool]:
    """The axes of the whole that axes of selected elements are; is theirs among them?"""
    found: list[int] = []
    own = input.start in axes_of(dim, input.rank)
    for axis in axes_of(dim, input.rank):
        if axis == input.start:
            found.extend(range(axis, axis + input.mask.rank))
        else:
            found.append(axis if axis < input.start else axis + input.mask.rank - 1)
    return tuple(found), own


def _sum_of_selected(input: SelectedTensor, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    """The sum of what a mask selects; over other axes than theirs, it stays selected."""
    axes, own = taken(input, dim)
    if own:
        found = accumulated(input.or_else(0), dtype, lambda one: _reduced("sum", one, axes))
        if not keepdim:
            return fresh(found)
        ones = axes_of(dim, input.rank)
        rest = iter(found.shape)
        kept = [Dim.of(1) if axis in ones else next(rest) for axis in range(input.rank)]
        return fresh(current().reshape(found, tuple(kept)))
    total = accumulated(input.whole, dtype, lambda one: reduce("sum", one, axes, keepdim))
    gone = () if keepdim else [axis for axis in axes if axis < input.start]
    return SelectedTensor(total, input.mask, input.start - len(gone))


def _reduced(op: str, node: Node, axes: tuple[int, ...]) -> Node:
    return current().apply(op, node, axes=axes) if axes else node


def _mean_of_selected(input: SelectedTensor, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    """The mean of what a mask selects; of nothing, it is undefined."""
    kind = input.dtype if dtype is None else as_dtype(dtype)
    if not kind.is_float:
        raise _mean_of_integers()
    axes, own = taken(input, dim)
    mask = range(input.start, input.start + input.mask.rank)
    number: Any = as_size(
        product([input.whole.shape[axis] for axis in axes if not (own and axis in mask)])
    )
    if own:
        count_of = fresh(reduce("sum", current().cast(input.mask, kind), None))
        number = mul(count_of, number)
    return div(_sum_of_selected(input, dim, keepdim, dtype), number)


def _mean_of_integers() -> UnsupportedOpError:
    return UnsupportedOpError(
        "the mean of integers is not defined", location=here(), hint="use .float().mean()"
    )


@operation("sum")
def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum over axes (all by default)."""
    if isinstance(input, SelectedTensor):
        return _sum_of_selected(input, dim, keepdim, dtype)
    node = as_tensor(input).node
    found = accumulated(node, dtype, lambda one: reduce("sum", one, dim, keepdim))
    return fresh(found, settled=True)


@operation("prod")
def prod(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The product over axes (all by default)."""
    node = as_tensor(input).node
    found = accumulated(node, dtype, lambda one: reduce("prod", one, dim, keepdim))
    return fresh(found, settled=True)


@operation("sum_to_size", function=False)
def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """The sum over the axes in which the shape ``size`` broadcasts to this one."""
    node, wanted = input.node, shape_of(size)
    axes = broadcast_axes(wanted, node.shape)
    if axes is None:
        raise ShapeError(
            f"shape {list(input.shape)} cannot be summed to {list(Shape.of(wanted))}",
            location=here(),
        )
    if not axes and wanted == node.shape and wanted:
        return input
    summed = current().apply("sum", node, axes=axes) if axes else node
    return fresh(current().reshape(summed, wanted))


def count(node: Node, dim: Any) -> Any:
    """The number of elements that a reduction over ``dim`` takes together."""
    return as_size(product([node.shape[axis] for axis in axes_of(dim, node.rank)]))


@operation("mean")
def mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean over axes (all by default)."""
    if isinstance(input, SelectedTensor):
        return _mean_of_selected(input, dim, keepdim, dtype)
    source = as_tensor(input)
    node = source.node if dtype is None else current().cast(source.node, as_dtype(dtype))
    if not node.dtype.is_float:
        raise _mean_of_integers()
    return div(fresh(reduce("sum", node, dim, keepdim), settled=True), count(node, dim))


@operation("var")
def var(
    input: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *,
    correction: Any = None,
) -> Tensor:  # fmt: skip
    """The variance over axes, divided by the number of elements less ``correction`` (1)."""
    if isinstance(dim, bool):  # var(False) means unbiased=False
        dim, unbiased = None, dim
    source = as_tensor(input)
    correction = (1 if unbiased else 0) if correction is None else correction
    centred = sub(source, mean(source, dim, True))
    total = sum(square(centred), dim, keepdim)
    number = count(source.node, dim) - correction
    return div(total, max(number, 0) if isinstance(number, (int, float)) else number)


@operation("std")
def std(
    input: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *,
    correction: Any = None,
) -> Tensor:  # fmt: skip
    """The square root of the variance."""
    return elementwise("root", var(input, dim, unbiased, keepdim, correction=correction))


@operation("var_mean")
def var_mean(input: Any, dim: Any = None, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """The variance and the mean."""
    keep = bool(kwargs.get("keepdim", args[1] if len(args) > 1 else False))
    return var(input, dim, *args, **kwargs), mean(input, dim, keep)


@operation("std_mean")
def std_mean(input: Any, dim: Any = None, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean."""
    spread, centre = var_mean(input, dim, *args, **kwargs)
    return elementwise("root", spread), centre


# -- extrema


def _extreme(op: str, node: Node, dim: Any, keepdim: bool) -> Node:
    """The op over axes that have elements.  Raises ShapeError where one has none."""
    _check_elements(op, node, dim)
    if node.dtype == bool_:
        op = {"amax": "any", "amin": "all"}[op]
    return reduce(op, node, dim, keepdim)


def _check_elements(op: str, node: Node, dim: Any) -> None:
    session = current()
    for axis in axes_of(dim, node.rank):
        if not session.truth(node.shape[axis], ">=", 1):
            raise ShapeError(
                f"{op} over axis {axis} of a tensor of shape {list(Shape.of(node.shape))}: there "
                "is no element to choose", location=here(),
            )  # fmt: skip


@operation("amax")
def amax(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The greatest element over axes; ties share its gradient."""
    return fresh(_extreme("amax", as_tensor(input).node, dim, keepdim), settled=True)


@operation("amin")
def amin(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The least element over axes; ties share its gradient."""
    return fresh(_extreme("amin", as_tensor(input).node, dim, keepdim), settled=True)


@operation("aminmax")
def aminmax(input: Any, *, dim: Any = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The least and the greatest element."""
    return amin(input, dim, keepdim), amax(input, dim, keepdim)


def _extremum(
    op: str, arg: str, pairwise: Callable[[Any, Any], Tensor]
) -> Callable[..., Any]:  # fmt: skip
    def call(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        second = other if other is not None else dim if isinstance(dim, Tensor) else None
        if second is not None:
            return pairwise(input, second)
        node = as_tensor(input).node
        if dim is None:
            return fresh(_extreme(op, node, None, keepdim))
        if not isinstance(dim, int):
            raise OperationTypeError(
                f"{op[1:]}(): argument 'dim' must be int, not {type(dim).__name__}",
                location=here(), hint=f"use {op} for several axes",
            )  # fmt: skip
        whole = current().cast(node, int64) if node.dtype == bool_ else node
        place = fresh(_position(arg, whole, dim, keepdim))
        found = reduce(op[1:], whole, dim, keepdim) if node.rank else whole
        return Extremum(fresh(current().cast(found, node.dtype)), place)

    call.__name__ = call.__qualname__ = op[1:]
    call.__doc__ = "Of all elements; along one axis with the positions; or of two tensors."
    return call


def _position(op: str, node: Node, dim: Any, keepdim: bool) -> Node:
    session = current()
    _check_elements(op, node, dim)
    if dim is None:
        flat = session.reshape(node, (product(node.shape),))
        found = session.apply(op, flat, axes=(0,))
        return session.reshape(found, (Dim.of(1),) * node.rank) if keepdim else found
    axis = axis_of(dim, node.rank)
    if not node.rank:
        return session.constant(0, int64)
    return reduce(op, node, axis, keepdim)


operation("max")(_extremum("amax", "argmax", maximum))
operation("min")(_extremum("amin", "argmin", minimum))


@operation("argmax")
def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the greatest element is: the first of them."""
    return fresh(_position("argmax", as_tensor(input).node, dim, keepdim))


@operation("argmin")
def argmin(input: Any, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the least element is: the first of them."""
    return fresh(_position("argmin", as_tensor(input).node, dim, keepdim))


def _truth_of_selected(op: str, input: SelectedTensor, dim: Any) -> Tensor:
    """Of all that a mask selects; what it leaves out changes nothing."""
    if dim is not None:
        raise input.unshaped()
    session, mask, found = current(), input.whole_mask, as_bool(input.whole)
    if op == "any":
        return fresh(reduce("any", session.apply("logical_and", mask, found), None))
    left_out = session.apply("logical_not", mask)
    return fresh(reduce("all", session.apply("logical_or", left_out, found), None))


def _truth(op: str, input: Any, dim: Any, keepdim: bool) -> Tensor:
    """A bool; of uint8 a uint8, and over no axes each element by itself, as in torch."""
    if isinstance(input, SelectedTensor):
        return _truth_of_selected(op, input, dim)
    node = as_tensor(input).node
    nothing = isinstance(dim, (tuple, list)) and not dim
    found = as_bool(node) if nothing else reduce(op, as_bool(node), dim, keepdim)
    return fresh(current().cast(found, node.dtype) if node.dtype == uint8 else found)


@operation("any")
def any_(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Is an element true?"""
    return _truth("any", input, dim, keepdim)


@operation("all")
def all_(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Are all elements true?"""
    return _truth("all", input, dim, keepdim)


@operation("count_nonzero")
def count_nonzero(input: Any, dim: Any = None) -> Tensor:
    """The number of elements that are not 0."""
    return fresh(reduce("sum", current().cast(as_bool(as_tensor(input).node), int64), dim))


# -- norms


@operation("norm")
def norm(
    input: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The p-norm over axes (all by default), all entries taken as one vector, in ``dtype``."""
    source = as_tensor(input) if dtype is None else converted(as_tensor(input), as_dtype(dtype))
    if not is_operand(p):
        if not isinstance(p, str) and p is not None:
            raise refused("norm", "p", "Number", p)
        if p not in ("fro", None):
            raise UnsupportedOpError(f"there is no norm of order {p!r}", location=here())
        p = 2
    if p == 2:
        return elementwise("root", sum(square(source), dim, keepdim), floats=True)
    size = absolute(source)
    if p == float("inf"):
        return amax(size, dim, keepdim)
    if p == float("-inf"):
        return amin(size, dim, keepdim)
    if p == 0:
        counted = where(elementwise("ne", source, 0), 1.0, mul(source, 0.0))
        return sum(counted, dim, keepdim)
    if p == 1:
        return sum(size, dim, keepdim)
    powers = power(size, p) if p > 1 else _flat_power(size, p)
    return _flat_power(sum(powers, dim, keepdim), 1.0 / p)


def _flat_power(base: Tensor, exponent: float) -> Tensor:
    """``base ** exponent`` of what is not negative; its derivative at 0 is 0, as in torch."""
    zero = elementwise("eq", base, 0.0)
    at_zero = 0.0 if exponent > 0 else float("inf")
    return where(zero, at_zero, power(where(zero, 1.0, base), exponent))


def shift(input: Any, dim: Any) -> Tensor:
    """The greatest element over axes, by which powers are shifted: no gradient goes that way."""
    return fresh(current().apply("shift", reduce("amax", as_tensor(input).node, dim, True)))


def finite_shift(input: Any, dim: Any) -> Tensor:
    """The same, the nearest number where that is infinite: what is finite is far below it."""
    high = shift(input, dim)
    if not high.dtype.is_float:
        return high
    most = float(np.finfo(high.dtype.name).max)
    up, down = (fresh(current().constant(end, high.dtype)) for end in (most, -most))
    return where(isfinite(high), high, where(elementwise("gt", high, 0.0), up, down))


@operation("logsumexp")
def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Tensor:
    """``log(sum(exp(x)))``, shifted by the greatest element where that is finite."""
    if dim is None or (isinstance(dim, (list, tuple)) and not dim and as_tensor(input).ndim):
        raise refused("logsumexp", "dim", "tuple of ints", dim)
    high = finite_shift(input, dim)
    total = elementwise("log", sum(elementwise("exp", sub(input, high)), dim, True))
    result = add(total, high)
    if keepdim:
        return result
    axes = axes_of(dim, result.ndim)
    shape = [size for axis, size in enumerate(result.node.shape) if axis not in axes]
    return fresh(current().reshape(result.node, shape))


@operation("dist", method=True)
def dist(input: Tensor, other: Tensor, p: Any = 2) -> Tensor:
    """The p-norm of the difference."""
    return norm(sub(input, other), p)


@operation("trace")
def trace(input: Any) -> Tensor:
    """The sum of a matrix's diagonal."""
    return sum(as_tensor(input).diagonal())
