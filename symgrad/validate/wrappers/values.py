"""What the names of a wrapper stand for while its text is executed symbolically.

In: nothing.  Out: frozen values, and the two ways in which a text is rejected.  Integers are
``Dim``s; None, strings, truths and tuples are themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from symgrad.ir.dim import Dim


class NotShown(Exception):
    """It was not shown that the wrapper is right.  ``line``: of its text; 0 for none."""

    def __init__(self, reason: str, line: int = 0) -> None:
        self.reason = reason
        self.line = line
        super().__init__(f"line {line}: {reason}" if line else reason)


class Wrong(NotShown):
    """The wrapper is wrong."""


@dataclass(frozen=True)
class Known:
    """A name of a library that the text imports, or of Python: ``ndarray``, ``empty``, ``type``."""

    name: str


@dataclass(frozen=True)
class Path:
    """An attribute of the runtime's objects: ``careful.values.check``, ``library.ffi``."""

    name: str


@dataclass(frozen=True)
class Thing:
    """An object of which only the facts of a path are known: a parameter, a residual, an array."""

    name: str

    @property
    def fresh(self) -> bool:
        """Has the function made this array itself?"""
        return self.name.startswith("array ")

    @property
    def of_out(self) -> bool:
        """Is it ``out``, or a part of it?"""
        return re.fullmatch(r"out(\[\d+\])?", self.name) is not None


@dataclass(frozen=True)
class Number:
    """A plain number of the call, by its position among the numbers of the op."""

    position: int


@dataclass(frozen=True)
class Axes:
    """Any number of axes of an array."""

    name: str

    @property
    def count(self) -> Dim:
        """How many elements they have together."""
        return Dim.size(f"prod({self.name})")


@dataclass(frozen=True)
class AxesTuple:
    """The same as a tuple, as which they are kept."""

    axes: Axes


Shape = tuple[Dim | Axes, ...]


@dataclass(frozen=True)
class Attribute:
    """``shape``, ``dtype`` or the ``type`` of an object."""

    of: Thing | Number
    what: str


@dataclass(frozen=True)
class DTypeValue:
    """A dtype of NumPy."""

    name: str


@dataclass(frozen=True)
class CArray:
    """cffi's type of an array of C numbers."""

    base: str


@dataclass(frozen=True)
class Pointer:
    """A pointer to the elements of an array.

    ``base``: what they are in C, empty where the pointer has no type.  ``free``: the axes whose
    strides may be any; along the others the array is C-contiguous.  ``writable``: it was
    checked that the array can be written.
    """

    array: Thing
    base: str
    writable: bool = False
    free: tuple[int, ...] = ()


@dataclass(frozen=True)
class Stride:
    """The stride of an axis of an array, in elements."""

    array: Thing
    axis: int


@dataclass(frozen=True)
class KernelName:
    """The call of a kernel."""

    name: str


@dataclass(frozen=True)
class KeptClass:
    """The class of what forward keeps in a case."""

    case: int


@dataclass(frozen=True)
class Kept:
    """What forward keeps."""

    case: int
    items: tuple[Any, ...]


@dataclass(frozen=True)
class Defined:
    """A function of the text.  ``renamed``: other names for its parameters, by public name."""

    name: str
    renamed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Table:
    """A dict of the text."""

    entries: tuple[tuple[Any, Any], ...]

    @property
    def mapping(self) -> Mapping[Any, Any]:
        """As Python has it: the last one wins."""
        return dict(self.entries)


@dataclass(frozen=True)
class Entry:
    """What a dict has under a key."""

    table: Table
    key: Any


@dataclass(frozen=True)
class Result:
    """What a call of a function of the runtime or of the text returns."""

    function: Any
    arguments: tuple[Any, ...]


def is_asked(value: Any) -> bool:
    """Is it what the C of the runtime returns of a whole call, or None where it leaves that?"""
    function = value.function if isinstance(value, Result) else None
    return isinstance(function, Path) and function.name.startswith("quick.")
