"""``Function.apply`` on tensors: forward now, backward when the graph is walked.

Functions that are attached to operations run as these do, as plans.

In: a Function, proved or not, and its arguments.  Out: its outputs, with a node of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.frontend.function import (
    ATTACHED,
    Context,
    ContextState,
    Function,
    class_of,
    has_backward,
    new_context,
    no_place,
    raw_method,
    run_backward,
    run_forward,
    state_of,
)
from symgrad.tensor import errors
from symgrad.tensor.modes import enable_grad, no_grad, state
from symgrad.tensor.plans.dispatch import invoke
from symgrad.tensor.plans.run import rebase
from symgrad.tensor.tape.node import Grad, Node, SavedTensor, edge_of, named
from symgrad.tensor.tensor import Tensor, wrap

AnyFunction = type[Function] | Function


class EagerState(ContextState):
    """What was said through ctx; what it saved is checked for writes when it is read."""

    packed: tuple[SavedTensor | None, ...] | None = None
    freed = False

    @property
    def tensors(self) -> tuple[Tensor | None, ...]:
        """What was saved, with histories.  Raises FreedGraphError, SavedTensorError."""
        if self.freed:
            raise errors.FreedGraphError(errors.SECOND_BACKWARD)
        if self.packed is None:
            return tuple(self.saved)
        return tuple(None if saved is None else saved.tensor() for saved in self.packed)


class FunctionNode(Node):
    """One use of a Function; attributes that it has not are those of its ctx."""

    __slots__ = ("argument_tensors", "ctx", "function")
    runs_on_nothing = True
    opaque = True

    def __init__(self, function: AnyFunction, ctx: Context, args: Sequence[Any]) -> None:
        edges = tuple(edge_of(arg) if isinstance(arg, Tensor) else None for arg in args)
        super().__init__(edges, ())
        self.function = function
        self.ctx = ctx
        self.argument_tensors = tuple(isinstance(arg, Tensor) for arg in args)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "ctx"), name)

    def backward(self, grads: list[Grad], needed: Sequence[bool], record: bool) -> Sequence[Grad]:
        """What the user's backward returns."""
        found = state_of(self.ctx)
        assert isinstance(found, EagerState)
        given = [
            self._cotangent(grad, kind, record, found.materialize)
            for grad, kind in zip(grads, self.outputs, strict=True)
        ]
        self.ctx.needs_input_grad = tuple(needed)
        once = getattr(raw_method(self.function, "backward")[0], "once_differentiable", False)
        if once or not record:
            with no_grad():
                returned = run_backward(self.function, self.ctx, given)
        else:
            with enable_grad():
                returned = run_backward(self.function, self.ctx, given)
        results = self._checked(returned)
        if once and record:
            results = [None if item is None else self._not_again(item) for item in results]
        return results if record else [None if item is None else item._array for item in results]

    def _cotangent(self, grad: Grad, kind: Any, record: bool, materialize: bool) -> Any:
        if grad is None:
            if not materialize or kind is None:
                return None
            return wrap(np.zeros(*kind[:2]))
        return grad if record else wrap(np.asarray(grad))

    def _checked(self, returned: Any) -> list[Any]:
        """One gradient for each argument.  Raises what PyTorch raises for others."""
        results = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        count = len(self.edges)
        extra = results[count:]
        if len(results) < count or any(item is not None for item in extra):
            raise errors.AutogradError(
                f"function {self.name()} returned an incorrect number of gradients (expected "
                f"{count}, got {len(results)})"
            )
        results = results[:count]
        for place, item in enumerate(results):
            if item is None:
                continue
            if not self.argument_tensors[place]:
                raise errors.AutogradError(
                    f"function {self.name()} returned a gradient different than None at position "
                    f"{place + 1}, but the corresponding forward input was not a Variable"
                )
            if isinstance(item, (np.ndarray, np.generic)):
                results[place] = wrap(np.asarray(item))
            elif not isinstance(item, Tensor):
                raise errors.NotATensorError(
                    f"expected Variable or None (got {type(item).__name__})"
                )
        return results

    def release(self) -> None:
        """Free what was saved."""
        found = state_of(self.ctx)
        if isinstance(found, EagerState) and found.packed:
            found.freed, found.packed = True, ()

    def _not_again(self, gradient: Tensor) -> Tensor:
        found = gradient.detach()
        kind = (gradient._array.shape, gradient._array.dtype)
        found._grad_fn = DelayedError(self.edges, (kind,))
        return found


class DelayedError(Node):
    """What stands behind the gradients of a backward that is not meant to be differentiated."""

    __slots__ = ()

    def backward(self, grads: list[Grad], needed: Sequence[bool], record: bool) -> Sequence[Grad]:
        """Raises AutogradError."""
        raise errors.AutogradError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


