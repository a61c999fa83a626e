"""Eigenvalues and eigenvectors of symmetric matrices, singular values and vectors.

In: nothing.  Out: records.

``eigenvalues(x)`` and ``eigenvectors(x)`` are those of the symmetric part of x, in ascending order,
one vector a column.  ``singular_values(x)``, ``left_vectors(x)`` and ``right_vectors(x)`` are those
of the thin decomposition ``x = U diag(S) Vᵀ``, in descending order, one vector a column; their
number is the attribute ``count``, the less of both sizes.  Of the two signs that a vector may have,
it has the one that makes its largest element positive (of ``V``; ``U`` follows).

These have no body in index notation: the proof takes them as atoms, and no kernel is emitted.  They
have a derivative where the values are distinct, and singular values not 0.  Derivatives: M. B.
Giles, An extended collection of matrix derivative results (2008).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.errors import DTypeError, ShapeError
from symgrad.ir.dim import Dim
from symgrad.ir.graph import Node
from symgrad.ir.types import TensorType
from symgrad.ops import linalg_exact
from symgrad.ops.linalg import checked, matmul, square_matrices, transpose
from symgrad.ops.movement import reshape
from symgrad.ops.record import Array, SizeOf, apply, choose, compare, of_one, structural

Attributes = Mapping[str, Any]
VECTORS = {"eigenvectors": "eigenvalues", "left_vectors": "singular_values",
           "right_vectors": "singular_values"}  # fmt: skip
"""The ops that give vectors, and the values of which they are."""
VALUES = ("eigenvalues", "singular_values")
_BATCH = "abcdefgh"


# -- graphs that the derivatives are made of


def _rows(values: Node, shape: Sequence[Dim]) -> Node:
    """Values as a matrix that has them in each row."""
    kept = (*values.shape[:-1], Dim.of(1), values.shape[-1])
    return values.graph.expand(reshape(values, kept), tuple(shape))


def _columns(values: Node, shape: Sequence[Dim]) -> Node:
    """Values as a matrix that has them in each column."""
    kept = (*values.shape, Dim.of(1))
    return values.graph.expand(reshape(values, kept), tuple(shape))


def _is_diagonal(matrix: Node) -> Node:
    """Where the row is the column."""
    graph, size = matrix.graph, matrix.shape[-1]
    across = graph.expand(graph.apply("iota", length=size), (size, size))
    down = graph.expand(reshape(graph.apply("iota", length=size), (size, Dim.of(1))), (size, size))
    return graph.expand(compare("eq", across, down), matrix.shape)


def _over_gaps(matrix: Node, values: Node) -> Node:
    """``matrix[i, j] / (values[j] - values[i])``, and 0 on the diagonal."""
    gaps = _rows(values, matrix.shape) - _columns(values, matrix.shape)
    own = _is_diagonal(matrix)
    quotients = apply("div", matrix, choose(own, 1.0, gaps))
    return choose(own, 0.0, quotients)


def _symmetric(matrix: Node) -> Node:
    return (matrix + transpose(matrix)) * 0.5


# -- eigenvalues and eigenvectors


def _eigen_rule(name: str, *, vectors: bool) -> Callable[..., TensorType]:
    def rule(args: Sequence[TensorType], attrs: Attributes) -> TensorType:
        square_matrices(name, args[0])
        return args[0] if vectors else TensorType(args[0].dtype, args[0].shape[:-1])

    return rule


def _eigh(array: Array) -> tuple[Array, Array]:
    symmetric = (array + np.swapaxes(array, -1, -2)) / 2
    if array.dtype == object:
        return linalg_exact.eigh(symmetric)
    values, vectors = np.linalg.eigh(symmetric)
    return values, signed(vectors)


def signed(vectors: Array) -> Array:
    """Columns whose largest elements are positive."""
    if not vectors.size:
        return vectors
    place = np.argmax(np.abs(vectors), axis=-2, keepdims=True)
    signs = np.where(np.take_along_axis(vectors, place, -2) < 0, -1, 1)
    found: Array = vectors * signs.astype(vectors.dtype)
    return found


def _eigenvalues_vjp(node: Node, g: Node) -> Sequence[Node]:
    vectors = apply("eigenvectors", node.args[0])
    return (matmul(vectors * _rows(g, vectors.shape), transpose(vectors)),)


@of_one
def _eigenvalues_tangent(node: Node, tangent: Node) -> Node:
    vectors = apply("eigenvectors", node.args[0])
    batch = _BATCH[: vectors.rank - 2]
    moved = matmul(_symmetric(tangent), vectors)
    return apply("einsum", vectors, moved, spec=f"{batch}ij,{batch}ij->{batch}j")


def _eigenvectors_vjp(node: Node, g: Node) -> Sequence[Node]:
    values = apply("eigenvalues", node.args[0])
    inner = _over_gaps(matmul(transpose(node), g), values)
    return (_symmetric(matmul(node, matmul(inner, transpose(node)))),)


@of_one
def _eigenvectors_tangent(node: Node, tangent: Node) -> Node:
    values = apply("eigenvalues", node.args[0])
    inner = matmul(transpose(node), matmul(_symmetric(tangent), node))
    return matmul(node, _over_gaps(inner, values))


structural(
    "eigenvalues", "linalg", rule=_eigen_rule("eigenvalues", vectors=False),
    numpy=lambda array, *, size: checked("eigenvalues", lambda one: _eigh(one)[0], array),
    lower=None, vjp=_eigenvalues_vjp, tangent=_eigenvalues_tangent,
    program="np.linalg.eigvalsh(({0} + np.swapaxes({0}, -1, -2)) / 2)",
    code="{sg}.linalg.eigvalsh({0})",
)  # fmt: skip
_PRELUDE = """
def signed(vectors):
    place = np.argmax(np.abs(vectors), axis=-2, keepdims=True)
    return vectors * np.where(np.take_along_axis(vectors, place, -2) < 0, -1, 1)
