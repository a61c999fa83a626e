"""Memory of large arrays, used again.

In: a shape and a dtype.  Out: an array as ``numpy.empty`` makes it, over a block that nothing else
holds.

The system clears each page of fresh memory at the first write to it, which costs more than most
kernels.  A block comes back once the last array, view or export over it is gone, and waits for the
next array of about its size.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from functools import lru_cache
from math import prod
from typing import Any

import numpy

from symgrad.abi import LARGE
from symgrad.runtime.arguments import NDArray, whole

_LIMIT = 1 << 29  # bytes that wait, unless this machine has little memory
_SHARE = 16  # of the memory of the machine, one part in so many may wait
_PATIENCE = 256  # arrays made meanwhile, after which a block that waits is given back
_MOST = 64  # blocks that wait
_ALIGNMENT = 64
_KINDS = 256  # sizes of blocks whose classes are kept


class _Block:
    """So many bytes, from the aligned address ``start`` on."""

    __slots__ = ("memory", "since", "size", "start")

    def __init__(self, size: int) -> None:
        self.memory = numpy.empty(size + _ALIGNMENT, numpy.uint8)
        address = self.memory.ctypes.data
        self.start = address + -address % _ALIGNMENT
        self.size = size
        self.since = 0


@lru_cache(maxsize=_KINDS)
def _lease(size: int) -> Any:
    """The class of what an array over a block of ``size`` bytes and all its views hold on to.

    Nothing else does.  It is one of ctypes, of which NumPy makes an array most quickly.
    """

    class Lease(ctypes.c_char * size):  # type: ignore[misc]
        __slots__ = ("block",)

        def __del__(self) -> None:
            _pool.give(self.block)

    return Lease


class _Pool:
    """Blocks that wait, the longest first.  ``limit``: their bytes in all, at most.

    Nobody waits for ``_lock``: a collection of garbage, a signal or another thread may stand
    between.  Whoever does not get it lets the system allocate and free.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._waiting: list[_Block] = []
        self._bytes = 0
        self._taken = 0

    def take(self, size: int) -> _Block:
        """A block of ``size`` bytes, the one that came last.  MemoryError where there is none."""
        if self._lock.acquire(False):
            try:
                self._taken += 1
                for position in range(len(self._waiting) - 1, -1, -1):
                    if self._waiting[position].size == size:
                        self._bytes -= size
                        return self._waiting.pop(position)
            finally:
                self._lock.release()
        return _Block(size)

    def give(self, block: _Block) -> None:
        """Let ``block`` wait for the next array of its size."""
        if self._lock.acquire(False):
            try:
                block.since = self._taken
                self._waiting.append(block)
                self._bytes += block.size
                self._trim()
            finally:
                self._lock.release()

    def trim(self) -> None:
        """Keep to a limit that has changed."""
        if self._lock.acquire(blocking=False):
            try:
                self._trim()
            finally:
                self._lock.release()

    def _trim(self) -> None:
        """Give back what is too much, and what nobody has asked for in a while."""
        last = self._taken - _PATIENCE
        while self._waiting and (
            self._bytes > self.limit or len(self._waiting) > _MOST or self._waiting[0].since < last
        ):
            self._bytes -= self._waiting.pop(0).size


def leased(shape: tuple[int, ...], dtype: Any) -> NDArray:
    """An array with arbitrary values over memory of the pool.

    MemoryError where there is not so much.
    """
    size = prod(shape) * dtype.itemsize
    grain = 1 << max(size.bit_length() - 4, 12)
    block = _pool.take(-(-size // grain) * grain)
    lease = _lease(block.size).from_address(block.start)
    lease.block = block
    array: NDArray = numpy.ndarray(shape, dtype, lease)
    return array


def empty(shape: tuple[int, ...], dtype: Any) -> NDArray:
    """An array with arbitrary values, over memory of the pool where it is large.

    Raises what ``numpy.empty`` raises.
    """
    array = numpy.empty(shape, dtype)
    return array if array.nbytes < LARGE else leased(array.shape, array.dtype)


def set_pool_limit(size: int) -> None:
    """Let up to ``size`` bytes of large arrays that are gone wait for the next ones.

    Outputs, residuals and gradients of compiled ops are made over such memory.  The default is
    512 MiB, or a sixteenth of the memory of the machine where that is less; 0 gives all back and
    keeps none.  Raises KernelTypeError and KernelArgumentError.
    """
    _pool.limit = whole("the number of bytes that may wait", size, sys.maxsize)
    _pool.trim()


def _default() -> int:
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _LIMIT
    return min(_LIMIT, memory // _SHARE)


def _after_fork() -> None:
    """What waits in the parent stays there; its lock may be held by a thread that is not here."""
    global _pool
    _pool = _Pool(_pool.limit)


_pool = _Pool(_default())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
