"""What stands for state that earlier calls may have changed, while a Function is traced again.

In: a number, a counter or a container that calls change.  Out: one of which nothing is known.

A question that has two answers takes both, in one trace each (``Path``); any other question is a
problem of the path: there is no answer for all calls.
"""

from __future__ import annotations

import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symgrad.errors import Location
from symgrad.frontend.caller import asked_by_symgrad, here
from symgrad.frontend.session import current
from symgrad.frontend.sizes import SymFloat, SymInt, ValuedNumber
from symgrad.ir.dtype import DType
from symgrad.ir.function import Asked
from symgrad.ir.graph import Node


@dataclass
class Path:
    """The answers to questions about unknown state in one trace.

    ``given``: those that are decided; ``count``: so many were asked.  ``label`` and ``where``: the
    first question.  ``problem``: a question that has no answer.
    """

    given: list[bool] = field(default_factory=list)
    count: int = 0
    label: str = ""
    where: Location | None = None
    problem: Asked | None = None

    def start(self) -> None:
        """A trace begins."""
        self.count, self.label, self.where, self.problem = 0, "", None, None

    def decide(self, label: str) -> bool:
        """An answer, which is the other one on another path."""
        self._ask(label)
        if self.count == len(self.given):
            self.given.append(False)
        self.count += 1
        return self.given[self.count - 1]

    def observe(self, label: str) -> None:
        """A question that has no answer."""
        self._ask(label)
        self.problem = self.problem or Asked(label, self.where)

    def _ask(self, label: str) -> None:
        if not self.label:
            self.label, self.where = label, here()

    def advance(self) -> bool:
        """Go on to the next path; False if there is none."""
        del self.given[self.count :]
        while self.given and self.given[-1]:
            self.given.pop()
        if self.given:
            self.given[-1] = True
        return bool(self.given)


_Exploring = tuple[Path, Callable[[], None], Callable[[], None]]
_path: ContextVar[_Exploring | None] = ContextVar("symgrad_path", default=None)


@contextmanager
def exploring(
    path: Path, between: Callable[[], None], restart: Callable[[], None]
) -> Iterator[Path]:
    """A block that traces one path.

    ``between``: is called between forward and backward; ``restart``: before another trace.
    """
    path.start()
    token = _path.set((path, between, restart))
    try:
        yield path
    finally:
        _path.reset(token)


def between_calls() -> None:
    """Forward is over: other calls may come before backward."""
    found = _path.get()
    if found is not None:
        found[1]()


def between_ways() -> None:
    """Another trace of the same calls begins."""
    found = _path.get()
    if found is not None:
        found[2]()


def decide(label: str) -> bool:
    """An answer to a question about unknown state."""
    found = _path.get()
    return False if found is None else found[0].decide(label)


def _observe(label: str) -> None:
    found = _path.get()
    if found is not None:
        found[0].observe(label)


# -- numbers


class StateNumber(ValuedNumber):
    """A number that calls change, or what was computed from some.

    ``value``: what it was once.
    """

    __slots__ = ("label",)

    def __init__(self, label: str, value: Any, *, whole: bool) -> None:
        super().__init__("state", ())
        self.label, self.value, self.is_whole = label, value, whole

    @classmethod
    def of(cls, label: str, value: Any) -> StateNumber:
        """In place of a number."""
        if isinstance(value, (SymInt, SymFloat)) and type(value) is not StateNumber:
            return cls(label, 1, whole=value.is_whole)
        known = value.value if type(value) is StateNumber else value
        return cls(label, known, whole=isinstance(known, int))

    def settle(self) -> Any:
        """What it was once; nothing is known of it in other calls."""
        _observe(self.label)
        return self.value

    def node(self, dtype: DType) -> Node:
        """It is a number of the graph, which differs from call to call."""
        return current().constant(self.settle(), dtype)

    @property
    def stands_for(self) -> Any:
        """What describes it when the trace is over."""
        return self.value

    def derived(self, op: str, args: tuple[Any, ...]) -> SymFloat:
        """What ``op`` makes of it and other numbers: a number of which nothing is known."""
        whole = op in ("add", "sub", "mul", "neg") and all(map(_is_whole, args))
        return StateNumber(self.label, self.value, whole=whole)

    def _made(self, other: Any = 0) -> Any:
        if not isinstance(other, (int, float, np.number, SymInt, SymFloat)):
            return NotImplemented
        return StateNumber(self.label, self.value, whole=self.is_whole and _is_whole(other))

    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _made
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _made
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _made

    def __invert__(self) -> Any:
        return self._made()

    __abs__ = __pos__ = __invert__

    def __divmod__(self, other: Any) -> Any:
        return self._made(other), self._made(other)

    def __rdivmod__(self, other: Any) -> Any:
        return self._made(other), self._made(other)

    def _decided(self, other: Any) -> Any:
        if not isinstance(other, (int, float, np.number, SymInt, SymFloat)):
            return NotImplemented
        return decide(self.label)

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _decided
    __hash__ = ValuedNumber.__hash__

    def __bool__(self) -> bool:
        return decide(self.label)

    def is_integer(self) -> bool:
        """As of a float."""
        return decide(self.label)


def _is_whole(value: Any) -> bool:
    if isinstance(value, SymFloat):
        return value.is_whole
    return isinstance(value, (int, SymInt, np.integer))


