"""Difference quotients in balls: do hand-written gradients certainly agree with them?

In: a ``Subject``, a point, names of gradients.  Out: True where the quotient and the gradients,
both enclosed, agree to all the digits that count.  False says nothing: a ball may be too wide to
decide, or an op may have no form here, and mpmath's numbers are asked.

The meaning of an elementwise op is the same text as for mpmath's numbers, over FLINT's balls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from symgrad import deadline
from symgrad.ir.dtype import DType
from symgrad.ir.graph import Node, Scalar
from symgrad.ops.record import Op, get
from symgrad.proof.oracle.flint import arb, ctx, fmpq
from symgrad.proof.oracle.numbers import (
    Arithmetic,
    Array,
    Reading,
    SizeOf,
    Step,
    as_object,
    no_size,
)
from symgrad.proof.oracle.sample import DENOMINATOR, Point
from symgrad.proof.oracle.subject import Subject, generic_numbers, precisely
from symgrad.proof.oracle.values import (
    PRECISE_STEP_DIGITS,
    PRECISE_TOLERANCE_DIGITS,
    DomainError,
    Evaluator,
)
from symgrad.proof.scalars.bodies import value_text

BITS = 240
"""The working precision: some digits more than mpmath's numbers have, for the radii."""
_LINEAR = frozenset(("movement", "reduction", "contraction", "indexing", "source"))
"""Kinds of ops that move, add and multiply elements: their NumPy meaning serves for any number."""
_DIRECT = (np.add, np.subtract, np.multiply, np.negative)


class Undecided(Exception):
    """Balls do not say it."""


class NoForm(Undecided):
    """An op has no form in balls."""


# -- elements


def _less(left: Any, right: Any) -> bool:
    """For certain.  Raises Undecided."""
    if left < right:
        return True
    if left is right or left >= right:
        return False
    raise Undecided


def _equal(left: Any, right: Any) -> bool:
    if left != right:
        return False
    if left == right:
        return True
    raise Undecided


def _greater_of(left: Any, right: Any) -> Any:
    return right if _less(left, right) else left


def _lesser_of(left: Any, right: Any) -> Any:
    return right if _less(right, left) else left


def _sign(value: Any) -> Any:
    return arb(int(_less(0, value)) - int(_less(value, 0)))


def _polygamma(order: int, value: Any) -> Any:
    if order == 0:
        return value.digamma()
    if not value > 0:
        raise Undecided
    factorial = arb(order + 1).gamma()
    return factorial * arb(order + 1).zeta(value) * (-1) ** (order + 1)


def _as_ball(value: Any) -> Any:
    return value if type(value) is arb else arb(value)


def _of_ball(method: Callable[[Any], Any], value: Any) -> Any:
    """A method of balls, of a number as well: python-flint crashes for one, such as a constant."""
    return method(_as_ball(value))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Abs": abs, "max": _greater_of, "min": _lesser_of, "sign": _sign, "polygamma": _polygamma,
    "loggamma": lambda value: abs(value.gamma()).log(),
    "log": lambda value: arb(value).log(),
    "atan2": lambda y, x: arb.atan2(_as_ball(y), _as_ball(x)),
    **{
        name: partial(_of_ball, getattr(arb, name)) for name in (
            "exp", "sqrt", "erf", "erfc", "erfinv", "sin", "cos", "tan", "asin", "acos", "atan",
            "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
        )
    },
}  # fmt: skip
"""What the texts of the ops call, but for functions that jump: balls seldom decide these."""

_RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "lt": _less,
    "ge": lambda left, right: not _less(left, right),
    "gt": lambda left, right: _less(right, left),
    "le": lambda left, right: not _less(right, left),
    "eq": _equal,
    "ne": lambda left, right: not _equal(left, right),
}
_EXTREMES = {"amax": _greater_of, "max": _greater_of, "amin": _lesser_of, "min": _lesser_of}


@cache
def _function(text: str, arity: int) -> Callable[..., Any] | None:
    """What a text says, on balls; None where it asks for more than the functions above."""
    operands = ", ".join(f"u{place}" for place in range(arity))
    code = compile(f"lambda {operands}: {text}", "<op>", "eval")
    used = set(code.co_consts[0].co_names)
    if not used <= _FUNCTIONS.keys() or " if " in text:
        return None
    found: Callable[..., Any] = eval(code, dict(_FUNCTIONS))
    return found


_TO_BALLS = np.frompyfunc(_as_ball, 1, 1)
_FROM_INTEGERS = np.frompyfunc(lambda value: arb(int(value)), 1, 1)


