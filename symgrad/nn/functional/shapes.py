"""From tensors of any rank to the matrices that Functions take, and back.

In: a function of matrices, a tensor.  Out: the tensor of its results.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from symgrad.nn.errors import ModuleIndexError

OnMatrix = Callable[[Any], Any]


def rows_of(input: Any) -> Any:
    """The tensor as a matrix whose rows run along its last axis."""
    if input.ndim == 2:
        return input
    return input.flatten(0, -2) if input.ndim > 2 else input.reshape(1, input.numel())


def on_rows(function: OnMatrix, input: Any, dim: int = -1) -> Any:
    """Apply a function that keeps the shape of a matrix to the rows along ``dim``."""
    rank = max(input.ndim, 1)
    if not -rank <= dim < rank:
        raise ModuleIndexError(
            f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got "
            f"{dim})"
        )
    if dim % rank != rank - 1:
        return on_rows(function, input.transpose(dim, -1)).transpose(dim, -1)
    if input.ndim == 2:
        return function(input)
    return function(rows_of(input)).reshape(input.shape)


def columns(function: OnMatrix, input: Any) -> Any:
    """Apply a function that keeps the shape of a matrix, axis 1 being that of its columns."""
    if input.ndim == 2:
        return function(input)
    moved = input.movedim(1, -1)
    return function(rows_of(moved)).reshape(moved.shape).movedim(-1, 1)


def places(input: Any) -> Any:
    """(examples, channels, the rest) as (examples, channels, places)."""
    if input.ndim == 3:
        return input
    return input.reshape(*input.shape[:2], math.prod(input.shape[2:]))
