"""Both sides of a gradient at one point, enclosed: what makes a refutation a theorem.

In: a ``Subject``, a point of rationals, an element of an input.  Out: enclosures of the gradient as
written and of the true one, which hold for every reading of the rounded literals.

The graph is evaluated over ``Jet`` elements: rationals that are exact, balls elsewhere.  The true
gradient is the derivative of ``<cotangents, outputs>`` along the element, by forward mode.  A
literal of many digits is the ball of all numbers that it may round.  At the boundary of two
branches of forward the derivative is that of both sides, where they agree and forward is
continuous.  What is only known as C with a declared derivative cannot be enclosed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import mpmath
import numpy as np

from symgrad.errors import GraphError
from symgrad.ir.dtype import DType
from symgrad.ir.graph import Node, Scalar
from symgrad.ops.linalg_exact import householder
from symgrad.ops.record import Op, get
from symgrad.proof.oracle import balls, lines, spectral
from symgrad.proof.oracle.balls import (
    HALF,
    NAN,
    ONE,
    ZERO,
    Asking,
    Jet,
    Number,
    OnBoundary,
    Uncertain,
    add,
    chained,
    div,
    exp,
    inverse,
    log,
    mul,
    neg,
    sqrt,
)
from symgrad.proof.oracle.flint import arb, fmpq
from symgrad.proof.oracle.numbers import Arithmetic, Array, SizeOf, as_object
from symgrad.proof.oracle.sample import DENOMINATOR, Point
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.oracle.values import Evaluator
from symgrad.proof.scalars import literals, uninterpreted
from symgrad.proof.scalars.bodies import PREFIX, body, translated

LEAST_SHOWN, MOST_SHOWN = 10, 60
"""Significant digits with which two numbers are printed, until they differ."""


@dataclass(frozen=True)
class Separated:
    """Two numbers that are apart for certain, as text in which they differ."""

    hand: str
    true: str


# -- elementwise functions: the value, and the partial derivatives


def _two() -> Number:
    return fmpq(2)


def _pi() -> Number:
    return arb.pi()


Pair = tuple[Callable[[Number], Number], Callable[[Number, Number], Number]]
UNARY: dict[str, Pair] = {
    "neg": (neg, lambda x, y: fmpq(-1)),
    "square": (lambda x: mul(x, x), lambda x, y: mul(_two(), x)),
    "reciprocal": (inverse, lambda x, y: neg(mul(y, y))),
    "sqrt": (sqrt, lambda x, y: inverse(mul(_two(), y))),
    "root": (sqrt, lambda x, y: inverse(mul(_two(), y))),
    "rsqrt": (lambda x: inverse(sqrt(x)), lambda x, y: neg(div(y, mul(_two(), x)))),
    "exp": (exp, lambda x, y: y),
    "expm1": (balls.expm1, lambda x, y: add(y, ONE)),
    "exp2": (lambda x: exp(mul(x, log(_two()))), lambda x, y: mul(y, log(_two()))),
    "log": (log, lambda x, y: inverse(x)),
    "log1p": (balls.log1p, lambda x, y: inverse(add(x, ONE))),
    "log2": (lambda x: div(log(x), log(_two())), lambda x, y: inverse(mul(x, log(_two())))),
    "log10": (lambda x: div(log(x), log(fmpq(10))), lambda x, y: inverse(mul(x, log(fmpq(10))))),
    "sin": (balls.sin, lambda x, y: balls.cos(x)),
    "cos": (balls.cos, lambda x, y: neg(balls.sin(x))),
    "tan": (balls.tan, lambda x, y: add(ONE, mul(y, y))),
    "asin": (balls.asin, lambda x, y: inverse(sqrt(add(ONE, neg(mul(x, x)))))),
    "acos": (balls.acos, lambda x, y: neg(inverse(sqrt(add(ONE, neg(mul(x, x))))))),
    "atan": (balls.atan, lambda x, y: inverse(add(ONE, mul(x, x)))),
    "sinh": (balls.sinh, lambda x, y: balls.cosh(x)),
    "cosh": (balls.cosh, lambda x, y: balls.sinh(x)),
    "tanh": (balls.tanh, lambda x, y: add(ONE, neg(mul(y, y)))),
    "asinh": (balls.asinh, lambda x, y: inverse(sqrt(add(mul(x, x), ONE)))),
    "acosh": (balls.acosh, lambda x, y: inverse(sqrt(add(mul(x, x), fmpq(-1))))),
    "atanh": (balls.atanh, lambda x, y: inverse(add(ONE, neg(mul(x, x))))),
    "sigmoid": (balls.sigmoid, lambda x, y: mul(y, add(ONE, neg(y)))),
    "softplus": (balls.softplus, lambda x, y: balls.sigmoid(x)),
    "log_sigmoid": (lambda x: neg(balls.softplus(neg(x))), lambda x, y: balls.sigmoid(neg(x))),
    "erf": (balls.erf, lambda x, y: mul(div(_two(), sqrt(_pi())), exp(neg(mul(x, x))))),
    "erfc": (balls.erfc, lambda x, y: mul(div(fmpq(-2), sqrt(_pi())), exp(neg(mul(x, x))))),
    "erfinv": (balls.erfinv, lambda x, y: mul(mul(HALF, sqrt(_pi())), exp(mul(y, y)))),
    "lgamma": (balls.lgamma, lambda x, y: balls.digamma(x)),
    "digamma": (balls.digamma, lambda x, y: balls.trigamma(x)),
    "trigamma": (balls.trigamma, lambda x, y: balls.tetragamma(x)),
    "tetragamma": (balls.tetragamma, lambda x, y: balls.pentagamma(x)),
}
"""``f(x)`` and ``f'(x, f(x))`` of ops that ask for no order."""


