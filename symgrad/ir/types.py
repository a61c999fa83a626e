"""The type of a tensor: its element type and its symbolic shape.

In: a dtype and sizes.  Out: ``TensorType``.  Imports: ``symgrad.ir.dim`` and ``symgrad.ir.dtype``.
"""

from __future__ import annotations

from dataclasses import dataclass

from symgrad.ir.dim import Dim, DimLike, product
from symgrad.ir.dtype import DType


@dataclass(frozen=True)
class TensorType:
    """``f32[n m]``: a dtype and a shape of symbolic sizes."""

    dtype: DType
    shape: tuple[Dim, ...] = ()

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
