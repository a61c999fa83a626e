"""Element types, ours and JAX's.

In: one.  Out: the other.

Integers of 32 and 64 bits are both computed with in 64 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.frontend.caller import here
from symgrad.frontend.dtypes import UnknownDTypeError
from symgrad.frontend.questions import note_limit
from symgrad.ir.dtype import DType, bool_, float32, float64, int64

_OURS = {
    "bool": bool_, "int32": int64, "int64": int64, "float32": float32, "float64": float64,
}  # fmt: skip


def theirs(dtype: DType) -> Any:
    """NumPy's dtype, which is JAX's."""
    return np.dtype(str(dtype))


def ours(dtype: Any) -> DType:
    """Our dtype to compute in.  Raises UnknownDTypeError where there is none."""
    found = _OURS.get(str(dtype))
    if found is None:
        what = f"arrays of {dtype} are not supported in functions of JAX"
        hint = f"there are {', '.join(_OURS)}"
        raise note_limit(UnknownDTypeError(what, location=here(), hint=hint))
    return found
