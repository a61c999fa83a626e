"""Several reports on one Function, put together: the worst verdict counts.

In: reports by what each was judged for.  Out: one ``Report``, or parts of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from symgrad.errors import SymgradError, is_limit
from symgrad.proof.report.records import Finding, InputReport, Report
from symgrad.proof.report.verdict import Verdict

JUDGED = "judged with every optional tensor given or absent"


def worst_inputs(reports: Mapping[str, Report]) -> dict[str, InputReport]:
    """Of each input the worst verdict; where they differ, for what it is.

    ``reports``: by words such as ``with 2 batch axes``, the one that is preferred first.
    """
    names = dict.fromkeys(name for report in reports.values() for name in report.inputs)
    return {
        name: _worst_input({k: r.inputs[name] for k, r in reports.items() if name in r.inputs})
        for name in names
    }


def _worst_input(found: Mapping[str, InputReport]) -> InputReport:
    said = max(found, key=lambda words: found[words].verdict)
    worst = found[said]
    if worst.verdict is Verdict.PROVED:
        every = [condition for one in found.values() for condition in one.conditions]
        return replace(worst, conditions=tuple(dict.fromkeys([*worst.conditions, *every])))
    if len({one.verdict for one in found.values()}) == 1:
        return worst
    return replace(worst, reason=f"{said}: {worst.reason}" if worst.reason else said)


def worst_findings(reports: Mapping[str, Report]) -> tuple[Finding, ...]:
    """Of each theorem of the protocol the worst finding, the first of equal ones."""
    found: dict[str, Finding] = {}
    for words, report in reports.items():
        for finding in report.protocol:
            known = found.get(finding.name)
            if known is None or finding.verdict > known.verdict:
                failed = finding.verdict is not Verdict.PROVED
                text = f"{words}: {finding.text}" if failed else finding.text
                found[finding.name] = replace(finding, text=text)
    return tuple(found.values())


class Presence(Protocol):
    """Which optional tensors are given; as text, ``bias absent``."""

    @property
    def given(self) -> tuple[str, ...]:
        """Their names."""


P = TypeVar("P", bound=Presence)


def for_presences(every: Sequence[P], judge: Callable[[P], Report]) -> Report:
    """One report for all that optional tensors may be, the first as it was asked for.

    What forward does not accept is noted; what cannot be judged is UNDECIDED.
    """
    reports: dict[str, Report] = {}
    refused: dict[str, str] = {}
    unjudged: dict[str, str] = {}
    for one in every:
        try:
            reports[str(one)] = judge(one)
        except SymgradError as error:
            if one is every[0]:
                raise
            (unjudged if is_limit(error) else refused)[str(one)] = error.what
    return _merged(reports, every[0].given, refused, unjudged)


def _merged(
    reports: Mapping[str, Report], optional: Sequence[str], refused: Mapping[str, str],
    unjudged: Mapping[str, str],
) -> Report:  # fmt: skip
    first = next(iter(reports.values()))
    labelled = {
        f"with {words}": report if report is first else _only(words, report)
        for words, report in reports.items()
    }
    notes = [note for report in reports.values() for note in report.notes]
    notes += [f"not for {words}: {why}" for words, why in refused.items()]
    failed = "; ".join(f"with {words}: {why}" for words, why in unjudged.items())
    findings = worst_findings(labelled)
    return replace(
        first,
        inputs=worst_inputs(labelled),
        protocol=(*findings, Finding(JUDGED, Verdict.UNDECIDED, failed)) if failed else findings,
        notes=tuple(dict.fromkeys(notes)),
        values=tuple(pair for pair in first.values if pair[0] not in optional),
        presences=tuple(reports),
        seconds=sum(report.seconds for report in reports.values()),
    )


def _only(words: str, report: Report) -> Report:
    """The repairs, with the presence that they were proved for."""
    inputs = {
        name: replace(one, suggestion=one.suggestion and f"# with {words}\n{one.suggestion}")
        for name, one in report.inputs.items()
    }
    return replace(report, inputs=inputs)
