"""``torch.FloatTensor`` and its like, while a Function of torch is traced.

In: a class of tensors of one dtype.  Out: what stands in its place.  Called, it makes tensors of
the trace.

``isinstance(x, torch.DoubleTensor)`` asks for the dtype and for the device.  torch answers in C, by
what it knows of the tensor's memory, which a traced one has not.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from symgrad.frontend.session import active
from symgrad.frontend.sizes import Shape, SymInt
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.interop.torch import sparse
from symgrad.interop.torch.calls import limit
from symgrad.interop.torch.constants import is_traced, leaves
from symgrad.interop.torch.dtypes import told

_KIND: Any = type(torch.FloatTensor)


class _OfDtype:
    """A class of tensors of one dtype, which traced tensors are asked about."""

    symgrad_original: Any = None

    def __init__(self, original: Any) -> None:
        self.symgrad_original = original

    def __instancecheck__(self, value: Any) -> bool:
        if not issubclass(type(value), SymbolicTensor):
            return isinstance(value, self.symgrad_original)
        dtype = told(object.__getattribute__(value, "storage").node.dtype)
        if dtype is not self.symgrad_original.dtype:
            return False
        return bool(value.is_cuda) is bool(self.symgrad_original.is_cuda)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        original = self.symgrad_original
        session = active()
        if getattr(session and session.guest, "library", "") == "torch" and not kwargs:
            if original.is_sparse and len(args) == 3 and any(map(is_traced, args)):
                return sparse.made_of_dtype(original, args)
            made = _made(args, original.dtype)
            if made is not None:
                return made
        if original.is_cuda and not torch.cuda.is_available():
            original = getattr(torch, original.__name__)
        return original(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.symgrad_original, name)

    def __eq__(self, other: object) -> bool:
        return self.symgrad_original is getattr(other, "symgrad_original", other)

    def __hash__(self) -> int:
        return hash(self.symgrad_original)

    def __repr__(self) -> str:
        return repr(self.symgrad_original)


def _made(args: Sequence[Any], dtype: Any) -> Any:
    """A new tensor of the trace: of data, or of sizes; None of anything else."""
    first = args[0] if len(args) == 1 else None
    if type(first) in (list, tuple):
        return torch.tensor(first, dtype=dtype)
    sizes = tuple(first) if isinstance(first, (torch.Size, Shape)) else args
    counts = all(isinstance(one, (int, SymInt)) and not isinstance(one, bool) for one in sizes)
    if sizes and counts:
        return torch.empty(sizes, dtype=dtype)
    if any(map(is_traced, leaves(args))):
        raise limit(f"a tensor of {dtype} is made in the old way", "call torch.tensor")
    return None


@functools.lru_cache(maxsize=64)
def _of_dtype(original: Any) -> _OfDtype:
    return _OfDtype(original)


def stand_in(value: Any) -> Any:
    """What stands in the place of a class of tensors of one dtype; None for anything else."""
    return _of_dtype(value) if type(value) is _KIND else None


@functools.lru_cache(maxsize=1)
def replacements() -> tuple[tuple[Any, str, Any], ...]:
    """Where such a class is, its name there, what stands in its place."""
    return tuple(
        (module, name, stand_in(value))
        for module in (torch, torch.cuda, torch.sparse, torch.cuda.sparse)
        for name, value in list(vars(module).items())
        if type(value) is _KIND
    )
