"""Functions of torch's that make sparse tensors, and that take them.

In: a call.  Out: a sparse tensor of the trace, or what a function gives of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symgrad.errors import DTypeError
from symgrad.frontend.caller import here
from symgrad.frontend.sparse import SparseTensor, refused, sparse_of
from symgrad.interop.torch.constants import inward, leaves
from symgrad.interop.torch.dtypes import told

_MADE = "sparse_coo_tensor"
_PRODUCTS = frozenset(("matmul", "mm", "mv", "spmm", "smm", "_sparse_mm"))
_IGNORED = frozenset(("device", "pin_memory", "requires_grad", "check_invariants"))
_METHODS = frozenset(
    ("t", "transpose", "to_dense", "coalesce", "_indices", "_values", "mm", "mv", "matmul")
)


def concerns(name: str, values: Sequence[Any]) -> bool:
    """Does a function make a sparse tensor, or is it given one?"""
    return name == _MADE or any(isinstance(one, SparseTensor) for one in values)


def call(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What the function gives.  Raises UnsupportedOpError."""
    given = [inward(one) for one in args]
    named = {key: inward(value) for key, value in kwargs.items()}
    if name == _MADE:
        return made(*given, **{key: named[key] for key in named if key not in _IGNORED})
    first = given[0] if given else None
    others = list(leaves([*given[1:], *named.values()]))
    if not isinstance(first, SparseTensor) or any(isinstance(one, SparseTensor) for one in others):
        raise refused(f"is given to {name}")
    if name in _PRODUCTS and len(given) == 2 and not named:
        return SparseTensor.matmul(first, given[1])
    if name in _METHODS:
        return getattr(SparseTensor, name)(first, *given[1:], **named)
    if name.startswith("get_"):
        return getattr(first, name[4:])
    raise refused(f"is given to {name}")


def made(indices: Any = None, values: Any = None, size: Any = None, dtype: Any = None) -> Any:
    """``torch.sparse_coo_tensor``."""
    if dtype is not None and dtype not in (values.dtype, told(values.dtype)):
        raise refused("is made of values of another dtype")
    return sparse_of(indices, values, size)


def made_of_dtype(original: Any, args: Sequence[Any]) -> Any:
    """``torch.sparse.FloatTensor`` of indices, values and sizes.  Raises DTypeError."""
    indices, values, size = args
    if told(values.dtype) is not original.dtype:
        raise DTypeError(f"{original} takes values of {original.dtype}", location=here())
    return sparse_of(inward(indices), inward(values), inward(size))
