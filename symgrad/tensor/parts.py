"""Small things that tensors are made of: shapes, version counters, handles of hooks.

In: sizes, hooks.  Out: records.
"""

from __future__ import annotations

import itertools
from typing import Any


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple of ints."""

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements."""
        total = 1
        for size in self:
            total *= size
        return total

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return Size(found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Size:
        return Size((*self, *other))

    def __repr__(self) -> str:
        return f"symgrad.Size({list(self)})"


class Version:
    """How often a piece of memory was written in place."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


Size.__module__ = "symgrad"

_hook_numbers = itertools.count()


class RemovableHandle:
    """``remove()`` takes a hook away."""

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self.id = next(_hook_numbers)
        self._hooks = hooks
        hooks[self.id] = hook

    def remove(self) -> None:
        """Take the hook away."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()
