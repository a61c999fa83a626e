"""Polynomials written as formulas: what the tests of the rules are made of.

In: operators and functions.  Out: ``Term``: a polynomial with its context, and values of it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import mpmath

from symgrad.proof.normal import products
from symgrad.proof.normal.algebra import floordiv, leaf, multiply, positive, power, remainder
from symgrad.proof.normal.atoms import INDEX, INFINITY, SIZE, Atom
from symgrad.proof.normal.context import Proof, Reading
from symgrad.proof.normal.facts import Facts
from symgrad.proof.normal.from_expr import choose, compare
from symgrad.proof.normal.functions import apply
from symgrad.proof.normal.maxima import argmax, maximum
from symgrad.proof.normal.numeric import Evaluation
from symgrad.proof.normal.poly import Poly, constant, of_atom
from symgrad.proof.normal.rules import RULES
from symgrad.proof.normal.sums import sum_over
from symgrad.proof.normal.zero import is_zero


class Term:
    """A polynomial that can be calculated with."""

    def __init__(self, algebra: Algebra, poly: Poly) -> None:
        self.algebra, self.poly = algebra, poly

    def _other(self, value: Term | int | Fraction) -> Poly:
        return value.poly if isinstance(value, Term) else constant(value)

    def _term(self, poly: Poly) -> Term:
        return Term(self.algebra, poly)

    def __add__(self, other: Term | int | Fraction) -> Term:
        return self._term(self.poly + self._other(other))

    def __radd__(self, other: int | Fraction) -> Term:
        return self + other

    def __sub__(self, other: Term | int | Fraction) -> Term:
        return self._term(self.poly - self._other(other))

    def __rsub__(self, other: int | Fraction) -> Term:
        return self._term(constant(other) - self.poly)

    def __neg__(self) -> Term:
        return self._term(-self.poly)

    def __mul__(self, other: Term | int | Fraction) -> Term:
        return self._term(multiply(self.algebra.context, self.poly, self._other(other)))

    def __rmul__(self, other: int | Fraction) -> Term:
        return self * other

    def __truediv__(self, other: Term | int | Fraction) -> Term:
        inverse = power(self.algebra.context, self._other(other), -1)
        return self * self._term(inverse)

    def __rtruediv__(self, other: int | Fraction) -> Term:
        return self._term(constant(other)) / self

    def __pow__(self, exponent: int | Fraction) -> Term:
        return self._term(power(self.algebra.context, self.poly, exponent))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (Term, int, Fraction)):
            return self.poly == self._other(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.poly)

    def value(self, at: Mapping[str, int] | None = None, seed: int = 0, **sizes: int) -> Any:
        """Its value at a random point; ``at`` gives the index variables by name."""
        everything = {**{"n": 2, "m": 3}, **sizes}
        draws = Draws(seed)
        indices = {v: (at or {})[v.data[0]] for v in self.poly.free}
        return Evaluation(everything, draws, indices).value(self.poly)


class Draws:
    """Random elements of tensors, each drawn from its own name and place."""

    def __init__(self, seed: int, least: Fraction | None = None) -> None:
        self.seed, self.least = seed, least

    def __call__(self, tensor: str, indices: tuple[int, ...]) -> Any:
        draw = random.Random(f"{self.seed} {tensor} {indices}")
        if tensor in ("index", "order"):
            return draw.randrange(3)
        if tensor == "mask":
            return draw.random() < 0.5
        return mpmath.mpf(draw.randint(1, 4096) * draw.choice((-1, 1))) / 2048


class Algebra:
    """Makes terms of one context."""

    def __init__(
        self, facts: Facts | None = None, *, factored: bool = False, reading: Reading | None = None
    ) -> None:
        self.context = Proof(RULES, facts, factored=factored, reading=reading)

    def term(self, poly: Poly) -> Term:
        return Term(self, poly)

    def size(self, name: str) -> Term:
        return self.term(of_atom(self.context.atom(SIZE, name)))

    def index(self, name: str, extent: Term | int) -> Term:
        whole = extent.poly if isinstance(extent, Term) else constant(extent)
        return self.term(of_atom(self.context.atom(INDEX, name, whole)))

    def leaf(self, tensor: str, *indices: Term | int, sort: str = "real") -> Term:
        polys = tuple(i.poly if isinstance(i, Term) else constant(i) for i in indices)
        return self.term(leaf(self.context, tensor, polys, sort))

    def apply(self, name: str, argument: Term) -> Term:
        return self.term(apply(self.context, name, argument.poly))

    def exp(self, argument: Term) -> Term:
        return self.apply("exp", argument)

    def log(self, argument: Term) -> Term:
        return self.apply("log", argument)

    def sum(self, indices: list[Term], body: Term) -> Term:
        return self.term(sum_over(self.context, [_atom(i) for i in indices], body.poly))

    def max(self, index: Term, body: Term) -> Term:
        return self.term(maximum(self.context, _atom(index), body.poly))

    def argmax(self, index: Term, body: Term) -> Term:
        return self.term(argmax(self.context, _atom(index), body.poly))

    def prod(self, index: Term, body: Term) -> Term:
        return self.term(products.product(self.context, _atom(index), body.poly))

    def positive(self, argument: Term) -> Term:
        return self.term(positive(self.context, argument.poly))

    def compare(self, left: Term, relation: str, right: Term | int) -> Term:
        other = right.poly if isinstance(right, Term) else constant(right)
        return self.term(compare(self.context, relation, left.poly, other))

    def where(self, condition: Term, chosen: Term, other: Term | int) -> Term:
        rest = other.poly if isinstance(other, Term) else constant(other)
        return self.term(choose(self.context, condition.poly, chosen.poly, rest))

    def floordiv(self, left: Term, right: Term | int) -> Term:
        divisor = right.poly if isinstance(right, Term) else constant(right)
        return self.term(floordiv(self.context, left.poly, divisor))

    def mod(self, left: Term, right: Term | int) -> Term:
        divisor = right.poly if isinstance(right, Term) else constant(right)
        return self.term(remainder(self.context, left.poly, divisor))

    def infinity(self) -> Term:
        return self.term(of_atom(self.context.atom(INFINITY)))

    def stage(self, difference: Term) -> str | None:
        """The stage that shows the difference to be zero."""
        return is_zero(self.context, difference.poly).stage

    def owed(self, rule: str) -> list[Poly]:
        """The bases that a rule owes."""
        return [o.base for o in self.context.obligations.values() if o.rule == rule]

    def assumed(self, rule: str) -> list[tuple[str, Poly]]:
        """The conditions that a rule prints."""
        return [(a.relation, a.poly) for a in self.context.requirements.values() if a.rule == rule]


def _atom(index: Term) -> Atom:
    atom = index.poly.atom
    assert atom is not None
    return atom


class Standard(Algebra):
    """Names that most tests use."""

    def __init__(
        self, facts: Facts | None = None, *, factored: bool = False, reading: Reading | None = None
    ) -> None:
        super().__init__(facts, factored=factored, reading=reading)
        self.n, self.m = self.size("n"), self.size("m")
        self.i, self.j = self.index("i", self.n), self.index("j", self.m)
        self.k, self.l = self.index("k", self.n), self.index("l", self.n)
        self.x, self.y = self.leaf("x", self.i), self.leaf("y", self.i)

    def at(self, tensor: str, *indices: Term | int) -> Term:
        return self.leaf(tensor, *indices)
