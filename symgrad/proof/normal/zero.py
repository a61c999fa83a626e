"""The zero test: is a polynomial zero for all inputs and shapes?

In: a difference of two normal forms, or two expressions.  Out: which stage decided, and what the
answer relies on.

A yes is sound under the recorded requirements and obligations.  A no means "not shown".
"""

from __future__ import annotations

from dataclasses import dataclass

from symgrad.ir.expr import Expr
from symgrad.proof.normal.arithmetic import renormalised
from symgrad.proof.normal.atoms import Undecided
from symgrad.proof.normal.context import DEFAULT_BUDGET, Context, Obligation, Requirement
from symgrad.proof.normal.facts import Facts
from symgrad.proof.normal.from_expr import Conversion, Definitions
from symgrad.proof.normal.poly import Poly
from symgrad.proof.normal.rules import RULES
from symgrad.proof.normal.stages import run

FIRST_BUDGET = 12_000


@dataclass(frozen=True)
class ZeroResult:
    """The answer of the zero test.

    ``stage``: the name of the stage that showed the difference to be zero, or None.  ``reason``:
    why not, where it is None.  ``residual``: what is left of the difference.  ``obligations``
    and ``requirements``: all that any step relied on.  ``readings``: literals read as constants.
    ``context``: the state of the proof, for rendering and evaluation.
    """

    stage: str | None
    reason: str
    residual: Poly | None
    obligations: tuple[Obligation, ...]
    requirements: tuple[Requirement, ...]
    readings: tuple[str, ...]
    context: Context

    @property
    def is_zero(self) -> bool:
        """Was the difference shown to be zero?"""
        return self.stage is not None


def is_zero(context: Context, difference: Poly) -> ZeroResult:
    """Test a polynomial of ``context``.  Never raises Undecided: the reason is in the result."""
    try:
        stage, residual = run(context, difference)
        reason = "" if stage else f"{len(residual.terms)} terms are left of the difference"
    except Undecided as undecided:
        stage, residual, reason = None, difference, undecided.reason
    return _result(context, stage, reason, residual)


def _result(context: Context, stage: str | None, reason: str, residual: Poly | None) -> ZeroResult:
    return ZeroResult(
        stage,
        reason,
        residual,
        tuple(context.obligations.values()),
        tuple(context.requirements.values()),
        tuple(context.readings.values()),
        context,
    )


def prove_equal(
    left: Expr,
    right: Expr | None,
    facts: Facts | None = None,
    *,
    budget: int = DEFAULT_BUDGET,
    definitions: Definitions | None = None,
) -> ZeroResult:
    """Are two expressions equal?  ``right`` None stands for zero.

    ``definitions``: see ``from_expr.Conversion``.

    Three attempts: multiplied out within a small budget; with products of several-term factors
    kept as they are, which proves deep chains at a cost linear in the depth; multiplied out
    within the whole budget.
    """
    first = attempt(left, right, facts, budget=min(budget, FIRST_BUDGET), definitions=definitions)
    if first.is_zero or not out_of_budget(first):
        return first
    factored = attempt(left, right, facts, budget=budget, factored=True, definitions=definitions)
    if factored.is_zero:
        return factored
    if budget <= FIRST_BUDGET:
        return first
    return attempt(left, right, facts, budget=budget, definitions=definitions)


def attempt(
    left: Expr,
    right: Expr | None,
    facts: Facts | None = None,
    *,
    budget: int = DEFAULT_BUDGET,
    factored: bool = False,
    definitions: Definitions | None = None,
) -> ZeroResult:
    """One attempt of ``prove_equal`` in a context of its own."""
    context = Context(RULES, facts, budget=budget, factored=factored)
    result = _compared(context, left, right, definitions)
    if not factored:
        if not result.is_zero and result.residual is not None and context.adopt_domain():
            return _compared(context, left, right, definitions)
        return result
    if not result.is_zero and result.residual is not None:
        result = _unfolded(context, result.residual)
    if result.is_zero:
        return _result(context, f"let-atoms, {result.stage}", "", result.residual)
    return result


def _compared(
    context: Context, left: Expr, right: Expr | None, definitions: Definitions | None
) -> ZeroResult:
    conversion = Conversion(context, definitions)
    try:
        difference = conversion.poly(left)
        if right is not None:
            difference = difference - conversion.poly(right)
    except Undecided as undecided:
        return _result(context, None, undecided.reason, None)
    return is_zero(context, difference)


def _unfolded(context: Context, residual: Poly) -> ZeroResult:
    """The zero test on what is left, its outermost several-term factors multiplied out."""
    context.factored = False
    try:
        return is_zero(context, renormalised(context, residual))
    except Undecided as undecided:
        return _result(context, None, undecided.reason, residual)


def out_of_budget(result: ZeroResult) -> bool:
    """Was the test given up because it took too much work?"""
    return result.context.work > result.context.budget
