"""Index notation as LaTeX: sums with limits, indices as subscripts, fractions, powers, functions.

In: expressions.  Out: the text of formulas, as MathJax and KaTeX read them.

A part that is used several times and is not short gets a name of its own, so that no formula is
longer than the graph it comes from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from symgrad.ir.dim import Axis, Dim, Element, Size
from symgrad.ir.expr import Access, Call, Expr, IntValue, Literal, Reduce, fold, postorder
from symgrad.ops.record import Op, get

LETTERS = "ijklpqrstuvabcdefgh"
SHARED_SIZE = 7
"""The least number of parts of an expression that gets a name when it is used again."""
_BINDINGS = ("logic", "relation", "sum", "big", "product", "power", "atom")
_LOGIC, _RELATION, _SUM, _BIG, _PRODUCT, _POWER, _ATOM = range(7)
Text = tuple[str, int]
_NEGATIVE = re.compile(r"-[\d.]+")
_GREEK = re.compile(
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|"
    "upsilon|phi|chi|psi|omega"
)
_REDUCTIONS = {
    "sum": r"\sum", "prod": r"\prod", "max": r"\max", "min": r"\min", "any": r"\bigvee",
    "all": r"\bigwedge", "argmax": r"\operatorname*{arg\,max}",
    "argmin": r"\operatorname*{arg\,min}",
}  # fmt: skip


def symbol(name: str) -> str:
    r"""The name of a tensor or a size: ``x``, ``\gamma``, ``\mathrm{grad\_output}``."""
    if _GREEK.fullmatch(name):
        return rf"\{name}" if name != "epsilon" else r"\varepsilon"
    if len(name) == 1 and name.isalpha():
        return name
    escaped = re.sub(r"([_%#&${}])", r"\\\1", re.sub(r"[\\^~]", "_", name))
    return rf"\mathrm{{{escaped}}}"


class LatexWriter:
    """Formulas with one set of letters for their index variables.

    ``names``: the names of tensors, those of cut nodes under ``"%<index>"``.  ``taken``: what no
    index variable may be called.
    """

    def __init__(self, names: Mapping[str, str], taken: Iterable[str] = ()) -> None:
        self.names = names
        self.taken = {*taken, *names.values()}
        self.letters: dict[Axis, str] = {}
        self.shared: dict[int, tuple[str, tuple[Axis, ...]]] = {}

    # -- names

    def letter(self, axis: Axis) -> str:
        """The letter of an index variable, the same in all formulas."""
        if axis not in self.letters:
            free = [letter for letter in LETTERS if letter not in self.taken]
            number = len(self.letters)
            letter = free[number % len(free)] if free else "i"
            again = number // max(len(free), 1)
            self.letters[axis] = rf"{letter}^{{\prime}}" if again == 1 else (
                letter if not again else rf"{letter}^{{({again})}}"
            )  # fmt: skip
        return self.letters[axis]

    def element(self, name: str, indices: Sequence[Dim]) -> str:
        """``x_{i, j + 1}``."""
        inside = ", ".join(map(self.dim, indices))
        return f"{symbol(name)}_{{{inside}}}" if indices else symbol(name)

    # -- formulas

    def formulas(self, left: str, body: Expr) -> list[str]:
        """``left = body``, and the definitions of the parts that were given names."""
        fresh = self._share(body)
        lines = [f"{left} &= {self.text(body)}"]
        for part in fresh:
            name, axes = self.shared.pop(part.number)
            here = self.element(name, [Dim.of(axis) for axis in axes])
            lines.append(f"{here} &= {self.text(part)}")
            self.shared[part.number] = (name, axes)
        return lines

    def _share(self, body: Expr) -> list[Expr]:
        """Name the parts that are used several times; return those that are new."""
        uses: dict[int, int] = {}
        parts = postorder([body])
        for part in parts:
            for arg in part.args:
                uses[arg.number] = uses.get(arg.number, 0) + 1
        sizes: dict[int, int] = {}
        fresh = []
        for part in parts:
            size = 1 + sum(sizes[arg.number] for arg in part.args)
            known = part.number in self.shared
            if not known and uses.get(part.number, 0) > 1 and size >= SHARED_SIZE:
                axes = tuple(sorted(part.free, key=lambda axis: axis.key))
                self.shared[part.number] = (f"u{len(self.shared) + 1}", axes)
                fresh.append(part)
                known = True
            sizes[part.number] = 1 if known else size
        return fresh

    def text(self, body: Expr) -> str:
        """One expression."""
        return fold([body], self._one)[body][0]

    def _one(self, part: Expr, texts: Mapping[Expr, Text]) -> Text:
        if part.number in self.shared:
            name, axes = self.shared[part.number]
            return self.element(name, [Dim.of(axis) for axis in axes]), _ATOM
        if isinstance(part, Literal):
            return _number(part.value)
        if isinstance(part, IntValue):
            text = self.dim(part.value)
            return text, _ATOM if part.value.atom or part.value.constant is not None else _SUM
        if isinstance(part, Access):
            return self.element(self.names.get(part.tensor, part.tensor), part.indices), _ATOM
        if isinstance(part, Reduce):
            return self._reduce(part, texts[part.body])
        assert isinstance(part, Call)
        return self._call(part, [texts[operand] for operand in part.operands])

    def _reduce(self, part: Reduce, body: Text) -> Text:
        letter, sign = self.letter(part.axis), _REDUCTIONS[part.kind]
        if part.kind in ("sum", "prod"):
            limits = f"_{{{letter}=0}}^{{{self.dim(part.axis.extent - 1)}}}"
        else:
            limits = rf"_{{0 \le {letter} < {self.dim(part.axis.extent)}}}"
        return f"{sign}{limits} {_within(body, _BIG)}", _BIG

    def _call(self, part: Call, operands: Sequence[Text]) -> Text:
        name = part.function
        if name in ("add", "mul") and part.operands[0] is part.operands[1]:
            doubled = ("square", operands[:1]) if name == "mul" else ("mul", [_TWO, operands[0]])
            return _applied(*doubled)
        if name == "pi":
            return r"\pi", _ATOM
        if name == "cast":
            was_bool = part.operands[0].dtype.short == "bool" and part.dtype.short != "bool"
            return (rf"\left[{operands[0][0]}\right]", _ATOM) if was_bool else operands[0]
        return _applied(name, operands)

    # -- integers

    def dim(self, dim: Dim) -> str:
        """An integer expression."""
        terms = []
        for monomial, value in reversed(dim.terms):
            factors = [self._power(atom, power) for atom, power in monomial]
            if abs(value) != 1 or not factors:
                factors.insert(0, str(abs(value)))
            terms.append(("-" if value < 0 else "+", r" \, ".join(factors)))
        terms.sort(key=lambda term: term[0] == "-")
        text = " ".join(f"{sign} {body}" for sign, body in terms)
        return (text.removeprefix("+ ") if text[:1] == "+" else text.replace("- ", "-", 1)) or "0"

    def _power(self, atom: object, power: int) -> str:
        text = self._atom(atom)
        return text if power == 1 else f"{{{text}}}^{{{power}}}"

    def _atom(self, atom: object) -> str:
        if isinstance(atom, Axis):
            return self.letter(atom)
        if isinstance(atom, Size):
            return symbol(atom.name)
        if isinstance(atom, Element):
            return self.element(self.names.get(atom.tensor, atom.tensor), atom.indices)
        left, right = (self.dim(part) for part in (atom.left, atom.right))  # type: ignore[attr-defined]
        pattern: str = _DERIVED[atom.function]  # type: ignore[attr-defined]
        return pattern.format(left, right)


_DERIVED = {
    "floordiv": r"\left\lfloor \frac{{{0}}}{{{1}}} \right\rfloor",
    "mod": r"\left(\left({0}\right) \bmod \left({1}\right)\right)",
    "min": r"\min\left({0}, {1}\right)", "max": r"\max\left({0}, {1}\right)",
}  # fmt: skip


def _within(text: Text, least: int) -> str:
    """In parentheses where it binds less than its surroundings."""
    return text[0] if text[1] >= least else rf"\left({text[0]}\right)"


def _number(value: float | int | bool) -> Text:
    if isinstance(value, bool):
        return rf"\text{{{str(value).lower()}}}", _ATOM
    if value != value:
        return r"\text{NaN}", _ATOM
    if value in (float("inf"), float("-inf")):
        return (r"\infty", _ATOM) if value > 0 else (r"-\infty", _SUM)
    text = repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
    mantissa, exponent, power = text.partition("e")
    if exponent:
        factor = "" if mantissa == "1" else rf"{mantissa} \cdot "
        return f"{factor}10^{{{int(power)}}}", _SUM if value < 0 else _PRODUCT
    return text, _SUM if value < 0 else _ATOM


def _sum(operands: Sequence[Text]) -> Text | None:
    """A sum whose right operand begins with a sign: only that is put in parentheses."""
    left, right = operands
    if right[0].startswith("-") and right[1] == _SUM:
        return rf"{left[0]} + \left({right[0]}\right)", _SUM
    return None


def _product(operands: Sequence[Text]) -> Text | None:
    """A product that begins with a negative number, or in which a number comes second."""
    left, right = (_within(operand, _PRODUCT) for operand in operands)
    negative = _NEGATIVE.fullmatch(operands[0][0])
    if not negative and not right[:1].isdigit():
        return None
    sign = r"\cdot" if right[:1].isdigit() else r"\,"
    return f"{operands[0][0] if negative else left} {sign} {right}", _SUM if negative else _PRODUCT


_TWO: Text = "2", _ATOM
_ADJUSTED = {"add": _sum, "mul": _product}


def _applied(name: str, operands: Sequence[Text]) -> Text:
    """An op applied: as its record says, unless the signs of its operands ask for more."""
    adjusted = _ADJUSTED[name](operands) if name in _ADJUSTED else None
    return adjusted or _by_record(get(name), operands)


class _Operand:
    """An operand in the text of a record; a binding in the hole says when it needs parentheses."""

    def __init__(self, text: Text) -> None:
        self.text = text

    def __format__(self, binding: str) -> str:
        return _within(self.text, _BINDINGS.index(binding)) if binding else self.text[0]


def _by_record(op: Op, operands: Sequence[Text]) -> Text:
    assert op.scalar is not None
    assert op.scalar.latex is not None
    text, binding = op.scalar.latex.text, _BINDINGS.index(op.scalar.latex.binding)
    if text == "{0}":
        return operands[0]
    if "{0" not in text:
        return rf"{text}\left({', '.join(text for text, _ in operands)}\right)", binding
    return text.format(*map(_Operand, operands)), binding
