"""What becomes of the entries that name one place: ``scatter_reduce``, ``index_reduce``, counts.

In: tensors and index tensors.  Out: tensors.
Sums add at places.  Extremes and products are taken over all entries, each of which is left out
(-inf, inf, 1) where it names another place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from symgrad.errors import DTypeError, ShapeError, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.functions.arithmetic import add, div, mul, sub
from symgrad.frontend.functions.comparisons import where
from symgrad.frontend.functions.gathering import along, index_vector, same_rank, scatter_source
from symgrad.frontend.functions.mathematics import maximum, minimum
from symgrad.frontend.functions.movement import axis_of
from symgrad.frontend.functions.reductions import amax, amin, prod, sum
from symgrad.frontend.functions.scattering import added_up
from symgrad.frontend.kinds import refused
from symgrad.frontend.lift import as_index, as_node, as_tensor, elementwise
from symgrad.frontend.questions import questions
from symgrad.frontend.session import current
from symgrad.frontend.sizes import as_dim
from symgrad.frontend.table import OperationValueError, operation
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.frontend.views import iota_along, permute
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import float32, float64, int64
from symgrad.ir.graph import Node

Tensor = SymbolicTensor
_OVER: dict[str, tuple[float, Callable[..., Tensor], Callable[..., Tensor]]] = {
    "amax": (-math.inf, amax, maximum),
    "amin": (math.inf, amin, minimum),
    "prod": (1, prod, mul),
}
"""What is left out as, what is taken over entries, and of two tensors."""


@operation("scatter_reduce", inplace=True)
def scatter_reduce(
    input: Any, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:  # fmt: skip
    """``out[i][index[i][j]]`` is the reduction of all ``src[i][j]`` that name it.

    ``input`` is one of them if ``include_self``; it stays where nothing names it.
    """
    node, places = as_tensor(input).node, as_index(as_node(index))
    same_rank("scatter_reduce", node, places)
    if not isinstance(src, Tensor):
        raise refused("scatter_reduce", "src", "Tensor", src)
    given = scatter_source(node, places, src)
    if reduce not in ("sum", "mean", *_OVER):
        raise OperationValueError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}.",
            location=here(),
        )
    return _reduced(node, axis_of(dim, node.rank), places, given, reduce, bool(include_self))


@operation("index_reduce", inplace=True)
def index_reduce(
    input: Any, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:  # fmt: skip
    """The slices of an axis, each the reduction of all slices of ``source`` that name it."""
    node, given, session = as_tensor(input).node, as_tensor(source).node, current()
    axis, places = axis_of(dim, node.rank), index_vector("index_reduce", index)
    if reduce not in ("mean", *_OVER):
        raise OperationValueError(
            f"reduce argument must be either prod, mean, amax or amin, got {reduce}.",
            location=here(),
        )
    if given.dtype != node.dtype:
        raise DTypeError("index_reduce(): self and source have different dtypes", location=here())
    if given.rank != node.rank:
        raise ShapeError("index_reduce(): self and source have other axes", location=here())
    if not session.truth(places.shape[0], "==", given.shape[axis]):
        raise ShapeError(
            "index_reduce(): index and source have other sizes", location=here(),
            equal=((places.shape[0], given.shape[axis]),),
        )  # fmt: skip
    lined = tuple(size if place == axis else 1 for place, size in enumerate(given.shape))
    whole = session.expand(session.reshape(places, lined), given.shape)
    return _reduced(node, axis, whole, given, reduce, bool(include_self))


def _reduced(
    node: Node, axis: int, index: Node, given: Node, reduce: str, include_self: bool
) -> Tensor:  # fmt: skip
    """``node`` reduced along an axis with the entries of ``given`` that name its places."""
    session, own = current(), fresh(node)
    places = along(index, axis)
    ones = session.expand(session.constant(1, int64), index.shape)
    counts = fresh(session.apply("index_add", ones, *places, shape=node.shape))
    if reduce in _OVER:
        rest, over, of_two = _OVER[reduce]
        found = over(fresh(_entries(node, axis, index, given, rest)), -1)
        found = fresh(session.cast(found.node, node.dtype))
        return of_two(own, found) if include_self else where(counts > 0, found, own)
    added = fresh(added_up(session, given, places, node.shape))
    if reduce == "mean" and not node.dtype.is_float:
        raise UnsupportedOpError("means of integers at places are not supported", location=here())
    if include_self:
        total = add(own, added)
        return total if reduce == "sum" else div(total, counts + 1)
    mean = added if reduce == "sum" else div(added, where(counts > 0, counts, 1))
    return where(counts > 0, mean, own)


def _entries(node: Node, axis: int, index: Node, given: Node, rest: float) -> Node:
    """All entries beside each place, along a new last axis: those that name it, else ``rest``."""
    if math.isinf(rest) and not node.dtype.is_float:
        raise UnsupportedOpError("extremes of integers at places are not supported",
                                 location=here())  # fmt: skip
    session, wide = current(), (*node.shape, index.shape[axis])
    named = session.apply("eq", _beside(index, axis, wide), iota_along(session, wide, axis))
    left_out = session.expand(session.constant(rest, node.dtype), wide)
    return session.apply("where", named, _beside(given, axis, wide), left_out)


def _beside(node: Node, axis: int, wide: tuple[Dim, ...]) -> Node:
    """An axis as the last one, the same for each place."""
    session, others = current(), [place for place in range(node.rank) if place != axis]
    for place in others:
        if not session.truth(node.shape[place], "==", wide[place]):
            raise UnsupportedOpError(
                "an index with fewer places than the tensor along another axis is not supported "
                "here", location=here(),
            )  # fmt: skip
    moved = permute(session, node, (*others, axis))
    lined = (*moved.shape[:axis], Dim.of(1), *moved.shape[axis:])
    return session.expand(session.reshape(moved, lined), wide)


# -- counts


@operation("bincount")
def bincount(input: Any, weights: Any = None, minlength: Any = 0) -> Tensor:
    """How often each number below ``minlength`` occurs, or the sum of the weights beside it.

    A greater number makes the result of torch longer; that there is none is printed.
    """
    places, session, length = as_index(as_node(input)), current(), as_dim(minlength)
    if places.rank != 1:
        raise ShapeError("bincount only supports 1-d non-negative integral inputs", location=here())
    if length == 0:
        raise UnsupportedOpError(
            "the length of what bincount gives depends on values", location=here(),
            hint="give it a minlength",
        )  # fmt: skip
    known = questions()
    if known is not None and not session.demanded.lies_below(places, length):
        known.assume("the numbers that bincount counts are less than its minlength", here())
    if weights is None:
        values = session.expand(session.constant(1, int64), places.shape)
    else:
        own = as_node(weights)
        values = own if own.dtype == float32 else session.cast(own, float64)
        values = session.apply("detach", values)
    return fresh(session.apply("index_add", values, places, shape=(length,)))


@operation("histc")
def histc(input: Any, bins: Any = 100, min: Any = 0, max: Any = 0) -> Tensor:
    """How many elements lie in each of ``bins`` parts of ``min`` to ``max``; none beyond these."""
    source, count, session = as_tensor(input), as_dim(bins), current()
    if not source.dtype.is_float:
        raise DTypeError("histc takes floats", location=here(), hint="convert it with .float()")
    width = max - min
    if not width > 0:
        raise UnsupportedOpError(
            "histc between the least and the greatest element is not supported", location=here(),
            hint="give it min and max",
        )  # fmt: skip
    values = fresh(session.apply("detach", source.flatten().node))
    part = elementwise("floor", div(mul(sub(values, min), bins), width))
    part = where(values == max, sub(fresh(session.size(count, int64)), 1), part)
    wide = (count, values.node.shape[0])
    number = session.cast(iota_along(session, wide, 0), source.dtype)
    lies = session.apply("eq", session.expand(part.node, wide), number)
    return sum(fresh(session.cast(lies, source.dtype)), -1)
