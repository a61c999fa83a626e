"""Which axes of which nodes are one and the same loop.

In: the equations of a graph.  Out: for each node the axes to lower it with; axes that are read
through the identity map are equal, so that what belongs together meets.

A dimension of a node joins the dimension of the argument that it indexes, provided that no node
would have the same axis twice.  Arguments that are computed go before inputs: to meet at an input
is worth less.  Last, nodes meet that read a dimension of one array by the same several axes, as
``4*j + k``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from symgrad.codegen.program.equations import Equation, elements_of, private_axes
from symgrad.codegen.program.patterns import Scan
from symgrad.index.lower import NodeAxes
from symgrad.ir.dim import Axis, Dim
from symgrad.ir.expr import Access, postorder
from symgrad.ir.graph import Graph, Node

Place = tuple[int, str]  # a node's index and the name of one of its axes in its equation


class _Classes:
    """Disjoint sets of places; two places of one node never come into one set."""

    def __init__(self) -> None:
        self._parent: dict[Place, Place] = {}
        self._nodes: dict[Place, set[int]] = {}

    def add(self, place: Place) -> None:
        self._parent.setdefault(place, place)
        self._nodes.setdefault(place, {place[0]})

    def find(self, place: Place) -> Place:
        root = place
        while self._parent[root] != root:
            root = self._parent[root]
        while self._parent[place] != root:
            self._parent[place], place = root, self._parent[place]
        return root

    def join(self, first: Place, second: Place) -> None:
        first, second = sorted((self.find(first), self.find(second)))
        small, large = self._nodes[second], self._nodes[first]
        if first == second or not small.isdisjoint(large):
            return
        self._parent[second] = first
        large |= self._nodes.pop(second)


def unify(graph: Graph, equations: Sequence[Equation]) -> dict[Node, NodeAxes]:
    """The axes of every node that has an equation, and of every input."""
    classes = _Classes()
    own: dict[int, tuple[Axis, ...]] = {node.index: private_axes(node) for node in _inputs(graph)}
    own.update({equation.node.index: equation.own for equation in equations})
    for index, axes in own.items():
        for axis in axes:
            classes.add((index, axis.name))
    for equation in equations:
        for axis in equation.bound:
            classes.add((equation.node.index, axis.name))
    for computed in (True, False):
        for equation in equations:
            for place, other in _identities(graph, equation, own, computed=computed):
                classes.join(place, other)
    for place, other in _alike(equations):
        classes.join(place, other)
    names = _Names(classes)
    found = {node: NodeAxes(names.axes(node, own[node.index])) for node in _inputs(graph)}
    for equation in equations:
        node = equation.node
        found[node] = NodeAxes(names.axes(node, equation.own), names.axes(node, equation.bound))
    return found


class _Names:
    """An axis for each class: named by its extent and a number, in order of first mention."""

    def __init__(self, classes: _Classes) -> None:
        self._classes = classes
        self._numbers: dict[Place, int] = {}

    def axes(self, node: Node, axes: Sequence[Axis]) -> tuple[Axis, ...]:
        found = []
        for axis in axes:
            root = self._classes.find((node.index, axis.name))
            number = self._numbers.setdefault(root, len(self._numbers))
            found.append(Axis(f"@{number}", axis.extent))
        return tuple(found)


def _inputs(graph: Graph) -> list[Node]:
    return sorted(graph.inputs.values(), key=lambda node: node.index)


def _identities(
    graph: Graph, equation: Equation, own: dict[int, tuple[Axis, ...]], *, computed: bool
) -> Iterator[tuple[Place, Place]]:
    """The pairs of an axis of the equation and a dimension that it runs through as it lies."""
    index = equation.node.index
    for tensor, indices in _accesses(equation):
        is_computed = tensor.startswith("%")
        if is_computed != computed:
            continue
        read = int(tensor[1:]) if is_computed else graph.inputs[tensor].index
        for dim, axis in zip(indices, own[read], strict=True):
            if isinstance(dim.atom, Axis) and dim.atom.extent == axis.extent:
                yield (index, dim.atom.name), (read, axis.name)


def _alike(equations: Sequence[Equation]) -> Iterator[tuple[Place, Place]]:
    """The pairs of axes that have the same part in an index for the same dimension of an array."""
    first: dict[tuple[str, int, Dim], list[Place]] = {}
    for equation in equations:
        for tensor, indices in _accesses(equation):
            for dimension, index in enumerate(indices):
                axes = _apart(index)
                form = index.substitute(
                    {axis: Dim.of(Axis(f"#{part}", axis.extent)) for part, axis in enumerate(axes)}
                )
                places = [(equation.node.index, axis.name) for axis in axes]
                met = first.setdefault((tensor, dimension, form), places)
                yield from zip(places, met, strict=True)


def _apart(index: Dim) -> tuple[Axis, ...]:
    """The axes of an index, where their steps are constant and tell them apart; else none."""
    steps = {axis: index.substitute({axis: Dim.of(axis) + 1}) - index for axis in index.axes}
    if len(set(steps.values())) < len(steps) or any(step.axes for step in steps.values()):
        return ()
    return tuple(sorted(steps, key=lambda axis: steps[axis].key))


def _accesses(equation: Equation) -> Iterator[tuple[str, tuple[Dim, ...]]]:
    """What the equation reads; a running sum reads along the axis of its result."""
    body = equation.pattern.body if isinstance(equation.pattern, Scan) else equation.body
    for expr in postorder([body]):
        if isinstance(expr, Access):
            yield expr.tensor, expr.indices
        for element in elements_of(expr):
            yield element.tensor, element.indices
