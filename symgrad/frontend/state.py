"""What a program keeps outside of its arguments: found before a trace, judged after it, put back.

In: a Function whose code is not plain.  Out: its modules, classes, objects, defaults, closures and
caches as they were, and what of that changes what later calls compute.

A trace starts from the state that is there.  What it changes is another one in each later call, so
the trace is done again from a state in which every number that changed is *unknown* and every
container that grew may hold anything.  A question about an unknown number has both answers, each of
which is traced.  If all of these traces are the first one, no call depends on what earlier ones
left, by induction: a call changes only such places, and does the same whatever they hold.
"""

from __future__ import annotations

import functools
import gc
import itertools
from array import array
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    MutableMapping,
    MutableSequence,
    MutableSet,
)
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from symgrad.budgets import MOST_STATE_PATHS, MOST_STATE_ROUNDS
from symgrad.errors import Location
from symgrad.frontend.classes import is_stand_in, real_types
from symgrad.frontend.function import Context, class_of
from symgrad.frontend.plain_code import is_plain
from symgrad.frontend.reach import ABSENT, Leaf, Place, Reach, by_identity, reached, state_of_leaf
from symgrad.frontend.sizes import SymFloat, SymInt, takes_sizes_for
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.frontend.unknown import (
    Path,
    UnknownCounter,
    exploring,
    is_counter,
    stands_for,
    unknown,
    watched,
)
from symgrad.ir.function import Asked

_SYMBOLIC = (SymbolicTensor, SymInt, SymFloat)
_DEPTH = 4
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


At = tuple[int, Any, bool]


@dataclass(frozen=True, eq=False)
class Change:
    """A place whose content is another one after a trace; of a ``leaf`` nothing more is known."""

    label: str
    place: Place | None
    key: Any
    before: Any
    after: Any

    @property
    def at(self) -> At:
        """What tells changes apart: the place, and is it of what is there or of its value."""
        holder = self.place.holder if self.place is not None else self.before
        if self.place is not None and self.place.kind == "cache":
            return id(holder), None, False
        by_place = self.grows and not isinstance(holder, (MutableMapping, MutableSet))
        return id(holder), None if by_place else _text(self.key), self.comes

    @property
    def comes(self) -> bool:
        """Was there nothing before, or is there nothing now?"""
        return self.before is ABSENT or self.after is ABSENT

    @property
    def grows(self) -> bool:
        """Is a container larger or smaller?"""
        return self.comes and self.place is not None and self.place.kind == "item"

    def undo(self) -> None:
        """Put back what was there; a cache is emptied, and a counter counts on."""
        with suppress(Exception):  # a container of the user's may refuse
            if self.place is None:
                _put_back_array(self.after)
            elif self.place.kind == "cache":
                self.place.holder.cache_clear()
            elif self.place.kind == "item":
                _put_back(self.place)
            else:
                self.place.write(self.key, self.before)


def _text(key: Any) -> Any:
    if isinstance(key, Context):
        return Context  # each call has its own, which is in no table before
    return key if type(key) in _PLAIN else id(key)


