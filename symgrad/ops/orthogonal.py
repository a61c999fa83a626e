"""``A = Q R``: orthonormal columns times an upper triangle, over the last two axes.

In: nothing.  Out: records.

``orthogonal_factor(x)`` is Q, which has the shape of x, and ``triangular_factor(x)`` is R; x has no
more columns than rows.  The sign of each row of R is that of LAPACK, by Householder's reflections.

These have no body in index notation: the proof takes them as atoms, and no kernel is emitted.  They
have a derivative where the columns of x are linearly independent, but where a sign changes.
Derivatives: S. F. Walter and L. Lehmann, arXiv:1001.1654, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.errors import DTypeError, ShapeError
from symgrad.ir.graph import Node
from symgrad.ir.types import TensorType
from symgrad.ops import linalg_exact
from symgrad.ops.linalg import checked, matmul, transpose, triangle
from symgrad.ops.record import Array, SizeOf, apply, of_one, structural

FACTORS = ("orthogonal_factor", "triangular_factor")


def _rule(name: str, *, square: bool) -> Callable[..., TensorType]:
    def rule(args: Sequence[TensorType], attrs: Mapping[str, Any]) -> TensorType:
        (arg,) = args
        if arg.rank < 2:
            raise ShapeError(f"{name} takes matrices, not {arg}")
        if not arg.dtype.is_float:
            raise DTypeError(f"{name} does not take {arg.dtype}")
        rows = arg.shape[-1] if square else arg.shape[-2]
        return TensorType(arg.dtype, (*arg.shape[:-2], rows, arg.shape[-1]))

    return rule


def _part(place: int) -> Callable[..., Array]:
    def compute(array: Array, *, size: SizeOf) -> Array:
        qr = linalg_exact.qr if array.dtype == object else np.linalg.qr
        return checked(FACTORS[place], lambda one: qr(one)[place], array)

    return compute


def _both(node: Node) -> tuple[Node, Node]:
    """``Q`` and ``R`` of the same matrix."""
    factor, upper = (apply(name, node.args[0]) for name in FACTORS)
    return factor, upper


def _mirrored(x: Node) -> Node:
    """The symmetric matrix that has the lower triangle of x."""
    return triangle(x, "le") + transpose(triangle(x, "lt"))


def _over(x: Node, upper: Node) -> Node:
    """``x R⁻ᵀ``."""
    return transpose(apply("solve_triangular", upper, transpose(x), upper=True))


def _orthogonal_vjp(node: Node, g: Node) -> Sequence[Node]:
    factor, upper = _both(node)
    return (_over(g - matmul(factor, _mirrored(matmul(transpose(g), factor))), upper),)


def _triangular_vjp(node: Node, g: Node) -> Sequence[Node]:
    factor, upper = _both(node)
    inner = matmul(upper, transpose(triangle(g, "ge")))
    return (_over(matmul(factor, _mirrored(inner)), upper),)


def _turned(factor: Node, moved: Node) -> Node:
    """The upper triangle ``R' R⁻¹`` of ``moved = A' R⁻¹``."""
    inner = matmul(transpose(factor), moved)
    low = triangle(inner, "lt")
    return inner - low + transpose(low)


@of_one
def _orthogonal_tangent(node: Node, tangent: Node) -> Node:
    factor, upper = _both(node)
    moved = matmul(tangent, apply("inverse", upper))
    return moved - matmul(factor, _turned(factor, moved))


@of_one
def _triangular_tangent(node: Node, tangent: Node) -> Node:
    factor, upper = _both(node)
    moved = matmul(tangent, apply("inverse", upper))
    return matmul(_turned(factor, moved), upper)


structural(
    "orthogonal_factor", "linalg", rule=_rule("orthogonal_factor", square=False), numpy=_part(0),
    lower=None, vjp=_orthogonal_vjp, tangent=_orthogonal_tangent,
    program="np.linalg.qr({0})[0]", code="{sg}.linalg.qr({0})[0]",
)  # fmt: skip
structural(
    "triangular_factor", "linalg", rule=_rule("triangular_factor", square=True), numpy=_part(1),
    lower=None, vjp=_triangular_vjp, tangent=_triangular_tangent,
    program="np.linalg.qr({0})[1]", code="{sg}.linalg.qr({0})[1]",
)  # fmt: skip
