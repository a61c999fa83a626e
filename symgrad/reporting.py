"""Many verdicts at once: a progress bar, a table.

In: Functions and a way to judge one.  Out: ``Judged`` records and a rich table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from symgrad.frontend.function import Function
from symgrad.frontend.surrogate import surrogate_of
from symgrad.judging import Judged, Request, judge
from symgrad.proof.report.rendering import worded
from symgrad.proof.report.verdict import DERIVED

STYLES = {"PROVED": "green", "REFUTED": "red", "UNDECIDED": "yellow", "ERROR": "red"}


def judge_all(
    functions: Sequence[type[Function]], request: Request, console: Console
) -> list[Judged]:
    """Judge each; an error of one does not keep the others from being judged."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    judged = []
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task("proving", total=len(functions))
        for function in functions:
            progress.update(task, description=escape(function.__qualname__))
            judged.append(judge(function, request))
            progress.advance(task)
    return judged


def summary(judged: Sequence[Judged]) -> Table:
    """One line a gradient, one for each theorem of the protocol that does not hold."""
    table = Table("op", "gradient of", "verdict", "under")
    for one in judged:
        name = one.name
        for gradient, verdict, conditions in _rows(one):
            style = STYLES[verdict]
            table.add_row(escape(name), escape(gradient), f"[{style}]{verdict}", escape(conditions))
            name = ""
        if one.report is not None and surrogate_of(one.function) is not None:
            table.add_row("", "", "", "against the declared surrogate, not against forward")
        if one.derived:
            table.add_row("", "", "", DERIVED)
        if one.given:
            table.add_row("", "", "", escape(one.given.strip()))
        if one.shapes.text:
            table.add_row("", "", "", escape(f"shapes found by trying: {one.guessed}"))
    return table


def _rows(one: Judged) -> Iterator[tuple[str, str, str]]:
    if one.report is None:
        yield "", "ERROR", one.error.what.partition("\n")[0] if one.error is not None else ""
        return
    for name, found in one.report.inputs.items():
        yield name, str(found.verdict), "; ".join(map(worded, found.conditions))
    findings = [one for one in one.report.protocol if str(one.verdict) != "PROVED"]
    for finding in findings:
        yield f"({finding.name})", str(finding.verdict), finding.text
    if not one.report.inputs and not findings:
        yield "", one.verdict, "; ".join(one.report.notes)
