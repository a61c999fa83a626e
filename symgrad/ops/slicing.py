"""Parts of tensors: slices, their adjoints, concatenation, diagonals.

In: nothing.  Out: records.

``slice(x, starts, steps, sizes)[i] = x[starts + steps*i]``, for each axis; a step may be negative.
``unslice(g, shape, starts, steps)`` has g there and zero elsewhere; padding is ``unslice``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.errors import DTypeError, GraphError, ShapeError
from symgrad.ir.dim import Dim, DimLike, minimum
from symgrad.ir.dtype import BOOL, FLOAT, INTEGER
from symgrad.ir.expr import Expr, Literal
from symgrad.ir.graph import Node
from symgrad.ir.types import TensorType
from symgrad.ops.record import Array, Reader, SizeOf, apply, choose, compare, structural, without

Attributes = Mapping[str, Any]
Dims = tuple[DimLike, ...]


# -- slice and unslice


def _check_inside(name: str, whole: TensorType, part: Sequence[Dim], attrs: Attributes) -> None:
    """Refuse what is certain to lie outside.  Raises ShapeError."""
    starts, steps = attrs["starts"], attrs["steps"]
    if not len(starts) == len(steps) == len(part) == whole.rank or 0 in steps:
        raise ShapeError(f"{name}: starts {starts} and steps {steps} do not fit {whole}")
    for axis, (start, step, taken) in enumerate(zip(starts, steps, part, strict=True)):
        first = Dim.of(start)
        ends = (first, first + step * (taken - 1))
        beyond = any(
            (end - whole.shape[axis]).at_least(0) or (-end - 1).at_least(0) for end in ends
        )
        if beyond and taken.at_least(1):
            raise ShapeError(
                f"{name}: {taken} elements from {first} by {step} do not fit axis {axis} of {whole}"
            )


def _slices(starts: Dims, steps: tuple[int, ...], sizes: Sequence[int], size: SizeOf) -> Any:
    """NumPy's slice objects; a negative stop would count from the end, so it becomes None.

    The ellipsis behind them keeps an array of rank 0 an array.
    """
    found: list[Any] = []
    for start, step, taken in zip(map(size, starts), steps, sizes, strict=True):
        if taken and start < 0:
            raise GraphError(f"a slice starts before its tensor, at {start}")
        stop = start + step * taken
        found.append(slice(start, stop if stop >= 0 else None, step) if taken else slice(0, 0))
    return (*found, ...)


def _ranges(starts: Sequence[int], steps: Sequence[int], sizes: Sequence[int]) -> str:
    """The same as text."""
    found = []
    for start, step, taken in zip(starts, steps, sizes, strict=True):
        stop = start + step * taken
        end = stop if stop >= 0 else None
        found.append(f"slice({start}, {end}, {step})" if taken else "slice(0, 0)")
    return f"{', '.join(found)}, ..." if found else "()"


def _check_part(name: str, found: Sequence[int], wanted: Sequence[int]) -> None:
    if tuple(found) != tuple(wanted):
        raise GraphError(f"{name} reaches outside its tensor: {tuple(found)} for {tuple(wanted)}")


def _slice_rule(args: Sequence[TensorType], attrs: Attributes) -> TensorType:
    (arg,) = args
    part = tuple(map(Dim.of, attrs["sizes"]))
    _check_inside("slice", arg, part, attrs)
    return TensorType(arg.dtype, part)


def _slice(array: Array, *, size: SizeOf, starts: Dims, steps: Any, sizes: Dims) -> Array:
    wanted = tuple(map(size, sizes))
    part: Array = array[_slices(starts, steps, wanted, size)]
    _check_part("slice", part.shape, wanted)
    return part


def _slice_lower(reader: Reader, node: Node, indices: tuple[Dim, ...]) -> Expr:
    starts, steps = node.attributes["starts"], node.attributes["steps"]
    return reader.read(
        0, *(start + step * i for start, step, i in zip(starts, steps, indices, strict=True))
    )


def _slice_vjp(node: Node, g: Node) -> Sequence[Node]:
    starts, steps = node.attributes["starts"], node.attributes["steps"]
    return (apply("unslice", g, shape=node.args[0].shape, starts=starts, steps=steps),)


structural(
    "slice", "movement", rule=_slice_rule, numpy=_slice, lower=_slice_lower, vjp=_slice_vjp,
    linear=(0,),
    program=lambda x, *, starts, steps, sizes, **_: f"{x}[{_ranges(starts, steps, sizes)}]",
)  # fmt: skip


def _unslice_rule(args: Sequence[TensorType], attrs: Attributes) -> TensorType:
    (arg,) = args
    result = TensorType.of(arg.dtype, attrs["shape"])
    if result.rank != arg.rank:
        raise ShapeError(f"unslice: {arg} is not a part of {result}")
    _check_inside("unslice", result, arg.shape, attrs)
    return result


def _unslice(array: Array, *, size: SizeOf, shape: Dims, starts: Dims, steps: Any) -> Array:
    whole = np.zeros(tuple(map(size, shape)), array.dtype)
    where = _slices(starts, steps, array.shape, size)
    _check_part("unslice", whole[where].shape, array.shape)
    whole[where] = array
    return whole


def _unslice_text(x: str, *, shape: Any, shapes: Any, starts: Any, steps: Any, **_: Any) -> str:
    where = _ranges(starts, steps, shapes[0])
    whole = f"np.zeros({shape}, {x}.dtype)"
    return f"(lambda whole: (whole.__setitem__(({where}), {x}), whole)[1])({whole})"


def _unslice_lower(reader: Reader, node: Node, indices: tuple[Dim, ...]) -> Expr:
    """The element of g that lies at ``indices``, if one does."""
    pool = reader.pool
    conditions: list[Expr] = []
    source: list[Dim] = []
    attrs = node.attributes
    zero = pool.literal(_ZERO[node.dtype.category](0), node.dtype)
    for axis, index in enumerate(indices):
        step, taken = attrs["steps"][axis], node.args[0].shape[axis]
        offset = index - attrs["starts"][axis] if step > 0 else attrs["starts"][axis] - index
        for relation, left, right in (
            ("ge", offset, 0), ("lt", offset, abs(step) * taken), ("eq", offset % abs(step), 0),
        ):  # fmt: skip
            conditions.append(pool.relation(relation, left, right))
            if isinstance(conditions[-1], Literal) and not conditions[-1].value:
                return zero
        source.append(offset // abs(step))
    inside = pool.conjunction(conditions)
    return pool.select(inside, reader.read(0, *source), zero)


_ZERO: dict[int, Any] = {BOOL: bool, INTEGER: int, FLOAT: float}


def _unslice_vjp(node: Node, g: Node) -> Sequence[Node]:
    starts, steps = node.attributes["starts"], node.attributes["steps"]
    return (apply("slice", g, starts=starts, steps=steps, sizes=node.args[0].shape),)


structural(
    "unslice", "movement", rule=_unslice_rule, numpy=_unslice, lower=_unslice_lower,
    vjp=_unslice_vjp, linear=(0,), program=_unslice_text,
)  # fmt: skip


# -- concat


def _concat_rule(args: Sequence[TensorType], attrs: Attributes) -> TensorType:
    axis, first = attrs["axis"], args[0]
    if not 0 <= axis < first.rank:
        raise ShapeError(f"concat: {first} has no axis {axis}")
    total = Dim.of(0)
    for arg in args:
        if arg.dtype != first.dtype:
            raise DTypeError(f"concat takes tensors of one dtype, not {first} and {arg}")
        if arg.rank != first.rank or without(arg.shape, [axis]) != without(first.shape, [axis]):
            raise ShapeError(f"concat along axis {axis}: {arg} does not fit {first}")
        total = total + arg.shape[axis]
    shape = list(first.shape)
    shape[axis] = total
    return TensorType(first.dtype, tuple(shape))


def _concat(*arrays: Array, size: SizeOf, axis: int) -> Array:
    return np.concatenate(arrays, axis=axis)


def _concat_lower(reader: Reader, node: Node, indices: tuple[Dim, ...]) -> Expr:
    axis, pool = node.attributes["axis"], reader.pool
    place, end = indices[axis], Dim.of(0)
    limits: list[Dim] = []
    asked: list[tuple[int, tuple[Dim, ...]]] = []
    for position, arg in enumerate(node.args):
        local = (*indices[:axis], place - end, *indices[axis + 1 :])
        end = end + arg.shape[axis]
        limits.append(end)
        asked.append((position, local))
    numbers = [limit.constant for limit in limits]
    if place.constant is not None and all(number is not None for number in numbers):
        found = next((n for n, limit in enumerate(numbers) if place.constant < limit), -1)
        return reader.read(asked[found][0], *asked[found][1])
    *others, result = reader.read_all(asked)
    for limit, part in zip(reversed(limits[:-1]), reversed(others), strict=True):
        result = pool.select(pool.relation("lt", place, limit), part, result)
    return result


def _concat_vjp(node: Node, g: Node) -> Sequence[Node]:
    axis = node.attributes["axis"]
    start = Dim.of(0)
    found = []
    for arg in node.args:
        starts = tuple(start if a == axis else Dim.of(0) for a in range(node.rank))
        found.append(apply("slice", g, starts=starts, steps=(1,) * node.rank, sizes=arg.shape))
        start = start + arg.shape[axis]
    return found


def _concat_tangent(node: Node, tangents: Sequence[Node | None]) -> Node | None:
    if all(tangent is None for tangent in tangents):
        return None
    filled = (
        arg.graph.lift(0.0, arg) if tangent is None else tangent
        for arg, tangent in zip(node.args, tangents, strict=True)
    )
    return apply("concat", *filled, axis=node.attributes["axis"])


structural(
    "concat", "movement", rule=_concat_rule, numpy=_concat, lower=_concat_lower, vjp=_concat_vjp,
    arity=None, tangent=_concat_tangent,
    program=lambda *parts, axis, **_: f"np.concatenate([{', '.join(parts)}], axis={axis})",
)  # fmt: skip


# -- diagonal: the two axes disappear, the diagonal comes last, as in NumPy and torch


def _diagonal_rule(args: Sequence[TensorType], attrs: Attributes) -> TensorType:
    (arg,) = args
    axes, offset = attrs["axes"], attrs["offset"]
    if len(axes) != 2 or len(set(axes)) != 2 or not all(0 <= axis < arg.rank for axis in axes):
        raise ShapeError(f"diagonal: {axes} are not two axes of {arg}")
    rows, columns = arg.shape[axes[0]], arg.shape[axes[1]]
    length = minimum(rows + min(offset, 0), columns - max(offset, 0))
    if (-1 - length).at_least(0):
        raise ShapeError(f"the diagonal {offset} of {arg} lies outside of it")
    return TensorType(arg.dtype, (*without(arg.shape, axes), length))


def _diagonal(array: Array, *, size: SizeOf, offset: int, axes: tuple[int, int]) -> Array:
    return np.diagonal(array, offset, *axes)


def _diagonal_lower(reader: Reader, node: Node, indices: tuple[Dim, ...]) -> Expr:
    offset, axes = node.attributes["offset"], node.attributes["axes"]
    along = indices[-1]
    put = {axes[0]: along + max(-offset, 0), axes[1]: along + max(offset, 0)}
    rest = iter(indices[:-1])
    rank = node.args[0].rank
    return reader.read(0, *(put[axis] if axis in put else next(rest) for axis in range(rank)))


def _diagonal_vjp(node: Node, g: Node) -> Sequence[Node]:
    """G at (row, row + offset), broadcast over the columns and masked elsewhere."""
    (x,) = node.args
    offset, axes, graph = node.attributes["offset"], node.attributes["axes"], node.graph
    batch, rows, columns = node.shape[:-1], x.shape[axes[0]], x.shape[axes[1]]
    starts = (0,) * len(batch) + (max(-offset, 0),)
    by_row = apply("unslice", g, shape=(*batch, rows), starts=starts, steps=(1,) * node.rank)
    shape = (*batch, rows, columns)
    spread = graph.expand(apply("reshape", by_row, shape=(*batch, rows, Dim.of(1))), shape)
    row = apply("reshape", graph.apply("iota", length=rows), shape=(rows, Dim.of(1)))
    column = graph.expand(graph.apply("iota", length=columns), (rows, columns))
    on = compare("eq", column, graph.expand(row, (rows, columns)) + offset)
    full = choose(graph.expand(on, shape), spread, 0.0)
    last = {axes[0]: x.rank - 2, axes[1]: x.rank - 1}
    rest = iter(range(x.rank - 2))
    return (
        apply(
            "permute", full,
            axes=tuple(last[axis] if axis in last else next(rest) for axis in range(x.rank)),
        ),
    )  # fmt: skip


structural(
    "diagonal", "movement", rule=_diagonal_rule, numpy=_diagonal, lower=_diagonal_lower,
    vjp=_diagonal_vjp, linear=(0,), program="np.diagonal({0}, {offset}, *{axes})",
    code="{0}.diagonal({offset}, {axes[0]}, {axes[1]})",
)  # fmt: skip
