"""Scalar expressions as plain trees: what sympy says of an op, without sympy.

In: trees that were kept, or what the records of ops make of operands.  Out: ``Term``.

A term has the name of a class of sympy and the terms that it is applied to.  Importing sympy takes
longer than most proofs.  So the meanings of symgrad's own ops, and their partial derivatives, are
kept as terms in ``tables``, and the constraints of records are applied to terms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Code = int | str | bool | tuple[Any, ...]
"""A term as literals of Python: a number, a symbol or constant, or a class and its arguments."""

SYMBOL, NUMBER = "Symbol", "Rational"


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """``kind``: a class of sympy; ``args``; ``value``: of a number, or the name of a symbol.

    Numbers are folded where records compute with terms; nothing else is simplified.
    """

    kind: str
    args: tuple[Term, ...] = ()
    value: Fraction | str | None = None

    @property
    def number(self) -> Fraction | None:
        """The value of a rational number; None of anything else."""
        return self.value if isinstance(self.value, Fraction) else None

    @property
    def is_number(self) -> bool:
        """Is there no symbol in it?"""
        return self.kind != SYMBOL and all(arg.is_number for arg in self.args)

    def parts(self) -> Iterator[Term]:
        """Itself, and all that it is made of."""
        yield self
        for arg in self.args:
            yield from arg.parts()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (int, Fraction)):
            return self.number == other
        return isinstance(other, Term) and (self.kind, self.value, self.args) == (
            other.kind, other.value, other.args,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.kind, self.value, self.args))

    # -- what the constraints of records compute with

    def __add__(self, other: Term | int) -> Term:
        return _folded("Add", self, term(other), 0)

    def __radd__(self, other: int) -> Term:
        return _folded("Add", term(other), self, 0)

    def __neg__(self) -> Term:
        return self * -1

    def __sub__(self, other: Term | int) -> Term:
        return self + -term(other)

    def __rsub__(self, other: int) -> Term:
        return term(other) + -self

    def __mul__(self, other: Term | int) -> Term:
        return _folded("Mul", self, term(other), 1)

    def __rmul__(self, other: int) -> Term:
        return _folded("Mul", term(other), self, 1)

    def __truediv__(self, other: Term | int) -> Term:
        return self * term(other) ** -1

    def __pow__(self, other: Term | int) -> Term:
        power = term(other)
        if self.number is not None and power.number is not None and power.number.denominator == 1:
            return term(self.number ** int(power.number))
        return self if power == 1 else Term("Pow", (self, power))

    def __lt__(self, other: int) -> bool:
        return self._rational() < other

    def __ge__(self, other: int) -> bool:
        return self._rational() >= other

    def __int__(self) -> int:
        return int(self._rational())

    def _rational(self) -> Fraction:
        if self.number is None:
            raise TypeError(f"{self} is no rational number")
        return self.number


def term(value: Term | int | Fraction) -> Term:
    """A number as a term."""
    return value if isinstance(value, Term) else Term(NUMBER, (), Fraction(value))


def symbol(name: str) -> Term:
    """A symbol."""
    return Term(SYMBOL, (), name)


OPERANDS = tuple(symbol(f"u{place}") for place in range(6))
"""The operands of every body."""
PI, E, TRUE, FALSE = Term("pi"), Term("E"), Term("true"), Term("false")
_CONSTANTS = {one.kind: one for one in (PI, E, TRUE, FALSE)}
ZERO = term(0)


def _folded(kind: str, left: Term, right: Term, neutral: int) -> Term:
    """A sum or a product, a number first; numbers are put together."""
    if left.number is not None and right.number is not None:
        sum_, product = left.number + right.number, left.number * right.number
        return term(sum_ if kind == "Add" else product)
    if right.number is not None:
        left, right = right, left
    return right if left == neutral else Term(kind, (left, right))


class Functions:
    """What records take for sympy where they are applied to terms: ``sp.cos(x)`` is a term."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args: Term(name, tuple(map(term, args)))

    @staticmethod
    def Integer(value: int) -> Term:
        """A whole number."""
        return term(value)

    @staticmethod
    def Rational(above: int, below: int = 1) -> Term:
        """A fraction."""
        return term(Fraction(above, below))


FUNCTIONS = Functions()


def linear(found: Term, variable: Term) -> tuple[Fraction, Fraction] | None:
    """``(a, b)`` where a term is ``a variable + b``, a not 0; None where it is not seen to be."""
    pair = _linear(found, variable)
    return pair if pair is not None and pair[0] else None


def _linear(found: Term, variable: Term) -> tuple[Fraction, Fraction] | None:
    if found == variable:
        return Fraction(1), Fraction(0)
    if found.number is not None:
        return Fraction(0), found.number
    parts = [_linear(arg, variable) for arg in found.args]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or found.kind not in ("Add", "Mul"):
        return None
    if found.kind == "Add":
        return sum((a for a, _ in known), Fraction(0)), sum((b for _, b in known), Fraction(0))
    slope, offset = Fraction(0), Fraction(1)
    for a, b in known:
        if slope and a:
            return None
        slope, offset = slope * b + offset * a, offset * b
    return slope, offset


# -- as literals of Python


def decoded(code: Code) -> Term:
    """The term that literals say."""
    if isinstance(code, bool):
        return TRUE if code else FALSE
    if isinstance(code, int):
        return term(code)
    if isinstance(code, str):
        return _CONSTANTS.get(code) or symbol(code)
    kind, *args = code
    if kind == "/":
        return term(Fraction(*args))
    return Term(kind, tuple(map(decoded, args)))


def encoded(found: Term) -> Code:
    """A term as literals."""
    if found.number is not None:
        whole = found.number.denominator == 1
        return int(found.number) if whole else ("/", *found.number.as_integer_ratio())
    if found in (TRUE, FALSE):
        return found is TRUE or found == TRUE
    if found.kind == SYMBOL:
        return str(found.value)
    return (found.kind, *map(encoded, found.args)) if found.args else found.kind
