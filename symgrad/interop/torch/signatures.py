"""What the parameters of torch's functions are, as their signatures say.

In: the name of a function, or of a method of tensors.  Out: by place and by name ``switch``, ``rare
switch`` where it is off as a rule, ``axis``, ``count``, ``window`` for what places a window; for
what has to be a list of such numbers ``windows``; ``added window`` and ``added windows`` where they
are 0 as a rule.  What overloads differ in, and what may be a tensor, is left out.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from typing import Any

import torch

_AXES = ("dim", "axis", "dim0", "dim1", "axis0", "axis1", "start_dim", "end_dim")
_COUNTS = (
    "chunks", "sections", "split_size", "k", "n", "num_groups", "num_classes", "bins",
    "repeats", "upscale_factor", "downscale_factor",
)  # fmt: skip
_PLACING = ("stride", "padding", "dilation", "output_padding", "kernel_size")
_ADDED = ("padding", "output_padding")
_RARE = ("transposed",)
Row = list[tuple[int | None, str, str]]
"""The parameters of an overload: the place of each, its name, and what it is."""


@functools.lru_cache(maxsize=1024)
def kinds_of(name: str) -> dict[int | str, str]:
    """What the arguments of a function are, the tensor first: of ``svd``, of ``linalg.svd``."""
    rows = [*_compiled(name), *_in_python(name)]
    found: dict[int | str, set[str]] = {}
    for row in rows:
        for place, own, kind in row:
            for key in (own,) if place is None else (own, place):
                found.setdefault(key, set()).add(kind)
    return {key: kind for key, kinds in found.items() for kind in kinds if kind and len(kinds) == 1}


def _compiled(name: str) -> Iterator[Row]:
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name.replace('.', '_')}"):
        every = schema.arguments
        if every and "Tensor" in str(every[0].type) and not schema.overload_name.endswith("out"):
            yield [
                (None if one.kwarg_only else place, one.name, _kind(one.name, str(one.type), one.N))
                for place, one in enumerate(every)
            ]


def _in_python(name: str) -> Iterator[Row]:
    value = getattr(torch.nn.functional, name, None)
    if inspect.isfunction(value):
        named = inspect.signature(value).parameters.values()
        yield [
            (place, one.name, _kind(one.name, _written(one.annotation), 1))
            for place, one in enumerate(named)
        ]


def _written(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")


def _kind(name: str, type_: str, items: int | None = None) -> str:
    """``items``: how many items a list has, for all of which a number may stand."""
    if type_ in ("List[int]", "int", "") and name in _PLACING:
        listed = "windows" if items is None else "window"
        return f"added {listed}" if name in _ADDED else listed
    if type_ == "str" and name == "padding":  # "same"
        return "added window"
    if type_ in ("bool", "Optional[bool]"):
        return "rare switch" if name in _RARE else "switch"
    whole = type_ in ("int", "Optional[int]")
    if whole and name == "groups":
        return "window"
    return "axis" if whole and name in _AXES else "count" if whole and name in _COUNTS else ""
