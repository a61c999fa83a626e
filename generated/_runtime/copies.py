"""Copies of arrays whose layout kernels do not take: fast, and said.

In: an array and the layout that is wanted.  Out: one that lies so, with the same elements; a
``CopyWarning`` at the line of the user's that made the call, where it is large.

NumPy moves elements between C and Fortran order one by one.  ``symgrad_copy``, which each library
of kernels holds, moves tiles, so that no line of the cache is fetched twice.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy

from .abi import LARGE, Array
from .errors import CopyWarning
from . import pool
from .arguments import NDArray, complies
from .load import Library

_HERE = str(Path(__file__).parent)


def laid_out(library: Library, where: str, value: NDArray, wanted: Array, more: int = 0) -> NDArray:
    """``value``, or a packed copy where a kernel cannot take its layout.

    A kernel takes native, aligned elements; axes in ``wanted.strides`` may have any positive
    stride that does not run into the contiguous axes behind them (so that it can serve as the
    leading dimension of a BLAS matrix); all other axes lie as in a C-contiguous array.  ``more``:
    so many axes in front, of any stride, are not the kernel's; what is repeated along them is
    packed once.
    """
    if complies(value, wanted, more):
        return value
    once = tuple(slice(0, 1) if not stride else slice(None) for stride in value.strides[:more])
    return packed(library, where, value[once], wanted)


def packed(library: Library, where: str, value: NDArray, wanted: Array) -> NDArray:
    """A C-contiguous copy in the dtype of a kernel's array; a large one is said."""
    found = pool.empty(value.shape, numpy.dtype(wanted.dtype))
    say(f"{where}: {wanted.name}", value, ", or call numpy.ascontiguousarray on it once")
    copy(library, found, value)
    return found


def copy(library: Library, to: NDArray, value: NDArray) -> None:
    """Copy the elements of an array into another one of its shape and dtype."""
    known = to.dtype == value.dtype and to.dtype.isnative and to.ndim > 1
    if to.nbytes < LARGE or not known or not hasattr(library.lib, "symgrad_copy"):
        numpy.copyto(to, value)
        return
    cast = library.ffi.cast
    library.lib.symgrad_copy(
        cast("char *", to.ctypes.data), cast("const char *", value.ctypes.data), to.ndim,
        list(to.shape), list(to.strides), list(value.strides), to.itemsize,
    )  # fmt: skip


def say(what: str, value: NDArray, instead: str = "") -> None:
    """Warn that an array is copied, where it is large and the user's own line made the call.

    The text is the same at each call, so that Python shows it once a line.
    """
    level = _level() if value.nbytes >= LARGE else None
    if level is not None:
        warnings.warn(
            f"{what} is copied at each call, since kernels do not take its strides; make it with "
            f"order='C'{instead}",
            CopyWarning,
            stacklevel=level + 1,
        )


def _level() -> int | None:
    """How many frames above the caller the user's line stands; None within symgrad itself."""
    level, frame = 0, sys._getframe(1)
    while frame.f_back is not None:
        names: dict[str, Any] = frame.f_globals
        own = str(names.get("__file__", "")).startswith(_HERE) or "_careful" in names
        if not own:
            break
        level, frame = level + 1, frame.f_back
    return None if _is_within(str(frame.f_globals.get("__name__"))) else level


def _is_within(module: str) -> bool:
    return module.split(".")[0] in ("symgrad", "torch", "jax")
