"""What the normal form is asked to prove: two expressions, and what is known of their leaves.

In: nodes of one graph.  Out: ``Goal``, and what its leaves stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field

from symgrad.index.lower import Lowering, leaf_name
from symgrad.ir.dim import Dim
from symgrad.ir.expr import Access, Expr, rebuild
from symgrad.ir.graph import Node
from symgrad.ops.record import get
from symgrad.proof.judge.equality import Equality
from symgrad.proof.normal.facts import Interval

_GENERIC = ("einsum", "rank")


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
    intervals: Mapping[str, Interval] = field(default_factory=dict)

    @property
    def computed(self) -> Container[str]:
        """The leaves that are not generic: all but contractions and what has no notation."""
        return _Computed(self.leaves)


@dataclass(frozen=True)
class _Computed:
    """Names of leaves that are not generic; each is looked up when it is asked for."""

    leaves: Mapping[str, Node]

    def __contains__(self, name: object) -> bool:
        node = self.leaves.get(name) if isinstance(name, str) else None
        return node is not None and node.op not in _GENERIC and not is_atom(node)


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
        forced = next((one for one in lowering.forced if leaf_name(one) == tensor), None)
        return None if forced is None else lowering.element(forced, indices, body=True)

    return define


Equal = Callable[[Goal], Equality]


def unfold(lowering: Lowering, expr: Expr, leaves: Mapping[str, Node]) -> Expr:
    """``expr`` with the elements of some cut nodes replaced by what ``lowering`` makes of them."""

    def rule(part: Expr, _: object) -> Expr | None:
        if not isinstance(part, Access) or part.tensor not in leaves:
            return None
        return lowering.element(leaves[part.tensor], part.indices)

    return rebuild(lowering.pool, [expr], rule)[expr]
