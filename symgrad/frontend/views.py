"""Storage and views: what makes a write through one tensor visible through another.

In: the node that a storage holds, and the steps from it to a view.  Out: the node of the view, and
the node of the storage after a write through the view.

A graph has no memory, so a write makes a new node of the whole storage, in which the written part
is replaced.  Each step knows both ways: ``read`` the part, and ``write`` it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from symgrad.errors import Location, ShapeError, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.questions import note_limit, questions
from symgrad.frontend.session import Session, current
from symgrad.frontend.unsupported import missing_op
from symgrad.ir.dim import Dim, product
from symgrad.ir.dtype import bool_, int64
from symgrad.ir.graph import Node

Shape = tuple[Dim, ...]


class Step(Protocol):
    """One step from a tensor to a view of it."""

    def read(self, session: Session, whole: Node) -> Node:
        """The part of ``whole`` that the view shows."""
        ...

    def write(self, session: Session, whole: Node, part: Node) -> Node:
        """``whole`` with that part replaced by ``part``."""
        ...

    def strides(self, shape: Shape, strides: Shape) -> Shape | None:
        """The strides of the view of a tensor of that shape and those strides.

        None where its elements cannot be shown without being moved.
        """
        ...


@dataclass(frozen=True)
class Reshape:
    """The same elements in another shape."""

    shape: tuple[Dim, ...]

    def read(self, session: Session, whole: Node) -> Node:
        """The part that the view shows."""
        return session.reshape(whole, self.shape)

    def write(self, session: Session, whole: Node, part: Node) -> Node:
        """The whole with that part replaced."""
        return session.reshape(part, whole.shape)

    def strides(self, shape: Shape, strides: Shape) -> Shape | None:
        """The strides of the view."""
        flat = current().flat
        old, new = tuple(map(flat, shape)), tuple(map(flat, self.shape))
        return reshaped_strides(old, tuple(map(flat, strides)), new)


@dataclass(frozen=True)
class Permute:
    """The axes in another order."""

    axes: tuple[int, ...]

    def read(self, session: Session, whole: Node) -> Node:
        """The part that the view shows."""
        return permute(session, whole, self.axes)

    def write(self, session: Session, whole: Node, part: Node) -> Node:
        """The whole with that part replaced."""
        inverse = tuple(self.axes.index(axis) for axis in range(len(self.axes)))
        return permute(session, part, inverse)

    def strides(self, shape: Shape, strides: Shape) -> Shape | None:
        """The strides of the view."""
        return tuple(strides[axis] for axis in self.axes)


@dataclass(frozen=True)
class Slice:
    """Every ``step``-th element along one axis: ``size`` of them, from ``start``."""

    axis: int
    start: Dim
    step: int
    size: Dim

    def read(self, session: Session, whole: Node) -> Node:
        """The part that the view shows."""
        starts, steps, sizes = self._along(whole)
        if sizes == whole.shape and self.step == 1:
            return whole
        return session.apply("slice", whole, starts=starts, steps=steps, sizes=sizes)

    def _along(
        self, whole: Node
    ) -> tuple[tuple[Dim, ...], tuple[int, ...], tuple[Dim, ...]]:  # fmt: skip
        here = range(whole.rank)
        starts = tuple(self.start if axis == self.axis else Dim.of(0) for axis in here)
        steps = tuple(self.step if axis == self.axis else 1 for axis in here)
        sizes = tuple(self.size if axis == self.axis else whole.shape[axis] for axis in here)
        return starts, steps, sizes

    def write(self, session: Session, whole: Node, part: Node) -> Node:
        """The whole with that part replaced."""
        if part.shape == whole.shape and self.step == 1:
            return part
        if self.step != 1:
            return self._write_between(session, whole, part)
        before = Slice(self.axis, Dim.of(0), 1, self.start)
        after = self.start + self.size
        behind = Slice(self.axis, after, 1, whole.shape[self.axis] - after)
        pieces = [
            before.read(session, whole) if before.size != 0 else None,
            part,
            behind.read(session, whole) if behind.size != 0 else None,
        ]
        return concatenate(session, [piece for piece in pieces if piece is not None], self.axis)

    def _write_between(self, session: Session, whole: Node, part: Node) -> Node:
        """The steps leave elements out: choose by a mask that is True on the written ones."""
        starts, steps, _ = self._along(whole)
        marks = session.expand(session.constant(True, bool_), part.shape)
        spread = {"shape": whole.shape, "starts": starts, "steps": steps}
        hit = session.apply("unslice", marks, **spread)
        return session.apply("where", hit, session.apply("unslice", part, **spread), whole)

    def strides(self, shape: Shape, strides: Shape) -> Shape | None:
        """The strides of the view."""
        return tuple(
            stride * self.step if axis == self.axis else stride
            for axis, stride in enumerate(strides)
        )


@dataclass(frozen=True)
class Windows:
    """All runs of ``size`` elements along one axis, ``step`` apart, each along a new last axis."""

    axis: int
    size: int
    step: int

    def read(self, session: Session, whole: Node) -> Node:
        """The part that the view shows."""
        places = [place.read(session, whole) for place in self._places(whole)]
        rows = [session.reshape(one, (*one.shape, Dim.of(1))) for one in places]
        return concatenate(session, rows, whole.rank)

    def _places(self, whole: Node) -> list[Slice]:
        """For each place in a run, the elements that lie there."""
        count = (whole.shape[self.axis] - self.size) // self.step + 1
        return [Slice(self.axis, Dim.of(at), self.step, count) for at in range(self.size)]

    def write(self, session: Session, whole: Node, part: Node) -> Node:
        """The whole with that part replaced."""
        places = self._places(whole)
        if self.step < self.size and places[0].size != 1:
            raise note_limit(UnsupportedOpError(
                "windows that overlap are written in place: several of their elements are one in "
                "memory", location=here(), hint="clone() them first",
            ))  # fmt: skip
        for at, place in enumerate(places):
            column = Slice(part.rank - 1, Dim.of(at), 1, Dim.of(1)).read(session, part)
            whole = place.write(session, whole, session.reshape(column, part.shape[:-1]))
        return whole

    def strides(self, shape: Shape, strides: Shape) -> Shape | None:
        """The strides of the view."""
        along = strides[self.axis]
        apart = (stride * self.step if axis == self.axis else stride
                 for axis, stride in enumerate(strides))  # fmt: skip
        return (*apart, along)


@dataclass(frozen=True)
class Expand:
    """Broadcast: an element that is shown at several places cannot be written."""

    shape: tuple[Dim, ...]

    def read(self, session: Session, whole: Node) -> Node:
        """The part that the view shows."""
        return session.expand(whole, self.shape)

    def write(self, session: Session, whole: Node, part: Node) -> Node:
        """The whole with that part replaced."""
        if product(part.shape) == product(whole.shape):
            return session.reshape(part, whole.shape)
        raise ShapeError(
            "an expanded tensor cannot be written in place: several of its elements are one in "
            "memory", location=here(), hint="clone() it first",
        )  # fmt: skip

    def strides(self, shape: Shape, strides: Shape) -> Shape | None:
        """The strides of the view."""
        added = len(self.shape) - len(shape)
        kept = tuple(
            stride if size == wide else Dim.of(0)
            for size, stride, wide in zip(shape, strides, self.shape[added:], strict=True)
        )
        return (*(Dim.of(0) for _ in range(added)), *kept)


@dataclass(frozen=True)
class Diagonal:
    """The diagonal of two axes, as a last axis."""

    offset: int
    axes: tuple[int, int]

    def read(self, session: Session, whole: Node) -> Node:
        """The part that the view shows."""
        return session.apply("diagonal", whole, offset=self.offset, axes=self.axes)

    def write(self, session: Session, whole: Node, part: Node) -> Node:
        """The whole with that part replaced."""
        first, second = self.axes
        spread = embed_diagonal(session, part, whole.shape, self.offset, self.axes)
        row = iota_along(session, whole.shape, first)
        column = iota_along(session, whole.shape, second)
        offset = session.expand(session.size(self.offset, row.dtype), whole.shape)
        hit = session.apply("eq", column, session.apply("add", row, offset))
        return session.apply("where", hit, spread, whole)

    def strides(self, shape: Shape, strides: Shape) -> Shape | None:
        """The strides of the view."""
        first, second = self.axes
        rest = tuple(stride for axis, stride in enumerate(strides) if axis not in self.axes)
        return (*rest, strides[first] + strides[second])


@dataclass(frozen=True)
class Places:
    """What some axes hold at one place each, which nodes without axes are."""

    axes: tuple[int, ...]
    places: tuple[Node, ...]

    def read(self, session: Session, whole: Node) -> Node:
        """The part that the view shows."""
        rest = (axis for axis in range(whole.rank) if axis not in self.axes)
        return session.apply("index", permute(session, whole, (*self.axes, *rest)), *self.places)

    def write(self, session: Session, whole: Node, part: Node) -> Node:
        """The whole with that part replaced."""
        hit = None
        for axis, place in zip(self.axes, self.places, strict=True):
            wide = session.expand(session.cast(place, int64), whole.shape)
            own = session.apply("eq", iota_along(session, whole.shape, axis), wide)
            hit = own if hit is None else session.apply("logical_and", hit, own)
        assert hit is not None
        ones = (Dim.of(1) if axis in self.axes else size for axis, size in enumerate(whole.shape))
        spread = session.expand(session.reshape(part, tuple(ones)), whole.shape)
        return session.apply("where", hit, spread, whole)

    def strides(self, shape: Shape, strides: Shape) -> Shape | None:
        """The strides of the view."""
        return tuple(one for axis, one in enumerate(strides) if axis not in self.axes)


@dataclass(frozen=True)
class Packed:
    """The ``count`` elements that a mask of the axes from ``start`` on selects, along one axis."""

    mask: Node
    start: int
    count: int

    def _placed(self, session: Session, whole: Node) -> tuple[Node, Node]:
        """The whole for each of the elements, along a new axis, and whether it stands there."""
        mask, end = self.mask, self.start + self.mask.rank
        total = product(mask.shape)
        row = session.reshape(session.cast(mask, int64), (total,))
        before = session.apply("cumsum", row, axis=0, reverse=False)
        ordinals = iota_along(session, (Dim.of(self.count), total), 0)
        one = session.expand(session.constant(1, int64), ordinals.shape)
        is_one = session.apply(
            "eq", session.expand(before, ordinals.shape), session.apply("add", ordinals, one)
        )
        flat = session.expand(session.reshape(mask, (total,)), ordinals.shape)
        stands = session.apply("logical_and", flat, is_one)
        shape = (*whole.shape[: self.start], total, *whole.shape[end:])
        return session.reshape(whole, shape), stands

    def _wide(self, session: Session, stands: Node, flat: Node) -> Node:
        """The places as large as the whole for each of the elements."""
        ones = (Dim.of(1),) * self.start, (Dim.of(1),) * (flat.rank - self.start - 1)
        lined = session.reshape(stands, (*ones[0], *stands.shape, *ones[1]))
        shape = (*flat.shape[: self.start], *stands.shape, *flat.shape[self.start + 1 :])
        return session.expand(lined, shape)

    def read(self, session: Session, whole: Node) -> Node:
        """The part that the view shows."""
        if not self.count:
            shape = self._shape(whole.shape)
            return session.expand(session.constant(0, whole.dtype), shape)
        flat, stands = self._placed(session, whole)
        wide = self._wide(session, stands, flat)
        at = (*flat.shape[: self.start], Dim.of(1), *flat.shape[self.start :])
        each = session.expand(session.reshape(flat, at), wide.shape)
        return self._picked(session, wide, each, self.start + 1)

    def _picked(self, session: Session, where: Node, values: Node, axis: int) -> Node:
        if values.dtype == bool_:
            return session.apply("any", session.apply("logical_and", where, values), axes=(axis,))
        zero = session.expand(session.constant(0, values.dtype), values.shape)
        lows = session.demanded.ends(values).lows if values.dtype.is_integer else ()
        is_place = any(low.constant is not None and low.constant >= 0 for low in lows)
        op = "amax" if is_place else "sum"  # the greatest place is one, and the sum may be none
        return session.apply(op, session.apply("where", where, values, zero), axes=(axis,))

    def write(self, session: Session, whole: Node, part: Node) -> Node:
        """The whole with that part replaced."""
        if not self.count:
            return whole
        flat, stands = self._placed(session, whole)
        wide = self._wide(session, stands, flat)
        at = (*part.shape[: self.start + 1], Dim.of(1), *part.shape[self.start + 1 :])
        each = session.expand(session.reshape(part, at), wide.shape)
        spread = session.reshape(self._picked(session, wide, each, self.start), whole.shape)
        ones = (Dim.of(1),) * self.start, (Dim.of(1),) * (whole.rank - self.start - self.mask.rank)
        lined = session.reshape(self.mask, (*ones[0], *self.mask.shape, *ones[1]))
        return session.apply("where", session.expand(lined, whole.shape), spread, whole)

    def _shape(self, shape: Shape) -> Shape:
        end = self.start + self.mask.rank
        return (*shape[: self.start], Dim.of(self.count), *shape[end:])

    def strides(self, shape: Shape, strides: Shape) -> Shape | None:
        """Those of a tensor of its own, as torch makes it."""
        return contiguous_strides(self._shape(shape))


@dataclass(frozen=True, eq=False)
class Perhaps:
    """The same memory, or a copy of it: the strides that calls have decide which.

    ``said``: the condition under which it is the same memory; ``where``: the line.  ``since``: the
    version of the memory at that moment.
    """

    said: str
    where: Location | None
    since: int

    def read(self, session: Session, whole: Node) -> Node:
        """All of it."""
        return whole

    def write(self, session: Session, whole: Node, part: Node) -> Node:
        """What is written."""
        return part

    def strides(self, shape: Shape, strides: Shape) -> Shape | None:
        """The strides as they are."""
        return strides

    def assume(self) -> None:
        """Take it to be the same memory, which the verdict prints."""
        known = questions()
        if known is not None:
            known.assume_here(self.said, self.where)


def possible_copies(steps: Sequence[Step]) -> tuple[Perhaps, ...]:
    """The steps of which it is not certain that what they lead to is the same memory."""
    return tuple(step for step in steps if type(step) is Perhaps)


class Storage:
    """Memory as a graph sees it: the node of its present contents.  ``version`` counts writes.

    ``label``: the name under which a write is reported ("x", "grad_y"...); empty for tensors that
    nobody else holds.  ``doubt``: where memory was written that may be the same; see
    ``Session.uncertain``.  ``settled``: was it made with contiguous strides, whatever those of the
    inputs are?  ``written``: the version at each write, and the possible copies on its way.
    ``copied``: those that are no steps of any tensor.
    """

    __slots__ = ("copied", "doubt", "label", "node", "settled", "version", "written")

    def __init__(self, node: Node, label: str = "", *, settled: bool = False) -> None:
        self.node = node
        self.label = label
        self.version = 0
        self.doubt: tuple[Location | None, ...] = ()
        self.settled = settled
        self.written: list[tuple[int, tuple[Perhaps, ...]]] = []
        self.copied: list[Perhaps] = []

    def __call__(self) -> None:
        """What ``x.storage()`` of torch calls.  Raises MissingOperationError."""
        raise note_limit(missing_op("storage", here()))

    def write(self, session: Session, steps: tuple[Step, ...], part: Node) -> None:
        """Replace what ``steps`` lead to by ``part``, of that shape and of the storage's dtype."""
        session.note_write(self)
        for one in self.copied:
            one.assume()
        if session.strided:
            self.written.append((self.version, possible_copies(steps)))
        wholes = [self.node]
        for step in steps[:-1]:
            wholes.append(step.read(session, wholes[-1]))
        for whole, step in zip(reversed(wholes), reversed(steps), strict=False):
            part = step.write(session, whole, part)
        self.node = part
        self.version += 1
        if self.label:
            session.note_written(self.label)

    def check_read(self, steps: tuple[Step, ...]) -> None:
        """What is read through steps was written through others: print what makes these one."""
        through = possible_copies(steps)
        for version, other in self.written:
            for one in (*through, *other):
                if (one in through) != (one in other) and one.since <= version:
                    one.assume()


