"""Points exactly on the thresholds of a backward at which its forward has no corner.

In: a ``Subject`` and the name of an input.  Out: points at which its gradient is a number and
looks wrong, in doubles; whether it is wrong there, others have to say.

Conditions such as ``x == 1`` vanish almost everywhere, and in the normal form.  A backward that
asks for one where forward is smooth has to be right there too: each element is put on a literal of
the code, or on another element.  A forward with corners is smooth at a point where its derivatives
ahead and behind are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from symgrad.budgets import CORNER_DIRECTIONS, CORNER_POINTS
from symgrad.ir.graph import Node
from symgrad.ops.logic import COMPARISONS
from symgrad.ops.record import get
from symgrad.ops.reductions import EXTREMES_ALONG
from symgrad.proof.oracle.refute import suspicious
from symgrad.proof.oracle.sample import DENOMINATOR, Array, Point, meets
from symgrad.proof.oracle.subject import Evaluation, Subject, precisely
from symgrad.proof.oracle.values import DomainError

CERTAIN = 1e-9  # where all derivatives are 0, a relative error says nothing
BEND = 1e-3  # a smooth function bends by the step; a corner by its own angle
_BOUNDS = ("interval", "positive", "nonnegative", "negative")
_ASKING = frozenset((*COMPARISONS, "sign"))
_CORNERED = _ASKING | {"where", *EXTREMES_ALONG, "argmax", "argmin", "rank"}


def corners(subject: Subject, name: str) -> Iterator[Point]:
    """Points on thresholds, but on no corner of forward, at which one gradient looks wrong."""
    forward = subject.forward.nodes
    of_forward = set(forward)
    asking = any(
        node.op in _ASKING and node.args[0].dtype.is_float and node not in of_forward
        for node in subject.everything.nodes
    )
    if not asking:
        return
    bent = any(map(_cornered, forward))
    choices = subject.sampler.small_choices(CORNER_POINTS // 2)
    for number in range(CORNER_POINTS if choices else 0):
        at = subject.draw(choices[(3 * number + 1) % len(choices)], 500 + number)
        if at is None:
            continue
        point = _moved(subject, at.point, number)
        try:
            moved = subject.evaluate_double(point)
        except DomainError:
            continue
        finite = np.all(np.isfinite(moved.values[subject.gradients[name]]))
        if finite and suspicious(subject, moved, name) and not (
            bent and _on_a_corner(subject, moved, name)
        ):  # fmt: skip
            yield point


def certain(subject: Subject, point: Point, name: str) -> bool:
    """Is one gradient wrong by more than a step's error, and forward without a corner there?"""
    with precisely():
        try:
            at = subject.evaluate_precise(point)
            if _on_a_corner(subject, at, name):
                return False
            comparison = subject.compare(at, {name: subject.direction(name, at)})
            return bool(abs(comparison.quotient - comparison.claimed) > CERTAIN)
        except DomainError:
            return False


def _on_a_corner(subject: Subject, at: Evaluation, name: str) -> bool:
    """Do the derivatives ahead and behind differ along one of several directions?"""
    for seed in range(CORNER_DIRECTIONS):
        along = {name: subject.direction(name, at, seed)}
        try:
            if not at.differences.bend(along) <= BEND * (1 + abs(at.objective)):
                return True
        except DomainError:
            return True
    return False


def _cornered(node: Node) -> bool:
    scalar = get(node.op).scalar
    return node.op in _CORNERED or (scalar is not None and bool(scalar.kinks))


def _moved(subject: Subject, point: Point, number: int) -> Point:
    """Half of the elements on one literal of the code, or on elements of the same input."""
    random = np.random.default_rng((number, *point.sizes.values()))
    sampler = subject.sampler
    literals = {0, DENOMINATOR, -DENOMINATOR}
    if sampler.literals is not None:
        literals.update(sampler.literals.tolist())
    ordered = sorted(literals, key=lambda value: (abs(value), value))
    numerators = dict(point.numerators)
    for name, values in numerators.items():
        if not values.size:
            continue
        allowed = [value for value in ordered if _allowed(subject, name, value)]
        if number % 4 == 3 and not sampler.assumptions.get(name):
            numerators[name] = _put(random, values, values.ravel())
        elif allowed:
            chosen = allowed[(number - number // 4) % len(allowed)]
            numerators[name] = _put(random, values, np.array([chosen], dtype=np.int64))
    return replace(point, numerators=numerators)


def _allowed(subject: Subject, name: str, value: int) -> bool:
    """May an element be this numerator, by what is declared and by where forward is finite?"""
    signs = {"real": True, "positive": value > 0, "negative": value < 0}
    if not signs.get(subject.sampler.modes.get(name, "real")):
        return False
    return all(
        one.kind in _BOUNDS and meets(one, np.asarray(value))
        for one in subject.sampler.assumptions.get(name, ())
    )


def _put(random: Any, values: Array, pool: Array) -> Array:
    chosen = random.random(values.shape) < 0.5
    return np.asarray(np.where(chosen, random.choice(pool, values.shape), values))
