"""Conditions under which a wrong gradient is right after all, and what every verdict rests on.

In: a ``Subject`` and a refuted gradient.  Out: the first simple condition under which the
gradient is proved.  Imports: ``symgrad.ir``, ``symgrad.proof``: ``assume``, ``decide``,
``rebuild``, ``subject``, ``verdict``.

Tried in order: one size is not 1, one size is 1, two sizes are equal; then of one input: it is
positive, 0 or 1, symmetric, one-hot along its last axis, or has no value twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from symgrad.errors import SymgradError
from symgrad.ir.dim import Atom, Dim, Size
from symgrad.ir.dtype import int64
from symgrad.ir.function import SizeCondition
from symgrad.proof.assume import Assumption
from symgrad.proof.decide import Judgement, judge
from symgrad.proof.rebuild import copied
from symgrad.proof.refute import suspicious
from symgrad.proof.subject import NoPointError, Subject
from symgrad.proof.verdict import Verdict

CHECKS = 5


@dataclass(frozen=True)
class FoundCondition:
    """``text`` as a person says it, its contrary, and the judgement under it."""

    text: str
    contrary: str
    judgement: Judgement


def find_condition(
    subject: Subject, name: str, judgement: Judgement, *, budget: int
) -> FoundCondition | None:
    """The first simple condition under which the gradient of ``name`` is PROVED, or None."""
    for text, contrary, candidate in _candidates(subject, name, judgement):
        if not _looks_right(candidate, name):
            continue
        found = judge(candidate, budget=budget)[name]
        if found.verdict is Verdict.PROVED:
            return FoundCondition(text, contrary, found)
    return None


def _candidates(
    subject: Subject, name: str, judgement: Judgement
) -> Iterator[tuple[str, str, Subject]]:
    yield from _by_size(subject, name, judgement)
    for assumption in _value_assumptions(subject):
        known = (*subject.assumptions, assumption)
        yield (str(assumption), f"it is not so that {assumption}", _assuming(subject, name, known))


def _by_size(
    subject: Subject, name: str, judgement: Judgement
) -> Iterator[tuple[str, str, Subject]]:
    symbols = subject.sampler.symbols
    passed, failed = judgement.passed, judgement.failed
    for symbol in symbols:
        if passed and all(sizes[symbol] == 1 for sizes in failed):
            condition = SizeCondition(Dim.size(symbol), "!=", Dim.of(1))
            conditions = (*subject.conditions, condition)
            yield str(condition), f"{symbol} = 1", _conditioned(subject, name, conditions)
    for symbol in symbols:
        if all(sizes[symbol] != 1 for sizes in failed):
            specialised = _specialised(subject, name, symbol, Dim.of(1))
            if specialised is not None:
                yield f"{symbol} == 1", f"{symbol} != 1", specialised
    for one, other in combinations(symbols, 2):
        if all(sizes[one] != sizes[other] for sizes in failed):
            specialised = _specialised(subject, name, other, Dim.size(one))
            if specialised is not None:
                yield f"{one} == {other}", f"{one} != {other}", specialised


def _value_assumptions(subject: Subject) -> Iterator[Assumption]:
    inputs = {node.attributes["name"]: node for node in subject.inputs}
    for kind in ("positive", "binary", "symmetric", "one-hot", "unique"):
        for name, node in inputs.items():
            if any(known.name == name for known in subject.assumptions):
                continue
            matrix = node.rank >= 2 and node.shape[-1] == node.shape[-2]
            fits = {
                "positive": node.dtype.is_float, "binary": node.dtype.is_float,
                "symmetric": node.dtype.is_float and matrix,
                "one-hot": node.dtype.is_float and node.rank >= 1,
                "unique": node.dtype == int64 and node.rank == 1,
            }  # fmt: skip
            if fits[kind]:
                yield Assumption(name, kind, kind)


def _assuming(subject: Subject, name: str, assumptions: Sequence[Assumption]) -> Subject:
    return Subject(
        subject.graph, subject.inputs, subject.outputs, {name: subject.gradients[name]},
        conditions=subject.conditions, assumptions=assumptions, recognised=subject.recognised,
    )  # fmt: skip


def _conditioned(subject: Subject, name: str, conditions: Sequence[SizeCondition]) -> Subject:
    return Subject(
        subject.graph, subject.inputs, subject.outputs, {name: subject.gradients[name]},
        conditions=conditions, assumptions=subject.assumptions, recognised=subject.recognised,
    )  # fmt: skip


def _specialised(subject: Subject, name: str, symbol: str, value: Dim) -> Subject | None:
    """The subject with a size replaced; None where its shapes then do not fit."""
    roots = [node for pair in subject.outputs for node in pair]
    roots += [*subject.inputs, subject.gradients[name]]
    try:
        graph, new = copied(roots, {Size(symbol): value})
    except SymgradError:
        return None
    pairs = [(new[node], new[cotangent]) for node, cotangent in subject.outputs]
    return Subject(
        graph, [new[node] for node in subject.inputs], pairs, {name: new[subject.gradients[name]]},
        conditions=_replaced(subject.conditions, symbol, value),
        assumptions=subject.assumptions, recognised=subject.recognised,
    )  # fmt: skip


def _replaced(
    conditions: Sequence[SizeCondition], symbol: str, value: Dim
) -> tuple[SizeCondition, ...]:
    mapping: dict[Atom, Dim] = {Size(symbol): value}
    return tuple(
        SizeCondition(c.left.substitute(mapping), c.relation, c.right.substitute(mapping))
        for c in conditions
    )


def _looks_right(subject: Subject, name: str) -> bool:
    """Is there no difference at a few points?  Quick: most candidates fail here."""
    try:
        subject.settle()
    except NoPointError:
        return False
    seen = 0
    for number, sizes in enumerate(islice(subject.sampler.size_choices(), CHECKS)):
        at = subject.draw(sizes, number)
        if at is not None:
            if suspicious(subject, at, name):
                return False
            seen += 1
    return seen > 0


def sizes_text(sizes: Mapping[str, int]) -> str:
    """``n = 1, m = 2``."""
    return ", ".join(f"{name} = {value}" for name, value in sizes.items())
