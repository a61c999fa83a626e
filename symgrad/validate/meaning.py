"""What the elements of a graph are, at concrete sizes and inputs.

In: a graph, sizes, arrays of exact numbers.  Out: the elements of its nodes, by index notation.

This evaluates ``index.lower`` over the reals, with a table of its own of what each op means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import isfinite
from typing import Any

import numpy as np
from flint import fmpq

from symgrad.index.lower import Lowering
from symgrad.ir.atoms import Atom, Axis, Element, Size
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import BY_NAME, DType, bool_, float32
from symgrad.ir.expr import Access, Call, Expr, IntValue, Literal, Reduce
from symgrad.ir.graph import Graph
from symgrad.validate.reals import INFINITY, NAN, ONE, ZERO, Number, Reals
from symgrad.validate.source import Unsupported

APPROXIMATE = frozenset(("erfinv", "digamma", "trigamma", "tetragamma"))
"""Ops whose C is no formula of the reals: polynomials."""


class OutOfRange(Exception):
    """An element is read at an index that its tensor does not have."""


@dataclass(frozen=True)
class Tensor:
    """An array of exact numbers, in C order."""

    shape: tuple[int, ...]
    values: Sequence[Any]

    def at(self, indices: tuple[int, ...]) -> Any:
        """An element.  Raises OutOfRange."""
        place = 0
        for index, extent in zip(indices, self.shape, strict=True):
            if not 0 <= index < extent:
                raise OutOfRange(f"{indices} of {self.shape}")
            place = place * extent + index
        return self.values[place]


def rounded(value: float, dtype: DType) -> Number:
    """A number as C stores it, exactly."""
    if dtype == bool_ or not dtype.is_float:
        return int(value)
    with np.errstate(over="ignore"):
        stored = float(np.float32(value)) if dtype == float32 else float(value)
    if not isfinite(stored):
        return stored
    exact = Fraction(stored)
    return fmpq(exact.numerator, exact.denominator)


class Meaning:
    """The elements of one graph at one point."""

    def __init__(
        self, graph: Graph, sizes: Mapping[str, int], feeds: Mapping[str, Tensor], reals: Reals
    ) -> None:
        self.used: set[str] = set()
        self._graph = graph
        self._sizes = sizes
        self._feeds = feeds
        self._reals = reals
        self._lowering = Lowering(graph)
        self._elements: dict[str, tuple[tuple[Axis | None, ...], Expr]] = {}
        self._memo: dict[tuple[Any, ...], Any] = {}
        self._order: dict[Expr, tuple[Axis, ...]] = {}

    @property
    def values(self) -> int:
        """How many values were found so far, outputs and what they are computed from."""
        return len(self._memo)

    def shape(self, dims: Sequence[Dim]) -> tuple[int, ...]:
        """Concrete extents."""
        return tuple(dim.at(self._sizes) for dim in dims)

    def output(self, name: str) -> Tensor:
        """All elements of an output; None where one lies at an index that there is not.

        Raises Unsupported, Undecided.
        """
        node = self._graph.outputs[name]
        shape = self.shape(node.shape)
        places = product(*map(range, shape))
        return Tensor(shape, [self._element(name, place) for place in places])

    def _element(self, name: str, place: tuple[int, ...]) -> Any:
        try:
            return self._at(name, place, output=True)
        except OutOfRange:
            return None
        except RecursionError as error:
            raise Unsupported("its index notation is nested too deeply") from error

    def _at(self, name: str, place: tuple[int, ...], *, output: bool = False) -> Any:
        """An element of an input, of a node that was cut (``%<index>``), or of an output."""
        if not output and name in self._feeds:
            return self._feeds[name].at(place)
        key = (output, name)
        found = self._elements.get(str(key))
        if found is None:
            node = self._graph.outputs[name] if output else self._node(name)
            axes = self._lowering.axes(node)
            where = [
                Dim.of(0) if extent == 1 else Dim.of(axis)
                for extent, axis in zip(node.shape, axes, strict=True)
            ]
            expr = self._lowering.element(node, where, body=True)
            kept = tuple(
                None if extent == 1 else axis for extent, axis in zip(node.shape, axes, strict=True)
            )
            found = self._elements[str(key)] = (kept, expr)
        axes_, expr = found
        env = {axis: index for axis, index in zip(axes_, place, strict=True) if axis is not None}
        return self._value(expr, env)

    def _node(self, name: str) -> Any:
        return self._graph.nodes[int(name.removeprefix("%"))]

    # -- integer expressions

    def _dim(self, dim: Dim, env: Mapping[Axis, int]) -> int:
        def lookup(atom: Atom) -> int:
            if isinstance(atom, Size):
                return self._sizes[atom.name]
            if isinstance(atom, Axis):
                return env[atom]
            if isinstance(atom, Element):
                return int(self._stored(atom.tensor, atom.indices, env))
            raise Unsupported(f"the index {atom}")

        return dim.evaluate(lookup)

    def _stored(self, tensor: str, indices: tuple[Dim, ...], env: Mapping[Axis, int]) -> Any:
        place = tuple(self._dim(index, env) for index in indices)
        if tensor not in self._feeds:
            shape = self.shape(self._node(tensor).shape)
            if any(not 0 <= index < extent for index, extent in zip(place, shape, strict=True)):
                raise OutOfRange(f"{place} of {shape}")
        return self._at(tensor, place)

    # -- scalars

    def _value(self, expr: Expr, env: Mapping[Axis, int]) -> Any:
        axes = self._order.get(expr)
        if axes is None:
            axes = self._order[expr] = tuple(sorted(expr.free, key=lambda axis: axis.key))
        key = (expr, *(env[axis] for axis in axes))
        if key in self._memo:
            return self._memo[key]
        found = self._memo[key] = self._compute(expr, env)
        return found

    def _compute(self, expr: Expr, env: Mapping[Axis, int]) -> Any:
        if isinstance(expr, Literal):
            return rounded(expr.value, expr.dtype)
        if isinstance(expr, IntValue):
            value = self._dim(expr.value, env)
            return fmpq(value) if expr.dtype.is_float else value
        if isinstance(expr, Access):
            return self._stored(expr.tensor, expr.indices, env)
        if isinstance(expr, Reduce):
            return self._reduce(expr, env)
        assert isinstance(expr, Call)
        self.used.add(expr.function)
        if expr.function == "where":
            condition, chosen, other = expr.operands
            return self._value(chosen if self._value(condition, env) else other, env)
        if expr.function in ("logical_and", "logical_or"):
            first = bool(self._value(expr.operands[0], env))
            if first == (expr.function == "logical_or"):
                return int(first)
            return int(bool(self._value(expr.operands[1], env)))
        operands = [self._value(one, env) for one in expr.operands]
        return self._call(expr, operands)

    def _call(self, expr: Call, operands: list[Any]) -> Any:
        name, reals = expr.function, self._reals
        if name.startswith("wrap_"):
            return BY_NAME[_WRAPPED[name]].wrapped(operands[0])
        if name == "cast":
            return self._cast(operands[0], expr.dtype)
        if all(isinstance(one, int) for one in operands) and not expr.dtype.is_float:
            integer = _INTEGERS.get(name)
            if integer is None:
                raise Unsupported(f"{name} of integers")
            return integer(*operands)
        operands = [fmpq(one) if isinstance(one, int) else one for one in operands]
        if name in _COMPARED:
            order = reals.compare(*operands)
            return int(name == "ne" if order is None else _COMPARED[name](order))
        if name not in _REALS:
            raise Unsupported(f"the op {name}")
        return _REALS[name](reals, *operands)

    def _cast(self, value: Any, dtype: DType) -> Any:
        if dtype.is_float:
            return fmpq(value) if isinstance(value, int) else value
        if isinstance(value, int):
            return value
        whole = self._reals.apply("trunc", value)
        return int(whole.p) if isinstance(whole, fmpq) else whole

    def _reduce(self, expr: Reduce, env: Mapping[Axis, int]) -> Any:
        extent = self._dim(expr.axis.extent, env)
        values = [self._value(expr.body, {**env, expr.axis: index}) for index in range(extent)]
        kind, is_float = expr.kind, expr.body.dtype.is_float
        if kind.startswith("arg"):
            return self._place(values, 1 if kind == "argmax" else -1, is_float)
        if kind in ("any", "all"):
            return int(any(values) if kind == "any" else all(values))
        if not is_float:
            return _of_integers(kind, values, expr.body.dtype)
        start, join = {
            "sum": (ZERO, self._reals.add), "prod": (ONE, self._reals.mul),
            "max": (-INFINITY, self._reals.maximum), "min": (INFINITY, self._reals.minimum),
        }[kind]  # fmt: skip
        for value in values:
            start = join(start, value)
        return start

    def _place(self, values: list[Any], wanted: int, is_float: bool) -> Any:
        """The first place of the greatest (1) or least (-1) value."""
        if not values:
            return NAN
        best = 0
        for place, value in enumerate(values):
            if is_float:
                order = self._reals.compare(value, values[best])
            else:
                order = (value > values[best]) - (value < values[best])
            if order is None:
                return NAN
            if order == wanted:
                best = place
        return best


def _of_integers(kind: str, values: list[int], dtype: DType) -> int:
    if kind == "sum":
        return sum(values)
    if kind == "prod":
        found = 1
        for value in values:
            found *= value
        return found
    if kind == "max":
        return max(values, default=0 if dtype == bool_ else dtype.least)
    return min(values, default=1 if dtype == bool_ else dtype.greatest)


_WRAPPED = {
    "wrap_i8": "int8", "wrap_u8": "uint8", "wrap_i16": "int16", "wrap_i32": "int32",
}  # fmt: skip
_COMPARED: dict[str, Callable[[int], bool]] = {
    "eq": lambda order: order == 0, "ne": lambda order: order != 0, "lt": lambda order: order < 0,
    "le": lambda order: order <= 0, "gt": lambda order: order > 0, "ge": lambda order: order >= 0,
}  # fmt: skip


def _truncated(x: int, y: int) -> int:
    """The remainder that has the sign of x, as C's."""
    rest = abs(x) % abs(y)
    return -rest if x < 0 else rest


