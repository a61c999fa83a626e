"""``& | ^ ~ << >>``: logic of bools, and arithmetic on the bits of integers.

In: tensors and numbers.  Out: tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.errors import DTypeError, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.constants import known_number, known_values
from symgrad.frontend.functions.arithmetic import operator_of, reflected
from symgrad.frontend.functions.comparisons import (
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
)
from symgrad.frontend.integers import differing, joined, masked
from symgrad.frontend.lift import (
    array_node,
    as_node,
    as_tensor,
    broadcast_shapes,
    elementwise,
    result_dtype,
)
from symgrad.frontend.session import current
from symgrad.frontend.table import operation
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.ir.dtype import DType, bool_, int64

Tensor = SymbolicTensor
_OF_BITS: dict[str, Callable[[Any, int], Any]] = {"&": masked, "|": joined, "^": differing}
_LARGEST = 2**62
"""A mask that is larger is not taken apart in int64."""


def _on_bits(symbol: str, operands: Sequence[Any], dtype: DType) -> Tensor:
    """Of integers: by quotients and remainders; both unknown, bit by bit."""
    if symbol == "~":
        full = -1 if dtype.is_signed else 2 ** (8 * dtype.itemsize) - 1
        return elementwise("sub", fresh(as_node(full, dtype)), *operands)
    for mask, other in (tuple(reversed(operands)), operands):
        node = as_node(mask)
        known = known_number(node)
        if known is None or not -_LARGEST < known < _LARGEST:
            continue
        session, number = current(), as_node(other)
        wide = fresh(session.cast(number, int64))
        found = as_tensor(_OF_BITS[symbol](wide, int(known))).node
        whole = session.expand(found, broadcast_shapes(number.shape, node.shape))
        return fresh(session.cast(whole, dtype))
    if dtype.bits > _MOST_BITS:
        raise UnsupportedOpError(
            f"{symbol} of integers of {dtype.bits} bits, none of which is a known number",
            location=here(),
        )
    left, right = (fresh(current().cast(as_node(one, dtype), int64)) for one in operands)
    return fresh(current().cast(_OF_TWO[symbol](left, right, dtype).node, dtype))


def _common(left: Tensor, right: Tensor, dtype: DType) -> Tensor:
    """``left & right``, bit by bit: the last bit of signed integers counts below zero."""
    total: Any = 0
    for place in range(dtype.bits):
        power = 2**place
        own, other = (elementwise("floordiv", one, power) for one in (left, right))
        both = elementwise("mul", elementwise("mod", own, 2), elementwise("mod", other, 2))
        last = dtype.is_signed and place == dtype.bits - 1
        total = elementwise("add", elementwise("mul", both, -power if last else power), total)
    return total  # type: ignore[no-any-return]


def _either(left: Tensor, right: Tensor, dtype: DType) -> Tensor:
    whole = elementwise("add", left, right)
    return elementwise("sub", whole, _common(left, right, dtype))


def _differing(left: Tensor, right: Tensor, dtype: DType) -> Tensor:
    whole = elementwise("add", left, right)
    return elementwise("sub", whole, elementwise("mul", _common(left, right, dtype), 2))


_MOST_BITS = 16
_OF_TWO: dict[str, Callable[[Tensor, Tensor, DType], Tensor]] = {
    "&": _common, "|": _either, "^": _differing,
}  # fmt: skip


def _bitwise(symbol: str, call: Callable[..., Tensor], *names: str) -> Callable[..., Any]:
    def bitwise(*operands: Any) -> Any:
        dtype = result_dtype(operands)
        if dtype.is_integer:
            return _on_bits(symbol, operands, dtype)
        if dtype != bool_:
            raise DTypeError(f"{symbol} takes bools and integers, not {dtype}", location=here())
        return call(*operands)

    bitwise.__doc__ = f"``{symbol}`` of bools, and of integers: one known, or of few bits."
    return operation(*names, inplace=True, elementwise=True)(bitwise)


def _shift(symbol: str, name: str) -> Callable[..., Any]:
    def shifted(input: Any, other: Any) -> Any:
        dtype = result_dtype((input, other))
        if not dtype.is_integer:
            raise DTypeError(f"{symbol} takes integers, not {dtype}", location=here())
        places = known_values(as_node(other))
        if places is None or not ((places >= 0) & (places < 8 * dtype.itemsize - 1)).all():
            raise UnsupportedOpError(
                f"{symbol} of integers by places that are not known, or more than there are",
                location=here(),
            )
        powers = fresh(array_node(current(), 2 ** places.astype(np.int64), dtype))
        number = fresh(as_node(input, dtype))
        return elementwise("mul" if symbol == "<<" else "floordiv", number, powers)

    shifted.__doc__ = f"``{symbol}`` of integers by known numbers of places: by powers of 2."
    return operation(name, inplace=True, elementwise=True)(shifted)


for _dunder, _name, _made in (
    ("and", "bitwise_and", _bitwise("&", logical_and, "bitwise_and")),
    ("or", "bitwise_or", _bitwise("|", logical_or, "bitwise_or")),
    ("xor", "bitwise_xor", _bitwise("^", logical_xor, "bitwise_xor")),
    ("lshift", "bitwise_left_shift", _shift("<<", "bitwise_left_shift")),
    ("rshift", "bitwise_right_shift", _shift(">>", "bitwise_right_shift")),
):
    setattr(SymbolicTensor, f"__{_dunder}__", operator_of(_made))
    setattr(SymbolicTensor, f"__r{_dunder}__", reflected(_made))
    setattr(SymbolicTensor, f"__i{_dunder}__", getattr(SymbolicTensor, f"{_name}_"))
setattr(SymbolicTensor, "__invert__", _bitwise("~", logical_not, "bitwise_not"))  # noqa: B010
