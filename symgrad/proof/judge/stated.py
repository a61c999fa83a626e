"""What stated relations between inputs give a proof: facts, conditions, contradictions.

In: the relations of a ``Subject``.  Out: facts for the normal form, what has to be printed.

``P > 0`` is an open set, near each point of which almost all points are in it.  So what holds
almost everywhere holds almost everywhere on it.  ``P >= 0`` is taken with its boundary where each
point of that is a limit of points with ``P > 0`` and nothing else closed is declared; otherwise it
stands for ``P > 0``, and ``P == 0`` is printed as left out.  [rule: stated-relation]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import isqrt

from symgrad.errors import SymgradError
from symgrad.index.lower import Lowering
from symgrad.ir.dim import Axis, Dim
from symgrad.ir.expr import Expr
from symgrad.ir.function import Relation
from symgrad.ir.graph import Node
from symgrad.ops.movement import bare
from symgrad.proof.judge.boundaries import both_sides, changes
from symgrad.proof.judge.ranges import Ranges
from symgrad.proof.normal.facts import Facts
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.report.records import Condition

OPEN = ">"
_NULL_SET = "null set"


def relations(subject: Subject) -> list[Relation]:
    """The relations of a subject as a proof uses them, with what follows from them."""
    left_out = {one.text for one in _thin(subject)}
    found = [replace(one, kind=OPEN) if one.text in left_out else one for one in subject.relations]
    return [part for one in found if one.kind != "==" for part in (one, *_implied(one))]


def exclusions(subject: Subject) -> list[Condition]:
    """What is left out of closed relations."""
    return [Condition(_NULL_SET, one.end) for one in _thin(subject)]


def _thin(subject: Subject) -> list[Relation]:
    """The closed relations of whose boundary it is not shown that it is a limit of their inside."""
    closed = [one for one in subject.relations if one.kind == ">="]
    if not closed:
        return []
    others = any(one.kind == "==" for one in subject.relations) or any(
        one.kind == "nonnegative"
        or (one.kind == "interval" and not (one.low_open and one.high_open))
        for one in subject.assumptions
    )  # fmt: skip
    if len(closed) > 1 or others:
        return closed
    return [one for one in closed if not _regular(one.node)]


def _regular(node: Node) -> bool:
    zero = node.graph.lift(0.0, node)
    found = [boundary for boundary, _ in changes(node.graph.apply("gt", node, zero))]
    return bool(found) and all(map(both_sides, found))


def _implied(one: Relation) -> Iterator[Relation]:
    """What a bound says of what is bounded, and of its parts."""
    for part in _parts(one):
        yield part
        yield from _implied(part)


def _parts(one: Relation) -> Iterator[Relation]:
    """``c - sqrt(P) > 0`` says ``c^2 - P > 0``; ``c - |P| > 0`` says so of ``P`` and ``-P``.

    The greatest is below a bound where all are, and a sum of what is not negative where each is.
    """
    if one.kind in ("!=", "==") or one.node.op != "sub":
        return
    graph, (bound, inner) = one.node.graph, one.node.args
    limit, source = _number(bound), bare(inner)
    if limit is None and (least := _number(inner)) is not None:
        if bare(bound).op in ("amin", "min"):
            of = bare(bound).args[0]
            yield replace(one, node=graph.apply("sub", of, graph.lift(float(least), of)))
    elif limit is not None and limit >= 0 and source.args:
        for node in _below(limit, source):
            yield replace(one, node=node)


def _below(limit: Fraction, source: Node) -> Iterator[Node]:
    """What is positive where a node is less than a number that is not negative."""
    graph, of = source.graph, source.args[0]
    same = graph.lift(float(limit), of)
    if source.op in ("sqrt", "root"):
        yield from _within(limit * limit, of)
    elif source.op == "square" or _is_square(source):
        yield from _within(_root(limit), graph.apply("abs", of))
    elif source.op == "abs":
        yield graph.apply("sub", same, of)
        yield graph.apply("add", same, of)
    elif source.op in ("amax", "max"):
        yield graph.apply("sub", same, of)
    elif source.op == "sum" and _not_negative(of):
        axes = source.attributes["axes"]
        for left in axes if len(axes) > 1 else ():
            part = graph.apply("sum", of, axes=tuple(axis for axis in axes if axis != left))
            yield graph.apply("sub", graph.lift(float(limit), part), part)
        if len(axes) == 1:
            yield graph.apply("sub", same, of)


def _within(limit: Fraction | None, of: Node) -> Iterator[Node]:
    """``limit - of``, where the limit is a number that can be written."""
    if limit is not None and Fraction(repr(float(limit))) == limit:
        yield of.graph.apply("sub", of.graph.lift(float(limit), of), of)


def _is_square(node: Node) -> bool:
    return node.op == "mul" and node.args[0] is node.args[1]


def _not_negative(node: Node) -> bool:
    """Is it not negative, by interval arithmetic?"""
    return Ranges({}, {}).of(node).nonnegative


def _root(value: Fraction) -> Fraction | None:
    """The rational root of a number."""
    top, bottom = isqrt(value.numerator), isqrt(value.denominator)
    exact = top * top == value.numerator and bottom * bottom == value.denominator
    return Fraction(top, bottom) if exact else None


def _number(node: Node) -> Fraction | None:
    source = bare(node)
    if source.op != "constant" or not source.dtype.is_float:
        return None
    value = source.attributes["value"].value
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def with_relations(
    facts: Facts, known: Sequence[Relation], leaves: Mapping[str, Node]
) -> Facts:  # fmt: skip
    """Facts with the relations as expressions.  ``leaves``: nodes that are read as they are."""
    found = list(facts.stated)
    for one in known:
        if one.kind != "!=":
            found += _written(one, leaves)
    return replace(facts, stated=tuple(found))


def _written(one: Relation, leaves: Mapping[str, Node]) -> Iterable[tuple[Expr, str]]:
    at = tuple(
        Dim.of(0) if size == 1 else Dim.of(Axis(f"@{axis}", size))
        for axis, size in enumerate(one.node.shape)
    )
    try:
        return [(Lowering(one.node.graph, leaves.values()).element(one.node, at), one.kind)]
    except SymgradError:
        return []
