"""Graph -> index notation: what each element of a node is.

In: a graph, and the nodes that are to be read as stored tensors (cuts).  Out: expressions, one
for each (node, indices), shared wherever they are equal.  Imports: ``symgrad.ops``, ``symgrad.ir``.

The axes that reductions bind are chosen so that equal work meets: of the canonical axes of an
extent (``n``, ``n_1``, ...), the first that is not an index of the reduction's result.  The sum
over a row and the row itself then run over the same axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from symgrad.errors import GraphError
from symgrad.ir.dim import Axis, Dim, DimLike, Element
from symgrad.ir.dtype import bool_, int64
from symgrad.ir.expr import Access, Expr, ExprPool, IntValue, Literal, free_axes
from symgrad.ir.graph import Graph, Node
from symgrad.ops.record import get

Task = tuple[Node, tuple[Dim, ...]]


class _Missing(Exception):
    """Lowering needs the element of another node first."""

    def __init__(self, task: Task) -> None:
        self.task = task


class Lowering:
    """The elements of the nodes of one graph.

    ``cuts``: nodes to be read as stored tensors named ``%<index>``; inputs always are, by their
    names.  ``forced``: nodes that had to be cut because a computed integer tensor serves as an
    index; they are in the order in which they were met.
    """

    def __init__(self, graph: Graph, cuts: Iterable[Node] = (), pool: ExprPool | None = None):
        self.graph = graph
        self.cuts = set(cuts)
        self.forced: list[Node] = []
        self.pool = pool or ExprPool()
        self._memo: dict[Task, Expr] = {}

    def element(self, node: Node, indices: Sequence[DimLike], *, body: bool = False) -> Expr:
        """``node[indices]``; with ``body``, of a cut node what it is computed from."""
        where = tuple(Dim.of(index) for index in indices)
        if body:
            return self._solve((node, where), body=True)
        return self._solve((node, where))

    def axes(self, node: Node) -> tuple[Axis, ...]:
        """Canonical axes for the indices of a node, one for each of its dimensions."""
        chosen: list[Axis] = []
        for extent in node.shape:
            chosen.append(fresh_axis(extent, frozenset(chosen)))
        return tuple(chosen)

    def _solve(self, goal: Task, *, body: bool = False) -> Expr:
        """Lower with an explicit stack: user graphs may be deeper than Python's."""
        stack = [goal]
        while True:
            task = stack[-1]
            if task not in self._memo or (body and task == goal):
                try:
                    result = self._lower(task, body=body and task == goal)
                except _Missing as missing:
                    stack.append(missing.task)
                    continue
                if body and task == goal:
                    return result
                self._memo[task] = result
            stack.pop()
            if not stack:
                return self._memo[goal]

    def _lower(self, task: Task, *, body: bool) -> Expr:
        node, indices = task
        if len(indices) != node.rank:
            raise GraphError(f"{node!r} is read with {len(indices)} indices")
        indices = tuple(
            Dim.of(0) if size == 1 else index
            for size, index in zip(node.shape, indices, strict=True)
        )
        if node.op == "input":
            return self.pool.access(node.attributes["name"], indices, node.dtype)
        if node in self.cuts and not body:
            return self.pool.access(f"%{node.index}", indices, node.dtype)
        op = get(node.op)
        if op.lower is not None:
            return op.lower(_Reader(self, node, indices), node, indices)
        if op.scalar is None:
            raise GraphError(f"the op {node.op!r} has no meaning in index notation")
        operands = [self.get(arg, indices) for arg in node.args]
        return self.pool.call(node.op, *operands, dtype=node.dtype)

    def get(self, node: Node, indices: tuple[Dim, ...]) -> Expr:
        """The element if it is known; otherwise lowering is suspended until it is."""
        task = (node, indices)
        if (found := self._memo.get(task)) is None:
            raise _Missing(task)
        return found

    def index(self, node: Node, indices: tuple[Dim, ...]) -> Dim:
        """An element of an integer node as an index expression."""
        value = self.get(node, indices)
        if isinstance(value, IntValue):
            return value.value
        if isinstance(value, Literal):
            return Dim.of(int(value.value))
        if isinstance(value, Access):
            return Dim.of(Element(value.tensor, value.indices))
        if node not in self.cuts:
            self.cuts.add(node)
            self.forced.append(node)
        return Dim.of(Element(f"%{node.index}", indices))


class _Reader:
    """What an op's ``lower`` sees: the arguments of its node, at chosen indices."""

    def __init__(self, lowering: Lowering, node: Node, indices: tuple[Dim, ...]) -> None:
        self.pool = lowering.pool
        self._lowering = lowering
        self._node = node
        self._used = free_axes(indices)

    def read(self, argument: int, *indices: DimLike) -> Expr:
        where = tuple(Dim.of(index) for index in indices)
        return self._lowering.get(self._node.args[argument], where)

    def index(self, argument: int, *indices: DimLike) -> Dim:
        node = self._node.args[argument]
        if node.dtype not in (int64, bool_):
            raise GraphError(f"{node!r} cannot be an index")
        return self._lowering.index(node, tuple(Dim.of(index) for index in indices))

    def reduce(self, kind: str, extents: Sequence[Dim], body: Callable[..., Expr]) -> Expr:
        bound: list[Axis | None] = []
        for extent in extents:
            taken = self._used.union(axis for axis in bound if axis)
            bound.append(fresh_axis(extent, taken) if extent != 1 else None)
        result = body(*(Dim.of(axis or 0) for axis in bound))
        if kind.startswith("arg") and bound == [None]:
            return self.pool.integer(0)
        for axis in reversed(bound):
            if axis is not None:
                result = self.pool.reduce(kind, axis, result)
        return result


def fresh_axis(extent: Dim, used: frozenset[Axis]) -> Axis:
    """The first canonical axis of ``extent`` that is not in ``used``."""
    base = f"i_{extent}".replace(" ", "")
    names = {axis.name for axis in used}
    number = 0
    while (name := base if not number else f"{base}_{number}") in names:
        number += 1
    return Axis(name, extent)
