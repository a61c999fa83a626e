"""The value of index notation at concrete sizes, in 60-digit arithmetic.

In: an expression, sizes, arrays of mpmath numbers (or integers) for the tensors.  Out: a number.

Used to recompute the reference gradient at a counterexample, element by element; only what a
``where`` selects is read, so guarded accesses out of range do no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mpmath
import numpy as np

from symgrad.errors import GraphError
from symgrad.ir.dim import Atom, Axis, Dim, Element, Size
from symgrad.ir.expr import Access, Call, Expr, IntValue, Literal, Reduce
from symgrad.ir.graph import Scalar
from symgrad.proof.scalars.bodies import value_function

Assignment = dict[Axis, int]

_RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda x, y: bool(x == y),
    "ne": lambda x, y: bool(x != y),
    "lt": lambda x, y: bool(x < y),
    "le": lambda x, y: bool(x <= y),
    "gt": lambda x, y: bool(x > y),
    "ge": lambda x, y: bool(x >= y),
}


class Interpreter:
    """Evaluates expressions of one pool at one point.

    ``read``: how a literal is read.  ``tensors``: arrays by name; a cut node's by ``"%<index>"``.
    """

    def __init__(
        self,
        tensors: Mapping[str, np.ndarray[Any, Any]],
        sizes: Mapping[str, int],
        read: Callable[[Scalar], Any],
    ) -> None:
        self.tensors, self.sizes, self.read = tensors, sizes, read
        self._memo: dict[tuple[Any, ...], Any] = {}

    def value(self, expr: Expr, at: Assignment) -> Any:
        """The value of ``expr`` where its free axes have the values ``at``."""
        free = sorted(expr.free, key=lambda axis: axis.key)
        key = (expr.number, *(at[axis] for axis in free))
        if key not in self._memo:
            self._memo[key] = self._value(expr, at)
        return self._memo[key]

    def _value(self, expr: Expr, at: Assignment) -> Any:
        if isinstance(expr, Literal):
            return self.read(expr.value)
        if isinstance(expr, IntValue):
            number = self.integer(expr.value, at)
            return mpmath.mpf(number) if expr.dtype.is_float else number
        if isinstance(expr, Access):
            return self._element(expr.tensor, expr.indices, at)
        if isinstance(expr, Call):
            return self._call(expr, at)
        if isinstance(expr, Reduce):
            return self._reduce(expr, at)
        raise GraphError(f"no value of {expr!r}")

    def _element(self, tensor: str, indices: tuple[Dim, ...], at: Assignment) -> Any:
        where = tuple(self.integer(index, at) for index in indices)
        array = self.tensors[tensor]
        if any(not 0 <= index < size for index, size in zip(where, array.shape, strict=True)):
            raise IndexError(f"{tensor}{list(where)} is out of range")
        return array[where]

    def integer(self, dim: Dim, at: Assignment) -> int:
        """The value of an integer expression."""

        def lookup(atom: Atom) -> int:
            if isinstance(atom, Size):
                return self.sizes[atom.name]
            if isinstance(atom, Axis):
                return at[atom]
            if isinstance(atom, Element):
                return int(self._element(atom.tensor, atom.indices, at))
            raise GraphError(f"no value of {atom}")

        return dim.evaluate(lookup)

    def _call(self, expr: Call, at: Assignment) -> Any:
        name = expr.function
        if name == "where":
            chosen = 1 if self.value(expr.operands[0], at) else 2
            return self.value(expr.operands[chosen], at)
        if name == "pi":
            return +mpmath.pi
        values = [self.value(operand, at) for operand in expr.operands]
        if name in _RELATIONS:
            return _RELATIONS[name](*values)
        if name.startswith("logical_"):
            return _logical(name, [bool(value) for value in values])
        if name == "cast":
            return _cast(values[0], expr)
        result = value_function(name, len(values))(*values)
        return result if expr.dtype.is_float else int(result)

    def _reduce(self, expr: Reduce, at: Assignment) -> Any:
        extent = self.integer(expr.axis.extent, at)
        values = [self.value(expr.body, {**at, expr.axis: index}) for index in range(extent)]
        if expr.kind == "sum":
            return sum(values, mpmath.mpf(0) if expr.dtype.is_float else 0)
        if expr.kind == "prod":
            result: Any = mpmath.mpf(1) if expr.dtype.is_float else 1
            for value in values:
                result = result * value
            return result
        if expr.kind in ("any", "all"):
            return any(values) if expr.kind == "any" else all(values)
        best = max(values) if expr.kind.endswith("max") else min(values)
        return values.index(best) if expr.kind.startswith("arg") else best


def _logical(name: str, values: list[bool]) -> bool:
    if name == "logical_not":
        return not values[0]
    left, right = values
    if name == "logical_xor":
        return left != right
    return (left and right) if name == "logical_and" else (left or right)


def _cast(value: Any, expr: Expr) -> Any:
    if expr.dtype.is_float:
        return mpmath.mpf(value)
    return bool(value) if expr.dtype.name == "bool_" else int(value)
