"""What is measured: the results of an op in one precision, as kernels and as a graph.

In: the plan of an op, and the op compiled.  Out: ``Subject``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symgrad.accuracy.floats import FORMATS, Array, Format
from symgrad.accuracy.truth import Truth
from symgrad.ir.assume import Assumption
from symgrad.ir.dim import Dim
from symgrad.ir.function import FunctionCase
from symgrad.ir.graph import Node, ancestors
from symgrad.kernels import CasePlan, OpPlan
from symgrad.ops.record import get
from symgrad.samples import default_numbers

_SIMPLE = frozenset(("positive", "nonnegative", "negative", "nonzero", "interval", "constant"))


@dataclass(frozen=True)
class Result:
    """An output or a gradient: its name, the kernel that computes it, its node."""

    name: str
    kernel: str
    node: Node


@dataclass
class Subject:
    """One op in one precision."""

    plan: OpPlan
    op: Any
    form: Format
    case: CasePlan
    results: tuple[Result, ...]
    numbers: Mapping[str, Any]
    programs: dict[bool, Truth] = field(default_factory=dict)

    @property
    def tensors(self) -> tuple[Node, ...]:
        """The tensors that it is called with."""
        return self.case.inputs

    @property
    def cotangents(self) -> tuple[Node, ...]:
        """The gradients that come in."""
        return tuple(node for node in self.case.case.cotangents if node is not None)

    @property
    def nodes(self) -> list[Node]:
        """All that the results are computed from."""
        return ancestors([one.node for one in self.results])

    def truth(self, *, weights: bool = False) -> Truth:
        """The true values of the results."""
        if weights not in self.programs:
            nodes = [one.node for one in self.results]
            self.programs[weights] = Truth(nodes, self.form, weights=weights)
        return self.programs[weights]

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """The results of the kernels, flat."""
        given = [feeds[name_of(node)] for node in self.tensors]
        with np.errstate(all="ignore"):
            outputs, residuals = self.op.forward(*given, **self.numbers)
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            found = dict(zip(self.case.case.output_names, outputs, strict=True))
            wanted = [one for one in self.results if one.name not in found]
            if wanted:
                coming = [
                    None if node is None else feeds[name_of(node)]
                    for node in self.case.case.cotangents
                ]
                names = self.plan.graphs.input_names
                gradients = self.op.backward(residuals, *coming)
                found |= {f"grad_{n}": g for n, g in zip(names, gradients, strict=True)}
        return [np.asarray(found[one.name]).ravel() for one in self.results]

    def full(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The feeds of the graph: those of the kernels, and the plain numbers."""
        plain = {
            name_of(node): np.asarray(self.numbers[name_of(node)], dtype=str(node.dtype))
            for node in self.case.case.numbers
        }
        return {**feeds, **plain}

    @property
    def elementwise(self) -> bool:
        """Is each element of the results a function of those of the tensors at the same place?"""
        shapes = {node.shape for node in (*self.tensors, *self.cotangents)}
        shapes |= {one.node.shape for one in self.results}
        shape = next(iter(shapes), ())
        return (
            len(shapes) == 1
            and self.axis is not None
            and all(node.dtype.is_float for node in self.tensors)
            and all(known.kind in _SIMPLE for known in self.plan.graphs.assumptions)
            and all(_pointwise(node, shape) for node in self.nodes)
        )

    @property
    def axis(self) -> str | None:
        """A size that can be any number, along which points lie."""
        shape = self.tensors[0].shape if self.tensors else ()
        return next((str(dim) for dim in shape if (str(dim),) == tuple(dim.sizes)), None)

    def lay(self, points: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, int]]:
        """Points of an elementwise op along ``axis``, with ones as cotangents; and the sizes."""
        assert self.axis is not None
        count = len(next(iter(points.values())))
        sizes = {name: 1 for node in self.tensors for dim in node.shape for name in dim.sizes}
        rest = math.prod(dim.at(sizes) for dim in self.tensors[0].shape)
        sizes[self.axis] = -(-count // rest)
        shape = [dim.at(sizes) for dim in self.tensors[0].shape]
        feeds = {
            name_of(node): np.resize(points[name_of(node)], shape).astype(str(node.dtype))
            for node in self.tensors
        }
        ones = {name_of(node): np.ones(shape, str(node.dtype)) for node in self.cotangents}
        return self.full({**feeds, **ones}), sizes

    def admitted(self, points: Mapping[str, Array]) -> Array:
        """Which points meet what is declared of the inputs."""
        held = [_holds(one, points[one.name]) for one in self.plan.graphs.assumptions]
        count = len(next(iter(points.values())))
        return np.logical_and.reduce(held) if held else np.ones(count, dtype=bool)


def subject(plan: OpPlan, op: Any, case: CasePlan) -> Subject:
    """The results of one case of an op."""
    one = case.case
    dtypes = {str(node.dtype) for node in one.outputs if node.dtype.is_float}
    form = FORMATS["float32" if "float32" in dtypes else "float64"]
    results = [
        Result(name, case.forward.name, node)
        for name, node in zip(one.output_names, one.outputs, strict=True) if node.dtype.is_float
    ] + [
        Result(f"grad_{found.input}", case.backward[0].name, found.node)
        for found in one.gradients
        if found.node is not None and case.backward and case.backward[0] is not None
    ]  # fmt: skip
    return Subject(plan, op, form, case, tuple(results), default_numbers(plan) or {})


def sizes_of(case: FunctionCase) -> list[str]:
    """The sizes of the tensors, in order."""
    dims = (dim for node in case.tensors for dim in node.shape)
    return list(dict.fromkeys(name for dim in dims for name in dim.sizes))


def name_of(node: Node) -> str:
    """The name of an input."""
    return str(node.attributes["name"])


def _pointwise(node: Node, shape: Sequence[Dim]) -> bool:
    """Does a node compute each element of its own place, or one number for all?"""
    op = get(node.op)
    if node.op == "input":
        return node.rank == 0 or node.shape == tuple(shape)
    if node.op == "expand":
        return node.args[0].rank == 0 or node.args[0].shape == node.shape
    return op.kind == "elementwise" or node.op == "constant"


def _holds(known: Assumption, values: Array) -> Array:
    if known.kind == "interval":
        held = np.ones(values.shape, dtype=bool)
        if known.low is not None:
            low = float(known.low)
            held &= values > low if known.low_open else values >= low
        if known.high is not None:
            high = float(known.high)
            held &= values < high if known.high_open else values <= high
        return held
    return _SIGNS[known.kind](values)


_SIGNS: dict[str, Callable[[Array], Array]] = {
    "positive": lambda x: x > 0, "nonnegative": lambda x: x >= 0, "negative": lambda x: x < 0,
    "nonzero": lambda x: x != 0, "constant": lambda x: np.ones(x.shape, dtype=bool),
}  # fmt: skip
