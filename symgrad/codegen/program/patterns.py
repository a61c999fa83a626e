"""Definitions that are more than a formula: scatters, running reductions, contractions.

In: what a node is, in index notation at its own axes.  Out: a record of the pattern, or None.

- ``Scatter``: ``out[v] = sum_p [v == t[p]] f(p)``: one loop over p, not one over p for each v.
- ``Scan``: ``out[i] = sum_k [k <= i] f(k)``: one loop that carries the sum.
- ``Contraction``: ``out[i, j] = sum_k a[i, k] b[k, j]``: what a BLAS does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symgrad.codegen.program.rewrite import conjuncts, equation, solve, sum_of_choices
from symgrad.ir.dim import Axis, Dim
from symgrad.ir.expr import Call, Expr, ExprPool, IntValue, Literal, Reduce, free_axes, substitute


@dataclass(frozen=True)
class Scatter:
    """A sum of contributions, each to one element of the result.

    ``body`` is added at ``targets`` (an index for each of the axes of the result that are not
    looped over) for every value of ``axes`` for which ``condition`` holds.
    """

    axes: tuple[Axis, ...]
    targets: tuple[tuple[Axis, Dim], ...]
    condition: Expr
    body: Expr


@dataclass(frozen=True)
class Scan:
    """A running reduction of ``body`` along ``axis``, which runs downwards where ``reverse``."""

    kind: str
    axis: Axis
    body: Expr
    reverse: bool


@dataclass(frozen=True)
class Contraction:
    """``sum`` over ``summed`` of ``left * right``.

    ``batch`` axes are in both factors and the result, ``rows`` in the left one, ``columns`` in
    the right one.
    """

    summed: tuple[Axis, ...]
    left: Expr
    right: Expr
    batch: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All of its axes."""
        return (*self.batch, *self.rows, *self.columns, *self.summed)


Pattern = Scatter | Scan | Contraction


def recognise(pool: ExprPool, own: Sequence[Axis], body: Expr) -> Pattern | None:
    """The pattern of ``node[own] = body``."""
    if not isinstance(body, Reduce):
        return None
    return match_scan(pool, own, body) or match_scatter(pool, own, body) or match_product(own, body)


def match_scatter(pool: ExprPool, own: Sequence[Axis], body: Expr) -> Scatter | None:
    """``body`` as a scatter over some of the axes ``own``."""
    found = sum_of_choices(body)
    if found is None:
        return None
    axes, choice = found
    targets: dict[Axis, Dim] = {}
    rest: list[Expr] = []
    for condition in conjuncts(choice.operands[0]):
        target = _target(condition, own, axes)
        if target is None or target[0] in targets:
            rest.append(condition)
        else:
            targets[target[0]] = target[1]
    mask = pool.conjunction(rest)
    used = mask.free | choice.operands[1].free | free_axes(targets.values())
    if not targets or used & set(targets):
        return None
    return Scatter(tuple(axes), tuple(targets.items()), mask, choice.operands[1])


def _target(
    condition: Expr, own: Sequence[Axis], summed: Sequence[Axis]
) -> tuple[Axis, Dim] | None:
    """The axis of the result and its index in ``axis == index``, the index being summed over."""
    difference = equation(condition)
    if difference is None:
        return None
    for axis in own:
        value = solve(difference, axis)
        if value is not None and free_axes([value]) & set(summed):
            return axis, value
    return None


_IDENTITY = {"sum": 0, "prod": 1}


def match_scan(pool: ExprPool, own: Sequence[Axis], body: Reduce) -> Scan | None:
    """``body`` as a running sum or product along one of the axes ``own``."""
    choice = body.body
    if not (isinstance(choice, Call) and choice.function == "where") or body.kind not in _IDENTITY:
        return None
    condition, chosen, other = choice.operands
    if not isinstance(other, Literal) or other.value != _IDENTITY[body.kind]:
        return None
    if not isinstance(condition, Call) or len(condition.operands) != 2:
        return None
    left, right = (_axis(operand) for operand in condition.operands)
    function = condition.function
    if right == body.axis:
        left, right, function = right, left, _MIRRORED.get(function, "")
    if left is None or right is None or left != body.axis or right not in own:
        return None
    if right.extent != left.extent or function not in _MIRRORED or right in chosen.free:
        return None
    along = substitute(pool, chosen, {left: Dim.of(right)})
    return None if along is None else Scan(body.kind, right, along, function == "ge")


_MIRRORED = {"le": "ge", "ge": "le"}


def _axis(expr: Expr) -> Axis | None:
    atom = expr.value.atom if isinstance(expr, IntValue) else None
    return atom if isinstance(atom, Axis) else None


def match_product(own: Sequence[Axis], body: Expr) -> Contraction | None:
    """``body`` as a product of matrices: each factor has axes of the result to itself."""
    summed: list[Axis] = []
    while isinstance(body, Reduce) and body.kind == "sum":
        summed.append(body.axis)
        body = body.body
    if not summed or not isinstance(body, Call) or body.function != "mul":
        return None
    if not body.dtype.is_float:
        return None
    left, right = body.operands
    if not set(summed) <= left.free & right.free:
        return None
    batch = tuple(axis for axis in own if axis in left.free & right.free)
    rows = tuple(axis for axis in own if axis in left.free and axis not in batch)
    columns = tuple(axis for axis in own if axis in right.free and axis not in batch)
    if not rows or not columns or (left.free | right.free) - {*own, *summed}:
        return None
    return Contraction(tuple(summed), left, right, batch, rows, columns)
