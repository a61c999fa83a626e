"""Backward without the cotangents of some outputs, where it is given None for them.

In: the traces for each pattern of None.  Out: one ``Finding``.

PyTorch gives zeros for the cotangent of an output that nobody used, or None, if forward said
``ctx.set_materialize_grads(False)``.  Backward may then take another way for each pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from symgrad.errors import NotProvedError
from symgrad.ir.function import FunctionCase, FunctionGraphs
from symgrad.proof.assemble import outcome_of, shown
from symgrad.proof.report.records import Finding, Report
from symgrad.proof.report.verdict import Verdict

if TYPE_CHECKING:
    from symgrad.proof.verify import JudgedCase

NAME = "None for outputs that are not used"
MOST_OUTPUTS = 4
"""Outputs of which every pattern of None is judged: 14 patterns, each as long as the first."""

Pattern = tuple[bool, ...]


def patterns(graphs: FunctionGraphs) -> list[Pattern]:
    """For each output, is its cotangent given: all that backward may get but all and none.

    Of many outputs only each alone, and all but each.  Empty where backward never gets None.
    """
    found: list[Pattern] = []
    for case in graphs.cases:
        if not case.materializes:
            one = [node is not None for node in case.cotangents]
            found += [mask for mask in _masks(one) if mask not in found]
    return found


def _masks(differentiable: Sequence[bool]) -> Iterator[Pattern]:
    count = sum(differentiable)
    for mask in product(*((True, False) if one else (False,) for one in differentiable)):
        given = sum(mask)
        if 0 < given < count and (count <= MOST_OUTPUTS or given in (1, count - 1)):
            yield mask


def with_none(
    graphs: FunctionGraphs, variants: Sequence[FunctionGraphs],
    judge_case: Callable[[FunctionGraphs, int, FunctionCase], JudgedCase],
) -> list[Finding]:  # fmt: skip
    """The finding on the ``variants``: the same Function, traced for each of the patterns."""
    if not variants:
        return []
    many = max(sum(node is not None for node in case.cotangents) for case in graphs.cases)
    worst = Finding(NAME, Verdict.PROVED)
    if many > MOST_OUTPUTS:
        said = f"of {many} outputs, only each alone, and all but each, were judged"
        worst = Finding(NAME, Verdict.UNDECIDED, said)
    for variant in variants:
        for number, case in enumerate(variant.cases):
            one = judge_case(variant, number, case)
            for name in graphs.differentiable:
                found = _found(graphs, one, name)
                if found is not None and found.verdict > worst.verdict:
                    worst = found
    return [worst]


def _found(graphs: FunctionGraphs, one: JudgedCase, name: str) -> Finding | None:
    outcome = outcome_of(one, name)
    if outcome is None or outcome.verdict is Verdict.PROVED:
        return None
    absent = _absent(graphs, one.case)
    said = f"with {' and '.join(f'{name} = None' for name in absent)}, the gradient of {name} is "
    said += "wrong" if outcome.verdict is Verdict.REFUTED else "not proved"
    point = shown(one.subject, one, outcome.counterexample, None)
    if point is None:
        return Finding(NAME, outcome.verdict, f"{said}: {outcome.reason}")
    point = replace(point, inputs={**point.inputs, **dict.fromkeys(absent)})
    return Finding(NAME, outcome.verdict, f"{said}: {point}", point)


def _absent(graphs: FunctionGraphs, case: FunctionCase) -> list[str]:
    """What backward calls the cotangents that it is not given."""
    names = [node.label for full in graphs.cases[:1] for node in full.cotangents if node]
    given = {node.label for node in case.cotangents if node is not None}
    return [name for name in names if name not in given]


def check_none(report: Report) -> None:
    """Kernels take None for zeros.  Raises NotProvedError where backward may not."""
    for finding in report.protocol:
        if finding.name == NAME and not finding:
            raise NotProvedError(
                f"{report.name}: kernels take None for a cotangent of zeros, and backward, which "
                f"is given None, is not proved to do the same: {finding.text}",
                location=report.location,
                hint="mend it, or leave out ctx.set_materialize_grads(False)",
            )
