"""Axes that are joined from parts: where they are joined, and reductions over them part by part.

In: index notation.  Out: places along an axis; expressions that are equal for all sizes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import partial, reduce

from symgrad.budgets import MOST_PARTS
from symgrad.ir.dim import Axis, Dim
from symgrad.ir.expr import (
    Access,
    Call,
    Expr,
    ExprPool,
    IntValue,
    Literal,
    Reduce,
    fold,
    reading,
    substitute,
)

_JOINS = {
    "sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "any": "logical_or",
    "all": "logical_and",
}  # fmt: skip
"""What joins the results for the parts."""
_NONEMPTY = ("max", "min")
_FIRST, _LAST = (0,), (1,)
_CHANGES = {
    "ge": (_FIRST, _LAST), "lt": (_FIRST, _LAST), "gt": (_LAST, _FIRST), "le": (_LAST, _FIRST),
    "eq": (_FIRST + _LAST, _FIRST + _LAST), "ne": (_FIRST + _LAST, _FIRST + _LAST),
}  # fmt: skip
"""Relations of ``index - c`` and of ``c - index`` with 0: how far behind c they change."""


def places(exprs: Iterable[Expr], index: Dim, extent: Dim) -> list[Dim]:
    """Where comparisons of an index with sizes and numbers change, in order, and both ends.

    Nothing where they cannot be put in order, or are too many.
    """
    found = {Dim.of(0): None, extent: None}
    for one in exprs:
        if isinstance(one, Call) and one.function in _CHANGES:
            left, right = one.operands
            if isinstance(left, IntValue) and isinstance(right, IntValue):
                found.update(dict.fromkeys(_changes(one.function, left.value - right.value, index)))
    inside = [one for one in found if _reaches(one, 0) and _reaches(extent, one)]
    if len(inside) > MOST_PARTS:
        return []
    order = sorted(inside, key=lambda one: sum(_reaches(one, other) for other in inside))
    ordered = all(_reaches(last, first) for first, last in itertools.pairwise(order))
    return order if ordered else []


def _changes(relation: str, gap: Dim, index: Dim) -> Iterable[Dim]:
    """Where ``gap <relation> 0`` changes, if gap is the index, or its negative, and a size."""
    for place, steps in zip((index - gap, index + gap), _CHANGES[relation], strict=True):
        if not place.axes:
            yield from (place + step for step in steps)


def _reaches(left: Dim, right: Dim | int) -> bool:
    return (left - right).at_least(0, least_size=1)


def apart(roots: Sequence[Expr]) -> list[Expr] | None:
    """The same with each reduction over a joined axis as one of its parts after the other.

    In a pool of their own; None where there is no such axis.  [rule: parts]
    """
    pool = ExprPool()
    changed = False

    def step(expr: Expr, new: Mapping[Expr, Expr]) -> Expr:
        nonlocal changed
        if isinstance(expr, Reduce) and expr.kind in _JOINS:
            joined = _joined(pool, expr.kind, expr.axis, new[expr.body])
            if joined is not None:
                changed = True
                return joined
        return _copied(pool, expr, new)

    found = fold(roots, step)
    return [found[root] for root in roots] if changed else None


def _copied(pool: ExprPool, expr: Expr, new: Mapping[Expr, Expr]) -> Expr:
    """The expression in another pool; ``new``: what it is made of, there."""
    if isinstance(expr, Literal):
        return pool.literal(expr.value, expr.dtype)
    if isinstance(expr, IntValue):
        return pool.integer(expr.value, expr.dtype)
    if isinstance(expr, Access):
        return pool.access(expr.tensor, expr.indices, expr.dtype)
    if isinstance(expr, Reduce):
        return pool.reduce(expr.kind, expr.axis, new[expr.body])
    assert isinstance(expr, Call)
    return pool.call(expr.function, *(new[one] for one in expr.operands), dtype=expr.dtype)


def _joined(pool: ExprPool, kind: str, axis: Axis, body: Expr) -> Expr | None:
    """A reduction by parts; None where its axis has but one, or the body binds it again."""
    index = Dim.of(axis)
    cuts = places(reading(body, {axis}), index, axis.extent)
    if len(cuts) == 2:
        return None
    parts: list[Expr] = []
    for number, (start, end) in enumerate(itertools.pairwise(cuts)):
        own = Axis(f"{axis.name}/{number}", end - start)
        part = substitute(pool, body, {axis: start + Dim.of(own)})
        if part is None or (kind in _NONEMPTY and not _reaches(end - start, 1)):
            return None
        parts.append(pool.reduce(kind, own, part))
    if not parts:
        return None
    return reduce(partial(pool.call, _JOINS[kind], dtype=body.dtype), parts)
