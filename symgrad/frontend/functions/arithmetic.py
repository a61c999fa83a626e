"""Arithmetic: ``+ - * / // % **``, their functions, methods and in-place forms.

In: tensors and numbers.  Out: tensors.
Promotion is torch's; so is what bools may do: they add and multiply as ``or`` and ``and``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.budgets import MOST_FACTORS
from symgrad.errors import DTypeError
from symgrad.frontend.caller import here
from symgrad.frontend.lift import (
    as_tensor,
    elementwise,
    is_operand,
    on_nodes,
    result_dtype,
    setting,
)
from symgrad.frontend.session import current
from symgrad.frontend.table import OperationCallError, marked_elementwise, operation
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.ir.dtype import bool_

Tensor = SymbolicTensor


@operation("add", inplace=True)
def add(x: Any, y: Any, *, alpha: Any = 1) -> Tensor:
    """``x + alpha * y``."""
    y = _scaled(y, alpha)
    return elementwise("logical_or" if _bools(x, y) else "add", x, y)


@operation("sub", "subtract", inplace=True)
def sub(x: Any, y: Any, *, alpha: Any = 1) -> Tensor:
    """``x - alpha * y``."""
    y = _scaled(y, alpha)
    if bool_ in (getattr(x, "dtype", None), getattr(y, "dtype", None)) and not _one_float(x, y):
        raise DTypeError(
            "bools cannot be subtracted", location=here(),
            hint="use ~mask for 1 - mask, or convert with .float()",
        )  # fmt: skip
    return elementwise("sub", x, y)


@operation("rsub", elementwise=True)
def rsub(x: Any, y: Any, *, alpha: Any = 1) -> Tensor:
    """``y - alpha * x``."""
    return sub(y, x, alpha=alpha)


@operation("mul", "multiply", inplace=True)
def mul(x: Any, y: Any) -> Tensor:
    """``x * y``."""
    return elementwise("logical_and" if _bools(x, y) else "mul", x, y)


@operation("div", "divide", inplace=True)
def div(x: Any, y: Any, *, rounding_mode: str | None = None) -> Tensor:
    """``x / y``, or rounded to an integer: ``"floor"`` downwards, ``"trunc"`` towards zero."""
    if rounding_mode == "floor":
        return floor_divide(x, y)
    if rounding_mode is None:
        return elementwise("div", x, y, floats=True)
    if rounding_mode != "trunc":
        raise OperationCallError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"'{rounding_mode}'", location=here(),
        )  # fmt: skip
    if result_dtype((x, y)).is_float:
        return elementwise("trunc", elementwise("div", x, y))
    return floor_divide(sub(x, fmod(x, y)), y)  # nothing is left over


@operation("true_divide", inplace=True, elementwise=True)
def true_divide(x: Any, y: Any) -> Tensor:
    """``x / y``."""
    return div(x, y)


@operation("floor_divide", inplace=True, elementwise=True)
def floor_divide(x: Any, y: Any) -> Tensor:
    """``x // y``, rounded downwards."""
    return elementwise("floordiv", x, y)


@operation("remainder", inplace=True, elementwise=True)
def remainder(x: Any, y: Any) -> Tensor:
    """``x % y``, with the sign of ``y``."""
    return elementwise("mod", x, y)


@operation("fmod", inplace=True)
def fmod(x: Any, y: Any) -> Tensor:
    """The remainder with the sign of ``x``."""
    return elementwise("fmod", x, y)


@operation("neg", "negative", inplace=True)
def neg(x: Any) -> Tensor:
    """``-x``."""
    if getattr(x, "dtype", None) == bool_:
        raise DTypeError("bools cannot be negated", location=here(), hint="use ~mask")
    return elementwise("neg", x)


@operation("positive", function=True, elementwise=True)
def positive(x: Any) -> Tensor:
    """``+x``: the tensor itself."""
    return as_tensor(x)


