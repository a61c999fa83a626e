"""Values with one spelling for what floating point computes to the same bits.

In: an expression.  Out: one that has the same value, whatever its elements round to.

Operands of sums and products have one order, signs stand outside of products, a difference is a
sum, and an op that its record defines as a formula of C is that formula.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache

from symgrad.ir.dtype import DType, bool_, float32
from symgrad.ir.expr import OPPOSITE, Call, Expr, IntValue, Literal, Reduce, rebuild
from symgrad.ops.record import Helper, Template, get, helpers
from symgrad.validate.source import Unit, parse
from symgrad.validate.symbolic import orders
from symgrad.validate.symbolic.machine import Machine, Typed
from symgrad.validate.symbolic.normal import SAME
from symgrad.validate.symbolic.overflow import Limits, Reach
from symgrad.validate.symbolic.values import Values, narrow

_COMMUTATIVE = ("add", "mul", "maximum", "minimum", "logical_and", "logical_or", "eq", "ne")
_TURNED = {"lt": "gt", "le": "ge"}
_BEYOND = {"minimum": math.inf, "maximum": -math.inf}
"""What nothing is beyond."""
_HEAD = "#include <math.h>\n#include <stdint.h>\n"
_FORMULAS = (
    "sigmoid", "silu", "softplus", "log_sigmoid", "logaddexp", "rsqrt", "reciprocal", "relu",
    "square", "sign", "shift",
)  # fmt: skip


class Exact:
    """Makes these spellings, each once."""

    def __init__(self, values: Values) -> None:
        self._values, self._pool = values, values.pool
        self._done: dict[Expr, Expr] = {}

    def of(self, root: Expr) -> Expr:
        """The spelling of an expression."""
        return rebuild(self._pool, [root], self._rule, self._done)[root]

    def negated(self, value: Expr) -> Expr:
        """Minus it."""
        if isinstance(value, Literal) and value.dtype.is_float:
            return self._pool.literal(-value.value, value.dtype)
        if isinstance(value, Call) and value.function == "neg":
            return value.operands[0]
        return self._pool.call("neg", value, dtype=value.dtype)

    def _rule(self, expr: Expr, new: Mapping[Expr, Expr]) -> Expr | None:
        if isinstance(expr, IntValue) and expr.dtype.is_float:
            return self._cast(self._pool.integer(expr.value), expr.dtype)
        if isinstance(expr, Reduce):
            return self._reduced(expr, new[expr.body])
        if not isinstance(expr, Call):
            return None
        operands = [new[one] for one in expr.operands]
        if expr.dtype == bool_:
            return self._truth(expr.function, [self._narrow(one) for one in operands])
        if not expr.dtype.is_float:
            return None
        if expr.function != "cast":  # whose type says that they are widened
            operands = [self._narrow(one) for one in operands]
        return self._float(expr.function, operands, expr.dtype)

    def _reduced(self, expr: Reduce, body: Expr) -> Expr | None:
        """Minus a sum is the sum of what is negated."""
        if expr.kind == "sum" and _is(body, 0.0):
            return body
        if expr.kind == "sum" and orders.ON not in expr.order:
            inner = self._without_sign(body)
            if inner is not None:
                total = self._values.reduce("sum", expr.axis, inner, expr.order)
                return self.negated(self.of(total))
        if body is expr.body:
            return None
        return self.of(self._values.reduce(expr.kind, expr.axis, body, expr.order))

    def _without_sign(self, value: Expr) -> Expr | None:
        """Minus it, where it is negated; that of one sum with the sum around it, too."""
        if isinstance(value, Call) and value.function == "neg":
            return value.operands[0]
        if not (isinstance(value, Reduce) and value.kind == "sum" and orders.ON in value.order):
            return None
        inner = self._without_sign(value.body)
        if inner is None:
            return None
        return self._values.reduce("sum", value.axis, inner, value.order)

    def _truth(self, function: str, operands: list[Expr]) -> Expr:
        if function in _TURNED:
            function, operands = _TURNED[function], operands[::-1]
        if function == "logical_not" and isinstance(inner := operands[0], Call):
            if inner.function == "logical_not":
                return inner.operands[0]
            if inner.function in OPPOSITE:
                return self._truth(OPPOSITE[inner.function], list(inner.operands))
        return self._pool.call(function, *self._ordered(function, operands), dtype=bool_)

    def _float(self, function: str, operands: list[Expr], dtype: DType) -> Expr:
        if function in _FORMULAS:
            return self.of(self._formula(function, operands, dtype))
        if function == "cast":
            return self._cast(operands[0], dtype)
        if function == "neg":
            return self.negated(operands[0])
        if function == "sub":
            return self._float("add", [operands[0], self.negated(operands[1])], dtype)
        if function == "add":
            return self._sum(operands, dtype)
        if function in ("mul", "div"):
            return self._product(function, operands, dtype)
        if function == "where" and _is_denied(operands[0]):
            test = self._truth("logical_not", [operands[0]])
            operands = [test, operands[2], operands[1]]
        if function in _BEYOND:
            for one, other in (operands, operands[::-1]):
                if _is(one, _BEYOND[function]) and _holds(dtype, other):
                    return other
        name = SAME.get(function, function)
        return self._pool.call(name, *self._ordered(function, operands), dtype=dtype)

    def _narrow(self, value: Expr) -> Expr:
        if isinstance(value, Call) and value.function == "neg":
            inner = narrow(value.operands[0])
            return self.negated(inner) if inner is not value.operands[0] else value
        return narrow(value)

    def _ordered(self, function: str, operands: list[Expr]) -> list[Expr]:
        if function in _COMMUTATIVE:
            return sorted(operands, key=lambda one: one.number)
        return operands

    def _cast(self, value: Expr, dtype: DType) -> Expr:
        """What was widened is as it was; the sign of what is converted stands outside."""
        value = self._narrow(value)
        if value.dtype == dtype:
            return value
        if value.dtype.is_float and isinstance(value, Call) and value.function == "neg":
            return self.negated(self._cast(value.operands[0], dtype))
        number = value.value.constant if isinstance(value, IntValue) else None
        if number is not None and abs(number) <= 2**24:
            return self._pool.literal(float(number), dtype)
        return self._pool.call("cast", value, dtype=dtype)

    def _sum(self, operands: list[Expr], dtype: DType) -> Expr:
        for one, other in (operands, operands[::-1]):
            if _is(one, 0.0) and isinstance(other, Reduce):
                order = tuple(name for name in other.order if name != orders.ON)
                return self._pool.reduce(other.kind, other.axis, other.body, order)
            if _is(one, 0.0) and _holds(dtype, other):
                return other
        return self._pool.call("add", *self._ordered("add", operands), dtype=dtype)

    def _product(self, function: str, operands: list[Expr], dtype: DType) -> Expr:
        """With its sign outside; a division by a power of 2 is a product."""
        minus = False
        for place, one in enumerate(operands):
            if _is_negative(one):
                operands[place], minus = self.negated(one), not minus
        left, right = operands
        if function == "div" and isinstance(right, Literal) and _is_power(float(right.value)):
            operands = [left, self._pool.literal(1 / float(right.value), right.dtype)]
            function, (left, right) = "mul", operands
        made: Expr | None = None
        if _is(right, 1.0) and _holds(dtype, left):
            made = left
        elif function == "mul" and _is(left, 1.0) and _holds(dtype, right):
            made = right
        if made is None:
            made = self._pool.call(function, *self._ordered(function, operands), dtype=dtype)
        return self.negated(made) if minus else made

    def _formula(self, op: str, operands: list[Expr], dtype: DType) -> Expr:
        """An op by the C that its record has for it."""
        ctype = "float" if dtype == float32 else "double"
        unit = _unit(op, ctype)
        reach = Reach(self._values.integers, self._values, Limits(()))
        machine = Machine(unit, self._values.integers, self._values, (), unit.defined, reach)
        given = {f"x{place}": Typed(ctype, one) for place, one in enumerate(operands)}
        result = machine.run("formula", given)
        assert result is not None
        assert isinstance(result.value, Expr)
        return result.value


@cache
def _unit(op: str, ctype: str) -> Unit:
    """A function of C that is an op, from the spelling of its record."""
    scalar = get(op).scalar
    assert scalar is not None
    formula = scalar.c.formula if isinstance(scalar.c, Helper) else scalar.c
    assert isinstance(formula, Template)
    suffix = "f" if ctype == "float" else ""
    text = re.sub(r"\{lit:(\d+)\}", rf"\1.0{suffix}", formula.text)
    text = re.sub(r"\{(\d)\}", r"(x\1)", text).replace("{f}", suffix)
    parameters = ", ".join(f"{ctype} x{place}" for place in range(get(op).arity or 1))
    shared = "\n".join(helper.source for _, helper in helpers() if helper.shared)
    return parse(f"{_HEAD}{shared}\n{ctype} formula({parameters})\n{{\n    return {text};\n}}\n")


def _is(value: Expr, number: float) -> bool:
    return isinstance(value, Literal) and value.dtype.is_float and float(value.value) == number


def _is_denied(value: Expr) -> bool:
    return isinstance(value, Call) and value.function in ("logical_not", "ne")


def _is_negative(value: Expr) -> bool:
    if isinstance(value, Literal):
        return value.dtype.is_float and math.copysign(1.0, float(value.value)) < 0
    return isinstance(value, Call) and value.function == "neg"


def _is_power(value: float) -> bool:
    return 2.0**-60 <= abs(value) <= 2.0**60 and abs(math.frexp(value)[0]) == 0.5


def _holds(dtype: DType, value: Expr) -> bool:
    return value.dtype.is_float and value.dtype.itemsize <= dtype.itemsize
