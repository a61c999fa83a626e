"""What can go wrong, and how it is told.

In: the place in the user's source, when there is one.  Out: exceptions whose message says what
happened, where, and what to do.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Location:
    """A line of the user's source."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class SymgradError(Exception):
    """The parent of every error a user can cause.

    ``what`` happened, ``location`` in the user's file (None where no line is to blame) and a
    ``hint`` that says what to do.
    """

    def __init__(self, what: str, *, location: Location | None = None, hint: str = "") -> None:
        self.what = what
        self.location = location
        self.hint = hint
        super().__init__(what)

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{where}{self.what}{hint}"


class SpecError(SymgradError, ValueError):
    """A shape, dtype or assumption is not written as symgrad reads it."""


class TraceError(SymgradError):
    """Tracing a Function met something that a graph cannot hold."""


class OperationError(TraceError):
    """An operation of symgrad failed on what it was given: that says nothing of the Function."""


class UnsupportedOpError(TraceError, NotImplementedError):
    """An operation that is not in the registry yet."""


class ControlFlowError(TraceError, TypeError):
    """Python control flow on the value of a symbolic tensor."""


def is_limit(error: SymgradError) -> bool:
    """Is it about what symgrad cannot trace, so that nothing can be said of the program?"""
    return isinstance(error, (UnsupportedOpError, ControlFlowError, OperationError))


class ShapeError(TraceError, ValueError):
    """Shapes that do not fit each other."""


class DTypeError(TraceError, TypeError):
    """A dtype that an operation does not take."""


class ProtocolError(TraceError, RuntimeError):
    """The Function broke the contract of forward, backward or ctx."""


class GraphError(SymgradError, RuntimeError):
    """A graph that breaks the rules of the intermediate representation: a defect of symgrad."""


class NotProvedError(SymgradError):
    """A backward that is not PROVED was refused where only proved ones are let through."""


class CodegenError(SymgradError):
    """A graph for which no kernel can be emitted."""


class BuildError(SymgradError, RuntimeError):
    """The C compiler is missing or failed."""


class CacheError(SymgradError, OSError):
    """The kernel cache can be neither read nor written."""


class KernelArgumentError(SymgradError, ValueError):
    """A kernel was called with an array of the wrong rank, size or layout."""


class KernelTypeError(SymgradError, TypeError):
    """A kernel was called with something that is not an array of the right dtype."""
