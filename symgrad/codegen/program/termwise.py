"""Sums that wait for other sums over the same axis, taken term by term: one pass fewer.

In: a program.  Out: a program of the same value over the reals.

``sum_i (a*u[i] + b*v[i])``, where ``a`` is a sum over ``i`` itself, needs a pass over all arrays
after the one that gives ``a``.  ``a*sum_i u[i] + b*sum_i v[i]`` needs none: its sums are taken
together with ``a``.  Terms must be products, whose elements are rounded: then the error stays
within that of the elements.  ``sum_i (u[i] - mean)`` is left alone, for its elements are exact.
So is a sum that is read where there may be no ``i``: it is 0 there, whatever ``a`` is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from symgrad.codegen.program.definitions import KernelProgram
from symgrad.ir.dim import Axis
from symgrad.ir.expr import Access, Call, Expr, ExprPool, Reduce, fold, postorder, rebuild

MOST_TERMS = 4  # sums that take the place of one: each is carried along by another loop

_Passes = tuple[Mapping[Axis, int], bool]
"""How many sums over an axis wait for each other; is an array read that the kernel writes?"""


def termwise(program: KernelProgram) -> KernelProgram:
    """The program with every such sum taken term by term, where each of the new ones waits less."""
    pool, around = program.pool, axes_around(program)
    roots = [one.body for one in program.definitions if one.pattern is None]
    written = {one.tensor for one in program.definitions}
    memo: dict[Expr, _Passes] = {}

    def step(expr: Expr, inner: Mapping[Expr, _Passes]) -> _Passes:
        passes: dict[Axis, int] = {}
        for arg in expr.args:
            for axis, count in inner[arg][0].items():
                passes[axis] = max(count, passes.get(axis, 0))
        if isinstance(expr, Reduce):
            passes[expr.axis] = passes.get(expr.axis, 0) + 1
        reads = isinstance(expr, Access) and expr.tensor in written
        return passes, reads or any(inner[arg][1] for arg in expr.args)

    def rule(expr: Expr, new: Mapping[Expr, Expr]) -> Expr | None:
        if not isinstance(expr, Reduce) or expr.kind != "sum" or not expr.dtype.is_float:
            return None
        body, axis = new[expr.body], expr.axis
        waits = fold([body], step, memo)[body][0].get(axis, 0)
        if not waits or expr.order or axis not in around[expr]:
            return None
        terms = _Terms(pool, axis)
        made = terms.total(body)
        summed = [memo[one] for one in terms.summed]
        sooner = all(passes.get(axis, 0) < waits and not reads for passes, reads in summed)
        return made if sooner and len(summed) <= MOST_TERMS else None

    new = rebuild(pool, roots, rule)
    definitions = (
        replace(one, body=new[one.body]) if one.pattern is None else one
        for one in program.definitions
    )
    names = {new.get(expr, expr): name for expr, name in program.names.items()}
    return replace(program, definitions=tuple(definitions), names=names)


def axes_around(program: KernelProgram) -> dict[Expr, frozenset[Axis]]:
    """The axes that have an index wherever an expression is read."""
    found: dict[Expr, frozenset[Axis]] = {}

    def read(expr: Expr, axes: frozenset[Axis]) -> None:
        found[expr] = found.get(expr, axes) & axes

    for one in program.definitions:
        read(one.body, frozenset(one.axes))
    for expr in reversed(postorder(list(found))):
        inside = found[expr] | {expr.axis} if isinstance(expr, Reduce) else found[expr]
        for arg in expr.args:
            read(arg, inside)
    return found


class _Terms:
    """Takes sums over an axis; ``summed``: what is left inside of them."""

    def __init__(self, pool: ExprPool, axis: Axis) -> None:
        self._pool = pool
        self._axis = axis
        self.summed: dict[Expr, None] = {}

    def total(self, expr: Expr) -> Expr:
        """The sum of an expression: of each of its terms, times what does not vary."""
        if isinstance(expr, Call) and (places := self._varying(expr)):
            operands = [
                self.total(one) if place in places else one
                for place, one in enumerate(expr.operands)
            ]
            return self._pool.call(expr.function, *operands, dtype=expr.dtype)
        self.summed[expr] = None
        return self._pool.reduce("sum", self._axis, expr)

    def _varying(self, expr: Call) -> tuple[int, ...]:
        """Which operands to sum; none where the function is not linear in them."""
        varies = tuple(place for place, one in enumerate(expr.operands) if self._varies(one))
        if expr.function in ("add", "sub"):
            return varies if all(map(self._is_product, expr.operands)) else ()
        linear = {"neg": ((0,),), "mul": ((0,), (1,)), "div": ((0,),)}.get(expr.function, ())
        return varies if varies in linear else ()

    def _varies(self, expr: Expr) -> bool:
        return self._axis in expr.free

    def _is_product(self, expr: Expr) -> bool:
        """Is it a product with a factor that does not vary, or made of such?"""
        if not isinstance(expr, Call) or not self._varies(expr):
            return False
        if expr.function in ("neg", "add", "sub"):
            return all(map(self._is_product, expr.operands))
        return expr.function in ("mul", "div") and len(self._varying(expr)) == 1
