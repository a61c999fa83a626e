"""What the ways through a program give: is it the same, and if not, all of it in one case.

In: ways with their answers.  Out: whether two are one; a case that is each of them in its turn.

A case of several ways has ``where(answer, one, other)`` for what they give.  Where a mask selects
nothing it is False there, and what is chosen by it is what remains: ``if (x > 0).all()`` and
``where(x > 0, a, b)`` in backward are seen to go together.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from symgrad.errors import Location, SymgradError
from symgrad.ir.dtype import bool_
from symgrad.ir.expr import OPPOSITE, TURNED
from symgrad.ir.function import FunctionCase
from symgrad.ir.graph import Graph, Node
from symgrad.ir.rewrite import rewrite
from symgrad.ops.movement import bare
from symgrad.ops.record import get

_KEEPING = ("expand", "reshape", "permute", "slice", "detach", "cast", "sum", "any", "neg")
"""Operations whose result is False, or 0, where that is all they get."""
_SPREADING = ("expand", "reshape", "permute", "slice", "detach", "all", "any")
"""Operations whose result is True where that is all they get."""
Answers = tuple[bool, ...]


class Choice(NamedTuple):
    """An answer to a question about elements: is ``node`` true, or does it select anything?

    ``is_value``: it is one of several, whether a number is this or that one.
    """

    node: Node
    holds: bool
    location: Location | None
    is_value: bool = False

    @property
    def of_mask(self) -> bool:
        """Is it about what a mask selects?"""
        return self.node.rank > 0


class Way(NamedTuple):
    """What the program does under answers: a case, or an error; ``raises``: its own."""

    choices: Sequence[Choice]
    case: FunctionCase | None
    error: SymgradError | None
    raises: bool

    @property
    def answers(self) -> Answers:
        """The answers on the way."""
        return tuple(one.holds for one in self.choices)


def same(case: FunctionCase, way: Way) -> bool:
    """Does a way give what a case gives, where its masks select nothing?"""
    other = way.case
    if other is None or _shape(case) != _shape(other):
        return False
    empty = [one.node for one in way.choices if one.of_mask and not one.holds]
    graph = Graph()
    return _results(case, empty, graph) == _results(other, empty, graph)


def _shape(case: FunctionCase) -> object:
    """What two cases have to share beside nodes."""
    given = tuple(node is not None for node in case.cotangents)
    usable = tuple(gradient.problem is None for gradient in case.gradients)
    types = [node.type for node in case.outputs]
    return (
        case.changed, case.materializes, case.problem is None, given, usable, types, case.selected
    )  # fmt: skip


def _results(case: FunctionCase, empty: Sequence[Node], graph: Graph) -> list[Node | None]:
    """The outputs and gradients of a case with False for the masks."""
    nodes = [*case.outputs, *(gradient.node for gradient in case.gradients)]
    given = [node for node in nodes if node is not None]
    absent = {rewrite(graph, [mask], named=False)[mask]: False for mask in empty}
    cotangents = {
        node: _input(graph, f"cotangent {place}", node)
        for place, node in enumerate(case.cotangents) if node is not None
    }  # fmt: skip
    whole = rewrite(graph, given, cotangents, named=False)
    folded = rewrite(
        graph, [whole[node] for node in given], rule=_Folding(absent).rule, named=False
    )
    return [None if node is None else folded[whole[node]] for node in nodes]


def _input(graph: Graph, name: str, like: Node) -> Node:
    return graph.inputs[name] if name in graph.inputs else graph.input(name, like.type)


# -- ways that give something else, in one case


def joined(case: FunctionCase, ways: Sequence[Way]) -> FunctionCase | None:
    """The case that gives what each way gives in its turn; None where they do not fit together.

    ``ways``: all ways through the program; ``case`` is that of one.
    """
    cases = [way.case for way in ways if not way.raises]
    if not all(other is not None and _fits(case, other) for other in cases):
        return None
    graph = Graph()
    given = [node for node in case.cotangents if node is not None]
    stated = [node for one in case.relations for node in one.nodes]
    stated += [one.node for one in case.demanded]
    base = rewrite(graph, [*case.inputs, *given, *stated], named=False)
    moved = [_Moved.of(graph, base, case, way) for way in ways]
    found = _either(moved, 0)
    if found is None:
        return None
    taken = [one for one in moved if not one.way.raises]
    _name(taken)
    count = len(case.outputs)
    gradients = zip(case.gradients, found[count::2], found[count + 1 :: 2], strict=True)
    saved = [one.saved for one in taken]
    return replace(
        case,
        graph=graph,
        inputs=tuple(dict.fromkeys(node for one in taken for node in one.inputs)),
        outputs=tuple(node for node in found[:count] if node is not None),
        cotangents=tuple(None if node is None else base[node] for node in case.cotangents),
        gradients=tuple(
            replace(one, node=node, returned=returned) for one, node, returned in gradients
        ),
        saved=tuple(node for node in saved[0] if all(node in one for one in saved)),
        plain=tuple(dict.fromkeys(name for other in cases if other for name in other.plain)),
        relations=tuple(one.put(base) for one in case.relations),
        demanded=tuple(replace(one, node=base[one.node]) for one in case.demanded),
        ways=tuple(replace(way.case, chosen=way.answers) for way in ways
                   if way.case is not None and not way.raises),
    )  # fmt: skip


def _name(ways: Sequence[_Moved]) -> None:
    """What has one name on all ways keeps it."""
    for node, name in ways[0].names.items():
        if all(one.names.get(node) == name for one in ways):
            node.name = name


def _fits(case: FunctionCase, other: FunctionCase) -> bool:
    """Can what two cases give be chosen between, node by node?"""

    def kind(one: FunctionCase) -> object:
        stated = [relation.text for relation in one.relations]
        return _shape(one), stated, [gradient.input for gradient in one.gradients]

    whole = all(
        one.problem is None and one.record is None and not one.unwritten
        and all(gradient.problem is None for gradient in one.gradients)
        for one in (case, other)
    )  # fmt: skip
    pairs = zip(case.gradients, other.gradients, strict=False)
    return whole and case.expanded is other.expanded and kind(case) == kind(other) and all(
        mine is None or its is None or mine.type == its.type
        for one, two in pairs
        for mine, its in ((one.node, two.node), (one.returned, two.returned))
    )  # fmt: skip


class _Moved(NamedTuple):
    """A way in the graph of all: its questions, its inputs, and what it saves and gives.

    ``given``: the outputs, then each gradient and what was returned for it.
    """

    way: Way
    choices: Sequence[Choice]
    inputs: Sequence[Node]
    saved: Collection[Node]
    given: Sequence[Node | None]
    names: Mapping[Node, str]

    @classmethod
    def of(
        cls, graph: Graph, base: Mapping[Node, Node], case: FunctionCase, way: Way
    ) -> _Moved:  # fmt: skip
        """``base``: what stands in ``graph`` for the cotangents of ``case``."""
        own, known = way.case, dict[Node, Node]()
        given: list[Node | None] = []
        if own is not None:
            pairs = zip(own.cotangents, case.cotangents, strict=True)
            known = {one: base[two] for one, two in pairs if one is not None and two is not None}
            given += [*own.outputs]
            given += [node for one in own.gradients for node in (one.node, one.returned)]
        kept = [*own.inputs, *own.saved] if own is not None else []
        asked = [one.node for one in way.choices]
        roots = [node for node in (*asked, *kept, *given) if node is not None]
        new = rewrite(graph, roots, known, named=False)
        return cls(
            way, [one._replace(node=new[one.node]) for one in way.choices],
            [] if own is None else [new[node] for node in own.inputs],
            [] if own is None else [new[node] for node in own.saved],
            [None if node is None else new[node] for node in given],
            {made: node.name for node, made in new.items() if node.name},
        )  # fmt: skip


def _either(ways: Sequence[_Moved], depth: int) -> list[Node | None] | None:
    """What ways give that are the same up to a question; None where all raise."""
    first = ways[0]
    if len(ways) == 1 and len(first.choices) == depth:
        return None if first.way.raises else list(first.given)
    question = first.choices[depth].node
    yes, no = (
        _either([one for one in ways if one.choices[depth].holds is holds], depth + 1)
        for holds in (True, False)
    )
    if yes is None or no is None:
        return no if yes is None else yes
    untrue = dict(_implied(question, False))
    if _folded(yes, untrue, values=True) == _folded(no, untrue, values=True):
        return yes
    if not question.rank:
        yes = _folded(yes, dict(_implied(question, True)))
    asked = question.graph.apply("any", question, axes=tuple(range(question.rank))) if (
        question.rank
    ) else question  # fmt: skip
    pairs = zip(yes, _folded(no, untrue), strict=True)
    return [_chosen(asked, *pair) for pair in pairs]


def _folded(
    nodes: Sequence[Node | None], known: Mapping[Node, bool], *, values: bool = False
) -> list[Node | None]:
    """Nodes where this is known of masks; ``values``: of numbers that are compared, as well."""
    roots = [node for node in nodes if node is not None]
    if not roots:
        return list(nodes)
    rule = _Folding(known, values=values).rule
    new = rewrite(roots[0].graph, roots, rule=rule, named=False)
    return [None if node is None else new[node] for node in nodes]


def _chosen(asked: Node, one: Node | None, other: Node | None) -> Node | None:
    """One or the other; no gradient is one of zeros."""
    if one is other:
        return one
    like = one if one is not None else other
    assert like is not None
    pair = (node if node is not None else _full(like, 0) for node in (one, other))
    return like.graph.apply("where", like.graph.expand(asked, like.shape), *pair)


# -- what is left where masks select nothing, or everything


class _Folding:
    """What chosen masks are is known, and what is not chosen by them is left out."""

    def __init__(self, known: Mapping[Node, bool], *, values: bool = False) -> None:
        self.known, self.zeros, self.ones = known, set[Node](), set[Node]()
        self.values = _values(known) if values else {}

    def rule(self, node: Node, args: Sequence[Node]) -> Node | None:
        """What stands for a node whose arguments are these."""
        if node in self.known:
            return self._made(node, self.known[node])
        if node in self.values:
            value = self.values[node]
            return self._made(node, 0) if value == 0 else _full(node, value)
        if not args:
            zero = node.op == "constant" and not node.attributes["value"].value
            return self._made(node, 0) if zero else None
        first = args[0]
        if node.op == "where" and (first in self.zeros or first in self.ones):
            return args[1 if first in self.ones else 2]
        if node.op == "logical_not" and (first in self.zeros or first in self.ones):
            return self._made(node, first in self.zeros)
        if node.op in _KEEPING and first in self.zeros:
            return self._made(node, 0)
        if node.op in _SPREADING and node.dtype == bool_ and first in self.ones:
            return self._made(node, 1)
        if self.values and _multiplies(node) and any(arg in self.zeros for arg in args):
            return self._made(node, 0)
        return None

    def _made(self, node: Node, value: int | bool) -> Node:
        made = _full(node, value)
        if node.dtype == bool_ or not value:
            (self.ones if value else self.zeros).add(made)
        return made


def _multiplies(node: Node) -> bool:
    return node.op == "mul" or get(node.op).kind == "contraction"


def _full(node: Node, value: float | bool) -> Node:
    graph = node.graph
    number = bool(value) if node.dtype == bool_ else float(value) if node.dtype.is_float else value
    return graph.expand(graph.constant(number, node.dtype), node.shape)


def _implied(node: Node, holds: bool) -> Iterator[tuple[Node, bool]]:
    """What is known of masks, over the reals, where one is the same everywhere."""
    yield node, holds
    if node.op == "logical_not":
        yield from _implied(node.args[0], not holds)
    elif node.op == ("logical_and" if holds else "logical_or"):
        for arg in node.args:
            yield from _implied(arg, holds)
    elif node.op in OPPOSITE:
        left, right = node.args
        apply = node.graph.apply
        turned = TURNED[node.op]
        yield apply(OPPOSITE[node.op], left, right), not holds
        yield apply(turned, right, left), holds
        yield apply(OPPOSITE[turned], right, left), not holds


def _values(known: Mapping[Node, bool]) -> dict[Node, float]:
    """The numbers that nodes equal."""
    found: dict[Node, float] = {}
    for node, holds in known.items():
        if node.op in ("eq", "ne") and holds == (node.op == "eq"):
            left, right = node.args
            number = bare(right)
            value = number.attributes["value"].value if number.op == "constant" else math.inf
            if math.isfinite(value) and bare(left).op != "constant":
                found[left] = value
    return found
