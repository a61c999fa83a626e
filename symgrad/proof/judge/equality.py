"""What the normal form is asked: facts from assumptions and sizes, and two expressions.

In: two expressions of one pool and what was declared.  Out: ``Equality``: are they equal, by which
method, under which conditions; or why that is not known.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from symgrad.budgets import (
    NORMAL_FORM_WORK,
    OPEN_REGION_CHARACTERS,
    OPEN_REGION_TERMS,
    RESTING_LEAST,
    RESTING_WORK,
)
from symgrad.index.lower import Lowering
from symgrad.index.parts import apart
from symgrad.ir.assume import Assumption
from symgrad.ir.dim import Dim
from symgrad.ir.expr import Expr
from symgrad.ir.function import RELATIONS, Relation, SizeCondition
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ops.integers import Labels
from symgrad.ops.movement import bare
from symgrad.ops.record import get
from symgrad.ops.sorting import sort
from symgrad.proof.judge import plain_numbers, witness
from symgrad.proof.judge.domain_text import domain_conditions, tied_maximum
from symgrad.proof.judge.equalities import FREE, NOTHING, Solution
from symgrad.proof.judge.exceptional import exceptional_sizes, is_excluded
from symgrad.proof.judge.families import Element, Families
from symgrad.proof.judge.ranges import Range
from symgrad.proof.judge.reference import gradient_indices
from symgrad.proof.judge.stated import with_relations
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.atoms import Atom, Undecided
from symgrad.proof.normal.context import APART, EXACT, Proof, Reading, Requirement
from symgrad.proof.normal.facts import NONNEGATIVE_INTERVAL, POSITIVE_INTERVAL, Facts, Interval
from symgrad.proof.normal.from_expr import Conversion, Definitions
from symgrad.proof.normal.poly import ZERO, Poly, constant, of_atom
from symgrad.proof.normal.zero import ZeroResult, out_of_budget, prove_equal
from symgrad.proof.oracle.sample import IntegerUse
from symgrad.proof.report.records import Condition
from symgrad.proof.scalars import literals
from symgrad.proof.scalars.bodies import of_operands
from symgrad.proof.scalars.terms import OPERANDS, Term, linear
from symgrad.proof.words.polytext import PolyText
from symgrad.proof.words.relations import number


@dataclass(frozen=True)
class Equality:
    """The answer to "are these two expressions equal?"; ``equal`` False means "not proved".

    ``exhausted``: not proved for want of budget.  ``work``: what the last attempt took.
    ``doubtful``: sizes at which a step may fail, which the conditions leave out.  ``known``: what
    the conditions say of single nodes.
    """

    equal: bool
    method: str = ""
    reason: str = ""
    conditions: tuple[Condition, ...] = ()
    exhausted: bool = False
    work: int = 0
    doubtful: tuple[Mapping[str, int], ...] = ()
    known: tuple[tuple[Node, Range], ...] = ()


def merge(found: Iterable[Equality], method: str) -> Equality:
    """All of several equalities; the first that fails, where one does."""
    conditions: list[Condition] = []
    doubtful: list[Mapping[str, int]] = []
    known: list[tuple[Node, Range]] = []
    for equality in found:
        if not equality.equal:
            return equality
        conditions += equality.conditions
        doubtful += equality.doubtful
    kept = tuple(dict.fromkeys(conditions))
    return Equality(True, method, conditions=kept, doubtful=tuple(doubtful), known=tuple(known))


def facts_of(
    assumptions: Iterable[Assumption],
    uses: Mapping[str, IntegerUse],
    conditions: Sequence[SizeCondition] = (),
    *,
    shapes: Mapping[str, Sequence[Dim]] | None = None,
    recognise: bool = False,
    products: Mapping[float, literals.Constant] | None = None,
    written: frozenset[float] = frozenset(),
) -> Facts:
    """What the normal form may rely on: declarations, index ranges, decided size conditions.

    As many indices of an axis as it has places, none of them twice, are a permutation.
    ``shapes``: those of the inputs, by name.  ``recognise``: read rounded constants as such, and
    literals as ``products`` says, but those of ``written`` as they are.
    """
    shapes = shapes or {}
    intervals: dict[str, Interval] = {}
    ranges: dict[str, Dim] = {}
    labels: dict[str, Labels] = {}
    named: dict[str, set[str]] = {}
    for name, use in uses.items():
        if use.bounds:
            ranges[name] = use.bounds[0]
        elif use.marked is not None:
            labels[name] = use.marked
        if use.dtype.wraps:
            low, high = Fraction(use.dtype.least), Fraction(use.dtype.greatest)
            intervals[name] = Interval(low, high, low_open=False, high_open=False)
    for assumption in assumptions:
        named.setdefault(assumption.kind, set()).add(assumption.name)
        interval = _interval(assumption)
        if interval is not None:
            intervals[assumption.name] = interval
        if assumption.extent is not None:
            ranges[assumption.name] = assumption.extent
    once = named.get("unique", set())
    whole = {
        name: 0 for name in sorted(once)
        if name in ranges and tuple(shapes.get(name, ())) == (ranges[name],)
    }  # fmt: skip
    return Facts(
        permutations=whole,
        intervals=intervals,
        ranges=ranges,
        labels={name: one for name, one in labels.items() if name not in ranges},
        least_sizes=least_sizes(conditions),
        symmetric=frozenset(named.get("symmetric", ())),
        one_hot={
            name: shapes[name][-1] for name in sorted(named.get("one-hot", ())) if shapes.get(name)
        },
        binary=frozenset(named.get("binary", ())),
        unique=frozenset(once),
        plain=frozenset(named.get("plain", ())),
        recognise=recognise,
        products=products or {},
        written=written,
        conditions=tuple(conditions),
    )


def with_ranks(facts: Facts, nodes: Iterable[Node]) -> Facts:
    """The ranks along an axis, and where each came from: permutations by construction.

    Ranks are those of an input, too, where that has the same order.
    """
    held = {f"%{node.index}": (node, axis) for node in nodes
            if (axis := sorted_axis(node)) is not None}  # fmt: skip
    if not held:
        return facts
    axes = {name: axis for name, (_, axis) in held.items()}
    sizes = {name: node.shape[axis] for name, (node, axis) in held.items()}
    ranks = {name: node for name, (node, _) in held.items() if node.op == "rank"}
    orders = {
        name: (str(source.attributes["name"]), bool(node.attributes["descending"]))
        for name, node in ranks.items()
        if (source := _ordered_alike(node)).op == "input" and source.dtype.is_float
    }
    ranges = {**facts.ranges, **sizes}
    permutations = {**facts.permutations, **axes}
    return replace(facts, permutations=permutations, ranges=ranges, orders=orders)


def sorted_axis(node: Node) -> int | None:
    """The axis along which a node holds every index once: ranks, or where each rank came from."""
    if node.op == "rank":
        return int(node.attributes["axis"])
    for axis, ranks in enumerate(node.args[1:]) if node.op == "index_add" else ():
        if ranks.op == "rank" and ranks.attributes["axis"] == axis:
            _, origins = sort(ranks.args[0], axis, descending=ranks.attributes["descending"])
            return axis if origins is node else None
    return None


def _ordered_alike(rank: Node) -> Node:
    """What has these ranks: without what is added to whole rows, and positive factors.

    [rule: order]
    """
    source = rank.args[0]
    while source.dtype.is_float:
        kept = next((arg for at, arg in enumerate(source.args) if _orders(source, at, rank)), None)
        if kept is None:
            break
        source = kept
    return source


def _orders(node: Node, position: int, rank: Node) -> bool:
    """Are the elements of a node in the order of those of one of its arguments?"""
    if node.op == "cast":
        return node.args[0].dtype.is_float
    if node.op not in ("add", "sub", "mul", "div") or (position and node.op in ("sub", "div")):
        return False
    other = node.args[1 - position]
    if node.op in ("add", "sub"):
        return _is_constant_along(other, rank)
    return (number(other) or 0) > 0


def _is_constant_along(node: Node, rank: Node) -> bool:
    """Is it the same for all elements that are ranked together?"""
    axis = rank.attributes["axis"] - rank.rank
    while node.op == "expand":
        node = node.args[0]
        if node.rank < -axis or node.shape[axis] == 1:
            return True
    return number(node) is not None


def _interval(assumption: Assumption) -> Interval | None:
    if assumption.kind == "positive":
        return POSITIVE_INTERVAL
    if assumption.kind == "nonnegative":
        return NONNEGATIVE_INTERVAL
    if assumption.kind == "negative":
        return Interval(high=POSITIVE_INTERVAL.low)
    if assumption.kind == "interval":
        return Interval(
            assumption.low, assumption.high, assumption.low_open, assumption.high_open
        )  # fmt: skip
    return None


def decide_equal(
    hand: Expr,
    reference: Expr | None,
    facts: Facts,
    leaves: Mapping[str, Node],
    define: Callable[[str, tuple[Dim, ...]], Expr | None],
    *,
    budget: int = NORMAL_FORM_WORK,
    graph: Graph | None = None,
    outputs: Sequence[Node] = (),
    relations: Sequence[Relation] = (),
    solved: Solution = NOTHING,
    hopeless: Hopeless | None = None,
) -> Equality:
    """Prove two expressions equal, witnesses of the almost-everywhere steps included.

    ``leaves``: the nodes that cut names stand for, for text.  ``define``: what an element of a
    computed index tensor is, None for any other.  ``graph``: where conditions find user's words;
    ``outputs``: those of forward.
    ``relations``: what is stated, in that graph.  ``solved``: what equalities put for inputs there.
    ``hopeless``: found here and by earlier proofs.
    """
    facts = plain_numbers.with_cuts(facts, leaves)
    if solved:
        define, facts = solved.define(leaves.values(), define), solved.facts(facts)
    if relations:
        facts = with_relations(facts, relations, leaves)
    ask = partial(_compared, hand, reference, facts, define)
    result = ask(budget)
    if not result.is_zero:
        return Equality(
            False, reason=_reason(result, leaves), exhausted=out_of_budget(result),
            work=result.context.work,
        )  # fmt: skip
    rest = partial(
        _resting, facts=facts, leaves=leaves, graph=graph, solved=solved,
        stated=not all(map(_is_open, relations)),
        hopeless={} if hopeless is None else hopeless, outputs=outputs,
    )  # fmt: skip
    found = rest(result)
    if not found.is_told:
        return found.equality
    work = found.equality.work
    for reading in (EXACT, APART):
        again = ask(min(budget, RESTING_WORK * result.context.work + RESTING_LEAST), reading)
        work += again.context.work
        if again.is_zero:
            found = min(found, rest(again), key=lambda one: one.burden)
        if not found.resting:
            break
    return replace(found.equality, work=work)


Hopeless = dict[Node, frozenset[Node]]
"""Nodes that are too much work to write out, with what is written out then."""


@dataclass(frozen=True)
class _Resting:
    """An equality, and what may vanish that it rests on, or what it fails by.

    ``is_told``: that is so by how conditions on reals are read.
    """

    equality: Equality
    resting: tuple[Poly, ...] = ()
    is_told: bool = False

    @property
    def burden(self) -> tuple[bool, int]:
        """How much is against it: that it fails, how many exceptions there are."""
        return not self.equality.equal, len(self.resting)


def _resting(
    result: ZeroResult, *, facts: Facts, leaves: Mapping[str, Node], graph: Graph | None,
    solved: Solution, stated: bool, hopeless: Hopeless, outputs: Sequence[Node],
) -> _Resting:  # fmt: skip
    """What a difference that is zero rests on: its obligations discharged, the rest printed.

    ``stated``: relations are that may hold on a null set alone; points that meet them are too few
    to show that something holds on more than that.
    """
    if any(map(_fails, result.requirements)):
        failed = Equality(False, reason=_NOWHERE, work=result.context.work)
        return _Resting(failed, (ZERO,))
    conditions: list[Condition] = []
    exceptions: list[Poly] = []
    text = PolyText(leaves).in_words()
    nodes = {**graph.inputs, **leaves} if graph else leaves
    required = list(result.requirements)
    nonzero: list[Poly] = []
    families = Families(result.context, partial(element_of, graph, leaves, solved, hopeless))
    is_told = False
    for obligation in result.obligations:
        found = plain_numbers.discharge(obligation, families, text)
        said = found.problem
        if found.nonzero and (
            stated or solved
            or witness.vanishes_in_part(
                obligation.base, result.requirements, families.facts, leaves, outputs
            )
        ):  # fmt: skip
            said = f"{text.of(obligation.base)} may be 0 on more than a null set"
        if said:
            failed = Equality(False, reason=said, work=result.context.work)
            return _Resting(failed, (obligation.base,), obligation.rule == TOLD)
        tied = tied_maximum(obligation, nodes, result.context)
        conditions += found.conditions if tied is None else [tied]
        own = [one for one in found.exceptions if not is_excluded(one, facts)]
        exceptions += own
        is_told |= obligation.rule == TOLD and (bool(own) or found.nonzero)
        if found.nonzero:
            nonzero.append(obligation.base)
            required.append(Requirement(obligation.rule, "!=", obligation.base))
    exceptions = list(dict.fromkeys(exceptions))
    met = next((one for one in exceptions if _is_met(one)), None)
    if met is not None:
        said = f"it is shown without a term that every input has, where {text.of(met)} is 0"
        failed = Equality(False, reason=said, work=result.context.work)
        return _Resting(failed, (met,), is_told)
    conditions += witness.exceptional(exceptions, required, result.context, text)
    context = _apart_from(exceptions, result.context)
    restricted, known = domain_conditions(required, context, leaves, graph, families)
    conditions += restricted
    conditions += [Condition("literal", reading) for reading in result.readings]
    if solved:
        conditions = [replace(one, text=one.text.replace(FREE, ""), about="") for one in conditions]
    equality = Equality(
        True, result.stage or "", conditions=tuple(dict.fromkeys(conditions)),
        work=result.context.work, doubtful=tuple(exceptional_sizes(exceptions, facts)),
        known=tuple(known),
    )  # fmt: skip
    return _Resting(equality, (*exceptions, *nonzero), is_told)


def _is_open(relation: Relation) -> bool:
    """Does it hold on an open set: is it strict, between polynomials of the inputs?"""
    return relation.kind in (">", "!=") and all(
        node.op in _POLYNOMIAL for node in ancestors([relation.node])
    )


_POLYNOMIAL = (
    "input", "constant", "add", "sub", "mul", "neg", "square", "expand", "reshape", "permute",
    "slice",
)  # fmt: skip
"""Operations whose result is a polynomial of their arguments."""


def _is_met(exception: Poly) -> bool:
    """Is it 0 for indices of a sum, so that no input is without the exception?

    Of the gradient's own indices, it leaves out elements, which is said.
    """
    return any(
        atom.kind == kinds.INDEX and not _OWN_INDEX.fullmatch(str(atom.data[0]))
        for atom in exception.free
    )


_OWN_INDEX = re.compile(r"p\d+")
"""The names of ``gradient_indices``."""


def _apart_from(exceptions: Sequence[Poly], context: Proof) -> Proof:
    """The context of what is left beside exceptions: ``n == 1`` leaves n >= 2."""
    least = dict(context.facts.least_sizes)
    for one in exceptions:
        for atom, _, value in one.solved(kinds.SIZE):
            name = str(atom.data[0])
            if value.constant == least.get(name, 1):
                least[name] = int(value.constant) + 1
    if least == context.facts.least_sizes:
        return context
    found = copy.copy(context)
    found.facts, found.memo = replace(context.facts, least_sizes=least), {}
    return found


TOLD = "complement"
"""The rule by which conditions on reals rest on what does not vanish."""
_NOWHERE = "it is defined for no input: a number is not in the domain of an operation"


def _fails(requirement: Requirement) -> bool:
    """Is it about a number that does not meet it?  What holds nowhere proves nothing."""
    value = requirement.poly.constant
    compare = RELATIONS.get(requirement.relation)
    return value is not None and compare is not None and not compare(float(value), 0.0)


def _compared(
    hand: Expr, reference: Expr | None, facts: Facts, define: Definitions, budget: int,
    reading: Reading | None = None,
) -> ZeroResult:  # fmt: skip
    """The zero test, the second time with reductions over joined axes part by part."""
    test = partial(prove_equal, facts=facts, budget=budget, definitions=define, reading=reading)
    result = test(hand, reference)
    parts = None
    if not result.is_zero:
        parts = apart([hand] if reference is None else [hand, reference])
    if parts is None:
        return result
    other = parts[1] if reference is not None else None
    return test(parts[0], other)


def element_of(
    graph: Graph | None, leaves: Mapping[str, Node], solved: Solution, hopeless: Hopeless,
    context: Proof, tensor: str,
) -> Element:  # fmt: skip
    """What an element of a cut node is: its indices, and its value in them.

    What is written out of a hopeless node, and more, is more work than that.  Raises KeyError,
    Undecided.
    """
    node = leaves[tensor]
    others = [cut for cut in leaves.values() if cut is not node]
    written = frozenset(ancestors([node], stop=others))
    if any(one in written and hopeless[one] <= written for one in hopeless):
        raise KeyError(tensor)
    before = context.work
    lowering = Lowering(graph or node.graph, others)
    conversion = Conversion(context, solved.define(leaves.values(), lambda *_: None))
    at = gradient_indices(node.shape)
    places = [constant(0) if i.constant == 0 else of_atom(conversion.index(*i.axes)) for i in at]
    try:
        return tuple(places), conversion.poly(lowering.element(node, at))
    except Undecided:
        if context.work > context.budget > 2 * before:
            hopeless[node] = written
        raise


def _reason(result: ZeroResult, leaves: Mapping[str, Node]) -> str:
    open_where = _open_region(result, leaves)
    if open_where:
        return f"{result.reason}{OPEN_WHERE}{open_where}"
    if result.residual is not None and 0 < len(result.residual.terms) <= 6:
        left = PolyText(leaves).in_words().of(result.residual)
        if len(left) <= 160:
            return f"{result.reason}: {left}"
    return result.reason


OPEN_WHERE = ", which is 0 except where "
"""What a reason says before a region outside of which a gradient is right."""


def _open_region(result: ZeroResult, leaves: Mapping[str, Node]) -> str:
    """Where something is left of the difference; empty where no condition says it.

    A condition is put as true and as false in all terms: where they cancel then, nothing is left.
    """
    if result.residual is None or not 0 < len(result.residual.terms) <= OPEN_REGION_TERMS:
        return ""
    indicators = {atom for term in result.residual.terms for atom, _ in term if atom.indicator}
    said: list[str] = []
    for atom in sorted(indicators, key=lambda one: str(one.data)):
        for value in (True, False):
            if not _put(result.residual, atom, value=value):
                text = PolyText(leaves).in_words().of(of_atom(atom))
                text = text[1:-1] if text.startswith("[") and text.endswith("]") else text
                said.append(_opposite(text) if value else text)
    whole = " and ".join(said)
    return whole if len(whole) <= OPEN_REGION_CHARACTERS else ""


def _opposite(text: str) -> str:
    """A condition that does not hold."""
    for sign, other in ((" > 0", " <= 0"), (" >= 0", " < 0")):
        if text.endswith(sign):
            return text.removesuffix(sign) + other
    return f"not ({text})"


def _put(poly: Poly, atom: Atom, *, value: bool) -> bool:
    """Is anything left with a condition put as true, or as false?"""
    found: dict[frozenset[Any], Any] = {}
    for term, factor in poly.terms.items():
        if any(one is atom for one, _ in term):
            if not value:
                continue
            term = tuple(pair for pair in term if pair[0] is not atom)
        found[frozenset(term)] = found.get(frozenset(term), 0) + factor
    return any(found.values())


# -- what the size conditions of a case say of single sizes


_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}

Bound = tuple[str, str, int]


def least_sizes(conditions: Sequence[SizeCondition]) -> dict[str, int]:
    """``k != 1``, ``k > 3``, ``0 <= k - 4`` as least values of single sizes, where more than 1."""
    least: dict[str, int] = {}
    bounds = _size_bounds(conditions)
    for _ in bounds:
        before = dict(least)
        for name, relation, bound in bounds:
            known = least.get(name, 1)
            if relation == "!=" and bound == known:
                least[name] = bound + 1
            elif relation in (">", ">=", "=="):
                least[name] = max(known, bound + (relation == ">"))
        if least == before:
            break
    return {name: value for name, value in least.items() if value > 1}


def _size_bounds(conditions: Sequence[SizeCondition]) -> list[Bound]:
    """The conditions that compare a size, or ``k - 2``, with a number: size, relation, number."""
    found = []
    for condition in conditions:
        gap = condition.left - condition.right
        for side, relation in ((gap, condition.relation), (-gap, _TURNED[condition.relation])):
            names = side.sizes
            rest = (side - Dim.size(names[0])).constant if len(names) == 1 else None
            if rest is not None:
                found.append((names[0], relation, -rest))
    return found


# -- intervals that the forward itself restricts its inputs to: where ``log(x)`` is always
# evaluated, the Function is defined for positive x only.  A ``where`` may select another branch,
# so that nothing is concluded from a forward that has one.


def domains(nodes: Iterable[Node]) -> list[Assumption]:
    """The intervals that unary ops demand of inputs they are applied to."""
    order = list(nodes)
    if any(node.op == "where" for node in order):
        return []
    found: dict[str, tuple[Fraction | None, Fraction | None, bool]] = {}
    for node in order:
        scalar = get(node.op).scalar
        if scalar is None or len(node.args) != 1:
            continue
        source = bare(node.args[0])
        if source.op == "input":
            for constraint in scalar.domain:
                where = of_operands(get(node.op), constraint.expression, OPERANDS[:1])
                _narrow(found, source.attributes["name"], constraint.kind, where)
    return [
        Assumption(
            name, "interval", _interval_text(low, high, is_open), low, high, is_open, is_open
        )
        for name, (low, high, is_open) in found.items()
    ]


def _narrow(
    found: dict[str, tuple[Fraction | None, Fraction | None, bool]],
    name: str,
    kind: str,
    where: Term,
) -> None:
    """Take a constraint that is linear in its argument into the interval of an input."""
    if kind not in ("positive", "nonnegative"):
        return
    straight = linear(where, OPERANDS[0])
    if straight is None:
        return
    slope, offset = straight
    bound = -offset / slope
    low, high, is_open = found.get(name, (None, None, False))
    if slope > 0:
        low = bound if low is None else max(low, bound)
    else:
        high = bound if high is None else min(high, bound)
    found[name] = (low, high, is_open or kind == "positive")


def _interval_text(low: Fraction | None, high: Fraction | None, is_open: bool) -> str:
    left = "(-inf" if low is None else f"{'(' if is_open else '['}{low}"
    right = "inf)" if high is None else f"{high}{')' if is_open else ']'}"
    return f"{left}, {right}"
