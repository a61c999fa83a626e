"""Tables by size: a dictionary or ``functools.lru_cache`` whose keys are symbolic sizes.

In: the state that a Function reaches.  Out: tables in the place of its dictionaries and caches,
which take sizes for keys, and why what they keep may not be a function of its key.

A table that calls share holds what earlier calls put into it, by their sizes.  If each value is one
function of its key, and nothing else takes part in it, whether a key is there decides nothing but
whether that function is computed again.  A trace then takes both ways, with the same result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from symgrad.frontend.caller import here
from symgrad.frontend.complexes import real_of
from symgrad.frontend.plain import PlainNumber
from symgrad.frontend.session import active
from symgrad.frontend.sizes import SymFloat, SymInt
from symgrad.frontend.state import State
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.frontend.unknown import StateNumber, Watched, decide, raw_items, reading
from symgrad.ir.dim import Atom, Dim, Size
from symgrad.ir.dtype import DType
from symgrad.ir.function import Asked, FunctionCase
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ir.types import TensorType

_PLAIN = (bool, int, float, str, bytes, type(None))
_MISSING: Any = object()


def hashes_sizes(case: FunctionCase) -> bool:
    """Does the program ask for the hash of a size?"""
    return any(one.what.startswith("the hash of") for one in case.observed)


@dataclass
class Entry:
    """A value in a table: its key, and what it is, as a function of the key."""

    key: Any
    value: Any
    shape: Any
    meaning: Any


@dataclass
class Kept:
    """What a table keeps by sizes.

    ``entries``: of this trace; ``before``: of the first trace, which an earlier call may have left;
    ``absent``: keys of these that none has left.
    ``notes``: why the table is more than a function of keys.
    """

    label: str
    entries: list[Entry] = field(default_factory=list)
    before: list[Entry] = field(default_factory=list)
    absent: list[Any] = field(default_factory=list)
    notes: list[Asked] = field(default_factory=list)
    graph: Graph = field(default_factory=Graph)
    known: dict[Any, Any] = field(default_factory=dict)

    def begin(self) -> None:
        """A later call begins."""
        if not self.before:
            self.before = self.entries
            if any(_is_written(one.value) for one in self.before):
                self.note(f"what {self.label} keeps is written in place")
        self.entries, self.absent = [], []

    def find(self, key: Any) -> Any:
        """The value of a key, or what says that there is none."""
        for entry in self.entries:
            if _equal(entry.key, key):
                return entry.value
        for entry in self.before:
            if _equal(entry.key, key) and not any(_equal(one, key) for one in self.absent):
                if decide(self.label):
                    self.entries.append(entry)
                    return entry.value
                self.absent.append(key)
            if _equal(entry.key, key):
                return _MISSING
        if self.before:
            self.note(f"{self.label} is asked for a key that no call has put there")
        return _MISSING

    def put(self, key: Any, value: Any) -> None:
        """Keep a value; it must be a function of its key."""
        names = list(dict.fromkeys(_sizes_of_key(key)))
        put: dict[Atom, Dim] = {
            Size(name): Dim.size(f"key_{number}") for number, name in enumerate(names)
        }
        if not _is_plain_key(key):
            self.note(f"a key of {self.label} is made of more than sizes")
        elif not _asks_only(names):
            self.note(f"what {self.label} keeps depends on more than its key")
        meaning = self._meaning(value, frozenset(names), put)
        shape = _shape(key, put)
        if meaning is None:
            self.note(f"what {self.label} keeps depends on more than its key")
        elif self.known.setdefault(shape, meaning) != meaning:
            self.note(f"{self.label} keeps different things by the same key")
        self.entries = [one for one in self.entries if not _equal(one.key, key)]
        self.entries.append(Entry(key, value, shape, meaning))

    def note(self, what: str) -> None:
        """Why it is not harmless."""
        if all(one.what != what for one in self.notes):
            self.notes.append(Asked(what, here()))

    def _meaning(self, value: Any, names: frozenset[str], put: Mapping[Atom, Dim]) -> Any:
        """A value in terms of its key, where it is a function of that; else None."""
        if type(value) in _PLAIN:
            return "plain", type(value), value
        if isinstance(value, tuple):
            items = [self._meaning(one, names, put) for one in value]
            return None if None in items else ("tuple", type(value), *items)
        if isinstance(value, SymInt):
            return None if set(value.dim.sizes) - names else ("size", value.dim.substitute(put))
        if isinstance(value, (PlainNumber, StateNumber)):
            return None
        if isinstance(value, SymFloat):
            items = [self._meaning(one, names, put) for one in value.args]
            return None if None in items else ("number", value.op, *items)
        if isinstance(value, SymbolicTensor):
            found = self._tensor(real_of(value).node, names, put)
            return ("complex", found) if found and real_of(value) is not value else found
        return None

    def _tensor(self, node: Node, names: frozenset[str], put: Mapping[Atom, Dim]) -> Any:
        nodes = ancestors([node])
        if any(one.op == "input" or _named(one) - names for one in nodes):
            return None
        return "tensor", rewrite(self.graph, [node], sizes=put, named=False)[node]


def _is_written(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_is_written, value))
    return isinstance(value, SymbolicTensor) and value.storage.version > 0


def _named(node: Node) -> set[str]:
    """The sizes that a node names."""
    return {name for _, value in node.attrs for name in _in_value(value)} | {
        name for size in node.shape for name in size.sizes
    }


def _in_value(value: Any) -> Iterator[str]:
    if isinstance(value, Dim):
        yield from value.sizes
    elif isinstance(value, TensorType):
        yield from _in_value(value.shape)
    elif isinstance(value, tuple):
        for one in value:
            yield from _in_value(one)


def _asks_only(names: Iterable[str]) -> bool:
    """Has the program asked for nothing but these sizes so far?"""
    session = active()
    if session is None or session.questions is None or session.questions.answers:
        return False
    asked = {
        name for one in session.facts.conditions for side in (one.left, one.right)
        for name in side.sizes
    }  # fmt: skip
    return asked <= set(names)


def is_symbolic_key(key: Any) -> bool:
    """Is a size in it?"""
    if isinstance(key, tuple):
        return any(map(is_symbolic_key, key))
    return isinstance(key, SymInt)


def _is_plain_key(key: Any) -> bool:
    """Is it sizes and constants, each size a symbol by itself?  Dtypes are such."""
    if isinstance(key, tuple):
        return all(map(_is_plain_key, key))
    if isinstance(key, SymInt):
        return isinstance(key.dim.atom, Size)
    session = active()
    guest = None if session is None else session.guest
    own = () if guest is None else map(type, guest.values)
    return type(key) in (*_PLAIN, DType, *own)


def _sizes_of_key(key: Any) -> Iterator[str]:
    if isinstance(key, tuple):
        for one in key:
            yield from _sizes_of_key(one)
    elif isinstance(key, SymInt):
        yield from key.dim.sizes


def _shape(key: Any, put: Mapping[Atom, Dim]) -> Any:
    """A key with its sizes by their places."""
    if isinstance(key, tuple):
        return tuple(_shape(one, put) for one in key)
    return str(key.dim.substitute(put)) if isinstance(key, SymInt) else (type(key), key)


def _equal(one: Any, other: Any) -> bool:
    """Are two keys equal?  Where sizes decide it, the trace splits."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, tuple) or isinstance(other, tuple):
        return False
    numbers = (int, float, SymInt)
    if isinstance(one, numbers) != isinstance(other, numbers):
        return False
    return bool(one == other)