# -- where elements lie in memory, counted in elements


def contiguous_strides(shape: Sequence[Dim]) -> Shape:
    """The strides of a tensor whose rows follow one another."""
    return _contiguous(tuple(shape))


@lru_cache(maxsize=1024)
def _contiguous(shape: Shape) -> Shape:
    found = []
    total = Dim.of(1)
    for size in reversed(shape):
        found.append(total)
        total = total * size
    return tuple(reversed(found))


def lies_without_gaps(shape: Shape, strides: Shape) -> bool:
    """Are these the strides of contiguous memory whose axes were put in another order?"""
    total, left = Dim.of(1), list(zip(shape, strides, strict=True))
    while left:
        inner = next((one for one in left if one[1] == total), None)
        if inner is None:
            return False
        left.remove(inner)
        total = total * inner[0]
    return True


def unknown_strides(shape: Sequence[Dim]) -> Shape:
    """Strides of which nothing is known."""
    return tuple(Dim.size(f"stride {axis}") for axis in range(len(shape)))


def certain_strides(step: Step, shape: Shape, strides: Shape) -> Shape | None:
    """The strides of a view, if the memory can show it for any number of batch axes."""
    if isinstance(step, Reshape):
        return reshaped_strides(shape, strides, step.shape)
    return step.strides(shape, strides)


