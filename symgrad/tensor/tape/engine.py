"""Backward: the nodes of a graph run in topological order.

In: root nodes and their gradients.  Out: gradients added to leaves, or captured for inputs.

Nothing recurses: the graph is walked with lists, and the node that was made last runs first.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.tensor import errors
from symgrad.tensor.modes import state
from symgrad.tensor.tape.node import AccumulateGrad, Edge, Grad, Node
from symgrad.tensor.tensor import Array, Tensor, wrap


class Run:
    """One backward.

    ``captured``: edges whose gradients are wanted, instead of leaves' when there are any.
    ``accumulate``: whether gradients are added to leaves (to those of ``captured`` only).
    """

    def __init__(
        self, *, keep: bool, record: bool, captured: Sequence[Edge] | None, accumulate: bool
    ) -> None:
        self.keep = keep
        self.record = record
        self.captured = None if captured is None else set(captured)
        self.accumulate = accumulate
        self.found: dict[Edge, Grad] = {}
        self.buffers: dict[Node, list[Grad]] = {}
        self.owned: set[tuple[Node, int]] = set()

    def run(self, roots: Sequence[tuple[Edge, Grad]]) -> Mapping[Edge, Grad]:
        """Run every node that the roots lead to and that is needed."""
        order, waiting = _reachable([edge[0] for edge, _ in roots])
        self.needed = None if self.captured is None else _needed(order, self.captured)
        for (node, number), grad in roots:
            self.add(node, number, grad)
        counter = itertools.count()
        ready = [
            (-node.number, next(counter), node)
            for node in dict.fromkeys(edge[0] for edge, _ in roots)
            if not waiting[node]
        ]
        heapq.heapify(ready)
        before, state.grad_enabled = state.grad_enabled, self.record
        try:
            with np.errstate(all="ignore"):
                self._run(ready, waiting, counter)
        finally:
            state.grad_enabled = before
        return self.found

    def _run(self, ready: list[Any], waiting: dict[Node, int], counter: Iterator[int]) -> None:
        """Take nodes from the heap until there is none left."""
        while ready:
            node = heapq.heappop(ready)[2]
            self.step(node)
            for edge in node.edges:
                if edge is not None:
                    child = edge[0]
                    waiting[child] -= 1
                    if not waiting[child]:
                        heapq.heappush(ready, (-child.number, next(counter), child))

    def add(self, node: Node, number: int, grad: Grad) -> None:
        """Add to the gradient of one output of a node."""
        buffer = self.buffers.get(node)
        if buffer is None:
            buffer = self.buffers[node] = [None] * len(node.outputs)
        known = buffer[number]
        if known is None:
            buffer[number] = grad
        elif self.record:
            buffer[number] = known + grad
        elif (node, number) in self.owned:
            known += grad
        else:
            buffer[number] = known + grad
            if known.ndim:
                self.owned.add((node, number))

    def step(self, node: Node) -> None:
        """Run one node with the gradients that arrived at it."""
        grads = self.buffers.pop(node, None)
        if grads is None or (self.needed is not None and node not in self.needed):
            return
        if self.owned:
            self.owned.difference_update((node, number) for number in range(len(grads)))
        self._tensor_hooks(node, grads)
        if self.captured is not None:
            own = [(node, number) for number in range(len(grads))]
            self.found |= {one: grads[one[1]] for one in self.captured.intersection(own)}
        kept = self.needed
        needed = [edge is not None and (kept is None or edge[0] in kept) for edge in node.edges]
        if not self._runs(node, grads, needed):
            return
        if node.prehooks:
            grads = self._prehooks(node, grads)
        results: list[Grad] = [None] * len(needed)
        if isinstance(node, AccumulateGrad):
            self._accumulate(node.variable, grads[0])
        elif True in needed:
            results = self._results(node, grads, needed)
        if node.hooks:
            results = self._after(node, results, grads)
        for edge, asked, result in zip(node.edges, needed, results, strict=True):
            if edge is not None and asked and result is not None:
                self.add(*edge, result)

    def _runs(self, node: Node, grads: Sequence[Grad], needed: Sequence[bool]) -> bool:
        """Is there anything to do beyond its outputs?"""
        if isinstance(node, AccumulateGrad):
            return self.accumulate and self._wanted(node, grads)
        if not node.runs_on_nothing and not [grad for grad in grads if grad is not None]:
            return False
        if True in needed:
            return True
        return self.accumulate and self.captured is not None and self._wanted(node, grads)

    def _wanted(self, node: Node, grads: Sequence[Grad]) -> bool:
        """Is a gradient of one of its outputs asked for?"""
        captured = self.captured
        return captured is None or any((node, at) in captured for at in range(len(grads)))

    def _results(self, node: Node, grads: list[Grad], needed: Sequence[bool]) -> list[Grad]:
        """The gradients of its inputs, in their shapes and dtypes."""
        results = list(node.backward(grads, needed, self.record))
        if not self.keep:
            node.release()
        results += [None] * (len(node.edges) - len(results))
        for place, edge in enumerate(node.edges):
            if edge is not None and results[place] is not None:
                results[place] = self._validated(node, place, edge, results[place])
        return results

    def _validated(self, node: Node, place: int, edge: Edge, grad: Grad) -> Grad:
        """The gradient in the shape and dtype of the input, summed down where it must be."""
        kind = edge[0].outputs[edge[1]]
        if kind is None:
            return None
        shape, dtype = kind
        array = grad._array if self.record else grad
        if array.shape != shape:
            axes = broadcast_axes(shape, array.shape)
            if axes is None:
                raise errors.AutogradError(
                    f"Function {node.name()} returned an invalid gradient at index {place} - got "
                    f"{list(array.shape)} but expected shape compatible with {list(shape)}"
                )
            grad = grad.sum(axes) if axes else grad
            grad = grad.reshape(shape)
        if array.dtype != dtype:
            grad = grad.to(str(dtype)) if self.record else grad.astype(dtype)
        return grad

    # -- hooks

    def _tensor_hooks(self, node: Node, grads: list[Grad]) -> None:
        """Replace the gradients that arrive by what hooks of tensors make of them."""
        hooks = node.tensor_hooks
        if isinstance(node, AccumulateGrad) and node.variable._hooks:
            hooks = {0: node.variable._hooks}
        for number, found in sorted(hooks.items()) if hooks else ():
            for hook in list(found.values()):
                if grads[number] is not None:
                    result = hook(self.tensor(grads[number]))
                    if result is not None:
                        grads[number] = self._hooked(hook, [grads[number]], (result,))[0]
        for number, reference in sorted(node.retained.items()) if node.retained else ():
            tensor = reference()
            if tensor is not None and grads[number] is not None:
                self._accumulate(tensor, grads[number])

    def _prehooks(self, node: Node, grads: list[Grad]) -> list[Grad]:
        """What hooks before a node make of the gradients that it gets."""
        for hook in list(node.prehooks.values()) if node.prehooks else ():
            grads = self._hooked(hook, grads, hook(tuple(map(self.tensor, grads))))
        return grads

    def _after(self, node: Node, results: list[Grad], grads: list[Grad]) -> list[Grad]:
        """What hooks behind a node make of the gradients that it gives."""
        for hook in list(node.hooks.values()) if node.hooks else ():
            found = hook(tuple(map(self.tensor, results)), tuple(map(self.tensor, grads)))
            results = self._hooked(hook, results, found)
        return results

    def _hooked(self, hook: Any, before: list[Grad], result: Any) -> list[Grad]:
        """What a hook makes of gradients.  Raises AutogradError for those of another kind."""
        if result is None:
            return before
        after = result if isinstance(result, tuple) else (result,)
        name = getattr(hook, "__name__", "<unknown>")
        if len(after) != len(before):
            raise errors.AutogradError(
                f"hook '{name}' has returned an incorrect number of values (got {len(after)}, but "
                f"expected {len(before)})"
            )
        return [self._alike(name, old, new) for old, new in zip(before, after, strict=True)]

    def tensor(self, grad: Grad) -> Tensor | None:
        """A gradient as hooks see it."""
        if grad is None or isinstance(grad, Tensor):
            return grad
        return wrap(np.asarray(grad))

    def _alike(self, name: str, before: Grad, after: Any) -> Grad:
        """What a hook put in place of one gradient, as this run holds it."""
        old, new = self.tensor(before), self.grad(after)
        if old is None or new is None:
            if new is not None:
                raise errors.AutogradError("can't replace a None gradient with a non-None value")
            return new
        if after._array.dtype != old._array.dtype:
            raise errors.AutogradError(
                f"hook '{name}' has changed the type of value (was {old.type()} got {after.type()})"
            )
        if after._array.shape != old._array.shape:
            raise errors.AutogradError(f"hook '{name}' has changed the size of value")
        return new

    def grad(self, tensor: Any) -> Grad:
        """A gradient as this run holds it."""
        if tensor is None:
            return None
        if not isinstance(tensor, Tensor):
            raise errors.TensorTypeError(
                f"expected Variable, but hook returned '{type(tensor).__name__}'"
            )
        return tensor if self.record else tensor._array

    # -- leaves

    def _accumulate(self, tensor: Tensor, grad: Grad) -> None:
        """Add to ``tensor.grad``: in place, unless the backward is recorded."""
        if grad is None:
            return
        known = tensor._grad
        if self.record:
            tensor._grad = grad.clone() if known is None else known + grad
        elif known is None:
            tensor._grad = wrap(np.array(grad))
        elif known.requires_grad:
            tensor._grad = wrap(known._array + grad)
        else:
            known._array += grad
            known.counter().value += 1
            known._seen = known.counter().value
        for hook in list(tensor._after_hooks.values()) if tensor._after_hooks else ():
            hook(tensor)


def broadcast_axes(small: Sequence[int], large: Sequence[int]) -> tuple[int, ...] | None:
    """The axes of ``large`` along which ``small`` broadcasts to it; None where it does not."""
    added = len(large) - len(small)
    if added < 0:
        return None
    axes = list(range(added))
    for axis, (size, wide) in enumerate(zip(small, large[added:], strict=True)):
        if size == 1 and wide != 1:
            axes.append(added + axis)
        elif size != wide:
            return None
    return tuple(axes)


def _reachable(roots: Sequence[Node]) -> tuple[list[Node], dict[Node, int]]:
    """All nodes that the roots lead to, and how many uses each has among them."""
    waiting: dict[Node, int] = dict.fromkeys(roots, 0)
    order = list(waiting)
    todo = list(waiting)
    while todo:
        node = todo.pop()
        for edge in node.edges:
            if edge is None:
                continue
            child = edge[0]
            if child in waiting:
                waiting[child] += 1
            else:
                waiting[child] = 1
                order.append(child)
                todo.append(child)
    return order, waiting


def _needed(order: Sequence[Node], captured: set[Edge]) -> set[Node]:
    """The nodes from which one of the captured edges is reached.

    Nodes are made after those of their inputs, so that one pass in that order finds them all.
    """
    targets = {node for node, _ in captured}
    needed = set(targets)
    for node in sorted(
        order, key=lambda node: -1 if isinstance(node, AccumulateGrad) else node.number
    ):
        if any(edge is not None and edge[0] in needed for edge in node.edges):
            needed.add(node)
    return needed


def initial(tensor: Tensor, gradient: Any, number: int) -> Array:
    """The gradient that backward starts from at an output.  Raises AutogradError."""
    array = tensor._array
    if gradient is None:
        if not tensor.requires_grad:
            raise errors.AutogradError(errors.NO_GRAD_FN.format(number=number))
        if array.size != 1:
            raise errors.AutogradError(errors.NOT_SCALAR)
        return np.ones(array.shape, array.dtype)
    if not isinstance(gradient, Tensor):
        raise errors.TensorTypeError(
            f"gradients can be either Tensors or None, but got {type(gradient).__name__}"
        )
    if gradient._array.shape != array.shape:
        raise errors.AutogradError(
            f"Mismatch in shape: grad_output[{number}] has a shape of {gradient.shape} and "
            f"output[{number}] has a shape of {tensor.shape}."
        )
    if not tensor.requires_grad:
        raise errors.AutogradError(errors.NO_GRAD_FN.format(number=number))
    return gradient._array