def _unary(value: Callable[[Number], Number], slope: Callable[[Number, Number], Number]) -> Any:
    def call(asking: Asking, x: Jet) -> Jet:
        found = value(x.v)
        return chained(found, (x.d, lambda: slope(x.v, found)))

    return call


def _silu(asking: Asking, x: Jet) -> Jet:
    return x * ELEMENTWISE["sigmoid"](asking, x)


def _chosen(asking: Asking, x: Jet, at: Number = ZERO) -> int | None:
    return asking.order(x, Jet(at))


def _abs(asking: Asking, x: Jet) -> Jet:
    side = _chosen(asking, x)
    return Jet(NAN, x.d) if side is None else -x if side < 0 else x


def _sign(asking: Asking, x: Jet) -> Jet:
    side = _chosen(asking, x)
    return Jet(NAN if side is None else fmpq(side))


def _relu(asking: Asking, x: Jet) -> Jet:
    side = _chosen(asking, x)
    return x if side is None or side > 0 else Jet(ZERO)


def _extreme(asking: Asking, x: Jet, y: Jet, *, least: bool) -> Jet:
    return (x, y)[asking.greatest((x, y), least)]


def _floor(asking: Asking, x: Jet) -> Jet:
    return Jet(x.v) if balls.is_special(x.v) else Jet(fmpq(asking.whole(x)))


def _ceil(asking: Asking, x: Jet) -> Jet:
    return -_floor(asking, -x)


def _trunc(asking: Asking, x: Jet) -> Jet:
    side = _chosen(asking, x)
    return _ceil(asking, x) if side == -1 else _floor(asking, x)


def _round(asking: Asking, x: Jet) -> Jet:
    if balls.is_special(x.v):
        return Jet(x.v)
    near = asking.whole(x + Jet(HALF))
    tied = asking.order(x, Jet(fmpq(2 * near - 1, 2))) == 0
    return Jet(fmpq(near - near % 2 if tied else near))


def _mod(asking: Asking, x: Jet, y: Jet) -> Jet:
    return x - y * _floor(asking, x / y)


def _fmod(asking: Asking, x: Jet, y: Jet) -> Jet:
    return x - y * _trunc(asking, x / y)


def _copysign(asking: Asking, x: Jet, y: Jet) -> Jet:
    away = _abs(asking, x)
    return -away if _chosen(asking, y) == -1 else away


