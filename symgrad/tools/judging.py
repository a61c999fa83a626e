"""Judges Functions for the command line and for pytest.

In: Functions, and the shapes, values and assumptions stated for all of them.  Out: ``Judged``: the
request, and the report or the error; a table of many.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from symgrad import compiler, verdicts
from symgrad.budgets import VERDICT_SECONDS
from symgrad.compiler import Assume, Static
from symgrad.deadline import processor_time
from symgrad.declarations import Declared
from symgrad.errors import Location, SpecError, SymgradError
from symgrad.frontend.function import (
    Function,
    class_location,
    has_backward,
    raw_method,
)
from symgrad.frontend.replaced import Replace, replaced
from symgrad.frontend.request import Request
from symgrad.proof.report.rendering import at_once, shared_conditions
from symgrad.proof.report.verdict import AGAINST, DERIVED, DIFFERS
from symgrad.tools import importing
from symgrad.tools.discover import Unread, parted
from symgrad.tools.sources import module_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from symgrad.proof.report.records import InputReport, Report


@dataclass(frozen=True)
class Judged:
    """The verdict on one Function, or the error that binding or tracing it raised.

    ``request``: what was judged, where this process judged it.  ``guess``: the inferred shapes.
    ``declared``: what a file declares of it.  ``seconds``: processor time of all that was done to
    judge it, without the import of its module.
    """

    function: type[Function]
    request: Request | None = None
    report: Report | None = None
    error: SymgradError | None = None
    guess: str = ""
    declared: Declared | None = None
    seconds: float = 0.0

    @property
    def inferred(self) -> str:
        """The inferred shapes; empty where all shapes were stated."""
        if self.report is not None:
            return self.report.inferred
        return self.guess

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.function.__qualname__

    @property
    def verdict(self) -> str:
        """PROVED, REFUTED, UNDECIDED, or ERROR; IGNORED where a file says so."""
        if self.report is None:
            return "IGNORED" if self.error is None else "ERROR"
        return str(self.report.verdict)

    @property
    def proved(self) -> bool:
        """Is it PROVED?"""
        return self.verdict == "PROVED"

    @property
    def passes(self) -> bool:
        """Is it what is expected: PROVED, or the verdict that a file declares?"""
        if self.verdict == "IGNORED":
            return True
        expected = self.declared.verdict if self.declared is not None else ""
        return self.verdict == (expected or "PROVED")

    @property
    def expectation(self) -> str:
        """What a file declares of the verdict, and whether it is so; empty for nothing."""
        if self.declared is None:
            return ""
        where = self.declared.where
        if self.verdict == "IGNORED":
            return f"ignored: {self.declared.ignore} ({where})"
        if not self.declared.verdict:
            return ""
        kept = "as expected" if self.passes else f"expected {self.declared.verdict}"
        return f"{kept} ({where})"

    def __bool__(self) -> bool:
        return self.proved

    @property
    def given(self) -> str:
        """`` for alpha = 1.0``: the plain arguments that the verdict holds for."""
        return self.report.given if self.report is not None else ""

    @property
    def reservations(self) -> tuple[str, ...]:
        """What a report that is PROVED says besides: where the backward is not right, say."""
        if self.report is None or not self.proved or not self.report.inputs:
            return ()
        return tuple(note for note in self.report.notes if note != self.report.inferred)

    @property
    def derived(self) -> bool:
        """Was a derived backward judged, because none is written?"""
        return self.report is not None and self.report.derived

    @property
    def diff(self) -> str:
        """A unified diff that repairs the backward; empty where there is none.

        Lines that ``patch`` skips say what it was proved for.
        """
        made = self.report.made if self.report is not None else None
        if made is None or not made.text:
            return ""
        return "".join(f"# {line}\n" for line in made.scope) + made.text

    @property
    def no_diff(self) -> str:
        """Why there is no diff; empty where there is one, or nothing to repair."""
        report = self.report
        if report is None or self.proved or self.diff:
            return ""
        if self.verdict != "REFUTED":
            return "nothing is refuted" if self.verdict == "UNDECIDED" else "it is a surrogate"
        if report.made.refused:
            return report.made.refused
        said = ["the time limit stopped the search"] if report.timed_out else []
        said += [_unrepaired(one) for one in report.inputs.values() if not one.verdict]
        said += [
            f"{one.name} is refuted, which another gradient does not change"
            for one in report.protocol if not one.verdict
        ]  # fmt: skip
        return "; ".join(said)

    @property
    def location(self) -> Location | None:
        """The line of the error in the user's source, or of the class."""
        if self.error is not None and self.error.location is not None:
            return self.error.location
        return class_location(self.function)

    @property
    def module(self) -> str:
        """The module of the class."""
        return self.function.__module__

    @property
    def alone(self) -> str:
        """Why its module was imported without the packages around it; empty where it was not."""
        return importing.alone(self.module)

    @property
    def blamed(self) -> Location | None:
        """The line of the wrong backward, or of the class."""
        if self.error is not None or self.report is None:
            return self.location
        worst = [
            found.location for found in self.report.inputs.values()
            if str(found.verdict) == self.verdict and found.location is not None
        ]  # fmt: skip
        if worst:
            return worst[0]
        if has_backward(self.function):
            plain, _ = raw_method(self.function, "backward")
            code = getattr(inspect.unwrap(plain), "__code__", None)
            if code is not None:
                return Location(code.co_filename, code.co_firstlineno)
        return self.location

    @property
    def text(self) -> str:
        """The report, or the error, as text."""
        if self.error is not None:
            return f"{self.name}: {type(self.error).__name__}: {self.error.shown()}"
        if self.report is None:
            return f"{self.name}: {self.expectation}"
        return f"{self.report}\n  {self.expectation}" if self.expectation else str(self.report)

    def to_dict(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        beside = {"seconds": round(self.seconds, 3)} | self._declared()
        if self.alone:
            beside["imported_alone"] = self.alone
        if self.report is not None:
            return self.report.to_dict() | beside
        found: dict[str, Any] = {"function": self.name, "verdict": self.verdict}
        if self.error is not None:
            found["error"] = str(self.error)
        return found | ({"inferred_shapes": self.inferred} if self.inferred else {}) | beside

    def _declared(self) -> dict[str, Any]:
        if self.declared is None:
            return {}
        said = {"expected": self.declared.verdict, "ignored": self.declared.ignore}
        return {"declared_at": str(self.declared.where), **{k: v for k, v in said.items() if v}}


def _unrepaired(one: InputReport) -> str:
    """Why the gradient of an input has no repair in a diff."""
    if one.suggestion:
        return (
            f"the report has what to write for the gradient of {one.name},"
            " but backward with it was not proved for all that is judged"
        )
    if one.derived:
        return f"the report has the true gradient of {one.name}, but no code for it was proved"
    return f"nothing to write for the gradient of {one.name} was proved"


@dataclass(frozen=True)
class OfFile(Judged):
    """What is known of a file that cannot be imported, or of a ``class_`` in it: the error."""

    path: Path = Path()
    class_: str = ""

    @property
    def name(self) -> str:
        """The class; else the path, as it was named or found."""
        return self.class_ or str(self.path)

    @property
    def module(self) -> str:
        """The module that the file would be."""
        return module_of(self.path)[0]

    @property
    def location(self) -> Location | None:
        """The line that fails, or the first."""
        at = None if self.error is None else self.error.location
        return at or Location(str(self.path), 1)


def judge(
    function: type[Function], specs: Any = (), static: Static = None,
    assume: Assume = None, order: int = 1, audit: bool = False,
    timeout: float | None = VERDICT_SECONDS, cached: bool = True,
    declared: Declared | None = None, references: Replace | None = None,
) -> Judged:  # fmt: skip
    """The verdict; an error that a user can cause is returned, not raised.

    ``cached``: what was PROVED before need not be proved again.  ``declared``: what a file says.
    ``references``: what is called in the place of functions.
    """
    request: Request | None = None
    if declared is not None and declared.ignore:
        return Judged(function, declared=declared)

    def verdict() -> Report:
        nonlocal request
        asked = compiler.asked_for(function, declared, specs, static, assume, order)
        request = replace(asked, audit=audit)
        return compiler.verify_request(request, timeout=None)

    try:
        with _surrounded(function, declared, references), verdicts.used(cached):
            report = compiler.in_time(function, timeout, verdict)
        return Judged(function, request, report, declared=declared)
    except SymgradError as error:
        guess = str(request.guess) if request is not None and request.guess else ""
        return Judged(function, request, error=error, guess=guess, declared=declared)


@contextmanager
def _surrounded(
    function: type[Function], declared: Declared | None, references: Replace | None
) -> Iterator[None]:
    """A block in which the class is as a file and the options declare it."""
    applied = nullcontext() if declared is None else declared.applied(function)
    with applied, replaced(function, references):
        yield


# -- many at once

STYLES = {
    "PROVED": "green", "UNDECIDED": "yellow", "SURROGATE?": "magenta", "REFUTED": "red",
    "ERROR": "red", "IGNORED": "dim",
}  # fmt: skip


MOST_BESIDE = 80
"""Characters of the other shapes that are judged, in a table; longer lists are counted."""


@dataclass(frozen=True)
class Asked:
    """What is asked of each Function.  ``suggest``: diffs of repairs are wanted, too.

    ``config``: finds what a file declares of it.  ``references``: what is called in the place of
    functions.
    """

    specs: Sequence[str | None] = ()
    static: Static = None
    assume: Assume = None
    order: int = 1
    audit: bool = False
    timeout: float | None = VERDICT_SECONDS
    suggest: bool = False
    cached: bool = True
    config: Callable[[type[Function]], Declared | None] = field(default=lambda function: None)
    references: Replace | None = None

    def judge(self, function: type[Function]) -> Judged:
        """The verdict on one Function.

        Raises SpecError where what is stated for all Functions is wrong.
        """
        started = processor_time()
        one = judge(
            function,
            self.specs,
            self.static,
            self.assume,
            self.order,
            self.audit,
            self.timeout,
            self.cached,
            self.config(function),
            self.references,
        )
        stated = self.specs or self.static or self.assume or self.references
        wrong = one.error if stated else None
        if isinstance(wrong, SpecError) and wrong.location is None:
            raise wrong
        if self.suggest and one.report is not None:
            with _surrounded(function, one.declared, self.references):
                _ = one.report.made  # made now, so that what the program prints comes in its place
        return replace(one, seconds=processor_time() - started)


def judge_all(
    found: Sequence[type[Function] | Unread], console: Console, asked: Asked, jobs: int = 1
) -> list[Judged]:
    """Judge each Function, also after an error of another, in ``jobs`` processes.

    Raises SpecError for stated shapes, values or assumptions that are wrong.
    """
    functions, _ = parted(found)
    judged = iter(_judged(functions, console, asked, jobs))
    return [
        OfFile(Function, error=one.error, path=one.path, class_=one.name) if isinstance(one, Unread)
        else next(judged)
        for one in found
    ]  # fmt: skip


def _judged(
    functions: Sequence[type[Function]], console: Console, asked: Asked, jobs: int
) -> list[Judged]:
    if min(jobs, len(functions)) > 1 and hasattr(os, "fork"):
        return list(_in_processes(functions, console, asked, min(jobs, len(functions))))
    judged = []
    with progress(console, len(functions)) as begin:
        for function in functions:
            begin(function.__qualname__)
            judged.append(asked.judge(function))
    return judged


def _in_processes(
    functions: Sequence[type[Function]], console: Console, asked: Asked, jobs: int
) -> Iterator[Judged]:
    import symgrad.proof.verify  # noqa: F401  (once, and not in each process)
    from symgrad.tools import parallel

    def work(number: int) -> Sent:
        try:
            return _sent(asked.judge(functions[number]), asked.suggest)
        except SpecError as error:
            return Sent(error=bare(error), wrong=True)

    with ExitStack() as stack:

        def begin() -> Callable[[], None]:
            advance = stack.enter_context(progress(console, len(functions)))
            advance(f"{jobs} processes")
            return lambda: advance(f"{jobs} processes")

        for number, sent in enumerate(parallel.in_processes(work, len(functions), jobs, begin)):
            if sent.wrong and sent.error is not None:
                raise sent.error
            declared = asked.config(functions[number])
            yield Judged(
                functions[number], None, sent.report, sent.error, sent.guess, declared, sent.seconds
            )


@dataclass(frozen=True)
class Sent:
    """What one process tells another of a judged Function; ``wrong``: the call is."""

    report: Report | None = None
    error: SymgradError | None = None
    guess: str = ""
    seconds: float = 0.0
    wrong: bool = False


def _sent(one: Judged, suggest: bool) -> Sent:
    """Without graphs, and without what is made on demand."""
    report = one.report
    if report is not None:
        made = partial(replace, report.made) if suggest else None
        report = replace(report, details={}, repair=made)
    return Sent(report, bare(one.error) if one.error is not None else None, one.guess, one.seconds)


def bare(error: SymgradError) -> SymgradError:
    """The error, without what it refers to in a trace."""
    return type(error)(error.what, location=error.location, hint=error.hint)


@contextmanager
def progress(console: Console, total: int) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal; the function says which Function is judged next."""
    if not console.is_terminal:
        yield lambda name: None
        return
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task("proving", total=total)
        done = count(0)
        yield lambda name: bar.update(task, description=escape(name), completed=next(done))


def summary(judged: Sequence[Judged]) -> Table:
    """One row for each gradient, and for what of the protocol is not PROVED for all."""
    from rich.markup import escape
    from rich.table import Table

    table = Table("op", "gradient of", "verdict", "under")
    for one in judged:
        name = one.name
        for gradient, verdict, conditions in _rows(one):
            style = STYLES[verdict]
            table.add_row(escape(name), escape(gradient), f"[{style}]{verdict}", escape(conditions))
            name = ""
        for line in [] if one.report is None else _under(one, one.report):
            table.add_row("", "", "", escape(line))
    return table


def _under(one: Judged, report: Report) -> Iterator[str]:
    """What the whole verdict is under, in short; the report has the rest."""
    if report.derived:
        yield DERIVED
    if one.given:
        yield one.given.strip()
    if AGAINST in report.notes:
        yield AGAINST
    yield from (
        note for note in one.reservations if note != AGAINST and not note.startswith(DIFFERS)
    )
    yield from at_once(shared_conditions(report))
    if report.domain:
        yield report.domain
    if report.guessed:
        others = len(report.beside)
        also = f"; also {'; '.join(report.beside)}"
        if len(also) > MOST_BESIDE:
            also = f" and {others} other{'s' * (others > 1)}"
        yield f"shapes inferred: {report.guessed}{also if others else ''}"
    if one.expectation:
        yield one.expectation
    if one.seconds:
        yield f"{one.seconds:.1f} s"


class _Imported(Protocol):
    """A class, and how its module was imported."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def alone(self) -> str:
        """Why its module was imported without the packages around it."""


def alone_notes(found: Sequence[_Imported]) -> list[str]:
    """Which classes were imported without the packages around them, and why."""
    whys = dict.fromkeys(one.alone for one in found if one.alone)
    rows = ([one.name for one in found if one.alone == why] for why in whys)
    return [
        f"imported alone: {', '.join(names)}, since {why}"
        for why, names in zip(whys, rows, strict=True)
    ]


def _rows(one: Judged) -> Iterator[tuple[str, str, str]]:
    if one.report is None:
        what = one.expectation if one.error is None else one.error.what.partition("\n")[0]
        yield "", one.verdict, what
        return
    shared = shared_conditions(one.report)
    for name, found in one.report.inputs.items():
        meant = [f"backward {found.surrogate}"] if found.surrogate else []
        own = at_once([each for each in found.conditions if each not in shared])
        yield name, str(found.verdict), "\n".join([*meant, *own])
    findings = [one for one in one.report.protocol if str(one.verdict) != "PROVED" or one.limits]
    for finding in findings:
        yield f"({finding.name})", str(finding.verdict), finding.text
    if not one.report.inputs and not findings:
        yield "", one.verdict, "; ".join(one.report.notes)
