"""The methods and operators of tensors: those of symbolic tensors, computed.

In: the frontend's symbolic tensor.  Out: methods on ``Tensor``; those of symbolic tensors take
tensors too, where the trace in progress lifts them.
"""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.frontend import unsupported
from symgrad.frontend.caller import here
from symgrad.frontend.functions.casting import to as symbolic_to
from symgrad.frontend.functions.creation import new as symbolic_new
from symgrad.frontend.functions.torch_protocol import torch_function
from symgrad.frontend.session import current
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.tensor import creation, errors, printing, selection
from symgrad.tensor.batched import BatchedTensor, drawn
from symgrad.tensor.modes import state
from symgrad.tensor.plans import inplace
from symgrad.tensor.plans.dispatch import invoke
from symgrad.tensor.tensor import Size, Tensor, new_array, wrap

_PYTHONS = (
    "__class__", "__copy__", "__delattr__", "__dict__", "__dir__", "__doc__", "__getstate__",
    "__init__", "__module__", "__new__", "__setattr__", "__weakref__",
)  # fmt: skip
_OTHERWISE = (
    "__getattr__", "__array_ufunc__", "__array_function__", "__torch_function__", "__getitem__",
    "__setitem__",
)  # fmt: skip
_SYMBOLIC = ("known_node", "shared", "write", "lies_contiguous", "node")
_NOT_TAKEN = frozenset((*_PYTHONS, *_OTHERWISE, *_SYMBOLIC))
_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
_LOGIC = ("and", "or", "xor", "eq", "ne", "lt", "le", "gt", "ge")
_BINARY = frozenset(
    f"__{side}{word}__" for side in ("", "r", "i") for word in (*_ARITHMETIC, *_LOGIC)
)
_LIFTED = frozenset(f"__{side}{word}__" for side in ("", "r", "i") for word in _ARITHMETIC[:4])
"""The operators that do the same with a number as with a tensor of rank 0 that holds it."""
_OPERANDS = (Tensor, SymbolicTensor, bool, int, float, np.ndarray, np.generic)


