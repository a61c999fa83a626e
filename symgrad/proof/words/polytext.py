"""Polynomials of the normal form as text, in the user's names.

In: polynomials, and the nodes that cut names stand for.  Out: one-line formulas, as keys (with the
names of the normal form), as they are printed, or as Python.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

from symgrad.ir.graph import Node
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.atoms import Atom, Monomial, Number
from symgrad.proof.normal.poly import ZERO, Poly, all_atoms, direct_atoms, exact, of_atom
from symgrad.proof.report.records import Condition
from symgrad.proof.scalars.bodies import PREFIX, op_of
from symgrad.proof.words.code import ATOM, NoSpelling
from symgrad.proof.words.relations import REVERSED, decimal, related, spelled

_LETTERS = "ijklmnopqrstuvw"
_FIRST = (kinds.NUMBER, kinds.SIZE)
_RELATIONS = {kinds.POSITIVE: "> 0", kinds.ATLEAST: ">= 0", kinds.EQUAL: "== 0"}


_NUMBERS = {"pi": repr(math.pi), "E": repr(math.e)}
KEY, WORDS, CODE = "key", "words", "code"


class PolyText:
    """Prints polynomials; index variables get the letters i, j, k, ... in order of appearance.

    ``style``: KEY, with the names of the normal form; WORDS, to be printed: values without a name
    are spelled; CODE, Python in terms of the inputs, which may have no spelling.  ``most``:
    characters to write; what needs more has no spelling.
    """

    def __init__(
        self, leaves: Mapping[str, Node] | None = None, style: str = KEY, most: int | None = None
    ) -> None:
        self.leaves = leaves or {}
        self.style = style
        self._left = most
        self._letters: dict[Atom, str] = {}
        self._spelled: dict[str, str] = {}
        self._bare = False

    def in_words(self) -> PolyText:
        """The same, to be printed."""
        return PolyText(self.leaves, WORDS)

    def condition(self, kind: str, poly: Poly, relation: str, remark: str = "") -> Condition:
        """A relation to 0 as a condition: what is a number on the right, ``x > -1``.

        A relation between elements at one and the same indices is one between tensors.
        """
        if relation == "row":
            kept = PolyText(self.leaves, WORDS)._truth(poly)
            return Condition(kind, f"every row has an entry that is not masked: {kept}")
        branch = _one_branch(poly) if relation == "==" else None
        if branch is not None:
            return self._beside(kind, *branch, remark)
        whole = self.whole(poly, relation)
        if whole is not None:
            with suppress(NoSpelling):
                said = related(*whole)
                return Condition(kind, said.text + remark, code=said.code)
        text, _ = PolyText(self.leaves, WORDS)._related(poly, relation)
        try:
            code, indices = PolyText(self.leaves, CODE)._related(poly, relation)
        except NoSpelling:
            code, indices = "", ()
        return Condition(kind, text + _places(text, indices) + remark, code=code, indices=indices)

    def _beside(self, kind: str, poly: Poly, side: Atom, holds: bool, remark: str) -> Condition:
        """That something is 0 where a condition holds, or does not."""
        compared = of_atom(side) if side.kind == kinds.LEAF else side.data[0]
        bare = self._is_elementwise(poly + compared)

        def said(style: str) -> tuple[str, tuple[tuple[str, str], ...]]:
            writer = PolyText(self.leaves, style)
            zero, free = writer._related(poly, "==", bare=bare)
            beside = writer._side(side, holds=holds, bare=bare)
            if style == CODE:
                joined = f"({zero}) & ({beside})" if bare else f"{zero} and {beside}"
                return joined, writer._free(poly + compared)
            return f"{zero} and {beside}", free

        text, _ = said(WORDS)
        try:
            code, indices = said(CODE)
        except NoSpelling:
            code, indices = "", ()
        return Condition(kind, text + remark, code=code, indices=() if bare else indices)

    def _truth(self, poly: Poly) -> str:
        """What is 0 or 1, as the condition that it is 1."""
        opposite = (-poly).plus(1).atom
        if opposite is None or not opposite.indicator:
            return self.of(poly)
        return self._side(opposite, holds=False, bare=False)

    def _side(self, condition: Atom, *, holds: bool, bare: bool) -> str:
        """A condition, or what is so where it does not hold."""
        if condition.kind == kinds.POSITIVE:
            compared: Poly = condition.data[0]
            one, relation = (compared, ">") if holds else (-compared, ">=")
            return self._related(one, relation, bare=bare)[0]
        if condition.kind == kinds.EQUAL:
            text, _ = self._related(condition.data[0], "==", bare=bare)
            return text if holds else text.replace(" == ", " != ")
        self._bare = bare
        text = self._atom(condition)
        return text if holds else f"~{text}" if bare and self.style == CODE else f"not {text}"

    def whole(self, poly: Poly, relation: str) -> tuple[Node, str, Fraction] | None:
        """A relation of each element of one cut node to a number; else None."""
        left, relation, right = _solved(poly, relation)
        atom = left.atom
        if atom is None or atom.kind != kinds.LEAF or not self._is_elementwise(left):
            return None
        node = self.leaves.get(atom.data[0])
        return None if node is None else (node, relation, right)

    def equation(self, kind: str, left: Poly, right: Poly) -> Condition:
        """Two polynomials that are equal."""
        writer = PolyText(self.leaves, CODE)
        text = f"{writer.of(left)} == {writer.of(right)}"
        indices = writer._free(left - right)
        return Condition(kind, text + _places(text, indices), code=text, indices=indices)

    def _related(
        self, poly: Poly, relation: str, *, bare: bool | None = None
    ) -> tuple[str, tuple[tuple[str, str], ...]]:
        left, relation, right = _solved(poly, relation)
        self._bare = self._is_elementwise(left) if bare is None else bare
        return f"{self.of(left)} {relation} {decimal(right)}", self._free(left)

    def _free(self, poly: Poly) -> tuple[tuple[str, str], ...]:
        """The letters that stand for all values of an index, each with the number of these."""
        free = [(letter, atom) for atom, letter in self._letters.items() if atom in poly.free]
        return tuple((letter, self.of(atom.data[1])) for letter, atom in free)

    def _is_elementwise(self, poly: Poly) -> bool:
        """Does it read each tensor at its own indices, in order, and nothing else?"""
        places: set[tuple[Poly, ...]] = set()
        todo, seen = list(direct_atoms(poly)), set[Atom]()
        while todo:
            atom = todo.pop()
            if atom in seen:
                continue
            seen.add(atom)
            if atom.kind == kinds.LEAF:
                node = self.leaves.get(atom.data[0])
                shape = node.shape if node is not None else atom.data[1]
                if atom.data[1]:
                    places.add(
                        tuple(
                            index for index, size in zip(atom.data[1], shape, strict=True)
                            if not (index == ZERO and size == 1)
                        )
                    )  # fmt: skip
            elif atom.kind in (kinds.FUNCTION, kinds.POWER, kinds.EXP, kinds.NUMBER, kinds.SIZE):
                todo += direct_atoms(atom.data)
            else:
                return False
        if len(places) > 1:
            return False
        indices = [index.atom for index in next(iter(places), ())]
        return all(i is not None and i.kind == kinds.INDEX for i in indices) and len(
            set(indices)
        ) == len(indices)

    def of(self, poly: Poly) -> str:
        """The polynomial on one line."""
        return self._joined(sorted(poly.terms.items(), key=_term_order))

    def key(self, poly: Poly) -> str:
        """The same in an order of terms that does not depend on the names of indices."""

        def order(item: tuple[Monomial, Number]) -> tuple[bool, str]:
            return item[1] < 0, PolyText(self.leaves)._monomial(item[0], 1)

        if self._left is not None and len(poly.terms) > self._left:
            raise NoSpelling("it is too long")
        return self._joined(sorted(poly.terms.items(), key=order))

    def _joined(self, terms: Sequence[tuple[Monomial, Number]]) -> str:
        if not terms:
            return "0"
        text = ""
        for monomial, value in terms:
            part = self._monomial(monomial, value if value >= 0 else -value)
            sign = ("-" if value < 0 else "") if not text else (" - " if value < 0 else " + ")
            text += sign + part
        if self._left is not None:
            self._left -= len(text)
            if self._left < 0:
                raise NoSpelling("it is too long")
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
            return self._applied("exp", inner.scaled(exponent))
        text = self._atom(atom)
        if exponent == 1:
            return text
        if exponent == Fraction(1, 2) and self.style != CODE:
            return f"sqrt({text.removeprefix('(').removesuffix(')') if text[:1] == '(' else text})"
        shown = str(exponent) if isinstance(exponent, int) else f"({exponent})"
        return f"{text}**{shown}"

    def _atom(self, atom: Atom) -> str:
        kind, data = atom.kind, atom.data
        if kind == kinds.INDEX:
            return self._letter(atom)
        if kind == kinds.NUMBER and self.style == CODE:
            return _NUMBERS.get(str(data[0]), str(data[0]))
        if kind in (kinds.SIZE, kinds.NUMBER):
            return str(data[0])
        if kind == kinds.LEAF:
            return self._leaf(data)
        if kind == kinds.FUNCTION:
            return self._applied(data[0], data[1])
        if kind == kinds.ANGLE:
            return f"{self._function('atan2')}({self.of(data[0])}, {self.of(data[1])})"
        if kind == kinds.POWER:
            return f"({self.of(data[0])})"
        if kind in _RELATIONS:
            left, right = ("[", "]") if self.style != CODE else ("(", ")")
            return f"{left}{self.of(data[0])} {_RELATIONS[kind]}{right}"
        if kind == kinds.SUM:
            return self._over("sum", data[0], self._monomial(data[1], 1))
        if kind in (kinds.MAXIMUM, kinds.ARGMAX, kinds.PRODUCT):
            names = {kinds.MAXIMUM: "max", kinds.ARGMAX: "argmax", kinds.PRODUCT: "prod"}
            return self._over(names[kind], [data[0]], self.of(data[1]))
        if kind == kinds.FLOORDIV:
            return f"({self.of(data[0])} // {self.of(data[1])})"
        return "float('inf')" if self.style == CODE else "inf"

    def _over(self, name: str, binders: Sequence[Atom], body: str) -> str:
        """A sum, a product or a maximum over indices."""
        if self.style != CODE:
            return f"{name}_{{{', '.join(map(self._letter, binders))}}}({body})"
        if name not in ("sum", "max"):
            raise NoSpelling(name)
        loops = (f"for {self._letter(one)} in range({self.of(one.data[1])})" for one in binders)
        return f"{name}({body} {' '.join(loops)})"

    def _applied(self, name: str, argument: Poly) -> str:
        """A function of a polynomial; in Python of a tensor also where it is of numbers alone."""
        inner = self.of(argument)
        if self.style == CODE and not any(a.kind == kinds.LEAF for a in all_atoms(argument)):
            inner = f"sg.tensor(1.0 * ({inner}), dtype=sg.float64)"
        return f"{self._function(name)}({inner})"

    def _function(self, name: str) -> str:
        if self.style != CODE:
            return name.removeprefix(PREFIX)
        op = None if name == "atan2" else op_of(name)
        if op is None and name != "atan2":
            raise NoSpelling(name)
        return f"sg.{name if op is None else op.name}"

    def _leaf(self, data: tuple[Any, ...]) -> str:
        name, indices = data[0], data[1]
        shown = self._name(name)
        if self._bare or not indices:
            return shown
        return f"{shown}[{', '.join(self.of(index) for index in indices)}]"

    def _name(self, name: str) -> str:
        node = self.leaves.get(name)
        if node is None or self.style == KEY or node.op == "input":
            return node.label if node is not None else name
        if name not in self._spelled:
            self._spelled[name] = self._spelling(node)
        return self._spelled[name]

    def _spelling(self, node: Node) -> str:
        try:
            said = spelled(node, ATOM)
        except NoSpelling:
            if self.style == CODE:
                raise
            return f"(the result of {node.op})"
        if self.style == CODE and not said.code:
            raise NoSpelling(node.op)
        return said.code if self.style == CODE else said.text

    def _letter(self, atom: Atom) -> str:
        if atom not in self._letters:
            count = len(self._letters)
            letter = _LETTERS[count % len(_LETTERS)]
            self._letters[atom] = letter + str(count // len(_LETTERS) or "")
        return self._letters[atom]


def _one_branch(poly: Poly) -> tuple[Poly, Atom, bool] | None:
    """What a polynomial is on one side of a condition, if it is another number than 0 elsewhere.

    With the condition, and whether it holds there.  Of a power its base.
    """
    split = (kinds.POSITIVE, kinds.EQUAL, kinds.LEAF)
    sides = {a for m in poly.terms for a, _ in m if a.indicator and a.kind in split}
    for side in sorted(sides, key=lambda atom: (atom.erased, atom.key)):
        fails, holds = dict[Monomial, Number](), dict[Monomial, Number]()
        for monomial, value in poly.terms.items():
            rest = tuple((a, e) for a, e in monomial if a is not side)
            holds[rest] = holds.get(rest, 0) + value
            if len(rest) == len(monomial):
                fails[rest] = value
        pieces = Poly({m: v for m, v in holds.items() if v}), Poly(fails)
        for (here, elsewhere), so in zip((pieces, pieces[::-1]), (True, False), strict=True):
            if here.constant is None and elsewhere.constant:
                return _without_powers(here), side, so
    return None


def _without_powers(poly: Poly) -> Poly:
    """A polynomial that is 0 where another one is: of a power its base."""
    if len(poly.terms) != 1:
        return poly
    ((monomial, _),) = poly.terms.items()
    plain = all(isinstance(e, int) and e > 0 for _, e in monomial)
    return Poly({tuple((atom, 1) for atom, _ in monomial): 1}) if plain else poly


def _places(text: str, indices: Sequence[tuple[str, str]]) -> str:
    """What letters stand for, where they index nothing: `` (i < n, j < m)``."""
    if not indices or "[" in text:
        return ""
    return f" ({', '.join(f'{letter} < {extent}' for letter, extent in indices)})"


def _solved(poly: Poly, relation: str) -> tuple[Poly, str, Fraction]:
    """A relation to 0 with the number on the right, and its first term not negative."""
    number = poly.terms.get((), 0)
    rest = poly.plus(-number) if len(poly.terms) > 1 else poly
    right = Fraction(-number) if rest is not poly else Fraction(0)
    factor = Fraction(1)
    if len(rest.terms) == 1:
        factor = Fraction(next(iter(rest.terms.values())))
    elif all(value < 0 for value in rest.terms.values()) or (
        not right and next(iter(sorted(rest.terms.items(), key=_term_order)))[1] < 0
    ):
        factor = Fraction(-1)
    if factor != 1:
        rest, right = rest.scaled(exact(1 / factor)), right / factor
    return rest, relation if factor > 0 else REVERSED[relation], right


def _term_order(item: tuple[Monomial, Number]) -> tuple[bool, list[tuple[int, float]]]:
    monomial, value = item
    return value < 0, [(atom.erased, float(exponent)) for atom, exponent in monomial]
