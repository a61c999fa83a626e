"""Element types, ours and torch's.

In: one.  Out: the other.

A trace may show its floats as those of 16 bits (``Session.shown_as``): then float32 is shown as
that dtype, and float64 as torch's float32.
"""

from __future__ import annotations

from typing import Any

import torch

from symgrad.frontend.caller import here
from symgrad.frontend.dtypes import UnknownDTypeError, named, stored
from symgrad.frontend.questions import note_limit
from symgrad.frontend.session import active
from symgrad.frontend.unsupported import IN_PARTS
from symgrad.ir.dtype import ALL, LISTED, NARROW, DType, float32

_THEIRS = {dtype: getattr(torch, str(dtype)) for dtype in (*ALL, *NARROW)}
_COMPLEX = {torch.float32: torch.complex64, torch.float64: torch.complex128}
_OURS = {found: dtype for dtype, found in _THEIRS.items()}


def theirs(dtype: DType) -> Any:
    """Torch's dtype."""
    shown = _shown_as()
    if shown and dtype.is_float and dtype not in NARROW:
        return getattr(torch, shown) if dtype == float32 else torch.float32
    return _THEIRS[dtype]


def complex_of(dtype: DType) -> Any:
    """Torch's dtype of complex numbers whose parts are of a dtype.  Raises UnknownDTypeError."""
    found = _COMPLEX.get(theirs(dtype))
    if found is None:
        what = f"complex numbers whose parts are of {theirs(dtype)} are not traced"
        raise note_limit(UnknownDTypeError(what, location=here(), hint="convert to float32"))
    return found


def of_parts(dtype: Any) -> Any:
    """Torch's dtype of the parts of complex numbers; None where symgrad does not compute in it."""
    return next((one for one, found in _COMPLEX.items() if found == dtype), None)


def told(dtype: DType) -> Any:
    """Torch's dtype, for which the program asks."""
    session = active()
    if session is not None:
        session.asks_dtypes = True
    return theirs(dtype)


def ours_if_known(dtype: Any) -> DType | None:
    """Our dtype; None for one that symgrad does not compute in."""
    return named(str(dtype).removeprefix("torch.")) if _shown_as() else _OURS.get(dtype)


def _shown_as() -> str:
    session = active()
    return "" if session is None else session.shown_as


def ours(dtype: Any) -> DType:
    """Our dtype.  Raises DTypeError for one that symgrad does not compute in."""
    found = ours_if_known(dtype)
    if found in NARROW:
        return stored(found)
    if found is None:
        what = f"{dtype} is not a dtype that symgrad supports"
        hint = IN_PARTS if dtype.is_complex else f"there are {LISTED}"
        raise note_limit(UnknownDTypeError(what, location=here(), hint=hint))
    return found
