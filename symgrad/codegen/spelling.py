"""Scalar functions in C: the spelling that an op's record gives, with operands put in.

In: the ``Scalar`` record of an op and operands as C expressions.  Out: one C expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from symgrad.codegen.accumulate import Reduction
from symgrad.codegen.ctree import (
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
)
from symgrad.codegen.numbers import literal
from symgrad.codegen.printer import expression_text, within
from symgrad.errors import CodegenError
from symgrad.ir.dtype import DType, bool_, float32
from symgrad.ops.record import Function, Helper, Infix, Spelling, Template, get

_HOLE = re.compile(r"\{(\w+)(?::([^}]*))?\}")


@dataclass
class Used:
    """What the emitted text needs from elsewhere.

    ``vector``: functions of ``math.h`` that have SIMD versions, by name and whether for f32;
    ``helpers``: C sources by the name of their function; ``combines``: the reductions whose parts
    are joined; ``products``: the dtypes of products of matrices.
    """

    vector: set[str] = field(default_factory=set)
    helpers: dict[str, str] = field(default_factory=dict)
    combines: set[Reduction] = field(default_factory=set)
    products: set[DType] = field(default_factory=set)


def spelling(function: str, operand: DType) -> Spelling:
    """How the op ``function`` is spelled for operands of this dtype.  Raises CodegenError."""
    scalar = get(function).scalar
    if scalar is None:
        raise CodegenError(f"the op {function!r} has no spelling in C")
    if operand.is_integer and scalar.c_integer is not None:
        return scalar.c_integer
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
    used.helpers[name] = helper.source
    if operand == float32 and helper.single:
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
