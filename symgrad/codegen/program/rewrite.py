"""Index notation to index notation: elimination of deltas, and questions about conditions.

In: expressions of one pool.  Out: expressions of the same pool, equal in value.

A delta is a sum in which one index alone counts: ``sum_p [p == i] f(p)`` is ``f(i)`` where ``i``
is surely in the range of ``p``.  Gradients of gathers are full of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from symgrad.ir.dim import Axis, Dim, Element
from symgrad.ir.expr import (
    Access,
    Call,
    Expr,
    ExprPool,
    IntValue,
    Literal,
    Reduce,
    free_axes,
    rebuild,
    substitute,
    with_args,
)


def is_zero(expr: Expr) -> bool:
    """Is it the number 0 as written?"""
    return isinstance(expr, Literal) and not isinstance(expr.value, bool) and expr.value == 0


def conjuncts(condition: Expr) -> list[Expr]:
    """The conditions that must all hold."""
    found: list[Expr] = []
    todo = [condition]
    while todo:
        expr = todo.pop()
        if isinstance(expr, Call) and expr.function == "logical_and":
            todo.extend(reversed(expr.operands))
        else:
            found.append(expr)
    return found


def equation(expr: Expr) -> Dim | None:
    """``left - right`` of a comparison ``left == right`` of integer expressions."""
    if isinstance(expr, Call) and expr.function == "eq":
        sides = [_integer(operand) for operand in expr.operands]
        if sides[0] is not None and sides[1] is not None:
            return sides[0] - sides[1]
    return None


def _integer(expr: Expr) -> Dim | None:
    if isinstance(expr, IntValue):
        return expr.value
    if isinstance(expr, Literal) and isinstance(expr.value, int):
        return Dim.of(int(expr.value))
    if isinstance(expr, Access) and not expr.dtype.is_float:
        return Dim.of(Element(expr.tensor, expr.indices))
    return None


def solve(difference: Dim, axis: Axis) -> Dim | None:
    """The value of ``axis`` where ``difference`` is 0, when it enters with a factor of 1 or -1."""
    rest = difference.substitute({axis: Dim.of(0)})
    factor = (difference - rest).exact_quotient(Dim.of(axis))
    if factor is None or factor.constant not in (1, -1) or axis in rest.atoms:
        return None
    return rest * -factor


def in_range(value: Dim, extent: Dim, *, least_size: int = 1) -> bool:
    """Is ``0 <= value < extent`` for all sizes >= ``least_size`` and all indices in range?"""
    low = value.at_least(0, least_size=least_size)
    return low and (extent - 1 - value).at_least(0, least_size=least_size)


def sum_of_choices(expr: Expr) -> tuple[list[Axis], Call] | None:
    """``expr`` as sums over axes of ``where(condition, body, 0)``."""
    axes: list[Axis] = []
    while isinstance(expr, Reduce) and expr.kind == "sum":
        axes.append(expr.axis)
        expr = expr.body
    if axes and isinstance(expr, Call) and expr.function == "where" and is_zero(expr.operands[2]):
        return axes, expr
    return None


def eliminate_deltas(pool: ExprPool, roots: Iterable[Expr]) -> dict[Expr, Expr]:
    """Every expression under ``roots`` without the sums that one index alone contributes to."""
    return rebuild(pool, roots, lambda expr, new: _eliminate(pool, with_args(pool, expr, new)))


def _eliminate(pool: ExprPool, expr: Expr) -> Expr:
    if not isinstance(expr, Reduce) or (found := sum_of_choices(expr)) is None:
        return expr
    inner, choice = set(found[0][1:]), found[1]
    for condition in conjuncts(choice.operands[0]):
        difference = equation(condition)
        value = None if difference is None else solve(difference, expr.axis)
        if value is None or inner & free_axes([value]) or not in_range(value, expr.axis.extent):
            continue
        eliminated = _without_condition(pool, expr.body, choice, condition)
        replaced = substitute(pool, eliminated, {expr.axis: value})
        if replaced is not None:
            return replaced
    return expr


def _without_condition(pool: ExprPool, body: Expr, choice: Call, condition: Expr) -> Expr:
    """``body`` with ``condition`` taken out of the choice at its bottom."""
    rest = [other for other in conjuncts(choice.operands[0]) if other is not condition]
    bottom = pool.select(pool.conjunction(rest), *choice.operands[1:])
    return rebuild(pool, [body], lambda *_: None, {choice: bottom})[body]
