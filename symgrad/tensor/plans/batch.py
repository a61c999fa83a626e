"""A plan of one element, over whole batches: what ``vmap`` runs.

In: a plan, and which of its tensors are batched.  Out: the plan with the batch in front of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from symgrad.frontend.views import Diagonal, Expand, Permute, Reshape, Slice, Step, Windows
from symgrad.ir.dim import Dim
from symgrad.ir.graph import Graph, Node
from symgrad.passes.batch import Batched, batch
from symgrad.tensor.errors import VmapError
from symgrad.tensor.plans.plan import Output, Plan


@dataclass(frozen=True)
class BatchedPlan:
    """A plan for whole batches; ``whole``: which of its results have the batch in front."""

    plan: Plan
    whole: tuple[bool, ...]


def over_batches(plan: Plan, flags: tuple[bool, ...], size: int) -> BatchedPlan:
    """The plan over whole batches, kept with the plan.  Raises VmapError, UnsupportedOpError."""
    found: BatchedPlan | None = plan.batched.get((flags, size))
    if found is None:
        found = plan.batched[flags, size] = _batch(plan, flags, Dim.of(size))
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
        elif isinstance(step, Windows):
            rank += 1
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
    if isinstance(step, Slice | Windows):
        return replace(step, axis=step.axis + 1)
    assert isinstance(step, Diagonal)
    first, second = step.axes
    return Diagonal(step.offset, (first + 1, second + 1))
