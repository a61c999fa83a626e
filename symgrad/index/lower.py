"""Graph -> index notation: what each element of a node is.

In: a graph, and the nodes that are to be read as stored tensors (cuts).  Out: expressions, one
for each (node, indices), shared wherever they are equal.

The axes that reductions bind are chosen so that equal work meets: of the canonical axes of an
extent (``n``, ``n_1``, ...), the first that is not an index of the reduction's result.  The sum
over a row and the row itself then run over the same axis.  Who knows better which axes belong
together says so with ``NodeAxes``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from symgrad.errors import GraphError
from symgrad.ir.dim import Axis, Dim, DimLike, Element
from symgrad.ir.dtype import bool_, int64
from symgrad.ir.expr import (
    Access,
    Call,
    Expr,
    ExprPool,
    IntValue,
    Literal,
    fold,
    free_axes,
)
from symgrad.ir.graph import Graph, Node
from symgrad.ops.record import get

Task = tuple[Node, tuple[Dim, ...]]


class _Missing(Exception):
    """Lowering needs elements of other nodes first, in this order."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.tasks = tasks


@dataclass(frozen=True)
class NodeAxes:
    """The axes to use for a node: ``own``, one a dimension; ``bound``, for its reductions.

    ``bound`` are in the order in which the op asks for them, those of extent 1 left out.
    """

    own: tuple[Axis, ...]
    bound: tuple[Axis, ...] = ()


def leaf_name(node: Node) -> str:
    """The name of the tensor that a cut node is read as."""
    return f"%{node.index}"


class Leaves(Mapping[str, Node]):
    """Cut nodes by the names of their tensors: each is found by its place in the graph.

    There may be as many as the graph has nodes, and few of them are asked for.
    """

    def __init__(self, cuts: Iterable[Node]) -> None:
        self._cuts = frozenset(cuts)
        self._nodes = next(iter(self._cuts)).graph.nodes if self._cuts else []

    def __getitem__(self, name: str) -> Node:
        place = name[1:]
        if name[:1] == "%" and place.isdecimal() and int(place) < len(self._nodes):
            node = self._nodes[int(place)]
            if node in self._cuts:
                return node
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return map(leaf_name, self._cuts)

    def __len__(self) -> int:
        return len(self._cuts)


class Lowering:
    """The elements of the nodes of one graph.

    ``cuts``: nodes to be read as stored tensors named ``%<index>``; inputs always are, by their
    names.  ``axes``: axes to be preferred to the canonical ones.  ``fused``: cut nodes that are
    computed in place where they are read at their own axes, as stored tensors elsewhere.
    ``forced``: nodes that had to be cut because a computed integer tensor serves as an index;
    they are in the order in which they were met.  ``bound``: the axes that the reductions of a
    node bound when it was last lowered, in the order in which its op asked for them.
    """

    def __init__(
        self,
        graph: Graph,
        cuts: Iterable[Node] = (),
        pool: ExprPool | None = None,
        axes: Mapping[Node, NodeAxes] | None = None,
        fused: Collection[Node] = (),
    ) -> None:
        self.graph = graph
        self.cuts = set(cuts)
        self.forced: list[Node] = []
        self.bound: dict[Node, tuple[Axis, ...]] = {}
        self.pool = pool or ExprPool()
        self.known_axes = axes or {}
        self._fused = frozenset(fused)
        self._memo: dict[Task, Expr] = {}

    def element(self, node: Node, indices: Sequence[DimLike], *, body: bool = False) -> Expr:
        """``node[indices]``; with ``body``, of a cut node what it is computed from."""
        where = tuple(Dim.of(index) for index in indices)
        if body:
            return self._solve((node, where), body=True)
        return self._solve((node, where))

    def leaves(self) -> Leaves:
        """The cut nodes, as they are now."""
        return Leaves(self.cuts)

    def axes(self, node: Node) -> tuple[Axis, ...]:
        """The axes for the indices of a node, one for each of its dimensions."""
        if node in self.known_axes:
            return self.known_axes[node].own
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
                    stack.extend(reversed(missing.tasks))
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
        if node in self.cuts and not body and not self._in_place(node, indices):
            return self.pool.access(leaf_name(node), indices, node.dtype)
        op = get(node.op)
        if op.lower is not None:
            reader = _Reader(self, node, indices)
            result = op.lower(reader, node, indices)
            self.bound[node] = tuple(reader.bound)
            return result
        if op.scalar is None:
            raise GraphError(f"the op {node.op!r} has no meaning in index notation")
        operands = self.get_all([(arg, indices) for arg in node.args])
        if not node.dtype.wraps or op.scalar.chooses:
            return self.pool.call(node.op, *operands, dtype=node.dtype)
        wide = (self.pool.integer_cast(operand, int64) for operand in operands)
        exact = self.pool.call(node.op, *wide, dtype=int64)
        return self.pool.integer_cast(exact, node.dtype)

    def lowered(self) -> Iterator[tuple[Node, Expr]]:
        """What has been lowered: nodes and the expressions of their elements."""
        for (node, _), expr in self._memo.items():
            yield node, expr

    def _in_place(self, node: Node, indices: tuple[Dim, ...]) -> bool:
        return node in self._fused and indices == self.home(node)

    def home(self, node: Node) -> tuple[Dim, ...]:
        """The indices that stand for a node as it lies: its own axes, 0 where there is one."""
        pairs = zip(node.shape, self.axes(node), strict=True)
        return tuple(Dim.of(0 if size == 1 else axis) for size, axis in pairs)

    def get(self, node: Node, indices: tuple[Dim, ...]) -> Expr:
        """The element if it is known; otherwise lowering is suspended until it is."""
        task = (node, indices)
        if (found := self._memo.get(task)) is None:
            raise _Missing([task])
        return found

    def get_all(self, tasks: Sequence[Task]) -> list[Expr]:
        """The elements if all are known; otherwise lowering is suspended until they are."""
        missing = [task for task in tasks if task not in self._memo]
        if missing:
            raise _Missing(missing)
        return [self._memo[task] for task in tasks]

    def index(self, node: Node, indices: tuple[Dim, ...]) -> Dim:
        """An element of an integer node as an index expression."""
        if (value := as_dim(self.get(node, indices))) is not None:
            return value
        if node not in self.cuts:
            self.cuts.add(node)
            self.forced.append(node)
        return Dim.of(Element(leaf_name(node), indices))


