"""Numbers that Python makes of JAX's sizes and of plain numbers: ``1 / n``, ``alpha - 2``.

In: a value that JAX traces, and our number of the same value.  Out: the value, which takes along
what Python computes with it, so that what Python raises is raised (``frontend.refusals``).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from jax._src.interpreters.partial_eval import DynamicJaxprTracer

from symgrad.frontend.sizes import SymFloat, SymInt, as_size
from symgrad.interop.jax.sizes import JaxDim, sizes


class SizeNumber(DynamicJaxprTracer):  # type: ignore[misc]
    """What JAX traces in the place of a Python float, or of what it makes of sizes."""

    __slots__ = ()


def with_number(traced: Any, number: Any) -> Any:
    """What JAX traces, with our number for it."""
    if isinstance(number, (SymFloat, SymInt)) and isinstance(traced, DynamicJaxprTracer):
        if not issubclass(type(traced), SizeNumber):
            traced.__class__ = SizeNumber
        sizes().numbers[id(traced)] = (traced, number)
    return traced


def number_of(value: Any) -> Any:
    """Our number for a size, a float that was made of sizes, or a Python number; None for else."""
    if isinstance(value, JaxDim):
        return as_size(sizes().ours(value))
    if issubclass(type(value), SizeNumber):
        return sizes().numbers.get(id(value), (None, None))[1]
    return value if type(value) in (int, float) else None


def _method(name: str) -> Callable[..., Any]:
    original = getattr(DynamicJaxprTracer, f"__{name}__")
    is_reflected = name not in ("neg", "abs") and not hasattr(operator, name)
    compute: Callable[..., Any] = getattr(
        operator, name.removeprefix("r") if is_reflected else name
    )

    def method(self: Any, *others: Any) -> Any:
        known = [number_of(one) for one in (self, *others)]
        if any(one is None for one in known):
            return original(self, *others)
        number = compute(*(known[::-1] if is_reflected else known))
        return with_number(original(self, *others), number)

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    for _whole in (_name, f"r{_name}"):
        setattr(SizeNumber, f"__{_whole}__", _method(_whole))
for _name in ("neg", "abs"):
    setattr(SizeNumber, f"__{_name}__", _method(_name))
