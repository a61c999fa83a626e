"""Graphs of tensor operations: what a traced Function is.

In: names of registered ops and their arguments.  Out: ``Node`` and ``Graph``, where equal nodes
are the same object (common subexpressions by construction).

    Graph  ::= Node*                          in order of creation: arguments come first
    Node   ::= op(Node*, attrs) : TensorType  one result; ``input`` and ``constant`` are ops too

Broadcasting is explicit: elementwise ops take arguments of one shape, ``expand`` makes it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from symgrad import deadline
from symgrad.errors import DTypeError, GraphError, Location
from symgrad.ir import dtype as dtypes
from symgrad.ir.dim import Dim, DimLike
from symgrad.ir.dtype import DType
from symgrad.ir.registry import lookup
from symgrad.ir.types import TensorType

Attrs = tuple[tuple[str, Any], ...]
Scalar = bool | int | float

current_location: ContextVar[Location | None] = ContextVar("current_location", default=None)
"""The user's line that new nodes are stamped with; set by the frontend."""


@dataclass(frozen=True)
class ConstantValue:
    """A number as it was written: keyed by type and bytes, so that 1, 1.0, True and -0.0 differ."""

    kind: str
    data: bytes

    @staticmethod
    def of(value: Scalar) -> ConstantValue:
        """A Python number, its type remembered."""
        if isinstance(value, bool):
            return ConstantValue("bool", bytes([value]))
        if isinstance(value, int):
            return ConstantValue("int", str(value).encode())
        return ConstantValue("float", struct.pack("<d", value))

    @property
    def value(self) -> Scalar:
        """The Python number."""
        if self.kind == "bool":
            return bool(self.data[0])
        if self.kind == "int":
            return int(self.data)
        number: float = struct.unpack("<d", self.data)[0]
        return number

    def __str__(self) -> str:
        return repr(self.value)


class Node:
    """One operation of a graph.  Compared by identity; ``index`` orders it in its graph."""

    __slots__ = ("args", "attrs", "graph", "index", "location", "name", "op", "type")

    def __init__(
        self, graph: Graph, index: int, op: str, args: tuple[Node, ...], attrs: Attrs,
        type: TensorType,
    ) -> None:  # fmt: skip
        self.graph = graph
        self.index = index
        self.op = op
        self.args = args
        self.attrs = attrs
        self.type = type
        self.name: str | None = None
        self.location = current_location.get()

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The symbolic sizes of its axes."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.type.dtype

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.type.shape)

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes by name."""
        return dict(self.attrs)

    @property
    def label(self) -> str:
        """The user's name for it, or ``%<index>``."""
        return self.name or f"%{self.index}"

    def __repr__(self) -> str:
        return f"<{self.label}: {self.op} {self.type}>"

    # Operators apply the ops of these names; numbers are lifted to the other operand's shape.

    def __add__(self, other: Node | Scalar | Dim) -> Node:
        return self.graph.binary("add", self, other)

    def __radd__(self, other: Scalar | Dim) -> Node:
        return self.graph.binary("add", other, self)

    def __sub__(self, other: Node | Scalar | Dim) -> Node:
        return self.graph.binary("sub", self, other)

    def __rsub__(self, other: Scalar | Dim) -> Node:
        return self.graph.binary("sub", other, self)

    def __mul__(self, other: Node | Scalar | Dim) -> Node:
        return self.graph.binary("mul", self, other)

    def __rmul__(self, other: Scalar | Dim) -> Node:
        return self.graph.binary("mul", other, self)

    def __truediv__(self, other: Node | Scalar | Dim) -> Node:
        return self.graph.binary("div", self, other)

    def __rtruediv__(self, other: Scalar | Dim) -> Node:
        return self.graph.binary("div", other, self)

    def __neg__(self) -> Node:
        return self.graph.apply("neg", self)


Follow = Callable[[Node], Sequence[Node]]
"""Which arguments of a node a walk goes to."""