# -- what stands in the place of dictionaries and caches


class _BySizes(Watched):
    """A container that calls share, with sizes as keys."""

    kept: Kept
    __hash__ = None  # type: ignore[assignment]

    def look(self) -> None:
        """Something else than a key is asked for."""
        self.kept.note(f"{self.label} is looked at as a whole")

    def __bool__(self) -> bool:
        self._look()
        return bool(raw_items(self))


class SizeTable(_BySizes, dict[Any, Any]):
    """A dictionary that calls share, with sizes as keys."""

    def _find(self, key: Any) -> Any:
        if not is_symbolic_key(key) and not self.kept.entries and not self.kept.before:
            return dict.get(self, key, _MISSING)
        if raw_items(self):
            self.kept.note(f"{self.label} has sizes and other things as keys")
            return _MISSING if is_symbolic_key(key) else dict.get(self, key, _MISSING)
        return self.kept.find(key)

    def __contains__(self, key: Any) -> bool:
        return self._find(key) is not _MISSING

    def __getitem__(self, key: Any) -> Any:
        found = self._find(key)
        if found is _MISSING:
            raise KeyError("a size")
        return found

    def get(self, key: Any, default: Any = None) -> Any:
        """As of a dictionary."""
        found = self._find(key)
        return default if found is _MISSING else found

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """As of a dictionary."""
        found = self._find(key)
        if found is _MISSING:
            self[key] = found = default
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        if is_symbolic_key(key):
            self.kept.put(key, value)
        else:
            dict.__setitem__(self, key, value)


