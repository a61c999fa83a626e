"""Which nodes become arrays.

In: equations and the axes of their nodes.  Out: the nodes to store, and how they are read.

One reverse sweep finds the index maps that each node is read with.  A node is stored when it is
an output or serves as an index, when it is a pattern of its own (a scatter, a running reduction,
a contraction), when it is a reduction read otherwise than as it lies, or when computing it
afresh at each of its index maps would cost too much.  What is stored is ``fused`` where it can
be computed in place by those who read it as it lies; of the others only the array is read: of what
serves as an index, and of ``once``, which must have the same bits wherever it is read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from symgrad.codegen.program.equations import Equation, Indices
from symgrad.index.lower import NodeAxes
from symgrad.ir.dim import Atom, Axis, Dim
from symgrad.ir.graph import Node

_CHEAP = 0.10  # ns an element: what may be computed again rather than stored and loaded
_MOST_MAPS = 3  # a node read in more places than this is stored whatever it costs
_MOST_WEIGHT = 40  # ... as is one whose text is larger than this, where it is not read as it lies


@dataclass(frozen=True)
class Materialised:
    """The nodes to be stored, in order; ``fused`` among them are computed in place too."""

    stored: tuple[Node, ...]
    fused: frozenset[Node]


def choose_materialised(
    equations: Sequence[Equation],
    axes: Mapping[Node, NodeAxes],
    outputs: Sequence[Node],
    once: Collection[Node] = (),
    joined: Collection[Node] = (),
) -> Materialised:
    """The nodes to store; ``once``: those that must be computed once; ``joined``: never stored."""
    total = _totals(equations)
    demands: dict[Node, dict[Indices, None]] = {equation.node: {} for equation in equations}
    serving = {node for equation in equations for node in equation.index_reads}
    opaque = serving | set(once)
    required = set(outputs) | opaque
    stored: list[Node] = []
    fused: set[Node] = set()
    for equation in reversed(equations):
        node = equation.node
        home = home_indices(node, axes[node])
        demand = list(demands[node])
        if node in joined:
            pass
        elif equation.pattern is not None:
            stored.append(node)
        elif node in required or _worth_storing(equation, demand, home, total[node]):
            stored.append(node)
            if node not in opaque:
                fused.add(node)
        maps = [home] if stored and stored[-1] is node else demand
        for where in maps:
            for read, indices in _reads_at(equation, axes[node], where):
                demands[read][indices] = None
    return Materialised(tuple(reversed(stored)), frozenset(fused))


def home_indices(node: Node, axes: NodeAxes) -> Indices:
    """The indices of a node as it lies: its own axes, 0 where there is one element."""
    pairs = zip(node.shape, axes.own, strict=True)
    return tuple(Dim.of(0 if size == 1 else axis) for size, axis in pairs)


def _worth_storing(
    equation: Equation, demand: Sequence[Indices], home: Indices, total: tuple[float, int]
) -> bool:
    away = [indices for indices in demand if indices != home]
    if not away:
        return False
    cost, weight = total
    if equation.reduces or weight > _MOST_WEIGHT or len(demand) > _MOST_MAPS:
        return True
    return cost > _CHEAP and (len(demand) > 1 or not _each_once(away[0], home))


def _each_once(indices: Indices, home: Indices) -> bool:
    """Is every element surely read at most once by one reader: shifted, turned or picked from?"""
    axes = [index.axes for index in indices]
    used = [axis for found in axes for axis in found]
    linear = all(len(found) <= 1 and _linear(i) for found, i in zip(axes, indices, strict=True))
    return linear and len(used) == len(set(used)) == sum(bool(index.axes) for index in home)


def _linear(index: Dim) -> bool:
    atoms = [atom for monomial, _ in index.terms for atom, _ in monomial]
    return all(isinstance(atom, Axis) or not atom.atoms & set(index.axes) for atom in atoms)


def _totals(equations: Sequence[Equation]) -> dict[Node, tuple[float, int]]:
    """Cost and weight of each node when all that it reads is computed in place, but for sums."""
    found: dict[Node, tuple[float, int]] = {}
    reduced = {equation.node for equation in equations if equation.reduces}
    for equation in equations:
        cost, weight = equation.cost, equation.weight
        for read, _ in equation.reads:
            if read not in reduced:
                cost += found[read][0]
                weight += found[read][1]
        found[equation.node] = min(cost, 1e6), min(weight, 10**6)
    return found


def _reads_at(
    equation: Equation, axes: NodeAxes, where: Indices
) -> list[tuple[Node, Indices]]:  # fmt: skip
    """What the equation reads when its node is read at ``where``."""
    mapping: dict[Atom, Dim] = dict(zip(equation.own, where, strict=True))
    mapping.update({a: Dim.of(b) for a, b in zip(equation.bound, axes.bound, strict=True)})
    return [
        (node, tuple(index.substitute(mapping) for index in indices))
        for node, indices in equation.reads
    ]
