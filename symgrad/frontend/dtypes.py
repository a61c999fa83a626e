"""Element types as users write them, and torch's rules of promotion.

In: dtypes, their names, NumPy's and Python's types.  Out: ``DType``.
Imports: ``symgrad.ir`` and numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symgrad.errors import DTypeError
from symgrad.ir.dtype import ALL, BY_SHORT, DType, bool_, float32, float64, int64

Number = bool | int | float

_NAMES: dict[str, DType] = {
    **{str(dtype): dtype for dtype in ALL},
    **BY_SHORT,
    "float": float32,
    "double": float64,
    "long": int64,
    "bool_": bool_,
    "FloatTensor": float32,
    "DoubleTensor": float64,
    "LongTensor": int64,
    "BoolTensor": bool_,
}
_PYTHON: dict[type, DType] = {bool: bool_, int: int64, float: float64}


def as_dtype(value: Any) -> DType:
    """A dtype from ``sg.float32``, ``"f32"``, ``np.float32``, ``float`` or torch's own dtypes.

    Raises DTypeError for a dtype that symgrad does not compute in.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, type) and value in _PYTHON:
        return _PYTHON[value]
    name = value if isinstance(value, str) else str(value)
    found = _NAMES.get(name.rpartition(".")[2])
    if found is None and value is not None and not isinstance(value, str):
        try:
            found = _NAMES.get(np.dtype(value).name)
        except TypeError:
            found = None
    if found is None:
        known = ", ".join(str(dtype) for dtype in ALL)
        raise DTypeError(f"{name} is no dtype that symgrad computes in", hint=f"there are {known}")
    return found


def is_dtype(value: Any) -> bool:
    """Does ``value`` name a dtype (and not a device, a tensor or a memory format)?"""
    try:
        as_dtype(value)
    except DTypeError:
        return False
    return True


def category(dtype: DType) -> int:
    """0 for bool, 1 for integers, 2 for floats: what outranks what in a promotion."""
    return 2 if dtype.is_float else 1 if dtype == int64 else 0


def number_category(value: Number) -> int:
    """The category of a Python number."""
    if isinstance(value, bool):
        return 0
    return 1 if isinstance(value, int) else 2


def promoted(
    dimensioned: Sequence[DType], scalars: Sequence[DType], numbers: Sequence[int], default: DType
) -> DType:
    """The common dtype of tensors, rank-0 tensors and Python numbers (by category), as in torch.

    A rank-0 tensor, and still less a number, changes the dtype only when its category is higher.
    """
    result: DType | None = None
    for group in (dimensioned, scalars):
        if group:
            highest = max(group, key=lambda dtype: dtype.rank)
            if result is None or category(highest) > category(result):
                result = highest
    if numbers:
        highest = (bool_, int64, default)[max(numbers)]
        if result is None or category(highest) > category(result):
            result = highest
    return result or default


@dataclass(frozen=True)
class FloatInfo:
    """The limits of a float dtype, as ``torch.finfo`` names them."""

    dtype: DType
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float
    bits: int


def finfo(dtype: Any = float32) -> FloatInfo:
    """The limits of a float dtype."""
    kind = as_dtype(dtype)
    if not kind.is_float:
        raise DTypeError(f"finfo takes a float dtype, not {kind}")
    info = np.finfo(str(kind))
    return FloatInfo(
        kind, float(info.eps), float(info.max), float(info.min), float(info.tiny),
        float(info.tiny), float(info.resolution), info.bits,
    )  # fmt: skip


@dataclass(frozen=True)
class IntegerInfo:
    """The limits of an integer dtype, as ``torch.iinfo`` names them."""

    dtype: DType
    max: int
    min: int
    bits: int


def iinfo(dtype: Any = int64) -> IntegerInfo:
    """The limits of an integer dtype."""
    kind = as_dtype(dtype)
    if kind != int64:
        raise DTypeError(f"iinfo takes an integer dtype, not {kind}")
    return IntegerInfo(kind, 2**63 - 1, -(2**63), 64)
