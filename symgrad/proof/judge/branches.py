"""Branch by branch: what is proved where each comparison of an element is decided.

In: a subject that computes each element from those at its own place.  Out: the same, once for each
way to decide its comparisons, with what holds there; and where what a proof demands is demanded.
Where no derivative of the whole is, since a branch that is not taken has none, a wrong gradient
is refuted in a branch.

``where(c, a, b)`` is a where c holds and b elsewhere, ``relu(p)`` is p or 0, and so on.  A branch
that is not taken demands nothing then, and is not differentiated.  The points with ``p > 0`` and
those with ``p < 0`` are open sets; between them lies a null set, since p is an input with a sign,
or that plus or minus something that does not depend on it.  So what holds almost everywhere on
each of them holds almost everywhere.  [rule: where] [rule: stated-relation]
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from symgrad.budgets import MOST_BRANCHES
from symgrad.errors import SymgradError
from symgrad.ir.dtype import bool_
from symgrad.ir.expr import OPPOSITE, TURNED
from symgrad.ir.function import Relation
from symgrad.ir.graph import Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ops.logic import COMPARISONS
from symgrad.ops.movement import bare
from symgrad.ops.record import get
from symgrad.proof.judge.boundaries import Boundary
from symgrad.proof.judge.defined import Guards, atoms, demands, guarded
from symgrad.proof.judge.equality import Equality, domains
from symgrad.proof.judge.ranges import Ranges, number
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.report.records import Condition
from symgrad.proof.words.code import NoSpelling
from symgrad.proof.words.relations import related

Prove = Callable[[Subject], Equality]
Decided = Mapping[Node, bool]
"""Nodes that are positive (True) or negative (False), all elements of them."""


@dataclass(frozen=True)
class Branches:
    """What is proved branch by branch.

    ``conditions``: under which it holds, but for those on domains.  ``demanding``: may a domain
    count anywhere?  ``region``: where, as what conditions of a ``where`` are there.
    ``edges``: what lies between branches; ``whole``: all comparisons are decided in each.
    """

    conditions: tuple[Condition, ...]
    demanding: bool
    region: Guards
    edges: tuple[Boundary, ...] = ()
    whole: bool = False

    def there(self, condition: Condition) -> Condition | None:
        """A condition on a domain, where it counts; None for nowhere.  Raises NoSpelling."""
        if not self.demanding:
            return None
        said = [_said(node, value) for node, value in self.region]
        where = " and ".join(text for text, _ in said)
        codes = [code for _, code in said]
        code = f"({condition.code}) | ~({' & '.join(f'({one})' for one in codes)})"
        known = condition.code and all(codes)
        text = f"{condition.text} where {where}"
        return replace(condition, text=text, code=code if known else "", about="")


def branch_by_branch(subject: Subject, name: str, prove: Prove, *, proved: bool) -> Branches | None:
    """Is the gradient of an input proved in each branch?  None where it is not, or has none.

    ``proved``: it is proved as a whole, so that what is not proved in a branch is demanded there.
    """
    leaves = _leaves(subject.changed([name]), name)
    if len(leaves) < 2:
        return None
    conditions: dict[Condition, None] = {}
    demanding: list[Guards] = []
    for leaf in leaves:
        found = prove(leaf.subject)
        if not found.equal:
            if not proved:
                return None
            demanding.append(leaf.taken)
            continue
        met = _met(leaf)
        for one in found.conditions:
            if one.kind != "domain":
                conditions[one] = None
            elif one.text not in met:
                demanding.append(leaf.taken)
    edges = dict.fromkeys(Boundary(point, Fraction(0)) for leaf in leaves for point in leaf.apart)
    region = _region([leaf.taken for leaf in leaves], demanding)
    if not _demanded_in(subject, region):
        region = frozenset()
    whole = all(leaf.whole for leaf in leaves)
    return Branches(tuple(conditions), bool(demanding), region, tuple(edges), whole)


def parted(subject: Subject, name: str) -> list[Subject]:
    """The branches of a subject, where there are several: what is not taken has no derivative."""
    leaves = _leaves(subject.changed([name]), name)
    return [leaf.subject for leaf in leaves] if len(leaves) > 1 else []


def _demanded_in(subject: Subject, region: Guards) -> bool:
    """Is what demands a domain evaluated in a region alone?"""
    known = Ranges({}, {})
    return not any(
        kind in ("positive", "nonnegative") and not known.of(operand).positive
        for node, ways in guarded(subject.everything.results).items()
        if not all(region <= guards for guards in ways)
        for kind, operand in demands(node)
    )


def _region(every: Sequence[Guards], demanding: Sequence[Guards]) -> Guards:
    """What the branches have in common that demand something, and no other one has."""
    free = [one for one in every if one not in demanding]
    if not demanding or not free:
        return frozenset()
    shared = frozenset.intersection(*demanding)
    return frozenset(one for one in shared if all((one[0], not one[1]) in own for own in free))


def _said(node: Node, value: bool) -> tuple[str, str]:
    relation = node.op if value else OPPOSITE[node.op]
    right = number(node.args[1])
    said = related(node.args[0], _SIGNS[relation], node.args[1] if right is None else right)
    return said.text, said.code


_SIGNS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "eq": "==", "ne": "!="}


# -- the branches


@dataclass(frozen=True)
class _Leaf:
    """A branch: the subject there, what the conditions of each ``where`` are, what is decided.

    ``apart``: what is not 0 there.  ``whole``: is every comparison decided?
    """

    subject: Subject
    taken: Guards
    decided: Decided
    apart: tuple[Node, ...]
    whole: bool


def _leaves(subject: Subject, name: str) -> list[_Leaf]:
    """The branches; none where they are too many, or elements read others."""
    if subject.relations or not _is_pointwise(subject):
        return []
    found: list[_Leaf] = []
    todo: list[dict[Node, bool]] = [{}]
    while todo:
        decided = todo.pop()
        if _is_empty(decided):
            continue
        branch = _Branch(subject, decided)
        try:
            new = rewrite(subject.graph, branch.roots, None, branch.rule, named=False)
        except _OpenError as open_one:
            todo += [{**decided, open_one.point: value} for value in (True, False)]
            if len(todo) + len(found) > MOST_BRANCHES:
                return []
            continue
        relations = [_relation(point, value) for point, value in decided.items()]
        there = subject.changed([name], new=new, relations=relations)
        left = [node for node in there.everything.nodes if node.op in _CHOOSING]
        found.append(_Leaf(there, branch.chosen(new), decided, tuple(branch.apart), not left))
    return found


def _relation(point: Node, value: bool) -> Relation:
    node = point if value else point.graph.apply("neg", point)
    return Relation(f"%{node.index} > 0", ">", node)


class _OpenError(Exception):
    """A node of which it has to be decided whether it is positive or negative."""

    def __init__(self, point: Node) -> None:
        super().__init__(point)
        self.point = point


class _Branch:
    """The rule by which the nodes of a subject are what they are in one branch."""

    def __init__(self, subject: Subject, decided: Decided) -> None:
        self.decided = decided
        self.apart: dict[Node, None] = {}
        self.roots = [*subject.inputs, *(node for pair in subject.outputs for node in pair),
                      *subject.gradients.values()]  # fmt: skip
        self._tied = {one.name for one in subject.assumptions if one.kind not in _LOOSE}
        self._tied.update(
            str(cotangent.attributes["name"]) for _, cotangent in subject.outputs
        )  # fmt: skip

    def chosen(self, new: Mapping[Node, Node]) -> Guards:
        """The conditions of each ``where`` that are true, or false, throughout the branch."""
        found: dict[tuple[Node, bool], None] = {}
        for node in ancestors(self.roots):
            if node.op == "where":
                simple = {one for value in (True, False) for one, _ in atoms(node.args[0], value)}
                for one in simple:
                    known = _truth(new[one])
                    if known is not None and one.op in COMPARISONS:
                        found[one, known] = None
        return frozenset(found)

    def rule(self, node: Node, args: Sequence[Node]) -> Node | None:
        """What a node is, given what its arguments are.  Raises _OpenError."""
        graph = node.graph
        if node.op in COMPARISONS:
            known = self._compared(node.op, *args)
            return None if known is None else self._all(node, known)
        if node.op in _LOGIC:
            return self._joined(node, args)
        if node.op == "where":
            known = _truth(args[0])
            return None if known is None else args[1] if known else args[2]
        if not node.dtype.is_float:
            return None
        if node.op == "cast":
            known = _truth(args[0])
            return None if known is None else graph.lift(1.0 if known else 0.0, node)
        if node.op in ("maximum", "minimum"):
            above = self._compared("gt", *args)
            return None if above is None else args[above == (node.op == "minimum")]
        if node.op in ("relu", "abs", "sign"):
            above = self._compared("gt", args[0], graph.lift(0.0, args[0]))
            if above is None:
                return None
            if node.op == "sign":
                return graph.lift(1.0 if above else -1.0, node)
            other = graph.lift(0.0, node) if node.op == "relu" else graph.apply("neg", args[0])
            return args[0] if above else other
        return None

    def _joined(self, node: Node, args: Sequence[Node]) -> Node | None:
        values = [_truth(one) for one in args]
        if node.op == "logical_not":
            known = values[0]
            return None if known is None else self._all(node, not known)
        decisive = node.op == "logical_or"
        if decisive in values:
            return self._all(node, decisive)
        left = [one for one, value in zip(args, values, strict=True) if value is None]
        return args[0] if not left else left[0] if len(left) == 1 else None

    def _all(self, node: Node, value: bool) -> Node:
        return node.graph.expand(node.graph.constant(value, bool_), node.shape)

    def _compared(self, relation: str, left: Node, right: Node) -> bool | None:
        """Does a comparison hold?  None where it is left as it is."""
        if not left.dtype.is_float:
            return None
        one, other = number(left), number(right)
        if one is not None and other is not None:
            holds = ("gt", "ge", "ne") if one > other else ("lt", "le", "ne")
            return relation in (("eq", "ge", "le") if one == other else holds)
        if one is not None:
            left, right, relation, other = right, left, TURNED[relation], one
        if relation == "gt" and other == 0 and left.op == "sqrt":
            left = left.args[0]  # a root is positive exactly where what is under it is
            one = number(left)
            if one is not None:
                return one > 0
        point = left if other == 0 else left.graph.apply("sub", left, right)
        if not _moves(point, self._tied):
            return None
        self.apart[point] = None
        if relation in ("eq", "ne"):
            return relation == "ne"
        if point not in self.decided:
            raise _OpenError(point)
        return self.decided[point] == (relation in ("gt", "ge"))


_CHOOSING = (*COMPARISONS, "where", "maximum", "minimum", "relu", "abs", "sign")
_LOGIC = ("logical_and", "logical_or", "logical_not")
_LOOSE = ("interval", "positive", "nonnegative", "negative", "nonzero")
"""What may be declared of an input that takes all values of open sets."""


def _truth(node: Node) -> bool | None:
    source = bare(node)
    if source.op != "constant" or source.dtype != bool_:
        return None
    return bool(source.attributes["value"].value)


def _moves(point: Node, tied: Collection[str]) -> bool:
    """Is it an input with a sign, or that and something that does not depend on the input?

    Then it is 0 on a null set alone, for all that the rest may be, and defined everywhere.
    """
    source = _moving(point, tied)
    return source is not None and all(one.op in _TOTAL for one in ancestors([point]))


def _moving(node: Node, tied: Collection[str]) -> Node | None:
    """The input that a node moves with."""
    if node.op == "input":
        free = node.dtype.is_float and node.attributes["name"] not in tied
        return node if free else None
    if node.op in ("neg", "expand"):
        return _moving(node.args[0], tied)
    if node.op == "mul":
        for one, other in (node.args, node.args[::-1]):
            if number(other):
                return _moving(one, tied)
    if node.op in ("add", "sub"):
        for one, other in (node.args, node.args[::-1]):
            source = _moving(one, tied)
            if source is not None and source not in ancestors([other]):
                return source
    return None


_TOTAL = ("input", "constant", "add", "sub", "mul", "neg", "square", "expand", "cast", "size")
"""Operations that are defined for all arguments."""


def _met(leaf: _Leaf) -> set[str]:
    """The intervals that a branch demands of inputs, and that they lie in there."""
    lows, highs = _ends(leaf.decided)
    return {
        str(one)
        for one in domains(leaf.subject.forward.nodes)
        for node in [leaf.subject.by_name[one.name]]
        if (one.low is None or (node in lows and lows[node] >= one.low))
        and (one.high is None or (node in highs and highs[node] <= one.high))
    }


def _is_empty(decided: Decided) -> bool:
    """Do two of the nodes, each an input with a sign plus a number, exclude each other?"""
    lows, highs = _ends(decided)
    return any(base in highs and highs[base] <= low for base, low in lows.items())


def _ends(decided: Decided) -> tuple[dict[Node, Fraction], dict[Node, Fraction]]:
    """The open intervals that nodes lie in: the lower ends, the upper ends."""
    lows, highs = dict[Node, Fraction](), dict[Node, Fraction]()
    for point, value in decided.items():
        base, slope, offset = _line(point)
        end = -offset / slope
        if (slope > 0) == value:
            lows[base] = max(lows.get(base, end), end)
        else:
            highs[base] = min(highs.get(base, end), end)
    return lows, highs


def _line(node: Node) -> tuple[Node, Fraction, Fraction]:
    """A node as a number times another one plus a number."""
    if node.op == "neg":
        base, slope, offset = _line(node.args[0])
        return base, -slope, -offset
    if node.op in ("add", "sub"):
        one, other = map(number, node.args)
        sign = -1 if node.op == "sub" else 1
        if other is not None:
            base, slope, offset = _line(node.args[0])
            return base, slope, offset + sign * other
        if one is not None:
            base, slope, offset = _line(node.args[1])
            return base, sign * slope, one + sign * offset
    if node.op == "mul":
        for one_node, factor in zip(node.args, map(number, node.args[::-1]), strict=True):
            if factor:
                base, slope, offset = _line(one_node)
                return base, factor * slope, factor * offset
    return node, Fraction(1), Fraction(0)


def _is_pointwise(subject: Subject) -> bool:
    """Is each element computed from those at its own place, and from numbers?"""
    results = [*(node for node, _ in subject.outputs), *subject.gradients.values()]
    shape = results[0].shape
    if any(node.shape != shape for node in results):
        return False
    return all(
        node.shape in (shape, ())
        and (node.op in _PLAIN or get(node.op).scalar is not None)
        and (node.op != "expand" or node.args[0].shape == ())
        for node in ancestors(results)
    )


_PLAIN = ("input", "constant", "expand", "size", "cast", "where")


def settled(found: Branches, proved: Equality) -> Equality | None:
    """The equality with each condition on a domain where it counts; None where that is no less."""
    if found.demanding and not found.region:
        return None
    try:
        demanded = [found.there(one) for one in proved.conditions if one.kind == "domain"]
    except (NoSpelling, SymgradError):
        return None
    others = [one for one in proved.conditions if one.kind != "domain"]
    said = dict.fromkeys([*others, *found.conditions, *(one for one in demanded if one)])
    return replace(proved, conditions=tuple(said), known=())
