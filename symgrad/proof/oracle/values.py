"""The independent oracle: values and difference quotients of a traced Function at a point.

In: the nodes of a case and a point (sizes, inputs, cotangents).  Out: values, derivatives along a
direction, by central differences of the forward and by propagating sympy's partials.

Neither the normal form nor any VJP is used here.  The difference quotient does not use sympy's
derivatives either: PROVED needs its consent, and REFUTED that of both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np

from symgrad import deadline
from symgrad.errors import SymgradError
from symgrad.ir.dim import Dim, DimLike
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ops.record import get
from symgrad.proof.oracle.numbers import Arithmetic, Array, Precise, Step

_UNDEFINED = (SymgradError, IndexError, ArithmeticError, ValueError, TypeError)
DOUBLE_STEP = 2.0**-17
PRECISE_STEP_DIGITS = 20
DOUBLE_TOLERANCE = 1e-6
PRECISE_TOLERANCE_DIGITS = 32


class DomainError(Exception):
    """The forward is not defined, or not finite, at the point."""


class Evaluator:
    """The nodes that some results need, in order; evaluated at many points.

    ``known``: nodes whose values are given instead of computed.  How a node is computed is looked
    up once for each arithmetic that keeps its steps.
    """

    def __init__(self, results: Sequence[Node], known: Sequence[Node] = ()) -> None:
        self.results = tuple(results)
        stop = set(known)
        self.nodes = [node for node in ancestors(results, stop=stop) if node not in stop]
        self.known = tuple(known)
        self._programs: dict[Arithmetic, Program] = {}

    def _program(self, arithmetic: Arithmetic) -> Program:
        found = self._programs.get(arithmetic)
        if found is None:
            found = [
                (node, node.args, None if node.op == "input" else arithmetic.step(node))
                for node in self.nodes
            ]
            if arithmetic.steady:
                self._programs[arithmetic] = found
        return found

    def run(
        self,
        arithmetic: Arithmetic,
        feeds: Mapping[str, Array],
        sizes: Mapping[str, int],
        values: dict[Node, Array] | None = None,
    ) -> dict[Node, Array]:
        """The values of all nodes.  Raises DomainError where an index leaves its range."""
        found = {} if values is None else dict(values)
        size = size_function(sizes)
        deadline.check()
        with np.errstate(all="ignore"):
            for node, args, step in self._program(arithmetic):
                if step is None:
                    found[node] = _array(feeds[node.attributes["name"]])
                    continue
                try:
                    value = step([found[arg] for arg in args], size)
                except _UNDEFINED as error:
                    raise DomainError(f"{node.label}: {error}") from error
                found[node] = value if type(value) is np.ndarray else _array(value)
        return found


Program = list[tuple[Node, tuple[Node, ...], Step | None]]
"""Nodes with their arguments and how they are computed; None for what is fed."""


def _array(value: Any) -> Array:
    """Of rank 0, too: what NumPy computes of such arrays of objects are the objects."""
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    found = np.empty((), dtype=object)
    found[()] = value
    return found


def size_function(sizes: Mapping[str, int]) -> Callable[[DimLike], int]:
    """The value of a Dim at concrete sizes."""
    return _size_function(tuple(sizes.items()))


@lru_cache(maxsize=512)
def _size_function(items: tuple[tuple[str, int], ...]) -> Callable[[DimLike], int]:
    sizes, known = dict(items), dict[DimLike, int]()

    def value(dim: DimLike) -> int:
        found = known.get(dim)
        if found is None:
            found = known[dim] = Dim.of(dim).at(sizes)
        return found

    return value


def inner(left: Array, right: Array) -> Any:
    """The sum of the products of the elements."""
    if left.dtype == right.dtype == np.float64 and left.shape == right.shape:
        return left.ravel().dot(right.ravel())
    return np.add.reduce(left * right, axis=None) if left.size else 0


def is_finite(array: Array) -> bool:
    """Are all elements real and finite?"""
    if array.dtype != object:
        return bool(np.isfinite(array).all())
    return all(isinstance(x, mpmath.mpf) and mpmath.isfinite(x) for x in array.ravel())


def objective(
    outputs: Sequence[tuple[Node, Node]],
    values: Mapping[Node, Array],
    weights: Mapping[Node, Array],
) -> Any:
    """``sum over outputs of <cotangent, output>``; raises DomainError unless it is finite."""
    total: Any = 0
    for node, cotangent in outputs:
        weight, value = weights[cotangent], values[node]
        part = inner(weight, value)
        # a double that is not finite makes the sum of the products so, whatever its weight
        if (value.dtype == object or not math.isfinite(part)) and not is_finite(value):
            raise DomainError(f"{node.label} is not finite")
        total = total + part
    return total


class Differences:
    """Central differences of ``<cotangents, outputs>`` at one point.

    ``outputs``: pairs of an output and its cotangent; ``weights``: the cotangents' values.
    """

    def __init__(
        self,
        forward: Evaluator,
        outputs: Sequence[tuple[Node, Node]],
        arithmetic: Arithmetic,
        feeds: Mapping[str, Array],
        sizes: Mapping[str, int],
        weights: Mapping[Node, Array],
    ) -> None:
        self.forward, self.outputs, self.arithmetic = forward, outputs, arithmetic
        self.feeds, self.sizes, self.weights = feeds, sizes, weights

    def along(self, directions: Mapping[str, Array]) -> Any:
        """The derivative along ``directions`` (arrays by input name)."""
        return self.slope(directions)[0]

    def slope(self, directions: Mapping[str, Array]) -> tuple[Any, Any]:
        """The derivative, and the sum of the sizes of all that changes: its error is of that size.

        An element that stays as it is, however large, adds nothing to either.
        """
        step = self._step()
        ahead, behind = (self._values(directions, by) for by in (step, -step))
        total: Any = 0
        mass: Any = 0
        for node, cotangent in self.outputs:
            weight, one, other = self.weights[cotangent], ahead[node], behind[node]
            part = inner(weight, np.asarray(one - other))
            told = one.dtype != object and math.isfinite(part)
            if not told and not (is_finite(one) and is_finite(other)):
                raise DomainError(f"{node.label} is not finite")
            total = total + part
            mass = mass + np.add.reduce(abs(weight * one * (one != other)), axis=None)
        return total / (2 * step), mass

    def bend(self, directions: Mapping[str, Array]) -> Any:
        """How far the derivatives ahead and behind are apart: 0 where there is no corner."""
        step = self._step()
        ahead, here, behind = (self.moved(directions, by * step) for by in (1, 0, -1))
        return abs(ahead - 2 * here + behind) / step

    def _step(self) -> Any:
        precise = isinstance(self.arithmetic, Precise)
        return mpmath.mpf(10) ** -PRECISE_STEP_DIGITS if precise else DOUBLE_STEP

    def moved(self, directions: Mapping[str, Array], step: Any) -> Any:
        """The objective a step away from the point."""
        return objective(self.outputs, self._values(directions, step), self.weights)

    def _values(self, directions: Mapping[str, Array], step: Any) -> Mapping[Node, Array]:
        moved = dict(self.feeds)
        for name, direction in directions.items():
            moved[name] = moved[name] + direction * step
        return self.forward.run(self.arithmetic, moved, self.sizes)


def tangents(
    forward: Evaluator,
    arithmetic: Precise,
    values: Mapping[Node, Array],
    directions: Mapping[str, Array],
    sizes: Mapping[str, int],
) -> dict[Node, Array | None]:
    """Tangents of all forward nodes along ``directions``, by sympy's partials; None is zero."""
    found: dict[Node, Array | None] = {}
    for node in forward.nodes:
        along = [found[arg] for arg in node.args]
        if node.op == "input":
            found[node] = directions.get(node.attributes["name"])
        elif not node.dtype.is_float or all(tangent is None for tangent in along):
            found[node] = None
        else:
            given = [values[arg] for arg in node.args]
            found[node] = _tangent(arithmetic, node, given, along, sizes)
    return found