def _pow(asking: Asking, x: Jet, y: Jet) -> Jet:
    def by_base() -> Number:
        return mul(y.v, balls.power(x.v, add(y.v, fmpq(-1))))

    value = balls.power(x.v, y.v)
    if x.d is not None and not balls.is_special(y.v) and y.d is None and y.v == 0:
        return Jet(value, ZERO)
    return chained(value, (x.d, by_base), (y.d, lambda: mul(value, log(x.v))))


def _hypot(asking: Asking, x: Jet, y: Jet) -> Jet:
    return ELEMENTWISE["sqrt"](asking, x * x + y * y)


def _atan2(asking: Asking, y: Jet, x: Jet) -> Jet:
    if balls.is_special(x.v) or balls.is_special(y.v):
        raise Uncertain("the angle of an infinity")
    square = add(mul(x.v, x.v), mul(y.v, y.v))
    if balls.sign(x.v) <= 0 and balls.sign(y.v) == 0 and (x.d is not None or y.d is not None):
        raise OnBoundary("the angle jumps there")
    value = arb.atan2(balls.ball(y.v), balls.ball(x.v))
    by_y, by_x = partial(div, x.v, square), partial(div, neg(y.v), square)
    return chained(ZERO if value == 0 else value, (y.d, by_y), (x.d, by_x))


def _logaddexp(asking: Asking, x: Jet, y: Jet) -> Jet:
    if balls.is_special(x.v) or balls.is_special(y.v):
        return ELEMENTWISE["log"](
            asking, ELEMENTWISE["exp"](asking, x) + ELEMENTWISE["exp"](asking, y)
        )  # fmt: skip
    return x + ELEMENTWISE["softplus"](asking, y - x)


ELEMENTWISE: dict[str, Callable[..., Jet]] = {
    **{name: _unary(*pair) for name, pair in UNARY.items()},
    "add": lambda asking, x, y: x + y,
    "sub": lambda asking, x, y: x - y,
    "mul": lambda asking, x, y: x * y,
    "div": lambda asking, x, y: x / y,
    "shift": lambda asking, x: x,
    "silu": _silu, "abs": _abs, "sign": _sign, "relu": _relu,
    "maximum": partial(_extreme, least=False), "minimum": partial(_extreme, least=True),
    "floor": _floor, "ceil": _ceil, "trunc": _trunc, "round": _round,
    "floordiv": lambda asking, x, y: _floor(asking, x / y), "mod": _mod, "fmod": _fmod,
    "copysign": _copysign, "pow": _pow, "hypot": _hypot, "atan2": _atan2,
    "logaddexp": _logaddexp,
}  # fmt: skip
"""What elementwise ops with a float result do, by name; others have the meaning that they state."""


class _Meaning:
    """What a sympy body is made of, on elements: for ops that users declare."""

    def __init__(self, asking: Asking) -> None:
        self.asking = asking

    def call(self, name: str, *operands: Any, dtype: DType) -> Any:
        if name == "pi":
            return Jet(_pi())
        if name in balls._RELATIONS:
            return self.asking.compared(name, *operands)
        if name == "logical_not":
            return not operands[0]
        if name in ("logical_and", "logical_or"):
            return (all if name == "logical_and" else any)(operands)
        return applied(name, self.asking, *operands)

    def literal(self, value: Any, dtype: DType) -> Any:
        return value if isinstance(value, bool) else balls.constant(value)

    def select(self, condition: Any, value: Any, other: Any) -> Any:
        return value if condition else other


def applied(name: str, asking: Asking, *operands: Jet) -> Jet:
    """An elementwise op on elements.  Raises Uncertain."""
    known = ELEMENTWISE.get(name)
    if known is not None:
        return known(asking, *operands)
    if uninterpreted.is_uninterpreted(PREFIX + name):
        raise Uncertain(f"{name} is known by its C and its derivative alone")
    try:
        found = translated(_Meaning(asking), body(name, len(operands)), operands, None)  # type: ignore[arg-type]
    except GraphError as error:
        raise Uncertain(error.what) from error
    assert isinstance(found, Jet)
    return found


