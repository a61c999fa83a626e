"""Functions inside ``vmap``: forward and backward run on batched tensors, the tape on batches.

In: a Function and batched arguments.  Out: its outputs, batched.

Seen from outside of the ``vmap`` it is another Function, of whole batches; that is what the tape
gets, and its backward runs the one that the user wrote on elements again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from symgrad.frontend.function import (
    Context,
    Function,
    attributes_of,
    class_of,
    has_backward,
    new_context,
    run_backward,
    run_forward,
    state_of,
)
from symgrad.tensor.apply import apply, check_keywords
from symgrad.tensor.batched import (
    BatchedTensor,
    Level,
    batched,
    deepest,
    enclosed,
    entered,
    inside,
    levels,
    physical,
)
from symgrad.tensor.modes import state
from symgrad.tensor.tensor import Tensor


def apply_batched(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """``Function.apply`` where a tensor is batched.

    What needs no gradient, or has no backward, is what the operations of forward make of it.
    """
    tensors = [arg for arg in args if isinstance(arg, Tensor)]
    recorded = state.grad_enabled and any(tensor.requires_grad for tensor in tensors)
    if not recorded or not has_backward(function):
        return apply(function, args, kwargs)
    check_keywords(function, kwargs)
    level = deepest(args)
    assert level is not None
    lowered = _Lowered(function, level, args, kwargs)
    whole = [inside(arg, level)[0] for arg in args]
    result = lowered.function().apply(*whole)
    several = isinstance(result, tuple)
    outputs = [
        batched(one, level) if has else one
        for one, has in zip(result if several else [result], lowered.outputs, strict=True)
    ]
    return tuple(outputs) if several else outputs[0]


class _Lowered:
    """One use of a Function by the elements of a batch, as a Function of batches."""

    def __init__(
        self, function: Any, level: Level, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        self.user = function
        self.level = level
        self.kwargs = kwargs
        self.inputs = [inside(arg, level)[1] for arg in args]
        self.outputs: list[bool] = []
        self.saved: list[bool] = []
        self.inner: Context = new_context(function, {})

    def function(self) -> type[Function]:
        """The Function of batches, under the user's name."""

        def forward(ctx: Any, *whole: Any) -> Any:
            return self._forward(ctx, whole)

        def backward(ctx: Any, *cotangents: Any) -> Any:
            return self._backward(ctx, cotangents)

        members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        return type(class_of(self.user).__name__, (Function,), members)

    def _forward(self, ctx: Any, whole: Sequence[Any]) -> Any:
        inner = self.inner
        inner.needs_input_grad = ctx.needs_input_grad
        given = [
            batched(one, self.level) if has else one
            for one, has in zip(whole, self.inputs, strict=True)
        ]
        result = run_forward(self.user, inner, given, self.kwargs)
        several = isinstance(result, (tuple, list))
        pairs = [inside(one, self.level) for one in (result if several else [result])]
        self.outputs = [has for _, has in pairs]
        said = state_of(inner)
        kept = [inside(one, self.level) for one in said.saved]
        self.saved = [has for _, has in kept]
        ctx.save_for_backward(*(one for one, _ in kept))
        said.saved = ()
        ctx.set_materialize_grads(said.materialize)
        for mark, tensors in (
            (ctx.mark_non_differentiable, said.non_differentiable), (ctx.mark_dirty, said.dirty),
        ):  # fmt: skip
            if tensors:
                mark(*(inside(one, self.level)[0] for one in tensors))
        return tuple(one for one, _ in pairs) if several else pairs[0][0]

    def _backward(self, ctx: Any, cotangents: Sequence[Any]) -> Any:
        inner = self.inner
        inner.needs_input_grad = ctx.needs_input_grad
        with _again(self.level) as level:
            said = state_of(inner)
            said.saved = tuple(
                enclosed(one, level) if has and one is not None else one
                for one, has in zip(ctx.saved_tensors, self.saved, strict=True)
            )
            self._renew(inner, level)
            given = [
                enclosed(one, level) if has and one is not None else one
                for one, has in zip(cotangents, self.outputs, strict=True)
            ]
            try:
                returned = run_backward(self.user, inner, given)
            finally:
                said.saved = ()
            several = isinstance(returned, (tuple, list))
            found = list(returned) if several else [returned]
            flags = [*self.inputs, *([False] * (len(found) - len(self.inputs)))]
            results = [
                _lowered_gradient(one, has, level) for one, has in zip(found, flags, strict=False)
            ]
        return tuple(results) if several else results[0]

    def _renew(self, inner: Context, level: Level) -> None:
        """Batched tensors that were set on ctx belong to the level in progress now."""
        for name, value in attributes_of(inner).items():
            if isinstance(value, BatchedTensor) and value._level is self.level is not level:
                setattr(inner, name, batched(value._value, level))
        self.level = level


def _lowered_gradient(value: Any, has: bool, level: Level) -> Any:
    """The gradient of a whole batch: of each element, or the sum where all share the input."""
    if not isinstance(value, Tensor):
        return value
    found, whole = physical(value, level)
    if has and not whole:
        return found.expand((level.size, *found.shape))
    return found.sum(0) if whole and not has else found


@contextmanager
def _again(level: Level) -> Iterator[Level]:
    """The level, or one of its size where that ``vmap`` is over."""
    if level in levels.active:
        yield level
    else:
        with entered(level.size, level.randomness) as fresh:
            yield fresh
