"""Sorting, and reading and writing at the places that sorting gives.

In: tensors.  Out: sorted values and their places.

The trace remembers which integer tensors are the order of an axis, and the rank of each element
in it: a gather at the order is then adding up at the ranks, and a scatter a gather at the ranks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from symgrad.errors import ShapeError
from symgrad.frontend.caller import here
from symgrad.frontend.functions.movement import axis_of, share
from symgrad.frontend.functions.scattering import added_up
from symgrad.frontend.lift import as_tensor
from symgrad.frontend.session import Order, current
from symgrad.frontend.sizes import as_dim
from symgrad.frontend.table import operation
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.frontend.views import Slice, iota_along
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import int64
from symgrad.ir.graph import Node
from symgrad.ops import sorting

Tensor = SymbolicTensor


class Sorted(NamedTuple):
    """What sorting returns."""

    values: Any
    indices: Any


@operation("sort")
def sort(input: Any, dim: int = -1, descending: bool = False, *, stable: Any = None) -> Sorted:
    """An axis in order, and where each element came from; equal elements keep their order."""
    source = as_tensor(input)
    if not source.ndim:
        return Sorted(fresh(source.node), fresh(current().constant(0, int64)))
    axis, session = axis_of(dim, source.ndim), current()
    node = source.node if source.dtype.is_float else session.cast(source.node, int64)
    with session.building() as graph:
        values, origins = sorting.sort(node, axis, descending=bool(descending))
        ranks = graph.apply("rank", node, axis=axis, descending=bool(descending))
    session.orders[origins] = Order(axis, ranks)
    return Sorted(fresh(session.cast(values, source.dtype)), fresh(origins))


@operation("argsort")
def argsort(input: Any, dim: int = -1, descending: bool = False, stable: Any = None) -> Tensor:
    """Where the elements of the sorted axis come from."""
    found: Tensor = sort(input, dim, descending).indices
    return found


@operation("msort")
def msort(input: Any) -> Tensor:
    """The first axis in order."""
    found: Tensor = sort(input, 0).values
    return found


@operation("topk")
def topk(
    input: Any, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Sorted:  # fmt: skip
    """The ``k`` greatest (or least) elements of an axis, in order, and their places."""
    source = as_tensor(input)
    axis, count = axis_of(dim, source.ndim), as_dim(k)
    truth = current().truth
    if truth(count, "<", 0) or not truth(count, "<=", source.node.shape[axis]):
        raise ShapeError(
            f"topk: k={k} is out of range for size {source.shape[axis]}", location=here()
        )
    values, order = sort(source, axis, largest)
    part = Slice(axis, Dim.of(0), 1, count)
    return Sorted(fresh(share(values, part).node), fresh(share(order, part).node))


@operation("kthvalue")
def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> Sorted:
    """The k-th least element of an axis (counted from 1), and its place."""
    source = as_tensor(input)
    if not source.ndim:
        source = source.reshape(1)
        return Sorted(*(part.reshape(()) for part in kthvalue(source, k, 0)))
    axis, place, truth = axis_of(dim, source.ndim), as_dim(k), current().truth
    if truth(place, "<", 1) or not truth(place, "<=", source.node.shape[axis]):
        raise ShapeError(
            f"kthvalue(): selected number k out of range for dimension {axis}: {k} of"
            f" {source.shape[axis]}", location=here(),
        )  # fmt: skip
    part = Slice(axis, place - 1, 1, Dim.of(1))
    found = [fresh(share(one, part).node) for one in sort(source, axis)]
    return Sorted(*(part if keepdim else part.squeeze(axis) for part in found))


def order_of(node: Node, axis: int) -> tuple[Order, Dim] | None:
    """The order that a node is, or the first elements of, along an axis; and how many those are."""
    session = current()
    whole = node
    if node.op == "slice" and node.args[0] in session.orders:
        attrs = node.attributes
        leading = all(start == 0 for start in attrs["starts"]) and set(attrs["steps"]) == {1}
        cut = [place for place, size in enumerate(node.args[0].shape) if node.shape[place] != size]
        if not leading or cut not in ([], [axis]):
            return None
        whole = node.args[0]
    order = session.orders.get(whole)
    if order is None or order.axis != axis:
        return None
    return order, node.shape[axis]


def gather_in_order(node: Node, index: Node, axis: int) -> Node | None:
    """``node`` gathered along ``axis`` at ``index``, if that is an order of it; else None."""
    found = order_of(index, axis)
    if found is None or node.shape != found[0].ranks.shape:
        return None
    order, count = found
    session = current()
    spread = added_up(session, node, _places(order), node.shape)
    return Slice(axis, Dim.of(0), 1, count).read(session, spread)


def scatter_in_order(whole: Node, index: Node, axis: int, value: Node) -> Node | None:
    """``value`` scattered along ``axis`` at ``index``, if that is an order of it; else None."""
    found = order_of(index, axis)
    if found is None or whole.shape != found[0].ranks.shape or value.shape != index.shape:
        return None
    order, count = found
    session = current()
    if count == whole.shape[axis]:
        return session.apply("index", value, *_places(order))
    starts, steps = tuple(Dim.of(0) for _ in whole.shape), (1,) * whole.rank
    padded = session.apply("unslice", value, shape=whole.shape, starts=starts, steps=steps)
    hit = session.apply("lt", order.ranks, session.expand(session.size(count, int64), whole.shape))
    return session.apply("where", hit, session.apply("index", padded, *_places(order)), whole)


def _places(order: Order) -> list[Node]:
    """The places of every element in the sorted tensor."""
    ranks, session = order.ranks, current()
    return [
        ranks if axis == order.axis else iota_along(session, ranks.shape, axis)
        for axis in range(ranks.rank)
    ]
