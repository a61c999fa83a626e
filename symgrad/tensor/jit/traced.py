"""A lifted trace as kernels: forward, the derived backward, and derivatives of any order.

In: a way to trace something at given sizes.  Out: ``Family``: kernels for every size of one
pattern, each behind the tape.

A family traces again where the conditions on sizes that earlier traces used do not hold.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symgrad.autodiff import recorded_vjp
from symgrad.budgets import MOST_TRACED_NODES
from symgrad.forks import forks_wait
from symgrad.frontend.session import activate
from symgrad.frontend.sizes import symbolic_math
from symgrad.ir.function import FunctionCase, FunctionGraphs, Gradient
from symgrad.ir.graph import Graph, Node
from symgrad.kernels import OpPlan, plan
from symgrad.ops.markers import without_markers
from symgrad.runtime.op import CompiledOp, make_op
from symgrad.tensor.modes import enable_grad
from symgrad.tensor.tape import kernelnode
from symgrad.tensor.tape.kernelnode import Mask
from symgrad.tensor.tensor import Tensor, wrap
from symgrad.tensor.trace.lifting import LiftingSession, Untraceable, number_of, satisfied

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Traced:
    """``outputs`` as functions of ``inputs``, in the graph of a session.

    ``captured``: the tensors behind the last of the inputs.  ``rebuild``: the result that the
    function returned, out of its tensors.  ``present``: of a derivative, the inputs that there is
    an output for.
    """

    name: str
    session: LiftingSession
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    captured: tuple[Tensor, ...] = ()
    rebuild: Callable[[Sequence[Any]], Any] = list
    present: Mask = ()

    def derivative(self, mask: Mask) -> Traced:
        """The gradients of the inputs in ``mask``, for cotangents that come behind them."""
        cotangents, found = self.gradients(mask)
        given = tuple(cotangent for cotangent in cotangents if cotangent is not None)
        outputs = tuple(gradient for gradient in found if gradient is not None)
        present = tuple(gradient is not None for gradient in found)
        return Traced(
            f"{self.name}_backward", self.session, (*self.inputs, *given), outputs,
            present=present,
        )  # fmt: skip

    def gradients(self, mask: Mask) -> tuple[list[Node | None], list[Node | None]]:
        """New cotangents of the outputs, and the gradients of the inputs."""
        graph = self.session.graph
        number = len(graph.inputs)
        cotangents = [
            graph.input(f"grad_{place}_{number}", node.type) if node.dtype.is_float else None
            for place, node in enumerate(self.outputs)
        ]
        wanted = [node for node, asked in zip(self.inputs, mask, strict=True) if asked]
        with activate(self.session), symbolic_math(), enable_grad():
            found = iter(recorded_vjp(self.outputs, cotangents, wanted, self.session.history.rule))
        return cotangents, [next(found) if asked else None for asked in mask]

    def planned(self, needs: Mask) -> OpPlan:
        """The graphs of its kernels, with a backward for the inputs in ``needs``."""
        cotangents: list[Node | None] = [None] * len(self.outputs)
        gradients: list[Node | None] = [None] * len(self.inputs)
        if any(needs):
            cotangents, gradients = self.gradients(needs)
        given = [node for node in (*self.inputs, *cotangents) if node is not None]
        graph = Graph()
        known = {node: graph.input(str(node.name), node.type) for node in given}
        roots = [*self.outputs, *(node for node in gradients if node is not None)]
        new = without_markers(graph, roots, known)
        if len(graph.nodes) > MOST_TRACED_NODES:
            raise Untraceable(f"its graph has {len(graph.nodes)} nodes")
        names = [f"output_{place}" for place in range(len(self.outputs))]
        case = FunctionCase(
            conditions=(), graph=graph,
            inputs=tuple(new[node] for node in self.inputs),
            outputs=tuple(new[node] for node in self.outputs),
            output_names=tuple(names if len(names) > 1 else ["output"]),
            cotangents=tuple(None if node is None else new[node] for node in cotangents),
            gradients=tuple(
                Gradient(str(node.name), new[gradient], new[gradient])
                for node, gradient in zip(self.inputs, gradients, strict=True)
                if gradient is not None
            ),
            saved=(),
        )  # fmt: skip
        graphs = FunctionGraphs(
            name=self.name, location=None, cases=(case,), derived=True,
            input_names=tuple(str(node.name) for node in self.inputs),
            differentiable=tuple(gradient.input for gradient in case.gradients),
        )  # fmt: skip
        return plan(graphs, pruned=False)


class Entry:
    """The kernels of one trace, for any set of inputs that need a gradient."""

    def __init__(self, family: Family, traced: Traced) -> None:
        self.family = family
        self.traced = traced
        self._kernels: dict[Mask, TracedKernels] = {}

    def serves(self, sizes: Sizes) -> bool:
        """Do the conditions that the trace used hold?"""
        conditions = self.traced.session.conditions.values()
        return all(satisfied(condition, sizes) for condition in conditions)

    def ready(self, needs: Mask) -> TracedKernels | None:
        """The kernels for these needs, where there are some."""
        return self._kernels.get(needs)

    def kernels(self, needs: Mask) -> TracedKernels:
        """The kernels for these needs.  Raises what tracing the backward and compiling raise."""
        found = self._kernels.get(needs)
        if found is None:
            found = self._kernels[needs] = TracedKernels(self, needs)
        return found


class TracedKernels:
    """Kernels behind the tape (``kernelnode.Kernels``)."""

    def __init__(self, entry: Entry, needs: Mask) -> None:
        self.label = f"{entry.traced.name}Backward"
        self.plan = entry.traced.planned(needs)
        self.differentiable = self.plan.differentiable
        self.family = entry.family
        self.op = compiled(self.plan)

    def differentiate(
        self, inputs: Sequence[Tensor], cotangents: Sequence[Tensor | None], mask: Mask
    ) -> Sequence[Tensor | None]:
        """The gradients by the kernels of the derivative, which are recorded in turn."""
        return self.family.differentiate(inputs, cotangents, mask)


def compiled(planned: OpPlan) -> CompiledOp:
    """The op of a plan.  Raises BuildError, CacheError and CodegenError."""
    with forks_wait():
        from symgrad.emission import (
            emit,  # code generation is only needed where something is compiled
        )

    emitted = emit(planned, "The backward is derived.")
    return make_op(emitted.wrapper(), emitted.texts)


class Family:
    """All traces of one thing at one pattern of sizes.

    ``trace``: traces it at these sizes.  ``sizes_of``: the sizes, from the tensors that it is
    called with (more tensors may follow them).
    """

    def __init__(
        self, trace: Callable[[Sizes], Traced], sizes_of: Callable[[Sequence[Tensor]], Sizes]
    ) -> None:
        self.trace = trace
        self.sizes_of = sizes_of
        self.entries: list[Entry] = []
        self._derivatives: dict[Mask, Family] = {}

    def entry(self, sizes: Sizes) -> Entry:
        """The kernels for these sizes; traced where there are none yet."""
        for found in self.entries:
            if found.serves(sizes):
                return found
        made = Entry(self, self.trace(sizes))
        self.entries.append(made)
        return made

    def derivative(self, mask: Mask) -> Family:
        """The family of the gradients of the inputs in ``mask``."""
        found = self._derivatives.get(mask)
        if found is None:
            trace = functools.partial(self._derived, mask)
            found = self._derivatives[mask] = Family(trace, self.sizes_of)
        return found

    def _derived(self, mask: Mask, sizes: Sizes) -> Traced:
        return self.entry(sizes).traced.derivative(mask)

    def differentiate(
        self, inputs: Sequence[Tensor], cotangents: Sequence[Tensor | None], mask: Mask
    ) -> list[Tensor | None]:
        """The gradients of the inputs in ``mask`` as tensors with histories; None for zero."""
        sizes = self.sizes_of(inputs)
        outputs = self.entry(sizes).traced.outputs
        given = [
            _zeros(output, sizes) if cotangent is None else cotangent
            for output, cotangent in zip(outputs, cotangents, strict=True)
            if output.dtype.is_float
        ]
        entry = self.derivative(mask).entry(sizes)
        found: Iterator[Tensor] = iter(())
        if entry.traced.outputs:
            tensors = [*inputs, *given]
            needs = tuple(tensor.requires_grad for tensor in tensors)
            found = iter(kernelnode.call(entry.kernels(needs), tensors))
        return [next(found) if there else None for there in entry.traced.present]


def _zeros(output: Node, sizes: Sizes) -> Tensor:
    shape = tuple(number_of(dim, sizes) for dim in output.shape)
    return wrap(np.zeros(shape, str(output.dtype)))
