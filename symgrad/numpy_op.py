"""Ops without a C compiler: NumPy evaluates the graphs of the kernels.

In: an ``OpPlan``.  Out: an op with the methods of a compiled one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from symgrad.abi import Array, Case, Kernel, Op, Sizes
from symgrad.codegen.calls import SizeNames
from symgrad.emission import op_record
from symgrad.errors import KernelArgumentError
from symgrad.interpreters import interpreter_of
from symgrad.ir.dim import Dim, Size
from symgrad.ir.graph import Graph
from symgrad.kernels import KernelPlan, OpPlan
from symgrad.passes.evaluate import evaluate
from symgrad.runtime.batches import OverBatch
from symgrad.runtime.carried import Parts
from symgrad.runtime.load import Library
from symgrad.runtime.op import OpAt, reduced
from symgrad.runtime.residuals import Residuals
from symgrad.runtime.support import Caller
from symgrad.runtime.values import given

NDArray = np.ndarray[Any, Any]


class NumpyOp:
    """An op on NumPy arrays, with the calls and the checks of a compiled one.

    Residuals hold the arrays given to ``forward``, and its outputs, not copies.  ``parts``: what
    goes along where it is pickled; it arrives as a compiled op where there is a compiler.
    """

    def __init__(self, plan: OpPlan, origin: Any = None, parts: Parts | None = None) -> None:
        self.origin = origin
        self.parts = parts
        self.behind_tape: Any = None
        kernels = {kernel.name: kernel for kernel in plan.kernels}
        sizes = SizeNames(plan.sizes)
        records = {name: _record(kernel, sizes) for name, kernel in kernels.items()}
        self._op = op_record(plan, records.__getitem__, header=f"{plan.name}.h")
        kinds = tuple(_residuals(plan.name, case) for case in self._op.cases)
        self.caller: Caller = _NumpyCaller(self._op, kinds, kernels)
        self.caller.values.objects = {one.name: one.value for one in plan.graphs.values}

    def __call__(self, *inputs: Any, out: Any = None, **values: Any) -> Any:
        """The outputs alone: one array, or a tuple of several; tensors for tensors.

        ``values``: plain arguments, as a compiled op takes them.
        """
        taken, numbers = self.caller.values.taken(self.name, inputs, values)
        inputs = tuple(taken)
        interpreter = interpreter_of(inputs)
        if interpreter is not None:
            return interpreter.compiled(self.at(numbers) if numbers else self, inputs, out)
        return self.caller.inference(inputs, out, numbers)

    def inference(self, *inputs: Any, out: Any = None, **values: Any) -> Any:
        """The outputs alone."""
        taken = self.caller.values.taken(f"{self.name}.inference", inputs, values)
        return self.caller.inference(taken[0], out, taken[1])

    def forward(
        self, *inputs: Any, out: Any = None, **values: Any
    ) -> tuple[Any, Residuals | OverBatch]:
        """The outputs, and what backward needs."""
        taken = self.caller.values.taken(f"{self.name}.forward", inputs, values)
        return self.caller.forward(taken[0], out, taken[1])

    def at(self, numbers: Sequence[Any]) -> OpAt:
        """The op at values of its plain numbers."""
        named = {
            one.name: value for one, value in zip(self._op.numbers, numbers, strict=True)
        }  # fmt: skip
        return OpAt(
            self, named, partial(self.inference, **named), partial(self.forward, **named)
        )  # fmt: skip

    def backward(
        self, residuals: Any, *cotangents: Any, needs_input_grad: Any = None, out: Any = None
    ) -> tuple[NDArray | None, ...]:
        """The gradients of the inputs, None for each that is not needed."""
        return self.caller.backward(residuals, cotangents, needs_input_grad, out)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.parts is None:
            raise KernelArgumentError(f"{self.name}: it has no texts, and cannot be pickled")
        values = tuple(self.caller.values.objects.items())
        return reduced(self.name, self.parts, None, values, self.origin)

    def __repr__(self) -> str:
        return f"<op {self.name}{given(self._op)}, evaluated with NumPy>"

    @property
    def name(self) -> str:
        """What the op is called."""
        return self._op.name

    @property
    def c_paths(self) -> tuple[Path, ...]:
        """The emitted C: there is none."""
        return ()


class _NumpyCaller(Caller):
    """A ``Caller`` that evaluates the graph of a kernel in place of its C."""

    def __init__(
        self, op: Op, kinds: tuple[type[Residuals], ...], kernels: Mapping[str, KernelPlan]
    ) -> None:
        super().__init__(op, Library(None, None, Path()), kinds)
        self._graphs: dict[str, Graph] = {name: plan.graph for name, plan in kernels.items()}
        # The names of sizes in the graphs; records rename those that are keywords of Python.
        self._sizes = {name: _sizes(plan.graph) for name, plan in kernels.items()}

    def _call(
        self, kernel: Kernel, sizes: Sizes, inputs: Mapping[str, Any],
        outputs: Mapping[str, NDArray],
    ) -> int:  # fmt: skip
        graph = self._graphs[kernel.name]
        feeds = {
            one.name: np.asarray(inputs[one.name], str(graph.inputs[one.name].dtype))
            if one.by_value else inputs[one.name]
            for one in kernel.inputs
        }  # fmt: skip
        try:
            values = (sizes[size] for size in kernel.sizes)
            named = dict(zip(self._sizes[kernel.name], values, strict=True))
            found = evaluate(list(graph.outputs.values()), feeds, named)
        except IndexError as error:
            raise KernelArgumentError(f"{self.op.name}: {error}") from error
        for name, value in zip(graph.outputs, found, strict=True):
            outputs[name][...] = value.reshape(outputs[name].shape)
        return 0


def _sizes(graph: Graph) -> list[str]:
    """Every size of its arrays."""
    dims = (d for node in graph.nodes for d in (*node.shape, *_dims(node.attributes.values())))
    return sorted({a.name for dim in dims for a in dim.atoms if isinstance(a, Size)})


def _record(kernel: KernelPlan, sizes: SizeNames) -> Kernel:
    """The record of calls of a graph: every size, no strides."""
    graph, numbers = kernel.graph, dict(kernel.numbers)
    return Kernel(
        kernel.name,
        sizes=tuple(map(sizes.of, _sizes(graph))),
        inputs=tuple(
            Array(name, numbers[name], (), by_value=True)
            if name in numbers
            else sizes.array(name, node)
            for name, node in graph.inputs.items()
        ),
        outputs=tuple(sizes.array(name, node) for name, node in graph.outputs.items()),
    )


def _dims(values: Iterable[Any]) -> list[Dim]:
    found: list[Dim] = []
    for value in values:
        if isinstance(value, Dim):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(_dims(value))
    return found


def _residuals(name: str, case: Case) -> type[Residuals]:
    fields = (*(residual.array.name for residual in case.residuals), *case.sizes)
    numbers = tuple(one.array.name for one in case.residuals if one.array.by_value)
    members = {"__slots__": (), "__module__": name, "fields": fields, "numbers": numbers}
    return type("Residuals", (Residuals,), members)
