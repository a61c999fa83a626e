"""Sums of contractions of the same arrays, read at other places: one reduction for all of them.

In: equations; expressions.  Out: the nodes that are not stored; expressions.

What lies under a window is such a sum: ``sum_p x[p, i] w[p, 0] + sum_p x[p, i + 1] w[p, 1]`` is
``sum_p (x[p, i] w[p, 0] + x[p, i + 1] w[p, 1])``, which reads and writes what is summed up once.
Products of matrices stay apart: a BLAS multiplies them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from symgrad.codegen.program.equations import Equation, Indices
from symgrad.codegen.program.patterns import Contraction
from symgrad.codegen.program.rewrite import is_zero
from symgrad.ir.dim import Axis, Dim
from symgrad.ir.expr import (
    Access,
    Call,
    Expr,
    ExprPool,
    Reduce,
    free_axes,
    rebuild,
    substitute,
)
from symgrad.ir.graph import Node

Shapes = Mapping[str, tuple[Dim, ...]]
Arrays = frozenset[str]


@dataclass(frozen=True)
class Sum:
    """A sum over ``axes``, the outermost first, of ``body``: products of elements of ``arrays``."""

    axes: tuple[Axis, ...]
    body: Expr
    arrays: Arrays


def as_sum(expr: Expr) -> Sum | None:
    """A sum of products of elements of two arrays; None where it is something else."""
    axes: list[Axis] = []
    while isinstance(expr, Reduce) and expr.kind == "sum":
        axes.append(expr.axis)
        expr = expr.body
    pairs = products(expr) if axes else []
    found = {frozenset(one.tensor for one in pair) for pair in pairs}
    return Sum(tuple(axes), expr, found.pop()) if len(found) == 1 else None


def products(expr: Expr) -> list[tuple[Access, Access]]:
    """The pairs of elements whose products are added up, some under conditions; or none."""
    found: list[tuple[Access, Access]] = []
    todo = [expr]
    while todo:
        one = todo.pop()
        if not isinstance(one, Call):
            return []
        if one.function == "add":
            todo.extend(reversed(one.operands))
        elif one.function == "where" and is_zero(one.operands[2]):
            todo.append(one.operands[1])
        elif one.function == "mul":
            left, right = one.operands
            if not isinstance(left, Access) or not isinstance(right, Access):
                return []
            found.append((left, right))
        else:
            return []
    return found


def is_matrix(pattern: Contraction, shapes: Shapes) -> bool:
    """Are its rows, its columns and what it sums up one dimension each, in both factors?"""
    groups = (pattern.rows, pattern.columns, pattern.summed)
    factors = [one for one in (pattern.left, pattern.right) if isinstance(one, Access)]
    return len(factors) < 2 or all(_is_one(g, f, shapes) for g in groups for f in factors)


def _is_one(axes: Sequence[Axis], factor: Access, shapes: Shapes) -> bool:
    """Do axes lie next to each other in an array, all but the first of them whole?"""
    sizes = shapes[factor.tensor]
    long = [place for place, size in enumerate(sizes) if size != 1]
    mine = [place for place in long if not free_axes([factor.indices[place]]).isdisjoint(axes)]
    if not mine:
        return True
    first = long.index(mine[0])
    whole = all(spans(factor.indices[place], sizes[place]) for place in mine[1:])
    return mine == long[first : first + len(mine)] and whole


def spans(index: Dim, size: Dim) -> bool:
    """Is an index an axis that runs through all of a size?"""
    return isinstance(index.atom, Axis) and index.atom.extent == size


# -- which


def joinable(
    equations: Sequence[Equation], shapes: Shapes, required: Collection[Node]
) -> frozenset[Node]:
    """The contractions that are added to others of the same arrays, and to nothing else."""
    readers: dict[Node, list[tuple[Equation, Indices]]] = {}
    for equation in equations:
        for node, indices in equation.reads:
            readers.setdefault(node, []).append((equation, indices))
    groups: dict[tuple[Node, tuple[Dim, ...], Arrays], list[Node]] = {}
    for equation in equations:
        pattern, found = equation.pattern, as_sum(equation.body)
        if not isinstance(pattern, Contraction) or found is None or is_matrix(pattern, shapes):
            continue
        top = _added_to(equation.node, readers, required)
        extents = tuple(axis.extent for axis in found.axes)
        groups.setdefault((top, extents, found.arrays), []).append(equation.node)
    return frozenset(node for nodes in groups.values() if len(nodes) > 1 for node in nodes)


def _added_to(
    node: Node, readers: Mapping[Node, list[tuple[Equation, Indices]]], required: Collection[Node]
) -> Node:
    """The last of the sums that a node is a term of, each element once."""
    while node not in required and len(found := readers.get(node, [])) == 1:
        ((equation, indices),) = found
        if equation.pattern is not None or not _adds(equation.body):
            break
        if free_axes(indices) != {axis for axis in equation.own if axis.extent != 1}:
            break
        node = equation.node
    return node


def _adds(body: Expr) -> bool:
    """Is it a sum of elements, or one element and zeros?"""
    if isinstance(body, Call) and body.function == "where":
        return isinstance(body.operands[1], Access) and is_zero(body.operands[2])
    added = isinstance(body, Call) and body.function == "add"
    return added and all(isinstance(operand, Access) for operand in body.args)


# -- how


def join(pool: ExprPool, roots: Iterable[Expr]) -> dict[Expr, Expr]:
    """Every expression under ``roots`` with such sums joined."""

    def rule(expr: Expr, new: Mapping[Expr, Expr]) -> Expr | None:
        if not isinstance(expr, Call) or expr.function != "add":
            return None
        return _joined(pool, *(new[operand] for operand in expr.operands))

    return rebuild(pool, roots, rule)


def _joined(pool: ExprPool, left: Expr, right: Expr) -> Expr | None:
    one, other = _inside(pool, left), _inside(pool, right)
    if one is None or other is None or one.arrays != other.arrays:
        return None
    if [axis.extent for axis in one.axes] != [axis.extent for axis in other.axes]:
        return None
    renamed = {
        old: Dim.of(new) for old, new in zip(other.axes, one.axes, strict=True) if old != new
    }
    if renamed and not other.body.free.isdisjoint(one.axes):
        return None
    body = substitute(pool, other.body, renamed) if renamed else other.body
    if body is None:
        return None
    return summed(pool, one.axes, pool.call("add", one.body, body, dtype=body.dtype))


def _inside(pool: ExprPool, expr: Expr) -> Sum | None:
    """A sum, or one under a condition, which is put inside."""
    if not (isinstance(expr, Call) and expr.function == "where" and is_zero(expr.operands[2])):
        return as_sum(expr)
    condition, chosen, zero = expr.operands
    found = as_sum(chosen)
    if found is None or not condition.free.isdisjoint(found.axes):
        return None
    return Sum(found.axes, pool.select(condition, found.body, zero), found.arrays)


def summed(pool: ExprPool, axes: Sequence[Axis], body: Expr) -> Expr:
    """The sum of ``body`` over axes, the outermost first."""
    for axis in reversed(axes):
        body = pool.reduce("sum", axis, body)
    return body