class State:
    """What a program keeps, as it was when this was made."""

    def __init__(self, reach: Reach) -> None:
        self.reach = reach

    @staticmethod
    def of_context(ctx: Any) -> State:
        """What is kept on ctx."""
        found = Reach()
        found.context(ctx)
        return State(found)

    def changes(self) -> list[Change]:
        """What is another one now."""
        return [*self._changed_places(), *self._changed_leaves()]

    def _changed_places(self) -> Iterator[Change]:
        for place in self.reach.places:
            before, now = by_identity(place.before), by_identity(place.read())
            for key in dict.fromkeys((*before, *now)):
                name, old = before.get(key, (None, ABSENT))
                name, new = now.get(key, (name, ABSENT))
                if new is old or is_stand_in(new) or name == "__warningregistry__":
                    continue
                if stands_for(new, old) or takes_sizes_for(new, old):
                    continue
                if not _same(old, new):
                    yield Change(place.name(name), place, name, old, new)

    def _changed_leaves(self) -> Iterator[Change]:
        for leaf in self.reach.leaves:
            if state_of_leaf(leaf.value) != leaf.state:
                yield Change(leaf.label, None, None, leaf.value, leaf)

    def restore(self) -> None:
        """Put back what was there."""
        for place in self.reach.places:
            place.current = None
            with suppress(Exception):  # a container of the user's may refuse
                _put_back(place)
        for leaf in self.reach.leaves:
            _put_back_array(leaf)

    def clean(self) -> None:
        """Put back what was there in the place of what is symbolic."""
        for place in self.reach.places:
            now = by_identity(place.read())
            before = by_identity(place.before)
            changed = {
                key: (name, value) for key, (name, value) in now.items()
                if key not in before or before[key][1] is not value
            }  # fmt: skip
            dirty = [key for key, pair in changed.items() if any(map(is_symbolic, pair))]
            if dirty and any(type(name) is not str for name, _ in changed.values()):
                _put_back(place)
                continue
            for key in dirty:
                place.write(now[key][0], before[key][1] if key in before else ABSENT)
        for cached in self.reach.cached:
            if any(is_symbolic(item) for item in gc.get_referents(cached)):
                cached.cache_clear()

    def replace(self, old: Any, new: Any) -> None:
        """Put a value in the place of another one, wherever that is kept."""
        for place in self.reach.places:
            for key, value in place.before.items():
                if value is old:
                    place.write(key, new)
            if place.holder is old and place.kind == "item":
                place.current = new


def _put_back_array(leaf: Leaf) -> None:
    if (
        isinstance(leaf.value, np.ndarray)
        and leaf.value.flags.writeable
        and leaf.state is not None
        and leaf.state[2] is not None
        and state_of_leaf(leaf.value) != leaf.state
    ):
        leaf.value[...] = np.frombuffer(leaf.state[2], leaf.value.dtype).reshape(leaf.value.shape)


def _put_back(place: Place) -> None:
    held, before, now = place.holder, place.before, place.read()
    if place.kind == "item" and not isinstance(held, (MutableMapping, MutableSet)):
        old, new = list(before.values()), list(now.values())
        if len(old) != len(new):
            _fill(held, old)
        for number, (one, other) in enumerate(zip(old, new, strict=False)):
            if one is not other and len(old) == len(new):
                held[number] = one
        return
    was, found = by_identity(before), by_identity(now)
    for key, (name, value) in found.items():
        if key not in was:
            place.write(name, ABSENT)
        elif was[key][1] is not value:
            place.write(name, was[key][1])
    for key, (name, value) in was.items():
        if key not in found:
            place.write(name, value)


def _fill(held: Any, old: list[Any]) -> None:
    """Give a sequence the items that it had; not every sequence knows slices."""
    if isinstance(held, array):
        held[:] = array(held.typecode, old)
    elif isinstance(held, (list, bytearray)):
        held[:] = old
    else:
        held.clear()
        held.extend(old)


def _same(old: Any, new: Any) -> bool:
    if type(old) is not type(new):
        return False
    if type(old) in _PLAIN:
        return bool(old == new) or (old != old and new != new)
    if type(old) is tuple:
        return len(old) == len(new) and all(map(_same_or_is, old, new))
    return False


def _same_or_is(old: Any, new: Any) -> bool:
    return old is new or _same(old, new)


@functools.lru_cache(maxsize=1024)
def _is_tracer(classes: tuple[type, ...]) -> bool:
    """Are there classes of what JAX traces with?"""
    return any(
        one.__name__ in ("Tracer", "_DimExpr") and one.__module__.partition(".")[0] == "jax"
        for one in classes
    )


def is_symbolic(value: Any, depth: int = _DEPTH) -> bool:
    """Is it symbolic, or does it hold something that is?"""
    if isinstance(value, _SYMBOLIC) or _is_tracer(type(value).__mro__):
        return True
    if not depth:
        return False
    if type(value) in (list, tuple, set, frozenset) or isinstance(value, MutableSequence):
        return any(is_symbolic(item, depth - 1) for item in value)
    if isinstance(value, MutableMapping):
        return any(is_symbolic(item, depth - 1) for pair in value.items() for item in pair)
    if type(value).__module__ not in ("builtins", "types") and hasattr(value, "__dict__"):
        inner = vars(value)
        return (
            isinstance(inner, dict)
            and not isinstance(value, type)
            and any(is_symbolic(item, depth - 1) for item in inner.values())
        )
    return False


