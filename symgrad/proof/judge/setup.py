"""Everything a proof of one subject needs: facts, matrices made ready, the prover.

In: a ``Subject``.  Out: ``Proving``.
"""

from __future__ import annotations

from dataclasses import dataclass

from symgrad.proof.judge.algebra import Equality, decide_equal, facts_of, with_ranks
from symgrad.proof.judge.goal import Goal
from symgrad.proof.judge.matrices import prepared
from symgrad.proof.judge.prove import Prover
from symgrad.proof.normal.facts import Facts
from symgrad.proof.oracle.domains import domains
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.report.records import Condition


@dataclass(frozen=True)
class Proving:
    """A prover, the facts it relies on, the conditions under which all that it proves holds."""

    prover: Prover
    conditions: tuple[Condition, ...]
    facts: Facts


def proving(subject: Subject, budget: int, total: int | None = None) -> Proving:
    """The prover of a subject; ``budget``: work for one normal form; ``total``: for all."""
    spent = 0
    declared = {known.name for known in subject.assumptions}
    own = [d for d in domains(subject.forward.nodes) if d.name not in declared]
    facts = facts_of(
        [*own, *subject.assumptions], subject.sampler.uses, subject.conditions,
        shapes={name: node.shape for name, node in subject.by_name.items()},
        recognise=subject.recognised,
    )  # fmt: skip

    def equal_under(goal: Goal, facts: Facts) -> Equality:
        nonlocal spent
        if total is not None and spent > total:
            return Equality(False, reason="the work for a repair is used up")
        work = min(budget, goal.budget or budget)
        found = decide_equal(
            goal.hand, goal.reference, facts, goal.leaves, goal.define, budget=work,
            graph=subject.graph,
        )  # fmt: skip
        spent += found.work
        return found

    ready = prepared(subject, facts, equal_under)
    known = with_ranks(ready.facts, ready.subject.everything.nodes)
    prover = Prover(ready.subject, lambda goal: equal_under(goal, known))
    said = [Condition("domain", str(domain)) for domain in own]
    return Proving(prover, (*said, *ready.conditions), known)
