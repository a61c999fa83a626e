"""Running sums and products along one axis, from either end.

In: nothing.  Out: records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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
    Tangent,
    Vjp,
    adds_up,
    apply,
    choose,
    compare,
    insert,
    of_one,
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
    tangent: Tangent | None = None,
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

    def text(operand: str, *, axis: int, reverse: bool, **facts: Any) -> str:
        if reverse:
            return f"np.flip(np.{name}(np.flip({operand}, {axis}), axis={axis}), {axis})"
        return f"np.{name}({operand}, axis={axis})"

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
        tangent=tangent, program=text,
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


# -- cumprod: right where factors are zero, and so are its second derivatives.  Before the
# first zero of a line the factor is divided out; at it, the products are taken with 1 in its place;
# behind it they are that zero times what they are with 1 in its place, where the next zero is the
# first.  So many zeros are followed as derivatives are to be right; beyond that, what depends on
# more zeros is NaN.

_FOLLOWED = 2  # zeros of one line, and orders of derivatives; each costs a few scans more


@dataclass(frozen=True)
class _Line:
    """The factors of a scan, and where they are zero."""

    x: Node
    scan: Node

    def run(self, name: str, x: Node, *, back: bool = False) -> Node:
        return _running(name, x, self.scan, back=back)

    @cached_property
    def zero(self) -> Node:
        return compare("eq", self.x, 0.0)

    @cached_property
    def zeros(self) -> Node:
        """How many zeros there are up to here."""
        return self.run("cumsum", apply("cast", self.zero, dtype=int64))

    @cached_property
    def before(self) -> Node:
        return compare("eq", self.zeros, 0)

    @cached_property
    def first(self) -> Node:
        return apply("logical_and", self.zero, compare("eq", self.zeros, 1))

    @cached_property
    def divisor(self) -> Node:
        return choose(self.zero, 1.0, self.x)

    @cached_property
    def products(self) -> Node:
        return self.run("cumprod", self.x)

    @cached_property
    def rest(self) -> _Line:
        """The line with 1 for its first zero."""
        return _Line(choose(self.first, 1.0, self.x), self.scan)

    def at_first(self, values: Node) -> Node:
        """The value where the first zero is, there and behind it."""
        return self.run("cumsum", choose(self.first, values, 0.0))


def _unknown(line: _Line, scale: Node) -> Node:
    """0; so are its derivatives by the zeros in ``scale``, until one of order _FOLLOWED is NaN."""
    safe = choose(line.before, 1.0, scale)
    return safe.graph.binary("pow", safe, _FOLLOWED - 0.5)


def _pull(line: _Line, g: Node, scale: Node | None = None, followed: int = 1) -> Node:
    """``scale`` (the zeros before those of ``line``) times the cotangent of its factors."""
    zeros = line.at_first(line.x)
    again = line.run("cumsum", g * line.rest.products, back=True)
    divided = line.run("cumsum", g * line.products, back=True) / line.divisor
    passed = zeros if scale is None else scale * zeros
    if followed < _FOLLOWED:
        behind = _pull(line.rest, g, passed, followed + 1)
    else:
        behind = _unknown(line, passed) * again
    near = choose(line.first, again, divided)
    near = near if scale is None else scale * near
    return choose(apply("logical_or", line.before, line.first), near, behind)


def _push(line: _Line, t: Node, scale: Node | None = None, followed: int = 1) -> Node:
    """``scale`` (the zeros before those of ``line``) times the tangent of its products."""
    zeros = line.at_first(line.x)
    divided = line.products * line.run("cumsum", t / line.divisor)
    again = line.rest.products * line.at_first(t)
    passed = zeros if scale is None else scale * zeros
    others = choose(line.first, 0.0, t)
    if followed < _FOLLOWED:
        behind = _push(line.rest, others, passed, followed + 1)
    else:
        behind = _unknown(line, passed) * line.rest.products * line.run("cumsum", others)
    near = choose(line.before, divided, again)
    near = near if scale is None else scale * near
    return choose(line.before, near, near + behind)


def _cumprod_vjp(node: Node, g: Node) -> Sequence[Node]:
    return (_pull(_Line(node.args[0], node), g),)


@of_one
def _cumprod_tangent(node: Node, tangent: Node) -> Node:
    return _push(_Line(node.args[0], node), tangent)


_scan("cumprod", np.cumprod, "prod", 1.0, vjp=_cumprod_vjp, tangent=_cumprod_tangent)
