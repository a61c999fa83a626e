"""Memory that tensors exchange, and that grows with what is written.

In: a tensor, and another one, or a shape.  Out: the same tensor, which shows other memory.
"""

from __future__ import annotations

from typing import Any

import torch

from symgrad.errors import UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.complexes import ComplexTensor, real_of
from symgrad.frontend.functions.casting import detach
from symgrad.frontend.lift import as_tensor
from symgrad.frontend.questions import note_limit, questions
from symgrad.frontend.session import current
from symgrad.frontend.sizes import Shape, as_dim
from symgrad.frontend.tensor import SelectedTensor, SymbolicTensor
from symgrad.frontend.views import contiguous_strides
from symgrad.interop.torch.constants import inward
from symgrad.ir.dim import Dim
from symgrad.ir.types import TensorType

Tensor = SymbolicTensor


def exchange(self: Tensor, other: Any, name: str) -> Tensor:
    """The tensor itself, which shows the memory of another one from here on.

    What else showed its old memory still does.  Raises UnsupportedOpError for a tensor that others
    hold (inputs, cotangents, outputs, what backward finds on ctx), and for one of other numbers.
    """
    source, session, known = as_tensor(inward(other)), current(), questions()
    if isinstance(self, SelectedTensor) or isinstance(source, SelectedTensor):
        raise _refused(f"{name} is given what a mask selects", "use where")
    if self.storage.label or (known is not None and known.outliving(self)):
        raise _refused(
            f"the memory of a tensor that is there after the call is exchanged by {name}",
            "make a new tensor",
        )
    if session.history is not None and session.history.following:
        session.history.give_up(f"{name} is not followed")
    if isinstance(self, ComplexTensor) is not isinstance(source, ComplexTensor):
        what = f"{name.strip()} exchanges real and complex numbers"
        raise _refused(what, "give the result a name of its own")
    shown = detach(real_of(source))
    self.storage, self.steps, self._cached = shown.storage, shown.steps, shown._cached
    self.lies_as(shown.strides, shown.certain)
    return self


def _refused(what: str, hint: str) -> Exception:
    return note_limit(UnsupportedOpError(what, location=here(), hint=hint))


def set_(self: Tensor, source: Any = None, *place: Any, **named: Any) -> Tensor:
    """The tensor itself in the memory of another one, in its shape."""
    if place or named or not isinstance(source, torch.Tensor):
        raise _refused("set_ is given no tensor alone", "make a view of the tensor")
    return exchange(self, source, "set_")


def resize_(self: Tensor, *sizes: Any) -> Tensor:
    """The tensor itself in another shape, of unknown elements; as it is in its own shape."""
    given = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    return resized(self, tuple(map(as_dim, given)))


def resized(self: Tensor, shape: tuple[Dim, ...]) -> Tensor:
    """The tensor itself, in a shape."""
    if self.node.shape == shape or tuple(self.shape) == tuple(Shape.of(shape)):
        return self
    if self.steps:
        raise _refused("a view is resized", "make a new tensor")
    session = current()
    session.note_write(self.storage)
    self.lies_as(contiguous_strides(shape), None)
    unknown = session.draw("real", TensorType(self.storage.node.dtype, shape))
    self.storage.write(session, (), unknown)
    return self


def resize_as_(self: Tensor, other: Any, *, memory_format: Any = None) -> Tensor:
    """A tensor in the shape of another one; of other shapes it holds unknowns then."""
    if memory_format is not None:
        raise _refused("resize_as_ is given a memory format", "make a new tensor")
    return resized(self, as_tensor(inward(other)).node.shape)
