"""What lies under a window that moves over the last axes of a node: convolutions and pooling.

In: nodes, and a ``Window``.  Out: nodes.

A window of a known size is gone through place by place: of each place, the elements that lie there
are a slice.  Where the window has symbolic sizes, a convolution goes through its output instead, if
that has known sizes (the gradient by a kernel, say).
"""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from symgrad.budgets import MOST_STEPS
from symgrad.errors import ShapeError, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.session import Session
from symgrad.frontend.sizes import as_size
from symgrad.frontend.views import concatenate
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import bool_
from symgrad.ir.graph import Node

Dims = tuple[Dim, ...]
_NONE = Dim.of(0)


@dataclass(frozen=True)
class Window:
    """A window along the last axes.

    ``sizes``: its own; ``steps``: from one place that it takes to the next; ``gaps``: from one of
    its elements to the next.
    """

    sizes: Dims
    steps: tuple[int, ...]
    gaps: tuple[int, ...]

    def places(self) -> list[tuple[int, ...]]:
        """The places in it.  Raises UnsupportedOpError for symbolic sizes, and too many."""
        found = _places(self.sizes)
        if found is None:
            raise too_large(self.sizes)
        return found

    def read(self, session: Session, node: Node, place: Sequence[int], count: Dims) -> Node:
        """What lies at a place in it, for each of ``count`` positions."""
        lead = node.rank - len(count)
        steps = (1,) * lead + self.steps
        return part(session, node, self._starts(lead, place), node.shape[:lead] + count, steps)

    def written(self, session: Session, node: Node, place: Sequence[int], whole: Dims) -> Node:
        """The transpose of ``read``: the node's elements there, and zeros elsewhere."""
        lead = node.rank - len(whole)
        return session.apply(
            "unslice", node, shape=node.shape[:lead] + whole, starts=self._starts(lead, place),
            steps=(1,) * lead + self.steps,
        )  # fmt: skip

    def _starts(self, lead: int, place: Sequence[int]) -> Dims:
        own = (Dim.of(at * gap) for at, gap in zip(place, self.gaps, strict=True))
        return (_NONE,) * lead + tuple(own)


def too_large(sizes: Dims) -> UnsupportedOpError:
    """The error for a window that is not gone through."""
    names = [name for size in sizes for name in size.sizes]
    text = " x ".join(str(as_size(size)) for size in sizes)
    return UnsupportedOpError(
        f"a window of {text} elements is not gone through place by place", location=here(),
        hint=f"at most {MOST_STEPS} elements, of sizes that are numbers in the shape spec",
        number=Dim.size(names[0]) if names else None,
    )  # fmt: skip


def _places(shape: Sequence[Dim]) -> list[tuple[int, ...]] | None:
    """The places of a shape; None for a symbolic one, or too many."""
    known = [one.constant for one in shape if one.constant is not None]
    if len(known) < len(shape) or not 0 < math.prod(known) <= MOST_STEPS:
        return None
    return list(itertools.product(*map(range, known)))


def part(
    session: Session, node: Node, starts: Sequence[Dim], shape: Sequence[Dim],
    steps: Sequence[int] | None = None,
) -> Node:  # fmt: skip
    """A slice of a node; itself where it is all of it."""
    every = tuple(steps or (1,) * node.rank)
    if node.shape == tuple(shape) and set(every) <= {1}:
        return node
    return session.apply("slice", node, starts=tuple(starts), steps=every, sizes=tuple(shape))


def padded(
    session: Session, node: Node, edges: Sequence[tuple[int, int]], outside: float = 0.0,
    between: Sequence[int] | None = None,
) -> Node:  # fmt: skip
    """A node with ``outside`` around its last axes, cut off where an edge is negative.

    ``between``: the distance of its elements, with zeros between them.
    """
    lead = node.rank - len(edges)
    steps = (1,) * lead + tuple(between or (1,) * len(edges))
    every = [(0, 0)] * lead + list(edges)
    shape = tuple(
        (size if step == 1 else (size - 1) * step + 1) + max(low, 0) + max(high, 0)
        for size, step, (low, high) in zip(node.shape, steps, every, strict=True)
    )
    how = {"shape": shape, "starts": tuple(Dim.of(max(low, 0)) for low, _ in every),
           "steps": steps}  # fmt: skip
    wide = node if shape == node.shape else session.apply("unslice", node, **how)
    if outside and wide is not node:
        ones = session.expand(session.constant(1.0, node.dtype), node.shape)
        inside = session.cast(session.apply("unslice", ones, **how), bool_)
        around = session.expand(session.constant(outside, node.dtype), shape)
        wide = session.apply("where", inside, wide, around)
    cut = [Dim.of(max(-low, 0)) for low, _ in every]
    kept = [
        size + min(low, 0) + min(high, 0) for size, (low, high) in zip(shape, every, strict=True)
    ]
    return part(session, wide, cut, kept)


def pooled(session: Session, op: str, node: Node, window: Window, count: Dims) -> Node:
    """What lies under the window, put together by ``op``, for each of ``count`` positions."""
    pieces = [window.read(session, node, place, count) for place in window.places()]
    return reduce(lambda one, other: session.apply(op, one, other), pieces)


