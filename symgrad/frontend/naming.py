"""Names for nodes, from the variables of the user's functions.

In: the user's frames, looked at whenever an op is applied and when the trace ends.
Out: ``Node.name``, unique in its graph.

A tensor that has been bound to a local variable since the last look gives its node that name.
Frames are held until the trace ends: the last assignments of a function are seen then.
"""

from __future__ import annotations

from types import FrameType
from typing import TYPE_CHECKING, Any

from symgrad.ir.graph import Graph, Node

if TYPE_CHECKING:
    from symgrad.frontend.session import Session


class Namer:
    """Gives nodes the names of the variables that hold them."""

    def __init__(self) -> None:
        self._frames: dict[int, FrameType] = {}
        self._seen: dict[tuple[int, str], tuple[Any, Node]] = {}
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}
        self._outer: set[int] | None = None

    def start(self, frame: FrameType | None) -> None:
        """Leave ``frame`` and its callers alone: they called the trace, they are not traced."""
        self._outer = set()
        while frame is not None:
            self._outer.add(id(frame))
            frame = frame.f_back

    def reserve(self, name: str) -> None:
        """Keep a name for an input or an output."""
        self._taken.add(name)

    def observe(self, frame: FrameType, session: Session) -> None:
        """Look at the variables of a frame that applies an op."""
        if self._outer is not None and id(frame) in self._outer:
            return
        self._frames.setdefault(id(frame), frame)
        self._look(frame, session.graph)

    def finish(self, session: Session) -> None:
        """Look at every frame a last time and let go of them."""
        for frame in self._frames.values():
            self._look(frame, session.graph)
        self._frames.clear()
        self._seen.clear()

    def _look(self, frame: FrameType, graph: Graph) -> None:
        for name, value in frame.f_locals.items():
            node = getattr(type(value), "known_node", _nothing)(value)
            if node is None or node.graph is not graph:
                continue
            key = (id(frame), name)
            seen = self._seen.get(key)
            if seen is None or seen[1] is not node:
                self._seen[key] = (value, node)
                self.name(node, name)

    def name(self, node: Node, name: str) -> None:
        """Name a node, unless it has a name; numbers and sizes need none."""
        if node.name is None and node.op not in ("constant", "size", "input"):
            node.name = self.unique(name)

    def unique(self, name: str) -> str:
        """``name``, or ``name_2``, ``name_3``... when it is taken; taken from now on."""
        found = name
        while found in self._taken:
            self._last[name] = self._last.get(name, 1) + 1
            found = f"{name}_{self._last[name]}"
        self._taken.add(found)
        return found


def _nothing(value: Any) -> Node | None:
    return None
