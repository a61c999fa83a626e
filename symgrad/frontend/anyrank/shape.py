"""The shape of a tensor with a pack, as the user's program sees it.

In: sizes left and right of the pack.  Out: what can be read of them for any number of batch axes.

It says it is a ``Shape``, but is no tuple: what C code reads of a tuple cannot be watched.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

from symgrad.frontend.anyrank.session import (
    PackSession,
    asked_by_symgrad,
    layout_of,
    pack_session,
)
from symgrad.frontend.sizes import PackSize, Shape, as_dim, as_size
from symgrad.ir.dim import Dim, product


class PackShape:
    """Sizes left of a pack, the pack, sizes right of it."""

    __slots__ = ("left", "pack", "right")

    def __init__(self, left: tuple[Any, ...], pack: Dim, right: tuple[Any, ...]) -> None:
        self.left = left
        self.pack = pack
        self.right = right

    @staticmethod
    def of(shape: tuple[Dim, ...]) -> Any:
        """The shape of these sizes, with or without a pack."""
        found = layout_of(shape)
        if found is None:
            return Shape.of(shape)
        left, right = shape[: found.left], shape[found.left + 1 :]
        return PackShape(tuple(map(as_size, left)), found.pack, tuple(map(as_size, right)))

    @property
    def __class__(self) -> type:
        """What ``isinstance`` asks, and a Python version of what C code asks of a tuple."""
        if not asked_by_symgrad(sys._getframe(1)):
            pack_session().observe("the class of a shape with batch axes is asked for")
        return Shape

    @__class__.setter
    def __class__(self, value: type) -> None:
        pack_session().observe("the class of a shape is set")

    def numel(self) -> Any:
        """The number of elements."""
        sides = [as_dim(size) for size in (*self.left, *self.right)]
        return as_size(product([*sides, self.pack]))

    def __len__(self) -> int:
        session = pack_session()
        if not (_is_ours(session, sys._getframe(1)) or session.is_hint()):
            session.observe("len() of a shape with batch axes is read")
        raise TypeError("it has no length")  # Python asks before it iterates, and goes on without

    def __iter__(self) -> Iterator[Any]:
        session = pack_session()
        ticket = None if _is_ours(session, sys._getframe(1)) else session.ticket()
        return iter((*self.left, PackSize(self.pack, ticket), *self.right))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return self._slice(key)
        if isinstance(key, int) and 0 <= key < len(self.left):
            return self.left[key]
        if isinstance(key, int) and -len(self.right) <= key < 0:
            return self.right[key]
        return pack_session().observe(f"shape[{key}] is read, counted across {self.pack}")

    def _slice(self, key: slice) -> Any:
        if key.step not in (None, 1):
            pack_session().observe("every other size of a shape is read")
        start = self._end(key.start, (True, 0))
        stop = self._end(key.stop, (False, len(self.right)))
        if start[0] and not stop[0]:
            return PackShape(self.left[start[1] :], self.pack, self.right[: stop[1]])
        if start[0] != stop[0]:
            pack_session().observe("a slice of a shape is read, counted across the batch axes")
        side = self.left if start[0] else self.right
        return Shape(side[start[1] : stop[1]])

    def _end(self, value: Any, default: tuple[bool, int]) -> tuple[bool, int]:
        """Where a slice ends: left of the pack or not, and how far from there on the left."""
        if value is None:
            return default
        if isinstance(value, int) and 0 <= value <= len(self.left):
            return True, value
        if isinstance(value, int) and -len(self.right) <= value < 0:
            return False, len(self.right) + value
        return pack_session().observe(f"a shape is cut at {value}, counted across {self.pack}")

    def __add__(self, other: Any) -> Any:
        if type(other) is PackShape:
            pack_session().observe("two shapes with batch axes are joined")
        return PackShape(self.left, self.pack, (*self.right, *other))

    def __radd__(self, other: Any) -> Any:
        return PackShape((*other, *self.left), self.pack, self.right)

    def __eq__(self, other: object) -> bool:
        if type(other) is not PackShape:
            pack_session().observe("a shape with batch axes is compared with another one")
        sides = [(len(shape.left), len(shape.right)) for shape in (self, other)]
        if other.pack != self.pack or (sides[0] != sides[1] and sum(sides[0]) == sum(sides[1])):
            pack_session().observe("shapes with batch axes at different places are compared")
        return sides[0] == sides[1] and all(
            one == two
            for one, two in zip((*self.left, *self.right), (*other.left, *other.right), strict=True)
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function.__name__ == "prod" and args == (self,) and not kwargs:
            return self.numel()
        return pack_session().observe(f"np.{function.__name__} of a shape")

    def __getattr__(self, name: str) -> Any:
        pack_session().observe(f"{name} of a shape with batch axes is read")

    def __repr__(self) -> str:
        return str(_hidden("repr")(self))


def _is_ours(session: PackSession, frame: FrameType) -> bool:
    """Does an operation of ours look?"""
    module = frame.f_globals.get("__name__") or ""
    return session.inside > 0 and module.startswith("symgrad.frontend.")


def _hidden(name: str) -> Callable[..., Any]:
    """What shows the number of sizes."""

    def read(self: PackShape, *args: Any, **kwargs: Any) -> Any:
        pack_session().observe(f"{name} of a shape with batch axes is read")

    return read


for _name in (
    "contains", "reversed", "hash", "str", "format", "bool", "mul", "rmul", "lt", "le",
    "gt", "ge", "reduce", "reduce_ex", "copy", "deepcopy", "index", "array", "sizeof", "dir",
):  # fmt: skip
    setattr(PackShape, f"__{_name}__", _hidden(_name))

Sequence.register(PackShape)  # so that ``match`` asks for its length
