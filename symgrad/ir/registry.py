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
_changes: list[str] = []


def register(operation: Operation) -> None:
    """Make an op known.  A name is given once."""
    if operation.name in _operations:
        raise ValueError(f"op {operation.name!r} is registered twice")
    _operations[operation.name] = operation
    _changes.append(operation.name)


def withdraw(name: str) -> None:
    """Take an op back that turned out not to be what it was declared to be."""
    del _operations[name]
    _changes.append(name)


def lookup(name: str) -> Operation:
    """The record of an op.  Raises UnsupportedOpError."""
    try:
        return _operations[name]
    except KeyError:
        raise UnsupportedOpError(f"symgrad has no op {name!r}") from None


def registered(name: str) -> bool:
    """Is there an op of this name?"""
    return name in _operations


def names() -> Iterator[str]:
    """The registered names, sorted."""
    return iter(sorted(_operations))


def in_order() -> tuple[str, ...]:
    """The registered names, as they were registered."""
    return tuple(_operations)


def changes() -> int:
    """How often the registry has changed: what is derived from all of it holds for one number."""
    return len(_changes)