class _Reader:
    """What an op's ``lower`` sees: the arguments of its node, at chosen indices."""

    def __init__(self, lowering: Lowering, node: Node, indices: tuple[Dim, ...]) -> None:
        self.pool = lowering.pool
        self._lowering = lowering
        self._node = node
        self._used = free_axes(indices)
        known = lowering.known_axes.get(node)
        self._preferred = known.bound if known else ()
        self.bound: list[Axis] = []

    def read(self, argument: int, *indices: DimLike) -> Expr:
        where = tuple(Dim.of(index) for index in indices)
        return self._lowering.get(self._node.args[argument], where)

    def read_all(self, elements: Sequence[tuple[int, Sequence[DimLike]]]) -> list[Expr]:
        return self._lowering.get_all(
            [(self._node.args[one], tuple(Dim.of(i) for i in where)) for one, where in elements]
        )

    def index(self, argument: int, *indices: DimLike) -> Dim:
        node = self._node.args[argument]
        if node.dtype not in (int64, bool_):
            raise GraphError(f"{node!r} cannot be an index")
        return self._lowering.index(node, tuple(Dim.of(index) for index in indices))

    def reduce(self, kind: str, extents: Sequence[Dim], body: Callable[..., Expr]) -> Expr:
        bound: list[Axis | None] = []
        for extent in extents:
            taken = self._used.union(axis for axis in bound if axis)
            bound.append(self._bind(extent, taken) if extent != 1 else None)
        result = body(*(Dim.of(axis or 0) for axis in bound))
        if kind.startswith("arg") and bound == [None]:
            return self.pool.integer(0)
        for axis in reversed(bound):
            if axis is not None:
                result = self.pool.reduce(kind, axis, result)
        return result

    def _bind(self, extent: Dim, taken: frozenset[Axis]) -> Axis:
        """The preferred axis of this reduction where there is one that is free."""
        ordinal = len(self.bound)
        wanted = self._preferred[ordinal] if ordinal < len(self._preferred) else None
        axis = wanted if wanted and wanted not in taken else fresh_axis(extent, taken)
        self.bound.append(axis)
        return axis


_ARITHMETIC: dict[str, Callable[..., Dim]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg,
    "floordiv": operator.floordiv, "mod": operator.mod,
}  # fmt: skip


def as_dim(expr: Expr) -> Dim | None:
    """An integer expression as an index; None where it is no arithmetic of integers."""
    return fold([expr], _one_dim)[expr]


def _one_dim(expr: Expr, found: Mapping[Expr, Dim | None]) -> Dim | None:
    if isinstance(expr, IntValue):
        return expr.value
    if isinstance(expr, Literal):
        return Dim.of(int(expr.value)) if not expr.dtype.is_float else None
    if isinstance(expr, Access):
        return Dim.of(Element(expr.tensor, expr.indices)) if not expr.dtype.is_float else None
    args = [found[arg] for arg in expr.args]
    if isinstance(expr, Call) and expr.function == "cast" and expr.operands[0].dtype.is_integer:
        return args[0]  # exact between integers
    if not isinstance(expr, Call) or expr.dtype != int64 or expr.function not in _ARITHMETIC:
        return None
    known = [arg for arg in args if arg is not None]
    divides = expr.function in ("floordiv", "mod") and len(known) == 2
    if len(known) < len(args) or (divides and known[1].constant == 0):
        return None
    return _ARITHMETIC[expr.function](*known)


def fresh_axis(extent: Dim, used: frozenset[Axis]) -> Axis:
    """The first canonical axis of ``extent`` that is not in ``used``."""
    base = f"i_{extent}".replace(" ", "")
    names = {axis.name for axis in used}
    number = 0
    while (name := base if not number else f"{base}_{number}") in names:
        number += 1
    return Axis(name, extent)
