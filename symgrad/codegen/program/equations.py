"""Each node as one equation: its element in terms of the elements of nodes before it.

In: a graph with outputs.  Out: ``Equation`` records, arguments first.

Nodes that only say where an element comes from, and integer arithmetic, are looked through: they
have no equation unless they are outputs, and others read what lies behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from symgrad.budgets import MOST_INDEX_ATOMS
from symgrad.codegen.program.patterns import Pattern, Scan, recognise
from symgrad.codegen.program.rewrite import eliminate_deltas
from symgrad.errors import CodegenError
from symgrad.index.lower import Lowering, NodeAxes, as_dim
from symgrad.ir.dim import Axis, Derived, Dim, Element
from symgrad.ir.dtype import int64
from symgrad.ir.expr import Access, Call, Expr, IntValue, Literal, Reduce, postorder
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ops.record import get

Indices = tuple[Dim, ...]

_READ = 0.02  # ns: what reading a stored element costs in a vectorised loop


@dataclass(frozen=True)
class Equation:
    """``node[own] = body``.

    ``bound``: the axes of its reductions; ``reads``: what is read of other nodes;
    ``index_reads``: the nodes that serve as indices; ``cost``: ns an element, without what it
    reads; ``weight``: how large the text of ``body`` is.
    """

    node: Node
    own: tuple[Axis, ...]
    bound: tuple[Axis, ...]
    body: Expr
    pattern: Pattern | None
    reads: tuple[tuple[Node, Indices], ...]
    index_reads: tuple[Node, ...]
    cost: float
    weight: int

    @property
    def reduces(self) -> bool:
        """Is there a reduction in it?"""
        return any(isinstance(expr, Reduce) for expr in postorder([self.body]))


def equations(graph: Graph, outputs: Sequence[Node]) -> list[Equation]:
    """The equations of all nodes that ``outputs`` need and that are not looked through.

    Raises CodegenError for an op that has no meaning in index notation.
    """
    nodes = ancestors(outputs)
    private = {node: NodeAxes(private_axes(node)) for node in nodes}
    lowering = Lowering(graph, axes=private)
    found: list[Equation] = []
    wanted = set(outputs)
    for node in nodes:
        if node.op == "input":
            continue
        _check_meaning(node)
        own = private[node].own
        lowered = lowering.element(node, lowering.home(node), body=True)
        body = eliminate_deltas(lowering.pool, [lowered])[lowered]
        if node not in wanted and _transparent(node, body) and _readable(node, lowered):
            continue
        lowering.cuts.add(node)
        pattern = recognise(lowering.pool, own, body)
        bound = lowering.bound.get(node, ())
        along = pattern.body if isinstance(pattern, Scan) else body
        reads, index_reads = _reads(graph, along)
        cost, weight = _measure(body)
        found.append(Equation(node, own, bound, body, pattern, reads, index_reads, cost, weight))
    forced = {node.index for node in lowering.forced}
    known = {equation.node.index for equation in found}
    assert forced <= known, "an index is computed by a node that was looked through"
    return found


def _check_meaning(node: Node) -> None:
    op = get(node.op)
    if op.lower is None and op.scalar is None:
        raise CodegenError(
            f"the op {node.op!r} cannot be written in C yet",
            location=node.location,
            hint="the NumPy backend evaluates it",
        )


def private_axes(node: Node) -> tuple[Axis, ...]:
    """Axes that no other node has, one for each dimension."""
    return tuple(Axis(f"{node.index}.{axis}", size) for axis, size in enumerate(node.shape))


def _transparent(node: Node, body: Expr) -> bool:
    """Is the node to be looked through?"""
    if isinstance(body, (Literal, IntValue)):
        return True
    if isinstance(body, Access):
        return all(map(_is_small, body.indices))
    index = as_dim(body) if node.dtype == int64 else None
    return index is not None and _is_small(index)


def _readable(node: Node, lowered: Expr) -> bool:
    """Can it serve as an index without being stored?  Deltas are not eliminated there."""
    return node.dtype != int64 or as_dim(lowered) is not None


def _is_small(index: Dim) -> bool:
    """May the index expression be put into others?"""
    weight = 0
    todo = [index]
    while todo and weight <= MOST_INDEX_ATOMS:
        for monomial, _ in todo.pop().terms:
            for atom, power in monomial:
                weight += power
                if isinstance(atom, Derived):
                    todo += [atom.left, atom.right]
                elif isinstance(atom, Element):
                    todo += atom.indices
    return weight <= MOST_INDEX_ATOMS


def _reads(
    graph: Graph, body: Expr
) -> tuple[tuple[tuple[Node, Indices], ...], tuple[Node, ...]]:  # fmt: skip
    """The stored elements that ``body`` is made of, and the nodes that its indices come from."""
    reads: dict[tuple[int, Indices], tuple[Node, Indices]] = {}
    serving: dict[int, Node] = {}
    for expr in postorder([body]):
        if isinstance(expr, Access) and (node := stored_node(graph, expr.tensor)) is not None:
            reads[node.index, expr.indices] = (node, expr.indices)
        for element in elements_of(expr):
            if (node := stored_node(graph, element.tensor)) is not None:
                serving[node.index] = node
    return tuple(reads.values()), tuple(serving.values())


def elements_of(expr: Expr) -> list[Element]:
    """The elements of integer tensors in the index expressions of ``expr`` itself, in order."""
    if isinstance(expr, Access):
        return elements_in(expr.indices)
    return elements_in([expr.value]) if isinstance(expr, IntValue) else []


def elements_in(dims: Iterable[Dim]) -> list[Element]:
    """The elements of integer tensors in index expressions, in order."""
    found = {atom for dim in dims for atom in dim.atoms if isinstance(atom, Element)}
    return sorted(found, key=lambda element: element.key)


def stored_node(graph: Graph, tensor: str) -> Node | None:
    """The node that a tensor's name stands for; None for an input."""
    return graph.nodes[int(tensor[1:])] if tensor.startswith("%") else None


def _measure(body: Expr) -> tuple[float, int]:
    found = postorder([body])
    return sum(map(scalar_cost, found), 0.0), len(found)


def scalar_cost(expr: Expr) -> float:
    """Ns for one element of ``expr`` itself, its operands aside."""
    if isinstance(expr, Call):
        scalar = get(expr.function).scalar
        return scalar.cost if scalar else _READ
    return 0.0 if isinstance(expr, (Literal, IntValue)) else _READ
