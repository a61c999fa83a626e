"""One Function judged as a command line or a test collection asks for it.

In: a Function and a ``Request``.  Out: ``Judged``: a report, or the error that kept it from being
made; with the shapes, where nobody stated them and they were found by trying.
Imports: ``symgrad.compiler``, ``symgrad.shapes``, ``symgrad.errors``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from symgrad import compiler, shapes
from symgrad.errors import Location, SymgradError
from symgrad.frontend.function import Function
from symgrad.frontend.source import class_location

if TYPE_CHECKING:
    from symgrad.proof.report import Report

NO_SHAPES = shapes.FoundShapes()


@dataclass(frozen=True)
class Request:
    """How Functions are to be judged: what ``symgrad.verify`` takes, for all of them."""

    specs: tuple[str | None, ...] = ()
    static: Mapping[str, Any] = field(default_factory=dict)
    assume: Mapping[str, str] = field(default_factory=dict)
    order: int = 1


@dataclass(frozen=True)
class Judged:
    """The verdict on one Function, or the error that tracing it raised.

    ``shapes``: what was found by trying; its text is empty where nothing had to be.
    """

    function: type[Function]
    report: Report | None = None
    error: SymgradError | None = None
    shapes: shapes.FoundShapes = NO_SHAPES

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
        return found


def judge(function: type[Function], request: Request) -> Judged:
    """The verdict; an error that a user can cause is a part of what is returned."""
    found = NO_SHAPES
    try:
        if not request.specs and not shapes.are_known(function, request.static):
            facts = {**getattr(function, "assume", {}), **request.assume}
            square = [name for name, fact in facts.items() if "symmetric" in fact]
            found = shapes.find(function, request.static, square)
        report = compiler.verify(
            function,
            *(found.specs or request.specs),
            static={**request.static, **found.static},
            assume={**found.assume, **request.assume},
            order=request.order,
        )
    except SymgradError as error:
        return Judged(function, error=error, shapes=found)
    if found.text:
        report = replace(report, notes=(*report.notes, guess(found)))
    return Judged(function, report=report, shapes=found)


def guess(found: shapes.FoundShapes) -> str:
    """What the report says of shapes that were found by trying."""
    return (
        f"shapes found by trying: {found.text}; the verdict holds for these, so state the shapes "
        "if others are meant"
    )