# -- traces


@contextmanager
def put_back(function: Any) -> Iterator[State | None]:
    """A block that traces a Function, after which its module is as it was.

    It begins as the first trace did, whatever traces have changed since.  In it the module's
    ``type`` gives the classes of real values.  Out: the state before; None for plain code, which
    keeps none.
    """
    if is_plain(function):
        yield None
        return
    left = state = State(reached(function))
    if changes_of(function):
        as_at_first(function)
        state = State(reached(function))
    try:
        with real_types(state.reach, class_of(function).symgrad_guest):
            yield state
    finally:
        state.clean()
        if left is not state:
            left.restore()


_changes: WeakKeyDictionary[Any, dict[At, Change]] = WeakKeyDictionary()


def changes_of(function: Any) -> dict[At, Change]:
    """What traces of a Function are known to change, which all of them must not depend on."""
    return _changes.setdefault(class_of(function), {})


def is_changed(function: Any, value: Any) -> bool:
    """Do traces of a Function change a container, the default of an argument?"""
    changes = changes_of(function).values()
    return any(one.place is not None and one.place.holder is value for one in changes)


def as_at_first(function: Any) -> None:
    """Put back what traces of a Function changed, as it was before the first one."""
    for one in reversed(changes_of(function).values()):
        one.undo()


