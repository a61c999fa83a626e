"""Products of two tensors summed over shared labels: matmul and its kin.

In: nothing.  Out: the record of ``einsum``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.errors import DTypeError, ShapeError
from symgrad.ir.dim import Dim
from symgrad.ir.expr import Expr
from symgrad.ir.graph import Node
from symgrad.ir.types import TensorType
from symgrad.ops.record import Array, Reader, SizeOf, apply, structural


def parse(spec: str) -> tuple[str, str, str]:
    """``"ik,kj->ij"`` as its three words."""
    operands, result = spec.split("->")
    left, right = operands.split(",")
    return left, right, result


def _rule(args: Sequence[TensorType], attrs: Mapping[str, Any]) -> TensorType:
    left, right, result = parse(attrs["spec"])
    sizes: dict[str, Dim] = {}
    for word, arg in zip((left, right), args, strict=True):
        if len(word) != arg.rank or len(set(word)) != len(word):
            raise ShapeError(f"einsum: {word!r} does not label the axes of {arg}")
        for label, size in zip(word, arg.shape, strict=True):
            if sizes.setdefault(label, size) != size:
                raise ShapeError(
                    f"einsum {attrs['spec']!r}: {label!r} is {sizes[label]} in one operand and "
                    f"{size} in the other, of {args[0]} and {args[1]}",
                    equal=[(sizes[label], size)],
                )
    if args[0].dtype != args[1].dtype or not args[0].dtype.is_float:
        raise DTypeError(f"einsum takes two float tensors of one dtype, not {args[0]}, {args[1]}")
    if not set(result) <= set(sizes) or len(set(result)) != len(result):
        raise ShapeError(f"einsum: {result!r} is not a selection of the labels of {left},{right}")
    return TensorType(args[0].dtype, tuple(sizes[label] for label in result))


def _numpy(left: Array, right: Array, *, size: SizeOf, spec: str) -> Array:
    result: Array = np.einsum(spec, left, right, optimize=True)
    return result


def _lower(reader: Reader, node: Node, indices: tuple[Dim, ...]) -> Expr:
    left, right, result = parse(node.attributes["spec"])
    sizes = dict(zip(left + right, node.args[0].shape + node.args[1].shape, strict=True))
    summed = sorted(set(left + right) - set(result))

    def body(*bound: Dim) -> Expr:
        at = dict(zip(result, indices, strict=True)) | dict(zip(summed, bound, strict=True))
        factors = [
            reader.read(position, *(at[label] for label in word))
            for position, word in enumerate((left, right))
        ]
        return reader.pool.call("mul", *factors, dtype=node.dtype)

    return reader.reduce("sum", [sizes[label] for label in summed], body)


def _vjp(node: Node, g: Node) -> Sequence[Node]:
    left, right, result = parse(node.attributes["spec"])
    x, y = node.args
    return (_adjoint(g, result, y, right, x, left), _adjoint(g, result, x, left, y, right))


def _adjoint(g: Node, result: str, other: Node, word: str, arg: Node, wanted: str) -> Node:
    """The cotangent of ``arg``; along labels that only ``arg`` has it is constant."""
    present = "".join(label for label in wanted if label in result or label in word)
    found = apply("einsum", g, other, spec=f"{result},{word}->{present}")
    if present == wanted:
        return found
    kept = tuple(
        size if label in present else Dim.of(1)
        for label, size in zip(wanted, arg.shape, strict=True)
    )
    return arg.graph.expand(apply("reshape", found, shape=kept), arg.shape)


structural(
    "einsum", "contraction", rule=_rule, numpy=_numpy, lower=_lower, vjp=_vjp, arity=2,
    linear=(0, 1), program="np.einsum({spec!r}, {0}, {1})",
)  # fmt: skip