def _method(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return invoke(name, call, (self, *args), kwargs)

    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    return method


def _making(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """A method that makes new leaves: ``requires_grad`` is theirs."""
    plain = _method(name, call)

    @functools.wraps(plain)
    def method(
        self: Tensor, *args: Any, requires_grad: bool = False, **kwargs: Any
    ) -> Tensor:  # fmt: skip
        found: Tensor = plain(self, *args, **kwargs)
        return found.requires_grad_() if requires_grad else found

    return method


def _operator(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    lifted = name in _LIFTED

    @functools.wraps(call)
    def operator(self: Tensor, other: Any) -> Any:
        if lifted and type(other) is float and self._array.dtype.kind == "f":
            other = wrap(np.asarray(other, self._array.dtype))  # one plan for all numbers
            return invoke(name, call, (self, other), None)
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        return invoke(name, call, (self, other), None)

    operator.__name__ = name
    operator.__qualname__ = f"Tensor.{name}"
    return operator


def _property(name: str, found: property) -> property:
    call: Any = found.fget
    return property(lambda self: invoke(name, call, (self,), None), doc=call.__doc__)


def _attach() -> None:
    own = vars(Tensor)
    for name, found in list(vars(SymbolicTensor).items()):
        if name in own or name in _NOT_TAKEN or (name.startswith("_") and not name.endswith("__")):
            continue
        if isinstance(found, property):
            setattr(Tensor, name, _property(name, found))
        elif name in _BINARY:
            setattr(Tensor, name, _operator(name, found))
        elif callable(found):
            method = _making if name.startswith("new_") else _method
            setattr(Tensor, name, method(name, found))
    for name in ("nonzero", "masked_select", "unique", "bincount", "equal", "allclose", "isclose"):
        setattr(Tensor, name, creation.EAGER[name])


def _getattr(self: Tensor, name: str) -> Any:
    found = unsupported.missing_method(name, here())
    if type(found) is AttributeError:
        found = AttributeError(f"'Tensor' object has no attribute {name!r}")
    raise found


def _to(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    """In another dtype, or that of another tensor; itself where nothing changes."""
    if any(isinstance(arg, Tensor) for arg in args):
        return self.type_as(args[0])
    return invoke("to", symbolic_to, (self, *args), kwargs)


def _reshaped_in_place(name: str) -> Callable[..., Any]:
    """Methods that give the tensor itself another shape: it becomes a view of what it was."""

    def method(self: Tensor, *args: Any) -> Tensor:
        inplace.check(self)
        if self._base is None and self._viewed:
            raise errors.InPlaceError(
                f"{name} of a tensor that has views: they could not tell their own history",
                hint=f"use {name[:-1]}(), which leaves the tensor as it is",
            )
        whole = self
        if self._base is None:
            whole = wrap(self._array)
            whole._requires_grad, whole._counter = self._requires_grad, self.counter()
            whole._grad_fn, whole._output_number = self._grad_fn, self._output_number
        shown = getattr(whole, name[:-1])(*args)
        counter = shown.counter()
        counter.value += 1
        self._array, self._base, self._steps = shown._array, shown._base, shown._steps
        self._grad_fn, self._output_number = shown.grad_fn, shown._output_number
        self._counter, self._creation, self._seen = counter, shown._creation, counter.value
        return self

    method.__name__ = name
    method.__doc__ = f"``{name[:-1]}`` of the tensor itself."
    return method


def _resize_(self: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Itself with another number of elements: the first ones are kept, new ones are 0.

    Raises InPlaceError for views, for what has views, and where elements do not lie in order.
    """
    if state.lifting or isinstance(self, BatchedTensor):
        raise unsupported.missing_op("resize_", here())
    if self.requires_grad:
        raise errors.AutogradError("cannot resize variables that require grad")
    if self._base is not None or self._viewed or not self.is_contiguous():
        raise errors.InPlaceError(
            "resize_ of a tensor that shares its memory, or whose elements do not lie in order",
            hint="reshape() and clone() leave the tensor as it is",
        )
    shape = new_array((Size(creation._shape(size)),), self.dtype).shape
    flat, count = self._array.reshape(-1), math.prod(shape)
    if count > flat.size:
        flat = np.concatenate([flat, np.zeros(count - flat.size, flat.dtype)])
    self._array = flat[:count].reshape(shape)
    self.counter().value += 1
    return self


def _resize_as_(self: Tensor, other: Tensor, memory_format: Any = None) -> Tensor:
    """``resize_`` to the shape of another tensor."""
    return _resize_(self, *other.shape)


def _new(self: Tensor, *data_or_sizes: Any, device: Any = None) -> Tensor:
    """As ``Tensor(...)``, in the dtype of this one."""
    if state.lifting:
        return invoke("new", symbolic_new, (self, *data_or_sizes), {})  # type: ignore[no-any-return]
    found = new_array(data_or_sizes, self.dtype)
    if found.dtype != self._array.dtype:
        raise errors.TensorTypeError(f"new(): expected a tensor of {self.dtype}")
    return wrap(found)


def _apply_(self: Tensor, function: Callable[[Any], Any]) -> Tensor:
    """Replace each element by what a Python function makes of it."""
    flat = [function(item) for item in self._array.reshape(-1).tolist()]
    self._array[...] = np.asarray(flat, self._array.dtype).reshape(self._array.shape)
    self.counter().value += 1
    return self


def _filled_at_random(name: str, draw: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        kind = self._array.dtype

        def numbers(shape: Any) -> Any:
            return np.asarray(draw(shape, *args, **kwargs), kind)

        return self.copy_(drawn(numbers, tuple(self.shape)))  # type: ignore[no-any-return]

    method.__name__ = name
    method.__doc__ = "Take random numbers everywhere."
    return method


_TURNED = ("unsqueeze_", "squeeze_", "t_", "transpose_")


def _uniform(shape: Any, low: float = 0.0, high: float = 1.0, *, generator: Any = None) -> Any:
    return (generator or creation._generator).uniform(low, high, shape)


def _normal(shape: Any, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Any:
    return (generator or creation._generator).normal(mean, std, shape)


_attach()
for _name, _call in (
    ("__getitem__", selection.getitem), ("__setitem__", selection.setitem), ("to", _to),
    ("__repr__", printing.text), ("__str__", printing.text), ("__getattr__", _getattr),
    ("apply_", _apply_), ("uniform_", _filled_at_random("uniform_", _uniform)),
    *((name, _reshaped_in_place(name)) for name in _TURNED),
    ("normal_", _filled_at_random("normal_", _normal)),
    ("resize_", _resize_), ("resize_as_", _resize_as_), ("new", _new),
    ("__torch_function__", classmethod(torch_function)),
):  # fmt: skip
    setattr(Tensor, _name, _call)


# -- methods of symbolic tensors

_OWN = (
    "shared", "write", "known_node", "__init__", "__getattr__", "__hash__", "__deepcopy__",
    "__setattr__", "__delattr__", "__getstate__", "__dir__",
)  # fmt: skip


def _lifting(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def method(self: SymbolicTensor, *args: Any, **kwargs: Any) -> Any:
        if state.lifting and (kwargs or any(isinstance(arg, _MAY_HOLD) for arg in args)):
            session = current()
            return call(self, *session.taken(args), **session.taken(kwargs))
        return call(self, *args, **kwargs)

    return method


_MAY_HOLD = (Tensor, tuple, list, dict)


def _attach_lifting() -> None:
    for name, found in list(vars(SymbolicTensor).items()):
        hidden = name.startswith("_") and not name.endswith("__")
        if isinstance(found, types.FunctionType) and not hidden and name not in _OWN:
            setattr(SymbolicTensor, name, _lifting(found))


_attach_lifting()
