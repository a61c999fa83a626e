"""Judges every Function of a package, each in a process of its own.

In: the classes of a file, a folder or a package; limits.  Out: ``Scanned``, one for each class, in
the order of the source.

Classes are found by reading (``sources``).  Each is then imported, judged and refuted in a child
process, which runs the code of its module and of whatever that imports.  A crash, a hang or a full
memory ends that child alone, and is what is said of its class.

A signal that ends a program ends the scan, and what was judged by then is told.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import re
import select
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symgrad.children import Child, ChildEnded
from symgrad.deadline import processor_time
from symgrad.errors import Location, SpecError, SymgradError
from symgrad.forks import forks_wait
from symgrad.frontend.function import class_location
from symgrad.frontend.guests import adapter_of, taken
from symgrad.proof.report.rendering import worded
from symgrad.runtime.package import replace_file
from symgrad.tools import importing
from symgrad.tools.configured import Configured
from symgrad.tools.judging import STYLES, Judged, alone_notes, bare, judge, progress
from symgrad.tools.sources import Source

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from symgrad.declarations import Declared
    from symgrad.proof.report.records import Report

PROVED, CONDITIONAL, SURROGATE = "proved", "proved under conditions", "surrogate"
REFUTED, UNDECIDED, UNTRACED = "refuted", "undecided", "not traceable"
IGNORED = "ignored"
CATEGORIES = (REFUTED, SURROGATE, UNDECIDED, UNTRACED, CONDITIONAL, PROVED, IGNORED)
"""What can be said of a class, in the order of summaries."""
IMPORT_SECONDS = 120
"""Processor time of the imports of one class, beside its verdict."""
PATIENCE = 6
"""How many times the processor time a child may last, on a machine with much else to do."""


@dataclass(frozen=True)
class Scanned:
    """What is known of one class.  It has what ``outputs`` reads of ``Judged``.

    ``html``: the report as HTML, with formulas and a picture, where they are wanted.  ``alone``:
    why its module was imported without the packages around it.
    """

    source: Source
    report: Report | None = None
    error: SymgradError | None = None
    guess: str = ""
    declared: Declared | None = None
    blamed: Location | None = None
    text: str = ""
    diff: str = ""
    html: str = ""
    seconds: float = 0.0
    alone: str = ""

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.source.qualname

    @property
    def module(self) -> str:
        """The module of the class."""
        return self.source.module

    @property
    def verdict(self) -> str:
        """As of ``Judged``."""
        return self._as_judged.verdict

    @property
    def passes(self) -> bool:
        """As of ``Judged``."""
        return self._as_judged.passes

    @property
    def expectation(self) -> str:
        """As of ``Judged``."""
        return self._as_judged.expectation

    @property
    def given(self) -> str:
        """As of ``Judged``."""
        return self._as_judged.given

    @property
    def derived(self) -> bool:
        """As of ``Judged``."""
        return self._as_judged.derived

    @property
    def _as_judged(self) -> Judged:
        return Judged(object, None, self.report, self.error, self.guess, self.declared)  # type: ignore[arg-type]

    @property
    def category(self) -> str:
        """One of ``CATEGORIES``."""
        verdict = self.verdict
        if verdict == "PROVED":
            limited = self.report is not None and (self.report.conditions or self.report.limits)
            return CONDITIONAL if limited else PROVED
        return {
            "SURROGATE?": SURROGATE, "REFUTED": REFUTED, "UNDECIDED": UNDECIDED,
            "IGNORED": IGNORED,
        }.get(verdict, UNTRACED)  # fmt: skip

    @property
    def why(self) -> str:
        """In a line or two: the conditions, the counterexample, what stands in the way."""
        if self.report is None:
            return self.error.what if self.error is not None else self.expectation
        said = [self.expectation] if self.expectation else []
        if self.category == PROVED:
            return "; ".join(said)
        if self.category == CONDITIONAL:
            return "; ".join([*said, *map(worded, self.report.conditions), *self.report.limits])
        for one in self.report.inputs.values():
            if one.verdict:
                continue
            if one.surrogate:
                said.append(f"backward {one.surrogate}")
            elif one.replayed is not None and one.counterexample is None:
                said.append(f"{one.name}: {one.reason} ({one.replayed})")
            elif one.replayed is not None:
                said.append(f"{one.name}: {one.replayed}")
            elif one.counterexample is not None or one.reason:
                said.append(f"{one.name}: {one.counterexample or one.reason}")
            said += one.diagnosis[:1] if not one.surrogate else ()
            said += [worded(found) for found in one.conditions if found.kind == "found"]
        said += [f"{one.name}: {one.text}" for one in self.report.protocol if not one.verdict]
        return "; ".join(dict.fromkeys(said))

    def to_dict(self) -> dict[str, Any]:
        """What ``--json`` prints of a class."""
        return {
            "class": self.source.name,
            "file": str(self.source.file),
            "line": self.source.line,
            "category": self.category,
            "verdict": self.verdict,
            "why": self.why,
            "imported_alone": self.alone,
            "seconds": round(self.seconds, 3),
            "diff": self.diff,
            "report": None if self.report is None else self.report.to_dict(),
        }


@dataclass(frozen=True)
class Limits:
    """Limits of each class: processor time of its verdict, bytes that it may take.

    ``tests``: the folder for a test of each class that is refuted; None: none is written.
    """

    timeout: float | None
    memory: int | None
    tests: Path | None = None


@dataclass(frozen=True)
class Scan:
    """What was judged, in the order of the source; what was not, and the signal that ended it."""

    judged: Sequence[Scanned]
    left: Sequence[Source] = ()
    signal: signal.Signals | None = None

    @property
    def status(self) -> int:
        """The exit status; of a scan that a signal ended as shells have it."""
        if self.signal is not None:
            return 128 + self.signal
        return 0 if all(one.passes for one in self.judged) else 1

    @property
    def incomplete(self) -> str:
        """What is missing, in a sentence; empty where nothing is."""
        if self.signal is None:
            return ""
        what = "the end of its parent" if self.signal == signal.SIGIO else self.signal.name
        total = len(self.judged) + len(self.left)
        return f"{what} ended the scan: {len(self.left)} of {total} were not judged"


def scan(
    found: Sequence[Source], console: Console, limits: Limits, files: Configured, jobs: int,
    *, pages: bool = False,
) -> Scan:  # fmt: skip
    """Judge the classes, so many at the same time.  ``pages``: HTML is wanted as well."""
    waiting = list(range(len(found)))[::-1]
    running: dict[int, Child] = {}
    done: dict[int, Scanned] = {}
    with _stopped() as stop, progress(console, len(found)) as advance:
        _prepare(found)
        advance(f"{len(found)} Functions")
        try:
            while (waiting or running) and stop.signal is None:
                while waiting and len(running) < jobs:
                    number = waiting.pop()
                    running[number] = _start(found[number], limits, files, pages)
                for number, child in list(_ended(running, stop)):
                    del running[number]
                    done[number] = _result(found[number], child)
                    advance(found[number].name)
        finally:
            for child in running.values():
                child.stop()
    left = [one for number, one in enumerate(found) if number not in done]
    return Scan([done[number] for number in sorted(done)], left, stop.signal)


def _ended(running: dict[int, Child], stop: _Stop) -> Iterator[tuple[int, Child]]:
    """The children that have ended; waits for one, or for the signal to stop."""
    left = [one for child in running.values() if (one := child.left) is not None]
    pipes = [stop.pipe, *(child.fileno() for child in running.values())]
    select.select(pipes, [], [], min(left) if left else None)
    for number, child in running.items() if stop.signal is None else ():
        if child.read():
            yield number, child


@dataclass
class _Stop:
    """The signal that ends the scan; ``pipe`` can be read once there is one."""

    pipe: int
    signal: signal.Signals | None = None


ENDING = ("SIGINT", "SIGTERM", "SIGHUP", "SIGIO")
"""Signals that end a program; SIGIO says that the parent was killed (``children``)."""


@contextlib.contextmanager
def _stopped() -> Iterator[_Stop]:
    """A block that signals do not end: they are noted, so that it can come to an end itself.

    After such a signal only another SIGINT ends what comes after the block.
    """
    pipe, end = os.pipe()
    stop, before = _Stop(pipe), {}

    def note(number: int, _: Any) -> None:
        if stop.signal is None:
            stop.signal = signal.Signals(number)
            os.write(end, b"!")

    if threading.current_thread() is threading.main_thread():
        for name in ENDING:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, note)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            if stop.signal is None or number == signal.SIGINT:
                signal.signal(number, handler)
        os.close(pipe)
        os.close(end)


def _prepare(found: Sequence[Source]) -> None:
    """Import once what all children need: symgrad's judge, and torch where a class is torch's."""
    with forks_wait():
        importlib.import_module("symgrad.proof.verify")
        if any(one.torch for one in found):
            with contextlib.suppress(ImportError):
                importlib.import_module("symgrad.interop.torch")


def _start(source: Source, limits: Limits, files: Configured, pages: bool) -> Child:
    cpu = None if limits.timeout is None else limits.timeout + IMPORT_SECONDS
    return Child(
        lambda: _judged(source, limits, files, pages), cpu=cpu,
        wall=None if cpu is None else PATIENCE * cpu, memory=limits.memory,
    )  # fmt: skip


def _result(source: Source, child: Child) -> Scanned:
    try:
        found: Scanned = child.result()
        return found
    except ChildEnded as error:
        said = SymgradError(
            f"judging it came to no end: {error}", location=Location(str(source.file), source.line)
        )
        return Scanned(source, error=said, seconds=child.seconds)


# -- in the child


def _judged(source: Source, limits: Limits, files: Configured, pages: bool) -> Scanned:
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)  # those of the parent are not in a fork
    place = Location(str(source.file), source.line)
    try:
        function, alone = _function(source)
        where = class_location(function)
        source = source if where is None else source.loaded(where.line)
        place = Location(str(source.file), source.line)
        started = processor_time()
        declared = files.of(function)
        one = judge(function, timeout=limits.timeout, declared=declared)
    except SymgradError as error:
        error.location = error.location or place
        return Scanned(source, error=bare(error), blamed=error.location)
    report, diff = one.report, one.diff
    seconds = processor_time() - started
    if limits.tests is not None and one.verdict in ("REFUTED", "SURROGATE?"):
        _write_tests(one, source, limits.tests)
    html = _page(one) if pages else ""
    if report is not None:
        report = replace(report, details={}, repair=None)
    wrong = None if one.error is None else bare(one.error)
    return Scanned(
        source, report, wrong, one.guess, declared, one.blamed or place, one.text, diff, html,
        seconds, alone,
    )  # fmt: skip


def _function(source: Source) -> tuple[Any, str]:
    """The class, imported, and why its module was imported alone.  Raises SpecError."""
    if source.inside:
        raise SpecError("it is made when a function runs: no import has it")
    if source.torch and "torch" not in sys.modules:
        raise SpecError("torch is not installed", hint="pip install symgrad[torch]")
    if source.jax and importlib.util.find_spec("jax") is None:
        raise SpecError("JAX is not installed", hint="pip install symgrad[jax]")
    found: Any = importing.load_file(source.file)
    alone = importing.alone(found.__name__)
    try:
        for part in source.qualname.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise SpecError(
            "importing its module does not define it", hint="another library may be missing"
        ) from None
    if source.jax and adapter_of(found) is None:
        raise SpecError(
            f"it is no function of jax.custom_vjp once its module is imported, but a"
            f" {type(found).__name__}",
            hint="name the function below what wraps it",
        )  # fmt: skip
    return taken(found), alone


def _write_tests(one: Judged, source: Source, folder: Path) -> None:
    """A pytest file that replays the counterexamples of a class: it fails until that is fixed."""
    from symgrad.tools.regression import regression_tests

    target = folder.resolve() / f"test_{re.sub(r'[^A-Za-z0-9]+', '_', source.name)}.py"
    text = regression_tests([one], target).text
    if text:
        replace_file(target, text)


def _page(one: Judged) -> str:
    from symgrad.tools.page import report_html

    return report_html(one)


# -- the table


def twice_notes(found: Sequence[Scanned]) -> list[str]:
    """Which names stand for several classes of a file, and which of these was judged."""
    return [
        f"{one.name} was judged as an import has it, from line {one.source.line}; line"
        f" {', '.join(map(str, one.source.others))} of {one.source.place} has a class of that name"
        " as well, which was not"
        for one in found if one.source.others and not one.source.inside
    ]  # fmt: skip


def notes(found: Sequence[Scanned]) -> list[str]:
    """What is to be said of some classes beside the table."""
    return [*alone_notes(found), *twice_notes(found)]


def counts(found: Sequence[Scanned]) -> dict[str, int]:
    """How many classes there are of each category."""
    counted = Counter(one.category for one in found)
    return {name: counted[name] for name in CATEGORIES if counted[name]}


def summary(found: Sequence[Scanned], root: Path) -> Table:
    """One row for each class."""
    from rich.markup import escape
    from rich.table import Column, Table

    table = Table(Column("class", overflow="fold"), "verdict", "s", "what is known")
    for one in found:
        style = STYLES[one.verdict]
        file = one.source.file
        place = file.relative_to(root) if file.is_relative_to(root) else one.source.place
        table.add_row(
            f"{escape(one.name)}\n[dim]{escape(str(place))}:{one.source.line}",
            f"[{style}]{one.category}",
            f"{one.seconds:.1f}",
            escape(shortened(one.why)),
        )
    return table


MOST_LETTERS = 240


def shortened(text: str) -> str:
    """The beginning of a long text."""
    text = " ".join(text.split())
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 4]} ..."


def as_dict(place: str, found: Scan, seconds: float) -> dict[str, Any]:
    """What ``--json`` prints."""
    return {
        "place": place,
        "seconds": round(seconds, 3),
        "incomplete": found.incomplete,
        "not_judged": [one.name for one in found.left],
        "counts": counts(found.judged),
        "notes": notes(found.judged),
        "functions": [one.to_dict() for one in found.judged],
    }
