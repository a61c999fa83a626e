"""Judgements of all cases, put together into one report for each input.

In: judged cases.  Out: ``InputReport`` records, in the user's names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.errors import is_limit
from symgrad.ir.assume import Assumption
from symgrad.ir.function import FunctionGraphs, Gradient
from symgrad.ir.graph import Node
from symgrad.proof.judge.conditions import FoundCondition, find_conditions
from symgrad.proof.judge.decide import Judgement
from symgrad.proof.judge.kinks import kinks
from symgrad.proof.oracle.refute import Counterexample, input_values
from symgrad.proof.oracle.snippet import numpy_snippet
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.repair.diagnose import Diagnosis, diagnose
from symgrad.proof.repair.scope import Paste
from symgrad.proof.report.failure import failure
from symgrad.proof.report.records import CaseReport, Condition, CounterexampleReport, InputReport
from symgrad.proof.report.verdict import Verdict, worst
from symgrad.proof.scalars import uninterpreted

if TYPE_CHECKING:
    from symgrad.proof.verify import JudgedCase, VerifyOptions


def input_reports(
    graphs: FunctionGraphs,
    judged: Sequence[JudgedCase],
    declared: Sequence[Assumption],
    options: VerifyOptions,
) -> dict[str, InputReport]:
    """The report of every differentiable input, in order."""
    constant = {assumption.name for assumption in declared if assumption.kind == "constant"}
    reports: dict[str, InputReport] = {}
    for name in graphs.differentiable:
        outcomes = [outcome_of(one, name) for one in judged]
        if all(outcome is None for outcome in outcomes) and name in constant:
            continue
        try:
            reports[name] = _report(graphs, name, judged, outcomes, declared, options)
        except Exception as error:  # a verdict without its conditions is none
            reports[name] = _unreported(graphs, name, outcomes, error)
    return reports


def _unreported(
    graphs: FunctionGraphs, name: str, outcomes: Iterable[Judgement | None], error: Exception
) -> InputReport:
    """What is left where the report on an input cannot be made: nothing that passes."""
    found = worst(outcome.verdict for outcome in outcomes if outcome is not None)
    verdict = max(found, Verdict.UNDECIDED)
    return InputReport(name, verdict, reason=failure(error), location=graphs.location)


def outcome_of(one: JudgedCase, name: str) -> Judgement | None:
    """The judgement of an input in a case, also where backward gave nothing to judge."""
    if name in one.judgements:
        return one.judgements[name]
    if one.case.problem is not None:
        verdict = Verdict.UNDECIDED if is_limit(one.case.problem) else Verdict.REFUTED
        return Judgement(verdict, reason=f"backward failed: {one.case.problem}")
    gradient = _gradient(one, name)
    if gradient is not None and gradient.problem is not None:
        return Judgement(Verdict.REFUTED, reason=gradient.problem.what)
    return None


def _gradient(one: JudgedCase, name: str) -> Gradient | None:
    return next((g for g in one.case.gradients if g.input == name), None)


def _report(
    graphs: FunctionGraphs,
    name: str,
    judged: Sequence[JudgedCase],
    outcomes: Sequence[Judgement | None],
    declared: Sequence[Assumption],
    options: VerifyOptions,
) -> InputReport:
    known = [outcome for outcome in outcomes if outcome is not None]
    if not known:
        return InputReport(name, Verdict.UNDECIDED, "there is no gradient to judge")
    verdict = worst(outcome.verdict for outcome in known)
    number = next(i for i, o in enumerate(outcomes) if o is not None and o.verdict is verdict)
    chosen, decided = judged[number], known[[o.verdict for o in known].index(verdict)]
    conditions = [Condition("declared", str(a)) for a in declared if a.kind != "constant"]
    conditions += _index_ranges(chosen.subject, declared)
    conditions += _axioms(chosen.subject)
    conditions += [condition for outcome in known for condition in outcome.conditions]
    gradient = _gradient(chosen, name)
    found: list[FoundCondition] = []
    diagnosis = Diagnosis()
    if verdict is Verdict.REFUTED:
        with suppress(Exception):  # a refutation stands without an explanation, too
            if name in chosen.judgements:
                found = find_conditions(chosen.subject, name, decided, budget=options.budget)
            if options.suggest:
                diagnosis = diagnose(
                    chosen.subject, name, gradient, chosen.case, budget=options.budget,
                    paste=options.paste,
                )  # fmt: skip
    else:
        for one in judged:
            conditions += kinks(one.subject, name, _named(one))
    reason = decided.reason
    conditions += [Condition("found", str(condition)) for condition in found]
    return InputReport(
        name=name,
        verdict=verdict,
        reason=reason,
        method=decided.method,
        conditions=_distinct(conditions),
        counterexample=shown(chosen.subject, chosen, decided.counterexample, options.paste),
        diagnosis=diagnosis.words,
        suggestion=diagnosis.suggestion,
        derived=diagnosis.derived,
        location=(gradient.location if gradient is not None else None) or graphs.location,
        cases=_cases(judged, outcomes),
    )


def _index_ranges(subject: Subject, declared: Sequence[Assumption]) -> list[Condition]:
    """The ranges that integer inputs are taken to lie in, for how they are used."""
    known = {assumption.name for assumption in declared if assumption.extent is not None}
    return [
        Condition("index", f"0 <= {name} < {use.bounds[0]}")
        for name, use in sorted(subject.sampler.uses.items())
        if use.bounds and name not in known
    ]


def _axioms(subject: Subject) -> list[Condition]:
    """What was declared of functions that came with C of their own."""
    nodes = subject.everything.nodes
    found = [Condition("axiom", one.axiom) for one in uninterpreted.among(nodes)]
    return found + [Condition("axiom", said) for said in uninterpreted.meanings(nodes)]


def _named(one: JudgedCase) -> list[Node]:
    """Forward nodes that the user gave a name."""
    return [node for node in one.subject.forward.nodes if node.name and node.op != "input"]


def _distinct(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    return tuple(dict.fromkeys(conditions))


def _cases(
    judged: Sequence[JudgedCase], outcomes: Sequence[Judgement | None]
) -> tuple[CaseReport, ...]:
    return tuple(
        CaseReport(
            " and ".join(map(str, one.case.conditions)) or "always",
            outcome.verdict, outcome.reason, outcome.method,
        )
        for one, outcome in zip(judged, outcomes, strict=True) if outcome is not None
    )  # fmt: skip


def shown(
    subject: Subject, one: JudgedCase, found: Counterexample | None, paste: Paste | None
) -> CounterexampleReport | None:
    """A counterexample as a report shows it; None for None."""
    if found is None:
        return None
    values = input_values(subject, found.point)
    inputs: dict[str, Any] = {}
    for node in subject.sampler.inputs:
        name = node.attributes["name"]
        shape = tuple(size.at(found.point.sizes) for size in node.shape)
        plain = [float(v) if node.dtype.is_float else v for v in values[name]]
        inputs[name] = np.array(plain, dtype=object).reshape(shape).tolist()
    sizes: Mapping[str, int] = {**_fixed_sizes(one), **found.point.sizes}
    return CounterexampleReport(
        sizes=dict(sorted(sizes.items())),
        inputs=inputs,
        element=f"grad_{found.element}",
        hand=found.hand,
        true=found.true,
        snippet=numpy_snippet(subject, found) or "",
        aliases={} if paste is None else paste.parameters(one.case),
    )


def _fixed_sizes(one: JudgedCase) -> dict[str, int]:
    """Sizes that the case has replaced by their values, such as k in the case k == 1."""
    found = {}
    for condition in one.case.conditions:
        value = condition.right.constant
        if condition.relation == "==" and value is not None and len(condition.left.sizes) == 1:
            found[condition.left.sizes[0]] = value
    return found