def shared(channels: Dim, groups: Dim) -> Dim:
    """The channels of each group.  Raises ShapeError where groups do not share them out."""
    found = channels.exact_quotient(groups)
    if found is None:
        number = groups.constant
        raise ShapeError(
            f"{as_size(channels)} channels are not shared out among {as_size(groups)} groups",
            location=here(), multiple=None if number is None else (channels, number),
            equal=[(channels, groups)] if number is None else (),
        )  # fmt: skip
    return found


# -- convolutions: (batch, channel, places) with (outputs, channels of a group, window)


def convolved(
    session: Session, left: Node, kernel: Node, window: Window, count: Dims, groups: Dim
) -> Node:
    """The sum of products under the window, for each of ``count`` positions and each kernel."""
    batch, outputs = left.shape[0], kernel.shape[0]
    x = _Grouped.channels(session, left, "x", "y", groups)
    weights = _Grouped.kernels(session, kernel, groups)
    names = string.ascii_lowercase[: len(count)]
    given = "x" + weights.labels.replace("y", "")
    if (places := _places(window.sizes)) is not None:
        found = []
        for place in places:
            piece = window.read(session, x.node, place, count)
            spec = f"{x.labels}{names},{weights.labels}->{given}{names}"
            found.append(session.apply("einsum", piece, weights.at(session, place), spec=spec))
        total = reduce(lambda one, other: session.apply("add", one, other), found)
        return session.reshape(total, (batch, outputs, *count))
    if (places := _places(count)) is None:
        raise too_large(window.sizes)
    crossed, found = Window(count, window.gaps, window.steps), []
    for place in places:
        piece = crossed.read(session, x.node, place, window.sizes)
        spec = f"{x.labels}{names},{weights.labels}{names}->{given}"
        one = session.apply("einsum", piece, weights.node, spec=spec)
        found.append(session.reshape(one, (batch, outputs, Dim.of(1))))
    return session.reshape(concatenate(session, found, 2), (batch, outputs, *count))


def kernel_gradient(session: Session, left: Node, grad: Node, window: Window, groups: Dim) -> Node:
    """The gradient of ``convolved`` by the kernel."""
    x = _Grouped.channels(session, left, "x", "y", groups)
    g = _Grouped.channels(session, grad, "x", "w", groups)
    names, found = string.ascii_lowercase[: len(window.sizes)], []
    channels = shared(left.shape[1], groups)
    for place in window.places():
        piece = window.read(session, x.node, place, grad.shape[2:])
        given = g.labels[1:] + x.labels.replace("x", "").replace("z", "")
        spec = f"{x.labels}{names},{g.labels}{names}->{given}"
        one = session.apply("einsum", piece, g.node, spec=spec)
        found.append(session.reshape(one, (grad.shape[1], channels, Dim.of(1))))
    whole = (grad.shape[1], channels, *window.sizes)
    return session.reshape(concatenate(session, found, 2), whole)


def spread(
    session: Session, left: Node, kernel: Node, window: Window, whole: Dims, groups: Dim
) -> Node:
    """The transpose of ``convolved`` in its first argument: the gradient by it, of sizes ``whole``.

    ``left`` has the channels that ``convolved`` gives.
    """
    g = _Grouped.channels(session, left, "x", "w", groups)
    weights = _Grouped.kernels(session, kernel, groups)
    names = string.ascii_lowercase[: len(whole)]
    given, found = "x" + weights.labels.replace("w", ""), []
    for place in window.places():
        spec = f"{g.labels}{names},{weights.labels}->{given}{names}"
        one = session.apply("einsum", g.node, weights.at(session, place), spec=spec)
        found.append(window.written(session, one, place, whole))
    total = reduce(lambda one, other: session.apply("add", one, other), found)
    return session.reshape(total, (left.shape[0], kernel.shape[1] * groups, *whole))


@dataclass(frozen=True)
class _Grouped:
    """A node whose channels are groups of channels; axes of size 1 are left out.

    ``labels``: those of einsum for its first axes: x the batch, z groups, y and w channels.
    """

    node: Node
    labels: str

    @property
    def lead(self) -> int:
        """The number of axes before those of the window."""
        return len(self.labels)

    @classmethod
    def channels(cls, session: Session, node: Node, batch: str, each: str, groups: Dim) -> _Grouped:
        """Of a node (batch, channel, places)."""
        sizes = {"z": groups, each: shared(node.shape[1], groups)}
        return cls._of(session, node, {batch: node.shape[0]}, sizes, node.shape[2:])

    @classmethod
    def kernels(cls, session: Session, node: Node, groups: Dim) -> _Grouped:
        """Of a node (outputs, channels of a group, window)."""
        sizes = {"z": groups, "w": shared(node.shape[0], groups), "y": node.shape[1]}
        return cls._of(session, node, {}, sizes, node.shape[2:])

    @classmethod
    def _of(
        cls, session: Session, node: Node, first: dict[str, Dim], sizes: dict[str, Dim], rest: Dims
    ) -> _Grouped:
        kept = first | {label: size for label, size in sizes.items() if size != 1}
        return cls(session.reshape(node, (*kept.values(), *rest)), "".join(kept))

    def at(self, session: Session, place: Sequence[int]) -> Node:
        """A kernel's elements at a place of the window."""
        own = self.node.shape[: self.lead]
        starts = (_NONE,) * self.lead + tuple(map(Dim.of, place))
        ones = tuple(Dim.of(1) for _ in place)
        return session.reshape(part(session, self.node, starts, own + ones), own)
