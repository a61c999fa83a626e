"""Python's frames in one piece while a verdict is made.

In: ``in_one_piece(function)``.  Out: what the function returns.

CPython from 3.11 on keeps the frames of calls in chunks of 16 KB.  A call at the end of a chunk
maps the next one, its return unmaps it, and a recursion that goes to and fro there takes a quarter
longer.  A chunk is as large as the frame that opens it needs: below one that asks for much, of
which it touches nothing, there is room for all others.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TypeVar, cast

T = TypeVar("T")

_SLOTS = 2**17
"""Slots of the stack of the large frame: a megabyte of addresses, and as much for the others."""


def _call(function: Callable[[], T]) -> T:
    return function()


in_one_piece = cast(
    "Callable[[Callable[[], T]], T]",
    FunctionType(_call.__code__.replace(co_stacksize=_SLOTS), {}, "in_one_piece"),
)
"""Call a function, with all frames of its calls in one chunk."""
