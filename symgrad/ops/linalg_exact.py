"""Linear algebra on arrays of Python numbers, by elimination: for rationals and high precision.

In: object arrays.  Out: object arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def inverse(matrices: Array) -> Array:
    """The inverse of each matrix.  Raises LinAlgError where there is none."""
    result = np.empty_like(matrices)
    identity = np.array(np.eye(matrices.shape[-1]), dtype=object)
    for at in _each(matrices):
        result[at], _ = _eliminate(matrices[at], identity)
    return result


def solve(matrices: Array, right: Array) -> Array:
    """``matrices⁻¹ · right``.  Raises LinAlgError where there is no inverse."""
    result = np.empty_like(right)
    for at in _each(matrices):
        result[at], _ = _eliminate(matrices[at], right[at])
    return result


def det(matrices: Array) -> Array:
    """The determinant of each matrix; 0 where it is singular."""
    result = np.empty(matrices.shape[:-2], dtype=object)
    for at in _each(matrices):
        try:
            _, result[at] = _eliminate(matrices[at], matrices[at][:, :0])
        except np.linalg.LinAlgError:
            result[at] = 0
    return result


def logdet(matrices: Array) -> Array:
    """The logarithm of each determinant, which must be positive."""
    return _map(lambda value: value.context.log(value) if value != 1 else value - 1, det(matrices))


def cholesky(matrices: Array) -> Array:
    """The lower factor of each matrix.  Raises LinAlgError where it is not positive definite."""
    result = np.zeros_like(matrices)
    for at in _each(matrices):
        matrix, factor = matrices[at], result[at]
        for i in range(len(matrix)):
            for j in range(i + 1):
                rest = matrix[i, j] - sum(factor[i, k] * factor[j, k] for k in range(j))
                if i == j and rest <= 0:
                    raise np.linalg.LinAlgError("the matrix is not positive definite")
                factor[i, j] = rest**0.5 if i == j else rest / factor[j, j]
    return result


def _each(matrices: Array) -> Iterator[tuple[int, ...]]:
    return iter(np.ndindex(matrices.shape[:-2]))


def _map(function: Callable[[Any], Any], array: Array) -> Array:
    return np.asarray(np.frompyfunc(function, 1, 1)(array), dtype=object)


def _eliminate(matrix: Array, right: Array) -> tuple[Array, Any]:
    """``matrix⁻¹ · right`` and the determinant, by Gauss and Jordan with row pivoting."""
    work = np.concatenate([matrix, right], axis=1)
    size, determinant = len(matrix), 1
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(work[row, column]))
        if work[pivot, column] == 0:
            raise np.linalg.LinAlgError("Singular matrix")
        if pivot != column:
            work[[pivot, column]] = work[[column, pivot]]
            determinant = -determinant
        determinant = determinant * work[column, column]
        work[column] = work[column] / work[column, column]
        for row in range(size):
            if row != column:
                work[row] = work[row] - work[row, column] * work[column]
    return work[:, size:], determinant
