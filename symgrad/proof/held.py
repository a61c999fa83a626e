"""Declared surrogates that hold values: ``u + (u.round() - u).detach()``, whose value is rounded.

In: the nodes of a case, and of a surrogate with ``detach`` markers.  Out: the subject in which
gradients are judged against the derivative of that surrogate, detached values being constants.

The meant gradient ``M`` is the reverse of the surrogate by the records of the ops, which passes
nothing on through a marker; ``V`` is that of the same program without markers.  A gradient ``G`` is
``M`` if and only if ``G - M + V`` is the derivative of the program without markers, which is judged
as any forward is.  So nothing else in the proof knows of markers.

The kinks are those of ``apart``: the surrogate with an input of its own for each detached value.
There nothing is claimed, and nothing refuted; the report names them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from symgrad.autodiff.reverse import recorded_vjp
from symgrad.errors import SymgradError, UnsupportedOpError
from symgrad.ir.function import AppliedRule, Relation
from symgrad.ir.graph import Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ops.markers import without_markers
from symgrad.ops.reductions import EXTREMES_ALONG
from symgrad.proof.clips import IntegerLimits
from symgrad.proof.judge.boundaries import changes, kinked
from symgrad.proof.judge.kinks import bends, jumps
from symgrad.proof.oracle.numbers import Double
from symgrad.proof.oracle.refute import Counterexample
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.oracle.values import Evaluator

Pairs = Sequence[tuple[Node, Node]]


def holds(outputs: Sequence[Node]) -> bool:
    """Does a surrogate detach something?"""
    return any(node.op == "detach" for node in ancestors(outputs))


def held_subject(subject: Subject) -> Subject:
    """The subject for a surrogate with markers among its outputs; ``apart`` is set in it.

    Raises UnsupportedOpError where a kink depends on what is detached.
    """
    graph, pairs = subject.graph, subject.outputs
    apart = _apart(subject)
    edges = _edges(apart)
    own = {*apart.inputs} - {*subject.inputs}
    if own & {*ancestors(edges)}:
        raise UnsupportedOpError(
            "the surrogate compares a value that it detaches",
            hint="compare what is not detached, or leave out detach() there",
        )
    names = [*subject.gradients]
    wrt = [subject.by_name[name] for name in names]
    meant = _reverse(pairs, wrt)
    given = [*subject.gradients.values()]
    plain = without_markers(graph, [*(node for node, _ in pairs), *meant, *given])
    new = rewrite(graph, plain.values(), rule=IntegerLimits(graph))
    outputs = [(new[plain[node]], cotangent) for node, cotangent in pairs]
    values = _reverse(outputs, wrt)
    gradients = {
        name: new[plain[written]] - new[plain[one]] + value
        for name, written, one, value in zip(names, given, meant, values, strict=True)
    }
    found = Subject(
        graph, subject.inputs, outputs, gradients, conditions=subject.conditions,
        assumptions=subject.assumptions,
        relations=[*subject.relations, *(Relation("beside a kink", "!=", one) for one in edges)],
    )  # fmt: skip
    found.apart = apart
    return found


def as_written(subject: Subject, found: Counterexample) -> Counterexample:
    """A counterexample with what backward gives, and what the surrogate's derivative is."""
    if subject.apart is None:
        return found
    node, point = subject.apart.gradients[found.input], found.point
    with np.errstate(all="ignore"):
        hand = float(Evaluator([node]).run(Double(), point.doubles(), point.sizes)[node][found.at])
    true = hand - (found.hand - found.true)
    return replace(found, hand=hand, true=true, hand_text=f"{hand:.10g}", true_text=f"{true:.10g}")


def _apart(subject: Subject) -> Subject:
    """The surrogate with an input of its own for each value that it detaches."""
    graph = subject.graph
    known: dict[Node, Node] = {}

    def rule(node: Node, args: Sequence[Node]) -> Node | None:
        if node.op != "detach":
            return None
        if node not in known:
            known[node] = graph.input(f"detached {len(known)}", node.type)
        return known[node]

    new = rewrite(graph, [node for node, _ in subject.outputs], rule=rule)
    return Subject(
        graph, [*subject.inputs, *known.values()],
        [(new[node], cotangent) for node, cotangent in subject.outputs], subject.gradients,
        conditions=subject.conditions, assumptions=subject.assumptions,
        relations=subject.relations,
    )  # fmt: skip


def _edges(apart: Subject) -> list[Node]:
    """What is 0 at the kinks of the surrogate that a report names, but for ties of maxima."""
    graph, found = apart.graph, dict[Node, None]()
    for node in (*bends(apart), *jumps(apart)):
        if node.op in EXTREMES_ALONG:
            continue
        for one in (*kinked(node), *(one for one, _ in changes(node))):
            value = one.value if isinstance(one.value, Node) else float(one.value)
            found[graph.binary("sub", one.point, value)] = None
    return [*found]


def _reverse(pairs: Pairs, wrt: Sequence[Node]) -> list[Node]:
    """The derivative by the records of the ops."""
    found = recorded_vjp([node for node, _ in pairs], [one for _, one in pairs], wrt, _no_rule)
    return [
        node.graph.lift(0.0, node) if one is None else one
        for node, one in zip(wrt, found, strict=True)
    ]


def _no_rule(number: int) -> AppliedRule:
    raise SymgradError("a Function is applied in the surrogate")
