"""``sg.autograd``: backward, gradients of anything with respect to anything, hooks.

In: tensors.  Out: gradients.  Imports: the frontend's Function, this package's engine.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from symgrad.frontend.function import Function as Function
from symgrad.frontend.function import once_differentiable as once_differentiable
from symgrad.tensor import classic as functional  # noqa: F401
from symgrad.tensor import errors
from symgrad.tensor.gradcheck import gradcheck as gradcheck
from symgrad.tensor.gradcheck import gradgradcheck as gradgradcheck
from symgrad.tensor.gradients import Several, backward
from symgrad.tensor.gradients import grad as grad
from symgrad.tensor.modes import enable_grad as enable_grad
from symgrad.tensor.modes import inference_mode as inference_mode
from symgrad.tensor.modes import no_grad as no_grad
from symgrad.tensor.modes import set_grad_enabled as set_grad_enabled
from symgrad.tensor.parts import RemovableHandle
from symgrad.tensor.tensor import Tensor

function = SimpleNamespace(Function=Function, once_differentiable=once_differentiable)
"""``torch.autograd.function``."""


def Variable(data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
    """The tensor itself, which requires a gradient if that is asked for."""
    return data.requires_grad_() if requires_grad else data


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
    node = self.grad_fn
    if node is None:
        self._hooks = {} if self._hooks is None else self._hooks
        return RemovableHandle(self._hooks, hook)
    node.tensor_hooks = {} if node.tensor_hooks is None else node.tensor_hooks
    return RemovableHandle(node.tensor_hooks.setdefault(self._output_number, {}), hook)


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
    self._retains = True
    node.retained = {} if node.retained is None else node.retained
    node.retained[self._output_number] = weakref.ref(self)


for _name, _method in (
    ("backward", _backward), ("register_hook", _register_hook), ("retain_grad", _retain_grad),
    ("register_post_accumulate_grad_hook", _register_after),
):  # fmt: skip
    _method.__name__ = _name
    setattr(Tensor, _name, _method)
