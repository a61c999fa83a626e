"""The true gradient as tensor code, in the names that backward can use.

In: a ``Subject`` with a refuted gradient.  Out: nodes, and code in the names of a ``Scope``.
``Paste`` is the interface of what tries code in the user's own text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from symgrad.budgets import DERIVED_LINES, REPAIR_COLUMNS, REPAIR_LINES
from symgrad.errors import SymgradError
from symgrad.ir.dim import Dim
from symgrad.ir.function import FunctionCase
from symgrad.ir.graph import Node
from symgrad.ops.reductions import EXTREMES_ALONG
from symgrad.proof.judge.decide import judge
from symgrad.proof.judge.equality import domains
from symgrad.proof.judge.kinks import kinks
from symgrad.proof.judge.nullsets import DISCRETE
from symgrad.proof.oracle.adjoints import derived_gradients
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.report.records import Condition
from symgrad.proof.report.verdict import Verdict
from symgrad.proof.words.code import CodeWriter, NoSpelling
from symgrad.proof.words.spelling import size_sources


@dataclass(frozen=True)
class Scope:
    """Texts of what is in reach at one return statement of a backward.

    ``names``: nodes of the case's graph.  ``sizes``: where a size can be read from; ``dims``: the
    same for expressions of sizes.  ``numbers``: variables that hold a plain number.  ``module``:
    what the user calls symgrad, or torch, and ``functional`` the module that has its activations.
    ``taken``: names that must not be bound.  ``plain``: nodes that are Python numbers.
    ``ends``: axes are counted from the last one.  ``writer``: writes in the words of the library.
    """

    names: Mapping[Node, str]
    sizes: Mapping[str, str] = field(default_factory=dict)
    dims: Mapping[Dim, str] = field(default_factory=dict)
    numbers: Mapping[float, str] = field(default_factory=dict)
    module: str = "sg"
    taken: frozenset[str] = frozenset()
    plain: frozenset[Node] = frozenset()
    functional: str = ""
    ends: bool = False
    writer: type[CodeWriter] = CodeWriter


@dataclass(frozen=True)
class Offer:
    """Code of a gradient that is PROVED, and all that is printed beside that verdict.

    ``alone``: it is not for all shapes and calls that are judged.
    """

    code: str
    conditions: tuple[Condition, ...] = ()
    alone: bool = False


Spell = Callable[[Scope], str | None]
"""The code of one gradient in a scope; None where it has none there."""


class Paste(Protocol):
    """Repairs tried in the user's own text: nothing is offered that was not proved there.

    ``module``: what the user calls symgrad, or torch; ``functional``: the module that has its
    activations.  ``numbers``: the inputs that are passed as Python numbers.  ``writer``: writes in
    the words of that library.
    """

    writer: type[CodeWriter]
    module: str
    functional: str
    numbers: frozenset[str]

    def scope(self, case: FunctionCase) -> Scope | None:
        """What backward can name where it returns in a case, where that is known."""

    def offer(
        self, case: FunctionCase, name: str, spell: Spell, modes: Mapping[str, str]
    ) -> Offer | None:
        """The code of the gradient of ``name`` if, pasted into backward, it is PROVED.

        ``modes``: those in which the wrong backward was judged.
        """

    def take(self, name: str, offer: Offer) -> list[str]:
        """Keep what was offered as the repair of ``name``; what else has to be changed for it."""


@dataclass(frozen=True)
class Derived:
    """A derived gradient in a graph of its own; ``copies``: of the subject's nodes there."""

    node: Node
    copies: Mapping[Node, Node]


def proved_under(
    subject: Subject, name: str, gradient: Node, budget: int,
    copies: Mapping[Node, Node] | None = None,
) -> tuple[Condition, ...] | None:  # fmt: skip
    """The conditions under which a node is PROVED to be the right gradient; None if it is not.

    The node is of the subject's graph, or of a copy of it.
    """
    candidate = subject.changed(gradients={name: gradient}, graph=gradient.graph, new=copies)
    judged = judge(candidate, budget=budget)[name]
    if judged.verdict is not Verdict.PROVED:
        return None
    return tuple(dict.fromkeys([*judged.conditions, *kinks(candidate, name, judged.smooth)]))


_OF_FORWARD = ("kink", "ties", "declared", "index", "axiom", "asked")
"""Kinds of conditions that no other gradient of the same forward would be without."""


def avoidable(subject: Subject, conditions: Iterable[Condition]) -> list[Condition]:
    """The conditions that another gradient of the same forward may be without."""
    forward = {str(domain) for domain in domains(subject.forward.nodes)}
    return [
        one for one in conditions
        if one.kind not in _OF_FORWARD and not (one.kind == "domain" and one.text in forward)
    ]  # fmt: skip


