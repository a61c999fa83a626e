"""The integers that a graph computes of the elements of its arrays.

In: the formulas of a graph; an integer of the C.  Out: is it one of them, at some place?

What a graph computes of ``int64`` elements is taken not to overflow, and what it converts to an
integer to fit.  So may the C compute that, and partial sums and products of what the graph sums and
multiplies.  It is found by the elements: one of the formula at the place of one of the C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

from symgrad.ir.dim import Axis, Dim, Element
from symgrad.ir.dtype import bool_
from symgrad.ir.expr import Call, Expr, Reduce
from symgrad.validate.symbolic.integers import coefficient
from symgrad.validate.symbolic.memory import Write, is_before, match, owner_of
from symgrad.validate.symbolic.normal import Polynomial, Reals, Term
from symgrad.validate.symbolic.parts import parts
from symgrad.validate.symbolic.values import Values


class Data:
    """``formulas``: what the graph computes, of any place."""

    def __init__(self, values: Values, formulas: Callable[[], Iterable[Expr]]) -> None:
        self._values, self._formulas = values, formulas

    def has(self, value: Dim) -> bool:
        """Does the graph compute this integer, or does it lie on the way to one of its sums?"""
        reals = Reals(self._values)
        found = reals.normal(self._values.expression(value))
        return any(_Fit(self._values, reals, one).of(found) for one in self._integers) or any(
            self.adds(kind, self._values.expression(part)) for kind, part in _added(value)
        )

    def adds(self, kind: str, part: Expr) -> bool:
        """Is it a term, or a factor, of a reduction of the graph, or several of them?"""
        reals = Reals(self._values)
        found = reals.normal(part)
        bodies = (body for own, body in self._bodies if own == kind)
        if any(_Fit(self._values, reals, one).of(found) for one in bodies):
            return True
        return isinstance(part, Reduce) and part.kind == kind and self.adds(kind, part.body)

    def converts(self, value: Expr) -> bool:
        """Does the graph make an integer of this float?"""
        reals = Reals(self._values)
        found = reals.normal(value)
        return any(_Fit(self._values, reals, one).of(found) for one in self._converted)

    # -- the graph

    @cached_property
    def _all(self) -> tuple[Expr, ...]:
        with self._values.integers.anywhere():
            return tuple(parts(self._values, self._formulas()))

    @cached_property
    def _integers(self) -> list[Polynomial]:
        made = [
            one for one in self._all
            if isinstance(one, (Call, Reduce)) and one.dtype.is_integer and one.dtype != bool_
        ]  # fmt: skip
        signs = [
            self._values.call("neg", one.args[0], dtype=one.dtype)
            for one in made if isinstance(one, Call) and one.function == "abs"
        ]  # fmt: skip
        return self._normal([*made, *signs])

    @cached_property
    def _converted(self) -> list[Polynomial]:
        return self._normal(
            one.operands[0] for one in self._all
            if isinstance(one, Call) and one.function == "cast"
            and one.dtype.is_integer and one.operands[0].dtype.is_float
        )  # fmt: skip

    @cached_property
    def _bodies(self) -> list[tuple[str, Polynomial]]:
        return [
            (one.kind, body)
            for one in self._all if isinstance(one, Reduce) and one.dtype.is_integer
            for body in self._normal([one.body])
        ]  # fmt: skip

    def _normal(self, found: Iterable[Expr]) -> list[Polynomial]:
        with self._values.integers.anywhere():
            reals = Reals(self._values)
            return list(dict.fromkeys(reals.normal(one) for one in found))


class _Fit:
    """A formula, of which an integer may be one place."""

    def __init__(self, values: Values, reals: Reals, formula: Polynomial) -> None:
        self._values, self._reals, self._formula = values, reals, formula

    def of(self, found: Polynomial) -> bool:
        """Is it the formula at some place?"""
        return self._fits(self._formula, found, frozenset(self._formula.axes))

    def _fits(self, formula: Polynomial, found: Polynomial, free: frozenset[Axis]) -> bool:
        if formula == found:
            return True
        own = [(tensor, index, free & {*index.axes}) for tensor, index in _elements(formula)]
        own.sort(key=lambda one: -len(one[2]))
        if not own or not own[0][2]:
            return False
        tensor, index, axes = own[0]
        ordered = tuple(sorted(axes, key=lambda axis: axis.key))
        nothing = self._values.truth(True)
        for other, address in _elements(found):
            if other != tensor:
                continue
            place = match(self._values.integers, Write(tensor, ordered, index, nothing, 0), address)
            if isinstance(place, dict):
                there = self._reals.substitute(formula, place)
                if self._fits(there, found, free - axes):
                    return True
        return False


def merged(value: Dim) -> str:
    """The array of which a sum, or a product, is that of two elements; else nothing."""
    atoms = [
        atom for monomial, factor in value.terms for atom, power in monomial if factor == power == 1
    ]  # fmt: skip
    names = {one.tensor for one in atoms if isinstance(one, Element)}
    whole = len(value.terms) in (1, 2) and sum(len(one) for one, _ in value.terms) == 2
    if not whole or len(atoms) != 2 or len(names) != 1:
        return ""
    (name,) = names
    return owner_of(name)[1] if is_before(name) else ""


def _added(value: Dim) -> Iterator[tuple[str, Dim]]:
    """What is added to an accumulator, or multiplied with it."""
    yield "sum", value
    yield "prod", value
    for atom in value.atoms:
        if isinstance(atom, Element) and is_before(atom.tensor):
            factor = coefficient(value, atom)
            if factor == 1:
                yield "sum", value - Dim.of(atom)
            elif factor is not None and factor * Dim.of(atom) == value:
                yield "prod", factor


def _elements(found: Polynomial) -> Iterator[tuple[str, Dim]]:
    """The elements of arrays in it, those within functions too."""
    for monomial, _ in found.terms:
        for term, _ in monomial:
            if term.kind in ("element", "bool"):
                yield term.parts[0], term.parts[1]
            for part in term.parts:
                yield from _inside(part)


def _inside(part: Any) -> Iterator[tuple[str, Dim]]:
    if isinstance(part, Polynomial):
        yield from _elements(part)
    elif isinstance(part, Term):
        yield from _elements(Polynomial.of(part))
    elif isinstance(part, tuple):
        for one in part:
            yield from _inside(one)
