"""One Function judged as a command line or a test collection asks for it.

In: a Function and a ``Request``.  Out: ``Judged``: a report, or the error that kept it from being
made; with the shapes, where nobody stated them and they were found by trying.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from symgrad import compiler, shapes
from symgrad.errors import Location, SpecError, SymgradError
from symgrad.frontend.function import Function
from symgrad.frontend.outcome import told
from symgrad.frontend.request import bind, check_static, parameters
from symgrad.frontend.source import class_location
from symgrad.frontend.surrogate import surrogate_of
from symgrad.ir.assume import check_names, parse_all
from symgrad.proof.report.rendering import worded
from symgrad.proof.report.verdict import DERIVED

if TYPE_CHECKING:
    from symgrad.proof.report.records import Report

NO_SHAPES = shapes.FoundShapes()


@dataclass(frozen=True)
class Request:
    """How Functions are to be judged: what ``symgrad.verify`` takes, for all of them."""

    specs: tuple[str | None, ...] = ()
    static: Mapping[str, Any] = field(default_factory=dict)
    assume: Mapping[str, str] = field(default_factory=dict)
    order: int = 1

    def check(self, function: type[Function]) -> None:
        """Are these arguments of the Function, and can all be read?  Raises SpecError."""
        check_static(function, self.static)
        facts = parse_all(self.assume)
        own = parameters(function)
        names = [one.name for one in own]
        if self.specs:
            bound = bind(function, self.specs, self.static).arguments
            names = [one.name for one in bound if one.is_tensor]
        if self.specs or not any(one.kind is one.VAR_POSITIONAL for one in own):
            check_names(facts, names)

    def refused(self, error: SymgradError | None) -> bool:
        """Is an error about what was asked for, and not about a line of the file?"""
        asked = self.specs or self.static or self.assume
        return bool(asked) and isinstance(error, SpecError) and error.location is None


@dataclass(frozen=True)
class Judged:
    """The verdict on one Function, or the error that tracing it raised.

    ``shapes``: what was found by trying; its text is empty where nothing had to be.  ``beside``:
    the verdicts for shapes of other ranks, of which this is the worst.
    """

    function: type[Function]
    report: Report | None = None
    error: SymgradError | None = None
    shapes: shapes.FoundShapes = NO_SHAPES
    beside: Mapping[str, str] = field(default_factory=dict)

    @property
    def guessed(self) -> str:
        """The shapes that were found by trying, and those that were judged as well."""
        others = "; ".join(f"{text} ({verdict})" for text, verdict in self.beside.items())
        return f"{self.shapes.text}{'; judged as well: ' if others else ''}{others}"

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.function.__qualname__

    @property
    def verdict(self) -> str:
        """PROVED, REFUTED, UNDECIDED, or ERROR."""
        return "ERROR" if self.report is None else str(self.report.verdict)

    @property
    def proved(self) -> bool:
        """Is it PROVED?"""
        return self.verdict == "PROVED"

    def __bool__(self) -> bool:
        return self.proved

    @property
    def given(self) -> str:
        """`` for alpha = 1.0``: the plain arguments that the verdict holds for."""
        return self.report.given if self.report is not None else ""

    @property
    def derived(self) -> bool:
        """Was a derived backward judged, because none is written?"""
        return self.report is not None and self.report.derived

    @property
    def diff(self) -> str:
        """A unified diff that mends it; empty where there is none."""
        return self.report.diff if self.report is not None else ""

    @property
    def location(self) -> Location | None:
        """The line of the user's source that is to blame, or the class's."""
        if self.error is not None and self.error.location is not None:
            return self.error.location
        return class_location(self.function)

    @property
    def text(self) -> str:
        """What a person wants to read."""
        if self.error is not None:
            return f"{self.name}: {type(self.error).__name__}: {self.error}"
        return str(self.report)

    def to_dict(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        found: dict[str, Any] = {"function": self.name, "verdict": self.verdict}
        if self.error is not None:
            found["error"] = str(self.error)
        elif self.report is not None:
            found = self.report.to_dict()
        if self.shapes.text:
            found["shapes_found_by_trying"] = self.shapes.text
            found["shapes_judged_as_well"] = dict(self.beside)
        return found


def judge(function: type[Function], request: Request) -> Judged:
    """The verdict; an error that a user can cause is a part of what is returned.

    Where shapes had to be found, those of other ranks are judged too, and the worst is returned.
    """
    found = NO_SHAPES
    try:
        if not request.specs and not shapes.are_known(function, request.static):
            facts = {**getattr(function, "assume", {}), **request.assume}
            square = [name for name, fact in facts.items() if "symmetric" in fact]
            with told(f"finding shapes for {function.__name__}"):
                found = shapes.find(function, request.static, square)
        first = _verified(function, request, found)
    except SymgradError as error:
        return Judged(function, error=error, shapes=found)
    return _worst(first, _others(first, request)) if found.text else first


def _verified(function: type[Function], request: Request, found: shapes.FoundShapes) -> Judged:
    report = compiler.verify(
        function,
        *(found.specs or request.specs),
        static={**request.static, **found.static},
        assume={**found.assume, **request.assume},
        order=request.order,
    )
    return Judged(function, report=report, shapes=found)


def _others(first: Judged, request: Request) -> Iterator[Judged]:
    """The same for shapes of other ranks, until one is as bad as can be."""
    last = first
    for other in first.shapes.others:
        if last.verdict == "REFUTED":
            return
        with suppress(SymgradError):  # what is declared may not hold of other ranks
            last = _verified(first.function, request, other)
            yield last


def _worst(first: Judged, others: Iterable[Judged]) -> Judged:
    """The worst of them, with the conditions of all where all are PROVED."""
    every = [first, *others]
    chosen = max(every, key=_badness)
    beside = {one.shapes.text: one.verdict for one in every if one is not chosen}
    assert chosen.report is not None
    from symgrad.proof.report.merge import with_conditions

    reports = [one.report for one in every if one.report is not None]
    report = with_conditions(chosen.report, reports) if chosen.proved else chosen.report
    judged = replace(chosen, report=report, beside=beside)
    return replace(judged, report=replace(report, notes=(*report.notes, guess(judged))))


def _badness(one: Judged) -> Any:
    return one.report.verdict if one.report is not None else None


def guess(judged: Judged) -> str:
    """What the report says of shapes that were found by trying."""
    holds = "is the worst of these" if judged.beside else "holds for these"
    inputs = judged.report.inputs.values() if judged.report is not None else ()
    numbers = [
        f'; if {one.name} is a number, write {one.name}: "f32[]"' for one in inputs
        if one.reason.startswith(f"the gradient of {one.name} has shape [],")
    ]  # fmt: skip
    return (
        f"shapes found by trying: {judged.guessed}; the verdict {holds}, so state the shapes if "
        f"others are meant{''.join(numbers)}"
    )


# -- many at once

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
