"""Contractions that no BLAS takes: in which order their loops run.

In: a program.  Out: ``Pairs`` of axes, an outer one and an inner one; the program, with sums in
the order of the loops.

The lanes run along what lies together.  Around them is what is summed up, or, where the lanes sum,
what is not: few results are written many times, and stay near.  Around these the axes of the
smaller factor, and outermost those of the other, whose elements are read once.  Where the lanes
sum, those of the factor that is read at one place alone are next to them: ``lanes`` may take them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product

from symgrad.codegen.program.definitions import Definition, KernelProgram
from symgrad.codegen.program.joined import Sum, as_sum, is_matrix, products, spans, summed
from symgrad.codegen.program.patterns import Contraction
from symgrad.ir.dim import Axis, Dim
from symgrad.ir.expr import Access, Expr, Reduce, postorder, rebuild, substitute

Pairs = set[tuple[Axis, Axis]]


@dataclass(frozen=True)
class Shifted:
    """A sum whose loops run over ``groups`` of axes, the outermost first."""

    sum: Sum
    groups: tuple[tuple[Axis, ...], ...]


def apart(program: KernelProgram) -> KernelProgram:
    """The program in which sums over lanes have axes of their own, and so loops of their own."""
    definitions = (_apart(program, definition) for definition in program.definitions)
    return replace(program, definitions=tuple(definitions))


def _apart(program: KernelProgram, definition: Definition) -> Definition:
    pattern = definition.pattern
    if not isinstance(pattern, Contraction) or _is_product(program, pattern):
        return definition
    found = _shifted(program, definition, definition.body)
    if found is None or found.groups[-1][0] not in found.sum.axes:
        return definition
    fresh = {axis: Axis(f"{axis.name}'", axis.extent) for axis in found.sum.axes}
    axes = {axis: Dim.of(new) for axis, new in fresh.items()}
    body = substitute(program.pool, found.sum.body, axes)
    if body is None:
        return definition
    body = summed(program.pool, [fresh[axis] for axis in found.sum.axes], body)
    return replace(definition, body=body, pattern=None)


def _is_product(program: KernelProgram, pattern: Contraction) -> bool:
    shapes = {tensor: shape for tensor, (_, shape) in program.arrays.items()}
    return is_matrix(pattern, shapes)


def precedence(program: KernelProgram) -> Pairs:
    """The pairs of axes of which one has to be outside of the other."""
    found: Pairs = set()
    for definition in program.definitions:
        for one in _all(program, definition).values():
            for outer, inner in combinations(one.groups, 2):
                found.update(product(outer, inner))
    return found


def in_order(program: KernelProgram, order: Mapping[Axis, int]) -> KernelProgram:
    """The program with each of these sums over its axes in their order."""
    definitions = (_in_order(program, one, order) for one in program.definitions)
    return replace(program, definitions=tuple(definitions))


def _in_order(
    program: KernelProgram, definition: Definition, order: Mapping[Axis, int]
) -> Definition:
    pool, found = program.pool, _all(program, definition)
    memo = {
        expr: summed(pool, sorted(one.sum.axes, key=lambda axis: order[axis]), one.sum.body)
        for expr, one in found.items()
    }
    if not memo:
        return definition
    body = rebuild(pool, [definition.body], lambda *_: None, memo)[definition.body]
    return replace(definition, body=body)


def _all(program: KernelProgram, definition: Definition) -> dict[Expr, Shifted]:
    """The contractions of a definition that are done by loops."""
    if definition.pattern is not None:
        return {}
    found: dict[Expr, Shifted] = {}
    inside: set[Expr] = set()
    for expr in reversed(postorder([definition.body])):
        if isinstance(expr, Reduce):
            if expr not in inside and (one := _shifted(program, definition, expr)) is not None:
                found[expr] = one
            inside.add(expr.body)
    return found


def _shifted(program: KernelProgram, definition: Definition, expr: Expr) -> Shifted | None:
    """A sum of products, and the order of its loops; None where it is something else."""
    found = as_sum(expr)
    if found is None:
        return None
    pair = products(found.body)[0]
    if any(not set(found.axes) <= factor.free for factor in pair):
        return None
    lasts = [_contiguous(factor) for factor in pair]
    lane = lasts[0] or lasts[1]
    inner = set(found.axes)
    if lane in inner and lasts[0] == lasts[1]:
        left, right = (factor.free - inner for factor in pair)
        if _is_whole(program, pair[1]) or not _is_whole(program, pair[0]):
            left, right = right, left
        groups = [inner - {lane}, right - left, left, {lane}]
    elif lane is not None and lane not in inner and lane == _last(definition):
        large, small = pair if lasts[0] == lane else (pair[1], pair[0])
        groups = [large.free - inner - {lane}, small.free - large.free, inner, {lane}]
    else:
        return None
    return Shifted(found, tuple(tuple(sorted(one, key=lambda a: a.key)) for one in groups))


def _is_whole(program: KernelProgram, factor: Access) -> bool:
    """Is all of an array read, each element at its own place?"""
    sizes = program.arrays[factor.tensor][1]
    return all(size == 1 or spans(i, size) for i, size in zip(factor.indices, sizes, strict=True))


def _last(definition: Definition) -> Axis | None:
    atom = definition.indices[-1].atom if definition.indices else None
    return atom if isinstance(atom, Axis) else None


def _contiguous(factor: Access) -> Axis | None:
    """The axis along which elements lie next to each other."""
    index = factor.indices[-1] if factor.indices else Dim.of(0)
    for axis in index.axes:
        if index.substitute({axis: Dim.of(axis) + 1}) - index == 1:
            return axis
    return None
