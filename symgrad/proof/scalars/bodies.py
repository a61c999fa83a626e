"""Elementwise ops as scalar functions: sympy bodies, their partial derivatives, 60-digit values.

In: names of registered elementwise ops.  Out: sympy expressions (each made once), the same as
index notation, and functions of mpmath numbers.

The partials come from ``sympy.diff`` of the body, never from the op's VJP, so that a proof that
uses them also judges the VJP.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import mpmath
import sympy

from symgrad.errors import GraphError
from symgrad.ir.dtype import DType, bool_
from symgrad.ir.expr import Expr, ExprPool
from symgrad.ops.record import get

STEPS = frozenset(("floor", "ceil", "round", "trunc", "sign", "floordiv"))
"""Constant but on a null set: their derivative is zero."""

LOGICAL = frozenset(("logical_and", "logical_or", "logical_not", "logical_xor"))
RELATIONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))

PREFIX = "custom_"
"""What the sympy class of a function with a declared derivative begins with."""

SYMBOLS: tuple[Any, ...] = tuple(sympy.Symbol(f"u{i}", real=True) for i in range(6))
"""The operands of every body."""


@cache
def body(function: str, arity: int) -> Any:
    """The op's meaning as a sympy expression in ``u0``, ``u1``, ...  Raises GraphError."""
    scalar = get(function).scalar
    if scalar is None:
        raise GraphError(f"the op {function!r} is not elementwise")
    return sympy.sympify(scalar.sympy(sympy, *SYMBOLS[:arity]))


@cache
def partial(function: str, arity: int, position: int) -> Any:
    """The derivative of the op's body by one operand, zero where it is constant but for jumps."""
    if function in STEPS and not (function == "sign" and arity != 1):
        return sympy.Integer(0)
    derivative = sympy.diff(body(function, arity), SYMBOLS[position])
    jumps = (sympy.DiracDelta, sympy.Derivative, sympy.Subs)
    return derivative.replace(lambda part: isinstance(part, jumps), lambda part: sympy.Integer(0))


def partial_expr(
    pool: ExprPool, function: str, operands: Sequence[Expr], position: int, dtype: DType
) -> Expr | None:
    """The partial derivative as index notation; None where it is zero."""
    derivative = partial(function, len(operands), position)
    if derivative == 0:
        return None
    return _Translation(pool, tuple(operands), dtype).of(derivative)


def translated(pool: Any, expression: Any, operands: Sequence[Any], dtype: DType) -> Any:
    """A sympy expression in ``u0``, ``u1``, ... made of what ``pool`` makes.

    ``pool`` has the methods ``call``, ``literal`` and ``select`` of ``ExprPool``.  Raises
    GraphError for what has no form over the registry.
    """
    return _Translation(pool, tuple(operands), dtype).of(sympy.sympify(expression))


