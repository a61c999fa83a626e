"""Element types, ours and JAX's.

In: one.  Out: the other.

Integers of 32 and 64 bits are both computed with in 64 bits.  A trace may show its floats as those
of 16 bits (``Session.shown_as``), as for torch.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from symgrad.frontend.caller import here
from symgrad.frontend.dtypes import UnknownDTypeError
from symgrad.frontend.questions import note_limit
from symgrad.frontend.session import active
from symgrad.ir.dtype import DType, bool_, float32, float64, int64

_OURS = {
    "bool": bool_, "int32": int64, "int64": int64, "float32": float32, "float64": float64,
}  # fmt: skip


def theirs(dtype: DType) -> Any:
    """NumPy's dtype, which is JAX's."""
    shown = _shown_as()
    if shown and dtype.is_float:
        return jnp.dtype(shown if dtype == float32 else "float32")
    return np.dtype(str(dtype))


def _shown_as() -> str:
    session = active()
    return "" if session is None else session.shown_as


def ours(dtype: Any) -> DType:
    """Our dtype to compute in.  Raises UnknownDTypeError where there is none."""
    found = _OURS.get(str(dtype))
    shown = _shown_as()
    if shown and str(dtype) == shown:
        return float32
    if shown and found is not None and found.is_float:
        return float64
    if found is None:
        what = f"arrays of {dtype} are not supported in functions of JAX"
        hint = f"there are {', '.join(_OURS)}"
        raise note_limit(UnknownDTypeError(what, location=here(), hint=hint))
    return found
