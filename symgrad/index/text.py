"""Index notation as text: ``y[i, j] = sum[k](x[i, k]*w[j, k]) + b[j]``.

In: expressions and the axes of what they define.  Out: a line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symgrad.ir.dim import Axis, Dim, Element
from symgrad.ir.expr import Access, Call, Expr, IntValue, Literal, Reduce, fold
from symgrad.ops.record import Infix, get

LETTERS = "ijklpqrst"
_LEVELS = {"*": 2, "/": 2, "+": 1, "-": 1}
_TIGHT, _LOOSE = 3, 0


def expression_text(
    name: str, axes: Sequence[Axis], body: Expr, names: Mapping[str, str] | None = None
) -> str:
    """The definition of ``name[axes]``; ``names``: what stored nodes are called."""
    written = IndexText(axes, names or {})
    left = f"{name}[{', '.join(map(written.axis, axes))}]" if axes else name
    return f"{left} = {written.whole(body)}"


class IndexText:
    """Letters for axes, in order of appearance, and the texts of subexpressions.

    ``inside``: tensors in whose place the expression is written that defines them, with the indices
    that it defines them at.
    """

    def __init__(
        self, axes: Sequence[Axis], names: Mapping[str, str],
        inside: Mapping[str, tuple[Sequence[Dim], Expr]] | None = None,
    ) -> None:  # fmt: skip
        self.names = names
        self.inside = inside or {}
        self.letters: dict[Axis, str] = {}
        for axis in axes:
            self.axis(axis)

    def axis(self, axis: Axis) -> str:
        """Its letter."""
        if axis not in self.letters:
            number = len(self.letters)
            letter = LETTERS[number % len(LETTERS)]
            self.letters[axis] = letter + str(number // len(LETTERS) or "")
        return self.letters[axis]

    def whole(self, body: Expr, known: Mapping[int, str] | None = None) -> str:
        """The text of an expression; ``known``: names of parts, by their numbers."""
        return self._leveled(body, known or {})[0]

    def _leveled(self, body: Expr, given: Mapping[int, str]) -> tuple[str, int]:
        def step(expr: Expr, texts: Mapping[Expr, tuple[str, int]]) -> tuple[str, int]:
            name = given.get(expr.number)
            return (name, _TIGHT) if name else self._one(expr, texts)

        return fold([body], step)[body]

    def _one(self, expr: Expr, texts: Mapping[Expr, tuple[str, int]]) -> tuple[str, int]:
        if isinstance(expr, Literal):
            return repr(expr.value), _TIGHT
        if isinstance(expr, IntValue):
            text = self.dim(expr.value)
            return text, _TIGHT if text.isidentifier() or text.isdigit() else _LOOSE
        if isinstance(expr, Access):
            return self._access(expr.tensor, expr.indices), _TIGHT
        if isinstance(expr, Reduce):
            return f"{expr.kind}[{self.axis(expr.axis)}]({texts[expr.body][0]})", _TIGHT
        assert isinstance(expr, Call)
        return self._call(expr, texts)

    def _call(self, expr: Call, texts: Mapping[Expr, tuple[str, int]]) -> tuple[str, int]:
        scalar = get(expr.function).scalar
        spelling = scalar.c if scalar is not None else None
        if isinstance(spelling, Infix) and len(expr.operands) == 2:
            level = _LEVELS.get(spelling.symbol, _LOOSE)
            left, right = (texts[operand] for operand in expr.operands)
            first = left[0] if left[1] >= max(level, 1) else f"({left[0]})"
            second = right[0] if right[1] > level else f"({right[0]})"
            gap = "" if level == _LEVELS["*"] else " "
            return f"{first}{gap}{spelling.symbol}{gap}{second}", level
        operands = ", ".join(texts[operand][0] for operand in expr.operands)
        return f"{expr.function}({operands})", _TIGHT

    def _access(self, tensor: str, indices: Sequence[Dim]) -> str:
        if tensor in self.inside:
            return self._defined(*self.inside[tensor], indices)
        name = self.names.get(tensor, tensor)
        return f"{name}[{', '.join(map(self.dim, indices))}]" if indices else name

    def _defined(self, places: Sequence[Dim], body: Expr, indices: Sequence[Dim]) -> str:
        """``body``, which defines an element at ``places``, at ``indices``."""
        inner = IndexText((), self.names, self.inside)
        inner.letters = dict(self.letters)
        for place, index in zip(places, indices, strict=True):
            text = self.dim(index)
            for axis in place.axes:
                inner.letters[axis] = text if text.isidentifier() else f"({text})"
        text, level = inner._leveled(body, {})
        return text if level == _TIGHT else f"({text})"

    def dim(self, dim: Dim) -> str:
        """An index expression, its axes by their letters."""
        known: dict[object, Dim] = {axis: Dim.size(self.axis(axis)) for axis in dim.axes}
        for atom in sorted(dim.atoms, key=lambda atom: atom.key):
            if isinstance(atom, Element):
                known[atom] = Dim.size(self._access(atom.tensor, atom.indices))
        return str(dim.substitute(known))  # type: ignore[arg-type]
