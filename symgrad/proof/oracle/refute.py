"""Refutation: a point at which a hand-written gradient is wrong, small enough to be read.

In: a ``Subject``.  Out: ``Counterexample``, or None.

A refutation is a theorem.  In 60 digits, the hand-written gradient differs from the difference
quotient, which agrees with sympy's derivative; where the two derivatives disagree (a kink, a pole)
the point is discarded.  Then both sides are enclosed at the point, which is rational
(``proof/oracle/enclosure.py``), and the enclosures are apart.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from symgrad.budgets import HIDDEN_COUNTEREXAMPLES, PLAIN_GAP
from symgrad.errors import DependencyError
from symgrad.ir.dtype import bool_
from symgrad.proof.oracle.numbers import Array
from symgrad.proof.oracle.sample import DENOMINATOR, Point, Unsatisfiable, impose
from symgrad.proof.oracle.subject import Evaluation, Subject, precisely
from symgrad.proof.oracle.values import DOUBLE_TOLERANCE, PRECISE_TOLERANCE_DIGITS, DomainError
from symgrad.proof.scalars import uninterpreted


@dataclass(frozen=True)
class Counterexample:
    """A point at which one element of a gradient is wrong.

    ``hand`` and ``true``: both values; ``at``: the element; ``hand_text`` and ``true_text``: with
    so many digits that they differ.
    """

    input: str
    point: Point
    at: tuple[int, ...]
    hand: float
    true: float
    hand_text: str
    true_text: str

    @property
    def element(self) -> str:
        """The element as text, such as ``x[0, 1]``."""
        inside = ", ".join(map(str, self.at))
        return f"{self.input}[{inside}]" if self.at else self.input

    @property
    def gap(self) -> float:
        """How far apart both values are; infinite if one is none."""
        gap = abs(self.hand - self.true)
        return math.inf if math.isnan(gap) else gap

    @property
    def is_plain(self) -> bool:
        """Is the difference one that a reader, and a quotient in doubles, sees at once?"""
        return not self.gap <= PLAIN_GAP * (1 + abs(self.hand) + abs(self.true))


def tolerance(subject: Subject | None = None) -> Any:
    """The greatest relative gap that counts as agreement in 60 digits.

    For a subject that computes with functions of which only doubles are known, in these.
    """
    if subject is not None and uninterpreted.among(subject.everything.nodes):
        return mpmath.mpf(uninterpreted.VALUE_TOLERANCE)
    return mpmath.mpf(10) ** -PRECISE_TOLERANCE_DIGITS


def suspicious(subject: Subject, at: Evaluation, name: str, seed: int = 0) -> bool:
    """Does one gradient look wrong at a point, in doubles?"""
    direction = subject.direction(name, at, seed)
    try:
        gap = subject.compare(at, {name: direction}).gap
    except DomainError:
        return False
    return not gap <= DOUBLE_TOLERANCE


def confirmed(subject: Subject, point: Point, name: str, direction: Array | None = None) -> bool:
    """Is one gradient wrong at a point, in 60 digits, by both derivatives?"""
    with precisely():
        try:
            at = subject.evaluate_precise(point)
            along = {name: subject.direction(name, at) if direction is None else direction}
            return _contradicting(subject, at, along) is not None
        except DomainError:
            return False


_consulted = 0
_WORTH = 6
"""Points at which difference quotients are taken before the import of FLINT's numbers pays."""


def agree_in_balls(subject: Subject, point: Point, names: Sequence[str]) -> bool:
    """Do gradients and difference quotients agree for certain, by FLINT's numbers?

    What is stated of the inputs is checked elsewhere: then this says nothing.
    """
    global _consulted
    _consulted += 1
    if subject.relations or (_consulted <= _WORTH and "flint" not in sys.modules):
        return False
    with suppress(DependencyError):
        from symgrad.proof.oracle.quotients import certainly_agree

        return certainly_agree(subject, point, names)
    return False


def agrees(subject: Subject, point: Point, name: str) -> bool:
    """Is a whole gradient what the difference quotient says, in 60 digits?"""
    with precisely():
        if agree_in_balls(subject, point, [name]):
            return True
        try:
            at = subject.evaluate_precise(point)
            return bool(
                subject.compare(at, {name: subject.direction(name, at)}).gap <= tolerance(subject)
            )
        except DomainError:
            return False


def _contradicting(subject: Subject, at: Evaluation, along: Mapping[str, Array]) -> Any | None:
    """The difference quotient, where gradients differ from it and sympy's derivative does not.

    They differ from that derivative, too: of what is 0 by cancellation, a quotient is rounding.
    """
    comparison = subject.compare(at, along)
    if comparison.gap <= tolerance(subject):
        return None
    quotient, derivative = comparison.quotient, subject.sympy_derivative(at, along)
    if not (_is_real(derivative) and _is_real(quotient)):
        return None
    if replace(comparison, quotient=derivative).gap <= tolerance(subject):
        return None
    scale = abs(derivative) + abs(quotient) + 1
    return quotient if abs(derivative - quotient) <= tolerance() * scale else None


