"""Numbers and integer expressions in C.

In: literals with their dtype, ``Dim`` expressions.  Out: C expressions.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from symgrad.codegen.ctree import (
    ATOM,
    PREFIX,
    Binary,
    Call,
    Cast,
    Choice,
    Expression,
    Text,
    Unary,
    number,
)
from symgrad.ir.dim import Atom, Derived, Dim
from symgrad.ir.dtype import DType, bool_, float32, int64

Lookup = Callable[[Atom], Expression]

FLOOR_DIVIDE, FLOOR_MODULO = "floor_divide", "floor_modulo"


def literal(value: float, dtype: DType) -> Expression:
    """A number as it was written: the shortest text that reads back as the same bits."""
    if dtype == bool_:
        return Text("1" if value else "0")
    if dtype.is_integer:
        return _integer(int(value))
    with np.errstate(over="ignore"):  # a number that f32 cannot hold is infinite there
        single = np.float32(value)
    rounded = float(single) if dtype == float32 else float(value)
    if math.isnan(rounded):
        return Text("NAN") if dtype == float32 else Cast("double", Text("NAN"))
    if math.isinf(rounded):
        infinity: Expression = Text("INFINITY")
        infinity = infinity if dtype == float32 else Cast("double", infinity)
        return Unary("-", infinity) if rounded < 0 else infinity
    text = str(single) if dtype == float32 else repr(rounded)
    text = text if any(mark in text for mark in ".en") else f"{text}.0"
    suffix = "f" if dtype == float32 else ""
    return Text(text + suffix, PREFIX if text.startswith("-") else ATOM)


_ENDS = {int64.least: "INT64_MIN", int64.greatest: "INT64_MAX"}


def _integer(value: int) -> Expression:
    if value in _ENDS:
        return Text(_ENDS[value])
    if abs(value) < 2**31:
        return number(value)
    return Text(f"INT64_C({value})")


def dim_expression(dim: Dim, lookup: Lookup) -> Expression:
    """An integer expression; ``lookup`` gives sizes, axes and elements of integer tensors."""
    total: Expression | None = None
    for monomial, value in reversed(dim.terms):
        factors = [_atom(atom, lookup) for atom, power in monomial for _ in range(power)]
        if abs(value) != 1 or not factors:
            factors.insert(0, _integer(abs(value)))
        product = factors[0]
        for factor in factors[1:]:
            product = Binary("*", product, factor)
        if total is None:
            total = product if value > 0 else Unary("-", product)
        else:
            total = Binary("+" if value > 0 else "-", total, product)
    return total if total is not None else number(0)


def _atom(atom: Atom, lookup: Lookup) -> Expression:
    if not isinstance(atom, Derived):
        return lookup(atom)
    left, right = dim_expression(atom.left, lookup), dim_expression(atom.right, lookup)
    if atom.function in ("min", "max"):
        return Choice(Binary("<" if atom.function == "min" else ">", left, right), left, right)
    plain = atom.left.at_least(0, least_size=1) and atom.right.at_least(1, least_size=1)
    if plain:
        return Binary("/" if atom.function == "floordiv" else "%", left, right)
    return Call(FLOOR_DIVIDE if atom.function == "floordiv" else FLOOR_MODULO, (left, right))


def may_divide_by_zero(dim: Dim) -> bool:
    """Is there a quotient or remainder in it whose divisor is no number?"""
    return any(
        isinstance(atom, Derived)
        and atom.function in ("floordiv", "mod")
        and not atom.right.constant
        for atom in dim.atoms
    )
