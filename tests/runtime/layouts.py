"""The ways in which an array can lie in memory, all with the same values.

In: values.  Out: arrays equal to them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

NDArray = numpy.ndarray[Any, numpy.dtype[Any]]


def _every_other(values: NDArray) -> NDArray:
    base: NDArray = numpy.zeros([2 * extent + 1 for extent in values.shape], values.dtype)
    view: NDArray = base[tuple(slice(0, 2 * extent, 2) for extent in values.shape)]
    view[...] = values
    return view


def _rows_apart(values: NDArray) -> NDArray:
    """Contiguous rows with a gap between them: what a BLAS takes as it is."""
    base: NDArray = numpy.zeros((*values.shape[:-1], values.shape[-1] + 3), values.dtype)
    base[..., : values.shape[-1]] = values
    view: NDArray = base[..., : values.shape[-1]]
    return view


def _backwards(values: NDArray) -> NDArray:
    reverse = tuple(slice(None, None, -1) for _ in values.shape)
    view: NDArray = values[reverse].copy()[reverse]
    return view


def _misaligned(values: NDArray) -> NDArray:
    buffer = numpy.zeros(values.nbytes + 1, numpy.uint8)
    view: NDArray = buffer[1 : 1 + values.nbytes].view(values.dtype).reshape(values.shape)
    view[...] = values
    return view


def _read_only(values: NDArray) -> NDArray:
    copy: NDArray = values.copy()
    copy.flags.writeable = False
    return copy


def _field(values: NDArray) -> NDArray:
    """A field of packed records: strides that are no multiple of the element's size."""
    records = numpy.zeros(values.shape, numpy.dtype([("tag", "u1"), ("value", values.dtype)]))
    records["value"] = values
    view: NDArray = records["value"]
    return view


LAYOUTS: dict[str, Callable[[NDArray], NDArray]] = {
    "contiguous": lambda values: values.copy(),
    "fortran": lambda values: values.copy(order="F"),
    "every other": _every_other,
    "rows apart": _rows_apart,
    "backwards": _backwards,
    "byte-swapped": lambda values: values.astype(values.dtype.newbyteorder("S")),
    "misaligned": _misaligned,
    "read-only": _read_only,
    "field of records": _field,
    "subclass": lambda values: values.copy().view(numpy.memmap),
    "same dtype, another object": lambda values: values.view(
        numpy.dtype(values.dtype.str, copy=True)
    ),
}
