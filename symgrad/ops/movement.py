"""Ops that only say where an element comes from: broadcasting, reshaping, permuting.

In: nothing.  Out: records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.errors import ShapeError
from symgrad.ir.dim import Dim, product
from symgrad.ir.expr import Expr
from symgrad.ir.graph import Node
from symgrad.ir.types import TensorType
from symgrad.ops.record import Array, Reader, SizeOf, apply, structural

Attributes = Mapping[str, Any]


def bare(node: Node) -> Node:
    """What a node was broadcast, reshaped, permuted or cast from."""
    while node.op in ("expand", "reshape", "permute", "cast"):
        node = node.args[0]
    return node


def transposed_axes(rank: int) -> tuple[int, ...]:
    """The order of the axes of matrices that are transposed."""
    return (*range(rank - 2), rank - 1, rank - 2)


# -- expand


def _expand_rule(args: Sequence[TensorType], attrs: Attributes) -> TensorType:
    (arg,) = args
    shape: tuple[Dim, ...] = attrs["shape"]
    pairs = zip(reversed(arg.shape), reversed(shape), strict=False)
    unequal = [(old, new) for old, new in pairs if old not in (1, new)]
    if unequal or len(shape) < arg.rank:
        wanted = TensorType(arg.dtype, shape)
        raise ShapeError(f"{arg} does not broadcast to {wanted}", equal=unequal)
    return TensorType(arg.dtype, shape)


def _expand(array: Array, *, size: SizeOf, shape: tuple[Dim, ...]) -> Array:
    return np.broadcast_to(array, tuple(map(size, shape)))


def _expand_lower(reader: Reader, node: Node, indices: tuple[Dim, ...]) -> Expr:
    return reader.read(0, *indices[node.rank - node.args[0].rank :])


def _expand_vjp(node: Node, g: Node) -> Sequence[Node]:
    (arg,) = node.args
    added = node.rank - arg.rank
    stretched = (
        added + axis
        for axis, size in enumerate(arg.shape)
        if size == 1 and node.shape[added + axis] != 1
    )
    axes = (*range(added), *stretched)
    summed = apply("sum", g, axes=axes) if axes else g
    return (reshape(summed, arg.shape),)


structural(
    "expand", "movement", rule=_expand_rule, numpy=_expand, lower=_expand_lower, vjp=_expand_vjp,
    linear=(0,), program="np.broadcast_to({0}, {shape})",
)  # fmt: skip


# -- reshape


def positions(node: Node, axis: int) -> Node:
    """The index along ``axis``, in the shape of ``node``."""
    ramp = node.graph.apply("iota", length=node.shape[axis])
    kept = tuple(size if a == axis else Dim.of(1) for a, size in enumerate(node.shape))
    return node.graph.expand(reshape(ramp, kept), node.shape)


def reshape(node: Node, shape: Sequence[Dim]) -> Node:
    """``node`` with another shape of as many elements; itself when it has that shape."""
    wanted = tuple(shape)
    return node if node.shape == wanted else apply("reshape", node, shape=wanted)


def _reshape_rule(args: Sequence[TensorType], attrs: Attributes) -> TensorType:
    (arg,) = args
    result = TensorType(arg.dtype, attrs["shape"])
    if arg.size != result.size:
        raise ShapeError(f"{arg} cannot be reshaped to {result}: {arg.size} is not {result.size}")
    return result


def _reshape(array: Array, *, size: SizeOf, shape: tuple[Dim, ...]) -> Array:
    return array.reshape(tuple(map(size, shape)))


def _reshape_lower(reader: Reader, node: Node, indices: tuple[Dim, ...]) -> Expr:
    """Split both shapes into groups of equal product; only within one is there any division."""
    old, new = node.args[0].shape, node.shape
    source: list[Dim] = []
    for old_axes, new_axes in reshape_groups(old, new):
        flat = Dim.of(0)
        for axis in new_axes:
            flat = flat * new[axis] + indices[axis]
        inner: list[Dim] = []
        for position, axis in enumerate(reversed(old_axes)):
            last = position == len(old_axes) - 1
            inner.append(flat if last else flat % old[axis])
            flat = flat // old[axis] if not last else flat
        source.extend(reversed(inner))
    return reader.read(0, *source)


def reshape_groups(
    old: Sequence[Dim], new: Sequence[Dim]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The finest split of two shapes into runs of axes with equal products, in order."""
    groups: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    left = right = 0
    while left < len(old) or right < len(new):
        end = _group_end(old, new, left, right)
        groups.append((tuple(range(left, end[0])), tuple(range(right, end[1]))))
        left, right = end
    return groups


def _group_end(
    old: Sequence[Dim], new: Sequence[Dim], left: int, right: int
) -> tuple[int, int]:  # fmt: skip
    if left < len(old) and old[left] == 1:
        return left + 1, right
    if right < len(new) and new[right] == 1:
        return left, right + 1
    for total in range(2, len(old) - left + len(new) - right + 1):
        for taken in range(1, total):
            ends = left + taken, right + total - taken
            if ends[0] > len(old) or ends[1] > len(new):
                continue
            if product(list(old[left : ends[0]])) == product(list(new[right : ends[1]])):
                return ends
    return len(old), len(new)


structural(
    "reshape", "movement", rule=_reshape_rule, numpy=_reshape, lower=_reshape_lower,
    vjp=lambda node, g: (reshape(g, node.args[0].shape),), linear=(0,),
    program="np.reshape({0}, {shape})",
)  # fmt: skip


# -- permute


def _permute_rule(args: Sequence[TensorType], attrs: Attributes) -> TensorType:
    (arg,) = args
    axes: tuple[int, ...] = attrs["axes"]
    if sorted(axes) != list(range(arg.rank)):
        raise ShapeError(f"permute: {axes} is not an order of the axes of {arg}")
    return TensorType(arg.dtype, tuple(arg.shape[axis] for axis in axes))


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axes.index(axis) for axis in range(len(axes)))


def _permute_lower(reader: Reader, node: Node, indices: tuple[Dim, ...]) -> Expr:
    return reader.read(0, *(indices[axis] for axis in _inverse(node.attributes["axes"])))


structural(
    "permute", "movement", rule=_permute_rule,
    numpy=lambda array, *, size, axes: np.transpose(array, axes),
    lower=_permute_lower,
    vjp=lambda node, g: (apply("permute", g, axes=_inverse(node.attributes["axes"])),),
    linear=(0,), program="np.transpose({0}, {axes})",
)  # fmt: skip
