"""Backward from tensors, and gradients of anything with respect to anything.

In: tensors.  Out: gradients, added to leaves or returned; the methods ``backward``,
``retain_grad`` and those that register hooks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.frontend.table import FUNCTIONS
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.interpreters import interpreter_of
from symgrad.tensor import errors
from symgrad.tensor.batched import (
    BatchedTensor,
    Level,
    batched,
    deepest,
    enclosed,
    physical,
)
from symgrad.tensor.modes import no_grad, state
from symgrad.tensor.tape.engine import Run, initial
from symgrad.tensor.tape.node import (
    AccumulateGrad,
    Edge,
    Grad,
    RemovableHandle,
    add_hook,
    edge_of,
    retain,
)
from symgrad.tensor.tensor import Tensor, wrap
from symgrad.tensor.trace.symbolic import is_tensor

Several = Tensor | Sequence[Any] | None


def _sequence(value: Several) -> list[Any]:
    if value is None:
        return []
    return [value] if is_tensor(value) else list(value)


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
    keep = create_graph if retain_graph is None else retain_graph
    wanted = None if inputs is None else _sequence(inputs)
    interpreter = interpreter_of((*roots, *given))
    found = add_to_leaves if interpreter is None else interpreter.backward
    found(roots, given, wanted, keep, create_graph)


def add_to_leaves(
    roots: Sequence[Any], given: Sequence[Any], inputs: Sequence[Any] | None, keep: bool,
    create_graph: bool,
) -> None:  # fmt: skip
    """``backward`` by what the tape recorded.  Raises AutogradError."""
    starts = _roots(roots, given, record=create_graph)
    if create_graph:
        warnings.warn(errors.CREATE_GRAPH, UserWarning, stacklevel=4)
    wanted = inputs or []
    captured = None if inputs is None else _edges(inputs)
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
    asked = Asked(keep, create_graph, allow_unused, materialize_grads, is_grads_batched)
    interpreter = interpreter_of((*roots, *wanted, *given))
    found = of_arrays if interpreter is None else interpreter.gradients
    return found(roots, wanted, given, asked)


def grad_where_recorded(
    pairs: Iterable[tuple[Any, Any]], inputs: Sequence[Any], *, keep: bool = True,
    create: bool = True,
) -> Sequence[Any]:  # fmt: skip
    """The gradients of outputs for their vectors, without the outputs that have no history.

    None for an input that no output depends on.  ``keep``: the graph; ``create``: histories.
    """
    kept = [pair for pair in pairs if pair[0].requires_grad and pair[0].is_floating_point()]
    if not kept:
        return [None] * len(inputs)
    outputs, vectors = ([pair[place] for pair in kept] for place in (0, 1))
    return grad(outputs, inputs, vectors, retain_graph=keep, create_graph=create, allow_unused=True)


class Asked(NamedTuple):
    """What is asked for beside gradients.

    ``keep``: the graph, for another backward; ``create``: gradients with histories; ``unused``: may
    an input have no gradient; ``zeros``: zeros instead; ``rows``: the first axis of the vectors
    counts gradients.
    """

    keep: bool
    create: bool
    unused: bool | None
    zeros: bool
    rows: bool = False


def of_arrays(
    roots: Sequence[Any], wanted: Sequence[Any], given: Sequence[Any], asked: Asked
) -> tuple[Any, ...]:
    """The gradients by what the tape recorded.  Raises AutogradError."""
    if asked.rows:
        return _row_by_row(roots, wanted, given, asked)
    if len(given) != len(roots):
        raise errors.AutogradError(f"got {len(roots)} tensors and {len(given)} gradients")
    starts = _roots(roots, given, record=asked.create)
    edges = _edges(wanted)
    run = Run(keep=asked.keep, record=asked.create, captured=edges, accumulate=False)
    found = run.run(starts)
    results: list[Any] = []
    for number, (tensor, edge) in enumerate(zip(wanted, edges, strict=True)):
        value = found.get(edge)
        if value is None and not (asked.unused or asked.zeros):
            raise errors.AutogradError(errors.UNUSED.format(number=number))
        if value is None:
            zero = wrap(np.zeros_like(tensor._array))
            zero._requires_grad = asked.create and asked.zeros
            results.append(zero if asked.zeros else None)
        else:
            results.append(value if isinstance(value, Tensor) else wrap(np.array(value)))
    return tuple(results)


def _row_by_row(
    roots: Sequence[Any], wanted: Sequence[Any], given: Sequence[Any], asked: Asked
) -> tuple[Any, ...]:
    """One gradient after the other, stacked."""
    count = len(given[0])
    rows = []
    for number in range(count):
        one = asked._replace(keep=asked.keep or number < count - 1, rows=False, zeros=False)
        rows.append(of_arrays(roots, wanted, [vector[number] for vector in given], one))
    stack = FUNCTIONS["stack"]
    return tuple(
        None if column[0] is None else stack(list(column)) for column in zip(*rows, strict=True)
    )


def zero_grads(tensors: Iterable[Tensor], set_to_none: bool) -> None:
    """Drop every gradient, or fill it with zeros."""
    for tensor in tensors:
        grad = tensor._grad
        if grad is None:
            continue
        if set_to_none:
            tensor.grad = None
        else:
            with no_grad():
                tensor.grad = grad.detach().zero_()


# -- of whole batches: an element of the outputs depends on the same element of the inputs only,
# so that one backward of the whole batch gives the gradients of all


def of_batches(
    roots: Sequence[Any], wanted: Sequence[Any], given: Sequence[Any], asked: Asked
) -> tuple[Any, ...]:
    """The gradients where a tensor is batched.  Raises VmapError, AutogradError."""
    level = deepest([*roots, *wanted])
    if level is None:  # vectors alone: they are carried through a backward that is recorded
        found = of_arrays(roots, wanted, given, asked._replace(keep=True, create=True, rows=False))
        return found if asked.create else tuple(_detached(one) for one in found)
    starts = [_vector(root, vector, level) for root, vector in zip(roots, given, strict=True)]
    whole_roots = [physical(root, level) for root in roots]
    whole_wanted = [physical(one, level) for one in wanted]
    if any(has for _, has in whole_roots) and not all(has for _, has in whole_wanted):
        raise errors.VmapError(
            "vmap: a gradient by a tensor that is the same for all elements of the batch, of an "
            "output that is not",
            hint="use sg.grad or sg.vjp, or pass the tensor with in_dims",
        )
    inner = [one for one, _ in whole_roots], [one for one, _ in whole_wanted]
    found = _below(*inner, starts, asked._replace(rows=False))
    return tuple(
        enclosed(one, level) if isinstance(one, Tensor) and has else one
        for one, (_, has) in zip(found, whole_wanted, strict=True)
    )


def _below(
    roots: Sequence[Any], wanted: Sequence[Any], given: Sequence[Any], asked: Asked
) -> tuple[Any, ...]:
    """The gradients with one level less; its vectors may be batched where nothing else is."""
    if deepest([*roots, *wanted]) is not None:
        return of_batches(roots, wanted, given, asked)
    if deepest(given) is not None:
        asked = asked._replace(keep=True, create=True)
    return of_arrays(roots, wanted, given, asked)


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value


def _vector(root: Tensor, vector: Any, level: Level) -> Any:
    """The vector for the whole batch of an output."""
    _, has = physical(root, level)
    if vector is None:
        if root.numel() != 1:
            raise errors.AutogradError(errors.NOT_SCALAR)
        shape = ((level.size,) if has else ()) + tuple(root.shape)
        return wrap(np.ones(shape, str(root.dtype)))
    if tuple(vector.shape) != tuple(root.shape):
        raise errors.AutogradError(
            f"Mismatch in shape: a vector of shape {vector.shape} for an output of shape "
            f"{root.shape}."
        )
    found, vector_has = physical(vector, level)
    if has and not vector_has:
        return _repeated(vector, level)
    if vector_has and not has:
        raise errors.VmapError(
            "vmap: a vector that differs from element to element for an output that does not, "
            "beside other outputs",
            hint="call sg.vjp inside of vmap",
        )
    return found


def _repeated(vector: Tensor, level: Level) -> Any:
    """A vector that is the same for all elements, once for each, below deeper levels."""
    if isinstance(vector, BatchedTensor) and vector._level.depth > level.depth:
        inner = _repeated(vector._value, level)
        return batched(inner.movedim(1, 0), vector._level)
    return vector.expand((level.size, *vector.shape))


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
        return add_hook(self, "_hooks", hook)
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
    return add_hook(self, "_after_hooks", hook)


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
