"""``ctx``: what forward leaves for backward, and what both may say of inputs and outputs.

In: what forward saves and marks.  Out: the same for backward, and for the trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from symgrad.errors import ProtocolError
from symgrad.frontend.session import here
from symgrad.frontend.sizes import Shape
from symgrad.frontend.tensor import SymbolicTensor

_STATE = "_symgrad_state"


class SavedTypeError(ProtocolError, TypeError):
    """Something else than a tensor was given to ``save_for_backward``."""


@dataclass
class ContextState:
    """What was said through ctx."""

    saved: tuple[Any, ...] = ()
    dirty: tuple[Any, ...] = ()
    non_differentiable: tuple[Any, ...] = ()
    materialize: bool = True
    saved_forward: tuple[Any, ...] = ()
    pushing: bool = False
    primals: tuple[Any, ...] = ()
    outputs: int = 0

    @property
    def tensors(self) -> tuple[Any, ...]:
        """What was saved, as backward reads it; while ``pushing``, as jvp does."""
        return self.saved_forward if self.pushing else self.saved


class Context:
    """The first argument of forward and backward, as in PyTorch.

    Any attribute may be set on it.  ``needs_input_grad``: for each argument of forward, whether
    its gradient is asked for.
    """

    needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (or None) for backward, which finds them in ``saved_tensors``."""
        _check_saved("save_for_backward", tensors)
        state_of(self).saved = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors (or None) for ``jvp``, which finds them in ``saved_tensors``."""
        _check_saved("save_for_forward", tensors)
        state_of(self).saved_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What ``save_for_backward`` kept."""
        return state_of(self).tensors

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of ``saved_tensors``."""
        return self.saved_tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Say which inputs forward changed in place."""
        state_of(self).dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say which outputs have no gradient."""
        state_of(self).non_differentiable = tensors

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Nothing: PyTorch once asked for it."""

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (True) or None for outputs without a cotangent."""
        state_of(self).materialize = bool(value)

    def maybe_clear_saved_tensors(self) -> None:
        """Nothing: a trace keeps what was saved."""

    def name(self) -> str:
        """The name of the backward node, as PyTorch says it."""
        return f"{type(self).__name__}Backward"


def _check_saved(method: str, tensors: tuple[Any, ...]) -> None:
    """Raises SavedTypeError for what is neither a tensor nor None."""
    for position, tensor in enumerate(tensors):
        if tensor is not None and not hasattr(type(tensor), "requires_grad"):
            raise SavedTypeError(
                f"{method} can only save variables, but argument {position} is of type "
                f"{type(tensor).__name__}", location=here(),
                hint="set anything else as an attribute: ctx.name = value",
            )  # fmt: skip


def state_of(ctx: Context) -> ContextState:
    """What was said through a ctx so far."""
    state: ContextState = ctx.__dict__.setdefault(_STATE, ContextState())
    return state


def attributes_of(ctx: Context) -> dict[str, Any]:
    """The attributes that the user set on a ctx, in order."""
    ours = (_STATE, "needs_input_grad")
    return {name: value for name, value in ctx.__dict__.items() if name not in ours}


def kept_tensors(ctx: Context) -> list[SymbolicTensor]:
    """Every tensor that a ctx keeps: saved ones, and those in attributes, lists and dicts."""
    found: list[SymbolicTensor] = []
    todo: list[Any] = [*state_of(ctx).saved, *attributes_of(ctx).values()]
    depth = 0
    while todo and depth < 4:
        inner: list[Any] = []
        for value in todo:
            if isinstance(value, SymbolicTensor):
                if not any(value is known for known in found):
                    found.append(value)
            elif isinstance(value, (list, tuple)) and not isinstance(value, Shape):
                inner.extend(value)
            elif isinstance(value, dict):
                inner.extend(value.values())
        todo = inner
        depth += 1
    return found
