"""Numbers, integer expressions and scalar functions in C.

In: literals with their dtype, ``Dim`` expressions, the ``Scalar`` record of an op with its operands
as C expressions.  Out: C expressions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from symgrad.codegen.emit.ctree import (
    AND,
    ATOM,
    CHOICE,
    COMPARE,
    EQUAL,
    OR,
    PREFIX,
    PRODUCT,
    SUM,
    Binary,
    Call,
    Cast,
    Choice,
    Expression,
    Text,
    Unary,
    expression_text,
    number,
    within,
)
from symgrad.errors import CodegenError
from symgrad.ir.dim import Atom, Derived, Dim
from symgrad.ir.dtype import DType, bool_, float32, int64
from symgrad.ops.record import Function, Helper, Infix, Spelling, Template, get

Lookup = Callable[[Atom], Expression]


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
    name = "floor_divide" if atom.function == "floordiv" else "floor_modulo"
    return Call(name, (left, right))


# -- scalar functions, as the record of an op spells them


_HOLE = re.compile(r"\{(\w+)(?::([^}]*))?\}")


@dataclass
class Used:
    """What the emitted text needs from elsewhere.

    ``vector``: functions of ``math.h`` that have SIMD versions, by name and whether for f32;
    ``helpers``: C sources by the name of their function.
    """

    vector: set[str] = field(default_factory=set)
    helpers: dict[str, str] = field(default_factory=dict)


def spelling(function: str, operand: DType) -> Spelling:
    """How the op ``function`` is spelled for operands of this dtype.  Raises CodegenError."""
    scalar = get(function).scalar
    if scalar is None:
        raise CodegenError(f"the op {function!r} has no spelling in C")
    if operand.is_integer and scalar.c_integer is not None:
        return scalar.c_integer
    if operand == float32 and scalar.c_single is not None:
        return scalar.c_single
    return scalar.c


def repeats(function: str, operand: DType, position: int) -> int:
    """How often an operand occurs in the text."""
    spelled = spelling(function, operand)
    if isinstance(spelled, Template):
        return sum(hole == str(position) for hole, _ in _HOLE.findall(spelled.text))
    return 1


def spell(
    function: str, operands: Sequence[Expression], operand: DType, result: DType, used: Used
) -> Expression:
    """The op applied; ``operand`` is the dtype of its operands (of the last, for a choice)."""
    spelled = spelling(function, operand)
    if isinstance(spelled, Infix):
        return Binary(spelled.symbol, operands[0], operands[1])
    if isinstance(spelled, Function):
        name = spelled.name + _suffix(operand)
        if spelled.vector:
            used.vector.add(name)
        return Call(name, tuple(operands))
    if isinstance(spelled, Helper):
        return _helper(spelled, operands, operand, used)
    used.vector.update(name + _suffix(operand) for name in spelled.vector_functions)
    return _template(spelled.text, operands, operand, result)


def _suffix(dtype: DType) -> str:
    return "f" if dtype == float32 else ""


def _helper(
    helper: Helper, operands: Sequence[Expression], operand: DType, used: Used
) -> Expression:  # fmt: skip
    name = f"symgrad_{helper.name}"
    if not helper.shared:
        used.helpers[name] = helper.source
    if operand == float32 and "float" in helper.types:
        return Call(f"{name}f", tuple(operands))
    if operand != float32:
        return Call(name, tuple(operands))
    widened = tuple(Cast("double", one) for one in operands)
    return Cast("float", Call(name, widened))


_Build = Callable[[Sequence[Expression], DType], Expression]
_SIMPLE: dict[str, _Build] = {
    "-{0}": lambda operands, result: Unary("-", operands[0]),
    "!{0}": lambda operands, result: Unary("!", operands[0]),
    "{0} ? {1} : {2}": lambda operands, result: Choice(*operands),
    "({T}){0}": lambda operands, result: Cast(result.c, operands[0]),
}


def _template(
    text: str, operands: Sequence[Expression], operand: DType, result: DType
) -> Expression:  # fmt: skip
    if text in _SIMPLE:
        return _SIMPLE[text](operands, result)

    def fill(match: re.Match[str]) -> str:
        hole, value = match.groups()
        if hole == "lit":
            return expression_text(literal(float(value), operand))
        if hole == "f":
            return _suffix(operand)
        if hole == "T":
            return result.c
        around = text[match.start() - 1 : match.start()] + text[match.end() : match.end() + 1]
        return within(operands[int(hole)], CHOICE if around == "()" else ATOM)

    return Text(_HOLE.sub(fill, text), template_binding(text))


def template_binding(text: str) -> int:
    """How tightly the text of a template holds together: its loosest operator decides."""
    bare, depth = "", 0
    for letter in _HOLE.sub("x", text):
        depth -= letter == ")"
        bare += letter if depth == 0 else ""
        depth += letter == "("
    operators = (
        (r"\?", CHOICE), (r"\|\|", OR), ("&&", AND), ("[!=]=", EQUAL), ("[<>]", COMPARE),
        (r" [+-] ", SUM), (r" ?[*/%] ?", PRODUCT), (r"^[-!]|^\(\)\w", PREFIX),
    )  # fmt: skip
    return next((binding for mark, binding in operators if re.search(mark, bare)), ATOM)


def truth(expression: Expression, dtype: DType) -> Expression:
    """A value as it is stored: comparisons are ``int`` in C, bool arrays are bytes."""
    plain = isinstance(expression, Text) and expression.text in ("0", "1")
    return Cast("uint8_t", expression) if dtype == bool_ and not plain else expression