def reshaped_strides(old: Shape, strides: Shape, new: Shape) -> Shape | None:
    """The strides under which the same memory shows another shape; None when there are none.

    Runs of axes that follow one another in memory are split anew (``computeStride`` in PyTorch).
    """
    if 0 in old:
        return contiguous_strides(new)
    runs: list[tuple[Dim, Dim]] = []  # elements and innermost stride, the innermost run first
    for size, stride in zip(reversed(old), reversed(strides), strict=True):
        if size == 1:
            continue
        if runs and stride == runs[-1][0] * runs[-1][1]:
            runs[-1] = (runs[-1][0] * size, runs[-1][1])
        else:
            runs.append((size, stride))
    found: list[Dim] = []
    rest = list(new)
    for count, innermost in runs:
        covered = Dim.of(1)
        while covered != count:
            if not rest:
                return None
            found.append(innermost * covered)
            covered = covered * rest.pop()
    found.extend(Dim.of(1) for _ in rest)
    return tuple(reversed(found)) if all(size == 1 for size in rest) else None


# -- nodes that several of the frontend's parts build


def permute(session: Session, node: Node, axes: tuple[int, ...]) -> Node:
    """``node`` with its axes in another order; itself when that is the order they have."""
    if axes == tuple(range(node.rank)):
        return node
    return session.apply("permute", node, axes=axes)


