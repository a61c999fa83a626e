"""Conditions under which a gradient is right that is not proved, and what every verdict rests on.

In: a ``Subject`` and a gradient that is not proved.  Out: the simple conditions under which it is.

Tried in order: one size is not 1, two sizes are equal, a size is a small number or one that the
code names; then of one input: it is positive, lies between two numbers of the code, is symmetric,
has no value twice, is symmetric and changed so; then that norms are beyond a limit; then of another
input than the one whose gradient it is, that it marks something: it is 0 or 1, one-hot along its
last axis; last, that a size is 1.  Each is sufficient, and proved; what follows from one that was
found is not tried, nor a later kind.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, islice, pairwise

import numpy as np

from symgrad.budgets import (
    CONDITION_POINTS,
    CONDITION_SCREEN,
    LARGEST_NAMED_SIZE,
    MOST_FOUND_CONDITIONS,
)
from symgrad.errors import SymgradError
from symgrad.ir.assume import Assumption
from symgrad.ir.dim import Atom, Dim, Size
from symgrad.ir.dtype import bool_
from symgrad.ir.function import SizeCondition, strongest
from symgrad.ir.graph import Graph, Node
from symgrad.ir.rewrite import rewrite
from symgrad.ops.movement import bare
from symgrad.proof.judge.decide import Judgement, judge
from symgrad.proof.judge.directions import along_symmetric
from symgrad.proof.judge.kinks import kinks
from symgrad.proof.judge.nullsets import KIND as NULL_SET
from symgrad.proof.judge.ranges import POSITIVE, TRUTH, Range
from symgrad.proof.judge.tiny import outside_of_tiny
from symgrad.proof.oracle.refute import Counterexample, agrees, check_element, suspicious
from symgrad.proof.oracle.sample import DENOMINATOR, Point, Unsatisfiable, impose, within
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.oracle.values import DomainError
from symgrad.proof.report.records import Condition
from symgrad.proof.report.rendering import under
from symgrad.proof.report.verdict import Verdict


@dataclass(frozen=True)
class FoundCondition:
    """``text`` as a person says it, and the judgement under it.

    ``text`` has all conditions of the proof.  ``contrary``: where the gradient is wrong, if that is
    known to be everywhere else.
    """

    text: str
    contrary: str
    judgement: Judgement
    subject: Subject

    def __str__(self) -> str:
        beside = f"; REFUTED {self.contrary}" if self.contrary else ", a sufficient condition"
        return f"PROVED if {self.text}{beside}"


def find_conditions(
    subject: Subject, name: str, judgement: Judgement, *, budget: int
) -> list[FoundCondition]:
    """The simple conditions under which the gradient of ``name`` is PROVED.

    A size of 1 is reported only where nothing better holds: much is right for a single element.
    What is proved but at kinks is reported for a size alone: of values, a kink may be the rest.
    Of one that was not refuted, no sizes are known to be wrong: values alone are tried.
    """
    every = (_by_size, _by_value, _by_limits, _by_marks, _by_size_one)
    for candidates in every if judgement.verdict is Verdict.REFUTED else (_by_value,):
        found: list[FoundCondition] = []
        for text, contrary, candidate in candidates(subject, name, judgement):
            if (
                not any(one.text.startswith(text) for one in found)
                and not _follows(candidate, [one.subject for one in found])
                and _looks_right(candidate, name)
            ):
                judged = judge(candidate, budget=budget, screen=CONDITION_SCREEN)[name]
                whole = candidates is _by_size or all(
                    one.kind not in (NULL_SET, "kink") for one in judged.conditions
                )
                if (
                    judged.verdict is Verdict.PROVED
                    and whole
                    and not _still_wrong(candidate, name, judgement.counterexample)
                ):
                    whole_text = text + under(_beside(text, candidate, name, judged))
                    found.append(FoundCondition(whole_text, contrary, judged, candidate))
                    if len(found) == MOST_FOUND_CONDITIONS:
                        break
        if found:
            return found
    return []


def _beside(text: str, candidate: Subject, name: str, judged: Judgement) -> list[Condition]:
    """What else the proof under a condition rests on: the case, the conditions, the kinks."""
    sizes = [one for one in map(str, strongest(candidate.conditions)) if one != text]
    known = {one.code for one in judged.conditions if one.excepted and one.code}
    bends = [one for one in kinks(candidate, name, judged.smooth) if one.code not in known]
    found = [*(Condition("size", one) for one in sizes), *judged.conditions, *bends]
    return list(dict.fromkeys(one for one in found if one.text != text))


def _follows(candidate: Subject, found: Sequence[Subject]) -> bool:
    """Does what is assumed last follow from what was found to be enough?"""
    last = candidate.assumptions[-1:]
    return any(
        one.name == other.name and _within(one, other)
        for one in last for subject in found for other in subject.assumptions[-1:]
    )  # fmt: skip


def _within(one: Assumption, other: Assumption) -> bool:
    """Do all values that an assumption allows lie in the interval of another one?"""
    if (one.kind, other.kind) == ("one-hot", "binary"):
        return True
    inner, outer = (_ends(assumption) for assumption in (one, other))
    return inner is not None and outer is not None and inner.meet(outer) == inner


def _ends(assumption: Assumption) -> Range | None:
    if assumption.kind == "positive":
        return POSITIVE
    if assumption.kind in ("binary", "one-hot"):
        return TRUTH
    if assumption.kind != "interval":
        return None
    low, high = assumption.low, assumption.high
    return Range(
        (low, low is None or assumption.low_open), (high, high is None or assumption.high_open)
    )


def _still_wrong(subject: Subject, name: str, found: Counterexample | None) -> bool:
    """Is the gradient wrong under a condition too, at the counterexample made to meet it?"""
    if found is None:
        return False
    for sizes in islice(subject.sampler.size_choices(), CONDITION_POINTS):
        try:
            point = _adapted(subject, found.point, sizes)
        except Unsatisfiable:
            continue
        for one in (point, *_at_sizes(subject, name, point)):
            if agrees(subject, one, name):
                continue
            elements = np.ndindex(*(size.at(sizes) for size in subject.by_name[name].shape))
            if any(check_element(subject, name, one, at) for at in islice(elements, MOST_CHECKED)):
                return True
    return False


def _at_sizes(subject: Subject, name: str, point: Point) -> Iterator[Point]:
    """Points whose elements are sizes, or parts of them, if the gradient asks for such equalities.

    Only those at which it looks wrong.
    """
    nodes, forward = subject.everything.nodes, set(subject.forward.nodes)
    if not any(n.op in ("eq", "ne") and n.args[0].dtype.is_float and n not in forward
               for n in nodes):  # fmt: skip
        return
    known = [n.attributes["dim"].at(point.sizes) for n in nodes if n.op == "size"]
    shapes = [size.at(point.sizes) for node in subject.inputs for size in node.shape]
    parts = {1, 2, *shapes}
    for value in sorted({Fraction(one, part) for one in (*known, *shapes) for part in parts}):
        numerators = {
            one: values if one in subject.sampler.cotangents or subject.sampler.assumptions.get(one)
            else np.full_like(values, int(value * DENOMINATOR))
            for one, values in point.numerators.items()
        }  # fmt: skip
        placed = replace(point, numerators=numerators)
        with suppress(DomainError):
            if suspicious(subject, subject.evaluate_double(placed), name):
                yield placed


def _adapted(subject: Subject, point: Point, sizes: Mapping[str, int]) -> Point:
    """A point's values, repeated to fill other sizes, or drawn ones where they are not allowed."""
    random, drawn = np.random.default_rng(0), subject.sampler.point(sizes, 0)
    numerators = dict(drawn.numerators)
    for name, values in drawn.numerators.items():
        filled = np.resize(point.numerators.get(name, values), values.shape)
        for assumption in subject.sampler.assumptions.get(name, ()):
            filled = impose(assumption, filled, random)
        for assumption in subject.sampler.assumptions.get(name, ()):
            filled = np.where(within(assumption, filled), filled, values)
        numerators[name] = filled
    return Point(sizes, numerators, drawn.integers)


