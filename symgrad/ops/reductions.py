"""Reductions over axes, which disappear.

In: nothing.  Out: records.

Over no element at all, ``amax`` is the least value of the dtype (minus infinity), ``amin`` the
greatest, ``argmax`` and ``argmin`` are 0: torch raises there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.ir.dim import Dim
from symgrad.ir.dtype import bool_, int64
from symgrad.ir.graph import Node
from symgrad.ops.movement import positions, reshape
from symgrad.ops.record import (
    Array,
    apply,
    choose,
    compare,
    of_one,
    reduction,
)


def keep_axes(reduced: Node, node: Node) -> Node:
    """A reduction's result with its axes put back as size 1, then broadcast to the argument."""
    (arg,) = node.args
    axes = node.attributes["axes"]
    kept = tuple(Dim.of(1) if axis in axes else size for axis, size in enumerate(arg.shape))
    return node.graph.expand(reshape(reduced, kept), arg.shape)


def _sum_vjp(node: Node, g: Node) -> Sequence[Node]:
    return (keep_axes(g, node),)


SUMMED_BY_NUMPY = 128  # elements one by one: NumPy sums so many itself, then in pairs, but only
# along its last axis, and only where that lies in a row


def _sum(array: Array, axis: tuple[int, ...]) -> Array:
    """NumPy's sum; floats along a long axis other than that are added up part by part."""
    row = array.ndim - 1 if array.ndim == 1 or array.strides[-1:] == (array.itemsize,) else None
    long = next((a for a in axis if a != row and array.shape[a] > SUMMED_BY_NUMPY), None)
    if long is None or array.dtype.kind != "f":
        return np.asarray(np.sum(array, axis=axis))
    count, rest = divmod(array.shape[long], SUMMED_BY_NUMPY)
    head, tail = np.split(array, [count * SUMMED_BY_NUMPY], axis=long)
    before, behind = array.shape[:long], array.shape[long + 1 :]
    parts = head.reshape(*before, count, SUMMED_BY_NUMPY, *behind).sum(axis=long + 1)
    if rest:
        parts = np.concatenate([parts, tail.sum(axis=long, keepdims=True)], axis=long)
    return _sum(parts, axis)


reduction(
    "sum", numpy=_sum, reduce="sum", vjp=_sum_vjp, linear=True,
    program="np.sum({0}, axis={axes})", code="{0}.sum({over})",
)  # fmt: skip


# -- prod: right where factors are zero, too, and to be differentiated again there


def _factors_beside(x: Node, axis: int, *, behind: bool) -> Node:
    """For each element the product of those before it along ``axis``, or of those behind it."""
    count, rank = x.shape[axis], x.rank
    longer = tuple(size + 1 if a == axis else size for a, size in enumerate(x.shape))
    start = tuple(Dim.of(int(a == axis and not behind)) for a in range(rank))
    kept = tuple(Dim.of(int(a == axis and behind)) for a in range(rank))
    moved = apply("unslice", x, shape=longer, starts=start, steps=(1,) * rank)
    end = x.graph.binary("eq", positions(moved, axis), count if behind else 0)
    scanned = apply("cumprod", choose(end, 1.0, moved), axis=axis, reverse=behind)
    return apply("slice", scanned, starts=kept, steps=(1,) * rank, sizes=x.shape)


def _other_factors(node: Node) -> Node:
    """For each element the product of all the others: divided out, unless it is zero."""
    (x,) = node.args
    zero = compare("eq", x, 0.0)
    divided = keep_axes(node, node) / choose(zero, 1.0, x)
    return choose(zero, _others_undivided(node), divided)


def _others_undivided(node: Node) -> Node:
    """For each element the product of all the others, axis by axis."""
    others: Node | None = None
    (part,) = node.args
    shape = part.shape
    for axis in node.attributes["axes"]:
        here = _factors_beside(part, axis, behind=False) * _factors_beside(part, axis, behind=True)
        here = node.graph.expand(here, shape)
        others = here if others is None else others * here
        kept = tuple(Dim.of(1) if a == axis else size for a, size in enumerate(part.shape))
        part = reshape(apply("prod", part, axes=(axis,)), kept)
    return node.graph.lift(1.0, node.args[0]) if others is None else others


def _prod_vjp(node: Node, g: Node) -> Sequence[Node]:
    return (keep_axes(g, node) * _other_factors(node),)