def writer_for(
    subject: Subject, copies: Mapping[Node, Node] | None = None, extra: Iterable[Node] = (),
    paste: Paste | None = None, aliases: Mapping[str, str] | None = None,
) -> CodeWriter:  # fmt: skip
    """Code in terms of what backward can read: cotangents, saved tensors, inputs, ``extra``.

    ``aliases``: what backward calls the cotangents.
    """
    new = copies if copies is not None else {node: node for node in subject.everything.nodes}
    named = [*(new.get(node, node) for node in subject.saved), *extra]
    reachable = [node for node in named if node.name]
    inputs = [node for node in reachable if node.rank] or subject.inputs
    sources = size_sources([*inputs, *(c for _, c in subject.outputs)], aliases)
    words = {node: node.label for node in reachable}
    for _, cotangent in subject.outputs:
        if cotangent.label in (aliases or {}):
            words[new.get(cotangent, cotangent)] = (aliases or {})[cotangent.label]
    if paste is None:
        return CodeWriter(words, sources)
    plain = [new.get(one, one) for one in subject.inputs if one.label in paste.numbers]
    return paste.writer(
        words, sources, module=paste.module, functional=paste.functional, plain=plain
    )


def spelled_in(
    subject: Subject, node: Node, copies: Mapping[Node, Node] | None, scope: Scope
) -> str | None:
    """The code of a node in terms of what a scope can name; None where there is none."""

    def copied(own: Node) -> Node | None:
        known = subject.copies.get(own)
        return known if copies is None or known is None else copies.get(known)

    names: dict[Node, str] = {}
    for own, text in scope.names.items():
        known = copied(own)
        if known is not None:
            names.setdefault(known, text)
    plain = [known for own in scope.plain if (known := copied(own)) is not None]
    writer = scope.writer(
        names, scope.sizes, dims=scope.dims, numbers=scope.numbers, taken=scope.taken,
        module=scope.module, functional=scope.functional, strict=True, plain=plain, ends=scope.ends,
    )  # fmt: skip
    return spelled(writer, node)


def spelled(writer: CodeWriter, node: Node, *, most: int = REPAIR_LINES) -> str | None:
    """The code of a node; None where there is none, or where it has too many lines to read."""
    try:
        code = writer.program(node)
    except NoSpelling:
        return None
    lines = code.splitlines()
    readable = len(lines) <= most and all(len(line) <= REPAIR_COLUMNS for line in lines)
    return code if readable else None


def derived_nodes(subject: Subject, name: str, *, plain: bool = False) -> list[Derived]:
    """The gradient as the op records derive it, shortest form first.

    Shifts by a maximum, which cancel, are first taken as constants: that is shorter.  Where forward
    asks for single values, its continuation is derived, which has the limits there, unless
    ``plain``.
    """
    outputs = None if plain else _extended(subject)
    if outputs is not None:
        found = _derived(subject, name, [], outputs)
        if found is not None:
            return [found]
    shifts = [node for node in subject.forward.nodes if node.op in EXTREMES_ALONG]
    every = (_derived(subject, name, held) for held in ([shifts] if shifts else []) + [[]])
    return [one for one in every if one is not None]


def _extended(subject: Subject) -> list[tuple[Node, Node]] | None:
    if not any(node.op in ("eq", "ne") for node in subject.forward.nodes):
        return None
    from symgrad.proof.judge.continuation import extended  # sympy is needed here alone

    try:
        return extended(subject, {a.name for a in subject.assumptions if a.kind in DISCRETE})
    except SymgradError:
        return None


def derived_code(
    subject: Subject, found: Sequence[Derived], paste: Paste | None = None,
    aliases: Mapping[str, str] | None = None,
) -> str | None:  # fmt: skip
    """The true gradient as code in forward's names."""
    one = found[-1] if found else None
    if one is None:
        return None
    writer = writer_for(subject, one.copies, paste=paste, aliases=aliases)
    return spelled(writer, one.node, most=DERIVED_LINES)


def _derived(
    subject: Subject, name: str, held: Sequence[Node],
    outputs: Sequence[tuple[Node, Node]] | None = None,
) -> Derived | None:  # fmt: skip
    try:
        graph, copies, adjoints = derived_gradients(subject, held, outputs)
    except (SymgradError, ValueError, KeyError):
        return None
    wanted = subject.by_name[name]
    node = adjoints.get(wanted)
    if node is None:
        if wanted not in copies:
            copies[wanted] = graph.input(name, wanted.type)
        node = graph.lift(0.0, copies[wanted])
    return Derived(node, copies)
