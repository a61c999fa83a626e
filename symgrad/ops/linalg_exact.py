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
    """The determinant of each matrix; a 0 of its own numbers where it is singular."""
    result = np.empty(matrices.shape[:-2], dtype=object)
    for at in _each(matrices):
        try:
            _, result[at] = _eliminate(matrices[at], matrices[at][:, :0])
        except np.linalg.LinAlgError:
            result[at] = 0 * matrices[at][0, 0]
    return result


def logdet(matrices: Array) -> Array:
    """The logarithm of each determinant: -∞ of 0, complex where it is negative."""
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


def qr(matrices: Array) -> tuple[Array, Array]:
    """Q and R of matrices with no more columns than rows.  LinAlgError where signs change."""
    size = matrices.shape[-1]
    factors, uppers = np.empty_like(matrices), np.empty_like(matrices[..., :size, :])
    for at in _each(matrices):
        found = householder(matrices[at], lambda one: one**0.5, lambda one: (one > 0) - (one < 0))
        if found is None:
            raise np.linalg.LinAlgError("the factors jump at the matrix")
        factors[at], uppers[at] = found
    return factors, uppers


def householder(
    matrix: Array, root: Callable[[Any], Any], sign: Callable[[Any], int]
) -> tuple[Array, Array] | None:  # fmt: skip
    """Q and R with the signs that LAPACK gives them; None where one of these is about to change.

    A column is reflected onto the first axis, away from its first element, unless that is alone.
    """
    rows, size = matrix.shape
    upper, factor = matrix.copy(), 0 * matrix.sum() + np.eye(rows, dtype=np.int64).astype(object)
    for place in range(min(size, rows - 1)):
        normal = upper[place:, place].copy()
        first, below = sign(normal[0]), (normal[1:] * normal[1:]).sum()
        if first == 0 or sign(below) <= 0:
            return None
        normal[0] = normal[0] + first * root(normal[0] * normal[0] + below)
        twice = 2 * normal / (normal * normal).sum()
        upper[place:] = upper[place:] - np.outer(twice, normal @ upper[place:])
        factor[:, place:] = factor[:, place:] - np.outer(factor[:, place:] @ normal, twice)
    below_diagonal = np.tri(size, k=-1, dtype=bool)
    return factor[:, :size], np.where(below_diagonal, 0 * matrix[:size], upper[:size])


def eigh(matrices: Array) -> tuple[Array, Array]:
    """Eigenvalues in ascending order, and eigenvectors as columns, of symmetric matrices."""
    values, vectors = np.empty(matrices.shape[:-1], dtype=object), np.empty_like(matrices)
    for at in _each(matrices):
        values[at], vectors[at] = _jacobi(matrices[at])
    return values, vectors


def svd(matrices: Array) -> tuple[Array, Array, Array]:
    """``U``, ``S``, ``V`` of the thin decomposition, by the eigenvalues of ``AᵀA`` or ``AAᵀ``."""
    *batch, rows, columns = matrices.shape
    count = min(rows, columns)
    left = np.empty((*batch, rows, count), dtype=object)
    values = np.empty((*batch, count), dtype=object)
    right = np.empty((*batch, columns, count), dtype=object)
    for at in _each(matrices):
        left[at], values[at], right[at] = _thin(matrices[at])
    return left, values, right


def _thin(matrix: Array) -> tuple[Array, Array, Array]:
    tall = len(matrix) >= matrix.shape[1]
    squares, own = _jacobi(matrix.T @ matrix if tall else matrix @ matrix.T)
    squares, own = squares[::-1], own[:, ::-1]
    if any(square <= 0 for square in squares):
        raise np.linalg.LinAlgError("a singular value is 0")
    values = np.asarray([square**0.5 for square in squares], dtype=object)
    other = (matrix @ own if tall else matrix.T @ own) / values
    left, right = (other, own) if tall else (own, other)
    signs = np.asarray(_signs(right), dtype=object)
    return left * signs, values, right * signs


def _signs(vectors: Array) -> list[int]:
    """The sign of the largest element of each column."""
    largest = (max(column, key=abs) for column in vectors.T)
    return [-1 if one < 0 else 1 for one in largest]


_SWEEPS = 60
"""Sweeps of Jacobi's method at most; it converges quadratically."""


def _jacobi(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues and vectors of a symmetric matrix, by rotations in each plane in turn."""
    size, work = len(matrix), matrix.copy()
    vectors = np.array(np.eye(size, dtype=np.int64), dtype=object) + 0 * matrix
    for _ in range(_SWEEPS):
        turned = False
        for i in range(size):
            for j in range(i + 1, size):
                turned |= _rotated(work, vectors, i, j)
        if not turned:
            break
    values = [work[i, i] for i in range(size)]
    order = sorted(range(size), key=values.__getitem__)
    vectors = vectors[:, order]
    signs = np.asarray(_signs(vectors), dtype=object) if size else 1
    return np.asarray([values[i] for i in order], dtype=object), vectors * signs


def _rotated(work: Array, vectors: Array, i: int, j: int) -> bool:
    """Turn in one plane so that the element there vanishes; False where it counts for nothing."""
    off, whole = work[i, j], abs(work[i, i]) + abs(work[j, j])
    if off == 0 or (whole != 0 and whole + abs(off) == whole):
        work[i, j] = work[j, i] = 0 * off
        return False
    slope = (work[j, j] - work[i, i]) / (2 * off)
    root = (slope * slope + 1) ** 0.5
    tangent = 1 / (slope + root) if slope >= 0 else 1 / (slope - root)
    cosine = 1 / (tangent * tangent + 1) ** 0.5
    sine = tangent * cosine
    for matrix in (work, vectors):
        first, second = matrix[:, i].copy(), matrix[:, j].copy()
        matrix[:, i], matrix[:, j] = _turned(first, second, cosine, sine)
    first, second = work[i].copy(), work[j].copy()
    work[i], work[j] = _turned(first, second, cosine, sine)
    return True


def _turned(first: Array, second: Array, cosine: Any, sine: Any) -> tuple[Array, Array]:
    """Two rows in a plane, turned.  Arrays come first: mpmath prints what it cannot convert."""
    return first * cosine - second * sine, first * sine + second * cosine


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
                work[row] = work[row] - work[column] * work[row, column]
    return work[:, size:], determinant
