"""The shape and the rank of a tensor with a batch axis, as the user's program sees them.

In: sizes left and right of the batch axis.  Out: what can be read of them whatever it stands for.

The shape says it is a ``Shape``, but is no tuple: what C code reads of a tuple cannot be watched.
The rank may be compared with numbers, and no more.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

from symgrad.frontend.anyrank.session import AnyRankSession, any_rank_session, layout_of
from symgrad.frontend.caller import asked_by_symgrad
from symgrad.frontend.sizes import AnyRankSize, Shape, as_dim, as_size
from symgrad.ir.dim import Dim, product


class AnyRankShape:
    """Sizes left of the batch axis, its size, sizes right of it."""

    __slots__ = ("batch", "left", "right")

    def __init__(self, left: tuple[Any, ...], batch: Dim, right: tuple[Any, ...]) -> None:
        self.left = left
        self.batch = batch
        self.right = right

    @staticmethod
    def of(shape: tuple[Dim, ...]) -> Any:
        """The shape of these sizes, with or without a batch axis."""
        found = layout_of(shape)
        if found is None:
            return Shape.of(shape)
        left, right = shape[: found.left], shape[found.left + 1 :]
        return AnyRankShape(tuple(map(as_size, left)), found.batch, tuple(map(as_size, right)))

    @property
    def __class__(self) -> type:
        """What ``isinstance`` asks, and a Python version of what C code asks of a tuple."""
        if not asked_by_symgrad(sys._getframe(1)):
            any_rank_session().observe("the class of a shape with batch axes is asked for")
        return Shape

    @__class__.setter
    def __class__(self, value: type) -> None:
        any_rank_session().observe("the class of a shape is set")

    def numel(self) -> Any:
        """The number of elements."""
        sides = [as_dim(size) for size in (*self.left, *self.right)]
        return as_size(product([*sides, self.batch]))

    def __len__(self) -> int:
        session = any_rank_session()
        if not (_is_ours(session, sys._getframe(1)) or session.is_hint()):
            session.observe("len() of a shape with batch axes is read")
        raise TypeError("it has no length")  # Python asks before it iterates, and goes on without

    def __iter__(self) -> Iterator[Any]:
        session = any_rank_session()
        ticket = None if _is_ours(session, sys._getframe(1)) else session.ticket()
        return iter((*self.left, AnyRankSize(self.batch, ticket), *self.right))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return self._slice(key)
        if isinstance(key, int) and 0 <= key < len(self.left):
            return self.left[key]
        if isinstance(key, int) and -len(self.right) <= key < 0:
            return self.right[key]
        return any_rank_session().observe(f"shape[{key}] is read, counted across {self.batch}")

    def _slice(self, key: slice) -> Any:
        if key.step not in (None, 1):
            any_rank_session().observe("every other size of a shape is read")
        start = self._end(key.start, (True, 0))
        stop = self._end(key.stop, (False, len(self.right)))
        if start[0] and not stop[0]:
            return AnyRankShape(self.left[start[1] :], self.batch, self.right[: stop[1]])
        if start[0] != stop[0]:
            any_rank_session().observe("a slice of a shape is read, counted across the batch axes")
        side = self.left if start[0] else self.right
        return Shape(side[start[1] : stop[1]])

    def _end(self, value: Any, default: tuple[bool, int]) -> tuple[bool, int]:
        """Where a slice ends: left of the batch axis or not, and how far from there on the left."""
        if value is None:
            return default
        if isinstance(value, int) and 0 <= value <= len(self.left):
            return True, value
        if isinstance(value, int) and -len(self.right) <= value < 0:
            return False, len(self.right) + value
        return any_rank_session().observe(f"a shape is cut at {value}, counted across {self.batch}")

    def __add__(self, other: Any) -> Any:
        if type(other) is AnyRankShape:
            any_rank_session().observe("two shapes with batch axes are joined")
        return AnyRankShape(self.left, self.batch, (*self.right, *other))

    def __radd__(self, other: Any) -> Any:
        return AnyRankShape((*other, *self.left), self.batch, self.right)

    def __eq__(self, other: object) -> bool:
        if type(other) is not AnyRankShape:
            any_rank_session().observe("a shape with batch axes is compared with another one")
        sides = [(len(shape.left), len(shape.right)) for shape in (self, other)]
        if other.batch != self.batch or (sides[0] != sides[1] and sum(sides[0]) == sum(sides[1])):
            any_rank_session().observe("shapes with batch axes at different places are compared")
        return sides[0] == sides[1] and all(
            one == two
            for one, two in zip((*self.left, *self.right), (*other.left, *other.right), strict=True)
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function.__name__ == "prod" and args == (self,) and not kwargs:
            return self.numel()
        return any_rank_session().observe(f"np.{function.__name__} of a shape")

    def __getattr__(self, name: str) -> Any:
        any_rank_session().observe(f"{name} of a shape with batch axes is read")

    def __repr__(self) -> str:
        return str(_hidden("repr")(self))


def _is_ours(session: AnyRankSession, frame: FrameType) -> bool:
    """Does an operation of ours look?"""
    module = frame.f_globals.get("__name__") or ""
    return session.inside > 0 and module.startswith("symgrad.frontend.")


def _hidden(name: str) -> Callable[..., Any]:
    """What shows the number of sizes."""

    def read(self: AnyRankShape, *args: Any, **kwargs: Any) -> Any:
        any_rank_session().observe(f"{name} of a shape with batch axes is read")

    return read


for _name in (
    "contains", "reversed", "hash", "str", "format", "bool", "mul", "rmul", "lt", "le",
    "gt", "ge", "reduce", "reduce_ex", "copy", "deepcopy", "index", "array", "sizeof", "dir",
):  # fmt: skip
    setattr(AnyRankShape, f"__{_name}__", _hidden(_name))

Sequence.register(AnyRankShape)  # so that ``match`` asks for its length


class AnyRank:
    """``known`` axes, and as many as the batch axis stands for."""

    __slots__ = ("batch", "known")

    def __init__(self, known: int, batch: Dim) -> None:
        self.known = known
        self.batch = batch

    @property
    def __class__(self) -> type:
        """What ``isinstance`` asks: it is no ``int`` to be computed with."""
        if not asked_by_symgrad(sys._getframe(1)):
            any_rank_session().observe("the class of .ndim is asked for")
        return int

    @__class__.setter
    def __class__(self, value: type) -> None:
        any_rank_session().observe("the class of .ndim is set")

    def __add__(self, other: Any) -> AnyRank:
        return AnyRank(self.known + _number(other), self.batch)

    def __sub__(self, other: Any) -> Any:
        if type(other) is AnyRank and other.batch == self.batch:
            return self.known - other.known
        return AnyRank(self.known - _number(other), self.batch)

    __radd__ = __add__

    def __eq__(self, other: object) -> bool:
        return self._compare("eq", other)

    def __ne__(self, other: object) -> bool:
        return self._compare("ne", other)

    def __lt__(self, other: Any) -> bool:
        return self._compare("lt", other)

    def __le__(self, other: Any) -> bool:
        return self._compare("le", other)

    def __gt__(self, other: Any) -> bool:
        return self._compare("gt", other)

    def __ge__(self, other: Any) -> bool:
        return self._compare("ge", other)

    def __bool__(self) -> bool:
        return self._compare("ne", 0)

    def _compare(self, relation: str, other: Any) -> bool:
        if type(other) is AnyRank and other.batch == self.batch:
            return bool(getattr(operator, relation)(self.known, other.known))
        sign = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[relation]
        return any_rank_session().rank_truth(sign, _number(other) - self.known)


def rank_of(shape: Sequence[Dim]) -> Any:
    """The number of axes of a shape."""
    found = layout_of(shape)
    return len(shape) if found is None else AnyRank(len(shape) - 1, found.batch)


def _number(value: Any) -> int:
    if type(value) is not int:
        any_rank_session().observe(".ndim is read")
    return int(value)


def _read(self: AnyRank, *args: Any) -> Any:
    """What needs the number itself."""
    any_rank_session().observe(".ndim is read")


for _name in (
    "rsub", "mul", "rmul", "floordiv", "rfloordiv", "truediv", "rtruediv", "mod", "rmod", "divmod",
    "rdivmod", "pow", "rpow", "and", "rand", "or", "ror", "xor", "rxor", "lshift", "rlshift",
    "rshift", "rrshift", "matmul", "rmatmul", "neg", "pos", "abs", "invert", "index", "int",
    "float", "complex", "round", "trunc", "floor", "ceil", "hash", "str", "repr", "format",
    "getattr", "reduce", "reduce_ex", "sizeof", "dir", "array", "copy", "deepcopy", "iter", "len",
):  # fmt: skip
    setattr(AnyRank, f"__{_name}__", _read)
