"""The reference backend: a graph evaluated with NumPy.

In: nodes and arrays for the inputs.  Out: arrays.  Imports: ``symgrad.ops``, ``symgrad.ir``, numpy.

It defines what a kernel must compute, and runs where there is no C compiler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.errors import KernelArgumentError, KernelTypeError
from symgrad.ir.dim import DimLike, Size
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.record import get

Array = np.ndarray[Any, Any]


def evaluate(
    outputs: Sequence[Node],
    feeds: Mapping[str, Array],
    sizes: Mapping[str, int] | None = None,
) -> list[Array]:
    """The values of ``outputs`` for the inputs ``feeds``.

    ``sizes`` adds symbolic sizes that no input's shape gives.  Raises KernelArgumentError for an
    input that is missing or does not fit its shape, KernelTypeError for a wrong dtype.
    """
    order = ancestors(outputs)
    known = bind_sizes([node for node in order if node.op == "input"], feeds, sizes or {})

    def size(dim: DimLike) -> int:
        return dim if isinstance(dim, int) else dim.at(known)

    last_use = {arg.index: node.index for node in order for arg in node.args}
    wanted = {node.index for node in outputs}
    values: dict[int, Array] = {}
    with np.errstate(all="ignore"):
        for node in order:
            if node.op == "input":
                value = np.asarray(feeds[node.attributes["name"]])
            else:
                arguments = [values[arg.index] for arg in node.args]
                result = get(node.op).numpy(*arguments, size=size, **node.attributes)
                value = np.asarray(result, dtype=str(node.dtype))
            values[node.index] = value
            for arg in node.args:
                if last_use[arg.index] == node.index and arg.index not in wanted:
                    values.pop(arg.index, None)
    return [values[node.index] for node in outputs]


def bind_sizes(
    inputs: Sequence[Node], feeds: Mapping[str, Array], sizes: Mapping[str, int]
) -> dict[str, int]:
    """The symbolic sizes that the arrays' shapes give; every shape is checked against them."""
    known = dict(sizes)
    arrays = [(node, _array(node, feeds)) for node in inputs]
    for node, array in arrays:
        for dim, length in zip(node.shape, array.shape, strict=True):
            if isinstance(dim.atom, Size):
                known.setdefault(dim.atom.name, length)
    for node, array in arrays:
        for axis, (dim, length) in enumerate(zip(node.shape, array.shape, strict=True)):
            if not set(dim.sizes) <= set(known):
                continue
            if dim.at(known) != length:
                raise KernelArgumentError(
                    f"{node.attributes['name']!r} has shape {array.shape}: axis {axis} is {length}"
                    f" where {dim} is {dim.at(known)}"
                )
    return known


def _array(node: Node, feeds: Mapping[str, Array]) -> Array:
    name = node.attributes["name"]
    if name not in feeds:
        raise KernelArgumentError(f"no value is given for the input {name!r}")
    array = np.asarray(feeds[name])
    if array.dtype != np.dtype(str(node.dtype)):
        raise KernelTypeError(f"{name!r} is {array.dtype}, not {node.dtype}")
    if array.ndim != node.rank:
        raise KernelArgumentError(f"{name!r} has rank {array.ndim}, not {node.rank}: {node.type}")
    return array