MOST_CHECKED = 16
"""Elements that are looked at where the counterexample is made to meet a condition."""

Candidates = Iterator[tuple[str, str, Subject]]


def _by_size(subject: Subject, name: str, judgement: Judgement) -> Candidates:
    symbols = subject.sampler.symbols
    passed, failed = judgement.passed, judgement.failed
    for symbol in symbols:
        if passed and failed and all(sizes[symbol] == 1 for sizes in failed):
            condition = SizeCondition(Dim.size(symbol), "!=", Dim.of(1))
            conditions = (*subject.conditions, condition)
            yield str(condition), f"at {symbol} = 1", subject.changed([name], conditions=conditions)
    for one, other in combinations(symbols, 2):
        if all(sizes[one] != sizes[other] for sizes in failed):
            yield from _at(subject, name, other, Dim.size(one))
    for symbol in symbols:
        for value in _numbers(subject):
            if all(sizes[symbol] != value for sizes in failed):
                yield from _at(subject, name, symbol, Dim.of(value))


def _by_size_one(subject: Subject, name: str, judgement: Judgement) -> Candidates:
    for symbol in subject.sampler.symbols:
        if all(sizes[symbol] != 1 for sizes in judgement.failed):
            yield from _at(subject, name, symbol, Dim.of(1))