class Graph:
    """A builder and holder of nodes.  ``outputs`` is an ordered mapping of names to nodes."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.inputs: dict[str, Node] = {}
        self.outputs: dict[str, Node] = {}
        self._interned: dict[tuple[Any, ...], Node] = {}

    def apply(self, op: str, *args: Node, **attrs: Any) -> Node:
        """The node ``op(*args, **attrs)``: made, or found when there is an equal one already.

        Raises UnsupportedOpError, ShapeError or DTypeError, by the op's own rules.
        """
        for arg in args:
            if arg.graph is not self:
                raise GraphError(f"an argument of {op!r} belongs to another graph: {arg!r}")
        frozen = tuple(sorted(attrs.items()))
        key = intern_key(op, args, frozen)
        found = self._interned.get(key)
        if found is None:
            deadline.check()
            type = lookup(op).infer([arg.type for arg in args], attrs)
            found = Node(self, len(self.nodes), op, args, frozen, type)
            self.nodes.append(found)
            self._interned[key] = found
        return found

    def copy(self, node: Node, args: Sequence[Node]) -> Node:
        """``node`` with arguments of this graph; its type is inferred where theirs are others."""
        if [arg.type for arg in args] != [arg.type for arg in node.args]:
            return self.apply(node.op, *args, **node.attributes)
        for arg in args:
            if arg.graph is not self:
                raise GraphError(f"an argument of {node.op!r} belongs to another graph: {arg!r}")
        key = intern_key(node.op, args, node.attrs)
        found = self._interned.get(key)
        if found is None:
            deadline.check()
            found = Node(self, len(self.nodes), node.op, tuple(args), node.attrs, node.type)
            self.nodes.append(found)
            self._interned[key] = found
        return found

    def find(self, op: str, args: Sequence[Node], attrs: Attrs) -> Node | None:
        """The node that ``apply`` would find, or None."""
        return self._interned.get(intern_key(op, args, attrs))

    def input(self, name: str, type: TensorType) -> Node:
        """A new input.  Raises GraphError when the name is taken."""
        if name in self.inputs:
            raise GraphError(f"two inputs are called {name!r}")
        node = self.apply("input", name=name, type=type)
        node.name = name
        self.inputs[name] = node
        return node

    def constant(self, value: Scalar, dtype: DType) -> Node:
        """A number, of rank 0, as the dtype holds it.

        In integers it is cut off at the point, and reduced to the range of int8 and its like.
        """
        if dtype.is_integer:
            if not math.isfinite(value):
                raise DTypeError(f"{value} cannot be converted to {dtype}")
            value = dtype.wrapped(int(value)) if dtype.wraps else int(value)
        elif not dtype.is_float:
            value = bool(value)
        return self.apply("constant", value=ConstantValue.of(value), dtype=dtype)

    def size(self, dim: DimLike, dtype: DType = dtypes.int64) -> Node:
        """A symbolic size as a number, of rank 0; a constant when the size is one."""
        number = Dim.of(dim)
        if number.constant is not None:
            value = float(number.constant) if dtype.is_float else number.constant
            return self.constant(value, dtype)
        if dtype.wraps:
            return self.apply("cast", self.size(dim), dtype=dtype)
        return self.apply("size", dim=number, dtype=dtype)

    def expand(self, node: Node, shape: Sequence[DimLike]) -> Node:
        """Broadcast ``node`` to ``shape`` by NumPy's rule; itself when it has that shape."""
        wanted = tuple(Dim.of(size) for size in shape)
        return node if node.shape == wanted else self.apply("expand", node, shape=wanted)

    def lift(self, value: Scalar | Dim, like: Node) -> Node:
        """A number with the dtype and shape of ``like``."""
        if isinstance(value, Dim):
            return self.expand(self.size(value, like.dtype), like.shape)
        return self.expand(self.constant(value, like.dtype), like.shape)

    def binary(self, op: str, left: Node | Scalar | Dim, right: Node | Scalar | Dim) -> Node:
        """``op(left, right)`` with numbers lifted to the other operand."""
        if not isinstance(left, Node):
            if not isinstance(right, Node):
                raise GraphError(f"{op!r} needs a node among its operands")
            return self.apply(op, self.lift(left, right), right)
        if not isinstance(right, Node):
            return self.apply(op, left, self.lift(right, left))
        return self.apply(op, left, right)

    def output(self, name: str, node: Node) -> None:
        """Declare an output.  Raises GraphError when the name is taken."""
        if name in self.outputs:
            raise GraphError(f"two outputs are called {name!r}")
        self.outputs[name] = node


def all_args(node: Node) -> Sequence[Node]:
    """The arguments of a node."""
    return node.args


def ancestors(
    roots: Iterable[Node], stop: Iterable[Node] = (), follow: Follow = all_args
) -> list[Node]:
    """The nodes that ``roots`` need, themselves included, arguments first; ``stop`` not entered.

    ``follow``: the arguments of a node that count as needed.
    """
    found: dict[int, Node] = {}
    closed = {node.index for node in stop}
    todo = list(roots)
    while todo:
        node = todo.pop()
        if node.index in found:
            continue
        found[node.index] = node
        if node.index not in closed:
            todo.extend(follow(node))
    return [found[index] for index in sorted(found)]


def input_names(roots: Iterable[Node]) -> list[str]:
    """The names of the inputs that ``roots`` are computed from."""
    return [str(node.attributes["name"]) for node in ancestors(roots) if node.op == "input"]


def intern_key(op: str, args: Sequence[Node], attrs: Attrs) -> tuple[Any, ...]:
    """A key that is equal exactly for equal applications of ops in one graph."""
    return op, tuple(arg.index for arg in args), _identity(attrs)


def _identity(value: Any) -> Any:
    """A key under which only values of one type are equal: 1, 1.0 and True are three."""
    if isinstance(value, tuple):
        return tuple(_identity(item) for item in value)
    if isinstance(value, float):
        return ("float", struct.pack("<d", value))
    return (type(value).__name__, value)
