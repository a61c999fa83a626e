"""Traced programs as bytes: equal programs give equal bytes, others give other bytes.

In: records of the intermediate representation, graphs, plain values.  Out: bytes, or ``Uncoded``.

Each value begins with a letter for its type, and everything of no fixed length with its length, so
that no two values have the same bytes.  Everything that a later stage may read is there: all nodes
of a graph in their order, names, locations, and the lines of source that these point to.  Classes
go by their names.  What is of a type that is not listed here has no bytes: a function, a module, an
object of the user's.
"""

from __future__ import annotations

import linecache
import struct
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from symgrad.errors import Location, SymgradError
from symgrad.ir.dim import Dim
from symgrad.ir.graph import Graph, Node

PLAIN = "plain"
"""Marks the fields of a record that say which plain arguments it was traced with."""


class Uncoded(Exception):
    """A value of a type that has no bytes."""


class Encoder:
    """Values as bytes.  ``graphs``: those that were met, in this order.

    A graph, a size and a location are written once; then their numbers stand for them.
    ``plain``: the plain arguments that a program was traced with are written, too.  What it does
    with them is in its graph.
    """

    def __init__(self, plain: bool = True) -> None:
        self.plain = plain
        self.parts: list[bytes] = []
        self.graphs: list[Graph] = []
        self._numbers: dict[tuple[str, Any], int] = {}

    def written(self) -> bytes:
        """All that was added."""
        return b"".join(self.parts)

    def add(self, value: Any) -> None:
        """Write a value.  Raises Uncoded."""
        kind: type = type(value)
        known = _PLAIN.get(kind)
        if known is not None:
            known(self, value)
        elif isinstance(value, tuple) and _is_ours(value):  # a named one
            self._class(b"t", value)
            self._items(value)
        elif isinstance(value, Enum) and _is_ours(value):
            self._class(b"e", value)
            self.add(value.name)
        elif isinstance(value, SymgradError):
            self._class(b"x", value)
            self._items((value.what, value.location, value.hint))
        elif is_dataclass(kind) and _is_ours(value):
            beginning, names = _record(kind, self.plain)
            self.parts.append(beginning)
            for name in names:
                self.add(getattr(value, name))
        elif isinstance(value, type):
            self._text(b"y", f"{value.__module__}.{value.__qualname__}".encode())
        elif isinstance(value, np.generic):
            self._array(b"u", np.asarray(value))
        else:
            raise Uncoded(f"{type(value).__module__}.{type(value).__qualname__}")

    def _text(self, letter: bytes, text: bytes) -> None:
        self.parts.append(b"%b%d:%b" % (letter, len(text), text))

    def _class(self, letter: bytes, value: Any) -> None:
        self._text(letter, f"{type(value).__module__}.{type(value).__qualname__}".encode())

    def _items(self, values: Iterable[Any], letter: bytes = b"(") -> None:
        every = tuple(values)
        self._text(letter, str(len(every)).encode())
        for one in every:
            self.add(one)

    def _mapping(self, value: dict[Any, Any]) -> None:
        self._items((part for pair in value.items() for part in pair), b"{")

    def _set(self, value: Iterable[Any], letter: bytes) -> None:
        """In the order of their bytes; what is in it must not refer to a graph."""
        found = []
        for one in value:
            own = Encoder(self.plain)
            own.add(one)
            if own.graphs:
                raise Uncoded("a set of nodes")
            found.append(own.written())
        self._items(sorted(found), letter)

    def _array(self, letter: bytes, value: np.ndarray[Any, Any]) -> None:
        if value.dtype.hasobject:
            raise Uncoded("an array of objects")
        self._text(letter, value.dtype.str.encode())
        self._items((value.shape, value.tobytes()))

    # -- what is written once

    def _once(self, kind: str, key: Any, write: Callable[[], None]) -> None:
        number = self._numbers.get((kind, key))
        self._text(kind.encode(), b"" if number is None else str(number).encode())
        if number is None:
            self._numbers[kind, key] = len(self._numbers)
            write()

    def _dim(self, value: Dim) -> None:
        self._once("D", value, lambda: self._items(value.terms))

    def _location(self, value: Location) -> None:
        parts = (value.file, value.line, value.function, value.columns)
        self._once(
            "L", parts, lambda: self._items((*parts, linecache.getline(value.file, value.line)))
        )

    def _node(self, value: Node) -> None:
        graph = value.graph
        if value.index >= len(graph.nodes) or graph.nodes[value.index] is not value:
            raise Uncoded("a node that is not in its graph")
        self._graph(graph)
        self._text(b"n", str(value.index).encode())

    def _graph(self, value: Graph) -> None:
        self._once("G", id(value), lambda: self._whole(value))

    def _whole(self, graph: Graph) -> None:
        self.graphs.append(graph)  # which keeps it, and its id
        self._text(b"g", str(len(graph.nodes)).encode())
        for node in graph.nodes:
            args = tuple(arg.index for arg in node.args)
            if any(arg.graph is not graph or arg.index >= node.index for arg in node.args):
                raise Uncoded("a node that is not in its graph")
            self._items((node.op, args, node.attrs, node.type, node.name, node.location))
        for named in (graph.inputs, graph.outputs):
            self._items((name, node.index) for name, node in named.items())


def _is_ours(value: Any) -> bool:
    return type(value).__module__.startswith("symgrad.")


@cache
def _record(kind: type, plain: bool) -> tuple[bytes, tuple[str, ...]]:
    """What a record of this class begins with, and the fields that follow."""
    names = tuple(one.name for one in fields(kind) if plain or not one.metadata.get(PLAIN))
    encoder = Encoder()
    encoder._text(b"d", f"{kind.__module__}.{kind.__qualname__}".encode())
    encoder._text(b"(", str(len(names)).encode())
    return encoder.written(), names


_PLAIN: dict[type, Callable[[Encoder, Any], None]] = {
    type(None): lambda own, value: own.parts.append(b"N"),
    bool: lambda own, value: own.parts.append(b"T" if value else b"F"),
    int: lambda own, value: own._text(b"i", hex(value).encode()),
    float: lambda own, value: own.parts.append(b"f" + struct.pack("<d", value)),
    complex: lambda own, value: own.parts.append(b"c" + struct.pack("<dd", value.real, value.imag)),
    str: lambda own, value: own._text(b"s", value.encode("utf-8", "surrogatepass")),
    bytes: lambda own, value: own._text(b"b", value),
    Fraction: lambda own, value: own._items((value.numerator, value.denominator), b"q"),
    slice: lambda own, value: own._items((value.start, value.stop, value.step), b":"),
    range: lambda own, value: own._items((value.start, value.stop, value.step), b"r"),
    type(...): lambda own, value: own.parts.append(b"."),
    tuple: lambda own, value: own._items(value),
    list: lambda own, value: own._items(value, b"["),
    dict: lambda own, value: own._mapping(value),
    frozenset: lambda own, value: own._set(value, b"<"),
    set: lambda own, value: own._set(value, b"S"),
    np.ndarray: lambda own, value: own._array(b"a", value),
    Dim: Encoder._dim,
    Location: Encoder._location,
    Node: Encoder._node,
    Graph: Encoder._graph,
}
"""How values of exactly these types are written."""
