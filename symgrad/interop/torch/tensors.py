"""The classes of tensors and sizes while a Function of torch is traced.

In: a class of the frontend's.  Out: a class that derives from it and from torch's.

A tensor is the frontend's, and a ``torch.Tensor`` that holds no memory: methods and operators are
the frontend's by the order of bases, and what that lacks is torch's, which asks
``__torch_function__``.  A size is the frontend's, and a ``torch.SymInt``, so that torch's parsers
take it.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch

from symgrad.errors import SymgradError
from symgrad.frontend.caller import NOT_THE_PROGRAM, asked_by_symgrad, here, is_in, module_of
from symgrad.frontend.complexes import ComplexTensor
from symgrad.frontend.functions.casting import detach, item
from symgrad.frontend.lift import as_tensor
from symgrad.frontend.questions import EACH_IS_STRIDED, assumed, note_limit, note_raised
from symgrad.frontend.sizes import SymFloat, SymInt, computed
from symgrad.frontend.sparse import SparseTensor
from symgrad.frontend.tensor import FIELDS, Hidden, SymbolicTensor, own_names
from symgrad.frontend.unsupported import missing_op
from symgrad.interop.torch import (
    accepted,
    beneath,
    calls,
    complexes,
    memory,
    overlaps,
    refused,
    sparse,
)
from symgrad.interop.torch.constants import inward, leaves, plain_value
from symgrad.interop.torch.dtypes import complex_of, theirs, told
from symgrad.interop.torch.numbers import SizeNode
from symgrad.interop.torch.old_orders import in_new_order
from symgrad.ir.graph import Node

_INNER = frozenset(
    ("__new__", "__init__", "__getattr__", "__getattribute__", "__hash__", "__repr__", "write",
     "__setattr__", "__delattr__", "__getstate__", "__dir__", "known_node", "shared", "_no_value",
     "surely_shows", "perhaps_copied", "lies_as", "lies_anyhow", "_leading", "__deepcopy__",
     "__format__", "type")
)  # fmt: skip
"""Methods that take no operands."""

_INSIDE = ("symgrad.", "torch.")
_DEVICE = "hpu"
"""Where torch's C code takes them to be: on the CPU, some of it would read their memory."""


