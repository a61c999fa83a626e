"""A plan run on tensors: arrays computed, views made, writes done, the graph for backward grown.

In: a plan and tensors.  Out: tensors, and the nodes of what was recorded.  A backward that is
recorded runs a plan in turn.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from symgrad.frontend.views import Diagonal, Expand, Permute, Reshape, Slice, Step, Windows
from symgrad.tensor import errors
from symgrad.tensor.batched import batched, deepest, inside
from symgrad.tensor.modes import state
from symgrad.tensor.plans import inplace
from symgrad.tensor.plans.batch import over_batches
from symgrad.tensor.plans.derivative import Derivative
from symgrad.tensor.plans.plan import Output, Plan, slot_of
from symgrad.tensor.plans.program import number, sizes
from symgrad.tensor.tape.node import Grad, Node, SavedTensor, edge_of, named, retain
from symgrad.tensor.tensor import Array, Tensor, wrap


def run(plan: Plan, tensors: Sequence[Tensor]) -> Any:
    """What the operation returns for these tensors.  Raises DivisionError."""
    for place in plan.divisors:
        if not tensors[place]._array.all():
            raise errors.DivisionError(errors.DIVISION_BY_ZERO)
    derivative = None
    if state.grad_enabled:
        needs = tuple([tensor.requires_grad for tensor in tensors])
        if True in needs:
            derivative = plan.derivative(needs)
            if not derivative.tracked:
                derivative = None
    for place in plan.written:
        inplace.check(tensors[place])
    if derivative is None:
        computed = plan.program.run([tensor._array for tensor in tensors])
        if plan.simple:
            return plan.rebuild([wrap(computed[0])])
        return plan.rebuild(_results(plan, tensors, computed)[: len(plan.outputs)])
    return _recorded(plan, derivative, tensors)


def run_any(plan: Plan, tensors: Sequence[Tensor]) -> Any:
    """What the operation of one element returns, for tensors that may be batched."""
    level = deepest(tensors)
    if level is None:
        return run(plan, tensors)
    parts = [inside(tensor, level) for tensor in tensors]
    flags = tuple(has for _, has in parts)
    found = over_batches(plan, flags, level.size)
    results = run_any(found.plan, [tensor for tensor, _ in parts])
    outputs = []
    for output, result, has in zip(plan.outputs, results, found.whole, strict=False):
        if output.kind in ("same", "written"):
            outputs.append(tensors[output.place])
        else:
            outputs.append(batched(result, level) if has else result)
    return plan.rebuild(outputs)


def _recorded(plan: Plan, derivative: Derivative, tensors: Sequence[Tensor]) -> Any:
    node = operation_node(derivative, tensors)
    before = {}
    if plan.written:
        before = {
            kept.place: _as_it_was(tensors[kept.place])
            for kept in derivative.all_kept
            if kept.kind == "input" and kept.place in plan.written
        }
    computed = derivative.forward.run([tensor._array for tensor in tensors])
    if plan.simple:
        result = wrap(computed[0])
        result._grad_fn = node
        node.save(before, [result], tensors, computed[1:])
        return plan.rebuild([result])
    results = _results(plan, tensors, computed)
    for number_, place in enumerate(derivative.tracked):
        output, result = plan.outputs[place], results[place]
        if output.kind == "written":
            rebase(tensors[output.place], node, number_)
        else:
            result._grad_fn, result._output_number = node, number_
    node.save(before, results, tensors, computed[len(plan.computed) :])
    return plan.rebuild(results)


def _as_it_was(tensor: Tensor) -> SavedTensor:
    """A tensor that is about to be written, kept with its present contents and history."""
    copy = wrap(tensor._array.copy())
    copy._grad_fn, copy._output_number = tensor.grad_fn, tensor._output_number
    return SavedTensor(copy)


def _results(plan: Plan, tensors: Sequence[Tensor], computed: Sequence[Array]) -> list[Any]:
    """The tensors that come out, without history; arguments that are written have been."""
    arrays = iter(computed)
    results: list[Any] = []
    views = sum(output.kind == "view" for output in plan.outputs)
    for output in plan.outputs:
        if output.kind == "value":
            results.append(wrap(next(arrays)))
        elif output.kind == "view":
            results.append(make_view(tensors[output.place], output, several=views > 1))
        else:
            if output.kind == "written":
                inplace.write(tensors[output.place], next(arrays))
            results.append(tensors[output.place])
    return results


# -- views


def make_view(tensor: Tensor, output: Output, *, several: bool = False) -> Tensor:
    """A tensor that shows part of another's memory, without history yet."""
    found = wrap(shown(tensor._array, output.steps))
    found._base = tensor if tensor._base is None else tensor._base
    found._base._viewed = True
    found._steps = (*tensor._steps, *output.steps)
    found._counter = tensor.counter()
    found._seen = found._counter.value
    if several:
        found._creation = "several"
    elif not state.grad_enabled:
        found._creation = "no_grad"
    else:
        found._creation = tensor._creation
    return found


