"""``as_strided`` where it is a view that symgrad knows.

In: a tensor, sizes and strides.  Out: the view: axes split, joined, exchanged and repeated; all
windows of a row; the diagonal of a square matrix.

The tensor is taken to be contiguous, and to begin where its memory does: both are printed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from symgrad.errors import SymgradError, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.questions import note_limit, questions
from symgrad.frontend.sizes import as_dim
from symgrad.frontend.views import (
    Diagonal,
    Expand,
    Permute,
    Reshape,
    Shape,
    Step,
    Windows,
    contiguous_strides,
)
from symgrad.interop.torch import beneath
from symgrad.ir.dim import Dim, product

MOST_AXES = 5


def as_strided(self: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """The memory of a tensor by sizes and strides.  Raises UnsupportedOpError for other views."""
    beneath.stride(self)  # prints that it is contiguous
    shape: Shape = self.node.shape
    if self.steps or tuple(self.strides) != contiguous_strides(shape):
        raise _unknown("of a view that may be anywhere in its memory")
    if storage_offset is not None:
        if as_dim(storage_offset) != Dim.of(0):
            raise _unknown("with an offset")
        known = questions()
        if known is not None:
            known.assume("the memory that as_strided is called on begins with the tensor", here())
    steps = _steps(shape, tuple(map(as_dim, size)), tuple(map(as_dim, stride)))
    if steps is None:
        raise _unknown("with these sizes and strides")
    return self.shared(*steps)


def _unknown(what: str) -> SymgradError:
    return note_limit(UnsupportedOpError(
        f"as_strided {what} is no view that symgrad knows", location=here(),
        hint="write it with reshape, permute, expand, unfold or diagonal",
    ))  # fmt: skip


def _steps(shape: Shape, sizes: Shape, strides: Shape) -> tuple[Step, ...] | None:
    """The steps to the view; None where it is none that is known."""
    one, zero = Dim.of(1), Dim.of(0)
    kept = [axis for axis, size in enumerate(sizes) if size != one and strides[axis] != zero]
    own = tuple(sizes[axis] for axis in kept)
    inner = _of_axes(shape, own, tuple(strides[axis] for axis in kept))
    if inner is None:
        return None
    single = tuple(size if axis in kept else one for axis, size in enumerate(sizes))
    steps = inner if single == own else (*inner, Reshape(single))
    return steps if single == sizes else (*steps, Expand(sizes))


def _of_axes(shape: Shape, sizes: Shape, strides: Shape) -> tuple[Step, ...] | None:
    """The steps to axes none of which is repeated."""
    total = product(shape)
    if product(sizes) == total and len(sizes) <= MOST_AXES:
        for order in itertools.permutations(range(len(sizes))):
            ordered = tuple(sizes[axis] for axis in order)
            if contiguous_strides(ordered) == tuple(strides[axis] for axis in order):
                back = tuple(order.index(axis) for axis in range(len(order)))
                return (Reshape(ordered), Permute(back))
    return _windows(total, sizes, strides) or _diagonal(shape, sizes, strides)


def _windows(total: Dim, sizes: Sequence[Dim], strides: Sequence[Dim]) -> tuple[Step, ...] | None:
    if len(sizes) != 2 or strides[1] != Dim.of(1):
        return None
    length, step = sizes[1].constant, strides[0].constant
    if length is None or not step or sizes[0] != (total - length) // step + 1:
        return None
    return (Reshape((total,)), Windows(0, length, step))


def _diagonal(shape: Shape, sizes: Shape, strides: Shape) -> tuple[Step, ...] | None:
    if len(shape) != 2 or len(sizes) != 1 or not shape[0] == shape[1] == sizes[0]:
        return None
    return (Diagonal(0, (0, 1)),) if strides[0] == shape[1] + 1 else None
