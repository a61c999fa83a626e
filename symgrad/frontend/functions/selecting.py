"""Where a mask holds, as places: ``nonzero``; and what a mask selects, in other shapes.

In: masks, and what they select.  Out: places, which are what the mask selects of the indices of its
axes; reading and writing at them is selecting by the mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.errors import DTypeError, ShapeError, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.constants import known_values
from symgrad.frontend.dtypes import as_dtype
from symgrad.frontend.functions.comparisons import as_bool, check_mask
from symgrad.frontend.functions.movement import (
    axes_of,
    axis_of,
    listed,
    select_steps,
    sizes_of,
)
from symgrad.frontend.lift import array_node, as_tensor
from symgrad.frontend.questions import questions
from symgrad.frontend.session import current
from symgrad.frontend.sizes import Shape, as_size, is_size
from symgrad.frontend.table import functions, of_selected, operation
from symgrad.frontend.tensor import (
    SelectedShapeError,
    SelectedTensor,
    SymbolicTensor,
    TensorNumber,
    fresh,
    own_names,
)
from symgrad.frontend.views import concatenate, iota_along, permute
from symgrad.ir.dim import Dim, product
from symgrad.ir.dtype import bool_, int64

Tensor = SymbolicTensor


@operation("nonzero")
def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """The places where it is not 0, one row for each; or one tensor for each axis."""
    mask = as_bool(as_tensor(input).node)
    if not mask.rank:
        raise UnsupportedOpError("nonzero() of a tensor without axes", location=here())
    known = known_values(mask)
    if known is not None:
        places = [array_node(current(), column, int64) for column in np.nonzero(known)]
        if as_tuple:
            return tuple(map(fresh, places))
        rows = [current().reshape(one, (*one.shape, Dim.of(1))) for one in places]
        return fresh(concatenate(current(), rows, 1))
    columns = [iota_along(current(), mask.shape, axis) for axis in range(mask.rank)]
    if as_tuple:
        return tuple(SelectedTensor(column, mask, 0) for column in columns)
    lined = [current().reshape(column, (*mask.shape, Dim.of(1))) for column in columns]
    found = SelectedTensor(concatenate(current(), lined, mask.rank), mask, 0)
    own_names(found)[_COLUMNS] = tuple(columns)
    return found


@operation("argwhere")
def argwhere(input: Any) -> Any:
    """The places where it is not 0, one row for each."""
    return nonzero(input)


@operation("masked_scatter", inplace=True)
def masked_scatter(input: Any, mask: Tensor, source: Any) -> Tensor:
    """The elements of another tensor, in a row, where the mask is set.

    What the same mask selects goes to its own places.  Another tensor has as many elements as the
    tensor, or more.
    """
    check_mask("masked_scatter", mask)
    node, session = as_tensor(input).node, current()
    chosen = session.cast(as_tensor(mask).node, bool_)
    given = as_tensor(source)
    if given.dtype != node.dtype:
        raise DTypeError(
            f"masked_scatter: the source is of {given.dtype}, not of {node.dtype}", location=here()
        )
    if isinstance(given, SelectedTensor) and given.whole.rank == given.mask.rank:
        if given.mask is chosen and chosen.shape == node.shape:
            return fresh(session.apply("where", given.mask, given.whole, node))
        raise SelectedShapeError(
            "masked_scatter takes what the same mask selects, or a whole tensor", location=here(),
            **given.size_to_know(),
        )  # fmt: skip
    total, there = product(node.shape), product(given.node.shape)
    if not session.facts.decide(there, ">=", total):
        raise UnsupportedOpError(
            "masked_scatter takes a source that has as many elements as the tensor",
            location=here(), hint="x[mask] = y[mask] and sg.where(mask, y, x) write those that "
            "stand there",
        )  # fmt: skip
    wide = fresh(session.expand(chosen, node.shape))
    order = functions.cumsum(wide.reshape(as_size(total)).to(int64), 0) - 1
    found = given.reshape(as_size(there))[functions.clamp(order, 0, as_size(there - 1))]
    return functions.where(wide, found.reshape(*Shape.of(node.shape)), input)  # type: ignore[no-any-return]


# -- places


def column_of(places: SelectedTensor) -> int | None:
    """The axis of the mask whose indices these are; None for anything else."""
    session, mask = current(), places.mask
    if places.whole.rank != mask.rank:
        return None
    axes = range(mask.rank)
    return next((k for k in axes if iota_along(session, mask.shape, k) is places.whole), None)


def as_masks(items: Sequence[Any]) -> list[Any]:
    """The items of a key with the mask itself for the places of all of its axes, in order.

    Raises UnsupportedOpError for other places that values decide.
    """
    found: list[Any] = []
    left = list(items)
    while left:
        first = left[0]
        if not isinstance(first, SelectedTensor):
            found.append(left.pop(0))
            continue
        run = left[: first.mask.rank]
        for axis, one in enumerate(run):
            own = isinstance(one, SelectedTensor) and one.mask is first.mask
            if not own or column_of(one) != axis:
                raise _not_places(first)
        if len(run) < first.mask.rank:
            raise _not_places(first)
        found.append(fresh(first.mask))
        del left[: len(run)]
    return found


def at_column(tensor: Tensor, key: Any) -> SelectedTensor | None:
    """What an axis holds at the places along one axis of a mask of several; else None.

    It is what the mask selects of the tensor without the other axes of the mask.
    """
    items = key if isinstance(key, tuple) else (key,)
    if not items or not isinstance(items[-1], SelectedTensor) or items[-1].mask.rank < 2:
        return None
    places, axis = items[-1], len(items) - 1
    own, node = column_of(places), as_tensor(tensor).node
    if own is None or any(not isinstance(one, slice) or one != slice(None) for one in items[:-1]):
        return None
    shape, mask, session = node.shape, places.mask, current()
    if axis >= node.rank:
        return None
    if shape[axis] != mask.shape[own]:
        raise ShapeError(
            f"places along an axis of size {mask.shape[own]} in an axis of size {shape[axis]}",
            location=here(), equal=[(shape[axis], mask.shape[own])],
        )  # fmt: skip
    ones = [size if place == own else Dim.of(1) for place, size in enumerate(mask.shape)]
    lined = session.reshape(node, (*shape[:axis], *ones, *shape[axis + 1 :]))
    whole = session.expand(lined, (*shape[:axis], *mask.shape, *shape[axis + 1 :]))
    return SelectedTensor(whole, mask, axis)


def added_at_column(tensor: Tensor, axis: int, places: SelectedTensor, given: Any) -> Tensor | None:
    """A tensor with what the mask selects added at the places along one of its axes; else None."""
    own, mask = column_of(places), places.mask
    fits = isinstance(given, SelectedTensor) and given.mask is mask and given.start == axis
    if own is None or mask.rank < 2 or not fits or tensor.node.shape[axis] != mask.shape[own]:
        return None
    zero = current().expand(current().constant(0, given.dtype), given.whole.shape)
    counted = current().apply("where", given.whole_mask, given.whole, zero)
    axes = tuple(axis + place for place in range(mask.rank) if place != own)
    total = current().apply("sum", counted, axes=axes)
    return fresh(current().apply("add", tensor.node, current().expand(total, tensor.node.shape)))


def _not_places(places: SelectedTensor) -> SelectedShapeError:
    return SelectedShapeError(
        "the index depends on values in a way that is no mask", location=here(),
        **places.size_to_know(),
        hint="x[mask], and x[mask.nonzero(as_tuple=True)], select by a mask; for anything else "
        "keep the whole tensor and choose with sg.where",
    )  # fmt: skip


_COLUMNS = "_columns"
"""The attribute of rows of places that keeps the places along each axis."""


# -- other shapes of what a mask selects


def depends(source: SelectedTensor) -> SelectedShapeError:
    """The error for what needs to know how many elements a mask selects."""
    return SelectedShapeError(
        "the number of elements that a mask selects depends on values", location=here(),
        **source.size_to_know(),
        hint="x[mask] can be summed over them, and assigned under the same mask",
    )  # fmt: skip


def _other(source: SelectedTensor, axis: int) -> int:
    """The axis of the whole that an axis of selected elements is.  Raises UnsupportedOpError."""
    if axis == source.start:
        raise depends(source)
    return axis if axis < source.start else axis + source.mask.rank - 1


def _reshaped(source: SelectedTensor, shape: Sequence[Dim], start: int) -> SelectedTensor:
    whole = source.whole
    while whole.op == "reshape":
        whole = whole.args[0]
    return SelectedTensor(current().reshape(whole, tuple(shape)), source.mask, start)


@of_selected("squeeze")
def _squeeze(source: SelectedTensor, dim: Any = None) -> SelectedTensor:
    """Without axes of size 1; that theirs has another size is printed where it matters."""
    axes = axes_of(dim, source.rank)
    if source.start in axes:
        known = questions()
        if known is None:
            raise depends(source)
        known.assume("a mask does not select exactly one element", here())
    shape, session = source.whole.shape, current()
    others = [_other(source, axis) for axis in axes if axis != source.start]
    gone = [axis for axis in others if session.truth(shape[axis], "==", 1)]
    kept = [size for axis, size in enumerate(shape) if axis not in gone]
    return _reshaped(source, kept, source.start - sum(axis < source.start for axis in gone))


@of_selected("unsqueeze", "expand_dims")
def _unsqueeze(source: SelectedTensor, dim: int) -> SelectedTensor:
    """With another axis of size 1."""
    axis = axis_of(dim, source.rank + 1)
    before = axis <= source.start
    at, shape = axis if before else axis + source.mask.rank - 1, source.whole.shape
    return _reshaped(source, (*shape[:at], Dim.of(1), *shape[at:]), source.start + before)


@of_selected("flatten", "ravel")
def _flatten(source: SelectedTensor, start_dim: int = 0, end_dim: int = -1) -> SelectedTensor:
    """One axis, of all that is selected: in the order of the whole."""
    first, last = axis_of(start_dim, source.rank), axis_of(end_dim, source.rank)
    if first == last:
        return source
    if first or last != source.rank - 1:
        raise depends(source)
    shape, mask = source.whole.shape, source.mask
    behind = shape[source.start + mask.rank :]
    if product((*shape[: source.start], *behind)) == 1:
        return _reshaped(source, mask.shape, 0)
    return SelectedTensor(source.whole, source.whole_mask, 0)


@of_selected("view", "reshape")
def _view(source: SelectedTensor, *shape: Any) -> SelectedTensor:
    """One axis of all that is selected; other shapes have a size that depends on values."""
    sizes = list(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    if len(sizes) != 1 or type(sizes[0]) is not int or sizes[0] != -1:
        raise depends(source)
    return _flatten(source)


@of_selected("select")
def _select(source: SelectedTensor, dim: int, index: Any) -> SelectedTensor:
    """What another axis than theirs holds at one index."""
    axis = axis_of(dim, source.rank)
    at, columns = _other(source, axis), own_names(source).get(_COLUMNS)
    shape = source.whole.shape
    if columns is not None and type(index) is int and -len(columns) <= index < len(columns):
        return SelectedTensor(columns[index], source.mask, 0)
    node = source.whole
    for step in select_steps(shape, at, index):
        node = step.read(current(), node)
    return SelectedTensor(node, source.mask, source.start - (axis < source.start))


@of_selected("unbind")
def _unbind(source: SelectedTensor, dim: int = 0) -> tuple[SelectedTensor, ...]:
    """What another axis than theirs holds at each index."""
    axis = axis_of(dim, source.rank)
    size = as_size(source.whole.shape[_other(source, axis)])
    if not isinstance(size, int):
        raise depends(source)
    return tuple(_select(source, axis, index) for index in range(size))


def _permuted(source: SelectedTensor, order: Sequence[int]) -> SelectedTensor:
    """The axes in another order; those of the whole under the mask stay together."""
    under = range(source.start, source.start + source.mask.rank)
    whole = [
        one for axis in order
        for one in (under if axis == source.start else (_other(source, axis),))
    ]  # fmt: skip
    start = whole.index(source.start)
    found = SelectedTensor(permute(current(), source.whole, tuple(whole)), source.mask, start)
    own_names(found)[_COLUMNS] = own_names(source).get(_COLUMNS)
    return found


@of_selected("t")
def _turned(source: SelectedTensor) -> SelectedTensor:
    """The axes of two exchanged."""
    if source.rank > 2:
        raise depends(source)
    return _permuted(source, tuple(reversed(range(source.rank))))


@of_selected("transpose", "swapaxes", "swapdims")
def _transposed(source: SelectedTensor, dim0: int, dim1: int) -> SelectedTensor:
    """Two axes exchanged."""
    first, second = axis_of(dim0, source.rank), axis_of(dim1, source.rank)
    order = list(range(source.rank))
    order[first], order[second] = second, first
    return _permuted(source, order)


@of_selected("adjoint")
def _adjoint(source: SelectedTensor) -> SelectedTensor:
    """The last two axes exchanged."""
    return _transposed(source, -2, -1)


@of_selected("permute")
def _reordered(source: SelectedTensor, *dims: Any) -> SelectedTensor:
    """The axes in another order."""
    order = [axis_of(axis, source.rank) for axis in listed(sizes_of(dims))]
    if sorted(order) != list(range(source.rank)):
        raise depends(source)
    return _permuted(source, order)


@of_selected("__getitem__")
def _getitem(source: SelectedTensor, key: Any) -> SelectedTensor:
    """An index, or all, of each axis."""
    found, axis = source, 0
    for item in key if isinstance(key, tuple) else (key,):
        if item is None:
            found, axis = _unsqueeze(found, axis), axis + 1
        elif isinstance(item, slice) and item == slice(None):
            axis += 1
        elif item is Ellipsis and isinstance(key, tuple):
            axis = found.rank - (len(key) - 1 - key.index(item))
        elif is_size(item) and axis != found.start:
            found = _select(found, axis, item)
        else:
            raise depends(source)
    return found


@of_selected("zeros_like")
def _zeros_like(source: SelectedTensor, *, dtype: Any = None, **ignored: Any) -> SelectedTensor:
    """Zeros, selected by the same mask."""
    return _filled(source, 0, dtype)


@of_selected("ones_like")
def _ones_like(source: SelectedTensor, *, dtype: Any = None, **ignored: Any) -> SelectedTensor:
    """Ones, selected by the same mask."""
    return _filled(source, 1, dtype)


def _filled(source: SelectedTensor, value: int, dtype: Any) -> SelectedTensor:
    session, kind = current(), source.dtype if dtype is None else as_dtype(dtype)
    whole = session.expand(session.constant(value, kind), source.whole.shape)
    return SelectedTensor(whole, source.mask, source.start)


# -- how many they are


def _count(source: SelectedTensor) -> Any:
    """How many elements are selected: a number of which Python knows nothing."""
    session = current()
    mask = session.cast(source.mask, int64)
    total = session.apply("sum", mask, axes=tuple(range(mask.rank))) if mask.rank else mask
    return TensorNumber.of(fresh(total))


def _shape(source: SelectedTensor) -> Shape:
    """Its sizes."""
    sizes, end = source.whole.shape, source.start + source.mask.rank
    before, behind = (map(as_size, part) for part in (sizes[: source.start], sizes[end:]))
    return Shape((*before, _count(source), *behind))


def _numel(source: SelectedTensor) -> Any:
    """The number of its elements."""
    sizes, end = source.whole.shape, source.start + source.mask.rank
    others = product((*sizes[: source.start], *sizes[end:]))
    return _count(source) if others == 1 else _count(source) * as_size(others)


def _leading(source: SelectedTensor, wanted: str) -> Any:
    """The size of the first axis.  Raises UnsupportedOpError where it is theirs."""
    return as_size((source.whole if source.start else source.packed().node).shape[0])


setattr(SelectedTensor, "_leading", _leading)  # noqa: B010
setattr(SelectedTensor, "shape", property(_shape))  # noqa: B010
for _name in ("numel", "nelement"):
    setattr(SelectedTensor, _name, _numel)
