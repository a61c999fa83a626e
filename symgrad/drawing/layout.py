"""The layout of a picture.

In: ``Picture``.  Out: ``Placed``: boxes with corners, arrows as paths, panels.

Forward runs down on the left and backward runs up on the right, so that an operation lies beside
its derivative.  graphlay lays out each side as a layered graph (the method of Sugiyama, Tagawa and
Toda); an arrow over several rows follows the column that graphlay gives it.  Saved tensors lie in a
lane between the sides, below the row of their source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from symgrad.budgets import CAREFUL_BOXES, MOST_BOXES
from symgrad.drawing.picture import (
    BACKWARD,
    FORWARD,
    SAVED,
    DrawingError,
    Edge,
    Picture,
    Vertex,
)

CHARACTER, MARGIN, BOX, PILL = 7.3, 11.0, 40.0, 22.0
COLUMN_GAP, ROW_GAP, PANEL, LANE_STEP = 26.0, 34.0, 26.0, 7.0
LONGEST = 30  # characters of a line in a box

Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A vertex and its rectangle."""

    vertex: Vertex
    left: float
    top: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """The x of its centre."""
        return self.left + self.width / 2

    @property
    def bottom(self) -> float:
        """The y of its lower side."""
        return self.top + self.height


@dataclass(frozen=True)
class Arrow:
    """A path: ``points`` from the source on; ``square``: along corners, not as a curve."""

    kind: str
    points: tuple[Point, ...]
    square: bool = False


@dataclass(frozen=True)
class Panel:
    """A titled background."""

    stage: str
    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True)
class Placed:
    """A picture, placed."""

    picture: Picture
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    panels: tuple[Panel, ...]
    width: float
    height: float


