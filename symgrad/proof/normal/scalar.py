"""Scalar meanings: sympy bodies of elementwise ops applied to polynomials.

In: a sympy expression and the polynomials its symbols stand for.  Out: a polynomial.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import sympy

from symgrad.proof.normal import angles, functions, lifting, multiply, power, relations
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.atoms import Undecided
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.poly import ONE, ZERO, Poly, constant, exact, of_atom

Environment = Mapping[Any, Poly]


def apply_body(context: Context, body: Any, environment: Environment) -> Poly:
    """The value of a scalar body; conditions are 0 or 1.  Raises Undecided."""
    if body in environment:
        return environment[body]
    if body.is_Rational:
        return constant(exact(Fraction(int(body.p), int(body.q))))
    if body is sympy.pi:
        return of_atom(context.atom(kinds.NUMBER, "pi"))
    if body is sympy.E:
        return functions.exponential(context, ONE)
    if body in (sympy.true, sympy.false):
        return ONE if body == sympy.true else ZERO
    handler = _HANDLERS.get(type(body).__name__)
    if handler is not None:
        return handler(context, body.args, environment)
    if len(body.args) != 1:
        raise Undecided(f"nothing is known of the function {type(body).__name__}")
    argument = apply_body(context, body.args[0], environment)
    return functions.apply(context, type(body).__name__, argument)


def _values(context: Context, args: Any, environment: Environment) -> list[Poly]:
    return [apply_body(context, arg, environment) for arg in args]


def _add(context: Context, args: Any, environment: Environment) -> Poly:
    result = ZERO
    for value in _values(context, args, environment):
        result = result + value
    return result


def _mul(context: Context, args: Any, environment: Environment) -> Poly:
    return multiply.multiply_all(context, _values(context, args, environment))


def _pow(context: Context, args: Any, environment: Environment) -> Poly:
    base, exponent = args
    if base is sympy.E:
        return functions.exponential(context, apply_body(context, exponent, environment))
    value = apply_body(context, base, environment)
    return general_power(context, value, apply_body(context, exponent, environment))


def general_power(context: Context, base: Poly, exponent: Poly) -> Poly:
    """``base**exponent``; a symbolic exponent means exp(exponent log base)."""
    lifted = lifting.lift(context, exponent, lambda piece: general_power(context, base, piece))
    if lifted is not None:
        return lifted
    if exponent.constant is not None:
        return power.power(context, base, exponent.constant)
    logarithm = functions.logarithm(context, base)
    return functions.exponential(context, multiply.multiply(context, exponent, logarithm))


def _abs(context: Context, args: Any, environment: Environment) -> Poly:
    (value,) = _values(context, args, environment)
    return multiply.multiply(context, value, relations.sign(context, value))


def _sign(context: Context, args: Any, environment: Environment) -> Poly:
    (value,) = _values(context, args, environment)
    return relations.sign(context, value)


def _max(context: Context, args: Any, environment: Environment) -> Poly:
    values = _values(context, args, environment)
    result = values[0]
    for value in values[1:]:
        result = greater(context, result, value)
    return result


def greater(context: Context, left: Poly, right: Poly) -> Poly:
    """The greater of two values: ``right + [left > right] (left - right)``.  [rule: where]."""
    difference = left - right
    above = relations.positive(context, difference)
    return right + multiply.multiply(context, above, difference)


def _min(context: Context, args: Any, environment: Environment) -> Poly:
    values = _values(context, args, environment)
    result = -values[0]
    for value in values[1:]:
        result = greater(context, result, -value)
    return -result


def _heaviside(context: Context, args: Any, environment: Environment) -> Poly:
    value, at_zero = _values(context, args[:2], environment)
    above = relations.positive(context, value)
    below = relations.positive(context, -value)
    return above + multiply.multiply(context, at_zero, ONE - above - below)


def _piecewise(context: Context, args: Any, environment: Environment) -> Poly:
    result = ZERO
    for value, condition in reversed(args):
        chosen = apply_body(context, value, environment)
        result = choose(context, apply_body(context, condition, environment), chosen, result)
    return result


def choose(context: Context, condition: Poly, chosen: Poly, other: Poly) -> Poly:
    """``condition * chosen + (1 - condition) * other``.  [rule: where]."""
    if chosen == other:
        return chosen
    first = multiply.multiply(context, condition, chosen)
    return first + multiply.multiply(context, ONE - condition, other)


# -- conditions


def compare(context: Context, relation: str, left: Poly, right: Poly) -> Poly:
    """``left <relation> right`` for ``eq ne lt le gt ge``, as 0 or 1."""
    if relation in ("eq", "ne"):
        same = relations.equal(context, left - right)
        return same if relation == "eq" else ONE - same
    if relation in ("lt", "le"):
        left, right = right, left
    if relation in ("gt", "lt"):
        return relations.positive(context, left - right)
    return relations.not_negative(context, left - right)


def conjunction(context: Context, left: Poly, right: Poly) -> Poly:
    """Both."""
    return multiply.multiply(context, left, right)


def disjunction(context: Context, left: Poly, right: Poly) -> Poly:
    """At least one."""
    return left + right - multiply.multiply(context, left, right)


def exclusive(context: Context, left: Poly, right: Poly) -> Poly:
    """Exactly one."""
    return left + right - multiply.multiply(context, left, right).scaled(2)


def _relation(name: str) -> Callable[[Context, Any, Environment], Poly]:
    def handler(context: Context, args: Any, environment: Environment) -> Poly:
        left, right = _values(context, args, environment)
        return compare(context, name, left, right)

    return handler


def _connective(
    combine: Callable[[Context, Poly, Poly], Poly],
) -> Callable[[Context, Any, Environment], Poly]:
    def handler(context: Context, args: Any, environment: Environment) -> Poly:
        values = _values(context, args, environment)
        result = values[0]
        for value in values[1:]:
            result = combine(context, result, value)
        return result

    return handler


def _not(context: Context, args: Any, environment: Environment) -> Poly:
    (value,) = _values(context, args, environment)
    return ONE - value


def _polygamma(context: Context, args: Any, environment: Environment) -> Poly:
    order, argument = args
    if order not in (0, 1, 2):
        raise Undecided(f"nothing is known of the function polygamma({order}, x)")
    value = apply_body(context, argument, environment)
    return functions.apply(context, f"polygamma{order}", value)


def _zero(context: Context, args: Any, environment: Environment) -> Poly:
    """The derivative of a jump: zero almost everywhere."""
    return ZERO


def _atan2(context: Context, args: Any, environment: Environment) -> Poly:
    y, x = _values(context, args, environment)
    return angles.angle(context, y, x)


_HANDLERS: dict[str, Callable[[Context, Any, Environment], Poly]] = {
    "Add": _add, "Mul": _mul, "Pow": _pow, "Abs": _abs, "sign": _sign, "Max": _max, "Min": _min,
    "Heaviside": _heaviside, "Piecewise": _piecewise, "DiracDelta": _zero, "Not": _not,
    "polygamma": _polygamma, "atan2": _atan2,
    "Equality": _relation("eq"), "Unequality": _relation("ne"),
    "StrictGreaterThan": _relation("gt"), "GreaterThan": _relation("ge"),
    "StrictLessThan": _relation("lt"), "LessThan": _relation("le"),
    "And": _connective(conjunction), "Or": _connective(disjunction),
    "Xor": _connective(exclusive),
    "digamma": lambda context, args, environment: functions.apply(
        context, "polygamma0", apply_body(context, args[0], environment)
    ),
}  # fmt: skip