def _is_real(value: Any) -> bool:
    return not isinstance(value, mpmath.mpc) and bool(mpmath.isfinite(value))


def refute(subject: Subject, name: str, points: Sequence[Point]) -> Counterexample | None:
    """A small counterexample to one gradient, given points at which it looks wrong.

    Smaller shapes and simpler numbers are tried first; then the given points themselves.  One at
    which both values nearly agree is only taken where no other is found soon: of these, the one of
    the widest gap.  Points come first at which what is wished holds.
    """
    if any(one.wished for one in subject.demanded):
        found = _refuted(subject, name, points, subject.is_as_wished)
        if found is not None:
            return found
    return _refuted(subject, name, points, subject.is_as_demanded)


def _refuted(
    subject: Subject, name: str, points: Sequence[Point], taken: Callable[[Point], bool]
) -> Counterexample | None:
    """A small counterexample, at a point that is taken."""
    hidden: list[Counterexample] = []
    for found in _found(subject, name, points, taken):
        if found.is_plain:
            return found
        hidden.append(found)
        if len(hidden) == HIDDEN_COUNTEREXAMPLES:
            break
    return max(hidden, key=lambda one: one.gap, default=None)


def _found(
    subject: Subject, name: str, points: Sequence[Point], taken: Callable[[Point], bool]
) -> Iterator[Counterexample]:
    for point in filter(taken, _simple_points(subject)):
        found = counterexample_at(subject, name, point)
        if found is not None:
            yield found
    points = [*filter(taken, points)]
    for exactly in (False, True):
        for point in points[:4] if exactly else points:
            found = counterexample_at(subject, name, point, exactly=exactly)
            if found is not None:
                yield _simplified(subject, found)


def counterexample_at(
    subject: Subject, name: str, point: Point, *, exactly: bool = False
) -> Counterexample | None:
    """The first wrong element of a gradient at a point; ``exactly``: also one that looks right."""
    try:
        rough = subject.evaluate_double(point)
    except DomainError:
        return None
    gradient = rough.values[subject.gradients[name]]
    elements = list(np.ndindex(*gradient.shape))
    wrong = itertools.islice(_wrong_elements(subject, rough, name, elements), 4)
    for at in elements[:16] if exactly else wrong:
        found = check_element(subject, name, point, at)
        if found is not None:
            return found
    return None


Element = tuple[int, ...]


def _wrong_elements(
    subject: Subject, rough: Evaluation, name: str, elements: list[Element]
) -> Iterator[Element]:
    """Elements that look wrong, those that are no numbers first; of those after 64, one."""
    gradient = rough.values[subject.gradients[name]]
    seen = False
    for at in sorted(elements[:64], key=lambda at: bool(np.isfinite(gradient[at]))):
        if _differs(subject, rough, name, [at]):
            seen = True
            yield at
    if not seen:
        yield from _wrong_one(subject, rough, name, elements[64:])


def _wrong_one(
    subject: Subject, rough: Evaluation, name: str, elements: list[Element]
) -> list[Element]:
    """One element that looks wrong among many, by halves."""
    while elements and _differs(subject, rough, name, elements):
        if len(elements) == 1:
            return elements
        middle = len(elements) // 2
        first = elements[:middle]
        elements = first if _differs(subject, rough, name, first) else elements[middle:]
    return []


def _differs(
    subject: Subject, rough: Evaluation, name: str, elements: Sequence[Element]
) -> bool:  # fmt: skip
    """Do both gradients differ along a direction in which these elements alone change?"""
    direction = np.zeros(rough.values[subject.by_name[name]].shape)
    for number, at in enumerate(elements):
        direction[at] = 1.0 + number / len(elements)
    try:
        return not subject.compare(rough, {name: direction}).gap <= DOUBLE_TOLERANCE
    except DomainError:
        return False


_WIDE = 1e-6
"""A relative distance of a value from the middle of its enclosure that shows that this is wide."""


def check_element(
    subject: Subject, name: str, point: Point, at: tuple[int, ...]
) -> Counterexample | None:
    """The counterexample at one element, if it is one in 60 digits and by both derivatives."""
    with precisely():
        try:
            exact = subject.evaluate_precise(point)
            shape = exact.values[subject.by_name[name]].shape
            direction = np.empty(shape, dtype=object)
            direction[...] = mpmath.mpf(0)
            direction[at] = mpmath.mpf(1)
            true = _contradicting(subject, exact, {name: direction})
        except DomainError:
            return None
        if true is None:
            return None
        hand = _as_float(exact.values[subject.gradients[name]][at])
    texts = apart(subject, point, name, at, hand, float(true))
    if texts is not None and texts[0] == "nan":
        texts = _in_doubles(subject, point, name, at), texts[1]
    if texts is None:
        return None
    if not abs(float(texts[0]) - hand) <= _WIDE * abs(hand):  # the middle of a wide enclosure
        texts = (f"{hand:.10g}", texts[1]) if math.isfinite(hand) else texts
    own, other = (
        0.0 if text == "0" else one for one, text in zip((hand, float(true)), texts, strict=True)
    )
    return Counterexample(name, point, at, own, other, *texts)


