"""Backward from tensors, and gradients of anything with respect to anything.

In: tensors.  Out: gradients, added to leaves or returned; the methods ``backward``,
``retain_grad`` and those that register hooks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from symgrad.frontend.table import FUNCTIONS
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.tensor import errors
from symgrad.tensor.batched import BatchedTensor, levels
from symgrad.tensor.modes import no_grad, state
from symgrad.tensor.plans.dispatch import invoke
from symgrad.tensor.tape.engine import Run, initial
from symgrad.tensor.tape.node import AccumulateGrad, Edge, Grad, RemovableHandle, edge_of, retain
from symgrad.tensor.tensor import Tensor, wrap
from symgrad.tensor.trace.symbolic import backward as symbolic_backward
from symgrad.tensor.trace.symbolic import grad as symbolic_grad
from symgrad.tensor.trace.symbolic import is_symbolic

Several = Tensor | Sequence[Any] | None


def _sequence(value: Several) -> list[Any]:
    if value is None:
        return []
    return [value] if isinstance(value, Tensor) or is_symbolic(value) else list(value)


def _roots(
    tensors: Sequence[Tensor], gradients: Sequence[Any], *, record: bool
) -> list[tuple[Edge, Grad]]:
    found: list[tuple[Edge, Grad]] = []
    for number, (tensor, gradient) in enumerate(zip(tensors, gradients, strict=True)):
        start = initial(tensor, gradient, number)
        edge = edge_of(tensor)
        assert edge is not None
        if not record:
            found.append((edge, np.asarray(start, tensor._array.dtype)))
        elif isinstance(gradient, Tensor):
            found.append((edge, gradient))
        else:
            found.append((edge, wrap(start)))
    return found


def backward(
    tensors: Several, grad_tensors: Several = None, retain_graph: bool | None = None,
    create_graph: bool = False, *, inputs: Several = None,
) -> None:  # fmt: skip
    """Add the gradients of ``tensors`` to the leaves that they come from (to ``inputs`` only).

    ``grad_tensors``: one a tensor; None for one element, which gets 1.  Raises AutogradError.
    """
    roots = _sequence(tensors)
    given = _sequence(grad_tensors) or [None] * len(roots)
    if len(given) != len(roots):
        raise errors.AutogradError(f"got {len(roots)} tensors and {len(given)} gradients")
    if inputs is not None and not isinstance(inputs, Tensor) and not len(inputs):
        raise errors.AutogradError("`inputs` argument to `backward()` cannot be empty.")
    if state.levels:
        raise errors.AutogradError(errors.BACKWARD_INSIDE, hint="use sg.grad or sg.vjp inside")
    if any(map(is_symbolic, roots)):
        wanted = None if inputs is None else _sequence(inputs)
        symbolic_backward(roots, given, wanted, create=create_graph)
        return
    keep = create_graph if retain_graph is None else retain_graph
    if levels.active and any(isinstance(one, BatchedTensor) for one in (*roots, *given)):
        raise errors.AutogradError(
            "vmap: backward() adds to .grad, which elements of a batch do not have",
            hint="use sg.grad or sg.vjp inside of vmap",
        )
    starts = _roots(roots, given, record=create_graph)
    if create_graph:
        warnings.warn(errors.CREATE_GRAPH, UserWarning, stacklevel=3)
    wanted = _sequence(inputs)
    captured = _edges(wanted) if inputs is not None else None
    run = Run(keep=keep, record=create_graph, captured=captured, accumulate=True)
    found = run.run(starts)
    for tensor, edge in zip(wanted, captured or [], strict=True):
        if not tensor.is_leaf and edge in found and not tensor._retains:
            run._accumulate(tensor, found[edge])


def _edges(inputs: Sequence[Tensor]) -> list[Edge]:
    found = []
    for tensor in inputs:
        if not isinstance(tensor, Tensor):
            raise errors.TensorTypeError(f"inputs are Tensors, not {type(tensor).__name__}")
        edge = edge_of(tensor)
        if edge is None:
            raise errors.AutogradError("One of the differentiated Tensors does not require grad")
        found.append(edge)
    return found


def grad(
    outputs: Several, inputs: Several, grad_outputs: Several = None,
    retain_graph: bool | None = None, create_graph: bool = False, allow_unused: bool | None = None,
    is_grads_batched: bool = False, materialize_grads: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """The gradients of ``outputs`` with respect to ``inputs``; nothing is added to leaves.

    ``allow_unused``: None for an input that is not used, instead of an AutogradError.
    ``is_grads_batched``: the first axis of ``grad_outputs`` counts gradients.
    """
    roots, wanted = _sequence(outputs), _sequence(inputs)
    given = _sequence(grad_outputs) or [None] * len(roots)
    keep = create_graph if retain_graph is None else retain_graph
    if allow_unused is False and materialize_grads:
        raise errors.TensorValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    if any(map(is_symbolic, (*roots, *wanted))):
        unused, zeros = bool(allow_unused), materialize_grads
        return symbolic_grad(
            roots, wanted, given, unused=unused, zeros=zeros, create=create_graph
        )  # fmt: skip
    if levels.active and any(isinstance(one, BatchedTensor) for one in (*roots, *wanted, *given)):
        from symgrad.tensor.vmap.gradients import batched_grad

        return batched_grad(
            roots, wanted, given, keep=keep, create=create_graph, unused=allow_unused,
            zeros=materialize_grads,
        )  # fmt: skip
    if is_grads_batched:
        return _batched(roots, wanted, given, keep, create_graph, allow_unused)
    if len(given) != len(roots):
        raise errors.AutogradError(f"got {len(roots)} tensors and {len(given)} gradients")
    return _found(roots, wanted, given, keep, create_graph, bool(allow_unused), materialize_grads)


def recorded_grad(
    roots: Sequence[Any], wanted: Sequence[Any], given: Sequence[Any], unused: bool | None,
    zeros: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """The same by a backward that is recorded, which vectors of any class go through."""
    return _found(roots, wanted, given, True, True, bool(unused), zeros)


def _found(
    roots: Sequence[Any], wanted: Sequence[Any], given: Sequence[Any], keep: bool, record: bool,
    unused: bool, zeros: bool,
) -> tuple[Any, ...]:  # fmt: skip
    starts = _roots(roots, given, record=record)
    edges = _edges(wanted)
    run = Run(keep=keep, record=record, captured=edges, accumulate=False)
    found = run.run(starts)
    results: list[Any] = []
    for number, (tensor, edge) in enumerate(zip(wanted, edges, strict=True)):
        value = found.get(edge)
        if value is None and not (unused or zeros):
            raise errors.AutogradError(errors.UNUSED.format(number=number))
        if value is None:
            zero = wrap(np.zeros_like(tensor._array))
            zero._requires_grad = record and zeros
            results.append(zero if zeros else None)
        else:
            results.append(value if isinstance(value, Tensor) else wrap(np.array(value)))
    return tuple(results)


def _batched(
    roots: list[Any], wanted: list[Any], given: list[Any], keep: bool, create: bool,
    unused: bool | None,
) -> tuple[Any, ...]:  # fmt: skip
    """One gradient after the other, stacked."""
    count = len(given[0])
    rows = [
        grad(
            roots, wanted, [one[number] for one in given], keep or number < count - 1, create,
            unused,
        )
        for number in range(count)
    ]  # fmt: skip
    return tuple(
        None if column[0] is None else _stack(column) for column in zip(*rows, strict=True)
    )


def _stack(tensors: Sequence[Tensor]) -> Tensor:
    found: Tensor = invoke("stack", FUNCTIONS["stack"].__wrapped__, (list(tensors),), {})
    return found


def zero_grads(tensors: Iterable[Tensor], set_to_none: bool) -> None:
    """Let go of every gradient, or fill it with zeros."""
    for tensor in tensors:
        grad = tensor._grad
        if grad is None:
            continue
        if set_to_none:
            tensor.grad = None
        else:
            with no_grad():
                tensor.grad = grad.detach().zero_()


# -- methods


def _backward(
    self: Tensor, gradient: Any = None, retain_graph: bool | None = None,
    create_graph: bool = False, inputs: Several = None,
) -> None:  # fmt: skip
    """Add the gradient of this tensor to the leaves that it comes from."""
    given = None if gradient is None else [gradient]
    backward([self], given, retain_graph, create_graph, inputs=inputs)


def _register_hook(self: Tensor, hook: Callable[[Tensor], Any]) -> RemovableHandle:
    """Call ``hook(grad)`` whenever its gradient is computed; what it returns takes its place."""
    if not self.requires_grad:
        raise errors.AutogradError(
            "cannot register a hook on a tensor that doesn't require gradient"
        )
    edge = edge_of(self)
    assert edge is not None
    node, number = edge
    if isinstance(node, AccumulateGrad):  # which lives no longer than the graph
        self._hooks = {} if self._hooks is None else self._hooks
        return RemovableHandle(self._hooks, hook)
    node.tensor_hooks = {} if node.tensor_hooks is None else node.tensor_hooks
    return RemovableHandle(node.tensor_hooks.setdefault(number, {}), hook)


def _register_after(self: Tensor, hook: Callable[[Tensor], Any]) -> RemovableHandle:
    """Call ``hook(tensor)`` after a gradient was added to a leaf."""
    if not self.is_leaf:
        raise errors.AutogradError(
            "post accumulate grad hooks cannot be registered on non-leaf tensors"
        )
    if not self.requires_grad:
        raise errors.AutogradError(
            "cannot register a hook on a tensor that doesn't require gradient"
        )
    self._after_hooks = {} if self._after_hooks is None else self._after_hooks
    return RemovableHandle(self._after_hooks, hook)


def _retain_grad(self: Tensor) -> None:
    """Keep the gradient of a tensor that is no leaf."""
    if not self.requires_grad:
        raise errors.AutogradError("can't retain_grad on Tensor that has requires_grad=False")
    node = self.grad_fn
    if node is None or self._retains:
        return
    retain(self, node, self._output_number)


for _name, _method in (
    ("backward", _backward), ("register_hook", _register_hook), ("retain_grad", _retain_grad),
    ("register_post_accumulate_grad_hook", _register_after),
):  # fmt: skip
    _method.__name__ = _name
    setattr(Tensor, _name, _method)

setattr(SymbolicTensor, "backward", _backward)  # noqa: B010
