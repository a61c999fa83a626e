"""Comparisons, logic and choice: ``< ==``, ``logical_and``, ``where``.

In: tensors and numbers.  Out: bool tensors; for ``where`` tensors.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from symgrad.errors import DTypeError
from symgrad.frontend.caller import here
from symgrad.frontend.compared import compared
from symgrad.frontend.constants import known_truth
from symgrad.frontend.dtypes import check_fits, finfo
from symgrad.frontend.kinds import refused
from symgrad.frontend.lift import (
    as_node,
    as_tensor,
    elementwise,
    is_operand,
    on_nodes,
    result_dtype,
    setting,
)
from symgrad.frontend.session import current
from symgrad.frontend.table import FUNCTIONS, marked_elementwise, operation
from symgrad.frontend.tensor import SelectedTensor, SymbolicTensor, TensorNumber, fresh
from symgrad.ir.dtype import DType, bool_, int64, uint8
from symgrad.ir.graph import Node
from symgrad.ops.integers import truth

Tensor = SymbolicTensor

_COMPARISONS = {
    "eq": ("equal_to",), "ne": ("not_equal",), "lt": ("less",), "le": ("less_equal",),
    "gt": ("greater",), "ge": ("greater_equal",),
}  # fmt: skip


def _comparison(op: str) -> Callable[[Any, Any], Tensor]:
    def call(input: Any, other: Any) -> Tensor:
        dtype = result_dtype((input, other))
        return on_nodes(
            lambda left, right: current().apply(op, left, right),
            (input, other), int64 if dtype == bool_ else dtype,
        )  # fmt: skip

    def method(self: Any, other: Any) -> Any:
        if op in ("eq", "ne") and (node := self.known_node()) is not None:
            compared(node, other)
        return call(self, other) if is_operand(other) else NotImplemented

    call.__name__ = call.__qualname__ = op
    call.__doc__ = f"The comparison ``{op}`` of each element, a bool tensor."
    setattr(SymbolicTensor, f"__{op}__", marked_elementwise(method))
    return call


for _op, _aliases in _COMPARISONS.items():
    operation(_op, *_aliases, inplace=True)(_comparison(_op))


def holds(relation: str, left: Any, right: Any) -> bool:
    """Does a relation between two numbers hold, without which an operation raises?

    Of tensors it is demanded, where it is not known.
    """
    if not any(isinstance(one, (SymbolicTensor, TensorNumber)) for one in (left, right)):
        return bool(getattr(operator, relation)(left, right))
    node = elementwise(relation, left, right).node
    known = known_truth(node)
    if known is None:
        current().demanded.note(truth(node), here())
    return known is not False


def as_bool(node: Node) -> Node:
    """A node as truth values: numbers are True where they are not 0."""
    if node.dtype == bool_:
        return node
    session = current()
    return session.apply("ne", node, session.expand(session.constant(0, node.dtype), node.shape))


def _logic(op: str, operands: int = 2) -> Callable[..., Tensor]:
    def one(input: Tensor) -> Tensor:
        return on_nodes(lambda node: current().apply(op, as_bool(node)), (input,), None)

    def two(input: Tensor, other: Tensor) -> Tensor:
        return on_nodes(
            lambda *nodes: current().apply(op, *map(as_bool, nodes)), (input, other), None
        )

    call: Callable[..., Tensor] = two if operands == 2 else one

    call.__name__ = call.__qualname__ = op
    call.__doc__ = f"The op ``{op}`` of each element's truth."
    return call


logical_and = operation("logical_and", inplace=True)(_logic("logical_and"))
logical_or = operation("logical_or", inplace=True)(_logic("logical_or"))
logical_xor = operation("logical_xor", inplace=True)(_logic("logical_xor"))
logical_not = operation("logical_not", inplace=True)(_logic("logical_not", 1))


def check_mask(name: str, mask: Any, *also: DType) -> None:
    """Raise DTypeError for a mask that is none of truth values, nor of a dtype beside these."""
    dtype = as_tensor(mask).dtype
    if dtype not in (bool_, *also):
        raise DTypeError(
            f"{name} expects a mask of dtype bool, not {dtype}", location=here(),
            hint="compare it: mask != 0",
        )  # fmt: skip


@operation("where", method=False)
def where(condition: Tensor, input: Any = None, other: Any = None) -> Tensor:
    """``input`` where the condition holds, ``other`` elsewhere."""
    if input is not None and other is not None:
        check_mask("where", condition, uint8)
    if (input is None) != (other is None):
        raise refused("where", "input" if input is None else "other", "Tensor", None)
    if input is None:
        return FUNCTIONS["nonzero"](condition, as_tuple=True)  # type: ignore[no-any-return]
    dtype = result_dtype((input, other))
    session = current()

    def choose(mask: Node, yes: Node, no: Node) -> Node:
        return session.apply(
            "where", as_bool(mask), session.cast(yes, dtype), session.cast(no, dtype)
        )

    yes, no = (as_number(value, dtype) for value in (input, other))
    return on_nodes(choose, (condition, yes, no), None)


def as_number(value: Any, dtype: Any) -> Any:
    """A number as a constant tensor of ``dtype``; tensors as they are."""
    if isinstance(value, Tensor):
        return value
    check_fits(value, dtype)
    return fresh(as_node(value, dtype))


@operation("where", function=False)
def where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """``self`` where the condition holds, ``other`` elsewhere."""
    return where(condition, self, other)


@operation("isnan", elementwise=True)
def isnan(input: Any) -> Tensor:
    """Where it is not a number."""
    return elementwise("ne", input, input)


@operation("isinf", elementwise=True)
def isinf(input: Any) -> Tensor:
    """Where it is infinite."""
    if not as_tensor(input).dtype.is_float:
        return elementwise("ne", input, input)
    return elementwise("eq", elementwise("abs", input), float("inf"))


@operation("isposinf", elementwise=True)
def isposinf(input: Any) -> Tensor:
    """Where it is infinite and positive."""
    return _is_number(input, float("inf"))


@operation("isneginf", elementwise=True)
def isneginf(input: Any) -> Tensor:
    """Where it is infinite and negative."""
    return _is_number(input, -float("inf"))


def _is_number(input: Any, number: float) -> Tensor:
    if not as_tensor(input).dtype.is_float:
        return elementwise("ne", input, input)
    return elementwise("eq", input, number)


@operation("isfinite", elementwise=True)
def isfinite(input: Any) -> Tensor:
    """Where it is neither infinite nor NaN."""
    if not as_tensor(input).dtype.is_float:
        return elementwise("eq", input, input)
    return elementwise("lt", elementwise("abs", input), float("inf"))


@operation("nan_to_num", inplace=True, elementwise=True)
def nan_to_num(input: Any, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
    """NaN and infinities replaced by numbers: by default 0 and the greatest and least floats."""
    limits = finfo(as_tensor(input).dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    finite = where(elementwise("eq", input, float("inf")), high, input)
    finite = where(elementwise("eq", finite, float("-inf")), low, finite)
    return where(isnan(input), nan, finite)


@operation("masked_fill", inplace=True, elementwise=True)
def masked_fill(input: Any, mask: Tensor, value: Any) -> Tensor:
    """``value`` where the mask is True."""
    check_mask("masked_fill", mask)
    source = as_tensor(input)
    number = as_number(value, source.dtype)
    found = where(mask, fresh(current().cast(number.node, source.dtype)), source)
    if not isinstance(found, SelectedTensor):
        found.lies_in_rows()
    return found


@operation("heaviside", elementwise=True)
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 below 0, 1 above, ``values`` at 0."""
    one, zero = (setting(number, as_tensor(input).dtype) for number in (1.0, 0.0))
    step = where(elementwise("gt", input, 0), one, zero)
    return where(elementwise("eq", input, 0), values, step)
