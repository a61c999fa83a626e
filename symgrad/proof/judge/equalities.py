"""Equalities that are stated of the inputs: the proof is about the points that meet them.

In: the equalities of a ``Subject``.  Out: what stands for the inputs in a proof, or why not.

Both gradients are derived in the whole space first.  Then each solved input ``x`` is replaced by a
continuous function of a free tensor that meets the equality whatever that tensor is, and that
changes nothing where ``x`` meets it already: ``x + (1 - x.sum()) / n`` for ``x.sum() == 1``.  So
it takes all values that ``x`` may have, and the points where something does not vanish are a null
set of these where they are one of the free tensors.

The derivative at such a point is that of forward near it, also beside the set.  So nothing that
forward or backward compares may be decided by the equality alone at its very boundary: each
boundary of the program must be a null set of what meets the equality.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, permutations, product

from symgrad.budgets import DOMAIN_WORK, MOST_SOLUTIONS
from symgrad.errors import SymgradError
from symgrad.index.lower import Lowering
from symgrad.ir.dim import Dim
from symgrad.ir.expr import Expr
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ops.record import get
from symgrad.ops.reductions import EXTREMES_ALONG
from symgrad.proof.judge.boundaries import Boundary, changes, inputs_of, kinked
from symgrad.proof.judge.families import Families
from symgrad.proof.judge.reference import gradient_indices
from symgrad.proof.normal.atoms import Undecided
from symgrad.proof.normal.context import Proof
from symgrad.proof.normal.facts import Facts
from symgrad.proof.normal.from_expr import Conversion
from symgrad.proof.normal.poly import Poly
from symgrad.proof.normal.rules import RULES
from symgrad.proof.normal.zero import attempt
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.words.relations import number

FREE = "\N{DEGREE SIGN}"
"""What follows the name of an input in that of the free tensor it is computed from."""
Define = Callable[[str, tuple[Dim, ...]], Expr | None]
_STEPPING = frozenset(
    ("floor", "ceil", "trunc", "round", "mod", "fmod", "floordiv", "argmax", "argmin", "rank",
     "copysign")
)  # fmt: skip
_DISCRETE = ("binary", "one-hot", "unique", "index", "plain")


@dataclass(frozen=True)
class Solution:
    """What stands for the solved inputs, in a graph; or why there is nothing (``problem``)."""

    nodes: Mapping[str, Node]
    problem: str = ""

    def __bool__(self) -> bool:
        return bool(self.nodes)

    def facts(self, facts: Facts) -> Facts:
        """What is declared of an input is declared of what it is computed from."""
        intervals = dict(facts.intervals)
        for name in self.nodes:
            if name in intervals:
                intervals[name + FREE] = intervals[name]
        symmetric = facts.symmetric | {n + FREE for n in self.nodes if n in facts.symmetric}
        return replace(facts, intervals=intervals, symmetric=symmetric)

    def define(self, leaves: Iterable[Node], define: Define) -> Define:
        """Definitions with the solved inputs among them.  ``leaves``: nodes that are read as is."""
        if not self.nodes:
            return define
        graph = next(iter(self.nodes.values())).graph
        lowering = Lowering(graph, (node for node in leaves if node.graph is graph))

        def put(tensor: str, indices: tuple[Dim, ...]) -> Expr | None:
            node = self.nodes.get(tensor)
            return define(tensor, indices) if node is None else lowering.element(node, indices)

        return put

    def moved(self, graph: Graph) -> Solution:
        """The same in another graph."""
        found = {}
        for name, node in self.nodes.items():
            inputs = [one for one in ancestors([node]) if one.op == "input"]
            there = {one: _input(graph, one) for one in inputs}
            found[name] = rewrite(graph, [node], there, named=False)[node]
        return Solution(found)


NOTHING = Solution({})


def _input(graph: Graph, node: Node) -> Node:
    name = str(node.attributes["name"])
    return graph.inputs.get(name) or graph.input(name, node.type)


def solution(subject: Subject, facts: Facts) -> Solution:
    """What stands for the inputs that equalities are solved for."""
    equalities = subject.stated.equalities
    if not equalities:
        return NOTHING
    names = {one.name for one in equalities}
    text = " and ".join(one.text for one in equalities)
    bad = [a.name for a in subject.assumptions if a.name in names and a.kind in _DISCRETE]
    if bad:
        return Solution({}, f"{text}, where {bad[0]} is declared as no free real")
    preferred = {
        one.text: one.solved[::-1] if one.name in facts.intervals else one.solved
        for one in equalities
    }  # fmt: skip
    choices = (
        (order, ways) for order in permutations(equalities)
        for ways in product(*(preferred[one.text] for one in order))
    )  # fmt: skip
    for order, ways in islice(choices, MOST_SOLUTIONS):
        put: dict[Node, Node] = {}
        for one, way in zip(order, ways, strict=True):
            made = rewrite(subject.graph, [way], _of_inputs(way, put), named=False)[way]
            put[subject.by_name[one.name]] = made
        if all(_vanishes(subject, one.node, put, facts) for one in equalities):
            return _named(subject, put)
    return Solution({}, f"it is not shown that {text} can be solved for {', '.join(sorted(names))}")


def _of_inputs(node: Node, put: Mapping[Node, Node]) -> dict[Node, Node]:
    return {one: put.get(one, one) for one in ancestors([node]) if one.op == "input"}


def _vanishes(subject: Subject, node: Node, put: Mapping[Node, Node], facts: Facts) -> bool:
    """Is an equality met by what is put for the inputs, for all values of these?"""
    met = rewrite(subject.graph, [node], _of_inputs(node, put), named=False)[node]
    lowering = Lowering(subject.graph)
    try:
        element = lowering.element(met, gradient_indices(met.shape))
        found = attempt(element, None, facts, budget=DOMAIN_WORK)
    except (SymgradError, Undecided):
        return False
    return found.is_zero and not found.requirements


def _named(subject: Subject, put: Mapping[Node, Node]) -> Solution:
    """The same, of free tensors with names of their own."""
    graph = subject.graph
    free = {
        node: _renamed(graph, node) if node in put else node
        for made in put.values()
        for node in ancestors([made])
        if node.op == "input"
    }
    found = {}
    for node, made in put.items():
        found[str(node.attributes["name"])] = rewrite(graph, [made], free, named=False)[made]
    return Solution(found)


def _renamed(graph: Graph, node: Node) -> Node:
    name = f"{node.attributes['name']}{FREE}"
    return graph.inputs.get(name) or graph.input(name, node.type)


# -- is the program smooth across the set?


def degenerate(subject: Subject, solved: Solution, facts: Facts) -> str:
    """What the program does at a boundary that the equalities hold it on; empty for nothing."""
    names = set(solved.nodes)
    context = Proof(RULES, solved.facts(facts))
    conversion = Conversion(context, solved.define((), lambda *_: None))
    families = Families(context)
    for node in subject.everything.nodes:
        depends = names & inputs_of(*node.args) if node.args else frozenset()
        if not depends:
            continue
        scalar = get(node.op).scalar
        kinks = scalar is not None and bool(scalar.kinks) and not list(kinked(node))
        if kinks or node.op in _STEPPING or (node.op == "cast" and not node.dtype.is_float):
            return f"{node.op} of {', '.join(sorted(depends))}"
        for gap in _gaps(node):
            poly = _poly(subject, conversion, gap)
            if poly is None or not _generic(families, poly):
                return f"{node.op} at its boundary"
    return ""


def _gaps(node: Node) -> Iterator[Node]:
    """What vanishes on the boundaries of a node."""
    found: list[Boundary] = [*kinked(node), *(one for one, _ in changes(node))]
    for one in found:
        if node.op in EXTREMES_ALONG:
            continue  # ties have an obligation of their own
        graph, point = node.graph, one.point
        if isinstance(one.value, Node):
            if one.value.shape == point.shape:
                yield graph.apply("sub", point, one.value)
            else:
                yield graph.binary("sub", point, one.value)
        else:
            yield graph.apply("sub", point, graph.lift(float(one.value), point))
    if node.op == "pow":
        exponent = number(node.args[1])
        if exponent is None or exponent.denominator != 1:
            yield node.args[0]


def _poly(subject: Subject, conversion: Conversion, node: Node) -> Poly | None:
    try:
        element = Lowering(subject.graph).element(node, gradient_indices(node.shape))
        return conversion.poly(element)
    except (SymgradError, Undecided):
        return None


def _generic(families: Families, poly: Poly) -> bool:
    """Does it vanish identically for no sizes and indices?"""
    if poly.constant is not None:
        return poly.constant != 0
    return families.exceptions(poly) == []
