"""Order: the rank of each element along an axis, and what is made of it.

In: a node.  Out: the record of ``rank``; ``sort`` as a graph.

``rank(x, axis, descending)`` is where each element goes when the axis is sorted.  The sort is
stable: equal elements keep their order.  NaN counts as greater than every number, as in torch.
Sorting is then adding up at the ranks, and its derivative that of ``index_add``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.errors import DTypeError, ShapeError
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import bool_, int64
from symgrad.ir.expr import Expr
from symgrad.ir.graph import Node
from symgrad.ir.types import TensorType
from symgrad.ops.movement import positions
from symgrad.ops.record import Array, Reader, SizeOf, apply, insert, structural, without


def _rule(args: Sequence[TensorType], attrs: Mapping[str, Any]) -> TensorType:
    (arg,) = args
    if not 0 <= attrs["axis"] < arg.rank:
        raise ShapeError(f"rank: {arg} has no axis {attrs['axis']}")
    if arg.dtype == bool_:
        raise DTypeError(f"rank does not take {arg.dtype}")
    return TensorType(int64, arg.shape)


def _numpy(array: Array, *, size: SizeOf, axis: int, descending: bool) -> Array:
    length = array.shape[axis]
    if descending:  # the ascending order of the reversed axis, read from its end
        order = length - 1 - np.argsort(np.flip(array, axis), axis=axis, kind="stable")
        order = np.flip(order, axis)
    else:
        order = np.argsort(array, axis=axis, kind="stable")
    steps = np.arange(length).reshape([-1 if a == axis else 1 for a in range(array.ndim)])
    ranks = np.empty(array.shape, np.int64)
    np.put_along_axis(ranks, order, np.broadcast_to(steps, array.shape), axis=axis)
    return ranks


def _lower(reader: Reader, node: Node, indices: tuple[Dim, ...]) -> Expr:
    """Count the elements that come before: of those to the left, all that need not come after."""
    axis, descending = node.attributes["axis"], node.attributes["descending"]
    pool, others, here = reader.pool, without(indices, [axis]), indices[axis]
    own = reader.read(0, *indices)

    def precedes(left: Expr, right: Expr) -> Expr:
        if descending:
            left, right = right, left
        less = pool.call("lt", left, right, dtype=bool_)
        if not left.dtype.is_float:
            return less
        ordered = pool.call("eq", left, left, dtype=bool_)
        unordered = pool.call("ne", right, right, dtype=bool_)
        last = pool.call("logical_and", ordered, unordered, dtype=bool_)
        return pool.call("logical_or", less, last, dtype=bool_)

    def body(bound: Dim) -> Expr:
        other = reader.read(0, *insert(others, [axis], [bound]))
        stays = pool.call("logical_not", precedes(own, other), dtype=bool_)
        before = pool.select(pool.relation("lt", bound, here), stays, precedes(other, own))
        return pool.select(before, pool.literal(1, int64), pool.literal(0, int64))

    return reader.reduce("sum", [node.shape[axis]], body)


def _text(operand: str, *, axis: int, descending: bool, shape: Sequence[int], **facts: Any) -> str:
    """The order of the order; descending, that of the reversed axis from its end."""
    given = f"np.flip({operand}, {axis})" if descending else operand
    order = f'np.argsort({given}, axis={axis}, kind="stable")'
    ranks = f"np.argsort({order}, axis={axis})"
    return f"{shape[axis] - 1} - np.flip({ranks}, {axis})" if descending else ranks


structural(
    "rank", "reduction", rule=_rule, numpy=_numpy, lower=_lower, vjp=None, program=_text,
    code="{0}.argsort({axis}, descending={descending}, stable=True).argsort({axis})",
)  # fmt: skip


def sort(node: Node, axis: int, *, descending: bool = False) -> tuple[Node, Node]:
    """The sorted values along an axis, and where each came from."""
    ranks = apply("rank", node, axis=axis, descending=descending)
    places = [ranks if a == axis else positions(node, a) for a in range(node.rank)]
    values = apply("index_add", node, *places, shape=node.shape)
    origins = apply("index_add", positions(node, axis), *places, shape=node.shape)
    return values, origins
