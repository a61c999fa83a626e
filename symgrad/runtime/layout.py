"""How an array lies in memory, and whether a kernel takes it so.

In: a NumPy array and the ``Array`` it stands for.  Out: the same array, or a packed copy; strides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from symgrad.abi import Array
from symgrad.runtime.arguments import NDArray, dtype_of


def _contiguous_steps(shape: Sequence[int]) -> list[int]:
    steps = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        steps[axis] = steps[axis + 1] * shape[axis + 1]
    return steps


def steps_of(array: NDArray) -> list[int]:
    """The strides in elements; as in a contiguous array where an axis has no second element."""
    contiguous = _contiguous_steps(array.shape)
    if array.size == 0:
        return contiguous
    real = [stride // array.itemsize for stride in array.strides]
    return [
        usual if extent <= 1 else step
        for extent, step, usual in zip(array.shape, real, contiguous, strict=True)
    ]


def laid_out(value: NDArray, wanted: Array) -> NDArray:
    """``value``, or a packed copy where a kernel cannot take its layout.

    A kernel takes native, aligned elements; axes in ``wanted.strides`` may have any positive
    stride that does not run into the contiguous axes behind them (so that it can serve as the
    leading dimension of a BLAS matrix); all other axes lie as in a C-contiguous array.
    """
    dtype = dtype_of(wanted)
    if value.dtype == dtype and value.flags.aligned:
        if value.flags.c_contiguous:
            return value
        if _complies(value, wanted.strides):
            return value
    return numpy.array(value, dtype=dtype, order="C", copy=True)


def _complies(value: NDArray, strided: tuple[int, ...]) -> bool:
    if any(stride % value.itemsize for stride in value.strides):
        return False
    steps, contiguous = steps_of(value), _contiguous_steps(value.shape)
    behind = max(strided, default=-1) + 1
    least = int(numpy.prod(value.shape[behind:], dtype=numpy.int64))
    return all(
        step >= least if axis in strided else step == usual
        for axis, (step, usual) in enumerate(zip(steps, contiguous, strict=True))
    )
