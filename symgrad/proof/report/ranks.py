"""A Function for any number of batch axes, or for several numbers of them: one report.

In: the report for one axis that stands for all; or reports by the number of axes that ``*batch``
stands for.  Out: one ``Report`` that says for which numbers it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from symgrad.proof.report.merge import worst_findings, worst_inputs
from symgrad.proof.report.records import Report

_POSITIONS = re.compile(r"\w\([^)]|@|\[|\.m?T\b|\bshape\b")
"""What may count axes in a repair: arguments of calls, products of matrices, indices, shapes."""


def with_smallest(report: Report, smallest: Report) -> Report:
    """The report for batch axes with the counterexamples of that without any, where it has some."""
    inputs = dict(report.inputs)
    for name, one in report.inputs.items():
        other = smallest.inputs.get(name)
        if one.counterexample is not None and other is not None and other.counterexample:
            inputs[name] = replace(one, counterexample=other.counterexample)
    return replace(report, inputs=inputs, seconds=report.seconds + smallest.seconds)


def for_any_rank(
    report: Report, groups: Mapping[str, str], rank: int, apart: Mapping[int, Report],
    refused: Mapping[int, str],
) -> Report:  # fmt: skip
    """The report for ``rank`` batch axes, of a program that does the same for all but a few.

    ``groups``: the name of the number of elements by that of the batch axes.  ``apart``: the
    reports for the numbers of batch axes that it treats by themselves.  ``refused``: why forward
    does not accept a number of them.
    """
    stated = "; ".join(
        f"*{group}: any number of axes, "
        + (f"{size} elements together" if rank == 1 else f"written as {rank}")
        for group, size in groups.items()
    )
    if apart:
        stated += f", {', '.join(map(str, sorted(apart)))} judged by itself"
    if refused:
        stated += f", but not {', '.join(map(str, sorted(refused)))}"
    notes = _notes((report, *apart.values()), refused)
    whole = replace(report, domain=f"{report.domain}; {stated}", notes=notes)
    return _worst(whole, {**apart, rank: whole})


def with_conditions(report: Report, others: Iterable[Report]) -> Report:
    """The report with the conditions that other reports on the same inputs have as well."""
    inputs = {}
    for name, one in report.inputs.items():
        found = [
            c for other in others if name in other.inputs for c in other.inputs[name].conditions
        ]
        inputs[name] = replace(one, conditions=tuple(dict.fromkeys([*one.conditions, *found])))
    return replace(report, inputs=inputs)


def _notes(reports: Iterable[Report], refused: Mapping[int, str]) -> tuple[str, ...]:
    notes = [note for report in reports for note in report.notes]
    notes += [f"not for {rank} batch axes: {why}" for rank, why in refused.items()]
    return tuple(dict.fromkeys(notes))


def _worst(base: Report, reports: Mapping[int, Report]) -> Report:
    """``base`` with the worst of the reports by rank."""
    said = {rank: f"with {rank} batch axes" for rank in reports}
    axes = {said[rank]: _with_rank(reports[rank], rank) for rank in sorted(reports, reverse=True)}
    findings = worst_findings({said[rank]: report for rank, report in reports.items()})
    return replace(
        base,
        inputs=worst_inputs(axes),
        protocol=findings if len(reports) > 1 else base.protocol,
        seconds=sum(report.seconds for report in reports.values()),
        mend=next((report.mend for report in reports.values() if report.mend is not None), None),
    )


def for_ranks(
    reports: Mapping[int, Report], observation: str, refused: Mapping[int, str]
) -> Report:
    """One report of those by rank: of each input the worst verdict, with the rank it belongs to.

    ``observation``: what in the program depends on the number of batch axes.  ``refused``: why
    forward does not accept a number of them.
    """
    base = reports[max(reports)]
    ranks = ", ".join(map(str, sorted(reports)))
    said = replace(
        base,
        domain=f"{base.domain}; for {ranks} batch axes only, each by itself",
        notes=(
            *_notes(reports.values(), refused), f"not for every number of batch axes: {observation}"
        ),
    )  # fmt: skip
    return _worst(said, reports)


def _with_rank(report: Report, rank: int) -> Report:
    """The repairs, with the number of batch axes that they are written for, where it may matter."""
    axes = "axis" if rank == 1 else "axes"
    inputs = {
        name: replace(one, suggestion=f"# with {rank} batch {axes}\n{one.suggestion}")
        if one.suggestion is not None and _POSITIONS.search(one.suggestion) else one
        for name, one in report.inputs.items()
    }  # fmt: skip
    return replace(report, inputs=inputs)
