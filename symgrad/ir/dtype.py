"""The element types of tensors.

In: a name.  Out: the one record of that dtype.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

BOOL, INTEGER, FLOAT = range(3)
"""What a dtype holds: a promotion takes the greatest category first."""


@dataclass(frozen=True)
class DType:
    """An element type; ``short`` is its spelling in shape specs, ``c`` in the emitted C.

    ``method``: the method that converts to it, ``x.long()``; torch's old tensor classes are named
    after it.  ``signed``: are there negative numbers in it?
    """

    name: str
    short: str
    c: str
    itemsize: int
    category: int
    method: str
    signed: bool = True

    @property
    def is_float(self) -> bool:
        """Does it hold floats?"""
        return self.category == FLOAT

    @property
    def is_floating_point(self) -> bool:
        """Does it hold floats?  As torch's programs ask."""
        return self.is_float

    @property
    def is_complex(self) -> bool:
        """There are no complex dtypes."""
        return False

    @property
    def is_signed(self) -> bool:
        """Are there negative numbers in it?"""
        return self.signed and self.category > 0

    @property
    def is_integer(self) -> bool:
        """Does it hold integers (and not truth values)?"""
        return self.category == INTEGER

    @property
    def wraps(self) -> bool:
        """Is it an integer dtype below int64?  Its arithmetic is int64's, reduced to its range."""
        return self.is_integer and self.itemsize < 8

    @property
    def bits(self) -> int:
        """The bits of an element."""
        return 8 * self.itemsize

    @property
    def of_numpy(self) -> str:
        """NumPy's dtype for its elements: float32 for floats of 16 bits, which are not rounded."""
        return "float32" if self in NARROW else str(self)

    @property
    def least(self) -> int:
        """The least integer of an integer dtype."""
        return -(1 << self.bits - 1) if self.signed else 0

    @property
    def greatest(self) -> int:
        """The greatest integer of an integer dtype."""
        return self.least + (1 << self.bits) - 1

    def holds(self, other: DType) -> bool:
        """Is every integer of another integer dtype one of this dtype?"""
        return self.least <= other.least and other.greatest <= self.greatest

    def holds_number(self, value: float) -> bool:
        """Does a number lie in the range of an integer dtype?"""
        return self.least <= value <= self.greatest

    def wrapped(self, value: int) -> int:
        """The integer of its range that differs from ``value`` by a multiple of 2**bits."""
        return (value - self.least) % (1 << self.bits) + self.least

    @property
    def scalar_type(self) -> str:
        """What torch's messages call it: ``Long``."""
        return self.method.capitalize()

    @property
    def tensor_class(self) -> str:
        """The name of its tensors' class in torch: ``LongTensor``."""
        return f"{self.scalar_type}Tensor"

    def __repr__(self) -> str:
        return f"symgrad.{self.name.rstrip('_')}"

    def __str__(self) -> str:
        return self.name.rstrip("_")


bool_ = DType("bool_", "bool", "uint8_t", 1, BOOL, "bool", signed=False)
uint8 = DType("uint8", "u8", "uint8_t", 1, INTEGER, "byte", signed=False)
int8 = DType("int8", "i8", "int8_t", 1, INTEGER, "char")
int16 = DType("int16", "i16", "int16_t", 2, INTEGER, "short")
int32 = DType("int32", "i32", "int32_t", 4, INTEGER, "int")
int64 = DType("int64", "i64", "int64_t", 8, INTEGER, "long")
float32 = DType("float32", "f32", "float", 4, FLOAT, "float")
float64 = DType("float64", "f64", "double", 8, FLOAT, "double")

float16 = DType("float16", "f16", "", 2, FLOAT, "half")
bfloat16 = DType("bfloat16", "bf16", "", 2, FLOAT, "bfloat16")

ALL = (bool_, uint8, int8, int16, int32, int64, float32, float64)
"""Every dtype; one that comes later is never promoted to one that comes before."""
NARROW = (float16, bfloat16)
"""What a program of torch may store its floats as: there is no C for them."""
INTEGERS = tuple(dtype for dtype in ALL if dtype.is_integer)
BY_SHORT = {dtype.short: dtype for dtype in ALL}
BY_NAME = {str(dtype): dtype for dtype in ALL}
ALIASES = {one.method: one for one in (int16, int32, int64, float32, float64)}
"""The other names that torch has for dtypes: ``torch.long``."""
LISTED = ", ".join(BY_NAME)
"""All of them, for messages."""


_ORDER = (*ALL[:-2], *NARROW, *ALL[-2:])


def promote(*dtypes: DType) -> DType:
    """The least dtype that holds all of ``dtypes``, as in torch.

    Bools are integers, integers floats, and uint8 beside int8 is int16.
    """
    return functools.reduce(_common, dtypes)


def _common(one: DType, other: DType) -> DType:
    small, large = sorted((one, other), key=_ORDER.index)
    if (small, large) == NARROW:
        return float32
    if small.is_integer and not large.holds(small) and large.is_integer:
        return next(dtype for dtype in INTEGERS if dtype.holds(small) and dtype.holds(large))
    return large