for _name in (
    "__len__", "__iter__", "__eq__", "__ne__", "__repr__", "__reversed__", "__or__", "__ror__",
    "__ior__", "__delitem__", "pop", "popitem", "copy", "keys", "values", "items", "update",
    "clear",
):  # fmt: skip
    setattr(SizeTable, _name, reading(dict, _name))


class SizeSet(_BySizes, set[Any]):
    """A set that calls share, with sizes as members."""

    def __contains__(self, key: Any) -> bool:
        if not is_symbolic_key(key) and not self.kept.entries and not self.kept.before:
            return set.__contains__(self, key)
        if raw_items(self):
            self.kept.note(f"{self.label} has sizes and other things as members")
        return self.kept.find(key) is not _MISSING

    def add(self, key: Any) -> None:
        """As of a set."""
        if is_symbolic_key(key):
            self.kept.put(key, None)
        else:
            set.add(self, key)


for _name in (
    "__len__", "__iter__", "__eq__", "__ne__", "__repr__", "__or__", "__ror__", "__ior__",
    "__and__", "__rand__", "__sub__", "__rsub__", "__xor__", "__rxor__", "__le__", "__lt__",
    "__ge__", "__gt__", "pop", "copy", "remove", "discard", "update", "clear", "union",
    "intersection", "difference", "issubset", "issuperset", "isdisjoint",
):  # fmt: skip
    setattr(SizeSet, _name, reading(set, _name))


class SizeCache:
    """A function with ``functools.lru_cache``, called with sizes."""

    def __init__(self, original: Any, label: str) -> None:
        self.original, self.kept = original, Kept(label)
        functools.update_wrapper(self, original)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What is kept, or else what the function gives."""
        key = (args, tuple(sorted(kwargs.items())))
        if not is_symbolic_key(key):
            return self.original(*args, **kwargs)
        found = self.kept.find(key)
        if found is _MISSING:
            found = self.original.__wrapped__(*args, **kwargs)
            self.kept.put(key, found)
        return found

    def cache_clear(self) -> None:
        """As of a cache."""
        self.kept.entries = []


_KINDS: dict[type, Any] = {dict: SizeTable, set: SizeSet}


@dataclass
class Tables:
    """The tables that stand in the place of the dictionaries and caches of a state."""

    state: State
    made: list[tuple[Any, Any]] = field(default_factory=list)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """A block in which they do."""
        self.state.clean()
        for place in self.state.reach.places:
            kind = _KINDS.get(type(place.holder))
            if kind is not None and place.kind == "item":
                table = kind()
                (dict if kind is SizeTable else set).update(table, place.holder)
                table.label, table.original, table.kept = (
                    place.label,
                    place.holder,
                    Kept(place.label),
                )
                self.made.append((place.holder, table))
        for cached in self.state.reach.cached:
            self.made.append((cached, SizeCache(cached, getattr(cached, "__name__", "a cache"))))
        for original, table in self.made:
            self.state.replace(original, table)
        try:
            yield
        finally:
            for original, _ in self.made:
                self.state.replace(original, original)

    @property
    def kept(self) -> list[Kept]:
        """What they keep."""
        return [table.kept for _, table in self.made]

    @property
    def notes(self) -> list[Asked]:
        """Why they are not harmless."""
        return [note for one in self.kept for note in one.notes]

    def again(self, trace: Callable[[], bool]) -> bool:
        """A later call, which may find in them what an earlier one has kept."""
        for one in self.kept:
            one.begin()
        return trace()
