"""``type`` as a traced program calls it.

In: what the code of a Function reaches.  Out: the same with a ``type`` that the
classes of real values: ``int`` for a size, symgrad's Tensor for a tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from symgrad.frontend.caller import here
from symgrad.frontend.devices import Device, DeviceName
from symgrad.frontend.function import Context
from symgrad.frontend.guests import Guest
from symgrad.frontend.questions import NeedsInputGrad, questions
from symgrad.frontend.reach import Reach
from symgrad.frontend.session import active
from symgrad.frontend.sizes import Shape, SymFloat, SymInt
from symgrad.frontend.tensor import SymbolicTensor, public_class


class _Asking(type):
    """What makes ``Type`` answer as ``type`` does."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs:
            return type(*args, **kwargs)
        found = _class_of(args[0])
        return Type if found is type else found

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, type)

    def __subclasscheck__(cls, value: Any) -> bool:
        return issubclass(value, type)


class Type(type, metaclass=_Asking):
    """``type``, to a program that is traced."""


def _class_of(value: Any) -> type:
    if isinstance(value, SymInt):
        return int
    if isinstance(value, SymFloat):
        value.type_is_asked()
        return int if value.is_whole else float
    if isinstance(value, NeedsInputGrad):
        return tuple
    if isinstance(value, DeviceName):
        return str
    if isinstance(value, Context):
        return type(value).symgrad_kind or type(value)
    session = active()
    guest = None if session is None else session.guest
    if guest is not None and isinstance(value, Shape):
        return guest.shape()
    if guest is not None and isinstance(value, Device):
        return guest.device()
    return _class_of_tensor(value) if isinstance(value, SymbolicTensor) else type(value)


def _class_of_tensor(value: SymbolicTensor) -> type:
    found = public_class(parameter=value.is_parameter)
    value.type_is_asked()
    known = questions()
    if known is not None:
        package = found.__module__.partition(".")[0]
        known.assume(f"the classes of tensors are those of the module {package}", here())
    return found


@contextmanager
def real_types(reach: Reach, guest: Guest | None) -> Iterator[None]:
    """A block in which ``type`` gives the classes of real values, in all code that is reached.

    So do the classes of tensors of one dtype that ``guest`` has stand-ins for.
    """
    spaces = {id(space): space for space in reach.spaces}.values()
    changed = [names for names in spaces if "type" not in names]
    for names in changed:
        names["type"] = Type
    kept = [
        (place, key, value, new)
        for place in reach.places for key, value in place.before.items()
        if (new := _stand_in(value, guest)) is not None
    ]  # fmt: skip
    for place, key, _, new in kept:
        place.write(key, new)
    try:
        yield
    finally:
        for place, key, value, new in kept:
            if place.read().get(key) is new:
                place.write(key, value)
        for names in changed:
            if names.get("type") is Type:
                del names["type"]


def is_stand_in(value: Any) -> bool:
    """Does it stand in the place of a class while a trace is in progress?"""
    return value is Type or hasattr(type(value), "symgrad_original")


def _stand_in(value: Any, guest: Guest | None) -> Any:
    if value is type:
        return Type
    return None if guest is None else guest.stand_in(value)
