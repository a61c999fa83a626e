"""Matrices: inverses, determinants, factors, solves; and the names of ``sg.linalg``.

In: tensors whose last two axes are matrices.  Out: tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from types import SimpleNamespace
from typing import Any, NamedTuple

from symgrad.errors import ShapeError, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.functions.joining import cat
from symgrad.frontend.functions.mathematics import absolute
from symgrad.frontend.functions.movement import axis_of, movedim, transpose
from symgrad.frontend.functions.products import cross, matmul
from symgrad.frontend.functions.reductions import amax, amin, norm, sum
from symgrad.frontend.functions.scans import tril
from symgrad.frontend.kinds import checked
from symgrad.frontend.lift import as_tensor, elementwise
from symgrad.frontend.questions import questions
from symgrad.frontend.session import current
from symgrad.frontend.symmetry import demand_symmetric
from symgrad.frontend.table import FUNCTIONS, OperationValueError, operation, public
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import int32
from symgrad.ir.graph import Node
from symgrad.ops.movement import transposed_axes
from symgrad.ops.orthogonal import FACTORS

Tensor = SymbolicTensor


@operation("inverse")
def inverse(input: Any) -> Tensor:
    """The inverse of each matrix; that of a transposed one is the transposed inverse."""
    source = as_tensor(input)
    node = source.node
    if node.op == "permute" and tuple(node.attributes["axes"]) == transposed_axes(node.rank):
        return transpose(fresh(current().apply("inverse", node.args[0])), -2, -1)
    return fresh(current().apply("inverse", node))


@operation("det")
def det(input: Any) -> Tensor:
    """The determinant of each matrix."""
    return fresh(current().apply("det", as_tensor(input).node))


@operation("logdet")
def logdet(input: Any) -> Tensor:
    """The logarithm of the determinant; NaN where that is negative."""
    return fresh(current().apply("logdet", as_tensor(input).node))


@operation("slogdet")
def slogdet(input: Any) -> tuple[Tensor, Tensor]:
    """The sign of the determinant, and the logarithm of its size."""
    found = det(input)
    return elementwise("sign", found), elementwise("log", elementwise("abs", found))


@operation("cholesky")
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The lower factor of symmetric positive definite matrices, or its transpose."""
    session, node = current(), as_tensor(input).node
    demand_symmetric(session, node, "cholesky")
    factor = fresh(session.apply("cholesky", node))
    return transpose(factor, -2, -1) if upper else factor


@operation("cholesky_solve")
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """``A⁻¹ B`` by the Cholesky factor of A."""
    lower = transpose(as_tensor(L), -2, -1) if upper else as_tensor(L)
    half = solve_triangular(lower, B, upper=False)
    return solve_triangular(transpose(lower, -2, -1), half, upper=True)


@operation("cholesky_inverse")
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of a matrix by its Cholesky factor, with columns one behind the other."""
    lower = tril(transpose(L, -2, -1) if upper else L)
    own = inverse(lower)
    return transpose(matmul(transpose(own, -2, -1), own), -2, -1)


@operation("solve_triangular", method=False)
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:  # fmt: skip
    """``A⁻¹ B``, reading one triangle of A (``B A⁻¹`` with ``left=False``)."""
    if unitriangular:
        raise UnsupportedOpError(
            "solve_triangular does not support unitriangular=True", location=here()
        )
    matrix, right = as_tensor(A), as_tensor(B)
    if not left:
        turned = solve_triangular(transpose(matrix, -2, -1), transpose(right, -2, -1),
                                  upper=not upper)  # fmt: skip
        return transpose(turned, -2, -1)
    node = current().apply("solve_triangular", matrix.node, right.node, upper=bool(upper))
    return fresh(node)


@operation("triangular_solve")
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The solution of a triangular system, and the matrix."""
    matrix = as_tensor(A)
    turned = matrix.mT if transpose else matrix
    found = solve_triangular(turned, b, upper=upper != transpose, unitriangular=unitriangular)
    return found, fresh(matrix.node)


@operation("solve", method=False)
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """``A⁻¹ B``; a vector is a column, and so is each of as many as there are matrices."""
    matrix, right = as_tensor(A), as_tensor(B)
    if not left:
        return matmul(right, inverse(matrix))
    if _is_vectors(matrix.node, right.node):
        found: Tensor = matmul(inverse(matrix), right.unsqueeze(-1)).squeeze(-1)
        return found
    return matmul(inverse(matrix), right)


def _is_vectors(matrix: Node, right: Node) -> bool:
    """Is it a vector, or one for each matrix, as torch decides?"""
    if right.rank == 1:
        return True
    pairs = zip(right.shape, matrix.shape[:-1], strict=False)
    return right.rank == matrix.rank - 1 and all(
        current().truth(one, "==", other) for one, other in pairs
    )


@operation("pinverse")
def pinverse(input: Any) -> Tensor:
    """``(AᵀA)⁻¹Aᵀ``, or ``Aᵀ(AAᵀ)⁻¹`` where there are more columns; of full rank."""
    source = as_tensor(input)
    turned = transpose(source, -2, -1)
    rows, columns = source.node.shape[-2:]
    if current().truth(rows, "==", columns):
        return inverse(source)
    if current().truth(rows, ">", columns):
        return matmul(inverse(matmul(turned, source)), turned)
    return matmul(turned, inverse(matmul(source, turned)))


