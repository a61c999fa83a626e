"""Elementwise ops as scalar functions: sympy bodies, their partial derivatives, 60-digit values.

In: names of registered elementwise ops.  Out: sympy expressions (each made once), the same as
index notation, and functions of mpmath numbers.

The partials come from ``sympy.diff`` of the body, never from the op's VJP, so that a proof that
uses them also judges the VJP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import mpmath
import sympy

from symgrad.errors import GraphError
from symgrad.ir.dtype import DType, bool_
from symgrad.ir.expr import Expr, ExprPool
from symgrad.ir.registry import changes, in_order
from symgrad.ops.record import Op, get

P = ParamSpec("P")
T = TypeVar("T")

PREFIX = "custom_"
"""What the sympy class of a function with a declared derivative begins with."""

SYMBOLS: tuple[Any, ...] = tuple(sympy.Symbol(f"u{i}", real=True) for i in range(6))
"""The operands of every body."""


def _by_record(compute: Callable[Concatenate[Op, P], T]) -> Callable[Concatenate[str, P], T]:
    """What is computed of an op, called by its name, and kept with its record."""
    kept: Callable[..., T] = cache(compute)

    @wraps(compute)
    def named(function: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return kept(get(function), *args, **kwargs)

    return named


@_by_record
def body(op: Op, arity: int) -> Any:
    """The op's meaning as a sympy expression in ``u0``, ``u1``, ...  Raises GraphError."""
    if op.scalar is None:
        raise GraphError(f"the op {op.name!r} is not elementwise")
    return sympy.sympify(op.scalar.sympy(sympy, *SYMBOLS[:arity]))


@_by_record
def partial(op: Op, arity: int, position: int) -> Any:
    """The derivative of the op's body by one operand, zero where it is constant but for jumps."""
    derivative = sympy.diff(body(op.name, arity), SYMBOLS[position])
    jumps = (sympy.DiracDelta, sympy.Derivative, sympy.Subs)
    return derivative.replace(lambda part: isinstance(part, jumps), lambda part: sympy.Integer(0))


@_by_record
def restricted_operands(op: Op) -> Sequence[tuple[int, str]]:
    """Operands that themselves have to be positive, nonnegative or nonzero: places and which."""
    found = []
    for constraint in op.scalar.domain if op.scalar is not None else ():
        where = constraint.expression(sympy, *SYMBOLS[: op.arity])
        if where in SYMBOLS:
            found.append((SYMBOLS.index(where), constraint.kind))
    return found


@_by_record
def asked(op: Op) -> Sequence[tuple[int, int | None]]:
    """The operands whose order an op asks for, or whose sign: at its kinks they are equal, or 0.

    Where a domain ends, nothing is asked.
    """
    found: list[tuple[int, int | None]] = []
    operands = SYMBOLS[: op.arity]
    for kink in op.scalar.kinks if op.scalar is not None and not op.scalar.domain else ():
        at = kink.expression(sympy, *operands)
        if at in operands:
            found.append((operands.index(at), None))
        elif op.arity == 2 and at == operands[0] - operands[1]:
            found.append((0, 1))
    return found


# -- functions of sympy's: called by their class, polygamma also by its order


def op_of(kind: str) -> Op | None:
    """The op that is a function of sympy's: ``"erf"``, ``"polygamma1"``; None: there is none."""
    return _ops(changes()).get(kind)


@cache
def _ops(number: int) -> Mapping[str, Op]:
    found: dict[str, Op] = {}
    for op in map(get, in_order()):
        if op.scalar is not None and op.arity is not None:
            meaning, symbols = body(op.name, op.arity), SYMBOLS[: op.arity]
            if isinstance(meaning, sympy.Function) and meaning.args[-op.arity :] == symbols:
                found.setdefault(_kind(meaning, len(meaning.args) - op.arity), op)
    return found


def _kind(function: Any, orders: int) -> str:
    """What a function is called: its class, and the numbers that stand before its operands."""
    return type(function).__name__ + "_".join(map(str, function.args[:orders]))


@cache
def parity(kind: str) -> int:
    """1 for an even function of sympy's, -1 for an odd one, 0 for others."""
    function, (x, *_) = getattr(sympy, kind, None), SYMBOLS
    if function is None:
        return 0
    return 1 if function(-x) == function(x) else -1 if function(-x) == -function(x) else 0


@cache
def at_zero(kind: str) -> Fraction | None:
    """The value at 0 of a function of sympy's where it is rational."""
    function = getattr(sympy, kind, None)
    value: Any = sympy.nan if function is None else function(sympy.Integer(0))
    return Fraction(int(value.p), int(value.q)) if value.is_Rational else None


@cache
def number_function(kind: str) -> Callable[[Any], Any] | None:
    """A function of sympy's on mpmath numbers, NaN at a pole; None where sympy has no such."""
    name, order = kind.rstrip("0123456789"), kind[len(kind.rstrip("0123456789")) :]
    function = getattr(sympy, name, None)
    if function is None:
        return None
    return lambdified(function(*([int(order)] if order else []), SYMBOLS[0]), 1)


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
        orders = sum(bool(arg.is_Integer) for arg in args[:-1])
        op = op_of(_kind(expression, orders))
        if op is not None:
            return self.call(op.name, *(self.of(part) for part in args[orders:]))
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


_RELATION_NAMES = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


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


_MPMATH: dict[str, Callable[..., Any]] = {
    "Heaviside": lambda value, *_: mpmath.mpf(1 if value > 0 else 0),
    "sign": mpmath.sign,
    "Abs": abs,
    "loggamma": lambda value: mpmath.log(abs(mpmath.gamma(value))),
}


@_by_record
def value_function(op: Op, arity: int) -> Callable[..., Any]:
    """The op as a function of mpmath numbers; NaN outside its domain."""
    return lambdified(body(op.name, arity), arity)


@_by_record
def partial_function(op: Op, arity: int, position: int) -> Callable[..., Any]:
    """A partial derivative of the op as a function of mpmath numbers."""
    return lambdified(partial(op.name, arity, position), arity)


def lambdified(expression: Any, arity: int) -> Callable[..., Any]:
    """An expression in ``u0``, ... as a function of mpmath numbers; NaN where it has a pole."""
    return _guarded(sympy.lambdify(SYMBOLS[:arity], expression, modules=[_MPMATH, "mpmath"]))


def add_function(name: str, model: Callable[[Any], Any]) -> None:
    """Make a sympy class known by its name: ``model`` gives its values as mpmath numbers."""
    _MPMATH[name] = model


def remove_function(name: str) -> None:
    """Forget a class that was made known."""
    _MPMATH.pop(name, None)