"""
structural(
    "eigenvectors", "linalg", rule=_eigen_rule("eigenvectors", vectors=True),
    numpy=lambda array, *, size: checked("eigenvectors", lambda one: _eigh(one)[1], array),
    lower=None, vjp=_eigenvectors_vjp, tangent=_eigenvectors_tangent, prelude=_PRELUDE,
    program="signed(np.linalg.eigh(({0} + np.swapaxes({0}, -1, -2)) / 2)[1])",
    code="{sg}.linalg.eigh({0})[1]",
)  # fmt: skip


# -- singular values and vectors


def _singular_rule(name: str, side: int | None) -> Callable[..., TensorType]:
    """``side``: the axis whose size vectors have; None for values."""

    def rule(args: Sequence[TensorType], attrs: Attributes) -> TensorType:
        (arg,), count = args, attrs["count"]
        if arg.rank < 2:
            raise ShapeError(f"{name} takes matrices, not {arg}")
        if not arg.dtype.is_float:
            raise DTypeError(f"{name} does not take {arg.dtype}")
        if count not in arg.shape[-2:]:
            raise ShapeError(f"{name}: {arg} has no {count} singular values")
        sizes = () if side is None else (arg.shape[side],)
        return TensorType(arg.dtype, (*arg.shape[:-2], *sizes, Dim.of(count)))

    return rule


def _svd(array: Array) -> tuple[Array, Array, Array]:
    if array.dtype == object:
        return linalg_exact.svd(array)
    left, values, right = np.linalg.svd(array, full_matrices=False)
    turned = np.swapaxes(right, -1, -2)
    kept = signed(turned)
    with np.errstate(all="ignore"):
        signs = np.sign(np.sum(turned * kept, axis=-2, keepdims=True))
    return left * signs, values, kept


def _part(name: str, place: int) -> Callable[..., Array]:
    def compute(array: Array, *, size: SizeOf, count: Any) -> Array:
        return checked(name, lambda one: _svd(one)[place], array)

    return compute


def _triple(node: Node) -> tuple[Node, Node, Node]:
    """``U``, ``S`` and ``V`` of the same matrix."""
    matrix, count = node.args[0], node.attributes["count"]
    found = (apply(name, matrix, count=count) for name in
             ("left_vectors", "singular_values", "right_vectors"))  # fmt: skip
    left, values, right = found
    return left, values, right


def _outside(vectors: Node, matrix: Node) -> Node:
    """What a matrix has beside the space of the vectors."""
    return matrix - matmul(vectors, matmul(transpose(vectors), matrix))


def _scaled(matrix: Node, values: Node) -> Node:
    """Each column times its value."""
    return matrix * _rows(values, matrix.shape)


def _divided(matrix: Node, values: Node) -> Node:
    """Each column over its value."""
    return apply("div", matrix, _rows(values, matrix.shape))


def _values_vjp(node: Node, g: Node) -> Sequence[Node]:
    left, _, right = _triple(node)
    return (matmul(_scaled(left, g), transpose(right)),)


@of_one
def _values_tangent(node: Node, tangent: Node) -> Node:
    left, _, right = _triple(node)
    batch = _BATCH[: left.rank - 2]
    return apply("einsum", left, matmul(tangent, right), spec=f"{batch}ij,{batch}ij->{batch}j")


def _left_vjp(node: Node, g: Node) -> Sequence[Node]:
    left, values, right = _triple(node)
    inner = _over_gaps(matmul(transpose(left), g), values * values)
    whole = matmul(left, _scaled(inner + transpose(inner), values))
    return (matmul(whole + _divided(_outside(left, g), values), transpose(right)),)


@of_one
def _left_tangent(node: Node, tangent: Node) -> Node:
    left, values, right = _triple(node)
    along = matmul(tangent, right)
    inner = matmul(transpose(left), along)
    mixed = _scaled(inner, values) + transpose(_scaled(inner, values))
    rotated = matmul(left, _over_gaps(mixed, values * values))
    return rotated + _divided(_outside(left, along), values)


def _right_vjp(node: Node, g: Node) -> Sequence[Node]:
    left, values, right = _triple(node)
    inner = _over_gaps(matmul(transpose(right), g), values * values)
    whole = matmul(right, _scaled(inner + transpose(inner), values))
    return (matmul(left, transpose(whole + _divided(_outside(right, g), values))),)


@of_one
def _right_tangent(node: Node, tangent: Node) -> Node:
    left, values, right = _triple(node)
    along = matmul(transpose(tangent), left)
    inner = matmul(transpose(right), along)
    mixed = _scaled(inner, values) + transpose(_scaled(inner, values))
    rotated = matmul(right, _over_gaps(mixed, values * values))
    return rotated + _divided(_outside(right, along), values)


_SIGNED = """
def signed_svd(matrix):
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    right = np.swapaxes(right, -1, -2)
    place = np.argmax(np.abs(right), axis=-2, keepdims=True)
    signs = np.where(np.take_along_axis(right, place, -2) < 0, -1, 1)
    return left * signs, values, right * signs
"""
structural(
    "singular_values", "linalg", rule=_singular_rule("singular_values", None),
    numpy=_part("singular_values", 1), lower=None, vjp=_values_vjp, tangent=_values_tangent,
    program="np.linalg.svd({0}, compute_uv=False)", code="{sg}.linalg.svdvals({0})",
)  # fmt: skip
structural(
    "left_vectors", "linalg", rule=_singular_rule("left_vectors", -2), prelude=_SIGNED,
    numpy=_part("left_vectors", 0), lower=None, vjp=_left_vjp, tangent=_left_tangent,
    program="signed_svd({0})[0]", code="{sg}.linalg.svd({0}, full_matrices=False)[0]",
)  # fmt: skip
structural(
    "right_vectors", "linalg", rule=_singular_rule("right_vectors", -1), prelude=_SIGNED,
    numpy=_part("right_vectors", 2), lower=None, vjp=_right_vjp, tangent=_right_tangent,
    program="signed_svd({0})[2]", code="{sg}.linalg.svd({0}, full_matrices=False)[2].mT",
)  # fmt: skip
