"""Operations on batched tensors: plans of one element, run on whole batches.

In: a call with batched tensors.  Out: what it returns, batched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from symgrad.errors import TraceError
from symgrad.frontend.views import Diagonal, Expand, Permute, Reshape, Slice, Step
from symgrad.ir.dim import Dim
from symgrad.ir.graph import Graph, Node
from symgrad.passes.batch import Batched, batch
from symgrad.tensor.batched import VmapError, batched, deepest, inside, real_array
from symgrad.tensor.modes import state
from symgrad.tensor.plans import dispatch
from symgrad.tensor.plans.opnode import provide_run
from symgrad.tensor.plans.plan import Output, Place, Plan, Slot, make_plan
from symgrad.tensor.plans.run import run
from symgrad.tensor.tensor import DTYPES, Tensor

_plans: dict[Any, Plan] = {}


@dataclass(frozen=True)
class BatchedPlan:
    """A plan for whole batches; ``whole``: which of its results have the batch in front."""

    plan: Plan
    whole: tuple[bool, ...]


def invoke(name: str, call: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Any:
    """Apply an operation of the frontend, some of whose tensors are batched."""
    tensors: list[Tensor] = []
    slots: list[Slot] = []
    parts = [_described(arg, tensors, slots) for arg in args]
    named = [(word, _described(kwargs[word], tensors, slots)) for word in kwargs or ()]
    key = (
        call, state.dtype.name, _frozen(parts), _frozen(named), tuple(slots),
    )  # fmt: skip
    plan = _plans.get(key)
    if plan is None:
        try:
            plan = make_plan(name, call, tuple(parts), dict(named), slots, state.dtype)
        except TraceError as error:
            error.what = f"in vmap: {error.what}"
            raise
        if len(_plans) >= dispatch.MOST_PLANS:
            _plans.pop(next(iter(_plans)))
        _plans[key] = plan
    return run_any(plan, tensors)


dispatch.provide_batched(invoke)


def _described(value: Any, tensors: list[Tensor], slots: list[Slot]) -> Any:
    """The argument with a ``Place`` for each tensor."""
    if isinstance(value, np.ndarray):
        value = dispatch.as_tensor(value)
    if isinstance(value, Tensor):
        tensors.append(value)
        slots.append(_slot(value))
        return Place(len(tensors) - 1)
    if isinstance(value, (tuple, list)):
        items = [_described(item, tensors, slots) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, slice):
        ends = (value.start, value.stop, value.step)
        return slice(*(_described(item, tensors, slots) for item in ends))
    return value.item() if isinstance(value, np.generic) else value


def _slot(tensor: Tensor) -> Slot:
    """Dtype, shape, and how one element of all batches lies in memory."""
    array, shape = real_array(tensor), tuple(tensor._array.shape)
    one = array[(0,) * (array.ndim - len(shape))] if array.size else np.empty(shape, array.dtype)
    dtype = DTYPES[array.dtype]
    if one.flags.c_contiguous:
        return Slot(dtype, shape)
    return Slot(dtype, shape, tuple(step // array.itemsize for step in one.strides))


def _frozen(value: Any) -> Any:
    """A key of a described argument."""
    if isinstance(value, (tuple, list)):
        return type(value).__name__, tuple(map(_frozen, value))
    if isinstance(value, slice):
        return "slice", _frozen((value.start, value.stop, value.step))
    if isinstance(value, float):
        return "float", value.hex()
    return type(value), value


def run_any(plan: Plan, tensors: Sequence[Tensor]) -> Any:
    """What the operation of one element returns, for tensors that may be batched."""
    level = deepest(tensors)
    if level is None:
        return run(plan, tensors)
    parts = [inside(tensor, level) for tensor in tensors]
    flags = tuple(has for _, has in parts)
    found = _batched_plan(plan, flags, level.size)
    results = run_any(found.plan, [tensor for tensor, _ in parts])
    outputs = []
    for output, result, has in zip(plan.outputs, results, found.whole, strict=False):
        if output.kind in ("same", "written"):
            outputs.append(tensors[output.place])
        else:
            outputs.append(batched(result, level) if has else result)
    return plan.rebuild(outputs)


def _batched_plan(plan: Plan, flags: tuple[bool, ...], size: int) -> BatchedPlan:
    """The plan over whole batches, kept with the plan.  Raises VmapError, UnsupportedOpError."""
    known = plan.__dict__.setdefault("_batched", {})
    found = known.get((flags, size))
    if found is None:
        found = known[flags, size] = _batch(plan, flags, Dim.of(size))
    assert isinstance(found, BatchedPlan)
    return found


def _batch(plan: Plan, flags: tuple[bool, ...], size: Dim) -> BatchedPlan:
    graph = Graph()
    inputs: dict[Node, Batched] = {}
    for number, (node, has) in enumerate(zip(plan.inputs, flags, strict=True)):
        shape = (size, *node.shape) if has else node.shape
        new = graph.input(f"x{number}", type(node.type)(node.dtype, shape))
        inputs[node] = Batched(new, has)
    given = [inputs[node].node for node in plan.inputs]
    nodes = batch([output.node for output in plan.outputs], inputs, size)
    outputs = []
    for output, found in zip(plan.outputs, nodes, strict=True):
        if output.kind == "written" and not flags[output.place] and found.whole:
            raise VmapError(
                f"vmap: {plan.name} would write what differs from element to element into a "
                "tensor that is the same for all of them",
                hint="compute out of place",
            )
        steps = output.steps
        node = found.node
        if output.kind == "view" and flags[output.place]:
            steps = _steps(steps, plan.inputs[output.place].rank, size)
        if output.kind == "written" and flags[output.place] and not found.whole:
            node = graph.expand(node, (size, *node.shape))
        outputs.append(Output(output.kind, node, output.place, steps))
    whole = tuple(
        flags[output.place] if output.kind != "value" else found.whole
        for output, found in zip(plan.outputs, nodes, strict=True)
    )
    return BatchedPlan(Plan(plan.name, graph, given, outputs, list), whole)


def _steps(steps: Sequence[Step], rank: int, size: Dim) -> tuple[Step, ...]:
    """The steps of a view of a tensor of this rank, with the batch in front."""
    found: list[Step] = []
    for step in steps:
        if isinstance(step, Expand):
            found += _expanded(step, len(step.shape) - rank, size)
        else:
            found.append(_step(step, size))
        if isinstance(step, Reshape | Expand):
            rank = len(step.shape)
        elif isinstance(step, Diagonal):
            rank -= 1
    return tuple(found)


def _expanded(step: Expand, added: int, size: Dim) -> tuple[Step, ...]:
    """New axes come before all others, so the batch is moved to the front of them."""
    wide = Expand((*step.shape[:added], size, *step.shape[added:]))
    rest = range(added + 1, len(wide.shape))
    return (wide, Permute((added, *range(added), *rest))) if added else (wide,)


def _step(step: Step, size: Dim) -> Step:
    """A step of a view that has no new axes, with the batch in front."""
    if isinstance(step, Reshape):
        return Reshape((size, *step.shape))
    if isinstance(step, Permute):
        return Permute((0, *(axis + 1 for axis in step.axes)))
    if isinstance(step, Slice):
        return replace(step, axis=step.axis + 1)
    assert isinstance(step, Diagonal)
    first, second = step.axes
    return Diagonal(step.offset, (first + 1, second + 1))


provide_run(run_any)