class TorchTensor(torch.Tensor):
    """What all traced tensors share with torch's; a mixin beside a class of the frontend's."""

    @staticmethod
    def __new__(cls: Any, made_of: Any, *args: Any, **kwargs: Any) -> Any:
        """A tensor without memory, of a storage; of a node where a mask selects elements."""
        node = made_of if isinstance(made_of, Node) else made_of.node
        with torch._C.DisableTorchFunction():
            return torch.Tensor._make_wrapper_subclass(
                cls, (0,), dtype=theirs(node.dtype), device=_DEVICE,
                dispatch_sizes_strides_policy="sizes",
            )  # fmt: skip

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """A function of torch with traced tensors among its arguments."""
        return calls.call(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """An ATen operation that torch took a function apart into."""
        return beneath.call(func, args, kwargs or {})


_NARROW = {
    torch.float16: "HalfTensor", torch.bfloat16: "BFloat16Tensor", torch.float32: "FloatTensor",
}  # fmt: skip
"""The classes of tensors of the dtypes that ours may be shown as."""


def _layout(self: Any) -> Any:
    assumed(EACH_IS_STRIDED)
    return torch.strided


def _dtype(self: Any) -> Any:
    """The element type: torch's for the program, ours for symgrad."""
    frame = sys._getframe(1)
    while module_of(frame) == "symgrad.frontend.anyrank.tensor" and frame.f_back is not None:
        frame = frame.f_back
    own = object.__getattribute__(self, "storage").node.dtype
    return own if asked_by_symgrad(frame) else told(own)


def _element_size(self: Any) -> int:
    """The bytes of an element."""
    found: int = told(self.storage.node.dtype).itemsize
    return found


def _bytes(self: Any) -> Any:
    """The bytes of all elements."""
    return self.numel() * _element_size(self)


def _type(self: Any, dtype: Any = None, **ignored: Any) -> Any:
    """In another dtype; without one, the name of its class in torch."""
    if dtype is None:
        shown = told(self.storage.node.dtype)
        name = _NARROW.get(shown) or self.storage.node.dtype.tensor_class
        return f"torch.{'cuda.' if self.is_cuda else ''}{name}"
    if isinstance(dtype, str) and dtype.startswith("torch."):
        dtype = getattr(torch, dtype.rpartition(".")[2], dtype)
    kind = torch.get_default_dtype() if dtype is torch.Tensor else getattr(dtype, "dtype", dtype)
    return SymbolicTensor.type(self, kind)  # type: ignore[attr-defined]


def _exchange(self: Any, new: Any) -> None:
    """``.data`` is assigned."""
    memory.exchange(self, new, ".data = ")


def _uses(self: Any) -> Any:
    """Raises MissingOperationError: who holds a tensor is not the same in a trace."""
    raise note_limit(missing_op("_use_count", here()))


def _item(self: Any) -> Any:
    """The number that a constant holds.  Raises ControlFlowError for anything else."""
    found = plain_value(self)
    return item(self) if found is None else found


@functools.lru_cache(maxsize=64)
def variant(kind: type) -> type:
    """The class to make objects of in the place of ``kind``."""
    if issubclass(kind, (torch.Tensor, torch.SymInt, torch.SymFloat)):
        return kind
    if issubclass(kind, ComplexTensor):
        return _complex_class()
    if issubclass(kind, SymbolicTensor):
        return _tensor_class(kind)
    if issubclass(kind, (SymInt, SymFloat)):
        base = torch.SymInt if issubclass(kind, SymInt) else torch.SymFloat
        members = {"node": property(SizeNode), "__slots__": (), **_OF_SIZES}
        return type(kind.__name__, (kind, base), members)
    return kind


_OF_SIZES: dict[str, Any] = {
    "__sym_float__": lambda size: size / 1,
    "__sym_int__": lambda size: math.trunc(size),
    "__sym_max__": lambda size, other: size if size >= other else other,
    "__sym_min__": lambda size, other: size if size <= other else other,
    **{
        f"__sym_{name}__": lambda size, name=name: computed(name, (size,))
        for name in ("acos", "asin", "atan", "cos", "cosh", "log2", "sin", "sinh", "sqrt", "tan",
                     "tanh")
    },
}  # fmt: skip
"""What ``torch.sym_float`` and its like ask sizes for."""


def _tensor_class(kind: type) -> type:
    members: dict[str, Any] = {
        "__new__": TorchTensor.__new__,
        "__torch_function__": TorchTensor.__dict__["__torch_function__"],
        "dtype": property(_dtype), "element_size": _element_size, "type": _type, "item": _item,
        "layout": property(_layout),
        "__hash__": kind.__hash__, "_python_dispatch": False, "_use_count": _uses,
        "__module__": "torch", "__annotations__": torch.Tensor.__annotations__,
        "data": property(detach, _exchange), "nbytes": property(_bytes),
        "itemsize": property(_element_size),
    }  # fmt: skip
    for base in kind.__mro__:  # what a class overrides stands before what it overrides
        for name, value in vars(base).items() if base is not object else ():
            if isinstance(value, FunctionType) and name not in _INNER and name not in members:
                members[name] = _operand_taking(value, name)
    return _made(kind, members)


def _made(kind: type, members: dict[str, Any]) -> type:
    """A class of tensors, of which the program does not see what torch's have not."""
    absent = {name for name in dir(kind) if not name.startswith("__")} - {
        *dir(torch.Tensor),
        "known_node",
    }
    members |= {name: _hidden(kind, name, members.get(name)) for name in (*absent, *FIELDS)}
    found: type = type(torch.Tensor)(kind.__name__, (kind, TorchTensor), members)
    return found


_AS_OF_REALS = frozenset(
    ("device", "dtype", "grad", "grad_fn", "is_cpu", "is_cuda", "is_leaf", "ndim", "requires_grad",
     "shape", "requires_grad_", "save", "__dir__", "__reduce_ex__")
)  # fmt: skip
"""What complex tensors have as real ones do."""


def _complex_class() -> type:
    """The class of complex tensors: what torch calls of them is in a table of its own."""

    def new(cls: Any, made_of: Any, *args: Any, **kwargs: Any) -> Any:
        with torch._C.DisableTorchFunction():
            return torch.Tensor._make_wrapper_subclass(
                cls, (0,), dtype=complex_of(made_of.node.dtype), device=_DEVICE,
                dispatch_sizes_strides_policy="sizes",
            )  # fmt: skip

    def dtype(self: Any) -> Any:
        own = self.storage.node.dtype
        if asked_by_symgrad(sys._getframe(1)):
            return own
        told(own)
        return complex_of(own)

    members: dict[str, Any] = {
        "__new__": staticmethod(new), "dtype": property(dtype), "layout": property(_layout),
        "__torch_function__": TorchTensor.__dict__["__torch_function__"],
        "__hash__": SymbolicTensor.__hash__, "_python_dispatch": False, "_use_count": _uses,
        "__module__": "torch", "__annotations__": torch.Tensor.__annotations__,
    }  # fmt: skip
    for name, value in vars(SymbolicTensor).items():
        known = name not in (*members, *_INNER, *_AS_OF_REALS, *vars(ComplexTensor))
        if known and hasattr(torch.Tensor, name) and not hasattr(object, name):
            if isinstance(value, property):
                members[name] = property(_of_complex(f"get_{name}"))
            elif callable(value):
                members[name] = _of_complex(name)
    members |= {name: _part(place, name) for place, name in enumerate(("real", "imag"))}
    members["data"] = property(_of_complex("detach"), _exchange)
    return _made(ComplexTensor, members)


def _part(place: int, name: str) -> property:
    """The real or the imaginary part, which may be assigned."""

    def write(self: Any, value: Any) -> None:
        self.pairs.select(-1, place).copy_(as_tensor(inward(value)))

    return property(_of_complex(f"get_{name}"), write)


def _of_complex(name: str) -> Callable[..., Any]:
    """The method of a name for complex numbers."""
    plain = getattr(torch.Tensor, name.removeprefix("get_"))
    plain = plain.__get__ if name.startswith("get_") else plain

    @functools.wraps(plain)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        return calls.call(plain, (self, *args), kwargs)

    return called


def _hidden(kind: type, name: str, method: Any) -> Hidden:
    """An attribute of ours that torch's tensors have not: for symgrad and torch alone."""
    shown: Any = method or inspect.getattr_static(kind, name, None)
    found: Any = shown.fget if isinstance(shown, property) else getattr(shown, "__get__", None)

    def read(self: Any) -> Any:
        frame = sys._getframe(1)
        module = frame.f_globals.get("__name__") or ""
        if not module.startswith(_INSIDE) and not is_in(frame, NOT_THE_PROGRAM):
            raise AttributeError(name)
        return own_names(self)[name] if found is None else found(self)

    def write(self: Any, value: Any) -> None:
        own_names(self)[name] = value

    return Hidden(read, write)


def _operand_taking(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The method of a name, which takes tensors of torch's as constants."""
    writes, refuses = overlaps.writes(method.__name__), bool(accepted.rules(name))
    moves = name in ("cuda", "to") or name.startswith("new_")
    native = None if name.startswith("__") else getattr(torch.Tensor, name, None)

    @functools.wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self, SparseTensor) and native is not None:
            return sparse.call(name, (self, *args), kwargs)
        if complexes.concerns("", leaves((*args, *kwargs.values()))):
            return calls.call(getattr(torch.Tensor, name, method), (self, *args), kwargs)
        every, kwargs = in_new_order(name, (self, *args), kwargs, method=True)
        args = every[1:]
        named = {key: inward(kwargs[key]) for key in kwargs}
        if moves:
            calls.note_device(name, (*args, *kwargs.values()))
        if refuses and not asked_by_symgrad(sys._getframe(1)):
            accepted.check(name, (self, *args), kwargs)
        if writes:
            overlaps.check_written(method.__name__, (self, *args), kwargs)
        try:
            found = method(self, *map(inward, args), **named)
        except SymgradError as error:
            raise note_raised(error) from error.__cause__
        if native is not None and not asked_by_symgrad(sys._getframe(1)):
            refused.check(native, name, (self, *args), kwargs)
        return calls.outward(found, method.__name__)

    return called
