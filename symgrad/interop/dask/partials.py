"""What a shard gives, and the sum over all of them in one order.

In: the value of a function for each shard.  Out: their sum or mean.

The order is that of a binary tree over the numbers of the shards: neighbours are added, then
neighbours of these, and what is left over at the end of a row goes up as it is.  Where the tree is
cut into tasks changes nothing, if a task takes a power of two.  Floats are added in float64,
integers in int64, and rounded to the dtype of the shards' values once, at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symgrad.errors import SymgradError
from symgrad.tensor.pytree import each
from symgrad.tensor.tensor import Tensor

NDArray = np.ndarray[Any, Any]


class ShardError(SymgradError, ValueError):
    """The shards of a batch do not fit each other, or the function that they are given to."""


@dataclass(frozen=True)
class Partial:
    """What some neighbouring shards give together.

    ``leaves``: those of the value; ``weight``: what they count, None for sums, which are wide.
    ``dtypes``: those of the leaves of a shard; ``structure``: the value with None for leaves.
    """

    rows: int
    leaves: tuple[NDArray, ...]
    weight: int | None
    dtypes: tuple[np.dtype[Any], ...]
    structure: Any

    def widened(self) -> tuple[NDArray, ...]:
        """The sums that it stands for."""
        if self.weight is None:
            return self.leaves
        weight = self.weight
        return tuple(one.astype(_wide(one.dtype)) * weight for one in self.leaves)


def partial_of(value: Any, rows: int, mean: bool) -> Partial:
    """What one shard of so many rows gives.  Raises ShardError."""
    leaves: list[NDArray] = []

    def taken(leaf: Any) -> None:
        array = leaf.detach().numpy() if isinstance(leaf, Tensor) else np.asarray(leaf)
        if array.dtype.kind not in "biuf":
            raise ShardError(
                f"the function returned a {type(leaf).__name__} for a shard, which cannot be added",
                hint="return tensors, arrays and numbers, in tuples, lists and dicts",
            )
        leaves.append(array)

    structure = each(taken, value)
    dtypes = tuple(one.dtype for one in leaves)
    return Partial(rows, tuple(leaves), rows if mean else 1, dtypes, structure)


def combined(partials: Sequence[Partial | None]) -> Partial | None:
    """The sum of neighbours, pairwise; None stands for shards of no rows.  Raises ShardError."""
    row = list(partials)
    while len(row) > 1:
        last = row[len(row) // 2 * 2 :]
        row = [_sum(*pair) for pair in zip(row[::2], row[1::2], strict=False)] + last
    return row[0] if row else None


def finished(total: Partial | None, mean: bool, tensors: bool) -> Any:
    """The value for the whole batch, in arrays or in tensors.  Raises ShardError."""
    if total is None or (mean and total.rows == 0):
        raise ShardError("the batch has no rows", hint="give it at least one shard with rows")
    found = []
    for leaf, dtype in zip(total.widened(), total.dtypes, strict=True):
        whole = dtype.kind != "f"
        array = np.asarray(leaf / total.rows if mean else leaf)
        array = array if whole else array.astype(dtype)
        found.append(Tensor(array) if tensors else array[()])
    parts = iter(found)
    return each(lambda _: next(parts), total.structure)


def _sum(one: Partial | None, other: Partial | None) -> Partial | None:
    if one is None or other is None:
        return other if one is None else one
    shapes = [[leaf.shape for leaf in partial.leaves] for partial in (one, other)]
    if one.structure != other.structure or shapes[0] != shapes[1]:
        raise ShardError(
            f"the shards give values of shapes {shapes[0]} and {shapes[1]}, in the structures "
            f"{one.structure} and {other.structure}",
            hint="the function has to return the same for every shard, whatever its rows",
        )
    pairs = zip(one.widened(), other.widened(), strict=True)
    leaves = tuple(np.asarray(mine + its) for mine, its in pairs)
    return Partial(one.rows + other.rows, leaves, None, one.dtypes, one.structure)


def _wide(dtype: np.dtype[Any]) -> type:
    return np.float64 if dtype.kind == "f" else np.int64
