"""Random expressions in index notation, points to evaluate them at, and mutations of them.

In: a seed.  Out: expressions over fixed tensors, arrays for them, changed expressions.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from symgrad.ir.dim import Axis, Dim, Element
from symgrad.ir.dtype import bool_, float32, int64
from symgrad.ir.expr import Access, Call, Expr, ExprPool, IntValue, Literal, Reduce, postorder
from symgrad.proof.normal.context import Obligation, Proof
from symgrad.proof.normal.facts import Facts
from symgrad.proof.normal.from_expr import Conversion
from symgrad.proof.normal.numeric import Evaluation, NotEvaluable
from symgrad.proof.normal.poly import Poly
from symgrad.proof.scalars import literals
from tests.proof.interpreter import Interpreter

N, M = Dim.size("n"), Dim.size("m")
ROW, COLUMN = Axis("i", N), Axis("j", M)
FACTS = Facts(ranges={"index": M})
_UNARY = [
    "neg",
    "square",
    "exp",
    "tanh",
    "sigmoid",
    "softplus",
    "erf",
    "abs",
    "relu",
    "sin",
    "cos",
    "sign",
    "silu",
    "expm1",
    "sinh",
    "atan",
    "asinh",
]
_SAFE = ["sqrt", "rsqrt", "log", "reciprocal"]
_BINARY = ["add", "sub", "mul", "add", "mul", "sub", "maximum", "minimum"]


class Maker:
    """Makes random expressions of one pool; ``free`` axes are ``ROW`` and ``COLUMN``."""

    def __init__(self, seed: int, pool: ExprPool | None = None) -> None:
        self.random = random.Random(seed)
        self.pool = pool or ExprPool()
        self._bound = 0

    def call(self, name: str, *operands: Expr) -> Expr:
        """An op on floats."""
        return self.pool.call(name, *operands, dtype=float32)

    def number(self, value: float) -> Expr:
        """A literal."""
        return self.pool.literal(float(value), float32)

    def scalar(self, depth: int, axes: tuple[Axis, ...] = (ROW, COLUMN)) -> Expr:
        """A float expression."""
        choice = self.random.random()
        if depth <= 0:
            return self.leaf(axes)
        if choice < 0.25:
            return self.call(self.random.choice(_UNARY), self.scalar(depth - 1, axes))
        if choice < 0.33:
            inner = self.call("square", self.scalar(depth - 1, axes))
            shifted = self.call("add", inner, self.number(self.random.choice((1, 0.5, 2))))
            return self.call(self.random.choice(_SAFE), shifted)
        if choice < 0.68:
            left, right = self.scalar(depth - 1, axes), self.scalar(depth - 2, axes)
            return self.call(self.random.choice(_BINARY), left, right)
        if choice < 0.78:
            chosen, other = self.scalar(depth - 1, axes), self.scalar(depth - 2, axes)
            return self.pool.select(self.condition(depth - 2, axes), chosen, other)
        return self.reduction(depth, axes)

    def reduction(self, depth: int, axes: tuple[Axis, ...]) -> Expr:
        """A sum, a greatest or least value, a product."""
        self._bound += 1
        axis = Axis(f"k{self._bound}", self.random.choice((N, M)))
        kind = self.random.choice(("sum", "sum", "sum", "max", "min", "prod"))
        body = self.scalar(depth - 1, (*axes, axis))
        if kind == "prod":
            body = self.call("tanh", body)
        return self.pool.reduce(kind, axis, body)

    def leaf(self, axes: tuple[Axis, ...]) -> Expr:
        """An element, a number, a size or an index."""
        choice = self.random.random()
        if choice < 0.4:
            return self.pool.access("x", (self.index(N, axes), self.index(M, axes)), float32)
        if choice < 0.6:
            return self.pool.access("w", (self.index(M, axes),), float32)
        if choice < 0.75:
            return self.pool.access("y", (self.index(N, axes),), float32)
        if choice < 0.92:
            return self.number(self.random.choice((1, 2, -1, 0.5, 3, 0.125, -2, 0.75)))
        dim = self.random.choice((N, M, Dim.of(self.random.choice(axes)), Dim.of(1)))
        return self.pool.integer(dim, float32)

    def index(self, extent: Dim, axes: tuple[Axis, ...]) -> Dim:
        """An index expression in range."""
        candidates = [axis for axis in axes if axis.extent == extent]
        if extent == M and self.random.random() < 0.2:
            return Dim.of(Element("index", (self.index(N, axes),)))
        if not candidates:
            return Dim.of(0)
        axis = Dim.of(self.random.choice(candidates))
        return extent - 1 - axis if self.random.random() < 0.15 else axis

    def condition(self, depth: int, axes: tuple[Axis, ...]) -> Expr:
        """A bool expression."""
        choice = self.random.random()
        if choice < 0.4:
            left, right = self.scalar(depth, axes), self.leaf(axes)
            return self.pool.call(self.random.choice(("gt", "lt", "ge")), left, right, dtype=bool_)
        if choice < 0.75:
            name = self.random.choice(("eq", "ge", "lt", "le", "ne"))
            extent = self.random.choice((N, M))
            first, second = self.index(extent, axes), self.index(extent, axes)
            return self.pool.relation(name, first, second)
        if choice < 0.9:
            return self.pool.access("mask", (self.index(N, axes),), bool_)
        name = self.random.choice(("logical_and", "logical_or"))
        parts = self.condition(depth - 1, axes), self.condition(depth - 1, axes)
        return self.pool.call(name, *parts, dtype=bool_)


# -- values


class Point:
    """Arrays for the tensors at some sizes, and both evaluations."""

    def __init__(self, seed: int, n: int, m: int) -> None:
        draw = random.Random(seed)
        self.sizes = {"n": n, "m": m}
        real = {"x": (n, m), "w": (m,), "y": (n,), "g": (n, m)}
        self.tensors: dict[str, Any] = {
            name: _array(shape, lambda: _real(draw)) for name, shape in real.items()
        }
        self.tensors["index"] = _array((n,), lambda: draw.randrange(m))
        self.tensors["mask"] = _array((n,), lambda: draw.random() < 0.5)

    def of_expr(self, expr: Expr, at: dict[Axis, int]) -> Any:
        """By the interpreter: no normal form.  NaN where it is not real."""
        read = lambda value: _precise(value)  # noqa: E731
        try:
            value = Interpreter(self.tensors, self.sizes, read).value(expr, at)
        except TypeError:  # complex numbers have no order
            return mpmath.nan
        return mpmath.nan if isinstance(value, mpmath.mpc) else mpmath.mpf(value)

    def of_poly(self, conversion: Conversion, poly: Poly, at: dict[Axis, int]) -> Any:
        """By the evaluation of polynomials."""
        indices = {conversion.index(axis): value for axis, value in at.items()}
        return Evaluation(self.sizes, lambda name, where: self.tensors[name][where], indices).value(
            poly
        )

    def places(self) -> list[dict[Axis, int]]:
        """Some values of the free axes."""
        n, m = self.sizes["n"], self.sizes["m"]
        return [{ROW: i, COLUMN: j} for i, j in {(0, 0), (n - 1, m - 1), (n - 1, 0)}]

    def owes_nothing(self, context: Proof) -> bool:
        """Are the bases of all obligations nonzero here, for all values of their indices?"""
        return all(self._is_met(obligation) for obligation in context.obligations.values())

    def _is_met(self, obligation: Obligation) -> bool:
        free = sorted(obligation.base.free, key=lambda v: v.key)
        extents = Evaluation(self.sizes, lambda name, where: self.tensors[name][where])
        ranges = [range(extents.integer(variable.data[1])) for variable in free]
        for values in itertools.product(*ranges):
            at = dict(zip(free, values, strict=True))
            if obligation.distinct and at.get(obligation.distinct[0]) == at.get(
                obligation.distinct[1]
            ):
                continue
            point = Evaluation(self.sizes, lambda name, where: self.tensors[name][where], at)
            try:
                if abs(point.value(obligation.base)) < mpmath.mpf(10) ** -25:
                    return False
            except (NotEvaluable, IndexError):
                return False
        return True


def _array(shape: tuple[int, ...], draw: Callable[[], Any]) -> Any:
    array = np.empty(shape, dtype=object)
    for where in np.ndindex(*shape):
        array[where] = draw()
    return array


def _real(draw: random.Random) -> Any:
    value = Fraction(draw.randint(1, 2048) * draw.choice((-1, 1)), 1024)
    return mpmath.mpf(value.numerator) / value.denominator


def _precise(value: bool | int | float) -> Any:
    if isinstance(value, bool):
        return value
    exact = literals.exact(value)
    return mpmath.mpf(exact.numerator) / exact.denominator


def close(left: Any, right: Any, digits: int = 25) -> bool:
    """Equal to so many digits."""
    return bool(abs(left - right) <= mpmath.mpf(10) ** -digits * (1 + abs(left) + abs(right)))


# -- changes


def rebuild(pool: ExprPool, expr: Expr, change: Callable[[Expr, list[Expr]], Expr | None]) -> Expr:
    """``expr`` with each part that ``change`` has an answer for replaced by it."""
    made: dict[int, Expr] = {}
    for part in postorder([expr]):
        args = [made[arg.number] for arg in part.args]
        made[part.number] = change(part, args) or same(pool, part, args)
    return made[expr.number]


def same(pool: ExprPool, part: Expr, args: list[Expr]) -> Expr:
    """The same node over other arguments."""
    if isinstance(part, Call):
        return pool.call(part.function, *args, dtype=part.dtype)
    if isinstance(part, Reduce):
        return pool.reduce(part.kind, part.axis, args[0])
    return part


def mutate(pool: ExprPool, expr: Expr, draw: random.Random) -> Expr:
    """One part changed: another op, another number, another element, another reduction."""
    parts = [p for p in postorder([expr]) if p.dtype == float32]
    target = draw.choice(parts)

    def change(part: Expr, args: list[Expr]) -> Expr | None:
        if part is not target:
            return None
        whole = same(pool, part, args)
        number = pool.literal(draw.choice((2.0, -1.0, 0.5)), float32)
        if isinstance(part, Literal):
            return pool.literal(float(part.value) + draw.choice((1.0, -0.5, 2.0**-20)), float32)
        if isinstance(part, Reduce) and draw.random() < 0.5:
            kinds = [k for k in ("sum", "max", "min", "prod") if k != part.kind]
            return pool.reduce(draw.choice(kinds), part.axis, args[0])
        if isinstance(part, Call) and part.function in _BINARY and draw.random() < 0.6:
            names = [name for name in ("add", "sub", "mul", "maximum") if name != part.function]
            return pool.call(draw.choice(names), *args, dtype=float32)
        if isinstance(part, Call) and len(args) == 1 and draw.random() < 0.6:
            return args[0] if draw.random() < 0.5 else pool.call("neg", whole, dtype=float32)
        if isinstance(part, Access) and part.tensor == "x" and draw.random() < 0.5:
            return pool.access("g", part.indices, float32)
        return pool.call(draw.choice(("mul", "add")), whole, number, dtype=float32)

    return rebuild(pool, expr, change)


__all__ = ["IntValue", "Maker", "Point", "close", "int64", "mutate", "rebuild", "same"]
