"""What fitted the shapes before is tried first for the next ones, while a verdict is made.

In: ``with remembered():`` around a verdict; candidates by key.  Out: the same candidates, in
another order.  Each is judged as ever, so that a wrong guess costs time alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")
_fitted: ContextVar[dict[Hashable, Any] | None] = ContextVar("fitted", default=None)


@contextmanager
def remembered() -> Iterator[None]:
    """A block in which what fitted is known until its end."""
    token = _fitted.set({})
    try:
        yield
    finally:
        _fitted.reset(token)


def note(question: Hashable, key: Any) -> None:
    """Remember which candidate was the answer, or what was found."""
    known = _fitted.get()
    if known is not None:
        known[question] = key


def noted(question: Hashable) -> Any:
    """The key of the candidate that was the answer last, or what was found; None for none."""
    return (_fitted.get() or {}).get(question)


def in_turn(question: Hashable, candidates: Mapping[Hashable, T]) -> Iterator[tuple[Hashable, T]]:
    """The candidates, that which was the answer last before the others."""
    last = noted(question)
    if last in candidates:
        yield last, candidates[last]
    yield from (pair for pair in candidates.items() if pair[0] != last)


def keyed(candidates: Iterable[T], key: Callable[[T], Hashable]) -> dict[Hashable, T]:
    """The candidates by their keys, in order; of equal keys, each has its number."""
    seen = Counter[Hashable]()
    found: dict[Hashable, T] = {}
    for one in candidates:
        own = key(one)
        found[own, seen[own]] = one
        seen[own] += 1
    return found
