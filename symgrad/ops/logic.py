"""Comparisons, logic, choice and conversion.

In: nothing.  Out: records.

Comparisons give bool; logic takes and gives bool; ``where(condition, chosen, other)`` takes a bool
and two operands of one dtype.  ``cast`` rounds towards zero from float to integer; to bool it
asks whether the number is not zero.  What does not fit an integer dtype is reduced to its range:
``wrap_i8`` and its like do that in index notation, where ``cast`` never loses anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.errors import DTypeError
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import INTEGERS, DType, bool_, int64
from symgrad.ir.expr import Expr
from symgrad.ir.graph import Node
from symgrad.ir.registry import register
from symgrad.ir.types import TensorType
from symgrad.ops.record import (
    Array,
    Infix,
    Kink,
    Latex,
    Op,
    Reader,
    Scalar,
    SizeOf,
    Template,
    apply,
    choose,
    elementwise,
    of_one,
    same_shape,
)


def _is_bool(dtype: DType) -> bool:
    return dtype == bool_


# -- comparisons

_AT_EQUALITY = (Kink(lambda sp, x, y: x - y, "it jumps; the derivative is taken as 0"),)


def _comparison(name: str, numpy: np.ufunc, sympy: str, symbol: str, latex: str) -> None:
    def meaning(sp: Any, x: Any, y: Any) -> Any:
        return getattr(sp, sympy)(x, y)

    elementwise(
        name, numpy=numpy, sympy=meaning, c=Infix(symbol), result=bool_, kinks=_AT_EQUALITY,
        takes=lambda dtype: True, vjp=None, code=f"{{0}} {symbol} {{1}}",
        latex=Latex(f"{{0:sum}} {latex} {{1:sum}}", "relation"),
    )  # fmt: skip


COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_comparison("eq", np.equal, "Eq", "==", "=")
_comparison("ne", np.not_equal, "Ne", "!=", r"\ne")
_comparison("lt", np.less, "Lt", "<", "<")
_comparison("le", np.less_equal, "Le", "<=", r"\le")
_comparison("gt", np.greater, "Gt", ">", ">")
_comparison("ge", np.greater_equal, "Ge", ">=", r"\ge")


# -- logic


elementwise(
    "logical_and", numpy=np.logical_and, sympy=lambda sp, x, y: sp.And(x, y), c=Infix("&&"),
    takes=_is_bool, vjp=None, code="{0} & {1}",
    latex=Latex(r"{0:relation} \land {1:relation}", "logic"),
)  # fmt: skip
elementwise(
    "logical_or", numpy=np.logical_or, sympy=lambda sp, x, y: sp.Or(x, y), c=Infix("||"),
    takes=_is_bool, vjp=None, code="{0} | {1}",
    latex=Latex(r"{0:relation} \lor {1:relation}", "logic"),
)  # fmt: skip
elementwise(
    "logical_xor", numpy=np.logical_xor, sympy=lambda sp, x, y: sp.Xor(x, y), c=Infix("!="),
    takes=_is_bool, vjp=None, code="{0} ^ {1}",
    latex=Latex(r"{0:relation} \oplus {1:relation}", "logic"),
)  # fmt: skip
elementwise(
    "logical_not", numpy=np.logical_not, sympy=lambda sp, x: sp.Not(x), c=Template("!{0}"),
    takes=_is_bool, vjp=None, code="~{0}", latex=Latex(r"\lnot {0:atom}", "relation"),
)  # fmt: skip


# -- where


def _where_rule(args: Sequence[TensorType], attrs: Mapping[str, Any]) -> TensorType:
    condition, chosen, other = args
    if condition.dtype != bool_:
        raise DTypeError(f"where takes a bool condition, not {condition}")
    if chosen.dtype != other.dtype:
        raise DTypeError(f"where chooses between operands of one dtype, not {chosen} and {other}")
    return TensorType(chosen.dtype, same_shape("where", args))


def _where(condition: Array, chosen: Array, other: Array, *, size: SizeOf) -> Array:
    return np.where(condition, chosen, other)


def _where_vjp(node: Node, g: Node) -> Sequence[Node | None]:
    condition = node.args[0]
    return None, choose(condition, g, 0.0), choose(condition, 0.0, g)


register(
    Op(
        "where", "elementwise", 3, _where_rule, _where, vjp=_where_vjp,
        program="np.where({0}, {1}, {2})", code="{sg}.where({0}, {1}, {2})",
        scalar=Scalar(
            sympy=lambda sp, condition, x, y: sp.Piecewise((x, condition), (y, True)),
            c=Template("{0} ? {1} : {2}"), cost=0.03, chooses=True,
            latex=Latex(
                r"\begin{{cases}} {1} & \text{{if }} {0} \\ {2} & \text{{otherwise}} \end{{cases}}",
                "sum",
            ),
        ),
    )
)  # fmt: skip


# -- cast


def _cast_rule(args: Sequence[TensorType], attrs: Mapping[str, Any]) -> TensorType:
    return TensorType(attrs["dtype"], args[0].shape)


def _cast(array: Array, *, size: SizeOf, dtype: DType) -> Array:
    with np.errstate(all="ignore"):
        given = np.asarray(array)
        if dtype.wraps and given.dtype.kind == "f":
            given = given.astype(np.int64)
        return given.astype(dtype.of_numpy)


def _cast_text(operand: str, *, kind: str, dtype: DType, **facts: Any) -> str:
    through = ".astype(int)" if dtype.wraps else ""
    return f"np.asarray({operand}){through}.astype({kind})"


def _cast_lower(reader: Reader, node: Node, indices: tuple[Dim, ...]) -> Expr:
    """From bool a choice of 1 or 0, to bool a comparison, to integers a truncation first.

    What is left for the scalar function ``cast`` is exact on the reals.
    """
    pool, wanted, value = reader.pool, node.dtype, reader.read(0, *indices)
    given = value.dtype
    if given == wanted:
        return value
    if wanted == bool_:
        return pool.call("ne", value, _literal(reader, 0, given), dtype=bool_)
    if given == bool_:
        return pool.select(value, _literal(reader, 1, wanted), _literal(reader, 0, wanted))
    if given.is_float and wanted.is_integer:
        value = pool.call("cast", pool.call("trunc", value, dtype=given), dtype=int64)
    if wanted.is_integer:
        return pool.integer_cast(value, wanted)
    return pool.call("cast", value, dtype=wanted)


def _literal(reader: Reader, value: int, dtype: DType) -> Expr:
    return reader.pool.literal(float(value) if dtype.is_float else value, dtype)


def _between_floats(node: Node) -> bool:
    return node.dtype.is_float and node.args[0].dtype.is_float


def _cast_vjp(node: Node, g: Node) -> Sequence[Node | None]:
    return (apply("cast", g, dtype=node.args[0].dtype) if _between_floats(node) else None,)


@of_one
def _cast_tangent(node: Node, tangent: Node) -> Node | None:
    return apply("cast", tangent, dtype=node.dtype) if _between_floats(node) else None


register(
    Op(
        "cast", "elementwise", 1, _cast_rule, _cast, lower=_cast_lower, vjp=_cast_vjp,
        tangent=_cast_tangent, program=_cast_text,
        scalar=Scalar(sympy=lambda sp, x: x, c=Template("({T}){0}"), cost=0.02),
    )
)  # fmt: skip


def _wrap(name: str, wanted: DType) -> None:
    def meaning(sp: Any, x: Any) -> Any:
        return x - 2**wanted.bits * sp.floor((x - wanted.least) / sp.Integer(2**wanted.bits))

    elementwise(
        name, numpy=f"{{0}}.astype(np.{wanted})", sympy=meaning, c=Template("({T}){0}"),
        result=wanted, takes=lambda dtype: dtype == int64, vjp=None,
        code=f"{{0}}.to({{sg}}.{wanted})",
    )  # fmt: skip


for _dtype in INTEGERS:
    if _dtype.wraps:
        _wrap(f"wrap_{_dtype.short}", _dtype)
