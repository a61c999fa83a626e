"""Matrices: inverse, determinant, Cholesky factor, triangular solve; over the last two axes.

In: nothing.  Out: records.

These have no body in index notation: the proof takes them as atoms, and no kernel is emitted.
``cholesky(x)`` is the lower factor of the symmetric part of x; ``solve_triangular(a, b, upper)``
is ``a⁻¹·b``, reading one triangle of a; ``logdet`` is NaN where the determinant is negative.
KernelArgumentError where a matrix is singular, or not positive definite.

Derivatives: M. B. Giles, An extended collection of matrix derivative results (2008), and for the
Cholesky factor I. Murray, arXiv:1602.07527, equation 10.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.errors import DTypeError, KernelArgumentError, ShapeError
from symgrad.ir.dim import Dim
from symgrad.ir.graph import Node
from symgrad.ir.types import TensorType
from symgrad.ops import linalg_exact
from symgrad.ops.movement import reshape, transposed_axes
from symgrad.ops.record import (
    Array,
    Infer,
    SizeOf,
    apply,
    choose,
    compare,
    of_one,
    structural,
)

Attributes = Mapping[str, Any]
_BATCH = "abcdefgh"


# -- graphs that the derivatives are made of


def matmul(left: Node, right: Node) -> Node:
    """The product over the last two axes of two tensors with the same leading axes."""
    batch = _BATCH[: left.rank - 2]
    return apply("einsum", left, right, spec=f"{batch}ij,{batch}jk->{batch}ik")


def transpose(x: Node) -> Node:
    """The last two axes exchanged."""
    return apply("permute", x, axes=transposed_axes(x.rank))


def triangle(x: Node, relation: str, otherwise: float = 0.0) -> Node:
    """The elements with ``column <relation> row``; others are multiplied by ``otherwise``."""
    rows, columns = x.shape[-2:]
    graph = x.graph
    row = reshape(graph.apply("iota", length=rows), (rows, Dim.of(1)))
    on = compare(
        relation,
        graph.expand(graph.apply("iota", length=columns), (rows, columns)),
        graph.expand(row, (rows, columns)),
    )
    return choose(graph.expand(on, x.shape), x, x * otherwise if otherwise else 0.0)


def _times(scale: Node, matrix: Node) -> Node:
    """Each matrix times its number."""
    kept = (*scale.shape, Dim.of(1), Dim.of(1))
    return matrix.graph.expand(reshape(scale, kept), matrix.shape) * matrix


def _trace_of_product(left: Node, right: Node) -> Node:
    batch = _BATCH[: left.rank - 2]
    return apply("einsum", left, right, spec=f"{batch}ij,{batch}ji->{batch}")


# -- shapes and errors


def square_matrices(name: str, arg: TensorType) -> None:
    """Raises ShapeError or DTypeError for what are no square matrices of reals."""
    if arg.rank < 2 or arg.shape[-1] != arg.shape[-2]:
        sides = zip(arg.shape[-2:-1], arg.shape[-1:], strict=False)
        raise ShapeError(f"{name} takes square matrices, not {arg}", equal=sides)
    if not arg.dtype.is_float:
        raise DTypeError(f"{name} does not take {arg.dtype}")


def _rule(name: str, *, number: bool = False) -> Infer:
    """A matrix for each matrix, or a number."""

    def rule(args: Sequence[TensorType], attrs: Attributes) -> TensorType:
        square_matrices(name, args[0])
        return TensorType(args[0].dtype, args[0].shape[:-2]) if number else args[0]

    return rule


def checked(name: str, function: Callable[..., Any], *arrays: Array) -> Array:
    """A function; that of the same name for arrays of Python numbers, if there is one."""
    if arrays[0].dtype == object:
        function = getattr(linalg_exact, _EXACT.get(name, name), function)
    try:
        return np.asarray(function(*arrays))
    except np.linalg.LinAlgError as error:
        raise KernelArgumentError(f"{name}: {error}") from None


_EXACT = {"solve_triangular": "solve"}


# -- inverse


def _inverse_vjp(node: Node, g: Node) -> Sequence[Node]:
    back = transpose(node)
    return (-matmul(back, matmul(g, back)),)


@of_one
def _inverse_tangent(node: Node, tangent: Node) -> Node:
    return -matmul(node, matmul(tangent, node))


structural(
    "inverse", "linalg", rule=_rule("inverse"),
    numpy=lambda array, *, size: checked("inverse", np.linalg.inv, array),
    lower=None, vjp=_inverse_vjp, tangent=_inverse_tangent, program="np.linalg.inv({0})",
    code="{0}.inverse()",
)  # fmt: skip


# -- determinants


def _det_vjp(node: Node, g: Node) -> Sequence[Node]:
    return (_times(g * node, transpose(apply("inverse", node.args[0]))),)


@of_one
def _det_tangent(node: Node, tangent: Node) -> Node:
    return node * _trace_of_product(apply("inverse", node.args[0]), tangent)


def _logdet(array: Array) -> Array:
    sign, value = np.linalg.slogdet(array)
    return np.where(sign < 0, np.nan, value).astype(array.dtype)


def _logdet_vjp(node: Node, g: Node) -> Sequence[Node]:
    return (_times(g, transpose(apply("inverse", node.args[0]))),)


@of_one
def _logdet_tangent(node: Node, tangent: Node) -> Node:
    return _trace_of_product(apply("inverse", node.args[0]), tangent)


structural(
    "det", "linalg", rule=_rule("det", number=True),
    numpy=lambda array, *, size: checked("det", np.linalg.det, array),
    lower=None, vjp=_det_vjp, tangent=_det_tangent, program="np.linalg.det({0})", code="{0}.det()",
)  # fmt: skip
structural(
    "logdet", "linalg", rule=_rule("logdet", number=True),
    numpy=lambda array, *, size: checked("logdet", _logdet, array), lower=None,
    vjp=_logdet_vjp, tangent=_logdet_tangent, program="np.log(np.linalg.det({0}))",
    code="{0}.logdet()",
)  # fmt: skip


# -- cholesky


def _lower_half(x: Node) -> Node:
    """The lower triangle with half of the diagonal."""
    return triangle(triangle(x, "lt", 0.5), "le")


def _cholesky(array: Array, *, size: SizeOf) -> Array:
    symmetric = (array + np.swapaxes(array, -1, -2)) / 2
    return checked("cholesky", np.linalg.cholesky, symmetric)


def _cholesky_vjp(node: Node, g: Node) -> Sequence[Node]:
    inner = _lower_half(matmul(transpose(node), g))
    left = apply("solve_triangular", transpose(node), inner, upper=True)
    both = transpose(apply("solve_triangular", transpose(node), transpose(left), upper=True))
    return ((both + transpose(both)) * 0.5,)


@of_one
def _cholesky_tangent(node: Node, tangent: Node) -> Node:
    symmetric = (tangent + transpose(tangent)) * 0.5
    inverse = apply("inverse", node)
    both = matmul(inverse, matmul(symmetric, transpose(inverse)))
    return matmul(node, _lower_half(both))


structural(
    "cholesky", "linalg", rule=_rule("cholesky"), numpy=_cholesky, lower=None,
    vjp=_cholesky_vjp, tangent=_cholesky_tangent,
    program="np.linalg.cholesky(({0} + np.swapaxes({0}, -1, -2)) / 2)",
    code="{sg}.linalg.cholesky({0})",
)  # fmt: skip


# -- solve_triangular


def _solve_rule(args: Sequence[TensorType], attrs: Attributes) -> TensorType:
    matrix, right = args
    square_matrices("solve_triangular", matrix)
    if right.dtype != matrix.dtype:
        raise DTypeError(f"solve_triangular takes one dtype, not {matrix} and {right}")
    if right.rank != matrix.rank or right.shape[:-1] != matrix.shape[:-1]:
        pairs = zip(right.shape[:-1], matrix.shape[:-1], strict=False)
        raise ShapeError(f"solve_triangular: {right} does not fit {matrix}", equal=pairs)
    return right


def _solve(matrix: Array, right: Array, *, size: SizeOf, upper: bool) -> Array:
    part = np.triu(matrix) if upper else np.tril(matrix)
    return checked("solve_triangular", np.linalg.solve, part, right)


def _part(x: Node, upper: bool) -> Node:
    return triangle(x, "ge" if upper else "le")


def _solve_vjp(node: Node, g: Node) -> Sequence[Node]:
    upper = node.attributes["upper"]
    back = apply("solve_triangular", transpose(node.args[0]), g, upper=not upper)
    return -_part(matmul(back, transpose(node)), upper), back


def _solve_tangent(node: Node, tangents: Sequence[Node | None]) -> Node | None:
    by_matrix, change = tangents
    if by_matrix is not None:
        moved = matmul(_part(by_matrix, node.attributes["upper"]), node)
        change = -moved if change is None else change - moved
    if change is None:
        return None
    return apply("solve_triangular", node.args[0], change, upper=node.attributes["upper"])


structural(
    "solve_triangular", "linalg", rule=_solve_rule, numpy=_solve, lower=None, vjp=_solve_vjp,
    arity=2, linear=(1,), tangent=_solve_tangent,
    code="{sg}.linalg.solve_triangular({0}, {1}, upper={upper})",
    program=lambda a, b, *, upper, **_: f"np.linalg.solve(np.tri{'u' if upper else 'l'}({a}), {b})",
)  # fmt: skip
