"""The reference backend: a graph evaluated with NumPy.

In: nodes and arrays for the inputs.  Out: arrays.

It defines what a kernel must compute, and runs where there is no C compiler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.errors import KernelArgumentError, KernelTypeError
from symgrad.ir.dim import Dim, DimLike, Size
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
        try:
            return dim if isinstance(dim, int) else dim.at(known)
        except KeyError as error:
            raise KernelArgumentError(f"no input tells the size {error}: give it") from None

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
                value = np.asarray(result, dtype=node.dtype.of_numpy)
            values[node.index] = value
            for arg in node.args:
                if last_use[arg.index] == node.index and arg.index not in wanted:
                    values.pop(arg.index, None)
    return [values[node.index] for node in outputs]


def bind_sizes(
    inputs: Sequence[Node], feeds: Mapping[str, Array], sizes: Mapping[str, int]
) -> dict[str, int]:
    """The symbolic sizes that the arrays' shapes give; every shape is checked against them.

    A size is read off an axis that is that size alone, or else the only unknown in it, to the
    first power (``2*n + 1``).
    """
    known = dict(sizes)
    arrays = [(node, _array(node, feeds)) for node in inputs]
    axes = [pair for node, array in arrays for pair in zip(node.shape, array.shape, strict=True)]
    plain = [(dim, length) for dim, length in axes if isinstance(dim.atom, Size)]
    for dim, length in (*plain, *axes):
        solution = _solve(dim, length, known)
        if solution is not None:
            known.setdefault(*solution)
    for node, array in arrays:
        for axis, (dim, length) in enumerate(zip(node.shape, array.shape, strict=True)):
            if set(dim.sizes) <= set(known) and dim.at(known) != length:
                raise KernelArgumentError(
                    f"{node.attributes['name']!r} has shape {array.shape}: axis {axis} is {length}"
                    f" where {dim} is {dim.at(known)}"
                )
    return known


def _solve(dim: Dim, length: int, known: Mapping[str, int]) -> tuple[str, int] | None:
    """The one size that is not known in ``dim == length``, where the equation is linear in it."""
    unknown = [name for name in dim.sizes if name not in known]
    if len(unknown) != 1:
        return None
    (name,) = unknown
    at_0, at_1, at_2 = (dim.at({**known, name: value}) for value in (0, 1, 2))
    slope = at_1 - at_0
    if slope == 0 or at_2 - at_1 != slope or any(a for a in dim.atoms if not isinstance(a, Size)):
        return None
    value, rest = divmod(length - at_0, slope)
    return (name, value) if rest == 0 and value >= 0 else None


def _array(node: Node, feeds: Mapping[str, Array]) -> Array:
    name = node.attributes["name"]
    if name not in feeds:
        raise KernelArgumentError(f"no value is given for the input {name!r}")
    array = np.asarray(feeds[name])
    if array.dtype != np.dtype(node.dtype.of_numpy):
        raise KernelTypeError(f"{name!r} is {array.dtype}, not {node.dtype}")
    if array.ndim != node.rank:
        raise KernelArgumentError(f"{name!r} has rank {array.ndim}, not {node.rank}: {node.type}")
    return array
