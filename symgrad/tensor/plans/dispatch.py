"""From a call with tensors to a plan, and its result.

In: the name of an operation, its arguments.  Out: what it returns.

Plans are cached under the dtypes and shapes of the tensors and the values of everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.frontend.session import active
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.ir.dtype import LISTED
from symgrad.tensor import errors
from symgrad.tensor.errors import BatchedArgument
from symgrad.tensor.modes import state
from symgrad.tensor.plans.plan import Place, Plan, Slot, make_plan
from symgrad.tensor.plans.run import run
from symgrad.tensor.tensor import DTYPES, Tensor, wrap

MOST_PLANS = 8192
_plans: dict[Any, Plan] = {}


_BATCHED: list[Tensor] = []
_batched: list[Callable[..., Any]] = []
"""``symgrad.tensor.vmap.run.invoke``, entered there."""


def provide_batched(call: Callable[..., Any]) -> None:
    """Say how an operation is applied to batched tensors."""
    _batched[:] = [call]


class _SymbolicArgument(Exception):
    """One of the arguments is symbolic: a Function is being traced."""


def invoke(name: str, call: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Any:
    """Apply the operation ``call`` of the frontend to tensors, arrays and plain values."""
    if state.lifting:
        return call(*as_traced(args), **as_traced(kwargs or {}))
    tensors: list[Tensor] = []
    try:
        parts = [_frozen(arg, tensors) for arg in args]
        named = [(word, _frozen(kwargs[word], tensors)) for word in kwargs] if kwargs else ()
    except _SymbolicArgument:
        return call(*as_traced(args), **as_traced(kwargs or {}))
    except BatchedArgument:
        tensors = _BATCHED
    if tensors is _BATCHED:
        return _batched[0](name, call, args, kwargs)
    key = (call, state.dtype.name, *parts, *named)
    try:
        plan = _plans.get(key)
    except TypeError:
        raise errors.TensorTypeError(
            f"{name}: an argument is neither a tensor nor a number nor any other plain value"
        ) from None
    if plan is None:
        plan = _new_plan(name, call, args, kwargs)
        if len(_plans) >= MOST_PLANS:
            _plans.pop(next(iter(_plans)))
        _plans[key] = plan
    return run(plan, tensors)


def _frozen(value: Any, tensors: list[Tensor]) -> Any:
    """What a plan depends on of an argument; its tensors are appended to ``tensors``."""
    if isinstance(value, Tensor):
        tensors.append(value)
        array = value._array
        if array.flags.c_contiguous:
            return array.dtype.char, array.shape
        return array.dtype.char, array.shape, array.strides
    kind = type(value)
    if kind is int or kind is bool:
        return kind, value
    if kind is float:
        return kind, value if value and value == value else value.hex()
    if value is None or kind is str or value is Ellipsis:
        return value
    if kind is tuple or kind is list or isinstance(value, (tuple, list)):
        return kind, tuple([_frozen(item, tensors) for item in value])
    return _rarely_frozen(value, tensors)


def _rarely_frozen(value: Any, tensors: list[Tensor]) -> Any:
    if isinstance(value, SymbolicTensor):
        raise _SymbolicArgument
    if isinstance(value, slice):
        ends = (value.start, value.stop, value.step)
        return slice, tuple([_frozen(item, tensors) for item in ends])
    if isinstance(value, np.ndarray):
        return _frozen(as_tensor(value), tensors)
    if isinstance(value, np.generic):
        return _frozen(value.item(), tensors)
    return type(value), value


def as_tensor(array: Any) -> Tensor:
    """An array as a constant.  Raises TensorTypeError for a dtype that there is not."""
    if array.dtype not in DTYPES:
        raise errors.TensorTypeError(
            f"an array of {array.dtype} cannot be a tensor",
            hint=f"the dtypes are {LISTED}",
        )
    return wrap(array)


def _new_plan(name: str, call: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Plan:
    slots: list[Slot] = []
    template = tuple(_template(arg, slots) for arg in args)
    keywords = {word: _template(kwargs[word], slots) for word in kwargs or ()}
    return make_plan(name, call, template, keywords, slots, state.dtype)


def _template(value: Any, slots: list[Slot]) -> Any:
    """The argument with a ``Place`` for each tensor."""
    if isinstance(value, np.ndarray):
        value = as_tensor(value)
    if isinstance(value, Tensor):
        array = value._array
        strides = tuple(step // array.itemsize for step in array.strides)
        contiguous = bool(array.flags.c_contiguous)
        slots.append(Slot(DTYPES[array.dtype], array.shape, None if contiguous else strides))
        return Place(len(slots) - 1)
    if isinstance(value, (tuple, list)):
        items = [_template(item, slots) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, slice):
        return slice(*(_template(item, slots) for item in (value.start, value.stop, value.step)))
    return value.item() if isinstance(value, np.generic) else value


def as_traced(value: Any) -> Any:
    """Arguments for a trace: tensors are constants of it; inputs, where the trace lifts them."""
    if isinstance(value, Tensor):
        session: Any = active()
        return session.lift(value) if state.lifting else value._array
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return type(value)(as_traced(item) for item in value)
    if isinstance(value, Mapping):
        return {name: as_traced(item) for name, item in value.items()}
    return value


def tracing(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """The arguments for the trace in progress; None if there is none."""
    if active() is None:
        return None
    return as_traced(tuple(args)), as_traced(kwargs)
