"""Functions with a ``jvp`` of their own inside ``sg.jvp``: their tangents are what it gives.

In: a Function with ``jvp``.  Out: the Function with another backward: the transpose of ``jvp``.

``sg.jvp`` is the derivative of ``v -> v J`` along the tangents, which transposes each step twice:
a step whose backward is the transpose of the user's ``jvp`` is then that ``jvp`` itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from symgrad.autodiff import recorded_vjp
from symgrad.frontend.forward_mode import has_jvp, run_jvp
from symgrad.frontend.function import (
    Function,
    class_of,
    is_instance_style,
    separate_setup,
    state_of,
    substitution,
)
from symgrad.frontend.lift import as_node
from symgrad.frontend.session import active
from symgrad.frontend.tensor import fresh
from symgrad.interpreters import interpreter_of
from symgrad.tensor import errors
from symgrad.tensor.gradients import grad_where_recorded
from symgrad.tensor.modes import enable_grad
from symgrad.tensor.trace.lifting import LiftingSession
from symgrad.tensor.trace.symbolic import is_symbolic, is_tensor

_made: WeakKeyDictionary[type[Function], type[Function]] = WeakKeyDictionary()


@contextmanager
def honouring_jvp(on: bool = True) -> Iterator[None]:
    """A block in which Functions are differentiated by their ``jvp``; or, not ``on``, are not."""
    token = substitution.set(transposed if on else None)
    try:
        yield
    finally:
        substitution.reset(token)


def transposed(function: Any) -> Any:
    """The Function whose backward is the transpose of its ``jvp``; itself where it has none."""
    if not isinstance(function, type) or not has_jvp(function) or is_instance_style(function):
        return function
    if getattr(function, "_symgrad_transposed", False):
        return function
    found = _made.get(function)
    if found is None:
        found = _made[function] = _transposed(function)
    return found


def _transposed(function: type[Function]) -> type[Function]:
    def forward(*args: Any, **kwargs: Any) -> Any:
        result = function.forward(*args, **kwargs)
        if not separate_setup(function):
            _note(args[0], args[1:], result)
        return result

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        function.setup_context(ctx, inputs, output)
        _note(ctx, inputs, output)

    def backward(ctx: Any, *cotangents: Any) -> Any:
        return _pulled(function, ctx, cotangents)

    members = {
        "forward": staticmethod(forward), "backward": staticmethod(backward),
        "_symgrad_transposed": True, "__module__": function.__module__,
    }  # fmt: skip
    if separate_setup(function):
        members["setup_context"] = staticmethod(setup_context)
    return type(class_of(function).__name__, (function,), members)


def _note(ctx: Any, inputs: Sequence[Any], result: Any) -> None:
    """What ``jvp`` will read is what is saved; and how many tangents it takes and gives."""
    said = state_of(ctx)
    said.saved = said.saved_forward
    said.primals = tuple(inputs)
    said.outputs = len(result) if isinstance(result, (tuple, list)) else 1


def _pulled(function: type[Function], ctx: Any, cotangents: Sequence[Any]) -> Any:
    """The gradients of ``<cotangents, jvp(t)>`` by the tangents t."""
    said = state_of(ctx)
    with enable_grad():
        tangents = [_tangent(primal) for primal in said.primals]
        pushed = run_jvp(function, ctx, tangents, [None] * said.outputs)
        pairs = [
            (one, cotangent) for one, cotangent in zip(pushed, cotangents, strict=True)
            if is_tensor(one) and one.requires_grad and cotangent is not None
        ]  # fmt: skip
        for one, cotangent in pairs:
            if tuple(one.shape) != tuple(cotangent.shape):
                raise errors.AutogradError(
                    f"jvp of {function.__name__} returned a tangent of shape {list(one.shape)} "
                    f"for an output of shape {list(cotangent.shape)}"
                )
        wanted = [tangent for tangent in tangents if tangent is not None]
        found = iter(_gradients(pairs, wanted))
    return tuple(None if tangent is None else next(found) for tangent in tangents)


def _lifts(value: Any) -> LiftingSession | None:
    """The trace of a function of tensors that a tensor is of: it differentiates also in forward."""
    session = active()
    return session if isinstance(session, LiftingSession) and is_symbolic(value) else None


def _gradients(pairs: Sequence[tuple[Any, Any]], wanted: Sequence[Any]) -> Sequence[Any]:
    """The gradients of the first of each pair, for the second, by the tangents."""
    session = _lifts(pairs[0][0]) if pairs else None
    if session is None:
        return grad_where_recorded(pairs, wanted)
    nodes = [as_node(one) for one, _ in pairs]
    given = [as_node(one, node.dtype) for (_, one), node in zip(pairs, nodes, strict=True)]
    found = recorded_vjp(nodes, given, [one.node for one in wanted], session.history.rule)
    return [None if node is None else fresh(node) for node in found]


def _tangent(primal: Any) -> Any:
    """A tangent of 0 to differentiate by, for what may have one."""
    if not is_tensor(primal) or not primal.is_floating_point():
        return None
    session = _lifts(primal)
    if session is not None:
        return fresh(session.history.renewed(session.graph.lift(0, primal.node)))
    interpreter = interpreter_of((primal,))
    return interpreter.leaf(interpreter.filled(primal, 0))
