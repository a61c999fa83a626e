"""The element types of tensors.

In: a name.  Out: the one record of that dtype.  Imports the standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DType:
    """An element type; ``short`` is its spelling in shape specs, ``c`` in the emitted C."""

    name: str
    short: str
    c: str
    itemsize: int
    rank: int

    @property
    def is_float(self) -> bool:
        """Is it float32 or float64?"""
        return self.name.startswith("float")

    def __repr__(self) -> str:
        return f"symgrad.{self.name.rstrip('_')}"

    def __str__(self) -> str:
        return self.name.rstrip("_")


bool_ = DType("bool_", "bool", "uint8_t", 1, 0)
int64 = DType("int64", "i64", "int64_t", 8, 1)
float32 = DType("float32", "f32", "float", 4, 2)
float64 = DType("float64", "f64", "double", 8, 3)

ALL = (bool_, int64, float32, float64)
BY_SHORT = {dtype.short: dtype for dtype in ALL}
BY_NAME = {str(dtype): dtype for dtype in ALL}
DEFAULT_FLOAT = float32


def promote(*dtypes: DType) -> DType:
    """The dtype that holds all of ``dtypes``: bool < int64 < float32 < float64, as in torch."""
    return max(dtypes, key=lambda dtype: dtype.rank)
