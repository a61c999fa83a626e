"""Kernels on NumPy, in a package that has no library which can be loaded here.

In: the programs beside a wrapper, written by symgrad.  Out: a ``Library`` that calls them, and the
functions that they call.

The straight-line code of a wrapper gives up at once, so that each call takes the careful path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from symgrad.abi import Kernel, Sizes
from symgrad.errors import KernelArgumentError

Array = np.ndarray[Any, Any]


class NoFFI:
    """What stands for cffi, and for the module that it would load."""

    symgrad_threads = 0

    def typeof(self, _: str) -> None:
        """No type of C."""

    def from_buffer(self, *_: Any) -> NoReturn:
        """Make the wrapper give up."""
        raise LookupError("NumPy computes")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("call_"):
            return self.from_buffer
        raise AttributeError(name)

    @staticmethod
    def symgrad_max_threads() -> int:
        """NumPy sees to its own threads."""
        return 1


def call(
    programs: Mapping[str, Any], where: str, kernel: Kernel, sizes: Sizes,
    inputs: Mapping[str, Any], outputs: Mapping[str, Array],
) -> int:  # fmt: skip
    """Compute the outputs of a kernel.  Raises KernelArgumentError for what C refuses, too."""
    given = [inputs[array.name] for array in kernel.inputs]
    try:
        with np.errstate(all="ignore"):
            found = programs[kernel.name](sizes, *given)
    except (IndexError, np.linalg.LinAlgError) as error:
        raise KernelArgumentError(f"{where}: {error}") from error
    for array, value in zip(kernel.outputs, found, strict=True):
        outputs[array.name][...] = np.reshape(value, outputs[array.name].shape)
    return 0


# -- what programs call

as_bool = partial(np.asarray, dtype=bool)
as_float32 = partial(np.asarray, dtype=np.float32)
as_float64 = partial(np.asarray, dtype=np.float64)
as_int8 = partial(np.asarray, dtype=np.int8)
as_int16 = partial(np.asarray, dtype=np.int16)
as_int32 = partial(np.asarray, dtype=np.int32)
as_int64 = partial(np.asarray, dtype=np.int64)
as_uint8 = partial(np.asarray, dtype=np.uint8)


def part(starts: Sequence[int], steps: Sequence[int], sizes: Sequence[int]) -> tuple[Any, ...]:
    """The index of so many elements along each axis."""
    found = []
    for start, step, size in zip(starts, steps, sizes, strict=True):
        stop = start + step * size
        found.append(slice(start, stop if stop >= 0 else None, step) if size else slice(0, 0))
    return (*found, ...)


def put(array: Array, shape: Sequence[int], where: tuple[Any, ...]) -> Array:
    """Zeros, but for an array in that part of them."""
    whole = np.zeros(shape, array.dtype)
    whole[where] = array
    return whole


def take(array: Array, *places: Array) -> Array:
    """The elements at these places of the first axes.  IndexError outside; below 0 is outside."""
    return array[_within(places, array.shape)]


def add_at(array: Array, shape: Sequence[int], *places: Array) -> Array:
    """Zeros, to which elements are added at these places of the first axes."""
    whole = np.zeros(shape, array.dtype)
    np.add.at(whole, _within(places, shape), array)
    return whole


def _within(places: tuple[Array, ...], shape: Sequence[int]) -> tuple[Array, ...]:
    for axis, (place, size) in enumerate(zip(places, shape, strict=False)):
        if np.any((place < 0) | (place >= size)):
            raise IndexError(f"an index lies outside of axis {axis}, which has {size} elements")
    return places
