"""From a call with tensors to a plan, and its result.

In: the name of an operation, its arguments.  Out: what it returns.

Plans are cached under the dtypes and shapes of the tensors and the values of everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symgrad.budgets import MOST_PLANS
from symgrad.errors import TraceError
from symgrad.frontend.caller import warn_user
from symgrad.frontend.session import current
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.interpreters import interpreter_of
from symgrad.ir.dtype import LISTED
from symgrad.tensor import errors
from symgrad.tensor.errors import ForeignOperand
from symgrad.tensor.modes import state
from symgrad.tensor.plans.plan import Place, Plan, Slot, make_plan, slot_of
from symgrad.tensor.plans.run import run, run_any
from symgrad.tensor.tensor import DTYPES, Tensor, wrap

_plans: dict[Any, Plan] = {}


def invoke(name: str, call: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Any:
    """Apply the operation ``call`` of the frontend to tensors, arrays and plain values.

    Arrays with a tape are the usual case, and are looked at once; the interpreter of other operands
    applies it to those.
    """
    if state.lifting:
        return in_trace(call, args, kwargs)
    tensors: list[Tensor] = []
    try:
        parts = [_frozen(arg, tensors) for arg in args]
        named = [(word, _frozen(kwargs[word], tensors)) for word in kwargs] if kwargs else ()
    except ForeignOperand:
        found = interpreter_of(args)
        if found is None or not found.level:
            found = interpreter_of(_leaves((*args, *(kwargs or {}).values())))
        return found.operation(name, call, args, kwargs)
    key = (call, state.dtype.name, *parts, *named)
    try:
        plan = _plans.get(key)
    except TypeError:
        raise errors.TensorTypeError(
            f"{name}: an argument is neither a tensor nor a number nor any other plain value"
        ) from None
    if plan is None:
        plan = _new_plan(name, call, args, kwargs)
        _keep(key, plan)
    for message in plan.warned:
        warn_user(message)
    return run(plan, tensors)


def _leaves(value: Any) -> Iterator[Any]:
    """What tuples, lists and slices hold, however deep."""
    if isinstance(value, slice):
        value = value.start, value.stop, value.step
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


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
        raise ForeignOperand
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
    template = tuple(_template(arg, slots, []) for arg in args)
    keywords = {word: _template(kwargs[word], slots, []) for word in kwargs or ()}
    return make_plan(name, call, template, keywords, slots, state.dtype)


def _keep(key: Any, plan: Plan) -> None:
    """Keep a plan; drop the oldest one where there are too many."""
    if len(_plans) >= MOST_PLANS:
        _plans.pop(next(iter(_plans)))
    _plans[key] = plan


def _template(value: Any, slots: list[Slot], tensors: list[Tensor]) -> Any:
    """The argument with a ``Place`` for each tensor."""
    if isinstance(value, np.ndarray):
        value = as_tensor(value)
    if isinstance(value, Tensor):
        tensors.append(value)
        slots.append(slot_of(value))
        return Place(len(slots) - 1)
    if isinstance(value, (tuple, list)):
        items = [_template(item, slots, tensors) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, slice):
        ends = (value.start, value.stop, value.step)
        return slice(*(_template(item, slots, tensors) for item in ends))
    return value.item() if isinstance(value, np.generic) else value


def in_trace(call: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Any:
    """Apply an operation in the trace in progress."""
    session = current()
    return call(*session.taken(args), **session.taken(kwargs or {}))


# -- whole batches


def invoke_batched(name: str, call: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Any:
    """Apply an operation of the frontend, some of whose tensors are batched."""
    tensors: list[Tensor] = []
    slots: list[Slot] = []
    template = tuple(_template(arg, slots, tensors) for arg in args)
    keywords = {word: _template(kwargs[word], slots, tensors) for word in kwargs or ()}
    key = call, state.dtype.name, _key(template), _key(tuple(keywords.items())), tuple(slots)
    plan = _plans.get(key)
    if plan is None:
        try:
            plan = make_plan(name, call, template, keywords, slots, state.dtype)
        except TraceError as error:
            error.what = f"in vmap: {error.what}"
            raise
        _keep(key, plan)
    for message in plan.warned:
        warn_user(message)
    return run_any(plan, tensors)


def _key(value: Any) -> Any:
    """A key of a described argument."""
    if isinstance(value, (tuple, list)):
        return type(value).__name__, tuple(map(_key, value))
    if isinstance(value, slice):
        return "slice", _key((value.start, value.stop, value.step))
    if isinstance(value, float):
        return "float", value.hex()
    return type(value), value
