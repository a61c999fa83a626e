"""The type of a tensor: its element type and its symbolic shape.

In: a dtype and sizes.  Out: ``TensorType``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy

from symgrad.errors import ShapeError
from symgrad.ir.dim import Dim, DimLike, product
from symgrad.ir.dtype import DType

MOST_AXES = 64 if int(numpy.__version__.partition(".")[0]) > 1 else 32
"""Of an array of NumPy's: no point could be tried, and no kernel called, with more."""


@dataclass(frozen=True)
class TensorType:
    """``f32[n m]``: a dtype and a shape of symbolic sizes.  Raises ShapeError for too many."""

    dtype: DType
    shape: tuple[Dim, ...] = ()

    def __post_init__(self) -> None:
        if len(self.shape) > MOST_AXES:
            raise ShapeError(
                f"a tensor of {len(self.shape)} axes: an array of NumPy's has {MOST_AXES} at most",
                hint="join axes with reshape, or leave some out",
            )

    @staticmethod
    def of(dtype: DType, shape: tuple[DimLike, ...] | list[DimLike] = ()) -> TensorType:
        """A type from sizes that may be plain integers."""
        return TensorType(dtype, tuple(Dim.of(size) for size in shape))

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Dim:
        """The number of elements."""
        return product(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype.short}[{' '.join(str(size).replace(' ', '') for size in self.shape)}]"
