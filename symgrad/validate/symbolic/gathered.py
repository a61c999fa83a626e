"""What a formula needs to be a real number: of which operands, and where it evaluates them.

In: a formula.  Out: ``Instance``s, each a need under the conditions of the choices and in the
ranges of the reductions that it lies in.

Of a choice the side that is chosen is evaluated, and its condition; of a reduction all of it; of
an index whatever it is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf, isfinite

from symgrad.ir.dim import Axis, Dim
from symgrad.ir.expr import Access, Call, Expr, IntValue, Literal, Reduce
from symgrad.validate.symbolic.domains import Need, needs, of_literal, of_reduction
from symgrad.validate.symbolic.values import RELATIONS, Values, is_defined, is_never

MOST = 64
"""Ways to one part of a formula."""


@dataclass(frozen=True)
class Guard:
    """A condition, and which it has to be for what it guards to be evaluated."""

    condition: Expr
    truth: bool


_TAKES = {
    "maximum": (-inf,), "minimum": (inf,),
    **dict.fromkeys(RELATIONS, (-inf, inf)),
}  # fmt: skip
"""The infinities that an op takes and gives a number."""
Context = tuple[Guard | Axis, ...]
"""Where something is evaluated: choices and reductions around it, the outermost first."""


@dataclass(frozen=True)
class Instance:
    """A need, and where it arises."""

    need: Need
    context: Context


class TooMany(Exception):
    """Something is evaluated in more ways than are followed."""


class Gathering:
    """One formula.  ``complete``: raise TooMany where something would be left out."""

    def __init__(self, values: Values, root: Expr, *, complete: bool) -> None:
        self._values, self._complete = values, complete
        self._contexts: dict[Expr, list[Context]] = {}
        self._todo: list[tuple[int, Expr]] = []
        self._waiting: dict[Expr, list[Context]] = {}
        self.needs: dict[Expr, tuple[Need, ...]] = {}
        self._add(root, ())

    def run(self) -> Iterator[Instance]:
        """All that it needs."""
        while self._todo:
            _, expr = heappop(self._todo)
            for context in self._waiting.pop(expr, ()):
                self._enter(expr, context)
        for expr, found in self.needs.items():
            for context in self._contexts[expr]:
                for need in found:
                    yield Instance(need, context)

    def _add(self, expr: Expr, context: Context) -> None:
        if isinstance(expr, Literal) and isfinite(expr.value):
            return
        known = self._contexts.setdefault(expr, [])
        if any(_within(context, one) for one in known):
            return
        if len(known) >= MOST:
            if self._complete:
                raise TooMany
            return
        known[:] = [one for one in known if not _within(one, context)]
        known.append(context)
        if expr not in self._waiting:
            heappush(self._todo, (-expr.number, expr))
        self._waiting.setdefault(expr, []).append(context)

    def _enter(self, expr: Expr, context: Context) -> None:
        if isinstance(expr, Literal):
            self.needs[expr] = of_literal(expr)
        elif isinstance(expr, Access):
            self._add_indices(expr.indices, context)
        elif isinstance(expr, IntValue):
            self._add_indices((expr.value,), context)
        elif isinstance(expr, Reduce):
            self._add_indices((expr.axis.extent,), context)
            if found := of_reduction(self._values, expr):
                self.needs[expr] = found
            self._add(expr.body, (*context, expr.axis))
        elif isinstance(expr, Call):
            if expr not in self.needs and (found := needs(self._values, expr)):
                self.needs[expr] = found
            if expr.function == "where":
                self._add_sides(expr, context, self._add)
            elif expr.function in ("ne", "eq") and expr.operands[0] is expr.operands[1]:
                self._add_checked(expr.operands[0], context)
            else:
                for one in expr.operands:
                    if not (
                        isinstance(one, Literal) and one.value in _TAKES.get(expr.function, ())
                    ):
                        self._add(one, context)

    def _add_checked(self, expr: Expr, context: Context) -> None:
        """What is compared with itself may be an infinity, as the greatest of nothing is."""
        if isinstance(expr, Reduce) and expr.kind in ("max", "min"):
            self._add_indices((expr.axis.extent,), context)
            self._add_checked(expr.body, (*context, expr.axis))
        elif isinstance(expr, Call) and expr.function == "where":
            self._add_sides(expr, context, self._add_checked)
        else:
            self._add(expr, context)

    def _add_sides(
        self, expr: Call, context: Context, add: Callable[[Expr, Context], None]
    ) -> None:
        condition, *sides = expr.operands
        self._add(condition, context)
        if is_never(condition):  # where what it asks about is defined
            add(sides[1], context)
            return
        for side, truth in zip(sides, (True, False), strict=True):
            guard = Guard(condition, truth)
            if _holds(context, guard):
                add(side, context)
            elif not _holds(context, Guard(condition, not truth)):
                add(side, (*context, guard))

    def _add_indices(self, dims: tuple[Dim, ...], context: Context) -> None:
        for dim in dims:
            for atom in dim.atoms:
                if is_defined(atom):
                    self._add(self._values.definition(atom), context)


def _holds(context: Context, guard: Guard) -> bool:
    """Is it one of the conditions, on the same values of the axes?"""
    for one in reversed(context):
        if one == guard:
            return True
        if one in guard.condition.free:
            return False
    return False


def _within(context: Context, other: Context) -> bool:
    """Is ``other`` evaluated wherever ``context`` is: has it the same ranges, and fewer guards?"""
    if other == context:
        return True
    left = iter(context)
    if not all(one in left for one in other):
        return False
    return [one for one in context if isinstance(one, Axis)] == [
        one for one in other if isinstance(one, Axis)
    ]
