"""Small regions that thresholds such as 1e-12 leave: a gradient is proved outside of them.

In: a subject.  Out: the same as it is outside of all such regions, and the regions to print.

``x / x.norm().clamp(min=1e-12)`` and ``where(x.abs() < 1e-8, 0, sin(x) / x)`` compare a point p
with a number v next to 0.  Outside of ``p.abs() <= v`` it is known what p > v is: it is p > 0.  So
forward and backward are there, and near there, what they are with comparisons with 0 in place of
those with v, and ``max(p, v)`` is p where p > 0 and v elsewhere.  What is proved of these holds
outside of the regions, which are printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from symgrad.budgets import LARGEST_TINY
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.proof.judge.boundaries import inputs_of, integral
from symgrad.proof.judge.equality import facts_of
from symgrad.proof.judge.ranges import Ranges, of_inputs
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.report.records import Condition
from symgrad.proof.words.code import NoSpelling
from symgrad.proof.words.relations import number, related

KIND = "nonzero"
"""The kind of the condition that leaves a region out: ``except where``."""
_ORDERED = {"gt": "gt", "ge": "gt", "lt": "lt", "le": "lt"}
_EXTREMES = ("maximum", "minimum")


@dataclass(frozen=True)
class Outside:
    """A subject as it is outside of some regions, and these."""

    subject: Subject
    regions: tuple[Condition, ...]


def outside_of_tiny(subject: Subject, name: str) -> Outside | None:
    """The subject of one gradient outside of small regions; None where it has none."""
    found = {
        node: (place, value)
        for node in subject.everything.nodes
        if (place := _place(node)) is not None
        and _is_of_inputs(node.args[1 - place], subject)
        and (value := number(node.args[place])) is not None
    }
    if not found or subject.stated.equalities:
        return None
    try:
        regions = dict.fromkeys(_regions(subject, found.items()))
    except NoSpelling:
        return None
    graph = Graph()

    def rule(node: Node, args: Sequence[Node]) -> Node | None:
        if node not in found:
            return None
        place, _ = found[node]
        point = args[1 - place]
        if node.op in _ORDERED:
            sides = (0.0, point) if place == 0 else (point, 0.0)
            return graph.binary(_ORDERED[node.op], *sides)
        above = graph.binary("gt", point, 0.0)
        branches = (point, args[place]) if node.op == "maximum" else (args[place], point)
        return graph.apply("where", above, *branches)

    roots = [*subject.inputs, *(node for pair in subject.outputs for node in pair)]
    new = rewrite(graph, [*roots, subject.gradients[name]], None, rule)
    return Outside(subject.changed([name], graph=graph, new=new), tuple(regions))


def _place(node: Node) -> int | None:
    """Which operand of a comparison, or of an extreme, is a number next to 0; None: none is."""
    if node.op not in (*_ORDERED, *_EXTREMES) or not node.args[0].dtype.is_float:
        return None
    numbers = [number(arg) for arg in node.args]
    for place, one in enumerate(numbers):
        if one is not None and numbers[1 - place] is None and 0 < abs(one) <= LARGEST_TINY:
            return None if integral(node.args[1 - place]) else place
    return None


def _is_of_inputs(point: Node, subject: Subject) -> bool:
    """Does it depend on inputs of forward alone, and on real ones?"""
    names = {one.attributes["name"] for one in ancestors([point]) if one.op == "input"}
    return bool(inputs_of(point)) and names <= subject.by_name.keys()


def _regions(
    subject: Subject, found: Iterable[tuple[Node, tuple[int, Fraction]]]
) -> Iterable[Condition]:
    """``p <= v`` for a p that is not negative, ``p.abs() <= v`` for another one."""
    facts = facts_of(subject.assumptions, subject.sampler.uses, subject.conditions)
    ranges = Ranges(of_inputs(subject, facts), facts.least_sizes)
    for node, (place, value) in found:
        point = node.args[1 - place]
        if not ranges.of(point).nonnegative:
            point = subject.graph.apply("abs", point)
        said = related(point, "<=", abs(value))
        yield Condition(KIND, said.text, code=said.code)


_REGION = re.compile(r"(.+) <= ([-+.e\d]+)")
_EDGE = re.compile(r"(.+) == ([-+.e\d]+)")


def without_inside(found: Iterable[Condition], printed: Iterable[Condition]) -> list[Condition]:
    """Without the kinks and null sets that lie in a region that is printed."""
    regions = [
        (match[1], float(match[2])) for one in printed
        if one.kind == KIND and (match := _REGION.fullmatch(one.code))
    ]  # fmt: skip
    return [one for one in found if not any(_is_inside(one, *region) for region in regions)]


def _is_inside(condition: Condition, point: str, most: float) -> bool:
    edge = _EDGE.fullmatch(condition.code)
    if edge is None or abs(float(edge[2])) > most:
        return False
    methods = ("abs", "sqrt") if float(edge[2]) == 0 else ("abs",)
    written = (edge[1], f"({edge[1]})")
    return point in (edge[1], *(f"{one}.{method}()" for one in written for method in methods))