# -- nodes


Slack = Callable[[Scalar], Fraction]
"""How far what is meant may lie from a literal."""


class Balls(Arithmetic):
    """Nodes over ``Jet`` elements.  Use inside ``balls.working``."""

    def __init__(self, side: int = 0, slack: Slack = literals.slack) -> None:
        self.asking, self.slack = Asking(side), slack

    def number(self, value: Scalar) -> Any:
        """A float literal: all that it may round."""
        return Jet(literal(value, self.slack))

    def elements(self, value: Any) -> Array:
        """An array whose numbers are elements."""
        return _elements(value)

    def full(self, number: Any) -> Array:
        """An element as an array of rank 0."""
        return as_object(number)

    def real(self, array: Array) -> Array:
        """Integers or truth values as reals."""
        return self.elements(array)

    def elementwise(self, op: Op, values: Sequence[Array]) -> Array:
        """An elementwise op on reals."""
        function = partial(applied, op.name, self.asking)
        return as_object(np.frompyfunc(function, len(values), 1)(*values))

    def truncated(self, array: Array) -> Array:
        """Reals as integers, rounded towards zero."""
        return np.asarray(np.frompyfunc(self._truncated, 1, 1)(array), dtype=np.int64)

    def _truncated(self, x: Jet) -> int:
        found = _trunc(self.asking, x).v
        if balls.is_special(found):
            raise Uncertain("no integer")
        return int(found.p)

    def cast(self, array: Array, old: DType, new: DType) -> Array:
        """A change of dtype; between floats nothing changes."""
        if new.name == "bool_" and old.is_float:
            zero = Jet(ZERO)
            differ = np.frompyfunc(lambda x: self.asking.compared("ne", x, zero), 1, 1)
            return np.asarray(differ(array), dtype=bool)
        return super().cast(array, old, new)

    def structural(
        self, op: Op, values: Sequence[Array], size: SizeOf, attributes: dict[str, Any], node: Node
    ) -> Array:
        """Any other op, by its NumPy meaning on elements, or by one of its own."""
        if not any(arg.dtype.is_float for arg in node.args):
            result = op.numpy(*values, size=size, **attributes)
            if node.dtype.is_float:
                return self.elements(np.asarray(result))
            return np.asarray(result, dtype=bool if node.dtype.name == "bool_" else np.int64)
        if node.op in balls._RELATIONS:
            asked = np.frompyfunc(partial(self.asking.compared, node.op), 2, 1)
            return np.asarray(asked(*values), dtype=bool)
        own = getattr(self, f"_{node.op}", None)
        if own is not None:
            return np.asarray(own(*values, **attributes))
        if not node.dtype.is_float or op.kind not in _LINEAR:
            raise Uncertain(f"no enclosure of {node.op}")
        if node.op == "einsum":
            return as_object(np.einsum(attributes["spec"], *values))
        return self.elements(op.numpy(*values, size=size, **attributes))

    # what asks for an order

    def _along(self, array: Array, axes: Sequence[int], least: bool, places: bool) -> Array:
        rest = [axis for axis in range(array.ndim) if axis not in axes]
        rows = np.transpose(array, (*rest, *axes))
        shape = rows.shape[: len(rest)]
        found = np.empty(shape, dtype=np.int64 if places else object)
        for at in np.ndindex(*shape):
            row = list(rows[at].ravel()) if rows[at].shape else [rows[at]]
            if not row and not places:
                found[at] = Jet(balls.INFINITY if least else -balls.INFINITY)
                continue
            place = self.asking.greatest(row, least) if row else 0
            found[at] = place if places else row[place]
        return found

    def _amax(self, array: Array, *, axes: tuple[int, ...]) -> Array:
        return self._along(array, axes, least=False, places=False)

    def _amin(self, array: Array, *, axes: tuple[int, ...]) -> Array:
        return self._along(array, axes, least=True, places=False)

    _max, _min = _amax, _amin

    def _argmax(self, array: Array, *, axes: tuple[int, ...]) -> Array:
        return self._along(array, axes, least=False, places=True)

    def _argmin(self, array: Array, *, axes: tuple[int, ...]) -> Array:
        return self._along(array, axes, least=True, places=True)

    def _rank(self, array: Array, *, axis: int, descending: bool) -> Array:
        lines = np.moveaxis(array, axis, -1)
        found = np.empty(lines.shape, dtype=np.int64)
        for at in np.ndindex(*lines.shape[:-1]):
            found[at] = self._ranks(list(lines[at]), descending)
        return np.moveaxis(found, -1, axis)

    def _ranks(self, line: list[Jet], descending: bool) -> list[int]:
        ranks = [0] * len(line)
        for i, left in enumerate(line):
            for j in range(i):
                found = self.asking.order(line[j], left)
                if found is None:
                    raise Uncertain("the rank of what has no value")
                later = i if (found < 0) != descending or found == 0 else j
                ranks[later] += 1
        return ranks

    # matrices, by elimination with pivots that are not 0 for certain

    def _inverse(self, array: Array) -> Array:
        identity = self.elements(np.eye(array.shape[-1], dtype=np.int64))
        return _each(array, lambda one: _eliminated(one, identity)[0])

    def _det(self, array: Array) -> Array:
        return _each(array, lambda one: _eliminated(one, one[:, :0])[1])

    def _logdet(self, array: Array) -> Array:
        return self.elementwise(get("log"), [self._det(array)])

    def _solve_triangular(self, matrix: Array, right: Array, *, upper: bool) -> Array:
        kept = np.triu if upper else np.tril
        part: Array = np.where(
            kept(np.ones(matrix.shape, dtype=bool)), matrix, self.full(Jet(ZERO))
        )
        found = np.empty(right.shape, dtype=object)
        for at in np.ndindex(*matrix.shape[:-2]):
            found[at] = _eliminated(part[at], right[at])[0]
        return found

    def _cholesky(self, array: Array) -> Array:
        return _each(_symmetric(array), self._factor)

    def _eigenvalues(self, array: Array) -> Array:
        return _each(_symmetric(array), lambda one: spectral.eigen(one)[0])

    def _eigenvectors(self, array: Array) -> Array:
        return _each(_symmetric(array), lambda one: spectral.eigen(one)[1])

    def _left_vectors(self, array: Array, *, count: Any) -> Array:
        return _each(array, lambda one: spectral.singular(one)[0])

    def _singular_values(self, array: Array, *, count: Any) -> Array:
        return _each(array, lambda one: spectral.singular(one)[1])

    def _right_vectors(self, array: Array, *, count: Any) -> Array:
        return _each(array, lambda one: spectral.singular(one)[2])

    def _orthogonal_factor(self, array: Array) -> Array:
        return _each(array, lambda one: self._reflected(one)[0])

    def _triangular_factor(self, array: Array) -> Array:
        return _each(array, lambda one: self._reflected(one)[1])

    def _reflected(self, matrix: Array) -> tuple[Array, Array]:
        found = householder(
            matrix, lambda one: applied("sqrt", self.asking, one), lambda one: balls.sign(one.v)
        )
        if found is None:
            raise Uncertain("a matrix at which its factors jump")
        return found

    def _factor(self, matrix: Array) -> Array:
        factor = self.elements(np.zeros(matrix.shape, dtype=np.int64))
        for i, j in zip(*np.tril_indices(len(matrix)), strict=True):
            rest = matrix[i, j] - sum((factor[i, k] * factor[j, k] for k in range(j)), Jet(ZERO))
            if i == j and balls.sign(rest.v) <= 0:
                raise Uncertain("the matrix is not positive definite")
            root = applied("sqrt", self.asking, rest) if i == j else rest / factor[j, j]
            factor[i, j] = root
        return factor


