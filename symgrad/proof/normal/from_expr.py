"""Index notation -> polynomials.

In: expressions of one pool (``symgrad.ir.expr``) and a context.  Out: polynomials; every
expression is converted once, arguments first, whatever the depth.

A float literal is its shortest decimal exactly; with ``Facts.recognise`` one that rounds a known
constant is that constant, and the reading is kept in ``Context.readings``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import sympy

from symgrad.ir.dim import Axis, Dim, Element
from symgrad.ir.dtype import DType, bool_
from symgrad.ir.expr import Access, Call, Expr, IntValue, Literal, Reduce, postorder
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import (
    extrema,
    functions,
    integers,
    leaves,
    multiply,
    power,
    products,
    scalar,
    signs,
    sums,
)
from symgrad.proof.normal.atoms import Atom, Undecided
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.poly import ONE, Poly, constant, exact, of_atom
from symgrad.proof.oracle import literals, scalars

Definitions = Callable[[str, tuple[Dim, ...]], Expr | None]
"""What an element of a computed tensor is, given its name and indices; None for a given tensor."""

DEEPEST_DEFINITION = 16


class Conversion:
    """Expressions as polynomials of one context, with a memo.

    ``definitions``: what cut nodes stand for that are to be looked through: computed integer
    tensors that serve as indices, which index notation can only name.
    """

    def __init__(self, context: Context, definitions: Definitions | None = None) -> None:
        self.context = context
        self.axes: dict[Axis, Poly] = {}
        self._memo: dict[Expr, Poly] = {}
        self._definitions = definitions
        self._depth = 0
        self._environment = integers.Environment(self.axes, self._element)

    def poly(self, expr: Expr) -> Poly:
        """The normal form of an expression.  Raises Undecided with the reason."""
        found = self._memo.get(expr)
        if found is None:
            for part in postorder([expr]):
                if part not in self._memo:
                    self._memo[part] = self._convert(part)
            found = self._memo[expr]
        return found

    def index(self, axis: Axis) -> Atom:
        """The index variable of an axis."""
        if any(True for _ in axis.extent.axes):
            raise Undecided(f"the extent of the axis {axis.name} depends on another axis")
        extent = integers.from_dim(self.context, axis.extent)
        atom = self.context.atom(kinds.INDEX, axis.name, extent)
        self.axes[axis] = of_atom(atom)
        return atom

    def _bind(self, dim: Dim) -> None:
        for axis in dim.axes:
            if axis not in self.axes:
                self.index(axis)

    def _access(self, expr: Access) -> Poly:
        computed = self._defined(expr.tensor, expr.indices)
        if computed is not None:
            return computed
        for index in expr.indices:
            self._bind(index)
        indices = tuple(
            integers.from_dim(self.context, index, self._environment) for index in expr.indices
        )
        return leaves.leaf(self.context, expr.tensor, indices, _sort(expr.dtype))

    def _element(self, element: Element) -> Poly | None:
        return self._defined(element.tensor, element.indices)

    def _defined(self, tensor: str, indices: tuple[Dim, ...]) -> Poly | None:
        """The element of a computed tensor, from its definition."""
        expr = None if self._definitions is None else self._definitions(tensor, indices)
        if expr is None:
            return None
        if self._depth >= DEEPEST_DEFINITION:
            raise Undecided("indices are computed from indices too deeply")
        self._depth += 1
        try:
            return self.poly(expr)
        finally:
            self._depth -= 1

    def _convert(self, expr: Expr) -> Poly:
        if isinstance(expr, Literal):
            return literal(self.context, expr.value)
        if isinstance(expr, IntValue):
            self._bind(expr.value)
            return integers.from_dim(self.context, expr.value, self._environment)
        if isinstance(expr, Access):
            return self._access(expr)
        if isinstance(expr, Call):
            return call(self.context, expr.function, [self._memo[arg] for arg in expr.operands])
        if isinstance(expr, Reduce):
            return reduce(self.context, expr.kind, self.index(expr.axis), self._memo[expr.body])
        raise Undecided(f"an expression of an unknown kind: {type(expr).__name__}")


def _sort(dtype: DType) -> str:
    if dtype.is_float:
        return "real"
    return "bool" if dtype == bool_ else "int"


def literal(context: Context, value: int | float | bool) -> Poly:
    """A number as written."""
    if not isinstance(value, float):
        return constant(int(value))
    if math.isnan(value):
        raise Undecided("the value NaN has no normal form")
    if math.isinf(value):
        infinity = of_atom(context.atom(kinds.INFINITY))
        return infinity if value > 0 else -infinity
    if context.facts.recognise:
        known = literals.recognise(value)
        if known is not None:
            context.readings[value] = str(known)
            return scalar.apply_body(context, known.expression, {})
    return constant(exact(literals.exact(value)))


def call(context: Context, function: str, operands: list[Poly]) -> Poly:
    """An elementwise op applied to polynomials."""
    direct = _DIRECT.get(function)
    if direct is not None:
        return direct(context, *operands)
    if function == "pi":
        return scalar.apply_body(context, sympy.pi, {})
    body = scalars.body(function, len(operands))
    symbols = scalars._SYMBOLS[: len(operands)]
    return scalar.apply_body(context, body, dict(zip(symbols, operands, strict=True)))


def reduce(context: Context, kind: str, index: Atom, body: Poly) -> Poly:
    """A reduction of ``body`` over an index variable."""
    if kind == "sum":
        return sums.sum_over(context, [index], body)
    if kind in ("prod", "all"):
        return products.product(context, index, body)
    if kind == "any":
        return ONE - products.product(context, index, ONE - body)
    if kind == "max":
        return extrema.maximum(context, index, body)
    if kind == "min":
        return -extrema.maximum(context, index, -body)
    if kind in ("argmax", "argmin"):
        return extrema.argmax(context, index, body if kind == "argmax" else -body)
    raise Undecided(f"a reduction of an unknown kind: {kind}")


def _divide(context: Context, left: Poly, right: Poly) -> Poly:
    return multiply.multiply(context, left, power.power(context, right, -1))


def _to_integer(context: Context, function: str, value: Poly) -> Poly:
    """Rounding, which leaves integers as they are.  [rule: floor]."""
    if signs.is_whole(context, value):
        return value
    return scalar.apply_body(context, scalars.body(function, 1), {scalars.SYMBOLS[0]: value})


_DIRECT: dict[str, Callable[..., Poly]] = {
    "add": lambda context, left, right: left + right,
    "sub": lambda context, left, right: left - right,
    "neg": lambda context, value: -value,
    "mul": multiply.multiply,
    "div": _divide,
    "square": lambda context, value: multiply.multiply(context, value, value),
    "reciprocal": lambda context, value: power.power(context, value, -1),
    "exp": functions.exponential,
    "log": functions.logarithm,
    "where": scalar.choose,
    "cast": lambda context, value: value,
    "logical_and": scalar.conjunction,
    "logical_or": scalar.disjunction,
    "logical_xor": scalar.exclusive,
    "logical_not": lambda context, value: ONE - value,
    "maximum": scalar.greater,
    "pow": scalar.general_power,
    **{
        name: (lambda function: lambda context, value: _to_integer(context, function, value))(name)
        for name in ("trunc", "round", "ceil", "floor")
    },
    **{
        name: (lambda relation: lambda context, a, b: scalar.compare(context, relation, a, b))(name)
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
    },
}
