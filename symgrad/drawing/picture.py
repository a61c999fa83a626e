"""The content of a picture: boxes and arrows without places.

In: calls from ``function`` and ``tape``.  Out: frozen records.
"""

from __future__ import annotations

from dataclasses import dataclass

from symgrad.errors import SymgradError

FORWARD, SAVED, BACKWARD = "forward", "saved", "backward"


class DrawingError(SymgradError, RuntimeError):
    """A graph cannot be drawn: it is too large, has no such case, or graphlay is missing."""


@dataclass(frozen=True)
class Vertex:
    """One box.

    ``kind``: ``leaf``, ``parameter``, ``data``, ``operation``, ``output``, ``saved``,
    ``cotangent`` or ``gradient``.  ``name``: the user's; ``label``: what it is; ``detail``: dtype
    and shape; ``tooltip``: everything that is too long for a box.
    """

    stage: str
    kind: str
    name: str
    label: str
    detail: str
    tooltip: str = ""


@dataclass(frozen=True)
class Edge:
    """An arrow between two vertices, by their places in ``Picture.vertices``."""

    source: int
    target: int


@dataclass(frozen=True)
class Picture:
    """Boxes and arrows; the source of an arrow comes before its target."""

    title: str
    note: str
    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...]


class Builder:
    """Collects vertices and edges, each once."""

    def __init__(self) -> None:
        self.vertices: list[Vertex] = []
        self.edges: dict[Edge, None] = {}

    def add(self, vertex: Vertex) -> int:
        """Add a vertex; its number."""
        self.vertices.append(vertex)
        return len(self.vertices) - 1

    def join(self, source: int, target: int) -> None:
        """Add an arrow."""
        self.edges.setdefault(Edge(source, target))

    def picture(self, title: str, note: str = "") -> Picture:
        """The picture."""
        return Picture(title, note, tuple(self.vertices), tuple(self.edges))
