"""Polynomials of the normal form as text, in the user's names.

In: polynomials, and the nodes that cut names stand for.  Out: one-line formulas.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from symgrad.ir.graph import Node
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.atoms import Atom, Monomial, Number
from symgrad.proof.normal.poly import Poly
from symgrad.proof.scalars.bodies import PREFIX

_LETTERS = "ijklmnopqrstuvw"
_FIRST = (kinds.NUMBER, kinds.SIZE)
_RELATIONS = {kinds.POSITIVE: "> 0", kinds.ATLEAST: ">= 0", kinds.EQUAL: "== 0"}


class PolyText:
    """Prints polynomials; index variables get the letters i, j, k, ... in order of appearance."""

    def __init__(self, leaves: Mapping[str, Node] | None = None) -> None:
        self.leaves = dict(leaves or {})
        self._letters: dict[Atom, str] = {}

    def relation(self, poly: Poly, relation: str) -> str:
        """A condition such as ``x[i, j] > 0``."""
        if relation == "row":
            return f"every row has an entry that is not masked: {self.of(poly)}"
        return f"{self.of(poly)} {relation} 0"

    def of(self, poly: Poly) -> str:
        """The polynomial on one line."""
        if not poly.terms:
            return "0"
        text = ""
        for monomial, value in sorted(poly.terms.items(), key=_term_order):
            part = self._monomial(monomial, value if value >= 0 else -value)
            sign = ("-" if value < 0 else "") if not text else (" - " if value < 0 else " + ")
            text += sign + part
        return text

    def extents(self) -> list[str]:
        """How many values each index has that was printed, in order of their letters."""
        return [self.of(atom.data[1]) for atom in list(self._letters)]

    def _monomial(self, monomial: Monomial, value: Number) -> str:
        factors = sorted(monomial, key=lambda item: (item[0].kind not in _FIRST, item[0].erased))
        above = [self._factor(a, e) for a, e in factors if e > 0 or a.kind == kinds.EXP]
        below = [self._factor(a, -e) for a, e in factors if e < 0 and a.kind != kinds.EXP]
        numerator, denominator = Fraction(value).numerator, Fraction(value).denominator
        if numerator != 1 or not above:
            above.insert(0, str(numerator))
        if denominator != 1:
            below.insert(0, str(denominator))
        top = " * ".join(above)
        if not below:
            return top
        bottom = " * ".join(below)
        return f"{top} / {bottom if len(below) == 1 else f'({bottom})'}"

    def _factor(self, atom: Atom, exponent: Number) -> str:
        if atom.kind == kinds.EXP:
            inner: Poly = atom.data[0]
            return f"exp({self.of(inner.scaled(exponent))})"
        text = self._atom(atom)
        if exponent == 1:
            return text
        if exponent == Fraction(1, 2):
            return f"sqrt({text.removeprefix('(').removesuffix(')') if text[:1] == '(' else text})"
        shown = str(exponent) if isinstance(exponent, int) else f"({exponent})"
        return f"{text}**{shown}"

    def _atom(self, atom: Atom) -> str:
        kind, data = atom.kind, atom.data
        if kind == kinds.INDEX:
            return self._letter(atom)
        if kind in (kinds.SIZE, kinds.NUMBER):
            return str(data[0])
        if kind == kinds.LEAF:
            return self._leaf(data)
        if kind == kinds.FUNCTION:
            return f"{data[0].removeprefix(PREFIX)}({self.of(data[1])})"
        if kind == kinds.ANGLE:
            return f"atan2({self.of(data[0])}, {self.of(data[1])})"
        if kind == kinds.POWER:
            return f"({self.of(data[0])})"
        if kind in _RELATIONS:
            return f"[{self.of(data[0])} {_RELATIONS[kind]}]"
        if kind == kinds.SUM:
            letters = ", ".join(self._letter(binder) for binder in data[0])
            return f"sum_{{{letters}}}({self._monomial(data[1], 1)})"
        if kind in (kinds.MAXIMUM, kinds.ARGMAX, kinds.PRODUCT):
            names = {kinds.MAXIMUM: "max", kinds.ARGMAX: "argmax", kinds.PRODUCT: "prod"}
            return f"{names[kind]}_{{{self._letter(data[0])}}}({self.of(data[1])})"
        if kind == kinds.FLOORDIV:
            return f"({self.of(data[0])} // {self.of(data[1])})"
        return "inf"

    def _leaf(self, data: tuple[Any, ...]) -> str:
        name, indices = data[0], data[1]
        node = self.leaves.get(name)
        shown = node.label if node is not None else name
        return f"{shown}[{', '.join(self.of(index) for index in indices)}]" if indices else shown

    def _letter(self, atom: Atom) -> str:
        if atom not in self._letters:
            count = len(self._letters)
            letter = _LETTERS[count % len(_LETTERS)]
            self._letters[atom] = letter + str(count // len(_LETTERS) or "")
        return self._letters[atom]


def _term_order(item: tuple[Monomial, Number]) -> tuple[bool, list[tuple[int, float]]]:
    monomial, value = item
    return value < 0, [(atom.erased, float(exponent)) for atom, exponent in monomial]
