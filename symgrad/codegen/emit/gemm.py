"""Calls of the BLAS.

In: a product of the schedule, the rows it is wanted for.  Out: a statement.
"""

from __future__ import annotations

from collections.abc import Mapping

from symgrad.codegen.emit.accumulators import reduction_of
from symgrad.codegen.emit.context import EmitContext
from symgrad.codegen.emit.ctree import PRODUCT as TIGHT
from symgrad.codegen.emit.ctree import For, Line, Statement, expression_text, within
from symgrad.codegen.emit.nests import Nests
from symgrad.codegen.emit.spelling import literal
from symgrad.codegen.program.patterns import Contraction
from symgrad.codegen.schedule.contraction import Gemm, Matrix, Operand, address, plan_gemm
from symgrad.codegen.schedule.items import Item
from symgrad.ir.dim import Axis, Dim
from symgrad.ir.expr import Access, Expr

Ranges = Mapping[Axis, tuple[Dim, Dim]]


def multiply(nests: Nests, item: Item, ranges: Ranges) -> None:
    """Write the product for some of the values of one axis."""
    left, right = (_operand(nests, factor) for factor in item.operands)
    array, indices = nests.arrays[item]
    result = Operand(array.name, address(array.shape, array.place(indices)))
    gemm = plan_gemm(item.pattern(Contraction), left, right, result, dict(ranges))
    assert gemm is not None, "the arrays do not lie as was planned"
    if not gemm.fresh and not item.reduced:
        zero = reduction_of(item).start
        nests.fill(array, indices, item.target.axes, zero, ranges)
    nests.context.products.add(item.target.dtype)
    statement: Statement = Line(_call(nests.context, gemm, item))
    for axis in reversed(gemm.around):
        start, stop = (nests.context.dim(end) for end in ranges.get(axis, (Dim.of(0), axis.extent)))
        statement = For(nests.context.variable(axis), start, stop, (statement,))
    nests.scalars.add(statement)
    _note_limits(nests.context, gemm, ranges)
    if not item.reduced:
        nests.complete(item)


def _operand(nests: Nests, factor: Expr) -> Operand:
    """Where a factor lies."""
    found = nests.place_of(factor)
    if found is None:
        assert isinstance(factor, Access)
        found = nests.context.arrays[factor.tensor], factor.indices
    array, indices = found
    assert not any(array.strides)
    return Operand(array.name, address(array.shape, array.place(indices)))


def _call(context: EmitContext, gemm: Gemm, item: Item) -> str:
    dtype = item.target.dtype

    def number(dim: Dim) -> str:
        return expression_text(context.dim(dim))

    def operand(matrix: Matrix) -> str:
        return f"{_pointer(context, matrix)}, {number(matrix.leading)}"

    flags = ["TRANSPOSED" if m.transposed else "PLAIN" for m in (gemm.left, gemm.right)]
    sizes = ", ".join(number(size) for size in (gemm.rows, gemm.columns, gemm.summed))
    kept = expression_text(literal(0.0 if gemm.fresh else 1.0, dtype))
    return (
        f"gemm_{dtype.short}({', '.join(flags)}, {sizes}, {operand(gemm.left)}, "
        f"{operand(gemm.right)}, {kept}, {operand(gemm.result)});"
    )


def _pointer(context: EmitContext, matrix: Matrix) -> str:
    if matrix.start == 0:
        return matrix.array
    return f"{matrix.array} + {within(context.dim(matrix.start), TIGHT)}"


def _note_limits(context: EmitContext, gemm: Gemm, ranges: Ranges) -> None:
    """Every size must fit the integers of the BLAS, for all rows at once."""
    full = {}
    for axis, (start, stop) in ranges.items():
        for name, value in ((start, Dim.of(0)), (stop, axis.extent)):
            (atom,) = name.atoms
            full[atom] = value
    sizes = (gemm.rows, gemm.columns, gemm.summed)
    leading = (gemm.left.leading, gemm.right.leading, gemm.result.leading)
    for size in (*sizes, *leading):
        whole = size.substitute(full)
        if whole.constant is None:
            context.limits[whole] = None
