"""gather, scatter and their kin: elements at computed places along one axis.

In: tensors and index tensors.  Out: tensors.
An index must lie in its axis.  It counts from the end where torch has it so: in ``take``,
``take_along_dim`` and ``index_fill``, and in brackets.
"""

from __future__ import annotations

from typing import Any

from symgrad.errors import DTypeError, ShapeError, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.dtypes import check_fits
from symgrad.frontend.functions.arithmetic import add, mul
from symgrad.frontend.functions.movement import axis_of
from symgrad.frontend.functions.scattering import added_up, from_the_end, put
from symgrad.frontend.functions.selecting import added_at_column
from symgrad.frontend.functions.sorting import gather_in_order, scatter_in_order
from symgrad.frontend.kinds import refused
from symgrad.frontend.lift import (
    as_index,
    as_node,
    as_tensor,
    broadcast_shapes,
    is_number,
    setting,
)
from symgrad.frontend.session import current
from symgrad.frontend.table import operation
from symgrad.frontend.tensor import SelectedTensor, SymbolicTensor, fresh
from symgrad.frontend.views import iota_along, permute
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import int64
from symgrad.ir.graph import Node

Tensor = SymbolicTensor


def along(index: Node, axis: int) -> list[Node]:
    """The full places of ``x[i, index[i, j], ...]``: every other axis keeps its own index."""
    session = current()
    return [
        index if place == axis else iota_along(session, index.shape, place)
        for place in range(index.rank)
    ]


def same_rank(name: str, node: Node, index: Node) -> None:
    """Raises ShapeError where an index has not as many axes as the tensor."""
    if node.rank != index.rank or not node.rank:
        raise ShapeError(
            f"{name}: an index with {index.rank} axes for a tensor with {node.rank}",
            location=here(),
            hint="both need as many axes; x[index] takes any index",
        )