def multi_dot(tensors: Any) -> Tensor:
    """The product of matrices; the first and the last one may be vectors."""
    found: Tensor = reduce(matmul, tensors)
    return found


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Solved:
    """``solve``, and 0 for each matrix: that all have an inverse is printed."""
    _ = check_errors
    return Solved(solve(A, B, left=left), _no_errors(A, "solve_ex", "invertible"))


@operation("matrix_power")
def matrix_power(input: Tensor, n: int) -> Tensor:
    """A matrix multiplied with itself."""
    source = as_tensor(input)
    if n < 0:
        return matrix_power(inverse(source), -n)
    if n == 0:
        raise UnsupportedOpError(
            "matrix_power of 0 is not supported", location=here(), hint="use eye"
        )
    half = source if n == 1 else matrix_power(source, n // 2)
    squared = half if n == 1 else matmul(half, half)
    return matmul(squared, source) if n > 1 and n % 2 else squared


class Factor(NamedTuple):
    """What ``torch.linalg.cholesky_ex`` returns."""

    L: Any
    info: Any


class Solved(NamedTuple):
    """What ``torch.linalg.solve_ex`` returns."""

    result: Any
    info: Any


class Inverse(NamedTuple):
    """What ``torch.linalg.inv_ex`` returns."""

    inverse: Any
    info: Any


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> Factor:
    """``cholesky``, and 0 for each matrix: that all are positive definite is printed.

    ``check_errors``: others raise, which makes no difference then.
    """
    _ = check_errors
    return Factor(cholesky(A, upper), _no_errors(A, "cholesky_ex", "positive definite"))


def inv_ex(A: Tensor, *, check_errors: bool = False) -> Inverse:
    """The inverse, and 0 for each matrix: that all have one is printed.

    ``check_errors``: others raise, which makes no difference then.
    """
    _ = check_errors
    return Inverse(inverse(A), _no_errors(A, "inv_ex", "invertible"))


def _no_errors(input: Any, name: str, kind: str) -> Tensor:
    """Zeros beside matrices of a kind; of others, the library goes on and returns a number."""
    known, session = questions(), current()
    if known is not None:
        known.assume(f"the matrices that {name} takes are {kind}", here())
    shape = as_tensor(input).node.shape[:-2]
    return fresh(session.expand(session.constant(0, int32), shape))


class Eigen(NamedTuple):
    """What ``eigh`` returns."""

    eigenvalues: Any
    eigenvectors: Any


class Singular(NamedTuple):
    """What ``torch.linalg.svd`` returns."""

    U: Any
    S: Any
    Vh: Any


class SingularTransposed(NamedTuple):
    """What ``torch.svd`` returns."""

    U: Any
    S: Any
    V: Any


@operation("eigh", method=False)
def eigh(A: Tensor, UPLO: str = "L") -> Eigen:
    """Eigenvalues and eigenvectors of symmetric matrices; of others, of the symmetric part."""
    node = _one_triangle(A, UPLO)
    found = (current().apply(name, node) for name in ("eigenvalues", "eigenvectors"))
    return Eigen(*map(fresh, found))


@operation("eigvalsh", method=False)
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Eigenvalues of symmetric matrices, in ascending order."""
    return fresh(current().apply("eigenvalues", _one_triangle(A, UPLO)))


def _one_triangle(A: Any, UPLO: str) -> Node:
    if UPLO not in ("L", "U"):
        raise OperationValueError(f"UPLO is 'L' or 'U', not {UPLO!r}", location=here())
    node = as_tensor(A).node
    demand_symmetric(current(), node, "eigh")
    return node


@operation("svd")
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> SingularTransposed:
    """``U``, ``S`` and ``V`` with ``x = U diag(S) Vᵀ``."""
    if not some or not compute_uv:
        raise _not_thin()
    return SingularTransposed(*_decomposed(input))


def linalg_svd(A: Tensor, full_matrices: bool = True) -> Singular:
    """``U``, ``S`` and ``Vᵀ`` with ``A = U diag(S) Vᵀ``; the full matrices of square ones alone."""
    rows, columns = as_tensor(A).node.shape[-2:]
    if full_matrices and not current().truth(rows, "==", columns):
        raise _not_thin()
    left, values, right = _decomposed(A)
    return Singular(left, values, transpose(right, -2, -1))


def svdvals(A: Tensor) -> Tensor:
    """The singular values, in descending order."""
    return _decomposed(A)[1]


def _decomposed(input: Any) -> tuple[Tensor, Tensor, Tensor]:
    node = as_tensor(input).node
    if node.rank < 2:
        raise ShapeError("svd takes matrices", location=here())
    rows, columns = node.shape[-2:]
    count = rows if current().truth(rows, "<=", columns) else columns
    left, values, right = (
        fresh(current().apply(name, node, count=count))
        for name in ("left_vectors", "singular_values", "right_vectors")
    )
    return left, values, right


def _not_thin() -> UnsupportedOpError:
    return UnsupportedOpError(
        "of the singular vectors, those that belong to a singular value are supported",
        location=here(), hint="torch.linalg.svd(x, full_matrices=False)",
    )  # fmt: skip


class Orthogonal(NamedTuple):
    """What ``qr`` returns."""

    Q: Any
    R: Any


@operation("qr")
def qr(input: Tensor, some: bool = True) -> Orthogonal:
    """Orthonormal columns Q and an upper triangle R with ``x = Q R``."""
    return linalg_qr(input, "reduced" if some else "complete")


def linalg_qr(A: Tensor, mode: str = "reduced") -> Orthogonal:
    """``Q`` and ``R`` with ``A = Q R``; of a matrix with more columns, by its first ones."""
    if mode not in ("reduced", "complete", "r"):
        raise OperationValueError(f"there is no mode {mode!r} of qr", location=here())
    source = as_tensor(A)
    if source.ndim < 2:
        raise ShapeError("qr takes matrices", location=here())
    rows, columns = source.node.shape[-2:]
    if current().truth(rows, "<", columns):
        first = qr(source[..., : source.shape[-2]])
        others = matmul(transpose(first.Q, -2, -1), source[..., source.shape[-2] :])
        factor, upper = first.Q, cat([first.R, others], -1)
    elif mode == "complete" and not current().truth(rows, "==", columns):
        raise UnsupportedOpError(
            "of the columns of Q, those that belong to a column of the matrix are supported",
            location=here(), hint="torch.linalg.qr(x)",
        )  # fmt: skip
    else:
        factor, upper = (fresh(current().apply(name, source.node)) for name in FACTORS)
    if mode == "r":
        session = current()
        factor = fresh(session.expand(session.constant(0.0, source.node.dtype), (Dim.of(0),)))
    return Orthogonal(factor, upper)


def vector_norm(
    x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:  # fmt: skip
    """The norm of all entries over ``dim`` (all axes by default)."""
    return norm(x, ord, dim, keepdim, dtype=dtype)


def matrix_norm(A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:
    """A norm of each matrix: of its entries, of its sums, or of its singular values."""
    if ord == "fro":
        return norm(A, 2, dim, keepdim)
    if ord not in ("nuc", 2, -2, 1, -1, math.inf, -math.inf):
        raise UnsupportedOpError(f"there is no matrix norm {ord!r}", location=here())
    source = as_tensor(A)
    rows, columns = (axis_of(axis, source.ndim) for axis in dim)
    whole = movedim(source, (rows, columns), (-2, -1))
    if ord == "nuc":
        found = sum(svdvals(whole), -1)
    else:
        sums = abs(ord) != 2
        values = sum(absolute(whole), -1 if abs(ord) > 2 else -2) if sums else svdvals(whole)
        found = (amax if ord > 0 else amin)(values, -1)
    for axis in sorted((rows, columns)) if keepdim else ():
        found = found.unsqueeze(axis)
    return found


def linalg_norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Tensor:
    """``torch.linalg.norm``: of vectors any order, of matrices those of ``matrix_norm``."""
    axes = as_tensor(A).ndim if dim is None else len(dim) if isinstance(dim, (tuple, list)) else 1
    if ord is None or axes == 1:
        return norm(A, 2 if ord is None else ord, dim, keepdim)
    if axes != 2:
        raise ShapeError("a norm of an order takes one axis or two", location=here())
    return matrix_norm(A, ord, dim if dim is not None else (-2, -1), keepdim)


def cond(A: Tensor, p: Any = None) -> Tensor:
    """How much greater the greatest singular value is than the least; by another norm if asked."""
    source = as_tensor(A)
    if p in (None, 2, -2):
        values = svdvals(source)
        ratio = amax(values, -1) / amin(values, -1)
        return 1 / ratio if p == -2 else ratio
    if p == "nuc" or source.node.shape[-2] != source.node.shape[-1]:
        raise UnsupportedOpError(f"there is no condition number by {p!r} here", location=here())
    found: Tensor = matrix_norm(source, p) * matrix_norm(inverse(source), p)
    return found


_LINALG: dict[str, Callable[..., Any]] = {
    "inv": inverse, "det": det, "slogdet": slogdet, "cholesky": cholesky, "solve": solve,
    "cross": partial(cross, dim=-1), "solve_triangular": solve_triangular,
    "matrix_power": matrix_power, "matmul": matmul, "vector_norm": vector_norm,
    "matrix_norm": matrix_norm, "norm": linalg_norm, "eigh": eigh, "eigvalsh": eigvalsh,
    "svd": linalg_svd, "svdvals": svdvals, "cholesky_ex": cholesky_ex, "inv_ex": inv_ex,
    "qr": linalg_qr, "pinv": pinverse, "multi_dot": multi_dot, "solve_ex": solve_ex,
    "cond": cond,
}  # fmt: skip
FUNCTIONS["linalg"] = SimpleNamespace(
    **{name: public(f"linalg.{name}", checked(call)) for name, call in _LINALG.items()}
)
