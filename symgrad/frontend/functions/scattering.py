"""Writing at computed places: what ``x[idx] = v`` and ``scatter`` become in a graph.

In: a tensor's node, index nodes for its first axes, values.  Out: the node with the values put in.

The registry adds at places (``index_add``); it does not put.  Putting is adding to zeros, choosing
by a mask of the places, and, where a place is named twice, letting only the last value through, as
torch does on one thread.  That costs a comparison of every pair of places, which is left out where
they are plainly distinct, or declared to be (``assume = {"idx": "unique index v"}``).
"""

from __future__ import annotations

from collections.abc import Sequence

from symgrad.frontend.session import Session, current
from symgrad.frontend.views import iota_along, permute
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import int64
from symgrad.ir.graph import Node
from symgrad.ops.integers import ramp_axis


def put(session: Session, whole: Node, places: Sequence[Node], value: Node) -> Node:
    """``whole`` with ``value`` at ``places``, which index its first axes.

    ``value`` is a number (rank 0), or has the shape of the places and ``whole``'s other axes.
    """
    count = len(places)
    indexed = whole.shape[:count]
    hit = named(session, places, indexed)
    hit = session.reshape(hit, (*indexed, *(Dim.of(1) for _ in whole.shape[count:])))
    hit = session.expand(hit, whole.shape)
    if not value.rank:
        spread = session.expand(value, whole.shape)
    else:
        kept = _last_writers(session, places)
        if kept is not None:
            lined = session.reshape(kept, (*kept.shape, *(Dim.of(1) for _ in whole.shape[count:])))
            zeros = session.expand(session.constant(0, value.dtype), value.shape)
            value = session.apply("where", session.expand(lined, value.shape), value, zeros)
        spread = added_up(session, value, places, whole.shape)
    return session.apply("where", hit, spread, whole)


def added_up(
    session: Session, values: Node, places: Sequence[Node], shape: tuple[Dim, ...]
) -> Node:  # fmt: skip
    """Zeros of ``shape`` with each value added at its place; narrow integers wrap around."""
    wide = session.cast(values, int64) if values.dtype.wraps else values
    spread = session.apply("index_add", wide, *places, shape=shape)
    return session.cast(spread, values.dtype)


def from_the_end(node: Node, size: Dim) -> Node:
    """Places with those that are negative counted from the end, as torch has them in brackets.

    What cannot be negative, and an input, stays as it is.
    """
    session = current()
    if session.demanded.counts_from_the_front(node):
        return node
    zero = session.expand(session.constant(0, node.dtype), node.shape)
    moved = session.apply("add", node, session.expand(session.size(size, node.dtype), node.shape))
    return session.apply("where", session.apply("lt", node, zero), moved, node)


def named(session: Session, places: Sequence[Node], shape: tuple[Dim, ...]) -> Node:
    """Which elements of ``shape`` the places name: a bool tensor."""
    ones = session.expand(session.constant(1, int64), places[0].shape)
    counts = session.apply("index_add", ones, *places, shape=shape)
    return session.apply("gt", counts, session.expand(session.constant(0, int64), shape))


def _last_writers(session: Session, places: Sequence[Node]) -> Node | None:
    """Where no later entry names the same place: a bool tensor; None when none ever does."""
    shape = places[0].shape
    covered = {axis for place in places if (axis := ramp_axis(place)) is not None}
    axes = [axis for axis, size in enumerate(shape) if axis not in covered and size != 1]
    open_places = [place for place in places if ramp_axis(place) is None]
    if not axes or any(_declared_distinct(session, place) for place in open_places):
        return None
    # Entries that agree on the covered axes are compared with one another along the others.
    wide = (*shape, *(shape[axis] for axis in axes))
    same: Node | None = None
    for place in open_places:
        equal = session.apply("eq", *_pair(session, place, axes, wide))
        same = equal if same is None else session.apply("logical_and", same, equal)
    order = _order(session, shape, axes)
    mine, other = _pair(session, order, axes, wide)
    later = session.apply("gt", other, mine)
    again = later if same is None else session.apply("logical_and", same, later)
    reduced = tuple(range(len(shape), len(wide)))
    return session.apply("logical_not", session.apply("any", again, axes=reduced))


def _pair(
    session: Session, node: Node, axes: Sequence[int], wide: tuple[Dim, ...]
) -> tuple[Node, Node]:
    """A node over ``wide`` as it stands, and with the extra axes in place of ``axes``."""
    extra = len(wide) - node.rank
    mine = session.reshape(node, (*node.shape, *(Dim.of(1) for _ in range(extra))))
    rest = [axis for axis in range(node.rank) if axis not in axes]
    moved = permute(session, node, (*rest, *axes))
    lined = tuple(Dim.of(1) if axis in axes else size for axis, size in enumerate(node.shape))
    other = session.reshape(moved, (*lined, *(node.shape[axis] for axis in axes)))
    return session.expand(mine, wide), session.expand(other, wide)


def _order(session: Session, shape: tuple[Dim, ...], axes: Sequence[int]) -> Node:
    """In which order entries along ``axes`` are written: their number in row-major order."""
    total: Node | None = None
    for axis in axes:
        ramp = iota_along(session, shape, axis)
        if total is not None:
            size = session.expand(session.size(shape[axis], int64), shape)
            ramp = session.apply("add", session.apply("mul", total, size), ramp)
        total = ramp
    assert total is not None
    return total


def _declared_distinct(session: Session, place: Node) -> bool:
    return source_label(place) in session.declared("unique")


def source_label(node: Node) -> str:
    """The name of the input whose entries an index holds, each at most once; else of the node."""
    while node.op in ("reshape", "permute", "slice"):
        node = node.args[0]
    return node.label