class Lines(Balls):
    """Nodes over ``Line`` elements, just ahead of a point or just behind it."""

    def __init__(self, side: int, slack: Slack = literals.slack) -> None:
        self.asking: Any = lines.Beside(side)
        self.slack = slack

    def elements(self, value: Any) -> Array:
        """An array whose numbers are lines."""
        array = value if isinstance(value, np.ndarray) else np.asarray(value, dtype=object)
        return as_object(np.frompyfunc(lines.line, 1, 1)(array))

    def number(self, value: Scalar) -> Any:
        """A float literal: all that it may round."""
        return lines.literal(literal(value, self.slack))

    def elementwise(self, op: Op, values: Sequence[Array]) -> Array:
        """An elementwise op on reals."""
        function = partial(lines.applied, op.name, self.asking)
        return as_object(np.frompyfunc(function, len(values), 1)(*values))

    def truncated(self, array: Array) -> Array:
        """Reals as integers: not known."""
        raise Uncertain("an integer of what moves")

    def structural(
        self, op: Op, values: Sequence[Array], size: SizeOf, attributes: dict[str, Any], node: Node
    ) -> Array:
        """Any other op, by its NumPy meaning on elements; of matrices nothing is known."""
        if node.op in _MATRICES and any(arg.dtype.is_float for arg in node.args):
            raise Uncertain(f"no series of {node.op}")
        return super().structural(op, values, size, attributes, node)