_INTEGERS: dict[str, Callable[..., int]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
    "neg": lambda x: -x, "square": lambda x: x * x, "abs": abs,
    "floordiv": lambda x, y: x // y if y else 0, "mod": lambda x, y: x % y if y else 0,
    "fmod": lambda x, y: _truncated(x, y) if y else 0, "maximum": max, "minimum": min,
    "sign": lambda x: (x > 0) - (x < 0), "relu": lambda x: max(x, 0), "shift": lambda x: x,
    "eq": lambda x, y: int(x == y), "ne": lambda x, y: int(x != y), "lt": lambda x, y: int(x < y),
    "le": lambda x, y: int(x <= y), "gt": lambda x, y: int(x > y), "ge": lambda x, y: int(x >= y),
    "logical_not": lambda x: int(not x), "logical_xor": lambda x, y: int(bool(x) != bool(y)),
}  # fmt: skip


def _sign(reals: Reals, x: Number) -> Number:
    sign = reals.sign(x)
    return NAN if sign is None else fmpq(sign)


def _softplus(reals: Reals, x: Number) -> Number:
    return reals.apply("log1p", reals.apply("exp", x))


def _sigmoid(reals: Reals, x: Number) -> Number:
    return reals.div(ONE, reals.add(ONE, reals.apply("exp", reals.neg(x))))