@of_one
def _prod_tangent(node: Node, tangent: Node) -> Node:
    return apply("sum", tangent * _other_factors(node), axes=node.attributes["axes"])


reduction(
    "prod", numpy=np.prod, reduce="prod", vjp=_prod_vjp, tangent=_prod_tangent,
    program="np.prod({0}, axis={axes})", code="{0}.prod({over})",
)  # fmt: skip


# -- amax, amin: what ties share evenly


def _extreme(least: bool) -> Callable[..., Array]:
    choice = np.min if least else np.max

    def evaluate(array: Array, axis: tuple[int, ...]) -> Array:
        if array.size:
            return np.asarray(choice(array, axis=axis))
        empty: Any = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
        low, high = (empty.min, empty.max) if empty else (-np.inf, np.inf)
        return np.asarray(choice(array, axis=axis, initial=high if least else low))

    return evaluate


def _attained(node: Node) -> tuple[Node, Node]:
    """1 where the argument equals the extreme value, and how often it does, both broadcast."""
    (x,) = node.args
    mask = apply("cast", compare("eq", x, keep_axes(node, node)), dtype=x.dtype)
    return mask, apply("sum", mask, axes=node.attributes["axes"])


def _extreme_vjp(node: Node, g: Node) -> Sequence[Node]:
    mask, count = _attained(node)
    return (keep_axes(g / count, node) * mask,)


@of_one
def _extreme_tangent(node: Node, tangent: Node) -> Node:
    mask, count = _attained(node)
    return apply("sum", tangent * mask, axes=node.attributes["axes"]) / count


for _name, _reduce in (("amax", "max"), ("amin", "min")):
    reduction(
        _name, numpy=_extreme(least=_name == "amin"), reduce=_reduce, vjp=_extreme_vjp,
        tangent=_extreme_tangent, takes=lambda dtype: dtype != bool_,
        program=f"np.{_reduce}({{0}}, axis={{axes}})", code=f"{{0}}.{_name}({{over}})",
    )  # fmt: skip

EXTREMES_ALONG = ("amax", "amin", "max", "min")

# -- max, min: over exactly one axis; of what ties, the first gets the cotangent


def _first_attained(node: Node) -> Node:
    """Where the first of the extreme elements is, in the shape of the argument."""
    (x,) = node.args
    axes = node.attributes["axes"]
    place = keep_axes(apply(f"arg{node.op}", x, axes=axes), node)
    return compare("eq", positions(x, axes[0]), place)


def _first_vjp(node: Node, g: Node) -> Sequence[Node]:
    return (choose(_first_attained(node), keep_axes(g, node), 0.0),)


@of_one
def _first_tangent(node: Node, tangent: Node) -> Node:
    return apply("sum", choose(_first_attained(node), tangent, 0.0), axes=node.attributes["axes"])


for _name in ("max", "min"):
    reduction(
        _name, numpy=_extreme(least=_name == "min"), reduce=_name, vjp=_first_vjp,
        tangent=_first_tangent, one_axis=True, takes=lambda dtype: dtype != bool_,
        program=f"np.{_name}({{0}}, axis={{axes}})", code=f"{{0}}.a{_name}({{over}})",
    )  # fmt: skip

for _name, _logic in (("any", np.any), ("all", np.all)):
    reduction(
        _name, numpy=_logic, reduce=_name, vjp=None, takes=lambda dtype: dtype == bool_,
        program=f"np.{_name}({{0}}, axis={{axes}})", code=f"{{0}}.{_name}({{over}})",
    )  # fmt: skip


# -- argmax, argmin: over exactly one axis; the first among equals, and NaN before all


def _position(numpy: Callable[..., Any]) -> Callable[..., Array]:
    def evaluate(array: Array, axis: tuple[int, ...]) -> Array:
        (along,) = axis
        if array.shape[along]:
            return np.asarray(numpy(array, axis=along))
        return np.zeros(array.shape[:along] + array.shape[along + 1 :], np.int64)

    return evaluate


for _name, _numpy in (("argmax", np.argmax), ("argmin", np.argmin)):
    reduction(
        _name, numpy=_position(_numpy), reduce=_name, vjp=None, result=int64, one_axis=True,
        takes=lambda dtype: dtype != bool_, program=f"np.{_name}({{0}}, axis={{axes[0]}})",
        code=f"{{0}}.{_name}({{over}})",
    )  # fmt: skip
