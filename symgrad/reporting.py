"""Many verdicts at once: a progress bar, a table.

In: Functions and a way to judge one.  Out: ``Judged`` records and a rich table.
Imports: ``symgrad.errors`` and rich.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from symgrad.errors import SymgradError

STYLES = {"PROVED": "green", "REFUTED": "red", "UNDECIDED": "yellow", "ERROR": "red"}


@dataclass(frozen=True)
class Judged:
    """The verdict on one Function, or the error that tracing it raised."""

    name: str
    report: Any = None
    error: SymgradError | None = None

    @property
    def proved(self) -> bool:
        """Is it PROVED?"""
        return self.report is not None and str(self.report.verdict) == "PROVED"

    @property
    def text(self) -> str:
        """What a person wants to read."""
        if self.error is not None:
            return f"{self.name}: {type(self.error).__name__}: {self.error}"
        return str(self.report)

    def to_dict(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        if self.error is not None:
            return {"function": self.name, "verdict": "ERROR", "error": str(self.error)}
        found: dict[str, Any] = self.report.to_dict()
        return found


def judge_all(
    functions: Sequence[type], judge: Callable[[Any], Any], console: Console
) -> list[Judged]:
    """Judge each; an error of one does not keep the others from being judged."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    judged = []
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task("proving", total=len(functions))
        for function in functions:
            progress.update(task, description=escape(function.__qualname__))
            judged.append(_judge(function, judge))
            progress.advance(task)
    return judged


def _judge(function: type, judge: Callable[[Any], Any]) -> Judged:
    try:
        return Judged(function.__qualname__, report=judge(function))
    except SymgradError as error:
        return Judged(function.__qualname__, error=error)


def summary(judged: Sequence[Judged]) -> Table:
    """One line a gradient."""
    table = Table("op", "gradient of", "verdict", "under")
    for one in judged:
        if one.error is not None:
            table.add_row(escape(one.name), "", f"[{STYLES['ERROR']}]ERROR", escape(one.error.what))
            continue
        for name, found in one.report.inputs.items():
            verdict = str(found.verdict)
            conditions = "; ".join(map(str, found.conditions))
            style = STYLES[verdict]
            table.add_row(escape(one.name), name, f"[{style}]{verdict}", escape(conditions))
    return table
