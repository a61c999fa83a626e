"""Ops that take no tensor: inputs, numbers, sizes and ramps.

In: attributes.  Out: records.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.ir.dim import Dim, DimLike
from symgrad.ir.dtype import DType, int64
from symgrad.ir.expr import Expr
from symgrad.ir.graph import ConstantValue, Node
from symgrad.ir.types import TensorType
from symgrad.ops.record import Array, Program, Reader, SizeOf, structural


def _source(
    name: str,
    type: Callable[[dict[str, Any]], TensorType],
    numpy: Callable[..., Any],
    lower: Callable[[Reader, Node, tuple[Dim, ...]], Expr] | None,
    program: Program | None = None,
) -> None:
    structural(
        name, "source", rule=lambda args, attrs: type(dict(attrs)), numpy=numpy, lower=lower,
        vjp=None, arity=0, program=program,
    )  # fmt: skip


def _input(*, size: SizeOf, name: str, type: TensorType) -> Array:
    raise KeyError(f"no value was given for the input {name!r}")


def _drawn(*, size: SizeOf, number: int, **facts: Any) -> Array:
    raise KeyError(f"no value was given for draw {number}")


def _constant(*, size: SizeOf, value: ConstantValue, dtype: DType) -> Array:
    return np.asarray(value.value, dtype=dtype.of_numpy)


def _constant_text(*, value: ConstantValue, dtype: DType, kind: str, **facts: Any) -> str:
    number = repr(value.value) if math.isfinite(value.value) else f"float({str(value.value)!r})"
    return f"np.asarray({number}{f', {kind}' if dtype.wraps else ''})"


def _size(*, size: SizeOf, dim: Dim, dtype: DType) -> Array:
    return np.asarray(size(dim), dtype=dtype.of_numpy)


def _iota(*, size: SizeOf, length: DimLike) -> Array:
    return np.arange(size(length), dtype=np.int64)


_source("input", lambda attrs: attrs["type"], _input, None)
# What a trace draws at random, by its number: an unknown, which a proof takes for an input.
_source("draw", lambda attrs: TensorType.of(attrs["dtype"], attrs["shape"]), _drawn, None)
_source(
    "constant",
    lambda attrs: TensorType(attrs["dtype"]),
    _constant,
    lambda reader, node, indices: reader.pool.literal(node.attributes["value"].value, node.dtype),
    _constant_text,
)
_source(
    "size",
    lambda attrs: TensorType(attrs["dtype"]),
    _size,
    lambda reader, node, indices: reader.pool.integer(node.attributes["dim"], node.dtype),
    "np.asarray({dim}, {kind})",
)
_source(
    "iota",
    lambda attrs: TensorType.of(int64, (attrs["length"],)),
    _iota,
    lambda reader, node, indices: reader.pool.integer(indices[0]),
    "np.arange({length})",
)