_MATRICES = (
    "inverse", "det", "logdet", "solve_triangular", "cholesky", "eigenvalues", "eigenvectors",
    "left_vectors", "singular_values", "right_vectors", "orthogonal_factor", "triangular_factor",
)  # fmt: skip
_LINEAR = frozenset(("movement", "reduction", "contraction", "indexing", "source"))
"""Kinds of ops that move, add and multiply elements: their NumPy meaning serves for any number."""


def _elements(value: Any) -> Array:
    """An array whose numbers are elements."""
    array = value if isinstance(value, np.ndarray) else np.asarray(value, dtype=object)
    made = np.frompyfunc(lambda x: x if type(x) is Jet else balls.constant(x), 1, 1)
    return as_object(made(array))


def _symmetric(array: Array) -> Array:
    found: Array = (array + np.swapaxes(array, -1, -2)) * Jet(HALF)
    return found


def _each(matrices: Array, function: Callable[[Array], Any]) -> Array:
    shape = matrices.shape[:-2]
    found = [function(matrices[at]) for at in np.ndindex(*shape)]
    inner = np.shape(found[0]) if found else ()
    result = np.empty((*shape, *inner), dtype=object)
    for at, one in zip(np.ndindex(*shape), found, strict=True):
        result[at] = one
    return result


def _eliminated(matrix: Array, right: Array) -> tuple[Array, Jet]:
    """``matrix^-1 right`` and the determinant.  Raises Uncertain where a matrix may be singular."""
    work = np.concatenate([matrix, right], axis=1)
    size, determinant = len(matrix), Jet(ONE)
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: _surely_nonzero(work[row, column]))
        if _surely_nonzero(work[pivot, column]) <= 0:
            raise Uncertain("a matrix that may be singular")
        if pivot != column:
            work[[pivot, column]] = work[[column, pivot]]
            determinant = -determinant
        determinant = determinant * work[column, column]
        work[column] = work[column] * work[column, column].inverse()
        for row in range(size):
            if row != column:
                work[row] = work[row] - work[row, column] * work[column]
    return work[:, size:], determinant


def _surely_nonzero(x: Jet) -> float:
    """About the least that its size is."""
    return 0.0 if balls.is_special(x.v) else float(balls.ball(x.v).abs_lower())


# -- literals


def literal(value: Scalar, slack: Slack = literals.slack) -> Number:
    """All that a literal may round: itself where it has few digits."""
    if isinstance(value, float) and not math.isfinite(value):
        return value
    middle, radius = literals.exact(value), slack(value)
    exact = fmpq(middle.numerator, middle.denominator)
    if not radius:
        return exact
    return balls.around(exact, fmpq(radius.numerator, radius.denominator))


# -- the two sides


DOUBLE_BITS = 53
"""The precision of a double."""


