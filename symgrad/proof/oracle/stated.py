"""Stated relations at points: do they hold there, and where is a point at which they do?

In: ``Relation`` records, points.  Out: points that meet them, or ``Unsatisfiable``.

A point that is drawn is moved until all relations hold: its inputs are made smaller or larger, or
of one sign, or shifted, all together or one by one.  Only points in the inside of the set are
taken: each relation holds by more than what doubles round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from typing import Any

import numpy as np

from symgrad.ir.dim import Atom, Dim
from symgrad.ir.function import Relation
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.proof.oracle.numbers import Arithmetic, Array, Double
from symgrad.proof.oracle.sample import DENOMINATOR, Point, Sampler, Unsatisfiable, meets
from symgrad.proof.oracle.values import DomainError, Evaluator

MOST_STRETCHED = 12
"""Slices of inputs that are made larger at one point."""
MOST_FAILED = 6
"""Points in a row for which nothing was found, until little is tried."""
GRID = DENOMINATOR // 64
"""Multiples of it are multiples of 1/64, with which doubles compute exactly."""
LARGEST = 2**24
_STEPS = ((4, 1), (1, 4), (2, 1), (1, 2), (3, 2), (2, 3))
MARGIN = 1e-9
"""By how much a relation holds at a point."""
_FIXED = ("binary", "one-hot", "unique", "index")
_BOUNDS = ("positive", "nonnegative", "negative", "interval")
_SHIFTS = (1, -1, 3, -3, 10, -10)


def moved(
    relations: Iterable[Relation], graph: Graph, new: Mapping[Node, Node] | None,
    sizes: Mapping[Atom, Dim] | None = None,
) -> tuple[Relation, ...]:  # fmt: skip
    """The relations of the inputs of another graph.

    ``new``: where nodes went; None: inputs are those of the same name.
    """
    found = []
    for one in relations:
        inputs = [node for node in ancestors(one.nodes) if node.op == "input"]
        there = {
            node: new[node] if new is not None and node in new else _input(graph, node)
            for node in inputs
        }
        if one.node.graph is graph and all(node is other for node, other in there.items()):
            found.append(one)
            continue
        found.append(one.put(rewrite(graph, one.nodes, there, sizes=sizes, named=False)))
    return tuple(found)


def _holds(kind: str, values: Array) -> bool:
    if kind == "==":
        return bool(np.all(values == 0))
    return bool(np.all((values if kind != "!=" else abs(values)) > MARGIN))


def _on_grid(values: Array) -> Array:
    """The nearest multiples of ``GRID``, without 0."""
    rounded = (values + GRID // 2) // GRID * GRID
    return np.asarray(np.where(rounded == 0, np.where(values < 0, -GRID, GRID), rounded))


def _as_numerators(values: Array) -> Array | None:
    """Doubles as numerators; None where one is no multiple of 1/64."""
    scaled = np.asarray(values, dtype=float) * (DENOMINATOR // GRID)
    if not np.all(np.isfinite(scaled)) or not np.all(np.abs(scaled) < LARGEST):
        return None
    whole = np.round(scaled)
    return None if np.any(whole != scaled) else np.asarray(whole.astype(np.int64) * GRID)


def _input(graph: Graph, node: Node) -> Node:
    name = str(node.attributes["name"])
    return graph.inputs.get(name) or graph.input(name, node.type)


class Stated:
    """The relations of one case, as a program."""

    def __init__(self, relations: Sequence[Relation], inputs: Sequence[Node]) -> None:
        self.relations = tuple(relations)
        self.program = Evaluator([one.node for one in self.relations])
        own = {n.attributes["name"] for n in self.program.nodes if n.op == "input"}
        self.inputs = [
            str(node.attributes["name"]) for node in inputs
            if node.attributes["name"] in own and node.dtype.is_float
        ]  # fmt: skip
        self.equalities = [one for one in self.relations if one.kind == "=="]
        self._last: Move | None = None
        self._failed = 0
        self._ways: dict[Node, Evaluator] = {}

    def check(self, feeds: Mapping[str, Any], sizes: Mapping[str, int], by: Arithmetic) -> None:
        """Raises DomainError where a relation does not hold."""
        if self.relations and not self._hold(feeds, sizes, by):
            raise DomainError("a stated relation does not hold")

    def _hold(self, feeds: Mapping[str, Any], sizes: Mapping[str, int], by: Arithmetic) -> bool:
        with np.errstate(all="ignore"):
            values = self.program.run(by, dict(feeds), sizes)
        return all(_holds(one.kind, values[one.node]) for one in self.relations)

    def placed(self, point: Point, sampler: Sampler) -> Point:
        """A point at which the relations hold, near one.  Raises Unsatisfiable."""
        if not self.relations:
            return point
        by = Double()
        last = [] if self._last is None else [self._last]
        ways = chain(_scaled("same", self.inputs), last, _moves(self.inputs))
        if self._failed >= MOST_FAILED:
            ways = chain([("same", 1, ())], last)
        for way in ways:
            moved = _moved(point, way, sampler)
            for found in () if moved is None else self._solved(moved, sampler):
                if self._holds_at(found, by):
                    self._last, self._failed = way, 0
                    return found if self.equalities else self._stretched(found, sampler)
        self._failed += 1
        raise Unsatisfiable("the stated relations hold near no point that was drawn")

    def _solved(self, point: Point, sampler: Sampler) -> Iterator[Point]:
        """The point with inputs changed so that the equalities hold, in each of the ways.

        Its numbers are multiples of ``GRID``, so that doubles are exact and so is the equality.
        """
        if not self.equalities:
            yield point
            return
        by = Double()
        start = replace(
            point, numerators={n: _on_grid(values) for n, values in point.numerators.items()}
        )
        for ways in product(*(one.solved for one in self.equalities)):
            found: Point | None = start
            for one, way in zip(self.equalities, ways, strict=True):
                if found is None:
                    break
                if way not in self._ways:
                    self._ways[way] = Evaluator([way])
                program = self._ways[way]
                with np.errstate(all="ignore"):
                    values = program.run(by, found.doubles(), found.sizes)[way]
                exact = _as_numerators(values)
                found = None if exact is None else _allowed(found, {one.name: exact}, sampler)
            if found is not None:
                yield found

    def _stretched(self, point: Point, sampler: Sampler) -> Point:
        """Slices of inputs are made larger or smaller, toward the boundary of the relations.

        What is moved as a whole stays far from most of the boundary.
        """
        random = np.random.default_rng([*point.sizes.values(), len(self.inputs)])
        slices = [
            (name, axis, place) for name in self.inputs
            for axis, size in enumerate(point.numerators[name].shape or (1,))
            for place in range(size)
        ]  # fmt: skip
        by = Double()
        for index in random.permutation(len(slices))[:MOST_STRETCHED]:
            name, axis, place = slices[index]
            for top, bottom in _STEPS:
                values = point.numerators[name].copy()
                part = np.moveaxis(values, axis, 0) if values.ndim else values[None]
                part[place] = part[place] // bottom * top
                moved = _allowed(point, {name: values}, sampler)
                if moved is not None and self._is_nearer(moved, point, by):
                    point = moved
                    break
        return point

    def _is_nearer(self, moved: Point, point: Point, by: Arithmetic) -> bool:
        """Do the relations hold at a point, by less than at another one?"""
        if not self._holds_at(moved, by):
            return False
        return self._room(moved, by) < self._room(point, by)

    def _room(self, point: Point, by: Arithmetic) -> float:
        with np.errstate(all="ignore"):
            values = self.program.run(by, point.doubles(), point.sizes)
            return float(sum(np.sum(np.abs(values[one.node])) for one in self.relations))

    def _holds_at(self, point: Point, by: Arithmetic) -> bool:
        try:
            return self._hold(point.doubles(), point.sizes, by)
        except DomainError:
            return False


Move = tuple[str, int, tuple[str, ...]]


def _groups(names: Sequence[str]) -> list[tuple[str, ...]]:
    """All inputs together, and each by itself."""
    return [tuple(names), *((name,) for name in names if len(names) > 1)]


def _scaled(sign: str, names: Sequence[str]) -> Iterator[Move]:
    """Inputs as they are or of one sign, smaller and larger."""
    yield sign, 1, tuple(names)
    for group in _groups(names):
        for power in range(1, 10):
            yield f"{sign} less", 2**power, group
        yield sign, 1, group
        for factor in (2, 4, 16):
            yield f"{sign} more", factor, group


def _moves(names: Sequence[str]) -> Iterator[Move]:
    """Ways to move a point: what is done, by how much, to which inputs."""
    for sign in ("up", "down"):
        yield from _scaled(sign, names)
    for group in _groups(names):
        for shift in _SHIFTS:
            yield "shift", shift * DENOMINATOR, group
    yield "sorted", 1, tuple(names)
    yield "sorted", -1, tuple(names)


def _moved(point: Point, way: Move, sampler: Sampler) -> Point | None:
    kind, by, names = way
    inputs = [point.numerators[one] for one in names]
    changed = {name: _values(kind, by, inputs, place) for place, name in enumerate(names)}
    return _allowed(point, changed, sampler)


def _allowed(point: Point, changed: Mapping[str, Array], sampler: Sampler) -> Point | None:
    """A point with other values, as what is declared of single inputs allows."""
    numerators = dict(point.numerators)
    for name, values in changed.items():
        declared = sampler.assumptions.get(name, ())
        if any(one.kind in _FIXED for one in declared):
            continue
        if any(one.kind in _BOUNDS and not meets(one, values) for one in declared):
            return None
        symmetric = any(one.kind == "symmetric" for one in declared)
        if symmetric and not np.array_equal(values, np.swapaxes(values, -1, -2)):
            return None
        numerators[name] = values
    return replace(point, numerators=numerators)


def _values(kind: str, by: int, inputs: Sequence[Array], place: int) -> Array:
    values = inputs[place]
    if kind == "shift":
        return np.asarray(values + by)
    if kind == "sorted":
        if len({one.shape for one in inputs}) == 1 and len(inputs) > 1:
            return np.asarray(np.sort(np.stack(inputs), axis=0)[::by][place])
        return np.asarray(np.sort(values, axis=-1)[..., ::by]) if values.ndim else values
    sign, _, change = kind.partition(" ")
    if sign in ("up", "down"):
        values = np.abs(values) if sign == "up" else -np.abs(values)
    if change == "less":
        return np.asarray(np.sign(values) * (np.abs(values) // by))
    return np.asarray(values * by) if change == "more" else np.asarray(values)