def apart(
    subject: Subject, point: Point, name: str, at: tuple[int, ...], hand: float, true: float
) -> tuple[str, str] | None:
    """Both values as texts that differ, if their enclosures are apart; None if they are not.

    A function of which only doubles are known has no enclosure: there, the tolerance decides.
    """
    if uninterpreted.among(subject.everything.nodes):
        texts = f"{hand:.10g}", f"{true:.10g}"
        return texts if texts[0] != texts[1] else None
    from symgrad.proof.oracle.enclosure import separated  # FLINT is only needed where one is wrong

    try:
        found = separated(subject, point, name, at)
    except DomainError:
        return None
    return None if found is None else (found.hand, found.true)


def is_lost(subject: Subject, found: Counterexample) -> bool:
    """Would doubles round both values by more than they are apart?"""
    if found.is_plain or uninterpreted.among(subject.everything.nodes):
        return False
    from symgrad.proof.oracle.enclosure import DOUBLE_BITS, separated

    return separated(subject, found.point, found.input, found.at, (DOUBLE_BITS,)) is None


def _in_doubles(subject: Subject, point: Point, name: str, at: tuple[int, ...]) -> str:
    """What doubles give where the exact value is undefined: infinity, after a division by zero."""
    with np.errstate(all="ignore"):
        values = subject.evaluate_feeds(point.doubles(), point.sizes)
    return str(float(values[subject.gradients[name]][at]))


def _as_float(value: Any) -> float:
    return float("nan") if isinstance(value, mpmath.mpc) else float(value)


# -- simple points


def _simple_points(subject: Subject) -> Iterator[Point]:
    """Points of the smallest shapes, with numbers such as 1, -2 and 1/2."""
    choices = subject.sampler.small_choices(24)
    for number, sizes in enumerate(choices):
        for variant in range(3 if number < 8 else 2):
            with suppress(Unsatisfiable):
                point = simple_point(subject, sizes, variant)
                yield subject.stated.placed(point, subject.sampler)


_SIMPLE = (1, -1, 2, -2, 3, Fraction(1, 2), Fraction(-1, 2), Fraction(3, 2), Fraction(-3, 2), -3)


def simple_point(subject: Subject, sizes: Mapping[str, int], variant: int) -> Point:
    """A point of small rationals, as generic as they allow.

    Where an input has one element, that is another number in each third variant.
    """
    random = np.random.default_rng((variant, *sizes.values()))
    simple = np.array([int(Fraction(v) * DENOMINATOR) for v in _SIMPLE], dtype=np.int64)
    simple = np.roll(simple, -(variant // 3))
    drawn = subject.sampler.point(sizes, variant)
    numerators = {}
    for name, sampled in drawn.numerators.items():
        values = simple[random.permutation(np.arange(sampled.size) % len(simple))]
        values = values.reshape(sampled.shape)
        mode = subject.sampler.modes.get(name, "real")
        declared = subject.sampler.assumptions.get(name, ())
        if mode in ("positive", "above"):
            values = np.abs(values) + (DENOMINATOR if mode == "above" else 0)
        elif mode == "negative":
            values = -np.abs(values)
        elif mode == "definite":
            values = sampled
        elif mode in ("unit", "small"):
            values = (np.abs(values) if mode == "unit" else values) // 4
        for assumption in declared:
            values = impose(assumption, values, random)
        numerators[name] = np.asarray(values, dtype=np.int64)
    return subject.sampler.in_order(Point(sizes, numerators, drawn.integers))


def _simplified(subject: Subject, found: Counterexample) -> Counterexample:
    """The same counterexample with rounder numbers, where they still refute."""
    for unit in (2, 4, 10, 100):
        step = DENOMINATOR // unit
        numerators = {
            name: values if subject.sampler.assumptions.get(name) else _rounded(values, step)
            for name, values in found.point.numerators.items()
        }
        point = Point(found.point.sizes, numerators, found.point.integers)
        simpler = check_element(subject, found.input, point, found.at)
        if simpler is not None:
            return simpler
    return found


def _rounded(values: Array, step: int) -> Array:
    rounded = (values + step // 2) // step * step
    return np.asarray(np.where(rounded == 0, np.where(values < 0, -step, step), rounded))


def input_values(subject: Subject, point: Point) -> dict[str, list[Any]]:
    """The inputs of a point as fractions, integers or truth values, flat, by name."""
    found: dict[str, list[Any]] = {}
    for node in subject.sampler.inputs:
        name = node.attributes["name"]
        if node.dtype.is_float:
            found[name] = list(point.fractions(name))
        else:
            kind = bool if node.dtype == bool_ else int
            found[name] = [kind(value) for value in point.integers[name].ravel()]
    return found