def separated(
    subject: Subject,
    point: Point,
    name: str,
    at: tuple[int, ...],
    precisions: Sequence[int] = (balls.BITS, balls.MORE_BITS),
) -> Separated | None:
    """The gradient as written and the true one at an element, if they are apart for certain."""
    for bits in precisions:
        with balls.working(bits):
            try:
                if not surely_stated(subject, point) or not _demands_met(subject, point):
                    return None
                hand = hand_value(subject, point, name)[at].v
                true = true_value(subject, point, name, at)
            except Uncertain:
                continue
            if balls.is_special(true):
                return None
            return shown(hand, true) if balls.apart(hand, true) else None
    return None


_SIDES = {">": (1,), ">=": (0, 1), "!=": (-1, 1), "==": (0,)}


def surely_stated(subject: Subject, point: Point) -> bool:
    """Does what is stated of the inputs hold at a point?  Raises Uncertain."""
    if not subject.relations:
        return True
    values = subject.stated.program.run(Balls(), feeds(point), point.sizes)
    return all(
        balls.order(value.v, ZERO) in _SIDES[one.kind]
        for one in subject.relations for value in values[one.node].ravel()
    )  # fmt: skip


def _demands_met(subject: Subject, point: Point) -> bool:
    """Do integers lie between the sizes that operations demand?  Raises Uncertain."""
    ends = {
        one.node: (one.low.at(point.sizes), one.high.at(point.sizes)) for one in subject.demanded
        if one.low is not None and one.high is not None
    }  # fmt: skip
    if not ends:
        return True
    program = evaluator(subject, ("demanded",), lambda: Evaluator([*ends]))
    values = program.run(Balls(), feeds(point), point.sizes)
    return all(
        balls.order(one, fmpq(low)) in (0, 1) and balls.order(one, fmpq(high)) == -1
        for node, (low, high) in ends.items()
        for one in (_number(value) for value in values[node].ravel())
    )  # fmt: skip


def _number(value: Any) -> Number:
    """An element of a node of integers, which may be one of NumPy's."""
    return value.v if isinstance(value, Jet) else fmpq(int(value))


def hand_value(subject: Subject, point: Point, name: str) -> Array:
    """The gradient as written, enclosed."""
    node = subject.gradients[name]
    program = evaluator(subject, ("hand", name), lambda: Evaluator([node]))
    return program.run(Balls(slack=subject.slack), feeds(point), point.sizes)[node]


def true_value(subject: Subject, point: Point, name: str, at: tuple[int, ...]) -> Number:
    """The derivative of ``<cotangents, outputs>`` by an element, enclosed.  Raises Uncertain."""

    def along(side: int) -> Jet:
        given = feeds(point)
        moved = given[name].copy()
        moved[at] = Jet(moved[at].v, ONE)
        return objective(subject, {**given, name: moved}, point.sizes, side)

    try:
        found = derivative(along(0))
        if not balls.is_special(found):
            return found
    except OnBoundary:
        here = objective(subject, feeds(point), point.sizes)
        with suppress(Uncertain):
            ahead, behind = along(1), along(-1)
            smooth = balls.certainly_equal(derivative(ahead), derivative(behind))
            if smooth and all(balls.certainly_equal(one.v, here.v) for one in (ahead, behind)):
                return derivative(ahead)
    with lines.sharing():
        return _continued(subject, point, name, at)


def _continued(subject: Subject, point: Point, name: str, at: tuple[int, ...]) -> Number:
    """The derivative where forward is one power series on both sides, and continuous.

    Raises Uncertain.
    """
    found, answers = [], []
    for side in (0, 1, -1):
        arithmetic = Lines(side, subject.slack)
        given = {
            key: arithmetic.elements(value) if key in point.numerators else value
            for key, value in feeds(point).items()
        }
        if side:
            moved = given[name].copy()
            moved[at] = lines.line(Jet(feeds(point)[name][at].v, ONE))
            given[name] = moved
        found.append(_along(subject, arithmetic, given, point.sizes))
        answers.append(arithmetic.asking.asked)
    here, ahead, behind = found
    if ahead.low < 0 or behind.low < 0:
        raise Uncertain("forward may not be finite there")
    if not balls.certainly_equal(ahead.at(0), here.at(0)):
        raise Uncertain("forward may not be continuous there")
    alike = answers[1] == answers[2] or all(
        balls.certainly_equal(ahead.at(power), behind.at(power)) for power in (0, 1)
    )
    if not alike:
        raise Uncertain("forward may have no derivative there")
    return ahead.at(1)