def shown(array: Array, steps: Sequence[Step]) -> Array:
    """The same memory after ``steps``."""
    for step in steps:
        if isinstance(step, Reshape):
            array = array.reshape(sizes(step.shape))
        elif isinstance(step, Permute):
            array = array.transpose(step.axes)
        elif isinstance(step, Slice):
            start, length = number(step.start), number(step.size)
            stop = start + (length - 1) * step.step + 1 if length else start
            array = array[(slice(None),) * step.axis + (slice(start, stop, step.step),)]
        elif isinstance(step, Expand):
            array = np.broadcast_to(array, sizes(step.shape))
        elif isinstance(step, Windows):
            found = sliding_window_view(
                array, step.size, step.axis, writeable=array.flags.writeable
            )
            array = found[(slice(None),) * step.axis + (slice(None, None, step.step),)]
        else:
            assert isinstance(step, Diagonal)
            writeable = array.flags.writeable
            array = np.diagonal(array, step.offset, *step.axes)
            array.flags.writeable = writeable
    return array


# -- nodes


class OperationNode(Node):
    """One use of an operation of the table."""

    __slots__ = ("derivative", "freed", "linked", "saved")

    def __init__(self, derivative: Derivative, tensors: Sequence[Tensor]) -> None:
        pairs = zip(tensors, derivative.needs, strict=True)
        edges = tuple([edge_of(tensor) if need else None for tensor, need in pairs])
        super().__init__(edges, derivative.types)
        self.derivative = derivative
        self.freed = False
        self.saved: tuple[Any, ...] = ()
        self.linked: tuple[Any, ...] = ()

    def save(
        self, before: dict[int, SavedTensor], results: Sequence[Tensor | None],
        tensors: Sequence[Tensor], between: Sequence[Array],
    ) -> None:  # fmt: skip
        """Keep what backward needs; ``before``: inputs as they were before they were written."""
        derivative = self.derivative
        found: list[Any] = []
        for kept in derivative.all_kept:
            if kept.kind == "between":
                found.append(between[kept.place])
            elif kept.kind == "output":
                output = results[kept.place]
                assert output is not None
                found.append(SavedTensor(output, is_output=True))
            else:
                found.append(before.get(kept.place) or SavedTensor(tensors[kept.place]))
        self.saved = tuple([found[place] for place in derivative.kept_at])
        same = derivative.kept_at == derivative.linked_at
        self.linked = (
            self.saved if same else tuple([found[place] for place in derivative.linked_at])
        )

    def backward(self, grads: list[Grad], needed: Sequence[bool], record: bool) -> Sequence[Grad]:
        """The gradients of the inputs for those of the outputs."""
        if self.freed:
            raise errors.FreedGraphError(errors.SECOND_BACKWARD)
        filled = [
            grad if grad is not None else _zeros(output, record)
            for grad, output in zip(grads, self.outputs, strict=True)
        ]
        mask = (
            self.derivative.needs
            if all(needed)
            else tuple(
                need and asked for need, asked in zip(self.derivative.needs, needed, strict=True)
            )
        )
        if record:
            linked = self.derivative.linked(mask)
            kept = [saved.tensor() for saved in self.linked]
            found = iter(run_any(linked.plan, [*kept, *filled]) if any(linked.present) else [])
            present = linked.present
        else:
            gradients = self.derivative.gradients(mask)
            arrays = [
                saved.checked() if type(saved) is SavedTensor else saved for saved in self.saved
            ]
            found = iter(gradients.program.run([*arrays, *filled]))
            present = gradients.present
        results: list[Grad] = [None] * len(present)
        for place, there in enumerate(present):
            if there:
                results[place] = next(found)
            elif mask[place]:
                kind = self.derivative.zero(place)
                results[place] = None if kind is None else _zeros(kind, record)
        return results

    def release(self) -> None:
        """Free what was saved."""
        if self.saved or self.linked:
            self.freed = True
            self.saved = self.linked = ()


