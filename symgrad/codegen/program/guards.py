"""Guarded expressions: reads that only a condition keeps inside their array.

In: expressions, the shapes of arrays.  Out: whether evaluating an expression wherever its axes are
in range is safe.

``where(i < n, a[i], b[i - n])`` is safe for ``0 <= i < n + m``, its operands by themselves are
not.  What is not safe is never given a name outside of the choice that guards it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symgrad.codegen.program.rewrite import conjuncts, in_range
from symgrad.ir.dim import Axis, Derived, Dim, Element
from symgrad.ir.expr import OPPOSITE, Access, Call, Expr, IntValue

Nonnegative = tuple[Dim, ...]  # each is known to be nonnegative


class Guards:
    """Answers, and remembers, whether expressions are guarded by conditions around them."""

    def __init__(
        self, shape: Callable[[str], tuple[Dim, ...]], known: Callable[[Expr], bool]
    ) -> None:
        self._shape = shape
        self._known = known
        self._memo: dict[Expr, bool] = {}

    def guarded(self, expr: Expr) -> bool:
        """Might evaluating ``expr`` read outside of an array, or divide by zero?"""
        todo = [expr]
        while todo:
            top = todo[-1]
            if top not in self._memo:
                args = () if self._known(top) else top.args
                missing = [arg for arg in args if arg not in self._memo]
                if missing:
                    todo.extend(missing)
                    continue
                self._memo[top] = self._decide(top, args)
            todo.pop()
        return self._memo[expr]

    def _decide(self, expr: Expr, args: Sequence[Expr]) -> bool:
        if not args:
            return not self._own(expr, ())
        if not any(self._memo[arg] for arg in args):
            return False
        return not (_is_choice(expr) and self._safe(expr, ()))

    def _safe(self, expr: Expr, facts: Nonnegative) -> bool:
        """Is ``expr`` safe to evaluate where all ``facts`` hold?"""
        if not self._memo.get(expr, True):
            return True
        if self._known(expr) or not expr.args:
            return self._known(expr) or self._own(expr, facts)
        if isinstance(expr, Call) and _is_choice(expr):
            condition, chosen, other = expr.operands
            if not self._safe(condition, facts) or not self._safe(
                chosen, (*facts, *facts_of(condition, holds=True))
            ):
                return False
            return self._safe(other, (*facts, *facts_of(condition, holds=False)))
        return all(self._safe(arg, facts) for arg in expr.args)

    def _own(self, expr: Expr, facts: Nonnegative) -> bool:
        if isinstance(expr, IntValue):
            return not _may_fail(expr.value) and self._elements_inside([expr.value], facts)
        return not isinstance(expr, Access) or self._inside(expr.tensor, expr.indices, facts)

    def _inside(self, tensor: str, indices: Sequence[Dim], facts: Nonnegative) -> bool:
        for index, size in zip(indices, self._shape(tensor), strict=True):
            if isinstance(index.atom, Axis) and index.atom.extent == size:
                continue
            if isinstance(index.atom, Element):  # its range is checked before
                if not self._inside(index.atom.tensor, index.atom.indices, facts):
                    return False
            elif not _within(index, size, facts) or not self._elements_inside([index], facts):
                return False
        return True

    def _elements_inside(self, dims: Sequence[Dim], facts: Nonnegative) -> bool:
        elements = [a for dim in dims for a in dim.atoms if isinstance(a, Element)]
        return all(self._inside(element.tensor, element.indices, facts) for element in elements)


def _is_choice(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.function == "where"


def _within(index: Dim, size: Dim, facts: Nonnegative) -> bool:
    """Is ``0 <= index < size`` where the facts hold?"""
    if in_range(index, size):
        return True
    atom = index.atom
    if isinstance(atom, Derived) and atom.function == "floordiv" and (atom.right.constant or 0) > 0:
        return _within(atom.left, atom.right * size, facts)
    return _follows(index, facts) and _follows(size - 1 - index, facts)


def _follows(target: Dim, facts: Nonnegative) -> bool:
    """Is ``target >= 0`` where the facts hold?"""
    if target.at_least(0, least_size=1):
        return True
    return any((target - fact).at_least(0, least_size=1) for fact in facts)


def facts_of(condition: Expr, *, holds: bool) -> Nonnegative:
    """What is at least 0 where ``condition`` holds, or where it does not."""
    parts = conjuncts(condition)
    if not holds and len(parts) > 1:
        return ()
    return tuple(fact for part in parts for fact in _relation(part, holds=holds))


def _relation(expr: Expr, *, holds: bool) -> Nonnegative:
    if not isinstance(expr, Call) or expr.function not in OPPOSITE:
        return ()
    left, right = expr.operands
    if not isinstance(left, IntValue) or not isinstance(right, IntValue):
        return ()
    function = expr.function if holds else OPPOSITE[expr.function]
    difference = right.value - left.value
    return {
        "lt": (difference - 1,), "le": (difference,), "gt": (-difference - 1,),
        "ge": (-difference,), "eq": (difference, -difference), "ne": (),
    }[function]  # fmt: skip


def _may_fail(dim: Dim) -> bool:
    """Is there a quotient or remainder in it whose divisor is no number?"""
    return any(
        isinstance(atom, Derived)
        and atom.function in ("floordiv", "mod")
        and not atom.right.constant
        for atom in dim.atoms
    )
