"""The quickest way to a kernel: the functions of ``entry``, called from a wrapper.

In: an ``Op``, its library, and the classes of what forward keeps.  Out: ``Quick``.

Its functions take what those of ``Caller`` take, and return what they return; or None, where C
does not see at once that a call is right.  Then nothing of the call was done but, at most, what
another try does again.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy

from .abi import C_TYPES, Op
from .load import Library
from .pool import leased

_WRITE = 0x501  # what ``seen`` tells of the flags of an array


def nothing(*_: Any) -> None:
    """The way that serves no call."""


class Quick:
    """The calls of one op."""

    __slots__ = ("backward", "forward", "inference")

    def __init__(self, op: Op, library: Library, kinds: Sequence[type]) -> None:
        found = _bound(library.entry, tuple(kinds))
        functions = found or (nothing,) * 3
        self.inference: Any = functions[0]
        self.forward: Any = functions[1]
        self.backward: Any = functions[2]


def _bound(module: Any, kinds: tuple[type, ...]) -> Any:
    """The three functions; None where there are none for this NumPy."""
    if module is None:
        return None
    try:
        core = import_module("numpy._core._multiarray_umath")
    except ImportError:  # NumPy 1
        core = import_module("numpy.core._multiarray_umath")
    dtypes = tuple(map(numpy.dtype, C_TYPES))
    found = module.bind(core._ARRAY_API, numpy.ndarray, dtypes, kinds, leased)
    samples = numpy.empty((2, 3), numpy.float32), numpy.empty((3, 2, 1), numpy.int64).T
    return found if found and all(_is_seen(module, one) for one in samples) else None


def _is_seen(module: Any, array: numpy.ndarray[Any, Any]) -> bool:
    """Does C see of an array what NumPy says of it?"""
    address, flags, strides, made = module.seen(array)
    same = made.shape == array.shape and made.dtype is array.dtype and made.flags.c_contiguous
    lies = address == array.ctypes.data and strides == array.strides
    return bool(same and lies and flags == array.flags.num & _WRITE)
