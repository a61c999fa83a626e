"""What is put to the normal form, and what it takes as it is.

In: nodes.  Out: ``Goal``; the nodes that are atoms of the proof, and their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from symgrad.index.lower import Lowering
from symgrad.ir.dim import Dim
from symgrad.ir.expr import Expr
from symgrad.ir.graph import Node
from symgrad.ops.record import get


@dataclass(frozen=True)
class Goal:
    """Two expressions to be proved equal; None is zero.

    ``leaves``: the nodes that cut names stand for.  ``define``: what an element of a computed
    index tensor is, None for any other tensor.  ``budget``: work for its normal form.
    """

    hand: Expr
    reference: Expr | None
    leaves: Mapping[str, Node]
    define: Callable[[str, tuple[Dim, ...]], Expr | None]
    budget: int | None = None


def is_atom(node: Node) -> bool:
    """Has the node no index notation, so that the proof takes it as it is?"""
    op = get(node.op)
    return op.lower is None and op.scalar is None and node.op != "input"


def opaque_atoms(nodes: Iterable[Node]) -> list[Node]:
    """Nodes that are read as they are: inverses and factors, with their matrices, and ranks."""
    found: dict[Node, None] = {}
    for node in nodes:
        if node.op == "rank":
            found[node] = None
        elif is_atom(node):
            found.update(dict.fromkeys([*(a for a in node.args if a.op != "input"), node]))
    return list(found)


def definitions(lowering: Lowering) -> Callable[[str, tuple[Dim, ...]], Expr | None]:
    """What the elements of the index tensors are that lowering had to cut."""

    def define(tensor: str, indices: tuple[Dim, ...]) -> Expr | None:
        forced = {f"%{node.index}": node for node in lowering.forced}
        if tensor not in forced:
            return None
        return lowering.element(forced[tensor], indices, body=True)

    return define


def name_of(node: Node) -> str:
    """What a node is called in index notation where it is read as it is."""
    return str(node.attributes["name"]) if node.op == "input" else f"%{node.index}"
