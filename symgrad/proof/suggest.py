"""What was meant: a gradient as tensor code, offered only when it is itself proved.

In: a ``Subject`` with a refuted gradient.  Out: code in the user's saved names.
Imports: ``symgrad.errors``, ``symgrad.ir``, ``symgrad.proof``: ``adjoints``, ``code``,
``decide``, ``subject``, ``verdict``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from symgrad.errors import SymgradError
from symgrad.ir.graph import Node
from symgrad.proof.adjoints import derived_gradients
from symgrad.proof.code import CodeWriter, NoSpelling
from symgrad.proof.decide import judge
from symgrad.proof.rebuild import zero_like
from symgrad.proof.spelling import size_sources
from symgrad.proof.subject import Subject
from symgrad.proof.verdict import Verdict

LONGEST = 240
MOST_LINES = 20


@dataclass(frozen=True)
class Suggestion:
    """Tensor code for a gradient; ``proved``: it was judged like a hand-written one."""

    code: str
    proved: bool


def is_proved(subject: Subject, name: str, gradient: Node, budget: int) -> bool:
    """Would this node of the subject's graph be the right gradient?"""
    candidate = Subject(
        subject.graph, subject.inputs, subject.outputs, {name: gradient},
        conditions=subject.conditions, assumptions=subject.assumptions,
        recognised=subject.recognised,
    )  # fmt: skip
    return judge(candidate, budget=budget)[name].verdict is Verdict.PROVED


def writer_for(subject: Subject, extra: Iterable[Node] = ()) -> CodeWriter:
    """Code in terms of what backward can read: cotangents, saved tensors, inputs, ``extra``."""
    named = [*subject.saved, *extra]
    reachable = [node for node in named if node.name]
    inputs = [node for node in reachable if node.rank] or subject.inputs
    return CodeWriter(reachable, size_sources([*inputs, *(c for _, c in subject.outputs)]))


def spelled(writer: CodeWriter, node: Node) -> str | None:
    """The code of a node, when there is some and it is short enough to read."""
    try:
        code = writer.program(node)
    except NoSpelling:
        return None
    lines = code.splitlines()
    readable = len(lines) <= MOST_LINES and all(len(line) <= LONGEST for line in lines)
    return code if readable else None


def derived(subject: Subject, name: str, budget: int) -> Suggestion | None:
    """The gradient as the op records derive it, in the user's names.

    Shifts by a maximum, which cancel, are first taken as constants: that is shorter.
    """
    shifts = [node for node in subject.forward.nodes if node.op in ("amax", "amin")]
    for held in ([shifts] if shifts else []) + [[]]:
        found = _derived(subject, name, held, budget)
        if found is not None and found.proved:
            return found
    return found


def _derived(subject: Subject, name: str, held: Sequence[Node], budget: int) -> Suggestion | None:
    try:
        graph, copies, adjoints = derived_gradients(subject, held)
    except (SymgradError, ValueError, KeyError):
        return None
    node = adjoints.get(subject.by_name[name])
    if node is None:
        node = zero_like(graph, copies.get(subject.by_name[name]) or graph.input(
            name, subject.by_name[name].type
        ))  # fmt: skip
    copy = Subject(
        graph, _copies(copies, subject.inputs),
        [(copies[o], copies[c]) for o, c in subject.outputs], {name: node},
        conditions=subject.conditions, assumptions=subject.assumptions,
        recognised=subject.recognised,
    )  # fmt: skip
    copy.saved = tuple(copies[saved] for saved in subject.saved if saved in copies)
    code = spelled(writer_for(copy), node)
    if code is None:
        return None
    proved = judge(copy, budget=budget)[name].verdict is Verdict.PROVED
    return Suggestion(code, proved)


def _copies(copies: dict[Node, Node], inputs: Sequence[Node]) -> list[Node]:
    return [copies[node] for node in inputs if node in copies]