def _by_value(subject: Subject, name: str, judgement: Judgement) -> Candidates:
    inputs = {node.attributes["name"]: node for node in subject.inputs}
    yield from _assuming(subject, name, [
        *_of_kinds(subject, inputs, ("positive",)), *_intervals(subject),
        *_of_kinds(subject, inputs, ("symmetric", "unique")),
    ])  # fmt: skip
    known = [one for one in subject.assumptions if one.name == name and one.kind == "symmetric"]
    for one in known or list(_of_kinds(subject, {name: inputs[name]}, ("symmetric",))):
        assumptions = (*subject.assumptions, *(() if known else (one,)))
        text = f"{name} and its changes are symmetric"
        for other in along_symmetric(subject.changed([name], assumptions=assumptions), name):
            yield text, "", other


def _by_limits(subject: Subject, name: str, judgement: Judgement) -> Candidates:
    """Beyond the limits of norms; those that are plain arguments are positive."""
    known = {one.name for one in subject.assumptions if one.kind == "interval"}
    positive = [
        Assumption(one.name, "positive", "positive")
        for one in subject.assumptions if one.kind == "plain" and one.name not in known
    ]  # fmt: skip
    changed = subject.changed([name], assumptions=(*subject.assumptions, *positive))
    beyond = outside_of_tiny(changed, name, any_limit=True)
    if beyond is not None:
        said = [one.text.replace(" <= ", " > ") for one in beyond.regions]
        yield " and ".join([*map(str, positive), *said]), "", beyond.subject


def _by_marks(subject: Subject, name: str, judgement: Judgement) -> Candidates:
    """Values of 0 and 1 are no numbers to differentiate by, and what has one entry is no mark."""
    inputs = {
        node.attributes["name"]: node for node in subject.inputs
        if node.attributes["name"] != name and any(dim.constant != 1 for dim in node.shape)
    }  # fmt: skip
    yield from _assuming(subject, name, _of_kinds(subject, inputs, ("binary", "one-hot")))


def _assuming(subject: Subject, name: str, assumptions: Iterable[Assumption]) -> Candidates:
    """What might be declared as well; nothing beside relations, with which no input may be left."""
    for assumption in () if subject.relations else assumptions:
        known = (*subject.assumptions, assumption)
        yield str(assumption), "", subject.changed([name], assumptions=known)


def _at(subject: Subject, name: str, symbol: str, value: Dim) -> Candidates:
    specialised = _specialised(subject, name, symbol, value)
    if specialised is not None:
        left, right = sorted((symbol, str(value)), key=lambda text: (text.isdigit(), text))
        yield f"{left} == {right}", "", specialised


