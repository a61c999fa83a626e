"""What ``x[mask]`` is: the elements of a tensor where a mask is True, however many there are.

In: a whole tensor's node and the mask's, of one shape.  Out: a tensor that elementwise operations
accept, that can be summed, and that can be assigned under the same mask.

How many elements there are depends on values, so that the result has no shape.  The whole tensor
is computed with, and the mask says which elements of it mean something.
"""

from __future__ import annotations

from symgrad.errors import UnsupportedOpError
from symgrad.frontend.session import here
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.frontend.views import Storage
from symgrad.ir.graph import Node


class SelectedTensor(SymbolicTensor):
    """The elements of ``whole`` where ``mask`` is True."""

    def __init__(self, whole: Node, mask: Node) -> None:
        super().__init__(Storage(whole))
        self.mask = mask

    @property
    def whole(self) -> Node:
        """The tensor that the elements are selected from."""
        return self.storage.node

    def replace(self, whole: Node) -> None:
        """Put other elements in place of these."""
        self.storage.node = whole
        self.storage.version += 1

    @property
    def node(self) -> Node:
        """Raises UnsupportedOpError: as a tensor, it has no shape."""
        raise UnsupportedOpError(
            "x[mask] has a shape that depends on values", location=here(),
            hint="elementwise operations, sum(), mean() and assignment under the same mask work; "
            "for anything else keep the whole tensor and choose with sg.where",
        )  # fmt: skip

    def known_node(self) -> Node | None:
        """Nothing to name: the node is that of the whole."""
        return None

    def __repr__(self) -> str:
        return "<symbolic elements selected by a mask>"


def select(whole: Node, mask: Node) -> SelectedTensor:
    """The elements of ``whole`` where ``mask`` is True; both have one shape."""
    return SelectedTensor(whole, mask)
