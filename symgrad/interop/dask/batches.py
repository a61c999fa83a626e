"""The shards of a batch, found among the arguments of a call.

In: arguments, in which collections of Dask stand for the batch.  Out: a ``Batch``: what every shard
is given, and what each is given of its own.

A ``dask.array`` is split into its chunks along axis 0.  An element of a ``dask.bag`` is a shard,
and so is each of a list of ``Delayed`` objects or futures.  One of these alone is a value that
every shard is given whole, as is everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import dask.array as da
import dask.bag as db
import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed
from distributed import Future

from symgrad.errors import counted
from symgrad.interop.dask.partials import NDArray, ShardError
from symgrad.tensor.creation import from_numpy
from symgrad.tensor.pytree import each, leaves
from symgrad.tensor.tensor import Tensor


@dataclass(frozen=True)
class Own:
    """Where what a shard has of its own stands among the arguments."""

    place: int


@dataclass(frozen=True)
class Shared:
    """Where something computed stands that all shards are given."""

    place: int


@dataclass
class Batch:
    """A call that is made for each shard.

    ``template``: the arguments with ``Own`` and ``Shared`` in their places; ``parts``: for each
    ``Own`` a task a shard; ``in_bags``: a task gives a list of shards.  ``tensors``: was a tensor
    given?  ``split``: the places of the arguments that hold an ``Own``.
    """

    template: Any = None
    parts: list[Sequence[Any]] = field(default_factory=list)
    shared: list[Any] = field(default_factory=list)
    in_bags: bool = False
    tensors: bool = False
    split: frozenset[int] = frozenset()


def batch_of(args: Sequence[Any], kwargs: dict[str, Any]) -> Batch:
    """The shards of a call.  Raises ShardError."""
    arrays: list[Any] = []
    _walk((args, kwargs), lambda one: arrays.append(one) if isinstance(one, da.Array) else None)
    aligned = iter(_aligned(arrays))
    found, kinds = Batch(), set()

    def place(one: Any) -> Any:
        if isinstance(one, (da.Array, db.Bag)):
            kinds.add(isinstance(one, db.Bag))
            blocks = next(aligned) if isinstance(one, da.Array) else one.to_delayed()
            found.parts.append(blocks)
            return Own(len(found.parts) - 1)
        if isinstance(one, (list, tuple)):
            kinds.add(False)
            found.parts.append(list(one))
            return Own(len(found.parts) - 1)
        if is_dask_collection(one) or isinstance(one, Future):
            found.shared.append(one)
            return Shared(len(found.shared) - 1)
        found.tensors |= isinstance(one, Tensor)
        return one.detach().numpy() if isinstance(one, Tensor) else one

    found.template = _walk((list(args), kwargs), place)
    _check(found, kinds)
    found.in_bags = True in kinds
    found.split = frozenset(
        number for number, one in enumerate(found.template[0])
        if any(isinstance(leaf, Own) for leaf in leaves(one))
    )  # fmt: skip
    return found


def _walk(value: Any, change: Callable[[Any], Any]) -> Any:
    """``each``, for which a list of tasks is one leaf."""
    if isinstance(value, (list, tuple)) and value and all(map(_is_task, value)):
        return change(value)
    if isinstance(value, dict):
        return {name: _walk(item, change) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_walk(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return change(value)


def _is_task(value: Any) -> bool:
    return isinstance(value, (Delayed, Future))


def _aligned(arrays: Sequence[Any]) -> list[list[Any]]:
    """The blocks of arrays that are cut at the same rows.  Raises ShardError."""
    for one in arrays:
        if one.ndim == 0 or any(count > 1 for count in one.numblocks[1:]):
            raise ShardError(
                f"an array of shape {one.shape} is not chunked along axis 0 alone",
                hint="the batch axis comes first: x.rechunk({0: 'auto', 1: -1})",
            )
    known = {one.chunks[0] for one in arrays if not np.isnan(one.shape[0])}
    if len(known) > 1:
        arrays = _unified(arrays)
    return [list(one.to_delayed().ravel()) for one in arrays]


def _unified(arrays: Sequence[Any]) -> Sequence[Any]:
    """The arrays cut at the rows at which any of them is cut.  Raises ShardError."""
    given: list[Any] = []
    for place, one in enumerate(arrays):
        given += [one, ("rows", *(f"{place}.{axis}" for axis in range(1, one.ndim)))]
    try:
        found: Sequence[Any] = da.core.unify_chunks(*given)[1]
    except ValueError as error:
        shapes = ", ".join(str(one.shape) for one in arrays)
        raise ShardError(
            f"arrays of the shapes {shapes} are not one batch: {error}",
            hint="they need as many rows, in known chunks",
        ) from error
    return found


def _check(batch: Batch, kinds: set[bool]) -> None:
    if not batch.parts or not all(batch.parts):
        raise ShardError(
            "no argument is split into shards",
            hint="give the batch as a dask.array, a dask.bag or a list of Delayed objects",
        )
    if len(kinds) > 1:
        raise ShardError(
            "a dask.bag is given beside another kind of shards",
            hint="x.to_delayed() of an array, and to_delayed() of a bag, are lists of shards",
        )
    counts = [len(part) for part in batch.parts]
    if len(set(counts)) > 1:
        raise ShardError(
            f"the arguments are split into {', '.join(map(str, counts))} shards",
            hint="each has to have as many",
        )


# -- on a worker


def call_with(template: Any, own: Sequence[Any], shared: Sequence[Any]) -> Any:
    """The arguments for a shard, its arrays as tensors."""

    def filled(one: Any) -> Any:
        if isinstance(one, Own):
            return each(_as_tensor, own[one.place])
        return each(_as_tensor, shared[one.place]) if isinstance(one, Shared) else _as_tensor(one)

    return each(filled, template)


def _as_tensor(value: Any) -> Any:
    """An array of numbers, or a tensor, as a tensor that is laid out; anything else as it is."""
    if isinstance(value, Tensor):
        laid_out = from_numpy(_laid_out(value.detach().numpy()))
        return laid_out.requires_grad_(value.requires_grad)
    is_array = isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
    return from_numpy(_laid_out(value)) if is_array else value


def _laid_out(array: NDArray) -> NDArray:
    """The array in C order and aligned: itself where it lies so.

    What was sent may lie at any byte, and in another order than before; NumPy's products of
    matrices and sums add in an order that depends on both.
    """
    laid_out: NDArray = np.require(array.ravel(), None, "A").reshape(array.shape)
    return laid_out


def rows_of(own: Sequence[Any]) -> int | None:
    """How many rows a shard has: the length of its first array; None where it has no array."""
    for leaf in leaves(tuple(own)):
        if isinstance(leaf, (np.ndarray, Tensor)) and leaf.ndim:
            return int(leaf.shape[0])
    return None


def same_length(lists: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """The shards of partitions of several bags, side by side.  Raises ShardError."""
    whole = [list(one) for one in lists]
    if len({len(one) for one in whole}) > 1:
        counts = ", ".join(counted(len(one), "element") for one in whole)
        raise ShardError(f"partitions of bags that go together have {counts}")
    return list(zip(*whole, strict=True))