@operation("take_along_dim", "take_along_axis")
def take_along_dim(input: Tensor, indices: Tensor, dim: Any = None) -> Tensor:
    """What ``indices`` name along ``dim``; the other axes are broadcast against each other."""
    source, places = as_tensor(input), as_tensor(indices)
    if dim is None:
        return gather(source.flatten(), 0, places.flatten())
    same_rank("take_along_dim", source.node, places.node)
    axis = axis_of(dim, source.ndim)

    def without(shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
        return (*shape[:axis], Dim.of(1), *shape[axis + 1 :])

    session, shapes = current(), [source.node.shape, places.node.shape]
    common = broadcast_shapes(*map(without, shapes))
    whole = [(*common[:axis], shape[axis], *common[axis + 1 :]) for shape in shapes]
    counted = from_the_end(places.node, source.node.shape[axis])
    return gather(
        fresh(session.expand(source.node, whole[0])), axis,
        fresh(session.expand(counted, whole[1])),
    )  # fmt: skip


@operation("gather")
def gather(input: Tensor, dim: Any, index: Any = None, **ignored: Any) -> Tensor:
    """``out[i][j] = input[i][index[i][j]]`` along the axis ``dim``."""
    if not (isinstance(index, Tensor) or hasattr(index, "__array__")):
        raise refused("gather", "index", "Tensor", index)
    node, places = as_tensor(input).node, as_index(as_node(index))
    same_rank("gather", node, places)
    place = axis_of(dim, node.rank)
    sorted_ = gather_in_order(node, places, place)
    if sorted_ is not None:
        return fresh(sorted_)
    return fresh(current().apply("index", node, *along(places, place)))


def _check_dtype(input: Node, source: Any, message: str) -> None:
    """A tensor that is written into another has its dtype.  Raises DTypeError."""
    if isinstance(source, Tensor) and source.dtype != input.dtype:
        own, given = input.dtype.scalar_type, source.dtype.scalar_type
        raise DTypeError(message.format(own=own, given=given), location=here())


def scatter_source(input: Node, index: Node, src: Any) -> Node:
    """The values for the places: a number, or the part of ``src`` that the index covers."""
    check_fits(src, input.dtype)
    _check_dtype(input, src, "scatter(): Expected self.dtype to be equal to src.dtype")
    node = as_node(src, input.dtype)
    if not node.rank:
        return node
    if node.shape == index.shape:
        return node
    session = current()
    if node.rank != index.rank:
        raise ShapeError(
            "scatter: src and index must have the same number of axes", location=here()
        )
    starts = tuple(Dim.of(0) for _ in node.shape)
    return session.apply("slice", node, starts=starts, steps=(1,) * node.rank, sizes=index.shape)


@operation("scatter", inplace=True)
def scatter(
    input: Any, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: Any = None
) -> Tensor:
    """``out[i][index[i][j]] = src[i][j]`` along the axis ``dim``, ``input`` elsewhere."""
    if reduce == "add":
        return scatter_add(input, dim, index, src if value is None else value)
    if reduce is not None:
        raise UnsupportedOpError(f"scatter does not support reduce={reduce!r}", location=here())
    node, places = as_tensor(input).node, as_index(as_node(index))
    same_rank("scatter", node, places)
    given = scatter_source(node, places, src if value is None else value)
    place = axis_of(dim, node.rank)
    sorted_ = scatter_in_order(node, places, place, given)
    if sorted_ is not None:
        return fresh(sorted_)
    return fresh(put(current(), node, along(places, place), given))


@operation("scatter_add", inplace=True)
def scatter_add(input: Any, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """``out[i][index[i][j]] += src[i][j]`` along the axis ``dim``."""
    node, places = as_tensor(input).node, as_index(as_node(index))
    same_rank("scatter_add", node, places)
    session = current()
    given = session.expand(scatter_source(node, places, src), places.shape)
    full = along(places, axis_of(dim, node.rank))
    return add(fresh(node), fresh(added_up(session, given, full, node.shape)))


# -- one index for a whole axis


def _front(node: Node, axis: int) -> tuple[int, ...]:
    return (axis, *(place for place in range(node.rank) if place != axis))


def _back(axis: int, rank: int) -> tuple[int, ...]:
    return (*range(1, axis + 1), 0, *range(axis + 1, rank))


def index_vector(name: str, index: Any) -> Node:
    """An index with one axis, whatever it was.  Raises ShapeError for several."""
    node = as_index(as_node(index))
    if node.rank > 1:
        raise ShapeError(f"{name} takes an index with one axis", location=here())
    return current().reshape(node, node.shape or (Dim.of(1),))


@operation("index_select")
def index_select(input: Any, dim: int, index: Tensor) -> Tensor:
    """The slices of an axis that ``index`` names."""
    if isinstance(index, SelectedTensor):
        selected: Tensor = as_tensor(input)[_at(input, dim, index)]
        return selected
    node = as_tensor(input).node
    axis, session = axis_of(dim, node.rank), current()
    front = permute(session, node, _front(node, axis))
    found = session.apply("index", front, index_vector("index_select", index))
    return fresh(permute(session, found, _back(axis, node.rank)))


@operation("index_add", inplace=True)
def index_add(input: Any, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """``source``, slice by slice, added to the slices of an axis that ``index`` names."""
    alpha = setting(alpha, as_tensor(input).dtype)
    if isinstance(index, SelectedTensor):
        key, found = _at(input, dim, index), fresh(as_tensor(input).node)
        by_column = added_at_column(found, axis_of(dim, found.ndim), index, mul(source, alpha))
        if by_column is not None:
            return by_column
        found[key] = add(found[key], mul(source, alpha))
        return found
    node, given = as_tensor(input).node, as_tensor(source)
    axis, session = axis_of(dim, node.rank), current()
    _check_dtype(
        node, given,
        "index_add_(): self ({own}) and source ({given}) must have the same scalar type",
    )  # fmt: skip
    scaled = given if is_number(alpha) and alpha == 1 else mul(given, alpha)
    values = session.cast(scaled.node, node.dtype)
    order = _front(node, axis)
    shape = tuple(node.shape[place] for place in order)
    places = [index_vector("index_add", index)]
    spread = added_up(session, permute(session, values, order), places, shape)
    return add(fresh(node), fresh(permute(session, spread, _back(axis, node.rank))))


def _at(input: Any, dim: int, index: SelectedTensor) -> tuple[Any, ...]:
    """The key of the slices of an axis at places where a mask holds."""
    return (*[slice(None)] * axis_of(dim, as_tensor(input).ndim), index)


def _put_slices(input: Any, dim: int, index: Any, value: Any, *, from_end: bool = False) -> Tensor:
    """``from_end``: do negative places count from the end?"""
    if isinstance(index, SelectedTensor):
        written = fresh(as_tensor(input).node)
        written[_at(input, dim, index)] = value
        return written
    node = as_tensor(input).node
    axis, session = axis_of(dim, node.rank), current()
    order = _front(node, axis)
    given = as_node(value, node.dtype)
    if given.rank:
        given = permute(session, given, order)
    places = index_vector("index_fill", index)
    places = from_the_end(places, node.shape[axis]) if from_end else places
    result = put(session, permute(session, node, order), [places], given)
    return fresh(permute(session, result, _back(axis, node.rank)))


@operation("index_fill", inplace=True)
def index_fill(input: Any, dim: int, index: Tensor, value: Any) -> Tensor:
    """A number in the slices of an axis that ``index`` names."""
    check_fits(value, as_tensor(input).dtype)
    return _put_slices(input, dim, index, value, from_end=True)


@operation("index_copy", inplace=True)
def index_copy(input: Any, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """``source``, slice by slice, in place of the slices of an axis that ``index`` names."""
    _check_dtype(
        as_tensor(input).node, source,
        "index_copy_(): self and source expected to have the same dtype, but got (self) {own} and "
        "(source) {given}",
    )  # fmt: skip
    return _put_slices(input, dim, index, source)


@operation("take")
def take(input: Any, index: Tensor) -> Tensor:
    """Elements by their place in the flattened tensor."""
    source, places = as_tensor(input), as_node(index)
    if places.dtype != int64:
        raise DTypeError(
            f"take(): Expected a long tensor for index, but got {places.dtype.scalar_type}",
            location=here(), hint="convert it with .long()",
        )  # fmt: skip
    flat = source.flatten().node
    return fresh(current().apply("index", flat, from_the_end(places, flat.shape[0])))
