"""A contraction of two arrays as one batched product of matrices.

In: an ``einsum`` node of known sizes.  Out: a function of two arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.ir.graph import Node
from symgrad.ops.contraction import parse
from symgrad.ops.record import get

Array = np.ndarray[Any, Any]


def contraction(node: Node) -> Callable[..., Any]:
    """How an ``einsum`` of two operands is computed: by ``matmul`` where its labels allow it."""
    left, right, result = parse(node.attributes["spec"])
    batch = [label for label in left if label in right and label in result]
    summed = [label for label in left if label in right and label not in result]
    rows = [label for label in left if label not in right]
    columns = [label for label in right if label not in left]
    if any(label not in result for label in (*rows, *columns)):
        return functools.partial(get("einsum").numpy, size=int, spec=node.attributes["spec"])
    return functools.partial(
        _multiplied,
        _Layout(left, (batch, rows, summed)),
        _Layout(right, (batch, summed, columns)),
        tuple((*batch, *rows, *columns).index(label) for label in result),
        len(batch), len(rows), len(columns),
    )  # fmt: skip


class _Layout:
    """An operand with its axes in three groups: the batch, then those of a matrix."""

    __slots__ = ("axes", "groups")

    def __init__(self, word: str, groups: Sequence[Sequence[str]]) -> None:
        order = tuple(word.index(label) for group in groups for label in group)
        self.axes = None if order == tuple(range(len(order))) else order
        self.groups = (len(groups[0]), len(groups[1]), len(groups[2]))

    def matrices(self, array: Array) -> tuple[Array, tuple[int, ...]]:
        """The array as a stack of matrices, and its sizes in the order of the groups."""
        moved = array if self.axes is None else array.transpose(self.axes)
        shape = moved.shape
        batch, first, second = self.groups
        if first == second == 1 and batch <= 1:
            return moved, shape
        split = batch + first
        sizes = (
            *shape[:batch], _count(shape[batch:split]), _count(shape[split:]),
        )  # fmt: skip
        return moved.reshape(sizes), shape


def _multiplied(
    left: _Layout, right: _Layout, order: tuple[int, ...], batch: int, rows: int, columns: int,
    first: Array, second: Array,
) -> Array:  # fmt: skip
    one, left_shape = left.matrices(first)
    two, right_shape = right.matrices(second)
    found = np.matmul(one, two)
    outer = left_shape[batch : batch + rows]
    inner = right_shape[len(right_shape) - columns :] if columns else ()
    if rows != 1 or columns != 1:
        found = found.reshape((*left_shape[:batch], *outer, *inner))
    return (
        found if order == tuple(range(len(order))) else np.ascontiguousarray(found.transpose(order))
    )


def _count(shape: Sequence[int]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total
