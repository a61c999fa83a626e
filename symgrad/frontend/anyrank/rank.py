"""The number of axes of a tensor with a pack: it may be compared with numbers, and no more.

In: how many axes there are beside the batch axes.  Out: answers that hold for every number of batch
axes but a few, which are then judged apart.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from typing import Any

from symgrad.frontend.anyrank.session import asked_by_symgrad, layout_of, pack_session
from symgrad.ir.dim import Dim


class PackRank:
    """``known`` axes, and as many as the pack stands for."""

    __slots__ = ("known", "pack")

    def __init__(self, known: int, pack: Dim) -> None:
        self.known = known
        self.pack = pack

    @property
    def __class__(self) -> type:
        """What ``isinstance`` asks: it is no ``int`` to be computed with."""
        if not asked_by_symgrad(sys._getframe(1)):
            pack_session().observe("the class of .ndim is asked for")
        return int

    @__class__.setter
    def __class__(self, value: type) -> None:
        pack_session().observe("the class of .ndim is set")

    def __add__(self, other: Any) -> PackRank:
        return PackRank(self.known + _number(other), self.pack)

    def __sub__(self, other: Any) -> Any:
        if type(other) is PackRank and other.pack == self.pack:
            return self.known - other.known
        return PackRank(self.known - _number(other), self.pack)

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
        if type(other) is PackRank and other.pack == self.pack:
            return bool(getattr(operator, relation)(self.known, other.known))
        sign = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[relation]
        return pack_session().rank_truth(sign, _number(other) - self.known)


def rank_of(shape: Sequence[Dim]) -> Any:
    """The number of axes of a shape."""
    found = layout_of(shape)
    return len(shape) if found is None else PackRank(len(shape) - 1, found.pack)


def _number(value: Any) -> int:
    if type(value) is not int:
        pack_session().observe(".ndim is read")
    return int(value)


def _read(self: PackRank, *args: Any) -> Any:
    """What needs the number itself."""
    pack_session().observe(".ndim is read")


for _name in (
    "rsub", "mul", "rmul", "floordiv", "rfloordiv", "truediv", "rtruediv", "mod", "rmod", "divmod",
    "rdivmod", "pow", "rpow", "and", "rand", "or", "ror", "xor", "rxor", "lshift", "rlshift",
    "rshift", "rrshift", "matmul", "rmatmul", "neg", "pos", "abs", "invert", "index", "int",
    "float", "complex", "round", "trunc", "floor", "ceil", "hash", "str", "repr", "format",
    "getattr", "reduce", "reduce_ex", "sizeof", "dir", "array", "copy", "deepcopy", "iter", "len",
):  # fmt: skip
    setattr(PackRank, f"__{_name}__", _read)
