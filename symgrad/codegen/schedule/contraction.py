"""Products of matrices for a BLAS: which contractions are some, and how each is called.

In: contractions, the arrays of their operands.  Out: ``Call`` records: loops around one ``gemm``.

Axes of one role whose elements lie at equal distances are one dimension of the matrix; those that
are left are looped over.  Transposition is a flag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symgrad.codegen.program.patterns import Contraction
from symgrad.ir.dim import Atom, Axis, Dim, Size, product

_SMALL = 8  # products whose sizes are all known to be less are as well done by loops


@dataclass(frozen=True)
class Operand:
    """An array in memory: its name, and the place of an element as a function of axes."""

    array: str
    address: Dim

    def stride(self, axis: Axis) -> Dim | None:
        """The distance between neighbours along ``axis``; None where it is not constant."""
        step = self.address.substitute({axis: Dim.of(axis) + 1}) - self.address
        plain = all(isinstance(atom, Size) for atom in step.atoms)
        return step if plain else None


@dataclass(frozen=True)
class Matrix:
    """An operand of the call: where it begins, its leading dimension, is it transposed?"""

    array: str
    start: Dim
    leading: Dim
    transposed: bool


@dataclass(frozen=True)
class Gemm:
    """``result += left * right`` (or ``=`` where ``fresh``), inside of loops over ``around``."""

    around: tuple[Axis, ...]
    rows: Dim
    columns: Dim
    summed: Dim
    left: Matrix
    right: Matrix
    result: Matrix
    fresh: bool


def address(shape: Sequence[Dim], indices: Sequence[Dim]) -> Dim:
    """The place of an element of a contiguous array."""
    total = Dim.of(0)
    for size, index in zip(shape, indices, strict=True):
        total = total * size + index
    return total


def is_small(contraction: Contraction) -> bool:
    """Are all of its sizes known, and so small that loops do as well?"""
    axes = (*contraction.rows, *contraction.columns, *contraction.summed)
    sizes = [axis.extent.constant for axis in axes]
    return all(size is not None and size < _SMALL for size in sizes)


def plan_gemm(
    contraction: Contraction,
    left: Operand,
    right: Operand,
    result: Operand,
    ranges: dict[Axis, tuple[Dim, Dim]],
) -> Gemm | None:
    """The call; ``ranges``: axes of which only a part is done, from one value up to another.

    None where the arrays do not lie as a BLAS wants them.
    """
    rows, columns = contraction.rows, contraction.columns
    if any(result.stride(axis) == 1 for axis in rows):
        left, right, rows, columns = right, left, columns, rows
    first = next(iter(ranges), None)
    chosen_columns = _chain(columns, (result, right), first)
    chosen_rows = _chain(rows, (result, left), first)
    chosen_summed = _chain(contraction.summed, (left, right), first)
    if not chosen_rows or not chosen_columns or not chosen_summed:
        return None
    inside = (*chosen_rows, *chosen_columns, *chosen_summed)
    every = (*contraction.batch, *rows, *columns, *contraction.summed)
    around = tuple(axis for axis in every if axis not in inside)
    starts: dict[Atom, Dim] = {axis: ranges.get(axis, (Dim.of(0),))[0] for axis in inside}
    sizes = [_count(axes, ranges) for axes in (chosen_rows, chosen_columns, chosen_summed)]
    row, column, summed = (
        (axes[-1], product([axis.extent for axis in axes]))
        for axes in (chosen_rows, chosen_columns, chosen_summed)
    )
    matrices = [
        _matrix(left, row, summed, starts),
        _matrix(right, summed, column, starts),
        _matrix(result, row, column, starts),
    ]
    found = [matrix for matrix in matrices if matrix is not None]
    if len(found) < len(matrices) or found[2].transposed:
        return None
    fresh = not {*around, first} & set(contraction.summed)
    return Gemm(around, sizes[0], sizes[1], sizes[2], found[0], found[1], found[2], fresh)


def _count(axes: Sequence[Axis], ranges: dict[Axis, tuple[Dim, Dim]]) -> Dim:
    parts = []
    for axis in axes:
        start, stop = ranges.get(axis, (Dim.of(0), axis.extent))
        parts.append(stop - start)
    return product(parts)


def _chain(axes: Sequence[Axis], operands: Sequence[Operand], first: Axis | None) -> list[Axis]:
    """Axes that make one dimension together, outermost first; ``first`` can only be outermost."""
    if not axes:
        return []
    chain = [_innermost(axes, operands)]
    while True:
        found = [axis for axis in axes if axis not in chain and _joins(axis, chain[0], operands)]
        if not found or chain[0] == first:
            break
        chain.insert(0, found[0])
    if first in axes and first not in chain:
        return [axis for axis in axes if axis == first]
    return chain


def _innermost(axes: Sequence[Axis], operands: Sequence[Operand]) -> Axis:
    """The axis whose elements lie next to each other, in the first operand where one does."""
    for operand in operands:
        for axis in axes:
            if operand.stride(axis) == 1:
                return axis
    return axes[-1]


def _joins(outer: Axis, inner: Axis, operands: Sequence[Operand]) -> bool:
    for operand in operands:
        near, far = operand.stride(inner), operand.stride(outer)
        if near is None or far is None or far != near * inner.extent:
            return False
    return True


def _matrix(
    operand: Operand, rows: tuple[Axis, Dim], columns: tuple[Axis, Dim], starts: dict[Atom, Dim]
) -> Matrix | None:
    """The operand with ``rows`` down and ``columns`` across, each an axis and how many there are.

    A BLAS reads no matrix backwards, and none whose lines overlap, as windows do.
    """
    down, across = operand.stride(rows[0]), operand.stride(columns[0])
    if down is None or across is None:
        return None
    start = operand.address.substitute(starts)
    if across == 1 and down.at_least(columns[1]):
        return Matrix(operand.array, start, down, False)
    if down == 1 and across.at_least(rows[1]):
        return Matrix(operand.array, start, across, True)
    return None
