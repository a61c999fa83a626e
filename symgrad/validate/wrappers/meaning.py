"""What the kernels of a case compute together, and what the traced Function computes.

In: one case of a traced Function, the graphs of its kernels.  Out: nodes of one graph, in which
the output of a call of a kernel stands for what it is in terms of the inputs of the op.

Two nodes are equal where they are the same once both are simplified, which keeps every bit, and
permuted contractions are made at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symgrad.errors import SymgradError
from symgrad.ir.function import FunctionCase, FunctionGraphs
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ir.types import TensorType
from symgrad.passes.evaluate import evaluate
from symgrad.passes.rules import simplest
from symgrad.passes.turned import at_once
from symgrad.validate.wrappers.values import NotShown, Wrong

SIZES = (3, 2, 5, 4, 7, 6)
"""The sizes, in turn, at which two graphs are compared by their values."""
CLOSE = 1e-3


@dataclass(frozen=True)
class Item:
    """One thing that forward keeps: an array or number (a node), a size, or axes (a name)."""

    node: Node | None = None
    size: str = ""
    axes: str = ""


class Meaning:
    """The values of one case.  ``inputs``, ``numbers``, ``cotangents``: of the op."""

    def __init__(
        self, graphs: FunctionGraphs, case: FunctionCase, kernels: Mapping[str, Graph]
    ) -> None:
        self.graphs, self.case = graphs, case
        self._kernels = kernels
        self._graph = Graph()
        self.inputs = [self._input(f"input {i}", n.type) for i, n in enumerate(case.tensors)]
        passed = [one.name for one in graphs.values if one.number]
        self.numbers: list[Node | None] = [None] * len(passed)
        self._known = dict(zip(case.tensors, self.inputs, strict=True))
        for node in case.numbers:
            place = passed.index(str(node.name))
            made = self._input(f"number {place}", node.type)
            self.numbers[place] = self._known[node] = made
        self.cotangents = [
            None if node is None else self._input(f"cotangent {i}", node.type)
            for i, node in enumerate(case.cotangents)
        ]
        for given, own in zip(case.cotangents, self.cotangents, strict=True):
            if given is not None and own is not None:
                self._known[given] = own
        self._forward = self._spread(self._graph, self._before(), self._known)
        self.outputs = [self._forward[node] for node in case.outputs]
        self.gradients = self._gradients()

    def _input(self, name: str, kind: TensorType) -> Node:
        return self._graph.input(name, kind)

    def _gradients(self) -> list[Node | None]:
        """The gradient of each input, as a node of the case; None for 0."""
        found: list[Node | None] = [None] * len(self.inputs)
        for one in self.case.gradients:
            found[self.graphs.input_names.index(one.input)] = one.node
        return found

    def _before(self) -> list[Node]:
        """The nodes that no cotangent is needed for."""
        gradients = (one.node for one in self.case.gradients if one.node is not None)
        after = {node for node in self.case.cotangents if node is not None}
        found = []
        for node in ancestors([*self.case.outputs, *gradients]):
            if node in after or any(arg in after for arg in node.args):
                after.add(node)
            else:
                found.append(node)
        return found

    @staticmethod
    def _spread(
        target: Graph, roots: Iterable[Node], known: Mapping[Node, Node]
    ) -> dict[Node, Node]:
        """What stands in ``target`` for nodes, simplified."""

        def rule(node: Node, args: Sequence[Node]) -> Node:
            if node.op == "input":
                raise NotShown(f"{node.label} is an input that the op does not have")
            return at_once(simplest(target.apply(node.op, *args, **node.attributes)))

        try:
            return rewrite(target, roots, known, rule, named=False)
        except SymgradError as problem:
            raise NotShown(f"the graphs of kernels do not fit: {problem.what}") from problem

    # -- calls of kernels

    def graph(self, kernel: str, line: int) -> Graph:
        """The graph of a kernel."""
        if kernel not in self._kernels:
            raise NotShown(f"there is no graph for the kernel {kernel}", line)
        return self._kernels[kernel]

    def call(self, kernel: str, given: Mapping[str, Node], line: int) -> dict[str, Node]:
        """The outputs of a call of a kernel."""
        graph = self.graph(kernel, line)
        return self._within(self._graph, graph, given, line)

    def _within(
        self, target: Graph, graph: Graph, given: Mapping[str, Node], line: int
    ) -> dict[str, Node]:
        for name, node in given.items():
            if graph.inputs[name].type != node.type:
                raise Wrong(f"{name} is {graph.inputs[name].type}, and {node.type} is passed", line)
        known = {graph.inputs[name]: node for name, node in given.items()}
        new = self._spread(target, graph.outputs.values(), known)
        return {name: new[node] for name, node in graph.outputs.items()}

    # -- is it what the Function computes?

    def check_output(self, position: int, found: Node, line: int) -> None:
        """Raises Wrong or NotShown where a node is not this output."""
        if found is not self.outputs[position]:
            name = self.case.output_names[position]
            self._unequal(f"the output {name}", found, self.outputs[position], line)

    def check_gradient(
        self, position: int, found: Node | None, kept: Sequence[Item],
        kernel: str, given: Mapping[str, Node], output: str, line: int,
    ) -> None:  # fmt: skip
        """Raises Wrong or NotShown where an output of a kernel is not this gradient.

        ``kept``: what forward keeps; ``found``: the output, None for zeros.
        """
        name = self.graphs.input_names[position]
        wanted = self.gradients[position]
        if wanted is None or found is None:
            if wanted is not None or found is not None:
                whole = self._whole(wanted)
                self._unequal(f"the gradient of {name}", found, whole, line)
            return
        if not self._equal_once_cut(wanted, kept, kernel, given, output, line):
            whole = self._whole(wanted)
            if found is not whole:
                self._unequal(f"the gradient of {name}", found, whole, line)

    def _whole(self, node: Node | None) -> Node | None:
        return None if node is None else self._spread(self._graph, [node], self._known)[node]

    def _equal_once_cut(
        self, wanted: Node, kept: Sequence[Item], kernel: str, given: Mapping[str, Node],
        output: str, line: int,
    ) -> bool:  # fmt: skip
        """Are both the same, what forward keeps being an input?"""
        cut = Graph()
        border = dict.fromkeys(
            [*self.inputs, *(one for one in self.numbers if one is not None)]
            + [one for one in self.cotangents if one is not None]
            + [one.node for one in kept if one.node is not None]
        )
        own = {node: cut.input(str(i), node.type) for i, node in enumerate(border)}
        known = {node: own[new] for node, new in self._forward.items() if new in own}
        known |= {node: own[new] for node, new in self._known.items()}
        left = self._spread(cut, [wanted], known)[wanted]
        passed = {name: own[node] for name, node in given.items()}
        return left is self._within(cut, self._kernels[kernel], passed, line)[output]

    def _unequal(self, what: str, found: Node | None, wanted: Node | None, line: int) -> None:
        """Raises Wrong where the values differ at a point, else NotShown."""
        if found is None or wanted is None:
            node = found or wanted
            assert node is not None
            values = self._values([node])
            if values is not None and np.any(values[0]):
                raise Wrong(f"{what} is {'not 0' if wanted else '0'}", line)
            raise NotShown(f"{what} was not shown to be 0", line)
        if found.type != wanted.type:
            raise Wrong(f"{what} is {wanted.type}, not {found.type}", line)
        pair = self._values([found, wanted])
        if pair is not None and all(np.isfinite(one).all() for one in pair):
            far = ~np.isclose(pair[0], pair[1], rtol=CLOSE, atol=CLOSE)
            if far.any():
                one, other = (float(values[far].flat[0]) for values in pair)
                raise Wrong(f"{what} is {other:.6g} at a point where this gives {one:.6g}", line)
        raise NotShown(f"{what} was not shown to be what the Function computes", line)

    def _values(self, nodes: Sequence[Node]) -> list[np.ndarray[Any, Any]] | None:
        """The values of nodes at one point; None where there are none."""
        names = dict.fromkeys(
            size for node in ancestors(nodes) for dim in node.shape for size in dim.sizes
        )
        sizes = {name: SIZES[i % len(SIZES)] for i, name in enumerate(names)}
        drawn = np.random.default_rng(0)
        feeds = {}
        try:
            for name, node in self._graph.inputs.items():
                shape = tuple(
                    dim.at({**dict.fromkeys(dim.sizes, 2), **sizes}) for dim in node.shape
                )
                values: np.ndarray[Any, Any] = drawn.uniform(0.2, 0.9, shape)
                if not node.dtype.is_float:
                    values = drawn.integers(0, 2, shape)
                feeds[name] = values.astype(str(node.dtype))
            return evaluate(nodes, feeds, sizes)
        except (SymgradError, ArithmeticError, ValueError, IndexError):
            return None