def unknown(label: str, value: Any) -> Any:
    """What stands for a value in later calls; None where it cannot be told."""
    if type(value) in (bool, int, float, StateNumber) or isinstance(value, (SymInt, SymFloat)):
        return StateNumber.of(label, value)
    if type(value) is tuple or (isinstance(value, tuple) and hasattr(value, "numel")):
        items = [unknown(label, one) for one in value]
        return None if any(one is None for one in items) else tuple(items)
    return None


class UnknownCounter:
    """An ``itertools.count`` that calls share."""

    def __init__(self, label: str, original: Any) -> None:
        self.label, self.original = label, original

    def __iter__(self) -> UnknownCounter:
        return self

    def __next__(self) -> Any:
        return StateNumber(self.label, 0, whole=True)


def is_counter(value: Any) -> bool:
    """Is it an ``itertools.count``?"""
    return type(value).__module__ == "itertools" and type(value).__name__ == "count"


# -- containers


class Watched:
    """A container that calls change: what is put into it is harmless, what is read of it is not.

    ``original``: that in whose place it stands; ``uncertain``: keys that may be there or not.
    """

    label: str
    original: Any
    uncertain: frozenset[Any]

    def _look(self) -> None:
        if not asked_by_symgrad(sys._getframe(2)):
            self.look()

    def look(self) -> None:
        """It is looked at as a whole."""
        _observe(self.label)

    def _has(self, key: Any, known: bool) -> bool:
        return decide(self.label) if key in self.uncertain else known

    def __bool__(self) -> bool:
        if asked_by_symgrad(sys._getframe(1)):
            return True
        return decide(self.label)


def reading(kind: type, name: str) -> Callable[..., Any]:
    """A method of a container, which looks at it as a whole."""
    original = getattr(kind, name)

    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._look()
        return original(self, *args, **kwargs)

    return read


_READ = (
    "__len__", "__iter__", "__getitem__", "__contains__", "__eq__", "__ne__", "__lt__", "__gt__",
    "__le__", "__ge__", "__repr__", "__str__", "__reversed__", "__add__", "__mul__", "__rmul__",
    "__or__", "__ror__", "__and__", "__sub__", "__xor__", "__ior__", "__delitem__", "index",
    "count", "pop", "popleft", "popitem", "remove", "copy", "keys", "values", "items", "union",
    "intersection", "difference", "issubset", "issuperset", "isdisjoint", "most_common", "total",
    "elements", "__reduce_ex__", "rotate", "move_to_end",
)  # fmt: skip


_DICT: Any = dict
_SET: Any = set


class _WatchedMapping(Watched):
    """A mapping: of a single key the value is known, and whether it is there."""

    def __contains__(self, key: Any) -> bool:
        return self._has(key, _DICT.__contains__(self, key))

    def get(self, key: Any, default: Any = None) -> Any:
        """As of a dictionary."""
        there = self._has(key, _DICT.__contains__(self, key))
        return _DICT.get(self, key, default) if there else default

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """As of a dictionary."""
        if not self._has(key, _DICT.__contains__(self, key)):
            _DICT.__setitem__(self, key, default)
        return _DICT.setdefault(self, key, default)

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key)  # type: ignore[misc]


class _WatchedSet(Watched):
    """A set: of a single member it is known whether it may be there."""

    def __contains__(self, key: Any) -> bool:
        return self._has(key, _SET.__contains__(self, key))


_OWN = {dict: _WatchedMapping, list: Watched, set: _WatchedSet, deque: Watched}
_classes: dict[type, type] = {}


def watched(value: Any, label: str, uncertain: frozenset[Any]) -> Any:
    """A container that takes the place of another one; None where there is none."""
    kind = type(value)
    base = next((one for one in _OWN if isinstance(value, one)), None)
    if base is None or isinstance(value, Watched):
        return None
    if kind not in _classes:
        own = _OWN[base]
        names = [
            name for name in _READ
            if hasattr(kind, name) and not (name in vars(own) and own is not Watched)
        ]  # fmt: skip
        space = {name: reading(kind, name) for name in names}
        try:
            _classes[kind] = type(
                f"Watched{kind.__name__}", (own, kind), {**space, "__hash__": None}
            )
        except TypeError:
            return None
    made: Any = _made(_classes[kind], value, base)
    if made is not None:
        made.label, made.original, made.uncertain = label, value, uncertain
    return made


def _made(kind: type, value: Any, base: type) -> Any:
    try:
        if base is deque:
            return kind(value, value.maxlen)
        made: Any = kind(value.default_factory) if isinstance(value, defaultdict) else kind()
        vars(made).update(getattr(value, "__dict__", {}))
        if base is dict:
            dict.update(made, value)
        elif base is list:
            list.extend(made, value)
        else:
            set.update(made, value)
    except Exception:
        return None
    return made


def stands_for(value: Any, original: Any) -> bool:
    """Does one stand in the place of the other?"""
    return isinstance(value, (Watched, UnknownCounter)) and value.original is original


def raw_items(value: Any) -> dict[Any, Any]:
    """What is in a container, by key; nobody is asked."""
    if isinstance(value, dict):
        return dict(dict.items(value))
    if isinstance(value, list):
        return dict(enumerate(list.__iter__(value)))
    if isinstance(value, deque):
        return dict(enumerate(deque.__iter__(value)))
    if isinstance(value, set):
        return dict.fromkeys(set.__iter__(value))
    return dict(value) if hasattr(value, "keys") else dict(enumerate(value))
