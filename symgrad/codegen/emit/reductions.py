"""Reductions in C: how each kind starts, takes an element, and joins parts.

In: a kind and a dtype.  Out: C expressions and statements.

``fmaxf`` would not vectorise and would lose NaN; the comparison does, so a maximum of floats comes
with a flag that is set by NaN.

Sums of floats are taken in blocks: a block is summed in its own dtype, by lanes, and what blocks
give is added in double.  So the error does not grow with the number of elements.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from symgrad.codegen.emit.ctree import (
    Assign,
    Binary,
    Cast,
    Choice,
    Expression,
    Statement,
    Text,
    statements_text,
)
from symgrad.codegen.emit.spelling import literal
from symgrad.ir.dtype import DType, bool_, float64

DEFAULT_NAMES = {
    "sum": "total", "prod": "product", "max": "greatest", "min": "least", "any": "any_",
    "all": "all_", "argmax": "place", "argmin": "place",
}  # fmt: skip
SUM_BLOCK = 1024  # elements: in AVX-512, 64 additions a lane, and one sum of lanes for these
_NEUTRAL = {"sum": 0, "prod": 1, "any": 0, "all": 1}
_OPERATORS = {"sum": "+", "prod": "*", "any": "|", "all": "&", "max": "max", "min": "min"}


@dataclass(frozen=True)
class Reduction:
    """A kind of reduction for one dtype of element; ``product``: of products of matrices."""

    kind: str
    dtype: DType
    product: bool = False

    @property
    def start(self) -> Expression:
        """What a reduction of nothing gives."""
        if self.kind not in ("max", "min"):
            return literal(_NEUTRAL[self.kind], self.dtype)
        if self.dtype.is_integer:
            end = self.dtype.least if self.kind == "max" else self.dtype.greatest
            return literal(end, self.dtype)
        return literal(-math.inf if self.kind == "max" else math.inf, self.dtype)

    @property
    def total_start(self) -> Expression:
        """The same, in the dtype of totals."""
        return literal(_NEUTRAL[self.kind], self.total) if self.in_blocks else self.start

    @property
    def keeps_nan(self) -> bool:
        """Does a variable of this kind come with a flag for NaN?"""
        return self.kind in ("max", "min") and self.dtype.is_float

    @property
    def in_blocks(self) -> bool:
        """Is it a sum that is rounded, other than by the BLAS?"""
        return self.kind == "sum" and self.dtype.is_float and not self.product

    @property
    def total(self) -> DType:
        """The dtype in which what blocks and groups give is joined."""
        return float64 if self.in_blocks else self.dtype

    def rounded(self, total: Expression) -> Expression:
        """A total in the dtype of the reduction."""
        return total if self.total == self.dtype else Cast(self.dtype.c, total)

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
        return Assign(target, value, f"{_OPERATORS[self.kind]}=")

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
        kind = "products" if self.product else self.kind
        return f"combine_{kind}_{self.dtype.short}"


@dataclass(frozen=True)
class CombineView:
    """One joining function, as its template sees it."""

    name: str
    part_type: str
    type: str
    update: str
    result: str


def combine_view(reduction: Reduction) -> CombineView:
    """The view of the function ``reduction.combine``."""
    whole, part = Text("part[u]"), Text("part[g * n + u]")
    update = statements_text([reduction.take_stored(whole, part)], 0).strip()
    result = statements_text([Assign(Text("whole[u]"), reduction.rounded(whole))], 0).strip()
    return CombineView(reduction.combine, reduction.total.c, reduction.dtype.c, update, result)
