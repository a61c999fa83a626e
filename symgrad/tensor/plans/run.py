"""A plan run on tensors: arrays computed, views made, writes done, the graph for backward grown.

In: a plan and tensors.  Out: tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.frontend.views import Diagonal, Expand, Permute, Reshape, Slice, Step
from symgrad.tensor import errors
from symgrad.tensor.modes import state
from symgrad.tensor.plans import inplace
from symgrad.tensor.plans.derivative import Derivative
from symgrad.tensor.plans.opnode import operation_node, provide_run
from symgrad.tensor.plans.plan import Output, Plan
from symgrad.tensor.plans.program import number, sizes
from symgrad.tensor.tape.node import SavedTensor
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


provide_run(run)


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
            inplace.rebase(tensors[output.place], node, number_)
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
        else:
            assert isinstance(step, Diagonal)
            writeable = array.flags.writeable
            array = np.diagonal(array, step.offset, *step.axes)
            array.flags.writeable = writeable
    return array
