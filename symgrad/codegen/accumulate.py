"""Reductions in C: how each kind starts, takes an element, and joins parts.

In: a kind and a dtype.  Out: C expressions and statements.
Imports: ``symgrad.ir`` and its neighbours in ``symgrad.codegen``.

``fmaxf`` would not vectorise and would lose NaN; the comparison does, so a maximum of floats comes
with a flag that is set by NaN.
"""

from __future__ import annotations

from dataclasses import dataclass

from symgrad.codegen.ctree import (
    Assign,
    Binary,
    Cast,
    Choice,
    Expression,
    Statement,
    Text,
    Unary,
)
from symgrad.codegen.numbers import literal
from symgrad.ir.dtype import DType, bool_

DEFAULT_NAMES = {
    "sum": "total", "prod": "product", "max": "greatest", "min": "least", "any": "any_",
    "all": "all_", "argmax": "place", "argmin": "place",
}  # fmt: skip
_OPERATORS = {"sum": "+", "prod": "*", "any": "|", "all": "&", "max": "max", "min": "min"}


@dataclass(frozen=True)
class Reduction:
    """A kind of reduction for one dtype of element."""

    kind: str
    dtype: DType

    @property
    def start(self) -> Expression:
        """What a reduction of nothing gives."""
        if self.kind in ("max", "min"):
            return self._infinity(negative=self.kind == "max")
        value = {"sum": 0, "prod": 1, "any": 0, "all": 1}[self.kind]
        return literal(value, self.dtype)

    def _infinity(self, *, negative: bool) -> Expression:
        if self.dtype.is_integer:
            return literal(self.dtype.least if negative else self.dtype.greatest, self.dtype)
        infinity: Expression = Text("INFINITY")
        infinity = infinity if self.dtype.itemsize == 4 else Cast("double", infinity)
        return Unary("-", infinity) if negative else infinity

    @property
    def keeps_nan(self) -> bool:
        """Does a variable of this kind come with a flag for NaN?"""
        return self.kind in ("max", "min") and self.dtype.is_float

    @property
    def clause(self) -> str:
        """The operator of the ``reduction`` clause of OpenMP."""
        return _OPERATORS[self.kind]

    @property
    def variable_type(self) -> str:
        """The C type of a variable that accumulates."""
        return "int" if self.dtype == bool_ else self.dtype.c

    def take(self, target: Expression, value: Expression) -> Statement:
        """Take one element into a variable."""
        if self.kind in ("max", "min"):
            return Assign(target, Choice(self._better(value, target), value, target))
        operator = {"sum": "+=", "prod": "*=", "any": "|=", "all": "&="}[self.kind]
        return Assign(target, value, operator)

    def take_stored(self, target: Expression, value: Expression) -> Statement:
        """Take one element into an array: NaN is kept in place, bytes stay bytes."""
        if self.dtype == bool_:
            operator = _OPERATORS[self.kind]
            return Assign(target, Cast("uint8_t", Binary(operator, target, value)))
        if not self.keeps_nan:
            return self.take(target, value)
        better = Binary("||", self._better(value, target), Binary("!=", value, value))
        return Assign(target, Choice(better, value, target))

    def _better(self, value: Expression, target: Expression) -> Expression:
        return Binary(">" if self.kind == "max" else "<", value, target)

    @property
    def combine(self) -> str:
        """The name of the function that joins the parts of groups."""
        return f"combine_{self.kind}_{self.dtype.short}"


@dataclass(frozen=True)
class CombineView:
    """One joining function, as its template sees it."""

    name: str
    type: str
    update: str


def combine_view(reduction: Reduction) -> CombineView:
    """The view of the function ``reduction.combine``."""
    from symgrad.codegen.printer import statements_text

    statement = reduction.take_stored(Text("whole[u]"), Text("part[g * n + u]"))
    update = statements_text([statement], 0).strip()
    return CombineView(reduction.combine, reduction.dtype.c, update)