def _logaddexp(reals: Reals, x: Number, y: Number) -> Number:
    return reals.apply("log", reals.add(reals.apply("exp", x), reals.apply("exp", y)))


def _floordiv(reals: Reals, x: Number, y: Number) -> Number:
    quotient = reals.div(x, y)
    return quotient if isinstance(quotient, float) else reals.apply("floor", quotient)


def _mod(reals: Reals, x: Number, y: Number) -> Number:
    quotient = _floordiv(reals, x, y)
    return quotient if isinstance(quotient, float) else reals.sub(x, reals.mul(y, quotient))


def _function(name: str) -> Callable[..., Number]:
    return lambda reals, *operands: reals.apply(name, *operands)


_REALS: dict[str, Callable[..., Number]] = {
    **{
        name: _function(name)
        for name in (
            "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "copysign", "cos",
            "cosh", "digamma", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "fmod",
            "hypot", "lgamma", "log", "log10", "log1p", "log2", "pow", "sin", "sinh", "sqrt", "tan",
            "tanh", "tetragamma", "trigamma", "trunc",
        )
    },
    "abs": _function("fabs"),
    "root": _function("sqrt"),
    "round": _function("rint"),
    "add": Reals.add,
    "sub": Reals.sub,
    "mul": Reals.mul,
    "div": Reals.div,
    "neg": Reals.neg,
    "maximum": Reals.maximum,
    "minimum": Reals.minimum,
    "reciprocal": lambda reals, x: reals.div(ONE, x),
    "square": lambda reals, x: reals.mul(x, x),
    "rsqrt": lambda reals, x: reals.div(ONE, reals.apply("sqrt", x)),
    "relu": lambda reals, x: reals.maximum(x, ZERO),
    "shift": lambda reals, x: x,
    "sign": _sign,
    "sigmoid": _sigmoid,
    "silu": lambda reals, x: reals.mul(x, _sigmoid(reals, x)),
    "softplus": _softplus,
    "log_sigmoid": lambda reals, x: reals.neg(_softplus(reals, reals.neg(x))),
    "logaddexp": _logaddexp,
    "floordiv": _floordiv,
    "mod": _mod,
}  # fmt: skip
