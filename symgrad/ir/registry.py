"""Operations by name: what lets a graph apply an op without knowing any.

In: records that ``symgrad.ops`` registers.  Out: the record of a name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from symgrad.errors import UnsupportedOpError
from symgrad.ir.types import TensorType


class Operation(Protocol):
    """What a graph needs to know of an op."""

    @property
    def name(self) -> str:
        """What it is called in ``Graph.apply``."""
        ...

    def infer(self, args: Sequence[TensorType], attrs: Mapping[str, Any]) -> TensorType:
        """The type of the result.  Raises ShapeError or DTypeError."""
        ...


_operations: dict[str, Operation] = {}


def register(operation: Operation) -> None:
    """Make an op known.  A name is given once."""
    if operation.name in _operations:
        raise ValueError(f"op {operation.name!r} is registered twice")
    _operations[operation.name] = operation


def withdraw(name: str) -> None:
    """Take an op back that turned out not to be what it was declared to be."""
    del _operations[name]


def lookup(name: str) -> Operation:
    """The record of an op.  Raises UnsupportedOpError."""
    try:
        return _operations[name]
    except KeyError:
        raise UnsupportedOpError(f"symgrad has no op {name!r}") from None


def names() -> Iterator[str]:
    """The registered names, sorted."""
    return iter(sorted(_operations))