class _Translation:
    """sympy -> index notation, over the ops of the registry and the number ``pi``."""

    def __init__(self, pool: ExprPool, operands: tuple[Expr, ...], dtype: DType) -> None:
        self.pool, self.operands, self.dtype = pool, operands, dtype

    def of(self, expression: Any) -> Expr:
        if expression in SYMBOLS:
            return self.operands[SYMBOLS.index(expression)]
        if expression.is_number and expression.is_Rational:
            return self.rational(expression)
        if expression is sympy.pi:
            return self.pool.call("pi", dtype=self.dtype)
        if expression is sympy.E:
            return self.call("exp", self.number(1))
        if expression.is_Add or expression.is_Mul:
            name = "add" if expression.is_Add else "mul"
            return self.fold(name, [self.of(part) for part in expression.args])
        if expression.is_Pow:
            return self.power(*expression.args)
        if isinstance(expression, sympy.Piecewise):
            return self.piecewise(expression.args)
        if expression.is_Relational or expression.is_Boolean:
            return self.condition(expression)
        return self.function(expression)

    def function(self, expression: Any) -> Expr:
        kind, args = type(expression).__name__, expression.args
        if kind == "Heaviside":
            return self.choose(sympy.StrictGreaterThan(args[0], 0), self.number(1), self.number(0))
        if kind in ("Max", "Min"):
            name = "maximum" if kind == "Max" else "minimum"
            return self.fold(name, [self.of(part) for part in args])
        if kind == "polygamma" and args[0].is_Integer:
            order = int(args[0])
            if order < len(_POLYGAMMA):
                return self.call(_POLYGAMMA[order], self.of(args[1]))
        if kind.startswith(PREFIX) and kind in _MPMATH:
            return self.call(kind.removeprefix(PREFIX), *(self.of(part) for part in args))
        if kind in _NAMES:
            return self.call(_NAMES[kind], *(self.of(part) for part in args))
        raise GraphError(f"the derivative {expression} has no form in index notation")

    def power(self, base: Any, exponent: Any) -> Expr:
        if base is sympy.E:
            return self.call("exp", self.of(exponent))
        if exponent == -1:
            return self.call("reciprocal", self.of(base))
        if exponent == 2:
            return self.call("square", self.of(base))
        if exponent in (sympy.Rational(1, 2), sympy.Rational(-1, 2)):
            return self.call("sqrt" if exponent > 0 else "rsqrt", self.of(base))
        return self.call("pow", self.of(base), self.of(exponent))

    def piecewise(self, pieces: Sequence[Any]) -> Expr:
        *chosen, last = pieces
        result = self.of(last[0])
        for value, condition in reversed(chosen):
            result = self.choose(condition, self.of(value), result)
        return result

    def choose(self, condition: Any, value: Expr, other: Expr) -> Expr:
        return self.pool.select(self.condition(condition), value, other)

    def condition(self, condition: Any) -> Expr:
        if condition in (sympy.true, sympy.false):
            return self.pool.literal(bool(condition), bool_)
        if condition.is_Symbol:
            return self.operands[SYMBOLS.index(condition)]
        if isinstance(condition, sympy.Not):
            return self.truth("logical_not", self.condition(condition.args[0]))
        if isinstance(condition, (sympy.And, sympy.Or)):
            name = "logical_and" if isinstance(condition, sympy.And) else "logical_or"
            parts = [self.condition(part) for part in condition.args]
            result = parts[0]
            for part in parts[1:]:
                result = self.truth(name, result, part)
            return result
        name = _RELATION_NAMES[condition.rel_op]
        return self.truth(name, self.of(condition.lhs), self.of(condition.rhs))

    def rational(self, value: Any) -> Expr:
        if value.is_Integer:
            return self.number(int(value))
        return self.call("div", self.number(int(value.p)), self.number(int(value.q)))

    def number(self, value: int) -> Expr:
        return self.pool.literal(float(value), self.dtype)

    def fold(self, name: str, parts: Sequence[Expr]) -> Expr:
        result = parts[0]
        for part in parts[1:]:
            result = self.call(name, result, part)
        return result

    def call(self, name: str, *operands: Expr) -> Expr:
        return self.pool.call(name, *operands, dtype=self.dtype)

    def truth(self, name: str, *operands: Expr) -> Expr:
        return self.pool.call(name, *operands, dtype=bool_)


_POLYGAMMA = ("digamma", "trigamma", "tetragamma")
_RELATION_NAMES = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_SAME_NAME = (
    "exp log sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc erfinv "
    "sign floor"
)
_NAMES = {name: name for name in _SAME_NAME.split()} | {
    "Abs": "abs", "ceiling": "ceil", "loggamma": "lgamma", "digamma": "digamma",
}  # fmt: skip


# -- values at 60 digits


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, NaN where it has a pole."""

    def call(*values: Any) -> Any:
        try:
            result = function(*values)
            return mpmath.mpf(result) if isinstance(result, (int, float)) else result
        except (ZeroDivisionError, ValueError, OverflowError):
            return mpmath.mp.nan

    return call


def _round_half_even(value: Any) -> Any:
    return mpmath.mp.nint(value)


_MPMATH: dict[str, Callable[..., Any]] = {
    "Heaviside": lambda value, *_: mpmath.mpf(1 if value > 0 else 0),
    "sign": mpmath.sign,
    "Abs": abs,
    "loggamma": lambda value: mpmath.log(abs(mpmath.gamma(value))),
}


@cache
def value_function(function: str, arity: int) -> Callable[..., Any]:
    """The op as a function of mpmath numbers; NaN outside its domain."""
    if function == "round":
        return _round_half_even
    return lambdified(body(function, arity), arity)


@cache
def partial_function(function: str, arity: int, position: int) -> Callable[..., Any]:
    """A partial derivative of the op as a function of mpmath numbers."""
    return lambdified(partial(function, arity, position), arity)


def lambdified(expression: Any, arity: int) -> Callable[..., Any]:
    """An expression in ``u0``, ... as a function of mpmath numbers; NaN where it has a pole."""
    return _guarded(sympy.lambdify(SYMBOLS[:arity], expression, modules=[_MPMATH, "mpmath"]))


def add_function(name: str, model: Callable[[Any], Any]) -> None:
    """Make a sympy class known by its name: ``model`` gives its values as mpmath numbers."""
    _MPMATH[name] = model


def remove_function(name: str) -> None:
    """Forget a class that was made known, and what was computed of it."""
    _MPMATH.pop(name, None)
    for cached in (body, partial, value_function, partial_function):
        cached.cache_clear()