@dataclass
class Later:
    """Later calls: traces from the states that earlier ones leave.

    ``first``: the state before the first trace; ``begun``: what that had changed when forward was
    over.  ``capture``: the state now; ``again``: traces again, and is it the same?
    ``whatever``: that is done, too, where nothing seems to change.  ``shared``: what all traces of
    the Function change.
    ``notes``: what is not.
    """

    first: State
    begun: list[Change]
    capture: Callable[[], State]
    again: Callable[[], bool]
    whatever: bool = False
    shared: dict[At, Change] | None = None
    notes: list[Asked] = field(default_factory=list)

    def judge(self) -> list[Asked]:
        """What later calls may do otherwise; empty if they do the same."""
        changes = [*self.begun, *self.first.changes()]
        known = _relevant(changes)
        kept = [one for one in changes if isinstance(one.after, SymbolicTensor)]
        if kept and self.first.reach.tensors:
            said = f"it asks which object a tensor is, and {_names(kept)} is one of another call"
            self.notes.append(Asked(said, self.first.reach.tensors[0]))
        if self.shared is not None:
            self.shared.update({at: one for at, one in known.items() if at not in self.shared})
            known = {**self.shared, **known}
        if not (known or self.whatever) or self.notes:
            return self.notes
        left = self.capture()
        try:
            self._until_nothing_is_new(left, known)
            if left.reach.cached and not self.notes:
                self._until_nothing_is_new(left, known, cleared=True)
        finally:
            left.restore()
        return self.notes

    def _until_nothing_is_new(
        self, left: State, known: dict[At, Change], *, cleared: bool = False
    ) -> None:
        """Trace until all that traces change is known.  ``cleared``: with empty caches."""
        for _ in range(MOST_STATE_ROUNDS):
            found = self._by_all_paths(left, known, cleared=cleared)
            new = {at: one for at, one in found.items() if not _covers(known.get(at), one)}
            if self.notes or not new:
                return
            known |= new
            if self.shared is not None:
                self.shared.update(new)
        self._note("{} is another one after every call", new.values())

    def _by_all_paths(
        self, left: State, known: dict[At, Change], *, cleared: bool = False
    ) -> dict[At, Change]:
        """What traces change that start from a state in which these places are unknown."""
        found: dict[At, Change] = {}
        path, during = Path(), list[Change]()

        def between() -> None:
            during.extend(left.changes())
            self._forget(left, known, whole=False)

        def start() -> bool:
            if not self._forget(left, known, whole=True):
                return False
            for cached in left.reach.cached if cleared else ():
                cached.cache_clear()
            return True

        def restart() -> None:
            during.extend(left.changes())
            left.restore()
            start()

        for count in itertools.count():
            if not start():
                return {}
            with exploring(path, between, restart):
                same = self.again()
            changed = _relevant([*during, *left.changes()])
            left.restore()
            during.clear()
            if not same or path.problem is not None:
                self._blame(path, known)
                return {}
            found |= changed
            still = [one for at, one in changed.items() if at in known and not _is_known(one)]
            if still:
                self._note("{} is another one after every call", still)
                return {}
            if not path.advance():
                break
            if count >= MOST_STATE_PATHS:
                self._note("the program takes too many ways by {}", known.values())
                return {}
        self._objects(known)
        return found

    def _objects(self, known: dict[At, Change]) -> None:
        """Which object an unknown number is, is not known either."""
        lines = self.first.reach.objects
        if lines and any(_is_known(one) for one in known.values()):
            names = _names(known.values())
            said = f"it asks which object something is, and each call changes {names}"
            self.notes.append(Asked(said, lines[0]))

    def _forget(self, left: State, known: dict[At, Change], *, whole: bool) -> bool:
        """Make unknown what changed, and if ``whole``, containers; False where that cannot be."""
        places = {id(place.holder): place for place in left.reach.places}
        grown: dict[int, set[Any]] = {}
        for change in known.values():
            if change.place is None:
                if not is_counter(change.before) or id(change.before) in left.reach.fixed:
                    self._note("{} is another one after every call", [change])
                    return False
                left.replace(change.before, UnknownCounter(change.label, change.before))
                continue
            place = places.get(id(change.place.holder))
            if place is None:
                continue
            if change.grows:
                grown.setdefault(id(place.holder), set()).add(change.key)
            elif place.kind != "cache" and _is_known(change) and change.key in place.read():
                place.write(change.key, unknown(change.label, change.after))
        for holder, keys in grown.items() if whole else ():
            place = places[holder]
            made = watched(place.holder, place.label, frozenset(keys))
            if made is None or holder in left.reach.fixed:
                self._note("{} is another one after every call", known.values())
                return False
            left.replace(place.holder, made)
        return True

    def _blame(self, path: Path, known: dict[At, Change]) -> None:
        labels = [path.label] if path.label else [one.label for one in known.values()]
        what = " and ".join(dict.fromkeys(labels))
        where = self._where(labels)
        said = f"later calls may do something else, since each call changes {what}"
        said += f" ({where})" if where and path.where and where != path.where else ""
        self.notes.append(Asked(said, path.where or where))

    def _note(self, said: str, changes: Iterable[Change]) -> None:
        found = list(changes)
        where = self._where([one.label for one in found])
        self.notes.append(Asked(said.format(_names(found)), where))

    def _where(self, labels: Iterable[str]) -> Location | None:
        found = (self.first.reach.where(label) for label in labels)
        return next((one for one in found if one is not None), None)


def _names(changes: Iterable[Change]) -> str:
    return " and ".join(dict.fromkeys(one.label for one in changes))


def _relevant(changes: Iterable[Change]) -> dict[At, Change]:
    """The changes of which other calls beside each other do not tell all.

    These tell of a tensor that stands in the place of another one.
    """
    found: dict[At, Change] = {}
    for one in changes:
        kept = isinstance(one.after, SymbolicTensor) or isinstance(one.before, SymbolicTensor)
        if not kept or one.grows:
            found.setdefault(one.at, one)
    return found


def _covers(known: Change | None, change: Change) -> bool:
    return known is not None and (_is_known(known) or not _is_known(change))


def _is_known(change: Change) -> bool:
    """Can it be made unknown, so that a further change is none?"""
    if change.place is None:
        return is_counter(change.before)
    if change.place.kind == "cache":
        return True
    if change.comes:
        return change.grows
    before, after = change.before, change.after
    tuples = isinstance(before, tuple) or isinstance(after, tuple)
    if tuples and (type(before) is not type(after) or len(before) != len(after)):
        return False
    return unknown("", before) is not None and unknown("", after) is not None
