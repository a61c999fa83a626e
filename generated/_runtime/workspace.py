"""Memory that kernels compute in: one block a thread, kept from call to call.

In: a number of bytes.  Out: a pointer aligned to 64 bytes.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy

from .abi import ALIGNMENT
from .errors import KernelArgumentError

try:
    import _cffi_backend
except ImportError as error:
    raise ImportError("compiled kernels are called through cffi: pip install cffi") from error

_ffi: Any = _cffi_backend.FFI()


class Workspace(threading.local):
    """The block of the thread that asks.  ``pointer`` and ``size`` (bytes) go to a kernel."""

    pointer: Any = _ffi.NULL
    size: int = 0

    def grow(self, needed: int) -> None:
        """Make the block at least ``needed`` bytes long.

        Raises KernelArgumentError where there is not so much memory.
        """
        if needed <= self.size:
            return
        self.release()
        try:
            block = numpy.empty(needed + ALIGNMENT, numpy.uint8)
        except (MemoryError, ValueError, OverflowError) as error:
            raise KernelArgumentError(
                f"a kernel needs a workspace of {needed} bytes, more than there is",
                hint="split the input into smaller ones",
            ) from error
        start = -block.ctypes.data % ALIGNMENT
        self.pointer = _ffi.from_buffer(block[start : start + needed])
        self.size = needed

    def release(self) -> None:
        """Give this thread's block back."""
        self.pointer, self.size = _ffi.NULL, 0


workspace = Workspace()
