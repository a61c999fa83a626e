"""Index notation -> polynomials.

In: expressions of one pool (``symgrad.ir.expr``) and a context.  Out: polynomials; every
expression is converted once, arguments first, whatever the depth.

A float literal is its shortest decimal exactly; with ``Facts.recognise`` one that rounds a known
constant is that constant, and the reading is kept in ``Context.readings``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import sympy

from symgrad.ir.dim import Axis, Dim, Element
from symgrad.ir.dtype import DType, bool_
from symgrad.ir.expr import Access, Call, Expr, IntValue, Literal, Reduce, postorder
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.algebra import (
    IndexValues,
    equal,
    from_dim,
    is_whole,
    leaf,
    lift,
    multiply,
    multiply_all,
    not_negative,
    positive,
    power,
    sign,
)
from symgrad.proof.normal.atoms import Atom, Undecided
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.functions import angle, apply, exponential, logarithm
from symgrad.proof.normal.maxima import argmax, maximum
from symgrad.proof.normal.poly import ONE, ZERO, Poly, constant, exact, of_atom
from symgrad.proof.normal.products import product
from symgrad.proof.normal.sums import sum_over
from symgrad.proof.scalars import bodies, literals

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
        self._environment = IndexValues(self.axes, self._element)

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
        extent = from_dim(self.context, axis.extent)
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
        indices = tuple(from_dim(self.context, index, self._environment) for index in expr.indices)
        return leaf(self.context, expr.tensor, indices, _sort(expr.dtype))

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
            return from_dim(self.context, expr.value, self._environment)
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
            return apply_body(context, known.expression, {})
    return constant(exact(literals.exact(value)))


def call(context: Context, function: str, operands: list[Poly]) -> Poly:
    """An elementwise op applied to polynomials."""
    direct = _DIRECT.get(function)
    if direct is not None:
        return direct(context, *operands)
    if function == "pi":
        return apply_body(context, sympy.pi, {})
    body = bodies.body(function, len(operands))
    symbols = bodies.SYMBOLS[: len(operands)]
    return apply_body(context, body, dict(zip(symbols, operands, strict=True)))


def reduce(context: Context, kind: str, index: Atom, body: Poly) -> Poly:
    """A reduction of ``body`` over an index variable."""
    if kind == "sum":
        return sum_over(context, [index], body)
    if kind in ("prod", "all"):
        return product(context, index, body)
    if kind == "any":
        return ONE - product(context, index, ONE - body)
    if kind == "max":
        return maximum(context, index, body)
    if kind == "min":
        return -maximum(context, index, -body)
    if kind in ("argmax", "argmin"):
        return argmax(context, index, body if kind == "argmax" else -body)
    raise Undecided(f"a reduction of an unknown kind: {kind}")


def _divide(context: Context, left: Poly, right: Poly) -> Poly:
    return multiply(context, left, power(context, right, -1))


def _to_integer(context: Context, function: str, value: Poly) -> Poly:
    """Rounding, which leaves integers as they are.  [rule: floor]."""
    if is_whole(value):
        return value
    return apply_body(context, bodies.body(function, 1), {bodies.SYMBOLS[0]: value})


# -- scalar meanings: sympy bodies of elementwise ops applied to polynomials


Operands = Mapping[Any, Poly]


def apply_body(context: Context, body: Any, environment: Operands) -> Poly:
    """The value of a scalar body; conditions are 0 or 1.  Raises Undecided."""
    if body in environment:
        return environment[body]
    if body.is_Rational:
        return constant(exact(Fraction(int(body.p), int(body.q))))
    if body is sympy.pi:
        return of_atom(context.atom(kinds.NUMBER, "pi"))
    if body is sympy.E:
        return exponential(context, ONE)
    if body in (sympy.true, sympy.false):
        return ONE if body == sympy.true else ZERO
    handler = _HANDLERS.get(type(body).__name__)
    if handler is not None:
        return handler(context, body.args, environment)
    if len(body.args) != 1:
        raise Undecided(f"nothing is known of the function {type(body).__name__}")
    argument = apply_body(context, body.args[0], environment)
    return apply(context, type(body).__name__, argument)


def _values(context: Context, args: Any, environment: Operands) -> list[Poly]:
    return [apply_body(context, arg, environment) for arg in args]


def _add(context: Context, args: Any, environment: Operands) -> Poly:
    result = ZERO
    for value in _values(context, args, environment):
        result = result + value
    return result


def _mul(context: Context, args: Any, environment: Operands) -> Poly:
    return multiply_all(context, _values(context, args, environment))


def _pow(context: Context, args: Any, environment: Operands) -> Poly:
    base, exponent = args
    if base is sympy.E:
        return exponential(context, apply_body(context, exponent, environment))
    value = apply_body(context, base, environment)
    return general_power(context, value, apply_body(context, exponent, environment))


def general_power(context: Context, base: Poly, exponent: Poly) -> Poly:
    """``base**exponent``; a symbolic exponent means exp(exponent log base)."""
    lifted = lift(context, exponent, lambda piece: general_power(context, base, piece))
    if lifted is not None:
        return lifted
    if exponent.constant is not None:
        return power(context, base, exponent.constant)
    return exponential(context, multiply(context, exponent, logarithm(context, base)))


def _abs(context: Context, args: Any, environment: Operands) -> Poly:
    (value,) = _values(context, args, environment)
    return multiply(context, value, sign(context, value))


def _sign(context: Context, args: Any, environment: Operands) -> Poly:
    (value,) = _values(context, args, environment)
    return sign(context, value)


def _max(context: Context, args: Any, environment: Operands) -> Poly:
    values = _values(context, args, environment)
    result = values[0]
    for value in values[1:]:
        result = greater(context, result, value)
    return result


def greater(context: Context, left: Poly, right: Poly) -> Poly:
    """The greater of two values: ``right + [left > right] (left - right)``.  [rule: where]."""
    difference = left - right
    above = positive(context, difference)
    return right + multiply(context, above, difference)


def _min(context: Context, args: Any, environment: Operands) -> Poly:
    values = _values(context, args, environment)
    result = -values[0]
    for value in values[1:]:
        result = greater(context, result, -value)
    return -result


def _heaviside(context: Context, args: Any, environment: Operands) -> Poly:
    value, at_zero = _values(context, args[:2], environment)
    above = positive(context, value)
    below = positive(context, -value)
    return above + multiply(context, at_zero, ONE - above - below)


def _piecewise(context: Context, args: Any, environment: Operands) -> Poly:
    result = ZERO
    for value, condition in reversed(args):
        chosen = apply_body(context, value, environment)
        result = choose(context, apply_body(context, condition, environment), chosen, result)
    return result


def choose(context: Context, condition: Poly, chosen: Poly, other: Poly) -> Poly:
    """``condition * chosen + (1 - condition) * other``.  [rule: where]."""
    if chosen == other:
        return chosen
    first = multiply(context, condition, chosen)
    return first + multiply(context, ONE - condition, other)


# -- conditions


def compare(context: Context, relation: str, left: Poly, right: Poly) -> Poly:
    """``left <relation> right`` for ``eq ne lt le gt ge``, as 0 or 1."""
    if relation in ("eq", "ne"):
        same = equal(context, left - right)
        return same if relation == "eq" else ONE - same
    if relation in ("lt", "le"):
        left, right = right, left
    if relation in ("gt", "lt"):
        return positive(context, left - right)
    return not_negative(context, left - right)


def conjunction(context: Context, left: Poly, right: Poly) -> Poly:
    """Both."""
    return multiply(context, left, right)


def disjunction(context: Context, left: Poly, right: Poly) -> Poly:
    """At least one."""
    return left + right - multiply(context, left, right)


def exclusive(context: Context, left: Poly, right: Poly) -> Poly:
    """Exactly one."""
    return left + right - multiply(context, left, right).scaled(2)


def _relation(name: str) -> Callable[[Context, Any, Operands], Poly]:
    def handler(context: Context, args: Any, environment: Operands) -> Poly:
        left, right = _values(context, args, environment)
        return compare(context, name, left, right)

    return handler


def _connective(
    combine: Callable[[Context, Poly, Poly], Poly],
) -> Callable[[Context, Any, Operands], Poly]:
    def handler(context: Context, args: Any, environment: Operands) -> Poly:
        values = _values(context, args, environment)
        result = values[0]
        for value in values[1:]:
            result = combine(context, result, value)
        return result

    return handler


def _not(context: Context, args: Any, environment: Operands) -> Poly:
    (value,) = _values(context, args, environment)
    return ONE - value


def _polygamma(context: Context, args: Any, environment: Operands) -> Poly:
    order, argument = args
    if order not in (0, 1, 2):
        raise Undecided(f"nothing is known of the function polygamma({order}, x)")
    value = apply_body(context, argument, environment)
    return apply(context, f"polygamma{order}", value)


def _zero(context: Context, args: Any, environment: Operands) -> Poly:
    """The derivative of a jump: zero almost everywhere."""
    return ZERO


def _atan2(context: Context, args: Any, environment: Operands) -> Poly:
    y, x = _values(context, args, environment)
    return angle(context, y, x)


_HANDLERS: dict[str, Callable[[Context, Any, Operands], Poly]] = {
    "Add": _add, "Mul": _mul, "Pow": _pow, "Abs": _abs, "sign": _sign, "Max": _max, "Min": _min,
    "Heaviside": _heaviside, "Piecewise": _piecewise, "DiracDelta": _zero, "Not": _not,
    "polygamma": _polygamma, "atan2": _atan2,
    "Equality": _relation("eq"), "Unequality": _relation("ne"),
    "StrictGreaterThan": _relation("gt"), "GreaterThan": _relation("ge"),
    "StrictLessThan": _relation("lt"), "LessThan": _relation("le"),
    "And": _connective(conjunction), "Or": _connective(disjunction),
    "Xor": _connective(exclusive),
    "digamma": lambda context, args, environment: apply(
        context, "polygamma0", apply_body(context, args[0], environment)
    ),
}  # fmt: skip


_DIRECT: dict[str, Callable[..., Poly]] = {
    "add": lambda context, left, right: left + right,
    "sub": lambda context, left, right: left - right,
    "neg": lambda context, value: -value,
    "mul": multiply,
    "div": _divide,
    "square": lambda context, value: multiply(context, value, value),
    "reciprocal": lambda context, value: power(context, value, -1),
    "exp": exponential,
    "log": logarithm,
    "where": choose,
    "cast": lambda context, value: value,
    "logical_and": conjunction,
    "logical_or": disjunction,
    "logical_xor": exclusive,
    "logical_not": lambda context, value: ONE - value,
    "maximum": greater,
    "pow": general_power,
    **{
        name: (lambda function: lambda context, value: _to_integer(context, function, value))(name)
        for name in ("trunc", "round", "ceil", "floor")
    },
    **{
        name: (lambda relation: lambda context, a, b: compare(context, relation, a, b))(name)
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
    },
}
