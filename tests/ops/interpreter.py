"""A slow reading of index notation: one element at a time, straight from the grammar.

In: an expression, arrays by name, sizes.  Out: a number.  It shares nothing with the code
generator; scalar functions are NumPy's, through the registry.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from symgrad.index.lower import Lowering
from symgrad.ir.dim import Atom, Axis, Dim, Element, Size
from symgrad.ir.expr import Access, Call, Expr, IntValue, Literal, Reduce
from symgrad.ir.graph import Node
from symgrad.ops.record import get

Array = np.ndarray[Any, Any]
Bindings = Mapping[Axis, int]


class Interpreter:
    """Evaluates expressions over ``arrays`` with ``sizes``."""

    def __init__(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> None:
        self.arrays = arrays
        self.sizes = sizes

    def number(self, dim: Dim, bound: Bindings) -> int:
        def lookup(atom: Atom) -> int:
            if isinstance(atom, Size):
                return self.sizes[atom.name]
            if isinstance(atom, Axis):
                return bound[atom]
            assert isinstance(atom, Element)
            return int(self.load(atom.tensor, atom.indices, bound))

        return dim.evaluate(lookup)

    def load(self, tensor: str, indices: tuple[Dim, ...], bound: Bindings) -> Any:
        where = tuple(self.number(index, bound) for index in indices)
        shape = self.arrays[tensor].shape
        assert len(where) == len(shape)
        assert all(0 <= i < n for i, n in zip(where, shape, strict=True)), (tensor, where, shape)
        return self.arrays[tensor][where]

    def value(self, expr: Expr, bound: Bindings) -> Any:
        kind = str(expr.dtype)
        if isinstance(expr, Literal):
            return np.asarray(expr.value, kind)[()]
        if isinstance(expr, IntValue):
            return np.asarray(self.number(expr.value, bound), kind)[()]
        if isinstance(expr, Access):
            return self.load(expr.tensor, expr.indices, bound)
        if isinstance(expr, Reduce):
            return self.reduce(expr, bound)
        assert isinstance(expr, Call)
        if expr.function == "where":  # the other operand may read out of range
            chosen = self.value(expr.operands[0], bound)
            return self.value(expr.operands[1 if chosen else 2], bound)
        if expr.function == "cast":
            return np.asarray(self.value(expr.operands[0], bound)).astype(kind)[()]
        operands = [np.asarray(self.value(operand, bound)) for operand in expr.operands]
        if expr.function == "logical_and" and not operands[0]:
            return np.False_
        return get(expr.function).numpy(*operands, size=None)[()]

    def reduce(self, expr: Reduce, bound: Bindings) -> Any:
        extent = self.number(expr.axis.extent, bound)
        values = [self.value(expr.body, {**bound, expr.axis: i}) for i in range(extent)]
        kind = str(expr.body.dtype)
        if expr.kind in ("sum", "prod"):
            total = np.asarray(expr.kind == "prod", kind)[()]
            for value in values:
                total = total + value if expr.kind == "sum" else total * value
            return total
        if expr.kind in ("any", "all"):
            return np.bool_({"any": any, "all": all}[expr.kind](values))
        return self.extreme(expr.kind, values, kind)

    @staticmethod
    def extreme(kind: str, values: list[Any], dtype: str) -> Any:
        """The first extreme element, or its position; NaN is more extreme than any number."""
        if not values:
            if kind.startswith("arg"):
                return np.int64(0)
            integer = np.dtype(dtype).kind in "iu"
            lowest = np.iinfo(dtype).min if integer else -math.inf
            highest = np.iinfo(dtype).max if integer else math.inf
            return np.asarray(lowest if kind == "max" else highest, dtype)[()]
        better: Callable[[Any, Any], Any] = (
            (lambda a, b: a > b) if kind.endswith("max") else (lambda a, b: a < b)
        )
        best = 0
        for position, value in enumerate(values):
            current = values[best]
            if current == current and (value != value or better(value, current)):
                best = position
        return np.int64(best) if kind.startswith("arg") else values[best]


def interpret(node: Node, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> Array:
    """Every element of ``node``, by its meaning in index notation."""
    lowering = Lowering(node.graph)
    axes = lowering.axes(node)
    expr = lowering.element(node, [Dim.of(axis) for axis in axes])
    reader = Interpreter(arrays, sizes)
    shape = tuple(reader.number(size, {}) for size in node.shape)
    result = np.empty(shape, str(node.dtype))
    with np.errstate(all="ignore"):
        for where in itertools.product(*map(range, shape)):
            bound = dict(zip(axes, where, strict=True))
            result[where] = reader.value(expr, bound)
    return result
