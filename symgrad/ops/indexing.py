"""Reading at computed places, and adding up there.

In: nothing.  Out: records.

``index(x, *places)``: k int64 tensors of one shape S index the first k axes of x; the result has
the shape S + x.shape[k:].  ``index_add(g, *places, shape=...)`` is its adjoint: zeros of that
shape, with each element of g added at its place; repeated places add up.  A place must be
``0 <= place < size``: KernelArgumentError otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.errors import DTypeError, KernelArgumentError, ShapeError
from symgrad.ir.dim import Dim, DimLike
from symgrad.ir.dtype import int64
from symgrad.ir.expr import Expr
from symgrad.ir.graph import Node
from symgrad.ir.types import TensorType
from symgrad.ops.record import Array, Reader, SizeOf, adds_up, apply, structural

Attributes = Mapping[str, Any]


def _place_shape(name: str, whole: TensorType, places: Sequence[TensorType]) -> tuple[Dim, ...]:
    """The one shape of the places.  Raises ShapeError or DTypeError."""
    if not 1 <= len(places) <= whole.rank:
        raise ShapeError(f"{name}: {len(places)} index tensors for {whole}")
    for place in places:
        if place.dtype != int64:
            raise DTypeError(f"{name} takes indices of dtype int64, not {place}")
        if place.shape != places[0].shape:
            raise ShapeError(f"{name} takes indices of one shape, not {places[0]} and {place}")
    return places[0].shape


def _check_range(name: str, shape: Sequence[int], places: Sequence[Array]) -> None:
    for axis, place in enumerate(places):
        wrong = (place < 0) | (place >= shape[axis])
        if np.any(wrong):
            raise KernelArgumentError(
                f"{name}: the index {place[wrong][0]} does not lie in axis {axis} "
                f"of size {shape[axis]}"
            )


def ranges(node: Node) -> Iterator[tuple[Node, Dim]]:
    """The places of a node made here, and the size of the axis that each is for."""
    whole = node.shape if node.op == "index_add" else node.args[0].shape
    return zip(node.args[1:], whole, strict=False)


# -- index


def _index_rule(args: Sequence[TensorType], attrs: Attributes) -> TensorType:
    whole, *places = args
    chosen = _place_shape("index", whole, places)
    return TensorType(whole.dtype, chosen + whole.shape[len(places) :])


def _index(array: Array, *places: Array, size: SizeOf) -> Array:
    _check_range("index", array.shape, places)
    result: Array = array[places]
    return result


def _index_lower(reader: Reader, node: Node, indices: tuple[Dim, ...]) -> Expr:
    count, rank = len(node.args) - 1, node.args[1].rank
    at = (reader.index(position + 1, *indices[:rank]) for position in range(count))
    return reader.read(0, *at, *indices[rank:])


def _index_vjp(node: Node, g: Node) -> Sequence[Node | None]:
    whole, *places = node.args
    return apply("index_add", g, *places, shape=whole.shape), *(None for _ in places)


structural(
    "index", "indexing", rule=_index_rule, numpy=_index, lower=_index_lower, vjp=_index_vjp,
    arity=None, linear=(0,), program=lambda x, *places, **_: f"{x}[{', '.join(places)}]",
)  # fmt: skip


# -- index_add


def _index_add_rule(args: Sequence[TensorType], attrs: Attributes) -> TensorType:
    part, *places = args
    whole = TensorType.of(part.dtype, attrs["shape"])
    if not adds_up(part.dtype):
        raise DTypeError(f"index_add does not take {part}")
    wanted = _place_shape("index_add", whole, places) + whole.shape[len(places) :]
    if part.shape != wanted:
        raise ShapeError(
            f"index_add: {part} does not fit {TensorType(part.dtype, wanted)}, which is what "
            f"{len(places)} indices of shape {places[0]} leave of {whole}",
            equal=zip(reversed(part.shape), reversed(wanted), strict=False),
        )
    return whole


def _index_add(part: Array, *places: Array, size: SizeOf, shape: tuple[DimLike, ...]) -> Array:
    whole = np.zeros(tuple(map(size, shape)), part.dtype)
    _check_range("index_add", whole.shape, places)
    np.add.at(whole, places, part)
    return whole


def _index_add_text(x: str, *places: str, shape: tuple[int, ...], **facts: Any) -> str:
    whole = f"np.zeros({shape}, {x}.dtype)"
    added = f"np.add.at(whole, ({', '.join(places)},), {x})"
    return f"(lambda whole: ({added}, whole)[1])({whole})"


def _index_add_lower(reader: Reader, node: Node, indices: tuple[Dim, ...]) -> Expr:
    count, pool = len(node.args) - 1, reader.pool
    zero = pool.literal(0.0 if node.dtype.is_float else 0, node.dtype)
    compared = [axis for axis in range(count) if node.shape[axis] != 1]  # there, a place is 0

    def body(*bound: Dim) -> Expr:
        met = pool.conjunction(
            pool.relation("eq", indices[axis], reader.index(axis + 1, *bound)) for axis in compared
        )
        return pool.select(met, reader.read(0, *bound, *indices[count:]), zero)

    return reader.reduce("sum", node.args[1].shape, body)


def _index_add_vjp(node: Node, g: Node) -> Sequence[Node | None]:
    _, *places = node.args
    return apply("index", g, *places), *(None for _ in places)


structural(
    "index_add", "indexing", rule=_index_add_rule, numpy=_index_add, lower=_index_add_lower,
    vjp=_index_add_vjp, arity=None, linear=(0,), program=_index_add_text,
)  # fmt: skip