def shortened(text: str) -> str:
    """Text that fits a box."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def width_of(vertex: Vertex) -> float:
    """How wide the box of a vertex is."""
    if vertex.stage == SAVED:
        words = [f"{shortened(vertex.name)} {shortened(vertex.detail)}"]
    else:
        words = [shortened(f"{vertex.name} {vertex.label}".strip()), shortened(vertex.detail)]
    return max(64.0, max(map(len, words)) * CHARACTER + 2 * MARGIN)


def place(picture: Picture) -> Placed:
    """Lay a picture out.  Raises DrawingError where graphlay is missing, and for too many boxes."""
    if len(picture.vertices) > MOST_BOXES:
        raise DrawingError(
            f"the graph has {len(picture.vertices)} vertices; a picture has at most {MOST_BOXES}",
            hint="draw a part of it",
        )
    return _Layout(picture).placed()


class _Side:
    """Forward or backward: rows from the top, columns from the left."""

    def __init__(self, picture: Picture, stage: str) -> None:
        self.up = stage == BACKWARD
        self.members = [n for n, one in enumerate(picture.vertices) if one.stage == stage]
        inside = set(self.members)
        self.edges = [e for e in picture.edges if e.source in inside and e.target in inside]
        depth = _depths(self.members, [(e.source, e.target) for e in self.edges])
        self.rows = 1 + max(depth.values(), default=-1)
        self.row = {n: self.rows - 1 - d if self.up else d for n, d in depth.items()}
        self.middle: dict[int, float] = {}
        self.bends: dict[Edge, list[tuple[float, int]]] = {}
        self.width = 0.0
        if self.members:
            self._columns(picture, depth)

    def _columns(self, picture: Picture, depth: dict[int, int]) -> None:
        import graphlay

        graph = graphlay.Graph()
        for n in self.members:
            width = width_of(picture.vertices[n])
            graph.node(n, width=width, height=BOX, rank={"fixed": depth[n]})
        for edge in self.edges:
            graph.edge(edge.source, edge.target)
        spacing = {"layer_gap": ROW_GAP, "node_gap": COLUMN_GAP, "dummy_gap": COLUMN_GAP / 2}
        effort = "fast" if len(self.members) > CAREFUL_BOXES else "balanced"
        found = graphlay.layout(
            graph, options={"direction": "topbottom", "spacing": spacing, "effort": effort}
        )
        paths = [[(p["x"], p["y"]) for p in edge["points"]] for edge in found.edges]
        left = found.bounds["min"]["x"]
        self.width = found.bounds["max"]["x"] - left
        middles = found.positions()
        self.middle = {n: middles[n][0] - left for n in self.members}
        height = {depth[n]: y for n, (_, y) in middles.items()}
        for edge, path in zip(self.edges, paths, strict=True):
            between = range(depth[edge.source] + 1, depth[edge.target])
            self.bends[edge] = [
                (_column_at(path, height[row]) - left, self._flipped(row)) for row in between
            ]

    def sink(self, rows: int) -> None:
        """Move the side down, so that it ends at the last of ``rows`` rows."""
        by = rows - self.rows
        self.row = {n: row + by for n, row in self.row.items()}
        self.bends = {e: [(x, row + by) for x, row in b] for e, b in self.bends.items()}

    def _flipped(self, depth: int) -> int:
        return self.rows - 1 - depth if self.up else depth


def _column_at(path: Sequence[Point], y: float) -> float:
    """The x at which a path first reaches the height ``y``."""
    for (x0, y0), (x1, y1) in pairwise(path):
        if y0 <= y <= y1 and y0 < y1:
            return x0 + (x1 - x0) * (y - y0) / (y1 - y0)
    return path[-1][0]


def _depths(members: Sequence[int], edges: Sequence[tuple[int, int]]) -> dict[int, int]:
    """The longest path to each vertex; one without sources comes right before its first reader."""
    depth = dict.fromkeys(members, 0)
    following: dict[int, list[int]] = {n: [] for n in members}
    entered = {target for _, target in edges}
    for source, target in edges:
        following[source].append(target)
    for source in members:  # sources come before what is computed of them
        for target in following[source]:
            depth[target] = max(depth[target], depth[source] + 1)
    for source in members:
        if source not in entered and following[source]:
            depth[source] = min(depth[target] for target in following[source]) - 1
    return depth


class _Layout:
    """Joins the two sides and the lane between them."""

    def __init__(self, picture: Picture) -> None:
        try:
            import graphlay  # noqa: F401
        except ImportError:
            raise DrawingError(
                "pictures are laid out by graphlay, which is not installed",
                hint="pip install 'symgrad[draw]'",
            ) from None
        self.picture = picture
        self.forward = _Side(picture, FORWARD)
        self.backward = _Side(picture, BACKWARD)
        rows = max(self.forward.rows, self.backward.rows)
        self.forward.sink(rows)
        self.backward.sink(rows)
        self.pills = [n for n, one in enumerate(picture.vertices) if one.stage == SAVED]
        self.boxes: dict[int, Box] = {}
        self.arrows: list[Arrow] = []
        self._rows()
        self._columns()

    def _rows(self) -> None:
        """The y of each row; below it is room for the saved tensors that come from it."""
        self.origin = {
            n: min((e.source for e in self.picture.edges if e.target == n), default=None)
            for n in self.pills
        }
        self.gap_of = {n: self.forward.row.get(o, 0) for n, o in self.origin.items()}  # type: ignore[arg-type]
        rows = max(self.forward.rows, self.backward.rows)
        stacked = [sum(gap == row for gap in self.gap_of.values()) for row in range(rows)]
        self.tops, y = [], 0.0
        for row in range(rows):
            self.tops.append(y)
            y += BOX + max(ROW_GAP, 14 + (PILL + 8) * stacked[row])
        self.height = y - (0 if stacked and stacked[-1] else ROW_GAP)

    def _columns(self) -> None:
        """The x of the sides and of the lane: saved tensors, then a channel for their arrows."""
        self.lane = self.forward.width + 2 * PANEL
        widest = max((width_of(self.picture.vertices[n]) for n in self.pills), default=0.0)
        channel = LANE_STEP * (len(self.pills) + 1)
        self.channel = self.lane + widest
        self.right = self.lane + (widest + channel + PANEL if self.pills else PANEL / 2)

    def placed(self) -> Placed:
        """The picture with all places."""
        for side, left in ((self.forward, 0.0), (self.backward, self.right)):
            for n in side.members:
                width = width_of(self.picture.vertices[n])
                x = left + side.middle[n] - width / 2
                top = self.tops[side.row[n]]
                self.boxes[n] = Box(self.picture.vertices[n], x, top, width, BOX)
        self._place_pills()
        for side, left in ((self.forward, 0.0), (self.backward, self.right)):
            for edge in side.edges:
                self.arrows.append(self._curve(side, left, edge))
        for order, n in enumerate(self.pills):
            self._crossing(order, n)
        width = self.right + self.backward.width if self.backward.members else self.forward.width
        boxes = tuple(self.boxes[n] for n in sorted(self.boxes))
        return Placed(
            self.picture, boxes, tuple(self.arrows), tuple(self._panels()), width, self.height
        )

    def _place_pills(self) -> None:
        used: dict[int, int] = {}
        for n in self.pills:
            row = self.gap_of[n]
            above = used.setdefault(row, 0)
            used[row] += 1
            top = self.tops[row] + BOX + 10 + (PILL + 8) * above
            vertex = self.picture.vertices[n]
            self.boxes[n] = Box(vertex, self.lane, top, width_of(vertex), PILL)

    def _curve(self, side: _Side, left: float, edge: Edge) -> Arrow:
        """From box to box, straight down the columns of the rows between."""
        first, last = self.boxes[edge.source], self.boxes[edge.target]
        points = [(first.middle, first.top if side.up else first.bottom)]
        for x, row in side.bends[edge]:
            ends = [self.tops[row], self.tops[row] + BOX]
            points += [(left + x, y) for y in (reversed(ends) if side.up else ends)]
        points.append((last.middle, last.bottom if side.up else last.top))
        return Arrow("gradient" if side.up else "value", tuple(points))

    def _crossing(self, order: int, n: int) -> None:
        """The arrows of a saved tensor: out of its source, along the channel, to its readers."""
        pill = self.boxes[n]
        y = pill.top + PILL / 2
        origin = self.origin[n]
        if origin is not None:
            box = self.boxes[origin]
            x = box.left + box.width - 14 - 3 * (order % 4)
            corners: tuple[Point, ...] = ((x, box.bottom), (x, y), (pill.left, y))
            self.arrows.append(Arrow("saved", corners, square=True))
        x = self.channel + LANE_STEP * (order + 1)
        for edge in self.picture.edges:
            if edge.source != n:
                continue
            box = self.boxes[edge.target]
            below = box.bottom + 9 + 3.5 * (order % 5)
            into = box.left + 12 + 5 * (order % 4)
            corners = (
                (pill.left + pill.width, y), (x, y), (x, below), (into, below), (into, box.bottom),
            )  # fmt: skip
            self.arrows.append(Arrow("saved", corners, square=True))

    def _panels(self) -> list[Panel]:
        found = []
        for stage, side, left in (
            (FORWARD, self.forward, 0.0), (BACKWARD, self.backward, self.right)
        ):  # fmt: skip
            if side.members:
                top = self.tops[min(side.row.values())]
                found.append(Panel(stage, left, top, side.width, self.height - top))
        return found