def _numbers(subject: Subject) -> list[int]:
    """Small sizes, and numbers in the code that may be a size written down."""
    found = {2, 3}
    for node in subject.everything.nodes:
        if node.op == "constant":
            value = node.attributes["value"].value
            for number in (value, 1 / value if value else 0):
                if 2 <= number <= LARGEST_NAMED_SIZE and number == int(number):
                    found.add(int(number))
    return sorted(found)[:6]


def _of_kinds(
    subject: Subject, inputs: Mapping[str, Node], kinds: Sequence[str]
) -> Iterator[Assumption]:
    for kind in kinds:
        for name, node in inputs.items():
            if any(known.name == name and known.kind == kind for known in subject.assumptions):
                continue
            matrix = node.rank >= 2 and node.shape[-1] == node.shape[-2]
            fits = {
                "positive": node.dtype.is_float, "binary": node.dtype.is_float,
                "symmetric": node.dtype.is_float and matrix,
                "one-hot": node.dtype.is_float and node.rank >= 1
                and node.shape[-1].constant not in (0, 1),
                "unique": node.dtype.is_integer and node.rank == 1,
            }  # fmt: skip
            if fits[kind]:
                yield Assumption(name, kind, kind)


def _intervals(subject: Subject) -> Iterator[Assumption]:
    """Between the numbers that an input is compared or clamped with."""
    for node in subject.inputs:
        numbers = sorted({Fraction(repr(v)) for v in _thresholds(subject, node)})
        ends = [None, *numbers, None]
        for low, high in pairwise(ends):
            if (low, high) != (None, None):
                text = f"({'-inf' if low is None else low}, {'inf' if high is None else high})"
                yield Assumption(node.attributes["name"], "interval", text, low, high)


def _thresholds(subject: Subject, node: Node) -> set[float]:
    """The numbers that ``node``, or what is left of it after clamping, is compared with."""
    clamped = {node}
    found: set[float] = set()
    for reader in subject.everything.nodes:
        if reader.op in _CARRYING and any(arg in clamped for arg in reader.args):
            clamped.add(reader)
        if reader.op in _COMPARING and any(arg in clamped for arg in reader.args):
            for arg in map(bare, reader.args):
                if arg.op == "constant" and arg.dtype != bool_:
                    found.add(float(arg.attributes["value"].value))
    return {value for value in found if math.isfinite(value)}


_CARRYING = frozenset(("maximum", "minimum", "where", "expand", "reshape"))
_COMPARING = frozenset(("maximum", "minimum", "lt", "le", "gt", "ge"))


def _specialised(subject: Subject, name: str, symbol: str, value: Dim) -> Subject | None:
    """The subject with a size replaced; None where its shapes then do not fit."""
    roots = [node for pair in subject.outputs for node in pair]
    roots += [*subject.inputs, subject.gradients[name]]
    graph = Graph()
    try:
        new = rewrite(graph, roots, sizes={Size(symbol): value})
    except SymgradError:
        return None
    mapping: dict[Atom, Dim] = {Size(symbol): value}
    conditions = [condition.substitute(mapping) for condition in subject.conditions]
    return subject.changed(
        [name], graph=graph, new=new, sizes=mapping,
        conditions=[one for one in conditions if not _is_plain(one)],
        assumptions=[
            known if known.extent is None
            else replace(known, extent=known.extent.substitute(mapping))
            for known in subject.assumptions
        ],
    )  # fmt: skip


def _is_plain(condition: SizeCondition) -> bool:
    """Is it about numbers alone, and true?"""
    return not (condition.left.sizes or condition.right.sizes) and condition.holds({})


def _looks_right(subject: Subject, name: str) -> bool:
    """Is there no difference at a few points?  Quick: most candidates fail here."""
    seen = 0
    for number, sizes in enumerate(islice(subject.sampler.size_choices(), CONDITION_POINTS)):
        at = subject.draw(sizes, number)
        if at is not None:
            if suspicious(subject, at, name):
                return False
            seen += 1
    return seen > 0
