"""A second opinion on what is PROVED: both sides evaluated at random rational points.

In: subjects whose gradients are PROVED, and how their literals are read.  Out: ``Audited``.

Nothing of the normal form takes part, nor sympy's partials, nor the derivatives on the records: the
graph is evaluated in rationals and balls, and differentiated in forward mode
(``proof/oracle/enclosure.py``).  At each point, ``<gradient, direction>`` is compared with the
derivative of ``<cotangents, outputs>`` along a random direction, for all inputs at once.  The
difference is linear in the direction, so that by the lemma of Schwartz and Zippel a gradient that
is wrong at the point passes with probability at most ``1 / DIRECTIONS``.  Sizes go up to
``LARGEST_SIZE``; masks, indices and declared facts are drawn anew for each point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import cycle
from typing import Any

import mpmath
import numpy as np

from symgrad.budgets import AUDIT_ATTEMPTS, AUDIT_POINTS, AUDIT_TOTAL_WORK, AUDIT_WORK
from symgrad.ir.graph import Node, Scalar
from symgrad.ops.orthogonal import FACTORS
from symgrad.ops.spectral import VALUES, VECTORS
from symgrad.proof.oracle import balls
from symgrad.proof.oracle.balls import Jet, Number, Uncertain, add, mul, neg
from symgrad.proof.oracle.enclosure import (
    Balls,
    derivative,
    evaluator,
    feeds,
    objective,
    shown,
    surely_stated,
)
from symgrad.proof.oracle.flint import arb, fmpq
from symgrad.proof.oracle.numbers import Array, as_object
from symgrad.proof.oracle.refute import Counterexample
from symgrad.proof.oracle.sample import Point, Unsatisfiable
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.oracle.values import DomainError, Evaluator
from symgrad.proof.scalars import literals, uninterpreted

LARGEST_SIZE = 40
LEAST_POINTS = 10
"""Points that have to agree, whatever they cost."""
DIRECTIONS = 2000
"""How many numbers each component of a direction is drawn from."""
BLUNT = Fraction(1, 10**20)
"""Relative width of an enclosure above which agreement says too little to be counted."""
_READ_DIGITS = 400


@dataclass
class Audited:
    """``agreed``: at how many points; ``exact``: at how many of them in rationals alone.

    ``skipped``: points at which nothing is certain, or forward is not defined.  ``largest``: the
    greatest value of each size.  ``outside``: points at which the gradient has no value, where a
    printed condition may exclude them.  ``wrong``: where a gradient is not the derivative.
    """

    agreed: int = 0
    exact: int = 0
    skipped: int = 0
    outside: int = 0
    largest: dict[str, int] = field(default_factory=dict)
    wrong: tuple[str, Counterexample | None, Point] | None = None

    def __str__(self) -> str:
        sizes = ", ".join(f"{name} <= {size}" for name, size in sorted(self.largest.items()))
        said = f"{self.agreed} random points{f' ({sizes})' if sizes else ''}, {self.exact} exact"
        if self.outside:
            said += f"; at {self.outside} more the gradient has no value"
        return said


MISSED = f"a wrong gradient is missed at a point with probability 1/{DIRECTIONS} at most"
"""The confidence of each point, in words."""


def audit(
    subject: Subject, names: Sequence[str], seed: int = 0, *, conditional: bool = False,
    excluded: Callable[[Point], bool] = lambda point: False,
) -> Audited:  # fmt: skip
    """Compare gradients with the derivative until ``AUDIT_POINTS`` points agree, or one does not.

    ``excluded``: is a point left out, since the program is read there as something else?
    ``conditional``: what is proved holds where printed conditions do, so that a gradient without a
    value shows nothing.
    """

    def compare(point: Point, random: Any, found: Audited) -> None:
        if excluded(point):
            raise Uncertain("the program is read as something else here")
        _compare(subject, names, point, random, found, conditional)

    return _audited(subject, seed, compare)


def audit_tangents(
    subject: Subject, pushed: Sequence[tuple[Node, Node]], tangents: Mapping[str, str],
    seed: int = 0, *, conditional: bool = False,
) -> Audited:  # fmt: skip
    """Compare what a jvp gives, nodes with their weights, with the derivative along the tangents.

    ``tangents``: the input that holds the tangent of each input.
    """
    program = Evaluator([node for pair in pushed for node in pair])

    def compare(point: Point, random: Any, found: Audited) -> None:
        with balls.working(balls.BITS):
            given, moved = feeds(point), feeds(point)
            for name, tangent in tangents.items():
                along = np.frompyfunc(lambda element: element.v, 1, 1)(given[tangent])
                moved[name] = _moved(given[name], as_object(along))
            true = derivative(
                objective(subject, moved, point.sizes, arithmetic=Reading(subject))
            )  # fmt: skip
            values = program.run(Reading(subject), given, point.sizes)
            claim = balls.ZERO
            for node, weight in pushed:
                for value, by in zip(values[node].ravel(), values[weight].ravel(), strict=True):
                    claim = add(claim, mul(value.v, by.v))
            if balls.is_special(true):
                raise Uncertain("the derivative is not finite")
            if balls.is_special(claim) and conditional:
                found.outside += 1
            elif balls.is_special(claim) or balls.apart(claim, true):
                found.wrong = "", None, point
            else:
                _count(found, point, add(claim, neg(true)), true)

    return _audited(subject, seed, compare)


def _audited(
    subject: Subject, seed: int, compare: Callable[[Point, Any, Audited], None]
) -> Audited:
    """One comparison a point, at sizes and points drawn anew, until enough of them agree."""
    found = Audited()
    random = np.random.default_rng((seed, 17))
    choices, regions, spent = _Sizes(subject, random), _Regions(subject), 0
    for attempt in range(AUDIT_ATTEMPTS):
        enough = found.agreed >= (LEAST_POINTS if spent > AUDIT_TOTAL_WORK else AUDIT_POINTS)
        sizes = None if enough or found.wrong is not None else choices.at(attempt)
        if sizes is None:
            break
        spent += _work(subject, sizes)
        outside = found.outside
        try:
            style = subject.sampler.style(attempt)
            point = subject.sampler.point(sizes, int(random.integers(2**31)), style)
            point = subject.stated.placed(point, subject.sampler)
            with balls.working(balls.BITS):
                if not surely_stated(subject, point):
                    raise Uncertain("what is stated does not hold for certain")
            compare(point, random, found)
        except (Unsatisfiable, DomainError, Uncertain):
            found.skipped += 1
        if found.outside > outside:
            regions.next()
    return found


class _Regions:
    """Where inputs are drawn: where forward was found to be finite, then other parts of the reals.

    Printed conditions may leave a part only, in which a generic point of many elements never lies.
    """

    def __init__(self, subject: Subject) -> None:
        self.modes = subject.sampler.modes
        settled = dict(self.modes)
        self.others = cycle([settled, *(dict.fromkeys(settled, mode) for mode in _REGIONS)])
        next(self.others)

    def next(self) -> None:
        """Draw elsewhere from now on."""
        self.modes.update(next(self.others))


_REGIONS = ("positive", "small", "above", "unit", "negative")


class _Sizes:
    """Sizes of the points: each symbol goes through all from 1 to ``LARGEST_SIZE``, as it can."""

    def __init__(self, subject: Subject, random: Any) -> None:
        self.subject, self.random = subject, random
        self.symbols = subject.sampler.symbols
        every = np.arange(1, LARGEST_SIZE + 1)
        self.orders = {name: random.permutation(every) for name in self.symbols}

    def at(self, number: int) -> dict[str, int] | None:
        """The sizes of one point: as planned, else one of them large, else any that are allowed."""
        planned = {name: int(order[number % len(order)]) for name, order in self.orders.items()}
        if self._fits(planned):
            return planned
        for shuffle in range(4 * len(self.symbols)):
            large = self.symbols[(number + shuffle) % len(self.symbols)]
            drawn = {name: int(self.random.integers(1, 4)) for name in self.symbols}
            if self._fits(drawn | {large: planned[large]}):
                return drawn | {large: planned[large]}
        for limit in (30, 20, 12, 8, 6, 4):
            drawn = {name: int(self.random.integers(1, limit + 1)) for name in self.symbols}
            if self._fits(drawn):
                return drawn
        small = self.subject.sampler.small_choices(12)
        return small[number % len(small)] if small else None

    def _fits(self, sizes: Mapping[str, int]) -> bool:
        return self.subject.sampler.allows(sizes) and _work(self.subject, sizes) <= AUDIT_WORK


def _work(subject: Subject, sizes: Mapping[str, int]) -> int:
    """About how many elements are computed."""
    try:
        return sum(elements(node, sizes) for node in subject.everything.nodes)
    except (ZeroDivisionError, KeyError):
        return AUDIT_WORK + 1


def elements(node: Node, sizes: Mapping[str, int]) -> int:
    """About how many elements are computed for a node."""
    shape = [size.at(sizes) for size in node.shape]
    if node.op == "einsum":
        letters: dict[str, int] = {}
        operands = node.attributes["spec"].split("->")[0].split(",")
        for operand, arg in zip(operands, node.args, strict=True):
            letters |= dict(zip(operand, (size.at(sizes) for size in arg.shape), strict=True))
        shape = list(letters.values())
    elif node.op in ("inverse", "det", "logdet", "cholesky", "solve_triangular", "rank"):
        shape += [node.args[0].shape[-1].at(sizes)] * 2
    elif node.op in (*VECTORS, *VALUES, *FACTORS):
        shape += [node.args[0].shape[-1].at(sizes)] * 3
    count = 1
    for size in shape:
        count *= size
    return count


def _compare(
    subject: Subject, names: Sequence[str], point: Point, random: Any, found: Audited,
    conditional: bool,
) -> None:  # fmt: skip
    """One point more.  Raises Uncertain where it decides nothing."""
    with balls.working(balls.BITS):
        given = feeds(point)
        directions = {name: _direction(random, given[name]) for name in names}
        moved = dict(given)
        for name, direction in directions.items():
            moved[name] = _moved(given[name], direction)
        arithmetic = Reading(subject)
        true = derivative(objective(subject, moved, point.sizes, arithmetic=arithmetic))
        if balls.is_special(true):
            raise Uncertain("the derivative is not finite")
        claims = claimed(subject, given, point, directions)
        for name, claim in claims.items():
            if balls.is_special(claim):
                if conditional:
                    found.outside += 1
                    return
                found.wrong = (*_wrong_element(subject, [name], point), point)
                return
        total = balls.ZERO
        for claim in claims.values():
            total = add(total, claim)
        if balls.apart(total, true):
            if conditional and any(_has_no_value(subject, name, point) for name in names):
                found.outside += 1
                return
            found.wrong = (*_wrong_element(subject, names, point), point)
            return
        _count(found, point, add(total, neg(true)), true)


def _has_no_value(subject: Subject, name: str, point: Point) -> bool:
    """Is something that a gradient computes, and forward does not, no number at a point?

    What it is compared with, or multiplied by, may give a number.
    """
    node = subject.gradients[name]
    program = evaluator(subject, ("hand", name), lambda: Evaluator([node]))
    values = program.run(Reading(subject), feeds(point), point.sizes)
    shared = set(subject.forward.nodes)
    return any(
        type(element) is Jet and balls.is_undefined(element.v)
        for one, array in values.items()
        if one not in shared and one.dtype.is_float
        for element in array.ravel()
    )


def _count(found: Audited, point: Point, gap: Number, true: Number) -> None:
    if type(gap) is not fmpq:
        width = abs(balls.ball(gap)).upper()
        if not width <= arb(fmpq(1, BLUNT.denominator)) * (1 + abs(balls.ball(true))):
            raise Uncertain("the enclosures are wide")
    found.agreed += 1
    found.exact += type(gap) is fmpq
    for name, size in point.sizes.items():
        found.largest[name] = max(found.largest.get(name, 0), size)


def _wrong_element(
    subject: Subject, names: Sequence[str], point: Point
) -> tuple[str, Counterexample | None]:
    """The input and the element where a gradient is not the derivative, by halving.

    Of a gradient without a value somewhere, that element.
    """
    for name in names:
        places = list(np.ndindex(*point.numerators[name].shape))
        if not _apart_along(subject, name, point, places):
            continue
        while len(places) > 1:
            half = places[: len(places) // 2]
            places = half if _apart_along(subject, name, point, half) else places[len(half) :]
        hand, true = _sides(subject, name, point, places)
        texts = shown(hand, true)
        if texts is None:
            return name, None
        values = float(texts.hand), float(texts.true)
        return name, Counterexample(name, point, places[0], *values, texts.hand, texts.true)
    return names[0], None


def _apart_along(
    subject: Subject, name: str, point: Point, places: Sequence[tuple[int, ...]]
) -> bool:
    """Are the two sides apart along a sum of elements with different weights?"""
    try:
        return balls.apart(*_sides(subject, name, point, places))
    except Uncertain:
        return False


def _sides(
    subject: Subject, name: str, point: Point, places: Sequence[tuple[int, ...]]
) -> tuple[Number, Number]:
    """What the gradient says, and the derivative, along a direction of some elements."""
    given = feeds(point)
    direction = np.empty(given[name].shape, dtype=object)
    direction[...] = balls.ZERO
    for number, at in enumerate(places):
        direction[at] = fmpq(1 if len(places) == 1 else 2 * number * number + number + 1)
    hand = claimed(subject, given, point, {name: direction})[name]
    given[name] = _moved(given[name], direction)
    return hand, derivative(
        objective(subject, given, point.sizes, arithmetic=Reading(subject))
    )  # fmt: skip


def claimed(
    subject: Subject, given: Mapping[str, Array], point: Point, directions: Mapping[str, Array]
) -> dict[str, Number]:
    """``<gradient, direction>`` as written, for each input; what they share is computed once."""
    nodes = {name: subject.gradients[name] for name in directions}
    program = evaluator(subject, ("hand", *nodes), lambda: Evaluator([*nodes.values()]))
    gradients = program.run(Reading(subject), given, point.sizes)
    found = {}
    for name, direction in directions.items():
        total = balls.ZERO
        for value, weight in zip(gradients[nodes[name]].ravel(), direction.ravel(), strict=True):
            if type(weight) is not fmpq or weight != 0:
                total = add(total, mul(value.v, weight))
        found[name] = total
    return found


def _direction(random: Any, like: Array) -> Array:
    drawn = random.integers(1, DIRECTIONS + 1, like.shape)
    found = np.empty(like.shape, dtype=object)
    found[...] = np.frompyfunc(lambda n: fmpq(int(n), 64), 1, 1)(drawn)
    return found


def _moved(values: Array, direction: Array) -> Array:
    found = np.empty(values.shape, dtype=object)
    found[...] = np.frompyfunc(lambda x, d: Jet(x.v, d), 2, 1)(values, direction)
    return found


class Reading(Balls):
    """Literals as the proof has read them, not as all that they may round."""

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.subject = subject

    def number(self, value: Scalar) -> Any:
        """A float literal."""
        return Jet(_read(value, self.subject))


def _read(value: Scalar, subject: Subject) -> Number:
    if isinstance(value, float) and not np.isfinite(value):
        return value
    if subject.constant(value) is not None:
        with mpmath.workdps(_READ_DIGITS):
            number = subject.read(value)
            mantissa, exponent = abs(mpmath.mpf(number)).man_exp  # which has no sign
            middle = fmpq(int(mantissa)) * fmpq(2) ** int(exponent) * (1 if number > 0 else -1)
        return balls.around(middle, fmpq(1, 10 ** (_READ_DIGITS - 5)))
    written = literals.exact(value)
    return fmpq(written.numerator, written.denominator)


def auditable(subject: Subject) -> bool:
    """Can its values be enclosed?"""
    return not uninterpreted.among(subject.everything.nodes)