def apply(function: AnyFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Run forward without recording, and put a node behind its outputs."""
    if function in ATTACHED:
        return invoke(class_of(function).__name__, ATTACHED[function], args, kwargs)
    ctx = new_context(function, {})
    said = EagerState()
    ctx._symgrad_state = said
    tensors = [arg for arg in args if isinstance(arg, Tensor)]
    recorded = state.grad_enabled and any(tensor.requires_grad for tensor in tensors)
    ctx.needs_input_grad = tuple(isinstance(arg, Tensor) and arg.requires_grad for arg in args)
    check_keywords(function, kwargs)
    if recorded and not has_backward(function):
        return _as_written(function, ctx, args, kwargs)
    node = None
    if recorded:
        kind = named(FunctionNode, f"{class_of(function).__name__}Backward")
        node = kind(function, ctx, args)
    with no_grad():
        returned = run_forward(function, ctx, args, kwargs)
    several = isinstance(returned, (tuple, list))
    outputs = list(returned) if several else [returned]
    outputs = _Outputs(function, args, said, node).finish(outputs)
    if node is not None:
        said.packed = tuple(
            None
            if tensor is None
            else SavedTensor(tensor, is_output=any(tensor is output for output in outputs))
            for tensor in said.saved
        )
        said.saved = ()
    return tuple(outputs) if several else outputs[0]


def check_keywords(function: AnyFunction, kwargs: Mapping[str, Any]) -> None:
    """Raises ProtocolError for a tensor whose gradient would be lost."""
    if kwargs and state.grad_enabled and has_backward(function):
        for name, value in kwargs.items():
            if isinstance(value, Tensor) and value.requires_grad:
                raise no_place(function, name)


def _as_written(
    function: AnyFunction, ctx: Context, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """What forward returns, differentiated as it is written, since there is no backward.

    Raises MissingBackwardError where that leads nowhere.
    """
    try:
        returned = run_forward(function, ctx, args, kwargs)
    except errors.AutogradError as error:
        if error.what != errors.NUMPY_NEEDS_DETACH:
            raise
        raise _missing_backward(function) from error
    outputs = returned if isinstance(returned, (tuple, list)) else [returned]
    constant = state_of(ctx).non_differentiable
    floats = [
        one for one in outputs
        if isinstance(one, Tensor) and one.is_floating_point()
        and not any(one is other for other in constant)
    ]  # fmt: skip
    if floats and not any(one.requires_grad for one in floats):
        raise _missing_backward(function)
    return returned


def _missing_backward(function: AnyFunction) -> errors.MissingBackwardError:
    name = class_of(function).__name__
    return errors.MissingBackwardError(
        "You must implement either the backward or vjp method for your custom autograd.Function to "
        f"use it with backward mode AD. {name} has none, and none can be derived: forward leaves "
        "the tape",
        hint=f"write {name}.backward, or call it under sg.no_grad()",
    )


class _Outputs:
    """Gives histories to what forward returned."""

    def __init__(
        self, function: AnyFunction, args: Sequence[Any], said: ContextState, node: Any
    ) -> None:
        self.args = args
        self.said = said
        self.node = node
        self.kinds: list[Any] = []

    def finish(self, outputs: list[Any]) -> list[Any]:
        """The outputs, each with its place behind the node."""
        for tensor in self.said.dirty:
            if self.node is not None and isinstance(tensor, Tensor):
                _check_dirty(tensor)
        finished = [self._one(place, output) for place, output in enumerate(outputs)]
        if self.node is not None:
            self.node.outputs = tuple(self.kinds)
        return finished

    def _one(self, place: int, output: Any) -> Any:
        if not isinstance(output, Tensor):
            self.kinds.append(None)
            return output
        constant = any(output is other for other in self.said.non_differentiable)
        given = any(output is arg for arg in self.args)
        dirty = any(output is other for other in self.said.dirty)
        tracked = self.node is not None and output.is_floating_point() and not constant
        self.kinds.append(
            (output._array.shape, output._array.dtype) if output.is_floating_point() else None
        )
        if dirty:
            if tracked:
                rebase(output, self.node, place)
            return output
        if given or output.requires_grad or (tracked and output._base is not None):
            output = self._alias(output)
        if tracked:
            output._grad_fn, output._output_number = self.node, place
        return output

    def _alias(self, output: Tensor) -> Tensor:
        """Another tensor in the same memory; what was saved or marked is that one then."""
        found = output.detach()
        self.said.saved = tuple(
            found if tensor is output and not any(output is arg for arg in self.args) else tensor
            for tensor in self.said.saved
        )
        return found


def _check_dirty(tensor: Tensor) -> None:
    if tensor._base is not None and tensor._base.is_leaf and tensor._base.requires_grad:
        raise errors.InPlaceError(errors.LEAF_VIEW_IN_PLACE)
    if tensor.is_leaf and tensor.requires_grad:
        raise errors.InPlaceError(errors.LEAF_IN_PLACE.replace("is being", "has been"))
