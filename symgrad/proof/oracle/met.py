"""Is there an input for which all that a program demands of its elements holds?

In: a ``Subject`` and its demands that something holds.  Out: was one found?

Points are drawn, or filled with a number that the demands compare with.  From each, inputs are
moved, whole or one element at a time and by smaller and smaller steps, as long as the demands are
missed by less.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.budgets import MEETING_RUNS, MEETING_SIZES
from symgrad.ir.dtype import bool_
from symgrad.ir.expr import OPPOSITE
from symgrad.ir.graph import Node
from symgrad.ops.movement import bare
from symgrad.proof.oracle.numbers import Array, Double
from symgrad.proof.oracle.sample import DENOMINATOR, Point, Unsatisfiable, meets
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.oracle.values import DomainError, Evaluator

_STEPS = [2.0**power for power in range(8, -30, -2)]
_STRICT = 2.0**-40
"""By how much a strict comparison is missed at equality."""
_DRAWS = 3


def is_met(subject: Subject, demanded: Sequence[Node]) -> bool:
    """Was a point found at which all elements of some nodes are true, and forward is defined?"""
    program = _Program(subject, demanded)
    choices = itertools.islice(subject.sampler.size_choices(), MEETING_SIZES)
    return any(program.reaches(point) for sizes in choices for point in program.starts(sizes))


class _Program:
    """What is demanded, as a program."""

    def __init__(self, subject: Subject, demanded: Sequence[Node]) -> None:
        self.subject, self.demanded = subject, tuple(demanded)
        self.evaluator = Evaluator(self.demanded)
        self.moving = [
            str(node.attributes["name"]) for node in self.evaluator.nodes
            if node.op == "input" and node.dtype.is_float
        ]  # fmt: skip
        self.masks = [
            str(node.attributes["name"]) for node in self.evaluator.nodes
            if node.op == "input" and node.dtype == bool_
        ]  # fmt: skip

    def starts(self, sizes: Mapping[str, int]) -> Iterator[Point]:
        """Points that are drawn, with masks as they are, all true and all false; filled ones."""
        sampler = self.subject.sampler
        for number in range(_DRAWS):
            try:
                drawn = self.subject.stated.placed(
                    sampler.point(sizes, number, sampler.style(number)), sampler
                )
            except (DomainError, Unsatisfiable):
                continue
            yield drawn
            for filled in (True, False) if self.masks else ():
                masks = {name: np.full_like(drawn.integers[name], filled) for name in self.masks}
                yield Point(drawn.sizes, drawn.numerators, {**drawn.integers, **masks})
            if number:
                continue
            for value in self._ends():
                moved = {
                    name: np.full_like(drawn.numerators[name], round(value * DENOMINATOR))
                    for name in self.moving
                }
                yield Point(drawn.sizes, {**drawn.numerators, **moved}, drawn.integers)

    def _ends(self) -> list[float]:
        """Numbers that something is compared with, and their neighbours."""
        found = {0.0, 1.0}
        for node in self.evaluator.nodes:
            for arg in node.args if node.op in OPPOSITE else ():
                origin = bare(arg)
                if origin.op == "constant":
                    value = float(origin.attributes["value"].value)
                    found |= {value, value - 1, value + 1}
        return sorted(value for value in found if abs(value) < 2**20)[:12]

    def reaches(self, point: Point) -> bool:
        """Is a point that meets everything found from this one?"""
        missed = self._missed(point)
        runs = 0
        for step in _STEPS:
            better = True
            while better and missed > 0 and runs < MEETING_RUNS:
                better = False
                for moved in self._moves(point, step):
                    runs += 1
                    now = self._missed(moved)
                    if now < missed:
                        point, missed, better = moved, now, True
                        break
        return missed == 0 and self._defined(point)

    def _moves(self, point: Point, step: float) -> Iterator[Point]:
        """Each input, and then each of its elements, made larger or smaller."""
        away = round(step * DENOMINATOR)
        for name in self.moving:
            values = point.numerators[name]
            places = [(), *np.ndindex(values.shape)] if np.ndim(values) else [()]
            for place, side in itertools.product(places, (1, -1)):
                moved = np.array(values)
                moved[place] += side * away
                if self._declared(name, moved):
                    yield Point(point.sizes, {**point.numerators, name: moved}, point.integers)

    def _declared(self, name: str, values: Array) -> bool:
        known = self.subject.sampler.assumptions.get(name, ())
        return abs(values).max(initial=0) < 2**62 and all(meets(one, values) for one in known)

    def _defined(self, point: Point) -> bool:
        try:
            self.subject.evaluate_double(point)
        except DomainError:
            return False
        return True

    def _missed(self, point: Point) -> float:
        """By how much the demands are missed at a point; 0 where all are met."""
        try:
            values = self.evaluator.run(Double(), point.doubles(), point.sizes)
        except DomainError:
            return float("inf")
        with np.errstate(all="ignore"):
            return float(sum(np.sum(_missed(node, values, holds=True)) for node in self.demanded))


def _missed(node: Node, values: Mapping[Node, Array], *, holds: bool) -> Array:
    """By how much each element of a condition misses to hold, or not to hold."""
    of = [(arg, values[arg]) for arg in node.args]
    if node.op == "logical_not":
        return _missed(node.args[0], values, holds=not holds)
    if node.op in ("logical_and", "logical_or"):
        left, right = (_missed(arg, values, holds=holds) for arg in node.args)
        return left + right if (node.op == "logical_and") is holds else np.minimum(left, right)
    if node.op in ("all", "any"):
        inner = _missed(node.args[0], values, holds=holds)
        axes = tuple(node.attributes["axes"])
        if (node.op == "all") is holds:
            return np.asarray(inner.sum(axis=axes))
        return np.asarray(inner.min(axis=axes, initial=np.inf))
    if node.op in ("reshape", "expand"):
        inner = _missed(node.args[0], values, holds=holds)
        shape = values[node].shape
        return inner.reshape(shape) if node.op == "reshape" else np.broadcast_to(inner, shape)
    if node.op in OPPOSITE and of[0][1].dtype != bool:
        return _gap(node.op if holds else OPPOSITE[node.op], *(value for _, value in of))
    return np.where(values[node] == holds, 0.0, 1.0)


def _gap(op: str, left: Any, right: Any) -> Array:
    gap = np.asarray(left, float) - np.asarray(right, float)
    gap = np.where(left == right, 0.0, gap)  # of two infinities
    if op in ("lt", "le"):
        missed = np.maximum(gap, 0)
    elif op in ("gt", "ge"):
        missed = np.maximum(-gap, 0)
    else:
        missed = abs(gap) if op == "eq" else np.zeros_like(gap)
    if op in ("lt", "gt", "ne"):
        missed = missed + np.where(gap == 0, _STRICT, 0.0)
    return np.where(np.isnan(missed), np.inf, missed)
