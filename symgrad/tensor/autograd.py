"""The tensor's methods that concern backward: ``backward``, ``retain_grad`` and hooks.

In: the class ``Tensor``.  Out: its methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symgrad.frontend.tensor import SymbolicTensor
from symgrad.tensor import errors
from symgrad.tensor.gradients import Several, backward
from symgrad.tensor.node import AccumulateGrad, edge_of, retain
from symgrad.tensor.parts import RemovableHandle
from symgrad.tensor.tensor import Tensor


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
