"""Small regions that thresholds such as 1e-12 leave: a gradient is proved outside of them.

In: a subject.  Out: the same as it is outside of all such regions, and the regions to print.

``x / x.norm().clamp(min=1e-12)`` and ``where(x.abs() < 1e-8, 0, sin(x) / x)`` compare a point p
with a number v next to 0.  Outside of ``p.abs() <= v`` it is known what p > v is: it is p > 0.  So
forward and backward are there, and near there, what they are with comparisons with 0 in place of
those with v, and ``max(p, v)`` is p where p > 0 and v elsewhere.  What is proved of these holds
outside of the regions, which are printed.

The number may be a plain argument that is positive (``eps=1e-3``), beside a p that is not negative:
it is not known how large the region is, which is printed as ``except where p <= eps``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from symgrad.budgets import LARGEST_LIMIT, LARGEST_TINY
from symgrad.ir.assume import Assumption
from symgrad.ir.dtype import bool_
from symgrad.ir.graph import Graph, Node, input_names
from symgrad.ir.rewrite import rewrite
from symgrad.ops.movement import bare
from symgrad.proof.judge.boundaries import inputs_of, integral
from symgrad.proof.judge.equality import facts_of
from symgrad.proof.judge.ranges import Ranges, of_inputs
from symgrad.proof.judge.ranges import point as exactly
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.report.records import Condition
from symgrad.proof.words.code import NoSpelling
from symgrad.proof.words.relations import number, related

PLAIN = "plain"
KIND = "nonzero"
"""The kind of the condition that leaves a region out: ``except where``."""
_ORDERED = {"gt": "gt", "ge": "gt", "lt": "lt", "le": "lt"}
_EXTREMES = ("maximum", "minimum")


@dataclass(frozen=True)
class Outside:
    """A subject as it is outside of some regions, and these."""

    subject: Subject
    regions: tuple[Condition, ...]


def outside_of_tiny(subject: Subject, name: str, *, any_limit: bool = False) -> Outside | None:
    """The subject of one gradient outside of small regions; None where it has none.

    ``any_limit``: of those that limits of norms leave, however large.
    """
    facts = facts_of(subject.assumptions, subject.sampler.uses, subject.conditions)
    ranges = Ranges(of_inputs(subject, facts), facts.least_sizes)
    found = {
        node: place
        for node in subject.everything.nodes
        if (place := _place(node, ranges, subject, any_limit=any_limit)) is not None
        and _is_of_inputs(node.args[1 - place], subject)
    }
    if not found or subject.stated.equalities:
        return None
    try:
        regions = dict.fromkeys(_regions(subject, found.items(), ranges))
    except NoSpelling:
        return None
    graph = Graph()

    def rule(node: Node, args: Sequence[Node]) -> Node | None:
        if node not in found:
            return None
        place = found[node]
        point = args[1 - place]
        if ranges.of(node.args[1 - place]).positive:
            if node.op in _ORDERED:
                holds = (place == 1) == (_ORDERED[node.op] == "gt")
                return graph.expand(graph.constant(holds, bool_), node.shape)
            return point if node.op == "maximum" else args[place]
        if node.op in _ORDERED:
            sides = (0.0, point) if place == 0 else (point, 0.0)
            return graph.binary(_ORDERED[node.op], *sides)
        above = graph.binary("gt", point, 0.0)
        branches = (point, args[place]) if node.op == "maximum" else (args[place], point)
        return graph.apply("where", above, *branches)

    roots = [*subject.inputs, *(node for pair in subject.outputs for node in pair)]
    new = rewrite(graph, [*roots, subject.gradients[name]], None, rule)
    return Outside(subject.changed([name], graph=graph, new=new), tuple(regions))


def has_limits(subject: Subject) -> bool:
    """Is anything compared with a plain argument?"""
    return any(
        node.op in (*_ORDERED, *_EXTREMES) and any(_plain(arg, subject) for arg in node.args)
        for node in subject.everything.nodes
    )


def _place(node: Node, ranges: Ranges, subject: Subject, *, any_limit: bool) -> int | None:
    """Which operand of a comparison, or of an extreme, is a number next to 0; None: none is."""
    if node.op not in (*_ORDERED, *_EXTREMES) or not node.args[0].dtype.is_float:
        return None
    numbers = [number(arg) for arg in node.args]
    for place, one in enumerate(numbers):
        point = node.args[1 - place]
        nonnegative = ranges.of(point).nonnegative
        if one is None:
            plain = _plain(node.args[place], subject)
            is_limit = plain is not None and (any_limit or 0 < plain.usual <= LARGEST_LIMIT)
            near = is_limit and nonnegative and ranges.of(node.args[place]).positive
        else:
            is_norm = bare(point).op in ("root", "sqrt", "sum") and nonnegative
            most = LARGEST_LIMIT if is_norm else LARGEST_TINY
            near = 0 < abs(one) <= most or (any_limit and is_norm and one > 0)
        if near and numbers[1 - place] is None and _plain(point, subject) is None:
            return None if integral(point) else place
    return None


def _plain(node: Node, subject: Subject) -> Assumption | None:
    """What says that it is a plain argument; None where it is none."""
    node = bare(node)
    while node.op == "cast":
        node = bare(node.args[0])
    name = node.attributes["name"] if node.op == "input" else ""
    known = (one for one in subject.assumptions if one.name == name and one.kind == PLAIN)
    return next(known, None)


def _is_of_inputs(point: Node, subject: Subject) -> bool:
    """Does it depend on inputs of forward alone, and on real ones?"""
    names = {*input_names([point])}
    return bool(inputs_of(point)) and names <= subject.by_name.keys()


def _regions(
    subject: Subject, found: Iterable[tuple[Node, int]], ranges: Ranges
) -> Iterable[Condition]:
    """``p <= v`` for a p that is not negative, ``p.abs() <= v`` for another one.

    None for a p that is above v everywhere.
    """
    for node, place in found:
        point, value = node.args[1 - place], number(node.args[place])
        if value is not None and (ranges.of(point) + exactly(-abs(value))).positive:
            continue
        if not ranges.of(point).nonnegative:
            point = subject.graph.apply("abs", point)
        said = related(point, "<=", node.args[place] if value is None else abs(value))
        yield Condition(KIND, said.text, code=said.code)


_REGION = re.compile(r"(.+) <= ([-+.e\d]+|[^\W\d]\w*)")
_EDGE = re.compile(r"(.+) == ([-+.e\d]+)")


def without_inside(found: Iterable[Condition], printed: Iterable[Condition]) -> list[Condition]:
    """Without the kinks and null sets that lie in a region that is printed."""
    regions = [
        (match[1], match[2]) for one in printed
        if one.kind == KIND and (match := _REGION.fullmatch(one.code))
    ]  # fmt: skip
    return [one for one in found if not any(_is_inside(one, *region) for region in regions)]


def _is_inside(condition: Condition, point: str, limit: str) -> bool:
    """``limit``: a number, or the name of a positive one."""
    if condition.code in (f"{point} == {limit}", f"{limit} == {point}"):
        return True
    edge = _EDGE.fullmatch(condition.code)
    if edge is None or abs(float(edge[2])) > (0 if limit.isidentifier() else float(limit)):
        return False
    methods = ("abs", "sqrt") if float(edge[2]) == 0 else ("abs",)
    written = (edge[1], f"({edge[1]})")
    return point in (edge[1], *(f"{one}.{method}()" for one in written for method in methods))
