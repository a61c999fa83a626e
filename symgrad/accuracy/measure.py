"""The entry: how far the kernels of an op are from their formulas.

In: the plan of an op, the op compiled.  Out: ``Accuracy``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symgrad.accuracy import drawn, elementwise
from symgrad.accuracy.records import MEASURES, OF_SUM, ULP, Accuracy, Measured, Special
from symgrad.accuracy.subject import Subject, subject
from symgrad.errors import SymgradError
from symgrad.kernels import OpPlan
from symgrad.proof.oracle.values import DomainError
from symgrad.proof.scalars import uninterpreted


def measure(
    name: str, kernels: Sequence[tuple[OpPlan, Any]], sizes: Sequence[Mapping[str, int]] = ()
) -> Accuracy:
    """The worst errors of an op, in each precision that ``kernels`` has a plan and an op of.

    ``sizes``: at which ops with reductions are looked at.
    """
    results: list[Measured] = []
    special: list[Special] = []
    at: list[dict[str, int]] = []
    try:
        for plan, op in kernels:
            for one in _subjects(plan, op):
                if one.elementwise:
                    results += elementwise.measured(one)
                    special += elementwise.special(one)
                else:
                    found, at = drawn.measured(one, sizes)
                    results += found
    except (SymgradError, DomainError) as error:
        return Accuracy(name, failed=str(error))
    used = {one.measure for one in results}
    notes = [f"{word}: {MEASURES[word]}." for word in (ULP, OF_SUM) if word in used]
    if ULP in used:
        notes.append("Of gradients: where the incoming gradient is 1.")
    if used:
        notes.append("Worst is what was found: points not looked at may be worse.")
    return Accuracy(name, tuple(results), tuple(special), tuple(notes), sizes=at)


def _subjects(plan: OpPlan, op: Any) -> Iterator[Subject]:
    """The first case: the general one.  What is known as C alone has no true value."""
    one = subject(plan, op, plan.cases[0])
    if uninterpreted.among(one.nodes):
        raise DomainError("a function that is known by its C alone has no formula")
    yield one
