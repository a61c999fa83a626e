"""Eigenvalues and singular values, with their vectors, enclosed with their derivatives.

In: matrices of ``Jet`` elements.  Out: the same; ``Uncertain`` where values are not apart.

FLINT encloses the eigenvalues and eigenvectors of a matrix of balls.  Their derivatives along the
line are those of first-order perturbation: ``vᵢᵀ A' vᵢ``, and ``vⱼᵀ A' vᵢ / (λᵢ - λⱼ)`` along vⱼ.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from symgrad.proof.oracle import balls
from symgrad.proof.oracle.balls import ONE, ZERO, Jet, Uncertain
from symgrad.proof.oracle.flint import acb, acb_mat

Array = np.ndarray[Any, Any]


def eigen(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues in ascending order, and vectors as columns, of a symmetric matrix."""
    values, vectors = _enclosed(matrix)
    if all(one.d is None for one in matrix.flat):
        return values, vectors
    moved = np.frompyfunc(lambda one: Jet(ZERO if one.d is None else one.d), 1, 1)(matrix)
    inner = vectors.T @ moved @ vectors
    size = len(values)
    turned = np.empty((size, size), dtype=object)
    for i, j in np.ndindex(size, size):
        turned[i, j] = Jet(ZERO) if i == j else inner[i, j] / (values[j] - values[i])
    changes = vectors @ turned
    found = [Jet(value.v, inner[i, i].v) for i, value in enumerate(values)]
    join = np.frompyfunc(lambda one, change: Jet(one.v, change.v), 2, 1)
    return np.asarray(found, dtype=object), join(vectors, changes)


def singular(matrix: Array) -> tuple[Array, Array, Array]:
    """``U``, ``S`` and ``V`` of the thin decomposition, the values in descending order."""
    tall = len(matrix) >= matrix.shape[1]
    squares, own = eigen(matrix.T @ matrix if tall else matrix @ matrix.T)
    values = np.asarray([_root(one) for one in squares[::-1]], dtype=object)
    own = own[:, ::-1]
    other = (matrix @ own if tall else matrix.T @ own) / values
    left, right = (other, own) if tall else (own, other)
    signs = np.asarray([Jet(ONE if _largest(one) > 0 else -ONE) for one in right.T], dtype=object)
    return left * signs, values, right * signs


def _root(square: Jet) -> Jet:
    if balls.sign(square.v) <= 0:
        raise Uncertain("a singular value that may be 0")
    root = balls.sqrt(square.v)
    half = balls.inverse(balls.add(root, root))
    return Jet(root, None if square.d is None else balls.mul(half, square.d))


def _largest(vector: Array) -> int:
    """The sign of the largest element."""
    return balls.sign(max((one.v for one in vector), key=_size))


def _size(x: Any) -> float:
    return abs(float(balls.ball(x).mid()))


def _enclosed(matrix: Array) -> tuple[Array, Array]:
    """The values and vectors themselves.  Raises Uncertain."""
    if any(balls.is_special(one.v) for one in matrix.flat):
        raise Uncertain("the eigenvalues of what is not finite")
    size = len(matrix)
    given = acb_mat([[acb(balls.ball(one.v)) for one in row] for row in matrix])
    try:
        values, right = given.eig(right=True)
    except ValueError as error:
        raise Uncertain("eigenvalues that may be equal") from error
    order = sorted(range(size), key=lambda place: float(values[place].real.mid()))
    found = [values[place].real for place in order]
    if any(not (left < other) for left, other in itertools.pairwise(found)):
        raise Uncertain("eigenvalues that may be equal")
    vectors = np.empty((size, size), dtype=object)
    for column, place in enumerate(order):
        vectors[:, column] = _unit([right[row, place] for row in range(size)])
    return np.asarray([Jet(value) for value in found], dtype=object), vectors


def _unit(vector: list[Any]) -> list[Jet]:
    """The real unit vector that a complex multiple of it is."""
    largest = max(vector, key=lambda one: abs(complex(one.mid())))
    real = [(one / largest).real for one in vector]
    length = balls.sqrt(sum((one * one for one in real[1:]), real[0] * real[0]))
    found = [one / length for one in real]
    if not all(one.is_finite() for one in found):
        raise Uncertain("an eigenvector that is not known")
    return [Jet(one) for one in found]
