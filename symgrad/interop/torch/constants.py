"""torch's own tensors in a traced program: constants of the trace.

In: a tensor that the program has from outside.  Out: a traced tensor of its values, which cannot
be written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from symgrad.errors import SymgradError, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.lift import array_node
from symgrad.frontend.questions import note_limit, questions
from symgrad.frontend.session import Session, current
from symgrad.frontend.sizes import SymFloat, SymInt
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.frontend.views import Step, Storage
from symgrad.interop.torch.dtypes import ours
from symgrad.ir.dtype import NARROW
from symgrad.ir.graph import Node

_CONTAINERS = (list, tuple, dict)


class EffectError(UnsupportedOpError):
    """A program writes into something that is no part of the trace."""


def refuse_write(what: str) -> SymgradError:
    """The error for a write that would be lost."""
    error = EffectError(
        f"{what} writes into a tensor that the program has from outside of the trace",
        location=here(), hint="write into a clone(), or compute a new tensor",
    )  # fmt: skip
    note_limit(error)
    return error


class Constant(Storage):
    """Memory that is torch's own."""

    __slots__ = ()

    def write(self, session: Session, steps: tuple[Step, ...], part: Node) -> None:
        """Raises EffectError."""
        raise refuse_write("this operation")


def is_real(value: Any) -> bool:
    """Is it a tensor of torch's own?"""
    return isinstance(value, torch.Tensor) and not issubclass(type(value), SymbolicTensor)


def is_traced(value: Any) -> bool:
    """Is it a tensor, a size or a number of a trace?"""
    return issubclass(type(value), (SymbolicTensor, SymInt, SymFloat))


def leaves(value: Any) -> Iterator[Any]:
    """The values in lists, tuples, dictionaries and slices."""
    kind = type(value)
    if issubclass(kind, (list, tuple)):
        for item in value:
            yield from leaves(item)
    elif issubclass(kind, dict):
        for item in value.values():
            yield from leaves(item)
    elif kind is slice:
        yield from (value.start, value.stop, value.step)
    else:
        yield value


def inward(value: Any) -> Any:
    """The value with torch's own tensors as constants of the trace, in containers too.

    A size that went through torch's C code is what it was before.
    """
    if is_real(value):
        return constant(value)
    kind = type(value)
    if kind is torch.SymInt:
        return value.node.value
    if kind in (list, tuple) or kind.__module__ == "torch.return_types":
        return (list if kind is list else tuple)(map(inward, value))
    if kind is dict:
        return {name: inward(item) for name, item in value.items()}
    return value


def constant(value: Any) -> SymbolicTensor:
    """A tensor of torch's as a constant.  Raises UnsupportedOpError for one that is none."""
    if value.layout != torch.strided or value.is_quantized or value.device.type == "meta":
        raise UnsupportedOpError("a tensor that is not dense", location=here())
    note_kept(value)
    dtype = ours(value.dtype)
    with torch._C.DisableTorchFunction():
        plain = value.detach().cpu()
        array = (plain.float() if dtype in NARROW else plain).numpy()
    return SymbolicTensor(Constant(array_node(current(), array, dtype)))


_SAME = frozenset(("expand", "reshape", "permute", "detach"))


def note_kept(value: Any) -> None:
    """A parameter of torch's is a constant of the trace, which is printed."""
    known = questions()
    if known is not None and value.requires_grad:
        shape = list(value.shape)
        known.assume(f"a parameter of shape {shape} from outside keeps its values", here())


def plain_value(tensor: SymbolicTensor) -> Any:
    """The number that a tensor of one element holds if it is a constant; None if not."""
    node = tensor.node
    while node.op in _SAME:
        node = node.args[0]
    if node.op != "constant" or tensor.node.type.size != 1:
        return None
    number: Any = node.attributes["value"].value
    kind = node.dtype
    return np.dtype(kind.of_numpy).type(number).item() if kind.is_float else number
