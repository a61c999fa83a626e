"""Index notation -> polynomials.

In: expressions of one pool (``symgrad.ir.expr``) and a context.  Out: polynomials; every
expression is converted once, arguments first, whatever the depth.

A float literal is its shortest decimal exactly; with ``Facts.recognise`` one that rounds a known
constant is that constant, and the reading is kept in ``Proof.readings``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symgrad.budgets import DEEPEST_DEFINITION
from symgrad.ir.dim import Axis, Dim, Element
from symgrad.ir.dtype import DType, bool_
from symgrad.ir.expr import Access, Call, Expr, IntValue, Literal, Reduce, postorder
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.algebra import (
    IndexValues,
    equal,
    from_dim,
    integer_nonnegative,
    is_integral,
    is_whole,
    leaf,
    lift,
    multiply,
    multiply_all,
    not_negative,
    positive,
    power,
    primitive,
    sign,
)
from symgrad.proof.normal.atoms import Atom, Undecided
from symgrad.proof.normal.context import Proof
from symgrad.proof.normal.functions import angle, apply, exponential, logarithm
from symgrad.proof.normal.maxima import argmax, maximum
from symgrad.proof.normal.poly import ONE, ZERO, Poly, constant, exact, of_atom, total
from symgrad.proof.normal.products import product
from symgrad.proof.normal.stated import Decided, Template, tensors
from symgrad.proof.normal.sums import sum_over
from symgrad.proof.scalars import bodies, literals, terms
from symgrad.proof.scalars.terms import Term

Definitions = Callable[[str, tuple[Dim, ...]], Expr | None]
"""What an element of a computed tensor is, given its name and indices; None for a given tensor."""


class Conversion:
    """Expressions as polynomials of one context, with a memo.

    ``definitions``: what cut nodes stand for that are to be looked through: computed integer
    tensors that serve as indices, which index notation can only name.
    """

    def __init__(self, context: Proof, definitions: Definitions | None = None) -> None:
        self.context = context
        self.axes: dict[Axis, Poly] = {}
        self._memo: dict[Expr, Poly] = {}
        self._definitions = definitions
        self._depth = 0

    def state(self) -> None:
        """Make the templates of what is stated.  What has no normal form is left out.

        Where a relation holds, what is in it is defined: nothing of that has to be printed.
        """
        context, found = self.context, []
        kept = dict(context.obligations), dict(context.requirements)
        for expr, relation in context.facts.stated:
            try:
                poly = self.poly(expr)
            except Undecided:
                continue
            indices = tuple(
                value.atom for axis, value in self.axes.items()
                if axis.name.startswith("@") and axis in expr.free and value.atom is not None
            )  # fmt: skip
            if not poly.piecewise:
                found += self._summed(Template(poly, indices, relation == ">"))
        context.obligations, context.requirements = kept
        context.stated = tuple(dict.fromkeys(found))
        context.memo.clear()

    def _summed(self, template: Template) -> list[Template]:
        """A relation, and its sums over one of its indices and over all.

        Of no elements the sum is 0, so that it has a sign only where there is one.
        """
        indices, found = template.indices, [template]
        for bound in [(one,) for one in indices] + ([indices] if len(indices) > 1 else []):
            filled = all(integer_nonnegative(self.context, i.data[1].plus(-1)) for i in bound)
            left = tuple(one for one in indices if one not in bound)
            whole = sum_over(self.context, list(bound), template.poly)
            if not whole.piecewise:
                found.append(Template(whole, left, template.strict and filled))
        return found

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
        known = self.axes.get(axis)
        if known is not None and known.atom is not None:
            return known.atom
        if axis.extent.axes:
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
        values = self._values()
        indices = tuple(from_dim(self.context, index, values) for index in expr.indices)
        return leaf(self.context, expr.tensor, indices, _sort(expr.dtype))

    def _values(self) -> IndexValues:
        """What is in index expressions; not kept, so that no cycle keeps the proof."""
        return IndexValues(self.axes, self._element)

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
            return from_dim(self.context, expr.value, self._values())
        if isinstance(expr, Access):
            return self._access(expr)
        if isinstance(expr, Call):
            inner = _under_root(expr)
            if inner is not None:
                value = self._memo[inner]
                return multiply(self.context, value, sign(self.context, value))
            return call(self.context, expr.function, [self._memo[arg] for arg in expr.operands])
        if isinstance(expr, Reduce):
            return reduce(self.context, expr.kind, self.index(expr.axis), self._memo[expr.body])
        raise Undecided(f"an expression of an unknown kind: {type(expr).__name__}")


def decide(context: Proof) -> None:
    """Make the templates of what conditions on integers decide, each with those before it.

    What has no normal form is left out.  Where its elements are defined is no matter of theirs.
    """
    kept = dict(context.obligations), dict(context.requirements)
    for one in context.facts.decided:
        conversion = Conversion(context, one.define)
        try:
            poly = primitive(context, conversion.poly(one.point))
            holds = conversion.poly(one.holds)
        except Undecided:
            continue
        indices = tuple(
            value.atom for axis, value in conversion.axes.items()
            if axis.name.startswith("@") and value.atom is not None
        )  # fmt: skip
        made = Decided(Template(poly, indices, True), holds, tensors(poly))
        context.decided = (*context.decided, made)
    context.obligations, context.requirements = kept
    context.memo.clear()


def _under_root(expr: Call) -> Expr | None:
    """What stands squared under a root, before the square is multiplied out.

    [rule: fractional-power]
    """
    if expr.function != "sqrt" or not isinstance(expr.operands[0], Call):
        return None
    square = expr.operands[0]
    if square.function == "square":
        return square.operands[0]
    if square.function != "mul" or square.operands[0] is not square.operands[1]:
        return None
    return square.operands[0]


def _sort(dtype: DType) -> str:
    if dtype.is_float:
        return "real"
    return "bool" if dtype == bool_ else "int"


def literal(context: Proof, value: int | float | bool) -> Poly:
    """A number as written."""
    if not isinstance(value, float):
        return constant(int(value))
    if math.isnan(value):
        raise Undecided("the value NaN has no normal form")
    if math.isinf(value):
        infinity = of_atom(context.atom(kinds.INFINITY))
        return infinity if value > 0 else -infinity
    known = context.facts.products.get(value)
    if known is None and context.facts.recognise and value not in context.facts.written:
        known = literals.recognise(value)
    if known is not None:
        context.readings[value] = str(known)
        return apply_body(context, known.term, {})
    return constant(exact(literals.exact(value)))


def call(context: Proof, function: str, operands: list[Poly]) -> Poly:
    """An elementwise op applied to polynomials."""
    direct = _DIRECT.get(function)
    if direct is not None:
        return direct(context, *operands)
    if function == "pi":
        return apply_body(context, terms.PI, {})
    body = bodies.body(function, len(operands))
    symbols = terms.OPERANDS[: len(operands)]
    return apply_body(context, body, dict(zip(symbols, operands, strict=True)))


def reduce(context: Proof, kind: str, index: Atom, body: Poly) -> Poly:
    """A reduction of ``body`` over an index variable."""
    if kind == "sum":
        return sum_over(context, [index], body)
    if kind == "any":
        return ONE - _none(context, index, body)
    if kind == "all":
        return _none(context, index, ONE - body)
    if kind == "prod":
        return product(context, index, body)
    if kind == "max":
        return maximum(context, index, body)
    if kind == "min":
        return -maximum(context, index, -body)
    if kind in ("argmax", "argmin"):
        return argmax(context, index, body if kind == "argmax" else -body)
    raise Undecided(f"a reduction of an unknown kind: {kind}")


def _none(context: Proof, index: Atom, condition: Poly) -> Poly:
    """Does a condition hold for no value of the index?  Of integers, a count says so.

    [rule: count]
    """
    if is_integral(condition):
        return equal(context, sum_over(context, [index], condition))
    return product(context, index, ONE - condition)


def _divide(context: Proof, left: Poly, right: Poly) -> Poly:
    return multiply(context, left, power(context, right, -1))


def _rounding(name: str) -> Callable[[Proof, Poly], Poly]:
    """Rounding, which leaves integers as they are.  [rule: floor]."""

    def rounded(context: Proof, value: Poly) -> Poly:
        if is_whole(value):
            return value
        return apply_body(context, bodies.body(name, 1), {terms.OPERANDS[0]: value})

    return rounded


# -- scalar meanings: bodies of elementwise ops applied to polynomials


Operands = Mapping[Term, Poly]


def apply_body(context: Proof, body: Term, environment: Operands) -> Poly:
    """The value of a scalar body; conditions are 0 or 1.  Raises Undecided."""
    name = body.kind
    if name == terms.SYMBOL:
        return environment[body]
    if body.number is not None:
        return constant(exact(body.number))
    if name in _NUMBERS:
        return _NUMBERS[name](context)
    if name in _FORMS:
        return _FORMS[name](context, body.args, environment)
    values = [apply_body(context, arg, environment) for arg in body.args]
    if name in _OF_VALUES:
        return _OF_VALUES[name](context, *values)
    if len(values) != 1:
        raise Undecided(f"nothing is known of the function {name}")
    return apply(context, name, values[0])


def _pow(context: Proof, args: Sequence[Term], environment: Operands) -> Poly:
    base, exponent = args
    if base == terms.E:
        return exponential(context, apply_body(context, exponent, environment))
    value = apply_body(context, base, environment)
    return general_power(context, value, apply_body(context, exponent, environment))


def general_power(context: Proof, base: Poly, exponent: Poly) -> Poly:
    """``base**exponent``; a symbolic exponent means exp(exponent log base)."""
    lifted = lift(context, exponent, lambda piece: general_power(context, base, piece))
    if lifted is not None:
        return lifted
    if exponent.constant is not None:
        return power(context, base, exponent.constant)
    return exponential(context, multiply(context, exponent, logarithm(context, base)))


def greater(context: Proof, left: Poly, right: Poly) -> Poly:
    """The greater of two values: ``right + [left > right] (left - right)``.  [rule: where].

    The same holds with the two exchanged; of both conditions one relies on no null set.
    """
    difference = left - right
    if difference.terms and difference.terms[difference.lead] < 0:
        right, difference = left, -difference
    above = positive(context, difference)
    return right + multiply(context, above, difference)


def _least(context: Proof, *values: Poly) -> Poly:
    return -_folded(greater)(context, *(-value for value in values))


def _heaviside(context: Proof, value: Poly, at_zero: Poly) -> Poly:
    above = positive(context, value)
    below = positive(context, -value)
    return above + multiply(context, at_zero, ONE - above - below)


def _piecewise(context: Proof, args: Sequence[Term], environment: Operands) -> Poly:
    result = ZERO
    for value, condition in (piece.args for piece in reversed(args)):
        chosen = apply_body(context, value, environment)
        result = choose(context, apply_body(context, condition, environment), chosen, result)
    return result


def choose(context: Proof, condition: Poly, chosen: Poly, other: Poly) -> Poly:
    """``condition * chosen + (1 - condition) * other``.  [rule: where]."""
    if chosen == other:
        return chosen
    first = multiply(context, condition, chosen)
    return first + multiply(context, ONE - condition, other)


# -- conditions


def compare(context: Proof, relation: str, left: Poly, right: Poly) -> Poly:
    """``left <relation> right`` for ``eq ne lt le gt ge``, as 0 or 1."""
    if relation in ("eq", "ne"):
        same = equal(context, left - right)
        return same if relation == "eq" else ONE - same
    if relation in ("lt", "le"):
        left, right = right, left
    if relation in ("gt", "lt"):
        return positive(context, left - right)
    return not_negative(context, left - right)


def disjunction(context: Proof, left: Poly, right: Poly) -> Poly:
    """At least one."""
    return left + right - multiply(context, left, right)


def exclusive(context: Proof, left: Poly, right: Poly) -> Poly:
    """Exactly one."""
    return left + right - multiply(context, left, right).scaled(2)


def _negation(context: Proof, value: Poly) -> Poly:
    return ONE - value


def _relation(name: str) -> Callable[[Proof, Poly, Poly], Poly]:
    return lambda context, left, right: compare(context, name, left, right)


def _folded(combine: Callable[[Proof, Poly, Poly], Poly]) -> Callable[..., Poly]:
    """A function of two values as one of any number of them, from the first to the last."""
    return lambda context, *values: functools.reduce(functools.partial(combine, context), values)


def _polygamma(context: Proof, args: Sequence[Term], environment: Operands) -> Poly:
    order, argument = args
    if order not in (terms.term(number) for number in range(3)):
        raise Undecided(f"nothing is known of the function polygamma({order.number}, x)")
    value = apply_body(context, argument, environment)
    return apply(context, f"polygamma{order.number}", value)


_NUMBERS: dict[str, Callable[[Proof], Poly]] = {
    "pi": lambda context: of_atom(context.atom(kinds.NUMBER, "pi")),
    "E": lambda context: exponential(context, ONE),
    "true": lambda context: ONE,
    "false": lambda context: ZERO,
}
"""Constants by their names."""


_FORMS: dict[str, Callable[[Proof, Any, Operands], Poly]] = {
    "Pow": _pow, "Piecewise": _piecewise, "polygamma": _polygamma,
    # the derivative of a jump is zero almost everywhere
    "DiracDelta": lambda context, args, environment: ZERO,
}  # fmt: skip
"""Classes of sympy that look at their arguments before these are polynomials."""

_OF_VALUES: dict[str, Callable[..., Poly]] = {
    "Add": lambda context, *values: total(values),
    "Mul": lambda context, *values: multiply_all(context, values),
    "Abs": lambda context, value: multiply(context, value, sign(context, value)),
    "sign": sign, "Max": _folded(greater), "Min": _least, "Heaviside": _heaviside,
    "atan2": angle, "digamma": lambda context, value: apply(context, "polygamma0", value),
    "Equality": _relation("eq"), "Unequality": _relation("ne"),
    "StrictGreaterThan": _relation("gt"), "GreaterThan": _relation("ge"),
    "StrictLessThan": _relation("lt"), "LessThan": _relation("le"),
    "And": _folded(multiply), "Or": _folded(disjunction), "Xor": _folded(exclusive),
    "Not": _negation,
}  # fmt: skip
"""Classes of sympy as functions of the values of their arguments."""

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
    "logical_and": multiply,
    "logical_or": disjunction,
    "logical_xor": exclusive,
    "logical_not": _negation,
    "maximum": greater,
    "pow": general_power,
    **{name: _rounding(name) for name in ("trunc", "round", "ceil", "floor")},
    **{name: _relation(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
}
