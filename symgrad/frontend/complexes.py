"""Tensors of complex numbers, as a trace sees them: pairs of reals along one more axis.

In: a symbolic tensor whose last axis holds the real and the imaginary part.  Out: a tensor without
that axis in the same memory, as ``torch.view_as_complex`` makes it.

The graph knows reals alone.  A complex tensor has no node: whoever computes with one takes its
pairs, and what knows nothing of complex numbers gets an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symgrad.errors import UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.questions import note_limit
from symgrad.frontend.session import Session, current
from symgrad.frontend.sizes import Shape
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.frontend.unsupported import IN_PARTS
from symgrad.frontend.views import Shape as Dims
from symgrad.frontend.views import Slice, Step, concatenate
from symgrad.ir.dim import Dim
from symgrad.ir.graph import Node


class ComplexTensor(SymbolicTensor):
    """A tensor of complex numbers; all that it has is that of its ``pairs``."""

    @classmethod
    def of(cls, pairs: SymbolicTensor) -> ComplexTensor:
        """The complex numbers that lie along the last axis of a tensor, in its memory."""
        refuse_any_rank()
        found: ComplexTensor = pairs.again(cls)
        return found

    @property
    def pairs(self) -> SymbolicTensor:
        """The same memory as reals."""
        found: SymbolicTensor = self.again(SymbolicTensor)
        return found

    @property
    def node(self) -> Node:
        """Raises UnsupportedOpError: a node is of reals."""
        raise note_limit(UnsupportedOpError(
            "complex numbers meet an operation that is not traced for them", location=here(),
            hint=IN_PARTS,
        ))  # fmt: skip

    def known_node(self) -> Node | None:
        """Nothing to name: the node is that of the pairs."""
        return None

    def shared(self, *steps: Step) -> SymbolicTensor:
        """A tensor that shares its memory; ``steps`` are those of the pairs."""
        return ComplexTensor.of(self.pairs.shared(*steps))

    @property
    def shape(self) -> Shape:
        """Its sizes, without the axis of the pairs."""
        return Shape.of(self.pairs.node.shape[:-1])

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return self.pairs.node.rank - 1

    @property
    def is_conjugate(self) -> bool:
        """Does torch only say of its memory that it holds the conjugates?"""
        return sum(isinstance(step, Conjugate) for step in self.steps) % 2 == 1

    def __repr__(self) -> str:
        return "<symbolic complex numbers>"


def refuse_any_rank() -> None:
    """Raises UnsupportedOpError where numbers of axes are symbols."""
    if type(current()) is not Session:
        raise note_limit(UnsupportedOpError(
            "complex numbers are not traced for any number of axes", location=here(),
            hint="ranks are judged one by one",
        ))  # fmt: skip


def real_of(tensor: SymbolicTensor) -> SymbolicTensor:
    """What a node stands for: the pairs of complex numbers."""
    return tensor.pairs if isinstance(tensor, ComplexTensor) else tensor


def pairs_of(session: Session, parts: Sequence[Node]) -> Node:
    """Two nodes of one shape as a node of pairs."""
    lined = [session.reshape(one, (*one.shape, Dim.of(1))) for one in parts]
    return concatenate(session, lined, parts[0].rank)


def part_of(pairs: Node, place: int, session: Session) -> Node:
    """The real parts (0) or the imaginary ones (1) of a node of pairs."""
    axis = pairs.rank - 1
    if pairs.op == "concat" and len(pairs.args) == 2 and pairs.attributes["axis"] == axis:
        return session.reshape(pairs.args[place], pairs.shape[:-1])
    found = Slice(axis, Dim.of(place), 1, Dim.of(1)).read(session, pairs)
    return session.reshape(found, pairs.shape[:-1])


@dataclass(frozen=True)
class Conjugate:
    """The same pairs with the other sign of the imaginary part: ``z.conj()`` copies nothing."""

    def read(self, session: Session, whole: Node) -> Node:
        """The conjugates."""
        imaginary = session.apply("neg", part_of(whole, 1, session))
        return pairs_of(session, (part_of(whole, 0, session), imaginary))

    def write(self, session: Session, whole: Node, part: Node) -> Node:
        """The numbers whose conjugates are written."""
        return self.read(session, part)

    def strides(self, shape: Dims, strides: Dims) -> Dims | None:
        """The strides as they are."""
        return strides
