"""Calls that have a number before the tensors, which torch still takes: ``torch.add(x, 2, y)``.

In: the arguments of a call.  Out: those of the same call in the order that torch documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_SCALED = {"add": ("alpha", 3), "sub": ("alpha", 3), "addcmul": ("value", 4),
           "addcdiv": ("value", 4)}  # fmt: skip
"""What the number in the second place is called, and how many arguments there are with it."""
_PRODUCTS = ("addmm", "addmv", "addr", "addbmm", "baddbmm")


def in_new_order(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, method: bool
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with numbers by name.  ``method``: the tensor comes before all numbers."""
    plain = name.removesuffix("_")
    scaled = _SCALED.get(plain)
    if scaled is not None and len(args) == scaled[1]:
        first, number, *others = args
        return (first, *others), {**kwargs, scaled[0]: number}
    if plain in _PRODUCTS and len(args) in (4, 5):
        *numbers, left, right = args
        first = numbers.pop(0 if method else 1)
        given = dict(zip(("beta", "alpha"), numbers, strict=False))
        return (first, left, right), {**kwargs, **given}
    return tuple(args), dict(kwargs)
