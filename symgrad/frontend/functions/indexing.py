"""``x[...]``, ``x[...] = v``, and the methods that write whole tensors: ``copy_``, ``index_put_``.

In: what stands in the brackets.  Out: views for slices and ints, copies for integer tensors, the
selected elements for a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symgrad.errors import DTypeError, ShapeError, UnsupportedOpError, counted
from symgrad.frontend.caller import here
from symgrad.frontend.constants import known_number
from symgrad.frontend.dtypes import check_fits
from symgrad.frontend.functions import scattering
from symgrad.frontend.functions.comparisons import check_mask
from symgrad.frontend.functions.movement import (
    axis_of,
    diagonal,
    select,
    select_steps,
    share,
    squeeze,
    t,
    transpose,
    unsqueeze,
)
from symgrad.frontend.functions.selecting import as_masks, at_column
from symgrad.frontend.lift import (
    array_node,
    as_index,
    as_node,
    as_tensor,
    broadcast_shapes,
    lined_up,
    not_selected,
)
from symgrad.frontend.questions import questions
from symgrad.frontend.session import Session, current
from symgrad.frontend.sizes import as_dim, is_size
from symgrad.frontend.table import operation, selecting
from symgrad.frontend.tensor import (
    TWIN,
    SelectedShapeError,
    SelectedTensor,
    SymbolicTensor,
    TensorNumber,
    fresh,
    own_names,
    packed,
)
from symgrad.frontend.views import Places, Reshape, Slice, Step, permute
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import bool_, int64, uint8
from symgrad.ir.graph import Node

Tensor = SymbolicTensor


@dataclass(frozen=True)
class Chosen:
    """Axes of a view that integer tensors index (``places``), or one run of them by a mask."""

    view: Tensor
    axes: tuple[int, ...]
    places: tuple[Node, ...] = ()
    mask: Node | None = None


def getitem(self: Tensor, key: Any) -> Tensor:
    """``x[key]``."""
    by_places = at_column(self, key)
    if by_places is not None:
        return by_places
    chosen = resolve(self, key)
    if chosen.mask is not None:
        return selected(chosen)
    if not chosen.places:
        return chosen.view
    if (shown := _view_at(chosen)) is not None:
        _ = shown.node  # which demands that the places are there
        return shown
    session, node = current(), chosen.view.node
    front = permute(session, node, _axes_first(chosen.axes, node.rank))
    found = session.apply("index", front, *chosen.places)
    rank = chosen.places[0].rank
    return fresh(permute(session, found, _places_back(chosen.axes, rank, found.rank)))


def setitem(self: Tensor, key: Any, value: Any) -> None:
    """``x[key] = value``, through to whatever ``x`` is a view of.  Raises DTypeError."""
    check_fits(value, self.dtype)
    chosen = resolve(self, key)
    if chosen.mask is not None:
        _set_masked(chosen, value)
    elif (shown := _view_at(chosen)) is not None:
        if not _is_same_view(shown, value):  # x[i] += 1 has written it already
            shown.write(as_node(value, shown.dtype), convert=True, trim=True)
    elif chosen.places:
        _set_places(chosen, value)
    else:
        chosen.view.write(as_node(value, chosen.view.dtype), convert=True, trim=True)


def _view_at(chosen: Chosen) -> Tensor | None:
    """The view that tensors without axes choose, which torch takes for numbers; None for others."""
    if not chosen.places or chosen.places[0].rank:
        return None
    return share(chosen.view, Places(chosen.axes, chosen.places))


def _is_same_view(one: Tensor, other: Any) -> bool:
    """Do both show the same elements of the same memory?"""
    return (
        isinstance(other, Tensor)
        and other.storage is one.storage
        and other.steps == one.steps
        and other.dtype == one.dtype
    )


setattr(SymbolicTensor, "__getitem__", selecting("__getitem__", getitem))  # noqa: B010
setattr(SymbolicTensor, "__setitem__", selecting("__setitem__", setitem))  # noqa: B010


def add_at(self: Tensor, key: Any, value: Any) -> None:
    """``x[key] += value``, where what is named twice is added twice."""
    chosen = resolve(self, key)
    if not chosen.places:
        setitem(self, key, getitem(self, key) + value)
    else:
        _set_places(chosen, value, accumulate=True)


@operation("masked_select")
def masked_select(input: Any, mask: Tensor) -> Tensor:
    """``x[mask]``."""
    check_mask("masked_select", mask)
    return getitem(input, mask)


# -- reading the key


def resolve(tensor: Tensor, key: Any) -> Chosen:
    """Apply slices, ints and None as views; say which axes tensors index."""
    items = as_masks(list(key) if isinstance(key, tuple) else [key])
    items = _with_ellipsis(tensor, [*map(_as_place, items)])
    view, axis = tensor, 0
    axes: list[int] = []
    places: list[Any] = []
    mask: Node | None = None
    for item in items:
        if item is None:
            shape = view.node.shape
            view = share(view, Reshape((*shape[:axis], Dim.of(1), *shape[axis:])))
            axis += 1
        elif isinstance(item, slice):
            view = share(view, *_slice_steps(view.node.shape, axis, item))
            axis += 1
        elif is_size(item):
            view = share(view, *select_steps(view.node.shape, axis, item))
        else:
            node = _index_node(view.node.shape[axis : axis + 1], item)
            if node.dtype == bool_:
                if mask is not None:
                    raise UnsupportedOpError(
                        "two masks cannot stand in one pair of brackets", location=here(),
                        hint="select with one mask after the other",
                    )  # fmt: skip
                mask = node
                axes.extend(range(axis, axis + node.rank))
                axis += node.rank
            else:
                axes.append(axis)
                if isinstance(item, Tensor):  # the negative entries of a list are counted already
                    node = scattering.from_the_end(node, view.node.shape[axis])
                places.append(node)
                axis += 1
    if mask is not None and places:
        raise UnsupportedOpError(
            "a mask and index tensors cannot stand in one pair of brackets", location=here(),
            hint="index twice: x[mask], then the rest",
        )  # fmt: skip
    shape = broadcast_shapes(*(node.shape for node in places)) if places else ()
    session = current()
    return Chosen(view, tuple(axes), tuple(session.expand(node, shape) for node in places), mask)


def _as_place(item: Any) -> Any:
    """The tensor that a whole number was read from, ``index[i].item()``: it is a place as well."""
    if not isinstance(item, TensorNumber) or not item.is_whole:
        return item
    node = item.node(int64)
    known = known_number(node)
    return fresh(node) if known is None else known


def _with_ellipsis(tensor: Tensor, items: list[Any]) -> list[Any]:
    """The key with full slices for the ellipsis, or behind, for every axis that it leaves out."""
    used = 0
    for item in items:
        if isinstance(item, str):
            node = tensor.known_node()
            named = [] if node is None or node.op != "input" else [node.attributes["name"]]
            raise ShapeError(
                f"a tensor cannot be indexed with {item!r}", location=here(), asked=named
            )
        if isinstance(item, (bool, np.bool_)):
            raise UnsupportedOpError("True and False are not supported as indices", location=here())
        if item is None or item is Ellipsis:
            continue
        is_mask = isinstance(item, Tensor) and item.dtype == bool_
        used += item.ndim if is_mask else 1
    missing = tensor.ndim - used
    if missing < 0:
        raise ShapeError(f"{used} indices for a tensor with {tensor.ndim} axes", location=here())
    at = next((place for place, item in enumerate(items) if item is Ellipsis), None)
    if at is None:
        return [*items, *[slice(None)] * missing]
    return [*items[:at], *[slice(None)] * missing, *items[at + 1 :]]


def _slice_steps(shape: tuple[Dim, ...], axis: int, item: slice) -> tuple[Step, ...]:
    """The step for ``start:stop:step``, as Python clips it.  Asks about sizes where it must."""
    step = 1 if item.step is None else item.step
    if not isinstance(step, int) or step < 1:
        raise UnsupportedOpError(
            f"a slice cannot have step {step}", location=here(), hint="flip() reverses an axis"
        )
    size = shape[axis]
    start, stop = _end(item.start, size, Dim.of(0)), _end(item.stop, size, size)
    if start == 0 and stop == size and step == 1:
        return ()
    length = (stop - start).shortened
    if not current().truth(length, ">=", 0):
        length = Dim.of(0)
    return (Slice(axis, start if length != 0 else Dim.of(0), step, -(-length // step)),)


def _end(value: Any, size: Dim, default: Dim) -> Dim:
    """One end of a slice, counted from the front and clipped to ``0..size``."""
    if value is None:
        return default
    place, session = as_dim(value), current()
    if session.truth(place, "<", 0):
        place = size + place
        return place if session.truth(place, ">=", 0) else Dim.of(0)
    return place if session.truth(place, "<=", size) else size


def _index_node(axis: tuple[Dim, ...], item: Any) -> Node:
    """An index tensor, or a list, range or array of ints: negative ones count from the end."""
    if isinstance(item, Tensor):
        node = item.node
    elif isinstance(item, (list, tuple, range, np.ndarray)):
        array = np.asarray(item)
        if array.dtype.kind not in "iub":
            raise ShapeError("indices must be integers", location=here())
        if array.dtype.kind != "b" and (array < 0).any():
            return _negative_entries(current(), axis[0], array)
        node = array_node(current(), array)
    else:
        raise ShapeError(f"a tensor cannot be indexed with {type(item).__name__}", location=here())
    return as_index(node, uint8, bool_)


def _negative_entries(session: Session, size: Dim, array: Any) -> Node:
    flat = [
        as_node(int(entry)) if entry >= 0 else session.size(size + int(entry), int64)
        for entry in array.reshape(-1)
    ]
    parts = [session.reshape(node, (1,)) for node in flat]
    joined = parts[0] if len(parts) == 1 else session.apply("concat", *parts, axis=0)
    return session.reshape(joined, array.shape)


# -- integer tensors


def _axes_first(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    return (*axes, *(axis for axis in range(rank) if axis not in axes))


def _places_back(axes: Sequence[int], places: int, rank: int) -> tuple[int, ...]:
    """The order that moves the axes of the places, now in front, to where torch puts them.

    That is where the indexed axes were when they are neighbours, else in front.
    """
    neighbours = list(axes) == list(range(axes[0], axes[0] + len(axes)))
    before = axes[0] if neighbours else 0
    rest = list(range(places, rank))
    return (*rest[:before], *range(places), *rest[before:])


def _set_places(chosen: Chosen, value: Any, *, accumulate: bool = False) -> None:
    session, view = current(), chosen.view
    order = _axes_first(chosen.axes, view.ndim)
    front = permute(session, view.node, order)
    rank = chosen.places[0].rank
    shape = (*chosen.places[0].shape, *front.shape[len(chosen.axes) :])
    back = _places_back(chosen.axes, rank, len(shape))
    given = as_node(value, view.dtype)
    if given.rank:
        shown = tuple(shape[axis] for axis in back)
        given = session.expand(given, broadcast_shapes(given.shape, shown))
        given = permute(session, given, tuple(back.index(axis) for axis in range(len(shape))))
    if accumulate:
        given = session.expand(given, shape)
        added = scattering.added_up(session, given, chosen.places, front.shape)
        result = session.apply("add", front, added)
    else:
        result = scattering.put(session, front, chosen.places, given)
    view.write(permute(session, result, tuple(order.index(axis) for axis in range(view.ndim))))


# -- masks


def selected(chosen: Chosen) -> SelectedTensor:
    """What a mask selects.  Raises ShapeError where it does not fit."""
    shape, mask = chosen.view.node.shape, chosen.mask
    assert mask is not None
    covered = tuple(shape[axis] for axis in chosen.axes)
    if mask.shape != covered:
        raise ShapeError(
            f"a mask of shape {list(map(str, mask.shape))} cannot select from axes of shape "
            f"{list(map(str, covered))}", location=here(),
            equal=zip(mask.shape, covered, strict=False) if mask.rank == len(covered) else (),
        )  # fmt: skip
    return SelectedTensor(chosen.view.node, mask, chosen.axes[0] if chosen.axes else 0)


def _set_masked(chosen: Chosen, value: Any) -> None:
    session, view, own = current(), chosen.view, selected(chosen)
    try:
        if isinstance(value, SelectedTensor):
            if value.mask is not own.mask or value.behind != own.behind:
                raise not_selected(own)
            given = session.cast(value.whole, view.dtype)
        else:
            given = as_node(lined_up(value, own), view.dtype)
        extra = max(given.rank - view.ndim, 0)
        if any(size != 1 for size in given.shape[:extra]):
            raise not_selected(own)
    except SelectedShapeError as error:
        whole = packed(own, error)
        whole.write(as_node(packed(value, error), view.dtype), convert=True, trim=True)
        view.write(own.whole)
        return
    given = session.reshape(given, given.shape[extra:])
    given = session.expand(given, view.node.shape)
    view.write(session.apply("where", own.whole_mask, given, view.node))


# -- whole tensors


@operation("copy_", function=False, elementwise=True)
def copy_(self: Tensor, source: Any, non_blocking: bool = False) -> Tensor:
    """Take over the elements of ``source``, broadcast and converted."""
    self.write(as_node(source, self.dtype), convert=True)
    return self


def _check_number(value: Any) -> None:
    """What fills a tensor has no axes.  Raises ShapeError."""
    rank = value.ndim if isinstance(value, (Tensor, np.ndarray)) else 0
    if rank:
        raise ShapeError(
            "fill_ only supports 0-dimension value tensor but got tensor with "
            f"{counted(rank, 'dimension')}", location=here(),
        )  # fmt: skip


@operation("fill_", function=False, elementwise=True)
def fill_(self: Tensor, value: Any) -> Tensor:
    """Take one number everywhere."""
    _check_number(value)
    check_fits(value, self.dtype)
    return copy_(self, value)


@operation("zero_", function=False, elementwise=True)
def zero_(self: Tensor) -> Tensor:
    """Take 0 everywhere."""
    return copy_(self, 0)


@operation("fill", function=False, elementwise=True)
def fill(self: Tensor, value: Any) -> Tensor:
    """A tensor of one number in the shape and dtype of this one."""
    _check_number(value)
    check_fits(value, self.dtype)
    return fresh(current().expand(as_node(value, self.dtype), self.node.shape))


@operation("fill_diagonal_", function=False)
def fill_diagonal_(self: Tensor, value: Any, wrap: bool = False) -> Tensor:
    """Take one number on the diagonal of a matrix."""
    if wrap or self.ndim != 2:
        raise UnsupportedOpError("fill_diagonal_ takes a matrix", location=here())
    fill_(self.diagonal(), value)
    return self


@operation("index_put", function=False)
def index_put(self: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    """A copy with ``values`` at the places that index tensors name."""
    copied = fresh(self.node)
    return index_put_(copied, indices, values, accumulate)


@operation("index_put_", function=False)
def index_put_(self: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    """Take ``values`` at the places that index tensors name."""
    kind = getattr(values, "dtype", self.dtype)
    if isinstance(values, Tensor) and kind != self.dtype:
        raise DTypeError(
            "Index put requires the source and destination dtypes match, got "
            f"{self.dtype.scalar_type} for the destination and {kind.scalar_type} for the source.",
            location=here(),
        )
    (add_at if accumulate else setitem)(self, tuple(indices), values)
    return self


def _scattered(name: str, part: Callable[..., Tensor]) -> None:
    """A copy of a tensor, with a part of it, which is a view, written."""

    def call(input: Any, src: Any, *args: Any, **kwargs: Any) -> Tensor:
        whole = fresh(as_tensor(input).node)
        view = part(whole, *args, **kwargs)
        given = as_node(src, whole.dtype)
        if given.shape != view.node.shape:
            raise ShapeError(
                f"{name}: expected src to have a size equal to the part of self", location=here(),
                equal=zip(given.shape, view.node.shape, strict=False),
            )  # fmt: skip
        view.write(given)
        return whole

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"A copy with ``src`` in place of ``{name.partition('_')[0]}``."
    operation(name)(call)


def _sliced(
    input: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Tensor:  # fmt: skip
    before = [slice(None)] * axis_of(dim, input.ndim)
    return resolve(input, (*before, slice(start, end, step))).view


_scattered("diagonal_scatter", diagonal)
_scattered("select_scatter", select)
_scattered("slice_scatter", _sliced)


def _reshaped_in_place(name: str, call: Any) -> None:
    """Methods that change the shape of the tensor itself, and of no other view of its memory."""

    def method(self: Tensor, *args: Any) -> Tensor:
        known = questions()
        if known is not None and TWIN in own_names(self):
            known.observe("the shape is changed of what may be two tensors or one", here())
        shown: Tensor = call(share(self), *args)
        self.steps = shown.steps
        self.lies_as(shown.strides, shown.certain)
        self._cached = None
        return self

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"``{name[:-1]}`` of the tensor itself."
    operation(name, function=False)(method)


for _name, _call in (
    ("unsqueeze_", unsqueeze), ("squeeze_", squeeze), ("t_", t), ("transpose_", transpose),
):  # fmt: skip
    _reshaped_in_place(_name, _call)