def _tangent(
    arithmetic: Precise,
    node: Node,
    values: Sequence[Array],
    along: Sequence[Array | None],
    sizes: Mapping[str, int],
) -> Array | None:
    op, size = get(node.op), size_function(sizes)
    if node.op == "cast":
        return along[0]
    if node.op == "where":
        zero = np.frompyfunc(lambda _: mpmath.mpf(0), 1, 1)(np.empty(values[0].shape, dtype=object))
        branches = [zero if tangent is None else tangent for tangent in along[1:]]
        return np.asarray(np.where(values[0], *branches), dtype=object)
    if op.scalar is not None:
        terms = []
        for position, tangent in enumerate(along):
            factor = None if tangent is None else arithmetic.partial(op, position, values)
            if factor is not None:
                terms.append(factor * tangent)
        return _total(terms)
    if op.tangent is not None:
        return _structural_tangent(arithmetic, node, values, along, sizes)
    if node.op == "concat":
        given = [
            value * mpmath.mpf(0) if tangent is None else tangent
            for value, tangent in zip(values, along, strict=True)
        ]
        return arithmetic.apply(node, given, size)
    terms = []
    for position, tangent in enumerate(along):
        if tangent is not None:
            if position not in op.linear:
                raise DomainError(f"no tangent of {node.op}")
            given = [*values[:position], tangent, *values[position + 1 :]]
            terms.append(arithmetic.apply(node, given, size))
    return _total(terms)


def _structural_tangent(
    arithmetic: Precise,
    node: Node,
    values: Sequence[Array],
    along: Sequence[Array | None],
    sizes: Mapping[str, int],
) -> Array | None:
    """The tangent of an op that is neither linear nor elementwise, by the op's own rule."""
    scratch = Graph()
    args = [scratch.input(f"arg{i}", arg.type) for i, arg in enumerate(node.args)]
    marks = [
        None if tangent is None else scratch.input(f"tangent{i}", node.args[i].type)
        for i, tangent in enumerate(along)
    ]
    rule = get(node.op).tangent
    assert rule is not None
    result = rule(scratch.apply(node.op, *args, **node.attributes), marks)
    if result is None:
        return None
    feeds = {f"arg{i}": value for i, value in enumerate(values)}
    feeds |= {f"tangent{i}": value for i, value in enumerate(along) if value is not None}
    return Evaluator([result]).run(arithmetic, feeds, sizes)[result]


def _total(terms: Sequence[Array]) -> Array | None:
    if not terms:
        return None
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return np.asarray(total, dtype=object)
