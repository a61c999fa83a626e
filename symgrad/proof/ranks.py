"""A Function for several numbers of batch axes: the worst of the verdicts, and where it arises.

In: reports by the number of axes that ``*batch`` stands for.  Out: one ``Report``.
Imports: ``symgrad.proof.report``, ``symgrad.proof.verdict``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from symgrad.proof.report import Finding, InputReport, Report
from symgrad.proof.verdict import Verdict


def merge_ranks(reports: Mapping[int, Report]) -> Report:
    """One report of those by rank: of each input the worst verdict, with the rank it belongs to."""
    base = reports[max(reports)]
    names = list(dict.fromkeys(name for report in reports.values() for name in report.inputs))
    ranks = ", ".join(map(str, sorted(reports)))
    return replace(
        base,
        inputs={name: _worst_input(name, reports) for name in names},
        protocol=_worst_findings(reports),
        domain=f"{base.domain}; for {ranks} batch axes, each by itself",
        seconds=sum(report.seconds for report in reports.values()),
    )


def _worst_input(name: str, reports: Mapping[int, Report]) -> InputReport:
    found = {rank: r.inputs[name] for rank, r in reports.items() if name in r.inputs}
    rank = max(found, key=lambda rank: (found[rank].verdict, rank))
    worst = found[rank]
    if worst.verdict is Verdict.PROVED or len({one.verdict for one in found.values()}) == 1:
        return worst
    said = f"with {rank} batch axes"
    return replace(worst, reason=f"{said}: {worst.reason}" if worst.reason else said)


def _worst_findings(reports: Mapping[int, Report]) -> tuple[Finding, ...]:
    found: dict[str, Finding] = {}
    for rank, report in reports.items():
        for finding in report.protocol:
            known = found.get(finding.name)
            if known is None or finding.verdict > known.verdict:
                failed = finding.verdict is not Verdict.PROVED
                text = f"with {rank} batch axes: {finding.text}" if failed else finding.text
                found[finding.name] = replace(finding, text=text)
    return tuple(found.values())
