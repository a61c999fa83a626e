"""Running sums and products along one axis, from either end.

In: nothing.  Out: records.  Imports: ``symgrad.ops``, ``symgrad.ir`` and numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.errors import DTypeError, ShapeError
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import int64
from symgrad.ir.expr import Expr
from symgrad.ir.graph import Node
from symgrad.ir.types import TensorType
from symgrad.ops.record import (
    Array,
    Reader,
    SizeOf,
    Vjp,
    adds_up,
    apply,
    choose,
    compare,
    insert,
    structural,
    without,
)


def _scan(
    name: str,
    numpy: Callable[..., Any],
    reduce: str,
    neutral: float,
    *,
    vjp: Vjp,
    linear: tuple[int, ...] = (),
    tangent: Callable[[Node, Sequence[Node | None]], Node | None] | None = None,
) -> None:
    """``result[i] = reduce of x[k] over k <= i`` (``k >= i`` with ``reverse``)."""

    def rule(args: Sequence[TensorType], attrs: Mapping[str, Any]) -> TensorType:
        (arg,) = args
        if not 0 <= attrs["axis"] < arg.rank:
            raise ShapeError(f"{name}: {arg} has no axis {attrs['axis']}")
        if not adds_up(arg.dtype):
            raise DTypeError(f"{name} does not take {arg.dtype}")
        return arg

    def evaluate(array: Array, *, size: SizeOf, axis: int, reverse: bool) -> Array:
        if reverse:
            return np.asarray(np.flip(numpy(np.flip(array, axis), axis=axis), axis))
        return np.asarray(numpy(array, axis=axis))

    def lower(reader: Reader, node: Node, indices: tuple[Dim, ...]) -> Expr:
        axis, relation = node.attributes["axis"], "ge" if node.attributes["reverse"] else "le"
        pool, others = reader.pool, without(indices, [axis])
        zero = pool.literal(neutral if node.dtype.is_float else int(neutral), node.dtype)

        def body(bound: Dim) -> Expr:
            value = reader.read(0, *insert(others, [axis], [bound]))
            return pool.select(pool.relation(relation, bound, indices[axis]), value, zero)

        return reader.reduce(reduce, [node.shape[axis]], body)

    structural(
        name, "reduction", rule=rule, numpy=evaluate, lower=lower, vjp=vjp, linear=linear,
        tangent=tangent,
    )  # fmt: skip


def _running(name: str, x: Node, like: Node, *, back: bool = False) -> Node:
    """A scan of ``x`` along the axis of ``like``, the same way or, with ``back``, the other."""
    axis, reverse = like.attributes["axis"], like.attributes["reverse"]
    return apply(name, x, axis=axis, reverse=reverse != back)


def _cumsum(array: Array, axis: int) -> Array:
    """NumPy's, floats added up in double."""
    wide = np.float64 if array.dtype.kind == "f" else array.dtype
    return np.asarray(np.cumsum(array, axis=axis, dtype=wide), array.dtype)


_scan(
    "cumsum", _cumsum, "sum", 0.0, linear=(0,),
    vjp=lambda node, g: (_running("cumsum", g, node, back=True),),
)  # fmt: skip


# -- cumprod: right where factors are zero, too.  Before the first zero of a line the factor is
# divided out; at it, the products are taken again with 1 in its place; behind it nothing depends
# on any other factor.


def _first_zero(node: Node) -> tuple[Node, Node, Node, Node]:
    """(is zero, lies before the first zero, is the first zero, products as if that were 1)."""
    (x,) = node.args
    zero = compare("eq", x, 0.0)
    zeros = _running("cumsum", apply("cast", zero, dtype=int64), node)
    first = apply("logical_and", zero, compare("eq", zeros, 1))
    return zero, compare("eq", zeros, 0), first, _running("cumprod", choose(first, 1.0, x), node)


def _cumprod_vjp(node: Node, g: Node) -> Sequence[Node]:
    (x,) = node.args
    _, before, first, products = _first_zero(node)
    divided = _running("cumsum", g * node, node, back=True) / x
    again = _running("cumsum", g * products, node, back=True)
    return (choose(before, divided, choose(first, again, 0.0)),)


def _cumprod_tangent(node: Node, tangents: Sequence[Node | None]) -> Node | None:
    (tangent,) = tangents
    if tangent is None:
        return None
    zero, before, first, products = _first_zero(node)
    divided = node * _running("cumsum", choose(zero, 0.0, tangent / node.args[0]), node)
    again = products * _running("cumsum", choose(first, tangent, 0.0), node)
    return choose(before, divided, again)


_scan("cumprod", np.cumprod, "prod", 1.0, vjp=_cumprod_vjp, tangent=_cumprod_tangent)
