"""A program over symgrad: its class and its function, with the text where tracebacks find it.

In: a ``Program``.  Out: a ``Subject``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from benchmarks.reliability.loading import defined
from benchmarks.reliability.points import Point, absences, points
from benchmarks.reliability.program import FLOAT, Program, class_text, function_text


@dataclass(frozen=True)
class Subject:
    """``seed`` names the program, and fixes what is drawn about it."""

    program: Program
    seed: str

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The plain function of symgrad's tensors."""
        return self._named("program", function_text(self.program))

    @cached_property
    def defined(self) -> Any:
        """The Function."""
        return self._named("Program", self.class_text)

    @cached_property
    def class_text(self) -> str:
        """The source of the Function."""
        return class_text(self.program)

    @cached_property
    def points(self) -> dict[frozenset[str], list[Point]]:
        """Where it is compared, by the optional inputs that are missing."""
        return {
            absent: points(self.program, absent, self.seed) for absent in absences(self.program)
        }

    @property
    def generic(self) -> list[Point]:
        """The points at which torch has a value, whichever optional inputs are missing; no ties."""
        found = (point for points in self.points.values() for point in points)
        return [point for point in found if point.truth is not None and not point.ties]

    def floats(self, absent: frozenset[str]) -> list[str]:
        """The names of the inputs that have gradients."""
        return [
            one.value.name for one in self.program.inputs
            if one.value.kind == FLOAT and one.value.name not in absent
        ]  # fmt: skip

    def _named(self, name: str, text: str) -> Any:
        return defined(name, text, f"<{name} {self.seed}>")
