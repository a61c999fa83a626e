"""Elements at computed places: gather, scatter, dynamic slices.

In: an ``Equation``.  Out: the node of its result.  Fills ``RULES``.

A place must lie in its axis, as everywhere in symgrad: what JAX does with one that does not (clip
it, drop it, fill in NaN) is not part of the graph, so that such calls are left out by a condition
(``frontend/demands.py``).  jax.numpy adds the size to a negative index before it gathers; an index
that is an input is taken as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from symgrad.frontend.functions.scattering import added_up, put
from symgrad.frontend.session import Session
from symgrad.frontend.views import Slice, permute
from symgrad.frontend.windows import part
from symgrad.interop.jax.equations import Equation, rule
from symgrad.interop.jax.primitives import known_number, known_size, ramp
from symgrad.interop.jax.sizes import sizes
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import int64
from symgrad.ir.graph import Node

_SAME = ("reshape", "expand", "permute")


def from_the_front(session: Session, node: Node) -> Node:
    """An index without what makes a negative one count from the end: ``where(i < 0, i + n, i)``.

    Only where it cannot be negative inside its axis: an input, or what is a position itself.
    """
    if node.op == "cast":
        return session.cast(from_the_front(session, node.args[0]), node.dtype)
    if node.op in _SAME:
        inner = from_the_front(session, node.args[0])
        return node if inner is node.args[0] else session.apply(node.op, inner, **node.attributes)
    if node.op == "where" and node.args[0].op == "lt":
        _, moved, plain = node.args
        compared, zero = node.args[0].args
        if compared is plain and known_number(zero) == 0 and _is_moved(moved, plain):
            number = known_number(plain)
            if number is not None:
                return plain if number >= 0 else moved
            return plain if _is_position(plain) else node
    return node


def _is_moved(node: Node, plain: Node) -> bool:
    """Is it ``plain`` and a size?"""
    return node.op == "add" and plain is node.args[0] and _bare(node.args[1]).op in (
        "size", "constant"
    )  # fmt: skip


def _bare(node: Node) -> Node:
    while node.op in (*_SAME, "cast", "slice"):
        node = node.args[0]
    return node


def _is_position(node: Node) -> bool:
    """Is it an input, or the position of something in an axis?"""
    found = _bare(node)
    if found.op == "index_add":  # in another order
        found = _bare(found.args[0])
    return found.op in ("input", "iota", "argmax", "argmin", "rank")


def _columns(equation: Equation, indices: Node, count: int) -> list[Node]:
    """The index of each indexed axis, from the last axis of what JAX calls start indices."""
    session, shape = equation.session, indices.shape[:-1]
    last = indices.rank - 1
    pieces: list[Node] = []
    if indices.op == "concat" and indices.attributes["axis"] == last:
        pieces = [one for one in indices.args if one.shape[last] == 1]
    if len(pieces) != count:
        pieces = []
        for number in range(count):
            starts = [Dim.of(0)] * last + [Dim.of(number)]
            pieces.append(part(session, indices, starts, (*shape, Dim.of(1))))
    return [
        session.cast(from_the_front(session, session.reshape(one, shape)), int64)
        for one in pieces
    ]  # fmt: skip


def _places(
    equation: Equation, operand: Node, indices: Node, mapped: Sequence[int],
    batching: Sequence[tuple[int, int]], windows: Sequence[tuple[int, Dim]],
) -> tuple[list[int], list[Node]]:  # fmt: skip
    """The axes of the operand that are indexed, and where.

    The places have the axes of the indices, then those of the window that are indexed.
    ``mapped``: the axes that indices are for.  ``batching``: axes of the operand and of the indices
    that go together.  ``windows``: axes of the operand, and how much of each is read.
    """
    session, own = equation.session, indices.shape[:-1]
    columns = dict(zip(mapped, _columns(equation, indices, len(mapped)), strict=True))
    partial = [(axis, size) for axis, size in windows if axis in columns]
    for axis, size in windows:
        if axis not in columns and size != operand.shape[axis]:
            raise equation.refused("that reads a part of an axis")
    shape = (*own, *(size for _, size in partial))
    found: dict[int, Node] = {}
    for axis, column in columns.items():
        lined = session.reshape(column, (*own, *(Dim.of(1) for _ in partial)))
        found[axis] = session.expand(lined, shape)
    for number, (axis, size) in enumerate(partial):
        if size != 1:
            step = ramp(session, shape, len(own) + number)
            zero = known_number(found[axis]) == 0
            found[axis] = step if zero else session.apply("add", found[axis], step)
    for axis, place in batching:
        found[axis] = ramp(session, shape, place)
    axes = sorted(found)
    return axes, [found[axis] for axis in axes]


@rule("gather")
def _gather(equation: Equation) -> Node:
    operand, indices = equation.args
    session, how = equation.session, equation.params["dimension_numbers"]
    extents = sizes().shape(equation.params["slice_sizes"])
    dropped = (*how.collapsed_slice_dims, *how.operand_batching_dims)
    batching = list(
        zip(how.operand_batching_dims, how.start_indices_batching_dims, strict=True)
    )  # fmt: skip
    windows = [
        (axis, extents[axis]) for axis in range(operand.rank) if axis not in dropped
    ]  # fmt: skip
    window_axes = [axis for axis, _ in windows]
    if not how.start_index_map and not batching:
        raise equation.refused("without indices")
    axes, places = _places(
        equation, operand, indices, how.start_index_map, batching, windows
    )  # fmt: skip
    rest = [axis for axis in range(operand.rank) if axis not in axes]
    found = session.apply("index", permute(session, operand, (*axes, *rest)), *places)
    # Axes: those of the indices, the indexed ones of the window, then the others of the window.
    inner = [axis for axis in window_axes if axis in axes] + rest
    count = indices.rank - 1
    now = {axis: count + number for number, axis in enumerate(inner)}
    offsets = dict(zip(how.offset_dims, window_axes, strict=True))
    batch = iter(range(count))
    order = [
        now[offsets[axis]] if axis in offsets else next(batch) for axis in range(found.rank)
    ]  # fmt: skip
    return permute(session, found, tuple(order))


@rule("scatter-add", "scatter_add", "scatter", "scatter-sub", "scatter_sub")
def _scatter(equation: Equation) -> Node:
    operand, indices, updates = equation.args
    session, how = equation.session, equation.params["dimension_numbers"]
    dropped = (*how.inserted_window_dims, *how.operand_batching_dims)
    batching = list(
        zip(how.operand_batching_dims, how.scatter_indices_batching_dims, strict=True)
    )  # fmt: skip
    window_axes = [axis for axis in range(operand.rank) if axis not in dropped]
    windows = [
        (axis, updates.shape[place])
        for axis, place in zip(window_axes, how.update_window_dims, strict=True)
    ]  # fmt: skip
    if not how.scatter_dims_to_operand_dims and not batching:
        raise equation.refused("without indices")
    axes, places = _places(
        equation, operand, indices, how.scatter_dims_to_operand_dims, batching, windows
    )
    rest = [axis for axis in range(operand.rank) if axis not in axes]
    at = dict(zip(window_axes, how.update_window_dims, strict=True))
    batch = [place for place in range(updates.rank) if place not in how.update_window_dims]
    inner = [axis for axis in window_axes if axis in axes] + rest
    moved = permute(session, updates, (*batch, *(at[axis] for axis in inner)))
    front = permute(session, operand, (*axes, *rest))
    if equation.name == "scatter":
        found = put(session, front, places, moved)
    else:
        op = "sub" if equation.name.endswith("sub") else "add"
        spread = added_up(session, moved, places, front.shape)
        plain = op == "add" and known_number(front) == 0
        found = spread if plain else session.apply(op, front, spread)
    back = (*axes, *rest)
    return permute(session, found, tuple(back.index(axis) for axis in range(operand.rank)))


# -- dynamic slices


def _starts(equation: Equation, node: Node, given: Sequence[Node]) -> list[Dim | Node]:
    """Where a dynamic slice starts along each axis: a size where it is known.

    Elsewhere the place is one that lies inside, as everywhere.
    """
    found: list[Dim | Node] = []
    whole = equation.args[1].shape if equation.name == "dynamic_update_slice" else equation.shape
    for axis, one in enumerate(given):
        room = node.shape[axis] - whole[axis]
        if room == 0:
            found.append(Dim.of(0))
            continue
        bare = from_the_front(equation.session, one)
        while bare.op in ("cast", "reshape", "expand"):
            bare = bare.args[0]
        start = known_size(bare)
        found.append(bare if start is None else _clamped(equation.session, start, room))
    return found


def _clamped(session: Session, start: Dim, room: Dim) -> Dim:
    """Where JAX has a slice start that would not lie inside otherwise."""
    if session.truth(start, "<", 0):
        return Dim.of(0)
    return start if session.truth(start, "<=", room) else room


@rule("dynamic_slice")
def _dynamic_slice(equation: Equation) -> Node:
    node, *given = equation.args
    starts = _starts(equation, node, given)
    session, found = equation.session, node
    for axis, start in enumerate(starts):
        size = equation.shape[axis]
        if isinstance(start, Dim):
            if size != found.shape[axis]:
                first = [start if one == axis else Dim.of(0) for one in range(found.rank)]
                whole = [size if one == axis else found.shape[one] for one in range(found.rank)]
                found = part(session, found, first, whole)
            continue
        places = session.expand(session.cast(start, int64), (size,))
        if size != 1:
            places = session.apply("add", places, session.apply("iota", length=size))
        order = (axis, *(one for one in range(found.rank) if one != axis))
        taken = session.apply("index", permute(session, found, order), places)
        found = permute(session, taken, tuple(order.index(one) for one in range(found.rank)))
    return found


@rule("dynamic_update_slice")
def _dynamic_update_slice(equation: Equation) -> Node:
    node, update, *given = equation.args
    session, starts = equation.session, _starts(equation, node, given)
    if not all(isinstance(one, Dim) for one in starts):
        raise equation.refused("at places that depend on values")
    steps = [
        Slice(axis, start, 1, update.shape[axis])
        for axis, start in enumerate(starts) if isinstance(start, Dim)
    ]  # fmt: skip
    parts = [node]
    for step in steps:
        parts.append(step.read(session, parts[-1]))
    found = update
    for step, whole in zip(reversed(steps), reversed(parts[:-1]), strict=True):
        found = step.write(session, whole, found)
    return found