def _along(
    subject: Subject, arithmetic: Lines, given: Mapping[str, Array], sizes: Mapping[str, int]
) -> lines.Line:
    """``<cotangents, outputs>`` beside a point."""
    wanted = [node for pair in subject.outputs for node in pair]
    program = evaluator(subject, "objective", lambda: Evaluator(wanted))
    values = program.run(arithmetic, given, sizes)
    total = lines.line(Jet(ZERO))
    for node, cotangent in subject.outputs:
        for value, weight in zip(values[node].ravel(), values[cotangent].ravel(), strict=True):
            total = total + value * weight
    if total.parts is None:
        raise Uncertain("forward has no series there")
    return total


def derivative(found: Jet) -> Number:
    """The derivative of a value that is finite.  Raises Uncertain."""
    if balls.is_special(found.v):
        raise Uncertain("forward is not finite")
    return ZERO if found.d is None else found.d


def objective(
    subject: Subject, given: Mapping[str, Array], sizes: Mapping[str, int], side: int = 0, *,
    arithmetic: Balls | None = None,
) -> Jet:  # fmt: skip
    """``<cotangents, outputs>``.  Raises Uncertain where an output is not finite."""
    wanted = [node for pair in subject.outputs for node in pair]
    program = evaluator(subject, "objective", lambda: Evaluator(wanted))
    values = program.run(arithmetic or Balls(side, subject.slack), given, sizes)
    total = Jet(ZERO)
    for node, cotangent in subject.outputs:
        for value, weight in zip(values[node].ravel(), values[cotangent].ravel(), strict=True):
            if balls.is_special(value.v):
                raise Uncertain("an output is not finite")
            total = total + value * weight
    return total


def evaluator(subject: Subject, key: Any, make: Callable[[], Evaluator]) -> Evaluator:
    """A program of a subject, made once."""
    if key not in subject.programs:
        subject.programs[key] = make()
    return subject.programs[key]


def feeds(point: Point) -> dict[str, Array]:
    """The inputs of a point as elements; integers as they are."""
    found: dict[str, Array] = dict(point.integers)
    for name, numerators in point.numerators.items():
        made = np.frompyfunc(lambda n: Jet(fmpq(int(n), DENOMINATOR)), 1, 1)(numerators)
        found[name] = as_object(made)
    return found


def shown(hand: Number, true: Number) -> Separated | None:
    """Two numbers with so many digits that their texts differ; None where none are enough."""
    for digits in range(LEAST_SHOWN, MOST_SHOWN):
        texts = Separated(text_of(hand, digits), text_of(true, digits))
        if texts.hand != texts.true:
            return texts
    return None


def text_of(x: Number, digits: int) -> str:
    """A number with so many significant digits."""
    if balls.is_special(x):
        return f"{x:g}"
    if digits == LEAST_SHOWN:
        return f"{as_float(x):.{digits}g}"
    with mpmath.workdps(2 * MOST_SHOWN):
        return str(mpmath.nstr(_mpf(x), digits)).removesuffix(".0")


def as_float(x: Number) -> float:
    """A number as a double."""
    return x if balls.is_special(x) else float(_mpf(x))


def _mpf(x: Number) -> Any:
    if type(x) is fmpq:
        return mpmath.mpf(int(x.p)) / int(x.q)
    if x.contains(0):
        return mpmath.mpf(0)  # another number in the ball is no better known
    mantissa, exponent = x.mid().man_exp()
    return mpmath.ldexp(int(mantissa), int(exponent))
