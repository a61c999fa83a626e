"""Element types as users write them, and torch's rules of promotion.

In: dtypes, their names, NumPy's and Python's types.  Out: ``DType``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symgrad.errors import DTypeError, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.questions import note_limit, questions
from symgrad.frontend.session import active
from symgrad.frontend.unsupported import IN_PARTS
from symgrad.ir.dtype import (
    ALIASES,
    ALL,
    BY_NAME,
    BY_SHORT,
    LISTED,
    NARROW,
    DType,
    bool_,
    float32,
    float64,
    int64,
    promote,
)

Number = bool | int | float


class UnknownDTypeError(DTypeError, UnsupportedOpError):
    """A dtype that symgrad does not compute in."""


_NAMES: dict[str, DType] = {
    **BY_NAME,
    **BY_SHORT,
    **ALIASES,
    "bool_": bool_,
    **{dtype.tensor_class: dtype for dtype in ALL},
}
_PYTHON: dict[type, DType] = {bool: bool_, int: int64, float: float64}


def as_dtype(value: Any) -> DType:
    """A dtype from ``sg.float32``, ``"f32"``, ``np.float32``, ``float`` or torch's own dtypes.

    Raises DTypeError for a dtype that symgrad does not compute in.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, type):
        plain = _PYTHON.get(value) or getattr(value, "dtype", None)  # of a class of tensors
        if isinstance(plain, DType):
            return plain
    name = value if isinstance(value, str) else str(value)
    found = named(name.rpartition(".")[2])
    if found is None and value is not None and not isinstance(value, str):
        try:
            found = named(np.dtype(value).name)
        except TypeError:
            found = None
    if found is None:
        what, place = f"{name} is not a dtype that symgrad supports", here() if active() else None
        hint = IN_PARTS if "complex" in name else f"there are {LISTED}"
        raise note_limit(UnknownDTypeError(what, location=place, hint=hint))
    return found


def named(name: str) -> DType | None:
    """The dtype that the program has under a name; None for one that symgrad does not compute in.

    Where floats are shown as those of 16 bits, that is float32, and a wider one float64.
    """
    session, found = active(), _NAMES.get(name)
    if session is None:
        return found
    if session.shown_as:
        if name == session.shown_as:
            return float32
        found = float64 if found is not None and found.is_float else found
    if found is None and session.guest is not None and session.guest.narrow:
        found = next((one for one in NARROW if name in (str(one), one.method)), None)
        return found and stored(found)
    return found


def stored(dtype: DType) -> DType:
    """A dtype of 16 bits: what is stored in it is judged as the real numbers that it rounds."""
    known = questions()
    if known is not None:
        known.assume(f"rounding to {dtype}, and its range, are left aside", here())
    return dtype


def number_category(value: Number) -> int:
    """The category of a Python number."""
    if isinstance(value, bool):
        return 0
    return 1 if isinstance(value, int) else 2


def promoted(
    dimensioned: Sequence[DType], scalars: Sequence[DType], numbers: Sequence[int],
    default: Callable[[], DType],
) -> DType:  # fmt: skip
    """The common dtype of tensors, rank-0 tensors and Python numbers (by category), as in torch.

    A rank-0 tensor, and still less a number, changes the dtype only when its category is higher.
    ``default``: the dtype of floats that say no other.
    """
    result: DType | None = None
    for group in (dimensioned, scalars):
        if group:
            highest = promote(*group)
            if result is None or highest.category > result.category:
                result = highest
    if numbers:
        category = max(numbers)
        if result is None or category > result.category:
            result = (bool_, int64)[category] if category < 2 else default()
    return result or default()


def promote_types(type1: Any, type2: Any) -> DType:
    """The least dtype that holds both, as in torch.  Raises DTypeError."""
    return promote(as_dtype(type1), as_dtype(type2))


def can_cast(from_: Any, to: Any) -> bool:
    """May a result of one dtype be written into a tensor of the other?  Raises DTypeError."""
    return as_dtype(from_).category <= as_dtype(to).category


def check_fits(value: Any, dtype: DType) -> None:
    """Numbers, in lists or not, that become elements have to fit.  Raises DTypeError.

    A negative one goes into an unsigned dtype, and is counted from its end, as in torch.
    """
    if isinstance(value, (list, tuple)):
        for item in value:
            check_fits(item, dtype)
    plain = value.item() if isinstance(value, np.generic) else value
    if dtype != bool_ and isinstance(plain, (int, float)) and not _fits(plain, dtype):
        kind = {"int32_t": "int"}.get(dtype.c, dtype.c)
        raise DTypeError(f"value cannot be converted to type {kind} without overflow")


def _fits(value: int | float, dtype: DType) -> bool:
    if dtype.is_float:
        return not math.isfinite(value) or abs(value) <= float(np.finfo(dtype.of_numpy).max)
    least = dtype.least if dtype.signed else -dtype.greatest
    return least <= value <= dtype.greatest


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
    if not kind.is_integer:
        raise DTypeError(f"iinfo takes an integer dtype, not {kind}")
    return IntegerInfo(kind, kind.greatest, kind.least, kind.bits)
