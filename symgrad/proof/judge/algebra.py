"""The seam between the decision procedure and the normal form.

In: two expressions of one pool and declared facts.  Out: ``Equality``: are they equal, by which
method, under which conditions; or why that is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from symgrad.ir import assume
from symgrad.ir.dim import Dim
from symgrad.ir.expr import Expr
from symgrad.ir.function import SizeCondition
from symgrad.ir.graph import Graph, Node
from symgrad.proof.judge import witness
from symgrad.proof.judge.domain_text import domain_conditions
from symgrad.proof.judge.sizes import least_sizes
from symgrad.proof.normal.context import DEFAULT_BUDGET, Assumption
from symgrad.proof.normal.facts import NONNEGATIVE_INTERVAL, POSITIVE_INTERVAL, Facts, Interval
from symgrad.proof.normal.zero import ZeroResult, out_of_budget, prove_equal
from symgrad.proof.oracle.ranges import IntegerUse
from symgrad.proof.report.records import Condition
from symgrad.proof.words.polytext import PolyText


@dataclass(frozen=True)
class Equality:
    """The answer to "are these two expressions equal?"; ``equal`` False means "not proved".

    ``exhausted``: not proved for want of budget.  ``work``: what the last attempt took.
    """

    equal: bool
    method: str = ""
    reason: str = ""
    conditions: tuple[Condition, ...] = ()
    exhausted: bool = False
    work: int = 0


def merge(found: Iterable[Equality], method: str) -> Equality:
    """All of several equalities; the first that fails, where one does."""
    conditions: list[Condition] = []
    for equality in found:
        if not equality.equal:
            return equality
        conditions += equality.conditions
    return Equality(True, method, conditions=tuple(dict.fromkeys(conditions)))


def facts_of(
    assumptions: Iterable[assume.Assumption],
    uses: Mapping[str, IntegerUse],
    conditions: Sequence[SizeCondition] = (),
    *,
    shapes: Mapping[str, Sequence[Dim]] | None = None,
    recognise: bool = False,
) -> Facts:
    """What the normal form may rely on: declarations, index ranges, decided size conditions.

    ``shapes``: those of the inputs, by name.
    """
    shapes = shapes or {}
    intervals: dict[str, Interval] = {}
    ranges: dict[str, Dim] = {}
    named: dict[str, set[str]] = {}
    for name, use in uses.items():
        if use.bounds:
            ranges[name] = use.bounds[0]
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
    return Facts(
        intervals=intervals,
        ranges=ranges,
        least_sizes=least_sizes(conditions),
        symmetric=frozenset(named.get("symmetric", ())),
        one_hot={
            name: shapes[name][-1] for name in sorted(named.get("one-hot", ())) if shapes.get(name)
        },
        binary=frozenset(named.get("binary", ())),
        unique=frozenset(named.get("unique", ())),
        recognise=recognise,
    )


def with_ranks(facts: Facts, nodes: Iterable[Node]) -> Facts:
    """The ranks along an axis hold every index once: permutations by construction."""
    ranks = {f"%{node.index}": node for node in nodes if node.op == "rank"}
    if not ranks:
        return facts
    axes = {name: int(node.attributes["axis"]) for name, node in ranks.items()}
    sizes = {name: node.shape[axes[name]] for name, node in ranks.items()}
    orders = {
        name: (str(node.args[0].attributes["name"]), bool(node.attributes["descending"]))
        for name, node in ranks.items()
        if node.args[0].op == "input" and node.args[0].dtype.is_float
    }
    ranges = {**facts.ranges, **sizes}
    return replace(facts, permutations=axes, ranges=ranges, orders=orders)


def _interval(assumption: assume.Assumption) -> Interval | None:
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
    budget: int = DEFAULT_BUDGET,
    graph: Graph | None = None,
) -> Equality:
    """Prove two expressions equal, witnesses of the almost-everywhere steps included.

    ``leaves``: the nodes that cut names stand for, for text.  ``define``: what an element of a
    computed index tensor is, None for any other.  ``graph``: where conditions find user's words.
    """
    result = prove_equal(hand, reference, facts, budget=budget, definitions=define)
    if not result.is_zero:
        return Equality(
            False, reason=_reason(result, leaves), exhausted=out_of_budget(result),
            work=result.context.work,
        )  # fmt: skip
    conditions: list[Condition] = []
    text = PolyText(leaves)
    assumptions = list(result.assumptions)
    for obligation in result.obligations:
        found = witness.discharge(obligation, facts, text)
        if found.problem:
            return Equality(False, reason=found.problem, work=result.context.work)
        conditions += found.conditions
        if found.nonzero:
            assumptions.append(Assumption(obligation.rule, "!=", obligation.base))
    conditions += domain_conditions(assumptions, result.context, leaves, graph)
    conditions += [Condition("literal", reading) for reading in result.readings]
    kept = tuple(dict.fromkeys(conditions))
    return Equality(True, result.stage or "", conditions=kept, work=result.context.work)


def _reason(result: ZeroResult, leaves: Mapping[str, Node]) -> str:
    if result.residual is not None and 0 < len(result.residual.terms) <= 6:
        left = PolyText(leaves).of(result.residual)
        if len(left) <= 160:
            return f"{result.reason}: {left}"
    return result.reason
