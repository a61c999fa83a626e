"""A lifted trace as kernels: forward, the derived backward, and derivatives of any order.

In: a way to trace something at given sizes.  Out: ``Family``: kernels for every size of one
pattern, each behind the tape.

A family traces again where the conditions on sizes that earlier traces used do not hold.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from symgrad.abi import Case, Op
from symgrad.autodiff import recorded_vjp
from symgrad.budgets import MOST_TRACED_NODES
from symgrad.forks import forks_wait
from symgrad.frontend.session import activate
from symgrad.frontend.sizes import symbolic_math
from symgrad.ir.function import FunctionCase, FunctionGraphs, Gradient
from symgrad.ir.graph import Graph, Node
from symgrad.kernels import OpPlan, plan
from symgrad.ops.markers import without_markers
from symgrad.passes.evaluate import evaluate
from symgrad.plain_values import PlainArgument
from symgrad.runtime.op import CompiledOp, make_op
from symgrad.runtime.residuals import Residuals
from symgrad.tensor.modes import enable_grad
from symgrad.tensor.tape import kernelnode
from symgrad.tensor.tape.kernelnode import Mask
from symgrad.tensor.tensor import Tensor, wrap
from symgrad.tensor.trace.lifting import LiftingSession, Untraceable, number_of, satisfied

NUMBER = "@"
"""What the names of floats begin with among the sizes."""
_AGREEMENT = 1e-6
"""Relative differences below it are rounding."""
Sizes = Mapping[str, Any]
"""Sizes, and floats that are passed."""


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
            plain=tuple(
                str(node.name) for node, one in zip(self.inputs, self.passed, strict=True) if one
            ),
        )  # fmt: skip
        graphs = FunctionGraphs(
            name=self.name, location=None, cases=(case,), derived=True,
            input_names=tuple(
                str(node.name) for node, one in zip(self.inputs, self.passed, strict=True)
                if not one
            ),
            differentiable=tuple(gradient.input for gradient in case.gradients),
            values=tuple(PlainArgument(name, 0.0, number="float64") for name in case.plain),
        )  # fmt: skip
        return plan(graphs, pruned=False, steady=False)

    @property
    def passed(self) -> Mask:
        """Which of the inputs are floats, that the kernels take themselves."""
        numbers = self.session.plain.values()
        return tuple(any(node is one for one in numbers) for node in self.inputs)


class Entry:
    """The kernels of one trace, for any set of inputs that need a gradient."""

    def __init__(self, family: Family, traced: Traced) -> None:
        self.family = family
        self.traced = traced
        self._kernels: dict[Mask, TracedKernels] = {}

    def serves(self, sizes: Sizes) -> bool:
        """Do the conditions that the trace used hold?"""
        conditions = self.traced.session.conditions.values()
        served = all(satisfied(condition, sizes) for condition in conditions)
        return served and self.admits(sizes)

    def admits(self, sizes: Sizes) -> bool:
        """Does the trace do the same for these floats?"""
        regions = self.traced.session.regions
        return all(region.holds(sizes[name]) for name, region in regions.items())

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
        passed = entry.traced.passed
        able = iter(self.plan.differentiable)
        self.differentiable = tuple(not one and next(able) for one in passed)
        self.family = entry.family
        self.op: Any = compiled(self.plan)
        if any(passed):
            self.op = PassingOp(self.op, passed)

    def differentiate(
        self, inputs: Sequence[Tensor], cotangents: Sequence[Tensor | None], mask: Mask
    ) -> Sequence[Tensor | None]:
        """The gradients by the kernels of the derivative, which are recorded in turn."""
        return self.family.differentiate(inputs, cotangents, mask)


class PassingOp:
    """An op whose numbers are given as arrays of no axes among its tensors.

    ``passed``: which of the arrays are numbers.
    """

    def __init__(self, op: CompiledOp, passed: Mask) -> None:
        self.op = op
        self.passed = passed
        places = [place for place, one in enumerate(passed) if not one]
        record = op.caller.op
        cases = tuple(
            replace(
                case,
                residuals=tuple(
                    replace(one, position=places[one.position]) if one.source == "input" else one
                    for one in case.residuals
                ),
            )
            for case in record.cases
        )
        self.caller = _Caller(replace(record, cases=cases), op.caller.residuals)

    def inference(self, *arrays: Any) -> Any:
        """The outputs alone."""
        return self._at(arrays).inference(*self._tensors(arrays))

    def forward(self, *arrays: Any) -> Any:
        """The outputs, and what backward needs."""
        return self._at(arrays).forward(*self._tensors(arrays))

    def backward(self, residuals: Any, *cotangents: Any, needs_input_grad: Mask) -> tuple[Any, ...]:
        """The gradients, None for a number."""
        mask = tuple(self._tensors(needs_input_grad))
        found = iter(self.op.backward(residuals, *cotangents, needs_input_grad=mask))
        return tuple(None if one else next(found) for one in self.passed)

    def _at(self, arrays: Sequence[Any]) -> Any:
        pairs = zip(arrays, self.passed, strict=True)
        return self.op.at([array.item() for array, one in pairs if one])

    def _tensors(self, values: Sequence[Any]) -> list[Any]:
        return [value for value, one in zip(values, self.passed, strict=True) if not one]


@dataclass(frozen=True)
class _Caller:
    """What the tape reads of the caller of an op."""

    op: Op
    residuals: Sequence[type[Residuals]]

    def case_of(self, where: str, residuals: object) -> Case:
        """The case that residuals are of."""
        pairs = zip(self.residuals, self.op.cases, strict=True)
        return next(case for kind, case in pairs if type(residuals) is kind)


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


def agree(one: Traced, other: Traced, sizes: Sizes) -> bool:
    """Do two traces compute the same, at inputs that are drawn?  One has values for symbols."""
    if [node.type for node in one.inputs] != [node.type for node in other.inputs]:
        return False
    random = np.random.default_rng(0)
    values = {
        region.name: sizes[name] for name, region in one.session.regions.items()
    }  # fmt: skip
    drawn = []
    for node in one.inputs:
        shape = tuple(number_of(dim, sizes) for dim in node.shape)
        some = random.uniform(0.5, 1.5, shape) if node.dtype.is_float else np.ones(shape)
        found = values.get(node.attributes["name"], some) if not shape else some
        drawn.append(np.asarray(found, str(node.dtype)))
    return all(map(_close, _values(one, drawn, sizes), _values(other, drawn, sizes)))


def _values(traced: Traced, drawn: Sequence[Any], sizes: Sizes) -> list[Any]:
    """The outputs of a trace at these inputs."""
    new = without_markers(Graph(), [*traced.outputs, *traced.inputs])
    names = [node.attributes["name"] for node in traced.inputs]
    known = {name: size for name, size in sizes.items() if not name.startswith(NUMBER)}
    outputs = [new[node] for node in traced.outputs]
    return evaluate(outputs, dict(zip(names, drawn, strict=True)), known)


def _close(left: Any, right: Any) -> bool:
    alike = left.shape == right.shape and left.dtype == right.dtype
    return alike and np.allclose(left, right, rtol=_AGREEMENT, atol=_AGREEMENT, equal_nan=True)


def _zeros(output: Node, sizes: Sizes) -> Tensor:
    shape = tuple(number_of(dim, sizes) for dim in output.shape)
    return wrap(np.zeros(shape, str(output.dtype)))
