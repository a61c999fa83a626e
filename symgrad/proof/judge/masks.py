"""Masks: which elements of a point lie on a boundary, as signs of tensors that nothing else reads.

In: boundaries.  Out: nodes and names.  A mask is arbitrary, so that what is proved with it holds
for any elements on the boundary.
"""

from __future__ import annotations

from collections.abc import Sequence

from symgrad.ir.graph import Graph, Node
from symgrad.ir.types import TensorType
from symgrad.proof.judge.boundaries import Boundary, name_of
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.atoms import Atom
from symgrad.proof.normal.poly import all_atoms

_PREFIX = "@"


def name_of_mask(tensor: str, place: int) -> str:
    """``place``: of the boundary among those with this tensor as their point."""
    return f"{_PREFIX}{place}{tensor}"


def is_mask(atom: Atom) -> bool:
    """Is it the indicator of a mask?"""
    if atom.kind != kinds.POSITIVE:
        return False
    tensors = {a.data[0] for a in all_atoms(atom.data[0]) if a.kind == kinds.LEAF}
    return bool(tensors) and all(name.startswith(_PREFIX) for name in tensors)


def masks_of(graph: Graph, found: Sequence[Boundary]) -> list[Node]:
    """The mask of each boundary: of those with one point, the last one that holds decides."""
    masks: list[Node] = []
    count: dict[Node, int] = {}
    for one in found:
        place = count[one.point] = count.get(one.point, -1) + 1
        name, kind = name_of_mask(name_of(one.point), place), one.point.type
        side = graph.inputs.get(name) or graph.input(name, TensorType(kind.dtype, kind.shape))
        masks.append(graph.binary("gt", side, 0.0))
    for k, one in enumerate(found):
        for later in range(k + 1, len(found)):
            if found[later].point is one.point:
                other = graph.apply("logical_not", masks[later])
                masks[k] = graph.apply("logical_and", masks[k], other)
    return masks