@operation("pow", "float_power", inplace=True, elementwise=True)
def power(x: Any, y: Any) -> Tensor:
    """``x ** y``; small known exponents become products, roots and reciprocals."""
    exponent = y.item() if isinstance(y, np.generic) else y
    if isinstance(exponent, (int, float)) and not isinstance(exponent, bool):
        if isinstance(exponent, float) and not as_tensor(x).dtype.is_float:
            x = elementwise("add", x, 0.0)
        special = _known_power(x, exponent)
        if special is not None:
            return special
    return elementwise("pow", x, y)


def _known_power(x: Any, exponent: float) -> Tensor | None:
    roots = {0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}
    if exponent in roots and as_tensor(x).dtype.is_float:
        return elementwise(roots[exponent], x)
    count = int(exponent)
    if count != exponent or abs(count) > MOST_FACTORS:
        return None
    if count == 0 and as_tensor(x).dtype.is_float:  # a constant that depends on x, as in torch
        return None
    if count < 0:
        if not as_tensor(x).dtype.is_float:
            return None
        return _product_power(elementwise("reciprocal", x), -count)
    return _product_power(x, count)


def _product_power(x: Any, count: int) -> Tensor:
    """``x ** count`` by repeated squaring."""
    if count == 0:
        return on_nodes(lambda node: current().graph.lift(1, node), (x,), None)
    if count == 1:
        return on_nodes(lambda node: node, (x,), None)
    half = x if count < 4 else _product_power(x, count // 2)
    squared = elementwise("square", half) if as_tensor(x).dtype.is_float else mul(half, half)
    return mul(squared, x) if count % 2 else squared


@operation("addcmul", inplace=True, elementwise=True)
def addcmul(x: Tensor, y: Tensor, z: Tensor, *, value: Any = 1) -> Tensor:
    """``x + value * y * z``."""
    product = mul(y, z)
    return add(x, _scaled(product, setting(value, result_dtype((x, product)))))


@operation("addcdiv", inplace=True, elementwise=True)
def addcdiv(x: Tensor, y: Tensor, z: Tensor, *, value: Any = 1) -> Tensor:
    """``x + value * y / z``."""
    return add(x, _scaled(div(y, z), value))


@operation("lerp", inplace=True, elementwise=True)
def lerp(start: Tensor, end: Tensor, weight: Any) -> Tensor:
    """``start + weight * (end - start)``."""
    return add(start, mul(weight, sub(end, start)))


def _scaled(y: Any, alpha: Any) -> Any:
    return y if isinstance(alpha, (int, float)) and alpha == 1 else mul(y, alpha)


def _bools(*operands: Any) -> bool:
    return result_dtype(operands) == bool_


def _one_float(*operands: Any) -> bool:
    return result_dtype(operands).is_float and any(
        isinstance(operand, Tensor) and operand.dtype != bool_ for operand in operands
    )


# -- operators


def operator_of(call: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Any]:
    """An operator, which leaves operands that are none to Python."""

    def operator(self: Any, other: Any) -> Any:
        return call(self, other) if is_operand(other) else NotImplemented

    return marked_elementwise(operator)


def reflected(call: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Any]:
    """An operator whose operands are swapped."""

    def operator(self: Any, other: Any) -> Any:
        return call(other, self) if is_operand(other) else NotImplemented

    return marked_elementwise(operator)


_OPERATORS: dict[str, tuple[Callable[..., Tensor], str]] = {
    "add": (add, "add_"),
    "sub": (sub, "sub_"),
    "mul": (mul, "mul_"),
    "truediv": (div, "div_"),
    "floordiv": (floor_divide, "floor_divide_"),
    "mod": (remainder, "remainder_"),
    "pow": (power, "pow_"),
}
for _name, (_call, _in_place) in _OPERATORS.items():
    setattr(SymbolicTensor, f"__{_name}__", operator_of(_call))
    setattr(SymbolicTensor, f"__r{_name}__", reflected(_call))
    setattr(SymbolicTensor, f"__i{_name}__", getattr(SymbolicTensor, _in_place))
for _name, _unary in {"neg": neg, "pos": positive}.items():
    setattr(SymbolicTensor, f"__{_name}__", _unary)