def concatenate(session: Session, pieces: list[Node], axis: int) -> Node:
    """The pieces one after the other; the piece itself when there is one."""
    return pieces[0] if len(pieces) == 1 else session.apply("concat", *pieces, axis=axis)


def iota_along(session: Session, shape: tuple[Dim, ...], axis: int) -> Node:
    """An int64 tensor of ``shape`` that holds each element's index along ``axis``."""
    ramp = session.apply("iota", length=shape[axis])
    lined = tuple(size if place == axis else Dim.of(1) for place, size in enumerate(shape))
    return session.expand(session.reshape(ramp, lined), shape)


def embed_diagonal(
    session: Session, part: Node, shape: tuple[Dim, ...], offset: int, axes: tuple[int, int]
) -> Node:
    """``part``, a diagonal as the last axis, repeated along the second of ``axes``.

    Only the elements on the diagonal mean something: choose them by a mask.
    """
    first, second = axes
    rows, batch = shape[first], part.shape[:-1]
    if part.shape[-1] != rows:
        starts = (*(Dim.of(0) for _ in batch), Dim.of(max(-offset, 0)))
        steps = (1,) * part.rank
        part = session.apply("unslice", part, shape=(*batch, rows), starts=starts, steps=steps)
    rest = tuple(axis for axis in range(len(shape)) if axis not in axes)
    order = tuple(sorted((*rest, first)))
    placed = permute(session, part, tuple((*rest, first).index(axis) for axis in order))
    lined = tuple(Dim.of(1) if axis == second else size for axis, size in enumerate(shape))
    return session.expand(session.reshape(placed, lined), shape)
