"""The device of a traced tensor: the CPU or a GPU, which is decided when it is looked at.

In: what the program asks of it.  Out: answers, on which the trace splits; what tells a device of a
third kind from both is printed.
"""

from __future__ import annotations

from typing import Any

from symgrad.frontend.caller import asker, here
from symgrad.frontend.questions import CPU, CPU_OR_GPU, CUDA, questions
from symgrad.frontend.session import active


def are_on(kind: str) -> bool:
    """Are the tensors on a device of this kind, as the program asks?"""
    known = questions()
    return kind == CPU if known is None else known.are_on(kind, here())


def _name() -> str:
    """The name as it is handed on: whatever is done with it, it is one of two."""
    known = questions()
    return "cuda:0" if known is not None and known.on_gpu(here()) else CPU


def _looked_at() -> None:
    known = questions()
    if known is not None and asker(3) is not None:
        known.assume(CPU_OR_GPU, here())


def _is_called(name: str) -> bool:
    kind, _, number = name.partition(":")
    if kind not in (CPU, CUDA):
        return are_on(kind)
    known = questions()
    if number in ("", "0") or known is None:
        return are_on(kind)
    known.assume("no tensor is on another GPU than the first", here())
    return False


class DeviceName(str):
    """The name of a device as a text: what it is compared with decides."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            _looked_at()
        return str.__getattribute__(self, name)

    def __eq__(self, other: object) -> bool:
        if asker() is None or not isinstance(other, str):
            return str.__eq__(self, other)
        return _is_called(str(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        _looked_at()
        return str.__hash__(self)

    def __contains__(self, part: Any) -> bool:
        _looked_at()
        return str.__contains__(self, part)

    def __getitem__(self, key: Any) -> str:
        _looked_at()
        return str.__getitem__(self, key)


class Device(str):
    """The device of a traced tensor: the CPU or a GPU, which is decided when it is looked at."""

    __slots__ = ()

    @property
    def __class__(self) -> type:
        """What ``isinstance`` asks: the program knows devices by the class of its library."""
        session = active()
        guest = None if session is None else session.guest
        return Device if guest is None or asker() is None else guest.device()

    @__class__.setter
    def __class__(self, value: type) -> None:
        raise TypeError("the class of a device cannot be set")

    @property
    def type(self) -> str:
        """``cpu`` or ``cuda``."""
        return DeviceName(_name().partition(":")[0])

    @property
    def index(self) -> Any:
        """The number of the GPU."""
        return 0 if _name() != CPU else None

    def __eq__(self, other: object) -> bool:
        if issubclass(type(other), Device):
            return True
        return _name() == str(other) if asker() is None else _is_called(str(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        _looked_at()
        session = active()
        guest = None if session is None else session.guest
        return hash(_name() if guest is None else guest.device()(_name()))

    def __contains__(self, part: Any) -> bool:
        _looked_at()
        return part in _name()

    def __str__(self) -> str:
        return DeviceName(_name())

    def __repr__(self) -> str:
        _looked_at()
        name, _, index = _name().partition(":")
        return f"device(type={name!r}{f', index={index}' if index else ''})"

    def __format__(self, spec: str) -> str:
        _looked_at()
        return format(_name(), spec)

    def startswith(self, *args: Any) -> bool:
        """As of a string."""
        _looked_at()
        return _name().startswith(*args)
