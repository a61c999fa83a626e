"""Gradients by matrices that are declared symmetric, along changes that keep them so.

In: a ``Subject``.  Out: the same in which a matrix is changed symmetrically alone: the gradient is
its own symmetric part, and so is what it is compared with.

The product of a symmetric change with a gradient is that with the symmetric part of the gradient.
Where a matrix is always symmetric, no other change of it occurs, so that a backward is right if its
symmetric part is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from symgrad.ir.assume import Assumption
from symgrad.ir.graph import Graph, Node
from symgrad.ir.rewrite import rewrite
from symgrad.ops.movement import transposed_axes
from symgrad.proof.judge.decide import Judgement, judge
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.report.records import Condition
from symgrad.proof.report.verdict import Verdict

KIND = "directions"


def is_declared(assumptions: Sequence[Assumption], name: str) -> bool:
    """Does the user say that an input is symmetric?"""
    return any(
        one.name == name and one.kind == "symmetric" and not one.taken for one in assumptions
    )


def along_symmetric(subject: Subject, name: str) -> Iterator[Subject]:
    """The subject with symmetric changes of ``name`` alone.

    First as it is, where the derivative of forward is symmetric by itself; then of forward at the
    symmetric part of the matrix, which is the matrix.
    """
    graph, matrix = subject.graph, subject.by_name[name]
    yield subject.changed([name], gradients={name: _symmetric_part(graph, subject.gradients[name])})
    roots = [node for pair in subject.outputs for node in pair]
    roots += [*subject.inputs, subject.gradients[name]]
    part = _symmetric_part(graph, matrix)
    part.name = part.name or name
    new = rewrite(graph, roots, {matrix: part}, named=False)
    gradient = _symmetric_part(graph, new[subject.gradients[name]])
    yield subject.changed(
        [name], graph=graph, new={**new, matrix: matrix}, gradients={name: gradient}
    )


def _symmetric_part(graph: Graph, node: Node) -> Node:
    turned = graph.apply("permute", node, axes=transposed_axes(node.rank))
    return graph.binary("mul", graph.binary("add", node, turned), 0.5)


def judge_declared(subject: Subject, **given: Any) -> dict[str, Judgement]:
    """``judge``; a refuted gradient by a matrix declared symmetric is judged along such changes.

    Where these neither prove nor refute it, it is undecided: no other change of it occurs.
    """
    found = judge(subject, **given)
    for name, one in found.items():
        if one.verdict is Verdict.REFUTED and is_declared(subject.assumptions, name):
            for other in along_symmetric(subject, name):
                judged = judge(other, **given)[name]
                if judged.verdict is Verdict.PROVED:
                    conditions = (*judged.conditions, changes(name))
                    found[name] = replace(judged, conditions=conditions, along=other)
                    break
            else:
                if judged.verdict is not Verdict.REFUTED:
                    reason = f"along {changes(name).text}: {judged.reason}"
                    found[name] = replace(judged, reason=reason)
    return found


def changes(name: str) -> Condition:
    """What a gradient is right for."""
    return Condition(KIND, f"changes of {name} that keep it symmetric")
