"""Boundaries of forward on which it is continuously differentiable, as a Huber loss is.

In: a ``Subject``, and a gradient that is PROVED almost everywhere.  Out: the boundaries at which
forward has a derivative, which is the gradient: they are no kinks.

On a boundary each choice of forward is left open: it is made as the operands say where they differ,
and arbitrarily where they are equal.  If forward is the same for all these choices, and its
derivative is the gradient for all of them, then each branch beside the boundary has the limits that
the others have.  All boundaries are taken together, since inputs may lie on several of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import chain

from symgrad.errors import SymgradError
from symgrad.ir.dtype import bool_
from symgrad.ir.graph import Node
from symgrad.ir.rewrite import rewrite
from symgrad.ir.types import TensorType
from symgrad.ops.movement import bare
from symgrad.proof.judge.boundaries import Boundary, changes, inputs_of, kinked
from symgrad.proof.judge.goals import Equal
from symgrad.proof.judge.kinks import bends, jumps
from symgrad.proof.judge.nullsets import forced, forced_values
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.oracle.thresholds import bent
from symgrad.proof.report.records import Condition

_ORDERS = ("lt", "le", "gt", "ge")
_CHOOSING = ("abs", "relu", "maximum", "minimum")
_KNOWN = (*_CHOOSING, *_ORDERS, "where")
MOST = 6
"""How many boundaries are taken together."""
_INTERVALS = ("interval", "positive", "nonnegative", "negative", "nonzero")


def smooth(
    subject: Subject, name: str, equal: Equal, opaque: Sequence[Node],
    conditions: Collection[Condition],
) -> frozenset[Boundary]:  # fmt: skip
    """The boundaries that ``kinks`` need not name.

    ``conditions``: of the proof almost everywhere; one on a boundary may rest on no others.
    """
    every = _candidates(subject)
    complete = all(node.op in _KNOWN for node in (*bends(subject), *jumps(subject)))
    left = [
        one for one in every
        if not bent(
            subject, one.point, one.value,
            [(it.point, it.value) for it in every if it != one] if complete else None,
        )
    ]  # fmt: skip
    known = {str(one) for one in conditions}

    def holds(found: Sequence[Boundary]) -> bool:
        with suppress(SymgradError):
            return _holds(subject, name, equal, opaque, found, known)
        return False

    while left and len(left) <= MOST and not holds(left):
        alone = [one for one in left if len(left) > 1 and holds([one])]
        if len(alone) == len(left):
            return frozenset(alone if _independent(subject, alone) else ())
        left = alone
    return frozenset(left if len(left) <= MOST else ())


def _independent(subject: Subject, found: Collection[Boundary]) -> bool:
    """Are they values of one point whose elements take any values, each by itself?

    Then on each boundary there are points beside the others, on both sides, near every point that
    lies on several.  So what is proved of each of them alone has its limits there.
    """
    first, *others = found
    names = {one.name for one in subject.assumptions if one.kind not in _INTERVALS}
    return (
        not subject.relations
        and all(one.point is first.point for one in others)
        and all(isinstance(one.value, Fraction) for one in found)
        and _is_free(first.point, names)
    )


def _is_free(point: Node, tied: Collection[str]) -> bool:
    """Is it an input, or one plus or minus something else?  ``tied``: inputs that do not count."""
    if point.op == "input":
        return point.attributes["name"] not in tied
    if point.op not in ("add", "sub"):
        return False
    return any(
        one.op == "input"
        and one.shape == point.shape
        and not {one.attributes["name"]} & {*tied, *inputs_of(other)}
        for one, other in (point.args, point.args[::-1])
    )


def _candidates(subject: Subject) -> list[Boundary]:
    """The boundaries of choices of forward between reals."""
    choices = (*(node for node in bends(subject) if node.op in (*_CHOOSING, "where")),
               *(node for node in jumps(subject) if node.op in _ORDERS))  # fmt: skip
    found = dict.fromkeys(chain(*(_boundaries(node) for node in choices)))
    return [one for one in found if one.inputs]


def _boundaries(node: Node) -> Iterator[Boundary]:
    if node.op in _ORDERS:
        yield from (one for one, _ in changes(node))
    else:
        yield from kinked(node)


def _holds(
    subject: Subject, name: str, equal: Equal, opaque: Sequence[Node],
    found: Sequence[Boundary], known: Collection[str],
) -> bool:  # fmt: skip
    """Is forward the same, with the gradient as its derivative, however it chooses there?"""
    points = list(dict.fromkeys(chain(*(_points(one) for one in found))))
    outputs = _open(subject, {*found, *points})
    if outputs is None:
        return False
    goals = (
        forced(subject, name, points, opaque, outputs),
        *(forced_values(subject, points, opaque, new, old)
          for (new, _), (old, _) in zip(outputs, subject.outputs, strict=True)),
    )  # fmt: skip
    for goal in goals:
        answer = None if goal is None else equal(goal)
        if answer is None or not answer.equal or {*map(str, answer.conditions)} - {*known}:
            return False
    return True


def _points(one: Boundary) -> Iterator[Boundary]:
    """A boundary as those of what it is the absolute value of."""
    for point, value in ((one.point, one.value), (one.value, one.point)):
        if isinstance(point, Node) and bare(point).op == "abs" and isinstance(value, Node):
            inner = bare(point).args[0]
            if inner.shape == value.shape:
                yield Boundary(inner, value)
                yield Boundary(inner, value.graph.apply("neg", value))
                return
    yield one


def _open(subject: Subject, found: set[Boundary]) -> list[tuple[Node, Node]] | None:
    """The outputs with each choice left open that changes on a boundary.

    None where something else changes there.
    """
    choosing = {
        node for node in subject.forward.nodes
        if node.op != "where" and not found.isdisjoint(kinked(node))
    }  # fmt: skip
    if any(node.op not in (*_ORDERS, *_CHOOSING) for node in choosing):
        return None

    def rule(node: Node, args: Sequence[Node]) -> Node | None:
        return _chosen(node, args) if node in choosing else None

    new: Mapping[Node, Node] = rewrite(
        subject.graph, [node for node, _ in subject.outputs], None, rule, named=False
    )
    return [(new[node], cotangent) for node, cotangent in subject.outputs]


def _chosen(node: Node, args: Sequence[Node]) -> Node:
    """What a node chooses where its operands differ; any of both where they are equal."""
    graph, left = node.graph, args[0]
    right = args[1] if len(args) > 1 else graph.lift(0.0, left)
    if node.op in _ORDERS:
        pair = tuple(
            graph.expand(graph.constant(truth, bool_), node.shape)
            for truth in (node.op in ("gt", "ge"), node.op in ("lt", "le"))
        )  # fmt: skip
    elif node.op == "abs":
        pair = left, graph.apply("neg", left)
    else:
        pair = (right, left) if node.op == "minimum" else (left, right)
    name = f"@{node.op}%{node.index}"
    side = graph.inputs.get(name) or graph.input(name, TensorType(left.dtype, node.shape))
    either = graph.apply("where", graph.binary("gt", side, 0.0), *pair)
    below = graph.apply("where", graph.apply("gt", right, left), pair[1], either)
    return graph.apply("where", graph.apply("gt", left, right), pair[0], below)
