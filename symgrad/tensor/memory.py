"""The memory of a tensor: made of what its constructor is given, and how it lies.

In: sizes, sequences, tensors.  Out: arrays, strides.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symgrad.errors import DTypeError
from symgrad.frontend.dtypes import check_fits
from symgrad.ir.dtype import DType
from symgrad.tensor import errors
from symgrad.tensor.parts import Size

Array = np.ndarray[Any, Any]


def given(parts: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """What a constructor is given, ``data`` or ``size`` by name too.  Raises TensorTypeError."""
    for word in ("data", "size"):
        if word in named and not parts:
            parts = (Size(named.pop(word)) if word == "size" else named.pop(word),)
    if named:
        raise errors.TensorTypeError(
            f"new() received an invalid combination of arguments: {', '.join(named)}",
            hint="sg.tensor(data, dtype=...) takes a dtype",
        )
    return parts


def new_array(parts: tuple[Any, ...], dtype: DType) -> Array:
    """What ``Tensor(...)`` and ``x.new(...)`` make: of sizes, of a sequence, of a tensor a copy.

    Raises TensorTypeError for anything else, TensorValueError for rows of several lengths.
    """
    if not parts:
        return np.zeros(0, str(dtype))
    data: Any = parts[0] if len(parts) == 1 else None
    if isinstance(getattr(data, "_array", None), np.ndarray):
        return np.array(data._array)
    if all(isinstance(size, (int, np.integer)) and type(size) is not bool for size in parts):
        data = Size(parts)
    if isinstance(data, Size):
        if any(size < 0 for size in data):
            least = min(data)
            raise errors.EagerShapeError(
                f"Trying to create tensor with negative dimension {least}: {list(data)}"
            )
        return np.zeros(data, str(dtype))
    if len(parts) > 1:
        raise errors.TensorTypeError("new(): argument 'size' failed to unpack: sizes are ints")
    if isinstance(data, str):
        raise errors.TensorTypeError("new(): invalid data type 'str'")
    if not isinstance(data, (list, tuple, np.ndarray)):
        raise errors.TensorTypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    try:
        if dtype.is_integer:
            check_fits(data, dtype)
    except DTypeError as error:
        raise errors.EagerDTypeError(error.what) from None
    try:
        return np.asarray(np.array(data), str(dtype))
    except ValueError as error:
        raise errors.TensorValueError(f"no tensor can be made of this: {error}") from None


def element_strides(array: Array, dim: int | None = None) -> Any:
    """How many elements apart neighbours along each axis, or one, lie.

    Without elements they are counted as in torch: as if every axis had one.
    """
    found = tuple(step // array.itemsize for step in array.strides)
    if not array.size:
        later = (array.shape[axis + 1 :] for axis in range(array.ndim))
        found = tuple(math.prod(max(size, 1) for size in sizes) for sizes in later)
    if dim is None:
        return found
    rank = max(array.ndim, 1)
    if not -rank <= dim < rank:
        raise errors.TensorIndexError(
            f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but "
            f"got {dim})"
        )
    return found[dim]
