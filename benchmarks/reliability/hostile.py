"""What a hostile caller passes in the place of an array.

In: the array that would be right, and a source of chance.  Out: a ``Trick``.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.runtime.layouts import LAYOUTS

_BESIDE = 7  # in the elements just before and after what may be written
FAR = 2**50  # more elements than any memory holds
_OF_AXES = ("rows apart", "every other", "backwards")  # layouts that a number has not
_PLACES = (-1, -(2**63), 2**63 - 1, 2**31, -7, 10**6)


@dataclass(frozen=True)
class Trick:
    """``value``: what is passed.  ``clean``: the array that it stands for, None for none."""

    name: str
    value: Any
    clean: Any = None


class Double:
    """Gives an array when asked for one, but is none."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self._array


def _another_shape(array: Any) -> Any:
    return tuple(2 * extent + 1 for extent in array.view(np.ndarray).shape)


Sized: Any = type("Sized", (np.ndarray,), {"shape": property(_another_shape)})
"""A subclass that lies about its shape to whoever asks in Python."""


def same(values: Any, choice: random.Random, name: str = "") -> Trick:
    """The same values, lying in memory in one way or another: the one called ``name``."""
    if not name and choice.random() < 0.9:
        name = choice.choice(layouts(values))
    if name in LAYOUTS:
        return Trick(name, LAYOUTS[name](values), values)
    first = values.reshape(-1)[0] if values.size else 0
    wide = np.broadcast_to(np.asarray(first, values.dtype), values.shape)
    return Trick("zero strides", wide, np.array(wide))


def layouts(values: Any) -> list[str]:
    """The ways in which such an array can lie in memory."""
    return [one for one in LAYOUTS if values.ndim or one not in _OF_AXES]


def _dtype(values: Any, choice: random.Random) -> Any:
    others = [
        "f2",
        "f4",
        "f8",
        "i1",
        "i4",
        "i8",
        "u8",
        "?",
        "c8",
        "c16",
        "O",
        "S3",
        "U2",
        "M8[s]",
        "V4",
    ]
    kind = choice.choice([one for one in others if np.dtype(one) != values.dtype])
    return np.zeros(values.shape, kind)


def _rank(values: Any, choice: random.Random) -> Any:
    return (
        values.sum(0, dtype=values.dtype) if values.ndim and choice.random() < 0.5 else values[None]
    )


def _many_axes(values: Any, choice: random.Random) -> Any:
    return values.reshape((1,) * (60 - values.ndim) + values.shape)


def _extent(values: Any, choice: random.Random) -> Any:
    if not values.ndim:
        return values[None]
    axis = choice.randrange(values.ndim)
    by = choice.choice([0, 2, 3])
    return (
        np.repeat(values, by, axis) if values.shape[axis] else np.resize(values, (3,) * values.ndim)
    )


def far(values: Any, axis: int) -> Trick:
    """So many elements along an axis that no result can be made, from one in memory."""
    shape = tuple(FAR if at == axis else extent or 1 for at, extent in enumerate(values.shape))
    return Trick("far too large", np.broadcast_to(np.zeros((), values.dtype), shape))


def _thing(values: Any, choice: random.Random) -> Any:
    return choice.choice([
        None, 1, 1.5, "text", b"bytes", [], values.tolist(), object(), np.ma.masked_array(values),
        Double(values), memoryview(values) if values.ndim else 0, {}, iter([1]), type, len,
        np.array([object()]), float("nan"), np.float16(1), slice(None), values.astype("O"),
        np.zeros(values.shape, [("a", "f4"), ("b", "i4")]), range(3), ...,
    ])  # fmt: skip


def _lying(values: Any, choice: random.Random) -> Any:
    return values.copy().view(Sized)


BROKEN: dict[str, Callable[[Any, random.Random], Any]] = {
    "another dtype": _dtype, "another rank": _rank, "60 axes": _many_axes,
    "another size": _extent, "no array": _thing, "a lying subclass": _lying,
}  # fmt: skip


_PERHAPS_RIGHT = ("another rank", "60 axes", "another size", "a lying subclass")
"""What an op may well take: it depends on the op."""


def broken(values: Any, choice: random.Random, name: str = "") -> Trick:
    """Something else, most of it no array that the op can take: the one called ``name``."""
    name = name or choice.choice(list(BROKEN))
    value = BROKEN[name](values, choice)
    return Trick(name, value, np.array(value) if name in _PERHAPS_RIGHT else None)


def misplaced(places: Any, choice: random.Random) -> Trick:
    """Indices of which some lie outside."""
    changed = places.copy()
    if not changed.size:
        return Trick("no index", changed, places)
    changed.reshape(-1)[choice.randrange(changed.size)] = choice.choice(_PLACES)
    return Trick("an index outside", changed, changed.copy())  # what is no index may be anything


OUTPUTS = (
    "room", *BROKEN, "fortran", "every other", "backwards", "byte-swapped", "misaligned",
    "read-only", "an input", "within an input", "too short",
)  # fmt: skip


def output(wanted: Any, taken: list[Any], choice: random.Random, name: str = "") -> Trick:
    """What is given to write into, the one called ``name``; ``clean`` where it may be written."""
    if not name:
        chance = choice.random()
        name = "room" if chance < 0.5 else choice.choice(list(BROKEN if chance < 0.75 else OUTPUTS))
    room = np.full(wanted.size + 2, _BESIDE).astype(wanted.dtype)
    inside = room[1:-1].reshape(wanted.shape)
    if name == "room":
        return Trick(name, inside, inside)
    if name in BROKEN:
        other = broken(np.array(inside), choice, name)
        return Trick(name, other.value)
    if name in LAYOUTS and (wanted.ndim or name not in _OF_AXES):
        found = LAYOUTS[name](np.array(inside))
        usable = found.flags.c_contiguous and found.flags.aligned and found.flags.writeable
        return Trick(name, found, found if usable and found.dtype == wanted.dtype else None)
    arrays = [one for one in taken if isinstance(one, np.ndarray) and one.dtype == wanted.dtype]
    if name == "an input" and arrays:
        return Trick(name, choice.choice(arrays))
    if name == "within an input" and arrays:
        flat = choice.choice(arrays).reshape(-1)
        return Trick(
            name, flat[: wanted.size].reshape(wanted.shape) if flat.size >= wanted.size else flat
        )
    return Trick("too short", inside.reshape(-1)[:-1])


def overlapping(array: Any, wanted: Any) -> tuple[Any, Any]:
    """The array, and room for ``wanted``, in the same memory."""
    memory = np.zeros(max(array.nbytes, wanted.nbytes), np.uint8)
    first = memory[: array.nbytes].view(array.dtype).reshape(array.shape)
    first[...] = array
    return first, memory[: wanted.nbytes].view(wanted.dtype).reshape(wanted.shape)


def is_whole(room: Any) -> bool:
    """Is what lies just before and after an output as it was?"""
    beside = room.base[[0, -1]] if room.base.ndim == 1 else room.base.base[[0, -1]]
    return bool((beside == np.asarray(_BESIDE, room.dtype)).all())
