"""Element types, ours and torch's.

In: one.  Out: the other.
"""

from __future__ import annotations

from typing import Any

import torch

from symgrad.frontend.caller import here
from symgrad.frontend.dtypes import UnknownDTypeError
from symgrad.frontend.questions import note_limit
from symgrad.ir.dtype import ALL, LISTED, DType

_THEIRS = {dtype: getattr(torch, str(dtype)) for dtype in ALL}
_OURS = {found: dtype for dtype, found in _THEIRS.items()}


def theirs(dtype: DType) -> Any:
    """Torch's dtype."""
    return _THEIRS[dtype]


def ours_if_known(dtype: Any) -> DType | None:
    """Our dtype; None for one that symgrad does not compute in."""
    return _OURS.get(dtype)


def ours(dtype: Any) -> DType:
    """Our dtype.  Raises DTypeError for one that symgrad does not compute in."""
    found = _OURS.get(dtype)
    if found is None:
        what = f"{dtype} is not a dtype that symgrad supports"
        raise note_limit(UnknownDTypeError(what, location=here(), hint=f"there are {LISTED}"))
    return found
