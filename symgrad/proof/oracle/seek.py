"""Points that random samples miss: between close thresholds, and beyond the numbers of the code.

In: a ``Subject`` and the name of an input.  Out: points at which its gradient differs, in
doubles, from the one that the op records derive; whether it is wrong there, others have to say.

The code is followed along random lines.  On a line every comparison of the code changes at some
values of its parameter, found by bisection, whatever functions the compared values went through;
between two neighbours among them nothing changes, so that one point of each such cell is enough.
Numbers that sizes, indices and counts are compared with are passed by choosing sizes beyond them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from symgrad.budgets import (
    LARGEST_NUMBER,
    MOST_NUMBERS,
    MOST_THRESHOLDS,
    ROOTS_EACH,
    THRESHOLD_LINES,
    THRESHOLD_NODES,
)
from symgrad.errors import SymgradError
from symgrad.ir.dtype import bool_
from symgrad.ir.graph import Node
from symgrad.ops.movement import bare
from symgrad.proof.oracle.adjoints import derived_gradients
from symgrad.proof.oracle.numbers import Array, Double
from symgrad.proof.oracle.sample import DENOMINATOR, IntegerUse, Point, meets
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.oracle.values import DomainError, Evaluator
from symgrad.proof.scalars.bodies import asked

ROOT_STEPS = 54
GRID = sorted({0.0, *(sign * 2.0**k for k in range(-6, 12) for sign in (1, -1))})
_BESIDE, _CLOSE = 1e-9, 1e-13
_SAME, _ROUNDING = 1e-6, 1e-13
_FREE = ("constant", "interval", "positive", "nonnegative", "negative", "nonzero")


def seek(subject: Subject, name: str) -> Iterator[Point]:
    """Points at which one gradient looks wrong.  Nothing where no gradient can be derived."""
    judge = _Judge.of(subject, name)
    if judge is None:
        return
    for point in itertools.chain(_beyond(subject), _between(subject)):
        if judge.differs(point):
            yield point


@dataclass(frozen=True)
class _Judge:
    """Hand-written against derived, in doubles and without difference quotients."""

    hand: Node
    derived: Node
    program: Evaluator
    own: Evaluator

    @classmethod
    def of(cls, subject: Subject, name: str) -> _Judge | None:
        """None where an op of the forward has no derivative of its own."""
        try:
            _, _, adjoints = derived_gradients(subject)
            derived = adjoints[subject.by_name[name]]
        except (SymgradError, ValueError, KeyError):
            return None
        hand = subject.gradients[name]
        return cls(hand, derived, Evaluator([derived]), Evaluator([hand]))

    def differs(self, point: Point) -> bool:
        """Do the two differ at a point by more than rounding?"""
        feeds = point.doubles()
        with np.errstate(all="ignore"):
            try:
                hand = self.own.run(Double(), feeds, point.sizes)[self.hand]
                derived = self.program.run(Double(), feeds, point.sizes)[self.derived]
            except (DomainError, KeyError):
                return False
            if hand.shape != derived.shape or not np.all(np.isfinite(derived)):
                return False
            rounding = _ROUNDING * np.max(np.abs(derived), initial=0.0)
            return bool(np.any(np.abs(hand - derived) > _SAME * np.abs(derived) + rounding))


# -- cells between thresholds


def _between(subject: Subject) -> Iterator[Point]:
    """One point of each cell that some lines go through."""
    differences = list(_differences(subject.everything.nodes))
    if not differences:
        return
    program = Evaluator([node for pair in differences for node in pair if node is not None])
    smallest = subject.sampler.small_choices(12)
    for number in range(THRESHOLD_LINES if smallest else 0):
        at = subject.draw(smallest[min(4 * number + 3, len(smallest) - 1)], 300 + number)
        if at is not None:
            line = _Line(subject, at.point, program, differences, number)
            yield from line.points()


def _differences(nodes: Iterable[Node]) -> Iterator[tuple[Node, Node | None]]:
    """The real values whose order the code asks for; None stands for 0."""
    for node in nodes:
        if not node.args or not node.args[0].dtype.is_float:
            continue
        for one, other in asked(node.op):
            yield node.args[one], None if other is None else node.args[other]


class _Line:
    """Points ``base + t * direction``: all free real inputs move at once."""

    def __init__(
        self, subject: Subject, base: Point, program: Evaluator,
        differences: list[tuple[Node, Node | None]], seed: int,
    ) -> None:  # fmt: skip
        self.base, self.program, self.differences = base, program, differences
        self.runs = THRESHOLD_NODES // max(len(program.nodes), 1)
        self.declared = {
            name: known
            for name, known in subject.sampler.assumptions.items()
            if any(one.kind != "constant" for one in known)
        }
        random = np.random.default_rng((seed, 11))
        self.steps = {
            name: random.integers(300, 1000, values.shape) * random.choice((-1, 1), values.shape)
            for name, values in base.numerators.items()
            if all(one.kind in _FREE for one in self.declared.get(name, ()))
        }
        self.starts = _flat(base.numerators[name] for name in self.steps)
        self.rates = _flat(self.steps.values())

    def points(self) -> Iterator[Point]:
        """One in each cell, and one on each side of each threshold."""
        roots = self._roots()
        middles = [(left + right) / 2 for left, right in itertools.pairwise(roots)]
        beside = [root + side * _BESIDE * (1 + abs(root)) for root in roots for side in (-1, 1)]
        ends = [roots[0] - 1, roots[-1] + 1] if roots else []
        for value in [*middles, *beside, *ends]:
            point = self._at(value)
            if point is not None:
                yield point

    def _at(self, value: float) -> Point | None:
        """The point of the line; None where what is declared does not hold."""
        away = np.round(value * self.rates * (DENOMINATOR / 1000))
        if away.size and max(away.max(), -away.min()) > 2.0**60:
            return None
        ends, first = self.starts + away.astype(np.int64), 0
        moved = dict(self.base.numerators)
        for name, step in self.steps.items():
            moved[name] = ends[first : first + step.size].reshape(step.shape)
            first += step.size
            if name in self.declared and not all(
                meets(one, moved[name]) for one in self.declared[name]
            ):
                return None
        return replace(self.base, numerators=moved)

    def _gaps(self, value: float) -> list[Array] | None:
        """All differences at a point of the line; None where they are not defined."""
        point = self._at(value) if self.runs > 0 else None
        self.runs -= 1
        if point is None:
            return None
        try:
            values = self.program.run(Double(), point.doubles(), point.sizes)
        except DomainError:
            return None
        with np.errstate(all="ignore"):
            return [
                np.asarray(values[left] - (0 if right is None else values[right])).ravel()
                for left, right in self.differences
            ]

    def _roots(self) -> list[float]:
        """Where differences change their signs, the nearest to the base first found."""
        grid = [(value, gaps) for value in GRID if (gaps := self._gaps(value)) is not None]
        found: set[float] = set()
        for which in range(len(self.differences)):
            changes = [
                (left, right, element)
                for left, right in itertools.pairwise((value, gaps[which]) for value, gaps in grid)
                for element in np.flatnonzero(np.sign(left[1]) * np.sign(right[1]) < 0)
            ]
            changes.sort(key=lambda one: (min(abs(one[0][0]), abs(one[1][0])), one[2]))
            for left, right, element in changes[:ROOTS_EACH]:
                if len(found) < MOST_THRESHOLDS:
                    ends = [(value, float(gap[element])) for value, gap in (left, right)]
                    found.add(self._root(which, int(element), *ends))
        return sorted(found)

    def _root(
        self, which: int, element: int, low: tuple[float, float], high: tuple[float, float]
    ) -> float:
        """Where a difference is 0 between two values, with what it is at these.

        By secants, the end that stays weighing half as much each time (the Illinois method), and
        by halves where these are slow.
        """
        root, halve = low[0], False
        for _ in range(ROOT_STEPS):
            width = high[0] - low[0]
            share = low[1] / (low[1] - high[1])
            last, root = root, low[0] + (0.5 if halve or not 0 < share < 1 else share) * width
            gaps = self._gaps(root)
            if gaps is None or abs(root - last) <= _CLOSE * (1 + abs(root)):
                break
            here = root, float(gaps[which][element])
            if not here[1]:
                break
            if (here[1] < 0) == (low[1] < 0):
                low, high = here, (high[0], high[1] / 2)
            else:
                low, high = (low[0], low[1] / 2), here
            halve = not halve and high[0] - low[0] > width / 2
        return root


def _flat(arrays: Iterable[Array]) -> Array:
    """The elements of some arrays of integers, one after the other."""
    return np.concatenate([np.empty(0, np.int64), *(one.ravel() for one in arrays)])


# -- beyond the numbers of the code


def _beyond(subject: Subject) -> Iterator[Point]:
    """Shapes with an axis longer than a number of the code, indices at it, masks that keep all."""
    sampler = subject.sampler
    for number, symbol in itertools.product(_numbers(subject.everything.nodes), sampler.symbols):
        sizes = {name: number + 2 if name == symbol else 2 for name in sampler.symbols}
        if not sampler.allows(sizes):
            continue
        at = subject.draw(sizes, 400)
        if at is not None:
            yield at.point
            yield replace(at.point, integers=_at_number(subject, at.point, number))


def _numbers(nodes: Iterable[Node]) -> list[int]:
    """Numbers that something is compared with, too large for the usual samples."""
    found: dict[int, None] = {}
    for node in nodes:
        if (0, 1) in asked(node.op):
            for arg in node.args:
                origin = bare(arg)
                value = origin.attributes["value"].value if origin.op == "constant" else 0
                if origin.dtype != bool_ and math.isfinite(value) and 4 < value <= LARGEST_NUMBER:
                    found[math.ceil(value)] = None
    return sorted(found)[:MOST_NUMBERS]


def _at_number(subject: Subject, point: Point, number: int) -> Mapping[str, Any]:
    """Some integers at the number where their range allows it, all truth values true but one."""
    moved: dict[str, Array] = {}
    for name, values in point.integers.items():
        if values.dtype == bool:
            moved[name] = np.ones_like(values)
            moved[name].ravel()[-1:] = False
            continue
        use = subject.sampler.uses.get(name, IntegerUse())
        limit = min((extent.at(point.sizes) for extent in use.extents), default=number + 1)
        limit = min(limit, use.dtype.greatest + 1)
        changed = values.copy()
        for place, value in zip(
            range(changed.size), (number, number - 1, number + 1), strict=False
        ):
            if value < limit:
                changed.ravel()[place] = value
        moved[name] = changed
    return moved
