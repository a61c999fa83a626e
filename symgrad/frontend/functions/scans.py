"""Cumulative sums and products, triangles, diagonals.

In: tensors.  Out: tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symgrad.errors import ShapeError
from symgrad.frontend.caller import here
from symgrad.frontend.functions import movement
from symgrad.frontend.functions.movement import axis_of
from symgrad.frontend.functions.reductions import accumulated
from symgrad.frontend.lift import as_tensor, elementwise
from symgrad.frontend.session import current
from symgrad.frontend.table import operation
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.frontend.views import embed_diagonal, iota_along
from symgrad.ir.graph import Node

Tensor = SymbolicTensor


def _scan(op: str) -> Callable[..., Tensor]:
    def call(input: Any, dim: Any = None, *, dtype: Any = None) -> Tensor:
        def scanned(node: Node) -> Node:
            if not node.rank:
                return node
            place = axis_of(dim, node.rank)
            return current().apply(op, node, axis=place, reverse=False)

        return fresh(accumulated(as_tensor(input).node, dtype, scanned))

    call.__name__ = call.__qualname__ = op
    call.__doc__ = f"The op ``{op}`` along an axis."
    return call


cumsum = operation("cumsum", inplace=True)(_scan("cumsum"))
cumprod = operation("cumprod", inplace=True)(_scan("cumprod"))


def _triangle(input: Any, offset: Any, relation: str) -> Tensor:
    """The elements whose column and ``row + offset`` stand in ``relation``, 0 elsewhere."""
    source = as_tensor(input)
    if source.ndim < 2:
        raise ShapeError("tril and triu need a tensor with at least two axes", location=here())
    session, node = current(), source.node
    matrix = node.shape[-2:]
    rows, columns = (iota_along(session, matrix, axis) for axis in (0, 1))
    shifted = elementwise("add", fresh(rows), offset).node
    kept = session.expand(session.apply(relation, columns, shifted), node.shape)
    zeros = session.expand(session.constant(0, node.dtype), node.shape)
    return fresh(session.apply("where", kept, node, zeros))


@operation("tril", inplace=True)
def tril(input: Any, diagonal: Any = 0) -> Tensor:
    """The elements on and below a diagonal, 0 above."""
    return _triangle(input, diagonal, "le")


@operation("triu", inplace=True)
def triu(input: Any, diagonal: Any = 0) -> Tensor:
    """The elements on and above a diagonal, 0 below."""
    return _triangle(input, diagonal, "ge")


@operation("diag")
def diag(input: Any, diagonal: int = 0) -> Tensor:
    """A matrix with a vector on its diagonal; or the diagonal of a matrix (a copy)."""
    source = as_tensor(input)
    if source.ndim == 1:
        return diag_embed(source, diagonal)
    if source.ndim != 2:
        raise ShapeError("diag takes a vector or a matrix", location=here(), hint="use diagonal()")
    return fresh(movement.diagonal(source, diagonal).node)


@operation("diag_embed")
def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices with the last axis of a tensor on their diagonals."""
    source = as_tensor(input)
    rank = source.ndim + 1
    first, second = axis_of(dim1, rank), axis_of(dim2, rank)
    session, node = current(), source.node
    side = node.shape[-1] + abs(offset)
    shape = list(node.shape[:-1])
    for axis in sorted((first, second)):
        shape.insert(axis, side)
    whole = tuple(shape)
    spread = embed_diagonal(session, node, whole, offset, (first, second))
    row = fresh(iota_along(session, whole, first))
    column = iota_along(session, whole, second)
    on = session.apply("eq", column, elementwise("add", row, offset).node)
    zeros = session.expand(session.constant(0, node.dtype), whole)
    return fresh(session.apply("where", on, spread, zeros))
