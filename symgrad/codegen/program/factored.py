"""What varies over fewer axes is multiplied first: once for a row, not once for an element.

In: the program of a derived gradient.  Out: a program of the same value over the reals.

``g*(x/s)/t``, where only ``x`` varies along a row, is ``x*(g/s/t)``; ``x/s`` is ``x*(1/s)``;
``x*a + x*b`` is ``x*(a + b)``; ``sum(x*a)`` is ``a*sum(x)``.  Roundings are others.  So nothing is
changed below what is compared, or is no smooth function: forward decides the same there.  A divisor
stays with what it divides where it is multiplied by another value that varies, so that a product
of two values overflows only where it did.  A sum that is read where it may have no terms is 0
there, whatever the factor is: the factor is taken out if that saves the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from symgrad.codegen.program.definitions import KernelProgram
from symgrad.codegen.program.termwise import axes_around
from symgrad.ir.dim import Axis
from symgrad.ir.dtype import bool_
from symgrad.ir.expr import Call, Expr, Literal, Reduce, postorder, rebuild, with_args
from symgrad.ops.record import get


@dataclass(frozen=True)
class _Factor:
    """A factor of a product, or with ``divides`` a divisor."""

    value: Expr
    divides: bool = False


def factored(program: KernelProgram) -> KernelProgram:
    """The program with every product, quotient and sum in that form."""
    roots = [one.body for one in program.definitions if one.pattern is None]
    rule = _Rule(program, axes_around(program), _inside_of_sums(roots))
    first = rebuild(program.pool, roots, rule)
    rule.taken.update(filter(_is_sum, postorder(first[root] for root in roots)))
    new = rebuild(program.pool, roots, rule)
    definitions = (
        replace(one, body=new[one.body]) if one.pattern is None else one
        for one in program.definitions
    )
    names = {new.get(expr, expr): name for expr, name in program.names.items()}
    return replace(program, definitions=tuple(definitions), names=names)


def _inside_of_sums(roots: Iterable[Expr]) -> frozenset[Expr]:
    """The sums that are themselves summed: they are taken together."""
    found = postorder(roots)
    return frozenset(one.body for one in found if _is_sum(one) and _is_sum(one.args[0]))


def _is_sum(expr: Expr) -> TypeGuard[Reduce]:
    return isinstance(expr, Reduce) and expr.kind == "sum" and not expr.order


class _Rule:
    """What stands for an expression, given what stands for its parts.

    ``taken``: sums that are taken anyway.
    """

    def __init__(
        self, program: KernelProgram, around: Mapping[Expr, frozenset[Axis]],
        inside: frozenset[Expr],
    ) -> None:  # fmt: skip
        self._pool, self._around, self._inside = program.pool, around, inside
        self.taken: set[Expr] = set()

    def __call__(self, expr: Expr, new: Mapping[Expr, Expr]) -> Expr | None:
        if isinstance(expr, Reduce):
            if not expr.dtype.is_float or not _is_sum(expr):
                return expr
            made = with_args(self._pool, expr, new)
            return made if expr in self._inside else self._sum(expr, made)
        if not isinstance(expr, Call):
            return None
        if not expr.dtype.is_float or not _is_smooth(expr.function):
            return expr
        made = with_args(self._pool, expr, new)
        if not isinstance(made, Call) or not self._around[expr] <= made.free:
            return made
        if made.function in ("mul", "div"):
            return self._product(made)
        return self._grouped(made) if made.function in ("add", "sub") else made

    # -- products

    def _peeled(
        self, expr: Expr, fewer: Callable[[Expr], bool]
    ) -> tuple[Expr, list[_Factor]]:  # fmt: skip
        """``expr`` without its factors that vary over fewer axes, and these, inner ones first."""
        factors: list[_Factor] = []
        dtype = expr.dtype
        while isinstance(expr, Call) and (function := expr.function) in ("mul", "div", "neg"):
            left, right = expr.operands[0], expr.operands[-1]
            if left.dtype != dtype or right.dtype != dtype:
                break
            if function == "neg":
                expr, one = left, _Factor(self._pool.literal(-1.0, dtype))
            elif fewer(right):
                expr, one = left, _Factor(right, function == "div")
            elif function == "mul" and fewer(left):
                expr, one = right, _Factor(left)
            else:
                break
            factors.append(_reciprocal(one))
        return expr, factors[::-1]

    def _product(self, expr: Call) -> Expr:
        core, factors = self._peeled(expr, lambda one: one.free < expr.free)
        known = all(isinstance(one.value, Literal) for one in factors)
        if known or not (len(factors) > 1 or factors[0].divides):
            return expr
        return self._times(core, self._levels(factors))

    def _levels(self, factors: Sequence[_Factor]) -> list[Expr]:
        """The factors multiplied: those of fewer axes first, then with those of more."""
        groups: dict[frozenset[Axis], list[_Factor]] = {}
        for one in factors:
            groups.setdefault(one.value.free, []).append(one)
        found: list[Expr] = []
        for free in sorted(groups, key=len):
            made = self._multiplied(groups[free])
            wider = next((one for one in sorted(groups, key=len) if free < one), None)
            if wider is None:
                found.append(made)
            else:
                groups[wider].append(_Factor(made))
        return found

    def _multiplied(self, factors: Sequence[_Factor]) -> Expr:
        """The factors multiplied in order, the first that is no divisor ahead, signs at the end."""
        factors = sorted(factors, key=lambda one: _is_sign(one.value))
        first = next((one for one in factors if not one.divides), None)
        dtype = factors[0].value.dtype
        made = self._pool.literal(1.0, dtype) if first is None else first.value
        for one in factors:
            if one.divides:
                made = self._pool.call("div", made, one.value, dtype=dtype)
            elif one is not first:
                made = self._times(made, [one.value])
        return made

    def _times(self, core: Expr, factors: Iterable[Expr]) -> Expr:
        for one in factors:
            if _is_sign(one):
                core = self._pool.call("neg", core, dtype=core.dtype)
            else:
                core = self._pool.call("mul", core, one, dtype=core.dtype)
        return core

    # -- sums

    def _grouped(self, expr: Call) -> Expr:
        """``x*(a + b)`` for ``x*a + x*b``."""
        peeled = (self._peeled(one, lambda one: one.free < expr.free) for one in expr.operands)
        cores, factors = zip(*peeled, strict=True)
        if cores[0] is not cores[1] or not cores[0].free or not all(factors):
            return expr
        sides = [self._multiplied(one) for one in factors]
        return self._times(cores[0], [self._pool.call(expr.function, *sides, dtype=expr.dtype)])

    def _sum(self, expr: Expr, made: Expr) -> Expr:
        """A sum of what varies along its axes, times what does not."""
        axes: list[Axis] = []
        body = made
        while isinstance(body, Reduce) and _is_sum(body):
            axes.append(body.axis)
            body = body.body
        rest, factors = self._drawn(body, frozenset(axes))
        for axis in reversed(axes):
            rest = self._pool.reduce("sum", axis, rest)
        if not factors:
            return made
        found = self._times(rest, [self._multiplied(factors)])
        known = all(isinstance(one.value, Literal) for one in factors)
        if known or self._around[expr].issuperset(axes):
            return found
        return self._of_some(found, axes) if rest in self.taken else made

    def _of_some(self, total: Expr, axes: Iterable[Axis]) -> Expr:
        """``total`` where it has terms, else 0."""
        pool = self._pool
        counts = (pool.integer(axis.extent) for axis in axes)
        some = (pool.call("gt", one, pool.integer(0), dtype=bool_) for one in counts)
        return pool.select(pool.conjunction(some), total, pool.literal(0.0, total.dtype))

    def _drawn(self, expr: Expr, axes: frozenset[Axis]) -> tuple[Expr, list[_Factor]]:
        """What varies along the axes, and the factors that do not."""
        core, factors = self._peeled(expr, lambda one: one.free.isdisjoint(axes))
        if not (isinstance(core, Call) and core.function == "mul"):
            return core, factors
        if any(one.divides or _divides(one.value) for one in factors):
            return expr, []
        sides = []
        for one in core.operands:
            side, more = self._drawn(one, axes)
            if any(factor.divides or _divides(factor.value) for factor in more):
                side, more = one, []
            sides.append(side)
            factors += more
        return self._pool.call("mul", *sides, dtype=core.dtype), factors


def _is_smooth(function: str) -> bool:
    """Does a rounding in front of it stay one?"""
    scalar = get(function).scalar
    return scalar is not None and not scalar.kinks


def _reciprocal(factor: _Factor) -> _Factor:
    """``1/s`` as the divisor ``s``."""
    value = factor.value
    if factor.divides or not isinstance(value, Call) or value.function != "div":
        return factor
    one, divisor = value.operands
    is_one = isinstance(one, Literal) and one.value == 1
    return _Factor(divisor, divides=True) if is_one else factor


def _is_sign(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value == -1


def _divides(expr: Expr) -> bool:
    """Is a factor of it a quotient?"""
    if not isinstance(expr, Call) or expr.function not in ("mul", "div", "neg"):
        return False
    return expr.function == "div" or any(map(_divides, expr.operands))
