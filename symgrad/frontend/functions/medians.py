"""Medians: the lower of two in the middle, as in torch.

In: tensors and axes.  Out: tensors; along an axis pairs of values and places.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symgrad.errors import DTypeError, ShapeError
from symgrad.frontend.functions.arithmetic import floor_divide, sub
from symgrad.frontend.functions.casting import converted
from symgrad.frontend.functions.comparisons import isnan, logical_not, where
from symgrad.frontend.functions.creation import filled
from symgrad.frontend.functions.gathering import gather
from symgrad.frontend.functions.mathematics import clamp
from symgrad.frontend.functions.movement import axis_of, share
from symgrad.frontend.functions.reductions import amax, any_, argmax, sum
from symgrad.frontend.functions.sorting import Sorted, argsort
from symgrad.frontend.lift import as_tensor, elementwise
from symgrad.frontend.session import current, here
from symgrad.frontend.table import OperationTypeError, operation
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.frontend.views import Slice
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import bool_, int64

Tensor = SymbolicTensor
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
            raise ShapeError(f"{name}(): no median of no integers", location=here())
        return filled(float("nan"), (), source.dtype)
    value = gather(flat, 0, _places(flat, 0, skipping))
    if not source.dtype.is_float:
        return value.squeeze(0)  # type: ignore[no-any-return]
    alike = amax(where(elementwise("eq", flat, value), flat, float("-inf")))
    return where(isnan(value.squeeze(0)), value.squeeze(0), alike)


median = operation("median")(_median("median", skipping=False))
nanmedian = operation("nanmedian")(_median("nanmedian", skipping=True))