class Balls(Arithmetic):
    """Nodes over balls.  Use inside of their precision.  What it cannot do raises Undecided."""

    steady = True

    def __init__(self, read: Reading) -> None:
        self.read = read

    def number(self, value: Scalar) -> Any:
        """A float literal."""
        if isinstance(value, float) and not math.isfinite(value):
            return arb(value)
        return arb(self.read(value))

    def full(self, number: Any) -> Array:
        """A number as an array of rank 0."""
        return as_object(number)

    def real(self, array: Array) -> Array:
        """Integers or truth values as reals."""
        return as_object(_FROM_INTEGERS(array))

    def elementwise(self, op: Op, values: Sequence[Array]) -> Array:
        """An elementwise op on reals."""
        return self.elementary(op, len(values))(values, no_size)

    def elementary(self, op: Op, arity: int) -> Step:
        """How to compute an elementwise op on reals."""
        ufunc = op.ufunc
        if ufunc in _DIRECT:
            return lambda values, size: as_object(ufunc(*values))
        text = value_text(op.name, arity)
        function = None if text is None else _function(text, arity)
        if function is None:
            raise NoForm
        mapped = np.frompyfunc(function, arity, 1)
        return lambda values, size: as_object(mapped(*values))

    def truncated(self, array: Array) -> Array:
        """Reals as integers: not here."""
        raise NoForm

    def step(self, node: Node) -> Step:
        """How to compute a node.  Raises NoForm where that asks for an order but a few do."""
        op = get(node.op)
        asks = any(arg.dtype.is_float for arg in node.args) and op.scalar is None
        linear = node.dtype.is_float and op.kind in _LINEAR
        if asks and not linear and node.op not in _EXTREMES:
            raise NoForm
        return super().step(node)

    def cast(self, array: Array, old: DType, new: DType) -> Array:
        """A change of dtype; between floats nothing changes."""
        if new.name == "bool_" and old.is_float:
            return np.asarray(~np.frompyfunc(_equal, 2, 1)(array, arb(0)).astype(bool), dtype=bool)
        return super().cast(array, old, new)

    def structural(
        self, op: Op, values: Sequence[Array], size: SizeOf, attributes: dict[str, Any], node: Node
    ) -> Array:
        """Any other op, by its NumPy meaning where that asks for no order."""
        if any(arg.dtype.is_float for arg in node.args):
            if node.op in _RELATIONS:
                return np.asarray(np.frompyfunc(_RELATIONS[node.op], 2, 1)(*values), dtype=bool)
            if node.op in _EXTREMES:
                return _extreme(_EXTREMES[node.op], values[0], **attributes)
        if node.op == "einsum":
            return as_object(np.einsum(attributes["spec"], *values))
        result = op.numpy(*values, size=size, **attributes)
        if not node.dtype.is_float:
            return np.asarray(result, dtype=bool if node.dtype.name == "bool_" else np.int64)
        return as_object(_TO_BALLS(as_object(result)))


def _extreme(choose: Callable[[Any, Any], Any], array: Array, *, axes: tuple[int, ...]) -> Array:
    for axis in reversed(axes):
        if not array.shape[axis]:
            raise Undecided
        array = as_object(np.frompyfunc(choose, 2, 1).reduce(array, axis=axis, dtype=object))
    return array


# -- agreement

_NO_VALUE = (Undecided, DomainError, ArithmeticError, AttributeError, TypeError, ValueError)


def certainly_agree(subject: Subject, point: Point, names: Sequence[str]) -> bool:
    """Do the gradients and the difference quotient agree at a point, along one direction of all?

    Use inside of ``precisely``: literals are read there.
    """
    if subject.without_balls:
        return False
    deadline.check()
    with ctx.workprec(BITS), np.errstate(all="ignore"):
        try:
            return _Quotient(subject, point).agrees(names)
        except NoForm:
            subject.without_balls = True
            return False
        except _NO_VALUE:
            return False


def enclosed(subject: Subject, point: Point, program: Evaluator) -> dict[Node, Array]:
    """All values of a subject at a point, and those of a program; none where there is no form."""
    with precisely(), ctx.workprec(BITS):
        try:
            found = _Quotient(subject, point)
            return found.values | program.run(found.arithmetic, found.feeds, point.sizes)
        except _NO_VALUE:
            return {}


class _Quotient:
    """One point of a subject."""

    def __init__(self, subject: Subject, point: Point) -> None:
        self.subject, self.sizes = subject, point.sizes
        if subject.balls is None:
            subject.balls = Balls(subject.read)
        self.arithmetic: Arithmetic = subject.balls
        self.feeds = {name: _reals(array) for name, array in point.numerators.items()}
        self.feeds |= point.integers
        self.values = subject.everything.run(self.arithmetic, self.feeds, self.sizes)

    def agrees(self, names: Sequence[str]) -> bool:
        subject, values = self.subject, self.values
        directions = {name: self._direction(name) for name in names}
        step = fmpq(1, 10**PRECISE_STEP_DIGITS)
        ahead, behind = (self._moved(directions, by) for by in (step, -step))
        away, mass = arb(0), arb(0)
        for node, cotangent in subject.outputs:
            weight, one, other = values[cotangent], ahead[node], behind[node]
            away += _sum(weight * (one - other))
            mass += _sum(abs(weight * one * (one != other)))
        quotient = away / (2 * step)
        claimed, scale = arb(0), abs(quotient)
        for name, direction in directions.items():
            products = values[subject.gradients[name]] * direction
            claimed += _sum(products)
            scale += _sum(abs(products))
        scale += (mass / 1000 + fmpq(1, 10**9)) / 1000
        return bool(abs(quotient - claimed) * 10**PRECISE_TOLERANCE_DIGITS <= scale)

    def _direction(self, name: str) -> Array:
        shape = self.values[self.subject.by_name[name]].shape
        return _over(generic_numbers(name, 0, shape), 512)

    def _moved(self, directions: Mapping[str, Array], step: Any) -> Mapping[Node, Array]:
        """What forward computes a step away from the point."""
        moved = dict(self.feeds)
        for name, direction in directions.items():
            moved[name] = moved[name] + direction * step
        return self.subject.forward.run(self.arithmetic, moved, self.sizes)


def _sum(array: Array) -> Any:
    """The sum of the elements.  Raises Undecided unless it is finite."""
    total = arb(0) + np.add.reduce(np.asarray(array, dtype=object), axis=None)
    if not total.is_finite():
        raise Undecided
    return total


def _reals(numerators: Array) -> Array:
    return _over(numerators, DENOMINATOR)


def _over(numerators: Array, denominator: int) -> Array:
    found = np.empty(numerators.shape, dtype=object)
    found[...] = np.frompyfunc(lambda n: arb(int(n)) / denominator, 1, 1)(numerators)
    return found
