"""Random numbers of torch: each draw is a fresh unknown of the trace.

In: a function of torch that draws, and its arguments.  Out: a tensor of unknowns.  The same tensor
is the same unknowns wherever it is kept; another call draws others.  Nothing is known of them but
where they lie, so that what is proved holds for all draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symgrad.frontend.lift import as_tensor
from symgrad.frontend.session import current
from symgrad.frontend.table import FUNCTIONS
from symgrad.frontend.tensor import fresh

_IGNORED = ("device", "layout", "pin_memory", "requires_grad", "memory_format")


def drawn(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The unknowns that a function draws; None for one of which no more is known."""
    given = {key: value for key, value in kwargs.items() if key not in _IGNORED}
    made = _DRAWS.get(name)
    if made is None or given.pop("generator", None) is not None or given.get("out") is not None:
        return None
    return made(*args, **given)


def _like(kind: str) -> Callable[..., Any]:
    def call(input: Any, *, dtype: Any = None) -> Any:
        return _of(kind, FUNCTIONS["zeros_like"](input, dtype=dtype))

    return call


def _sized(kind: str) -> Callable[..., Any]:
    def call(*size: Any, dtype: Any = None, **named: Any) -> Any:
        return _of(kind, FUNCTIONS["zeros"](*size, dtype=dtype, **named))

    return call


def _of(kind: str, like: Any) -> Any:
    """Unknowns in the shape and dtype of a tensor."""
    return fresh(current().draw(kind, as_tensor(like).node.type))


def _bernoulli(input: Any, p: Any = None) -> Any:
    return _of("binary", input)


def _normal(mean: Any, std: Any = 1.0, size: Any = None, *, dtype: Any = None) -> Any:
    if size is not None:
        return mean + std * _of("real", FUNCTIONS["zeros"](size, dtype=dtype))
    like = mean + FUNCTIONS["zeros_like"](std) if hasattr(std, "shape") else mean
    return mean + std * _of("real", like)


def _in_place(kind: str, scaled: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **named: Any) -> Any:
        return self.copy_(scaled(_of(kind, self), *args, **named))

    return call


def _dropout(input: Any, p: Any = 0.5, training: bool = True, inplace: bool = False) -> Any:
    if not training or (isinstance(p, (int, float)) and p == 0):
        return input
    found = input * _of("binary", input)
    found = found / (1 - p) if not isinstance(p, (int, float)) or p < 1 else 0 * input
    return input.copy_(found) if inplace else found


_DRAWS: dict[str, Callable[..., Any]] = {
    "rand": _sized("unit"), "randn": _sized("real"), "rand_like": _like("unit"),
    "randn_like": _like("real"), "bernoulli": _bernoulli, "normal": _normal, "dropout": _dropout,
    "bernoulli_": _in_place("binary", lambda one, p=0.5: one),
    "uniform_": _in_place(
        "unit", lambda one, to_from=0.0, to=1.0, **named: _between(one, to_from, to, **named)
    ),
    "normal_": _in_place("real", lambda one, mean=0.0, std=1.0: mean + std * one),
}  # fmt: skip
NAMES = frozenset(_DRAWS)
"""Functions whose draws are unknowns."""


def _between(one: Any, low: Any, high: Any, **named: Any) -> Any:
    low = named.get("from", low)
    return low + (high - low) * one
