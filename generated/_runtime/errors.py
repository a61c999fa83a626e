"""The errors that a user can cause.

In: the place in the user's source, when there is one.  Out: exceptions whose message says what
happened, where, and what to do; a warning.
"""

from __future__ import annotations

import linecache
import sys
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any


@dataclass(frozen=True)
class Location:
    """A line of the user's source.

    ``columns``: where the expression begins and ends, in bytes of UTF-8, where that is known.
    """

    file: str
    line: int
    function: str = ""
    columns: tuple[int, int] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @classmethod
    def of(cls, code: CodeType, instruction: int, line: int) -> Location:
        """Of the instruction at a byte offset (``f_lasti``, ``tb_lasti``), which is on ``line``."""
        return cls(code.co_filename, line, code.co_name, _columns(code, instruction, line))

    def characters(self, encoding: str = "utf-32-le") -> tuple[int, int] | None:
        """The columns in characters, from 0; None where they are not known.

        ``encoding``: of which code units they are counted, characters by default.
        """
        linecache.checkcache(self.file)
        text = linecache.getline(self.file, self.line).rstrip()
        unit = len("a".encode(encoding))
        first, last = (
            len(text.encode()[:at].decode(errors="replace").encode(encoding)) // unit
            for at in self.columns or (0, 0)
        )
        indent = len(text) - len(text.lstrip())
        return (first, last) if indent <= first < last else None

    def excerpt(self) -> str:
        """The line with carets under the expression; empty where the file cannot be read.

        The whole line is underlined where the columns are not known.
        """
        linecache.checkcache(self.file)
        text = linecache.getline(self.file, self.line).rstrip()
        if not text:
            return ""
        indent = len(text) - len(text.lstrip())
        first, last = self.characters() or (indent, len(text))
        before = "".join(
            letter if letter == "\t" else " " * _width(letter) for letter in text[indent:first]
        )
        margin = " " * len(str(self.line))
        carets = "^" * max(sum(map(_width, text[first:last])), 1)
        return f"  {self.line} | {text[indent:]}\n  {margin} | {before}{carets}"


def _width(letter: str) -> int:
    """How many columns of a terminal a letter takes."""
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1


def _columns(code: CodeType, instruction: int, line: int) -> tuple[int, int] | None:
    """The columns of an instruction; to the end of the line where its expression ends below."""
    known, at = _positions(code), instruction // 2
    if not 0 <= at < len(known):
        return None
    first, last, begin, end = known[at]
    if first != line or begin is None or end is None:
        return None
    return begin, end if last == line else sys.maxsize


_Position = tuple["int | None", "int | None", "int | None", "int | None"]
_read: dict[int, tuple[CodeType, list[_Position]]] = {}
"""The positions of code that was asked for lately, by its id, which the code here keeps."""
_MOST_READ = 512


def _positions(code: CodeType) -> list[_Position]:
    """Where each instruction of the code stands; nothing where Python does not say."""
    if sys.version_info < (3, 11):
        return []
    known = _read.get(id(code))
    if known is None:
        if len(_read) >= _MOST_READ:
            _read.clear()
        known = _read[id(code)] = code, list(code.co_positions())
    return known[1]


def counted(number: int, noun: str) -> str:
    """``1 input``, ``2 inputs``; ``2 axes``."""
    many = "axes" if noun == "axis" else f"{noun}s"
    return f"{number} {noun if number == 1 else many}"


class SymgradError(Exception):
    """The parent of every error a user can cause.

    ``what`` happened, ``location`` in the user's file (None where no line is to blame) and a
    ``hint`` that says what to do.  ``shown`` is the text with the line of source.
    """

    def __init__(self, what: str, *, location: Location | None = None, hint: str = "") -> None:
        self.what = what
        self.location = location
        self.hint = hint
        super().__init__(what)

    def __str__(self) -> str:
        return self._told("")

    def shown(self) -> str:
        """The message, the line of source with carets, and the hint: where no traceback is seen."""
        excerpt = self.location.excerpt() if self.location else ""
        return self._told(f"\n{excerpt}" if excerpt else "")

    def _told(self, excerpt: str) -> str:
        where = f"{self.location}: " if self.location else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{where}{self.what}{excerpt}{hint}"