def operation_node(derivative: Derivative, tensors: Sequence[Tensor]) -> OperationNode:
    """A node in the class of its operation."""
    return _class_of(derivative.plan.name)(derivative, tensors)


@functools.cache
def _class_of(operation: str) -> type[OperationNode]:
    return named(OperationNode, label_of(operation))


def _zeros(kind: Any, record: bool) -> Grad:
    array = np.zeros(*kind)
    return wrap(array) if record else array


_OTHER = {
    "truediv": "div", "rtruediv": "div", "radd": "add", "rmul": "mul", "iadd": "add",
    "isub": "sub", "imul": "mul", "itruediv": "div", "ipow": "pow", "divide": "div",
    "true_divide": "div", "multiply": "mul", "subtract": "sub", "negative": "neg",
    "absolute": "abs", "rpow": "pow", "mm": "mm", "getitem": "index", "setitem": "copy_slices",
    "arctan": "atan", "arcsin": "asin", "arccos": "acos", "matmul": "mm", "rmatmul": "mm",
    "astype": "to_copy", "to": "to_copy", "double": "to_copy", "float": "to_copy",
}  # fmt: skip


@functools.cache
def label_of(name: str) -> str:
    """``mul_`` and ``__mul__`` as ``MulBackward0``; a backward of a backward keeps its name."""
    if name.endswith("Backward"):
        return f"{label_of(name.removesuffix('Backward')).removesuffix('0')}Backward0"
    plain = name.strip("_")
    words = _OTHER.get(plain, plain).split("_")
    label = "".join(word[:1].upper() + word[1:] for word in words)
    return label if label == "CopySlices" else f"{label}Backward0"


# -- histories of what was written: a base that is written through a view keeps the one that it had,
# with the written part replaced; views of it make their own anew when they are asked for


def rebase(tensor: Tensor, node: Node, number: int) -> None:
    """The tensor was written by ``node``: that, and not what came before, is its history."""
    base = tensor._base
    if base is None:
        _succeed(tensor, node, number)
        return
    written = wrap(tensor._array)
    written._grad_fn, written._output_number = node, number
    plan = inplace.slices_plan(slot_of(base), tensor._steps)
    _succeed(base, *_history(plan, [base, written]))
    renew_history(tensor)


def _succeed(tensor: Tensor, node: Node, number: int) -> None:
    """Put a new history in place of the old one; a gradient that is kept is that of the new one."""
    if tensor._retains:
        retain(tensor, node, number)
    tensor._grad_fn, tensor._output_number = node, number


def _history(plan: Plan, tensors: list[Tensor]) -> tuple[Any, int]:
    """The node that the plan would leave behind, without computing anything."""
    needs = tuple(tensor.requires_grad for tensor in tensors)
    node = operation_node(plan.derivative(needs), tensors)
    assert not node.derivative.kept, "views and writes save nothing"
    return node, 0


def renew_history(tensor: Tensor) -> None:
    """Record again how a view is computed from its base."""
    base = tensor._base
    assert base is not None
    tensor._seen = tensor.counter().value
    if base.requires_grad:
        plan = inplace.view_plan(slot_of(base), tensor._steps)
        _succeed(tensor, *_history(plan, [base]))
