"""Points at which a node is exactly a value, and whether a gradient is wrong there.

In: a ``Subject``, a node and its value, the name of an input.  Out: ``Counterexample``, or None.

Such points are a null set, which no sampling meets: they are solved for, in small rationals.
There forward may change from one formula to another, and the derivative of the formula that is
chosen at the point itself need not be that of forward (``where(x == 0, 1, sin(x) / x)``).  So the
derivative is taken three times: by quotients ahead and behind, which must agree, and by sympy's
partials at a point just ahead and one just behind.  A gradient is wrong only where enclosures of
both sides are apart (``oracle/enclosure.py``): where forward divides by what vanishes, of its power
series along the element, which has to be the same on both sides and continuous.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import Any

import mpmath
import numpy as np

from symgrad.budgets import BOUNDARY_ELEMENTS, BOUNDARY_NODES, BOUNDARY_NUMBERS, BOUNDARY_SHAPES
from symgrad.ir.graph import Node
from symgrad.ops.movement import bare
from symgrad.proof.oracle.numbers import DIGITS, Array, Double
from symgrad.proof.oracle.refute import Counterexample, apart, simple_point
from symgrad.proof.oracle.sample import DENOMINATOR, Point, Unsatisfiable, meets
from symgrad.proof.oracle.subject import Evaluation, Subject
from symgrad.proof.oracle.values import DomainError, Evaluator, is_finite

WORKING_DIGITS = 150
"""What cancels at a step of 20 digits leaves more than enough."""
SMOOTH = 1e-9
"""Relative differences of derivatives below it come from the step."""
WRONG = 1e-6
EXACT = 1e-50
ON_SET, NEAR, NEARER, JUMP = 1e-9, 1e-7, 1e-20, 1e-11
"""What counts as equal, steps aside in doubles and in 60 digits, and what is no rounding."""
ASIDE, BEND = 1e-5, 1e-2
"""In doubles: the step of a slope to one side, and a difference of slopes that no step explains."""
ALIKE = 0.1
"""A relative difference of bends that are one."""
POINTS = 6
"""At how many points of a set a gradient is looked at."""
SPREAD = 12
"""At how many points of a set forward is looked at for a jump."""
_BOUNDS: tuple[str, ...] = ("interval", "positive", "nonnegative", "negative")
_FREE: tuple[str, ...] = (*_BOUNDS, "constant", "plain")


@dataclass(frozen=True)
class Found:
    """What was seen at points of a set: a wrong element; is forward without a derivative there?

    ``unsure``: an element looks wrong, but no enclosures show it.
    """

    wrong: Counterexample | None = None
    kinked: bool = False
    unsure: bool = False


def look(
    subject: Subject, name: str, node: Node, value: Fraction | Node, *, spread: bool = False
) -> Found:  # fmt: skip
    """Look at one gradient at points at which ``node`` is ``value`` somewhere.

    ``kinked`` where forward has no derivative at any of the points, and there are some.
    ``spread``: look at points of all kinds.
    """
    seen, kinked, unsure, beside = 0, 0, 0, 0
    comparable = not isinstance(value, Node) or value.shape == node.shape
    if len(subject.everything.nodes) > BOUNDARY_NODES or not comparable:
        return Found()
    found: Iterable[Point] = points(subject, node, value)
    if spread:
        found = itertools.chain(islice(found, POINTS), points(subject, node, value, spread=True))
    for point in found:
        with mpmath.workdps(WORKING_DIGITS):
            try:
                at = subject.evaluate_precise(point)
                if not _there(at, node, value):
                    continue
                rounded = not _there(at, node, value, least=0)
                answer = _at_point(subject, name, at)
            except DomainError:
                continue
        if answer.wrong is not None:
            return answer
        seen, kinked = seen + 1, kinked + answer.kinked
        unsure, beside = unsure + answer.unsure, beside + (rounded and not answer.unsure)
        if seen - unsure - beside >= POINTS * (1 + spread) or unsure + beside >= 2 * POINTS:
            break
    return Found(kinked=seen > 0 and kinked == seen)


def broken(subject: Subject, node: Node, value: Fraction | Node) -> bool:
    """Does forward jump at some point at which ``node`` is ``value``?

    Doubles tell that it does not; where they see a jump, 60 digits tell whether it was rounding.
    Where no such point is found, nothing shows that it does not jump.
    """
    comparable = not isinstance(value, Node) or value.shape == node.shape
    if len(subject.everything.nodes) > BOUNDARY_NODES or not comparable:
        return True
    seen = False
    for point in islice(points(subject, node, value, spread=True), SPREAD):
        with suppress(DomainError):
            at = subject.evaluate_double(point)
            if _gap_at(at, node, value) > 0:
                continue  # what is chosen on the set is not chosen here
            if _jumps_at(subject, at, NEAR):
                with mpmath.workdps(DIGITS):
                    at = subject.evaluate_precise(point)
                    if _gap_at(at, node, value) or _jumps_at(subject, at, mpmath.mpf(NEARER)):
                        return True
            seen = True
    return not seen


def bent(
    subject: Subject, node: Node, value: Fraction | Node,
    others: Sequence[tuple[Node, Fraction | Node]] | None = None,
) -> bool:  # fmt: skip
    """Do doubles show no point at which ``node`` is ``value``, and at which forward bends not?

    ``others``: all else that forward may bend at.  Then one corner that lies on none of these is
    enough.
    """
    comparable = not isinstance(value, Node) or value.shape == node.shape
    if len(subject.everything.nodes) > BOUNDARY_NODES or not comparable:
        return True
    even = False
    apart = others is not None and all(
        not isinstance(its, Node) or its.shape == one.shape for one, its in others
    )
    for point in islice(points(subject, node, value), POINTS):
        with suppress(DomainError):
            at = subject.evaluate_double(point)
            if _gap_at(at, node, value) > ON_SET:
                continue
            bend, slope = _bend_at(subject, at, ASIDE)
            if abs(bend) <= BEND * slope:
                if not apart:
                    return False
                even = True
            elif apart and all(_gap_at(at, *one) > NEAR for one in others or ()):
                nearer, _ = _bend_at(subject, at, ASIDE / 100)
                if abs(nearer - bend) <= ALIKE * abs(bend):
                    return True
    return not even


def _bend_at(subject: Subject, at: Evaluation, step: float) -> tuple[Any, Any]:
    """By how much the slopes on both sides differ, and how large they are.

    That of a corner is the same for all steps, unlike those of a curve and of a jump.
    """
    along = _everywhere(subject, at)
    ahead, behind = (
        (at.differences.moved(along, aside) - at.objective) / aside for aside in (step, -step)
    )
    return ahead - behind, 1 + abs(ahead) + abs(behind)


def _everywhere(subject: Subject, at: Evaluation) -> dict[str, Array]:
    """A direction for all real inputs."""
    return {
        name: subject.direction(name, at)
        for name, one in subject.by_name.items() if one.dtype.is_float
    }  # fmt: skip


def _jumps_at(subject: Subject, at: Evaluation, step: Any) -> bool:
    """Is the limit from a side, on a straight line, another value?"""
    along, least = _everywhere(subject, at), JUMP * (1 + abs(at.objective))
    for side in (step, -step):
        far, near = (at.differences.moved(along, by) for by in (side, side / 2))
        if not abs(2 * near - far - at.objective) <= least:
            return True
    return False


def _gap_at(at: Evaluation, node: Node, value: Fraction | Node) -> float:
    other = at.values[value] if isinstance(value, Node) else float(value)
    gap = np.asarray(np.abs(at.values[node] - other), dtype=float)
    return float(np.min(gap, initial=np.inf))


def _there(
    at: Evaluation, node: Node, value: Fraction | Node, *, least: float = EXACT
) -> bool:  # fmt: skip
    """Is it there?  ``least`` of 0: comparisons of the digits that are kept say so, too."""
    gap = at.values[node] - _value(at.values, value)
    return bool(np.any([abs(one) <= least for one in np.asarray(gap).ravel()]))


def _value(values: Mapping[Node, Array], value: Fraction | Node) -> Any:
    if isinstance(value, Node):
        return values[value]
    return mpmath.mpf(value.numerator) / value.denominator


# -- one point


def _at_point(subject: Subject, name: str, at: Evaluation) -> Found:
    gradient = at.values[subject.gradients[name]]
    if not is_finite(gradient) or gradient.size > BOUNDARY_ELEMENTS:
        return Found()
    slopes = np.empty(gradient.shape, dtype=object)
    for place in np.ndindex(*gradient.shape):
        slope, bent = _slope(subject, name, at, place)
        if slope is None:
            return Found(kinked=bent)
        slopes[place] = slope
    mixed = {name: subject.direction(name, at)}
    along = at.differences.along(mixed)
    if abs(along - np.sum(slopes * mixed[name])) > SMOOTH * (1 + abs(along)):
        return Found(kinked=True)
    unsure = False
    for place in np.ndindex(*gradient.shape):
        true, hand = slopes[place], gradient[place]
        if abs(true - hand) > WRONG * (1 + abs(true)):
            texts = apart(subject, at.point, name, place, float(hand), float(true))
            if texts is not None:
                numbers = float(hand), float(true)
                return Found(Counterexample(name, at.point, place, *numbers, *texts))
            unsure = True
    return Found(unsure=unsure)


def _slope(
    subject: Subject, name: str, at: Evaluation, place: tuple[int, ...]
) -> tuple[Any | None, bool]:
    """The derivative by one element; or None, and whether the quotients alone disagree."""
    shape = at.values[subject.by_name[name]].shape
    direction = np.full(shape, mpmath.mpf(0), dtype=object)
    direction[place] = mpmath.mpf(1)
    along = {name: direction}
    slope = at.differences.along(along)
    allowed = SMOOTH * (1 + abs(slope))
    bend = at.differences.bend(along)
    if not bend <= allowed:
        return None, bool(bend > allowed)
    step = mpmath.mpf(10) ** -20
    aside = {name: direction + subject.direction(name, at) / 100}
    for by in (step, -step):
        beside = _moved(subject, at, aside, by)
        if not abs(subject.sympy_derivative(beside, along) - slope) <= allowed:
            return None, False
    return slope, False


def _moved(
    subject: Subject, at: Evaluation, directions: Mapping[str, Array], step: Any
) -> Evaluation:
    feeds = at.point.precise()
    for name, direction in directions.items():
        feeds[name] = feeds[name] + direction * step
    return replace(at, values=subject.everything.run(subject.precise, feeds, at.point.sizes))


# -- points of a set


def points(
    subject: Subject, node: Node, value: Fraction | Node, *, spread: bool = False
) -> Iterator[Point]:  # fmt: skip
    """Points at which ``node`` may be ``value`` at some element, found in doubles.

    ``spread``: at most two of each base, and what the node does not read is no small number: small
    numbers are equal by chance, and cancel.
    The sampler keeps them, for the modes in which they were drawn.
    """
    sampler = subject.sampler
    key = node, value, tuple(sampler.modes.items()), spread
    found, rest = sampler.solved.setdefault(key, ([], _points(subject, node, value, spread)))
    for place in itertools.count():
        if place == len(found):
            try:
                found.append(next(rest))
            except StopIteration:
                return
            except BaseException:
                sampler.solved.pop(key, None)  # what is left of them is not known
                raise
        yield found[place]


def _points(
    subject: Subject, node: Node, value: Fraction | Node, spread: bool
) -> Iterator[Point]:  # fmt: skip
    own = bare(value) if isinstance(value, Node) else None
    if (
        own is not None
        and own.op == "constant"
        and not math.isfinite(own.attributes["value"].value)
    ):
        return  # no real number is that
    names = [
        str(one.attributes["name"]) for one in Evaluator(_nodes(node, value)).nodes
        if one.op == "input" and one.dtype.is_float
    ]  # fmt: skip
    shapes = subject.sampler.small_choices(BOUNDARY_SHAPES)
    if not spread:
        made, most, free = partial(_simple, names), None, (*_BOUNDS, "constant")
        bases = [(sizes, variant) for sizes in shapes for variant in (0, 1, POSITIVE)]
    else:
        made, most, free = partial(_apart, names), 2, _FREE
        bases = [(shapes[i % len(shapes)], 3 * i) for i in range(SPREAD)] if shapes else []
    for base in bases:
        with suppress(Unsatisfiable, DomainError):
            point = made(subject, *base)
            yield from islice(_solved(subject, node, value, names, point, free), most)
    for sizes in shapes:
        with suppress(Unsatisfiable, DomainError):
            yield from _constant(subject, node, value, names, made(subject, sizes, 0), free)
    for sizes in shapes:
        with suppress(Unsatisfiable, DomainError):
            yield from _sparse(subject, node, value, names, made(subject, sizes, 0), free)


POSITIVE = 6
"""The variant of simple points at which what the node does not read is positive."""


def _simple(
    names: Sequence[str], subject: Subject, sizes: Mapping[str, int], variant: int
) -> Point:  # fmt: skip
    """A simple point; one at which logarithms and roots of other inputs are there."""
    point = simple_point(subject, sizes, variant)
    if variant != POSITIVE:
        return point
    kept = {*names, *subject.sampler.assumptions, *subject.sampler.cotangents}
    return replace(point, numerators={
        name: values if name in kept else np.abs(values)
        for name, values in point.numerators.items()
    })  # fmt: skip


def _apart(
    names: Sequence[str], subject: Subject, sizes: Mapping[str, int], variant: int
) -> Point:  # fmt: skip
    """A point of which only the inputs ``names`` are small rationals."""
    simple, drawn = simple_point(subject, sizes, variant), subject.sampler.point(sizes, variant)
    own = {name: simple.numerators[name] for name in names}
    return replace(drawn, numerators={**drawn.numerators, **own})


def _nodes(node: Node, value: Fraction | Node) -> list[Node]:
    return [node, value] if isinstance(value, Node) else [node]


class _Gap:
    """How far a node is from its value, as a function of one number in the inputs."""

    def __init__(self, node: Node, value: Fraction | Node, point: Point) -> None:
        self.program = Evaluator(_nodes(node, value))
        self.node, self.value, self.point = node, value, point

    def of(self, point: Point) -> Array:
        values = self.program.run(Double(), point.doubles(), point.sizes)
        value = values[self.value] if isinstance(self.value, Node) else float(self.value)
        return np.asarray(values[self.node] - value, dtype=float)


def _solved(
    subject: Subject,
    node: Node,
    value: Fraction | Node,
    names: list[str],
    base: Point,
    free: Collection[str],
) -> Iterator[Point]:
    """One element of an input is moved until one element of the node is the value."""
    for name in names:
        places = list(islice(np.ndindex(*base.numerators[name].shape), 2))
        yield from _solved_at(subject, node, value, name, places, base, free)


def _solved_at(
    subject: Subject,
    node: Node,
    value: Fraction | Node,
    name: str,
    places: Sequence[tuple[int, ...]],
    base: Point,
    free: Collection[str] | None,
) -> Iterator[Point]:
    """The same for each of some elements of one input; ``free`` of None: declared or not."""
    gap = _Gap(node, value, base)
    for place in places:
        start = np.asarray(gap.of(base))
        moved = np.asarray(gap.of(_with(base, name, place, Fraction(7, 4))))
        changes = np.argwhere(~np.isclose(start, moved))
        if not len(changes):
            continue
        target = tuple(changes[0])
        root = _root(
            lambda x, place=place, target=target: float(gap.of(_with(base, name, place, x))[target])
        )
        if root is not None and (free is None or _allowed(subject, name, root, free)):
            yield _with(base, name, place, root)


def _root(function: Any) -> Fraction | None:
    """A small rational root, by secants."""
    last, here = 0.75, 1.75
    with suppress(DomainError, OverflowError, ValueError, ZeroDivisionError):
        before = function(Fraction(last))
        for _ in range(40):
            now = function(Fraction(here))
            if abs(now) < 1e-13 or now == before:
                break
            last, here, before = here, here - now * (here - last) / (now - before), now
        root = Fraction(here).limit_denominator(1000)
        if root.denominator in _FINE and abs(function(root)) < 1e-9:
            return root
    return None


_FINE = frozenset(n for n in range(1, 1001) if DENOMINATOR % n == 0)


def _constant(
    subject: Subject,
    node: Node,
    value: Fraction | Node,
    names: list[str],
    base: Point,
    free: Collection[str],
) -> Iterator[Point]:
    """All elements of the inputs are one number."""
    gap = _Gap(node, value, base)
    numbers = [Fraction(n, 2) for n in range(-BOUNDARY_NUMBERS, BOUNDARY_NUMBERS + 1)]
    found = 0
    for one in sorted(numbers, key=lambda n: (abs(n), n)):
        if not names or not all(_allowed(subject, name, one, free) for name in names):
            continue
        point = base
        for name in names:
            point = _with(point, name, ..., one)
        with suppress(DomainError):
            if np.any(np.abs(gap.of(point)) < 1e-9):
                yield point
                found += 1
                if found >= 3:
                    return


def _sparse(
    subject: Subject,
    node: Node,
    value: Fraction | Node,
    names: list[str],
    base: Point,
    free: Collection[str],
) -> Iterator[Point]:
    """All elements of an input are 0 but one that is solved for, and but one or two before it.

    Those are 1.  What is found is also divided among that element and those after it, so that
    their squares add up, and one of them is solved for with the others at a part of it.
    Zeros are taken where they may be, and points first at which doubles are exact.
    """
    for name in names:
        base = _with(base, name, ..., Fraction(0))
    gap = _Gap(node, value, base)
    declared = {name: subject.sampler.assumptions.get(name, ()) for name in names}

    def allowed(point: Point) -> bool:
        return all(
            one.kind in free and meets(one, point.numerators[name])
            for name in names for one in declared[name]
        )  # fmt: skip

    for name in names:
        places = list(np.ndindex(*base.numerators[name].shape))
        start, found = base, list[Point]()
        for count, place in enumerate(places[:3]):
            alone = list(_solved_at(subject, node, value, name, [place], start, None))
            found += alone
            for point in alone:
                root = Fraction(int(point.numerators[name][place]), DENOMINATOR)
                rest = places[count:]
                for own in {2, len(rest)}:
                    if 2 <= own <= min(MOST_PARTS, len(rest)):
                        found += (
                            _split(start, name, part, root)
                            for part in (rest[:own], rest[:own][::-1])
                        )
                part = root / 2 ** len(rest).bit_length()
                for other in rest:
                    point = _with(point, name, other, part)
                found += _solved_at(subject, node, value, name, [place], point, None)
            start = _with(start, name, place, Fraction(1))
        found = list(filter(allowed, found))
        yield from sorted(found, key=lambda point: not np.any(gap.of(point) == 0))


MOST_PARTS = 6
"""Elements whose squares add up to one square; their denominators are powers of 5."""


def _split(point: Point, name: str, places: Sequence[tuple[int, ...]], whole: Fraction) -> Point:
    """A number as the root of squares of rationals, one for each element."""
    for place in places[:-1]:
        point, whole = _with(point, name, place, whole * 3 / 5), whole * 4 / 5
    return _with(point, name, places[-1], whole)


def _with(point: Point, name: str, place: Any, value: Fraction) -> Point:
    array = point.numerators[name].copy()
    array[place] = round(value * DENOMINATOR)
    return replace(point, numerators={**point.numerators, name: array})


def _allowed(subject: Subject, name: str, value: Fraction, free: Collection[str]) -> bool:
    """May an element be this number, by what is declared?"""
    numerator = np.asarray(round(value * DENOMINATOR))
    return all(
        one.kind in free and meets(one, numerator)
        for one in subject.sampler.assumptions.get(name, ())
    )