class SpecError(SymgradError, ValueError):
    """A shape, dtype or assumption is not written as symgrad reads it."""


class TraceError(SymgradError):
    """Tracing a Function met something that a graph cannot hold.

    What would help, as sizes (``ir.dim.Dim``): ``equal``: pairs that would have to be equal;
    ``multiple``: one that would have to be a multiple of a number, and ``parted`` one that may
    have to be; ``number``: one that would have to be a number.  ``gradient``: the input for which
    a gradient has another shape than it; ``equal`` then holds the sizes of both, of the gradient
    first, if they have the same rank; ``rank``: that of the gradient.  ``uneven``: the operation
    takes what is no such multiple, too.  ``asked``: the inputs whose values Python would have to
    know.  ``ways``: there is a way through the program for each value up to the number.  ``real``:
    the inputs of which one, or some, would have to be complex.
    """

    def __init__(
        self, what: str, *, location: Location | None = None, hint: str = "",
        equal: Iterable[tuple[Any, Any]] = (), multiple: tuple[Any, int] | None = None,
        parted: tuple[Any, int] | None = None, number: Any = None, gradient: str = "",
        rank: int | None = None, uneven: bool = False, asked: Iterable[str] = (),
        ways: bool = False, real: Iterable[str] = (),
    ) -> None:  # fmt: skip
        super().__init__(what, location=location, hint=hint)
        self.uneven, self.asked, self.ways = uneven, frozenset(asked), ways
        self.equal, self.real = tuple(equal), frozenset(real)
        self.multiple, self.parted = multiple, parted
        self.number, self.gradient, self.rank = number, gradient, rank


def says_sizes(error: SymgradError) -> bool:
    """Does it say for which sizes it would not occur?"""
    if not isinstance(error, TraceError):
        return False
    return bool(error.equal or error.multiple or error.parted or error.number is not None)


class OperationError(TraceError):
    """An operation of symgrad failed on what it was given: that says nothing of the Function."""


class RefusalError(TraceError):
    """Backward raises by a ``raise`` or an ``assert`` of its own."""


class UnreadyError(TraceError):
    """The program refuses to run here, for what the call has nothing to do with: a set-up."""


class UnsupportedOpError(TraceError, NotImplementedError):
    """An operation that is not in the registry yet."""


class ControlFlowError(TraceError, TypeError):
    """Python control flow on the value of a symbolic tensor."""


class EscapeError(ControlFlowError):
    """A tensor is handed to what computes outside of the trace, whatever its shape is."""


class CasesError(ControlFlowError):
    """A program that depends on its sizes in more ways than are judged."""


def is_limit(error: SymgradError) -> bool:
    """Is it about what symgrad cannot trace or run, so that nothing can be said of the program?

    What would be possible for a number, or a multiple of one, is impossible for a symbol alone.
    """
    if isinstance(error, TraceError) and (error.multiple is not None or error.number is not None):
        return True
    return isinstance(error, (UnsupportedOpError, ControlFlowError, OperationError, UnreadyError))


class ShapeError(TraceError, ValueError):
    """Shapes that do not fit each other."""


class TruthError(ShapeError):
    """The truth value of a tensor of several elements is asked for, which is made of ``inputs``."""

    inputs: frozenset[str] = frozenset()


class DTypeError(TraceError, TypeError):
    """A dtype that an operation does not take."""


class ProtocolError(TraceError, RuntimeError):
    """The Function broke the contract of forward, backward or ctx."""


class GraphError(SymgradError, RuntimeError):
    """A graph that breaks the rules of the intermediate representation: a defect of symgrad."""


class NotProvedError(SymgradError):
    """A backward that is not PROVED was refused where only proved ones are let through."""


class NotValidatedError(SymgradError):
    """C that is not validated was refused where only validated C is let through."""


class DependencyError(SymgradError, ImportError):
    """A package that symgrad needs is missing or broken."""


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


class InferredShapesWarning(UserWarning):
    """Kernels are made for shapes that nobody stated."""


class CopyWarning(UserWarning):
    """A large array is copied at a call, because kernels do not take its layout."""
