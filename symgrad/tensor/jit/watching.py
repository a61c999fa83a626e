"""Plain values that a function reads beside its arguments, so that a change of them is seen.

In: a function.  Out: the values now, as a key.

Looked at are the variables of closures, defaults, and the global names that the code mentions: of
the function, of the functions that these lead to, and of methods beside it, but not of libraries.
What an object holds is not looked at.
"""

from __future__ import annotations

import enum
import functools
import operator
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from symgrad.budgets import DEEPEST_VALUE, MOST_OBJECTS
from symgrad.ir.dtype import DType
from symgrad.tensor.jit.captures import methods_of, names_of

_LIBRARIES = frozenset((*sys.stdlib_module_names, "numpy", "symgrad"))
_FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)
_VALUES = (int, str, complex, bytes, type(None), DType, enum.Enum)
_MISSING, _NEVER = object(), object()

Place = tuple[str, Any, Any]
"""What kind of variable, what holds it, and under which name."""


class Watched:
    """The variables that a function reads.

    A variable that changes while the function runs is the function's own, and not watched.
    """

    def __init__(self, roots: Sequence[Any]) -> None:
        self._roots = roots
        self._places: list[Place] = []
        self._own: list[Place] = []
        self._generation = 0
        self._reads: list[Callable[[], Any]] = []
        self._last: list[Any] = []
        self._last_key: Any = (0, ())
        self.renew()

    def key(self) -> Any:
        """The values now; two keys are equal if no variable was changed in between."""
        now = [read() for read in self._reads]
        if not all(map(operator.is_, now, self._last)):
            self._last_key = self._generation, tuple([_frozen(value) for value in now])
            lasting = all(map(_is_lasting, now))  # otherwise it has to be looked at each time
            self._last = now if lasting else [_NEVER] * len(now)
        return self._last_key

    def renew(self) -> None:
        """Look which variables there are now: other functions read other ones."""
        self._take([
            place for place in _places(self._roots) if not any(map(_same(place), self._own))
        ])  # fmt: skip

    def settle(self, before: Any) -> None:
        """Leave out what has changed since the key ``before``, which the function then did."""
        generation, values = before
        now = self.key()
        if now == before or generation != now[0]:
            return
        changed = [
            place for place, old, new in zip(self._places, values, now[1], strict=True)
            if old != new
        ]  # fmt: skip
        self._own += changed
        self._take([place for place in self._places if not any(map(_same(place), changed))])

    def _take(self, places: list[Place]) -> None:
        known = len(places) == len(self._places) and all(
            _same(one)(other) for one, other in zip(places, self._places, strict=True)
        )
        if not known:
            self._places = places
            self._generation += 1
            self._reads = list(map(_reader, places))
            self._last = [_NEVER] * len(places)
            self._last_key = self._generation, ()


def _same(place: Place) -> Any:
    """Is another place this one?"""
    return lambda other: other[1] is place[1] and other[0] == place[0] and other[2] == place[2]


def _reader(place: Place) -> Callable[[], Any]:
    """A call that gives what stands at a place."""
    kind, holder, name = place
    if kind == "global":
        return functools.partial(holder.get, name, _MISSING)
    return functools.partial(_contents if kind == "cell" else getattr, *place[1:])


def _contents(cell: types.CellType, _: None) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the variable has no value any more
        return _MISSING


def _is_lasting(value: Any) -> bool:
    """Is it always the same value as long as it is the same object?"""
    if type(value) is tuple:
        return all(map(_is_lasting, value))
    return isinstance(value, (float, *_VALUES)) or _is_function(value)


def _frozen(value: Any, depth: int = 0) -> Any:
    """A key of a plain value; of anything else its type."""
    kind = type(value)
    if isinstance(value, float):
        return kind, value.hex()
    if isinstance(value, _VALUES):
        return kind, value
    if isinstance(value, np.generic):
        return kind, value.tobytes()
    if _is_function(value):
        return value
    if depth < DEEPEST_VALUE:
        if isinstance(value, (tuple, list)):
            return kind, tuple([_frozen(item, depth + 1) for item in value])
        if isinstance(value, dict):
            return kind, tuple([(name, _frozen(value[name], depth + 1)) for name in value])
    if isinstance(value, slice):
        return kind, _frozen((value.start, value.stop, value.step), depth + 1)
    return kind


# -- which variables there are


def _places(roots: Sequence[Any]) -> Iterator[Place]:
    """The variables that are plain values or functions."""
    todo = list(roots)
    todo += [found for root in roots for part in _parts(root) for _, found in methods_of(part)]
    seen: set[int] = set()
    while todo and len(seen) < MOST_OBJECTS:
        value = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        todo += _behind(value)
        if not isinstance(value, types.FunctionType) or _of_library(value.__module__):
            continue
        for place in _variables(value):
            found = _reader(place)()
            todo += _functions_in(found)
            if _is_plain(found):
                yield place


def _parts(root: Any) -> Iterable[Any]:
    """An object whose methods are called: a module has others inside."""
    if isinstance(root, types.MethodType):
        root = root.__self__
    if isinstance(root, (type, *_FUNCTIONS)):
        return []
    is_module = hasattr(root, "training") and callable(getattr(root, "modules", None))
    return root.modules() if is_module else [root]


def _behind(value: Any) -> list[Any]:
    """The functions that a callable calls."""
    if isinstance(value, types.MethodType):
        return [value.__func__]
    if isinstance(value, functools.partial):
        return [value.func, *_functions_in(value.args)]
    return [getattr(value, "__wrapped__", None)]


def _is_function(value: Any) -> bool:
    """Is it a function, or what was made of one?"""
    return isinstance(value, _FUNCTIONS) or "__wrapped__" in getattr(value, "__dict__", ())


def _variables(function: types.FunctionType) -> Iterator[Place]:
    for cell in function.__closure__ or ():
        yield "cell", cell, None
    if function.__defaults__ or function.__kwdefaults__:
        yield "default", function, "__defaults__"
        yield "default", function, "__kwdefaults__"
    if not _of_library(function.__globals__.get("__name__")):
        for name in names_of(function.__code__):
            if name in function.__globals__:
                yield "global", function.__globals__, name


def _functions_in(value: Any, depth: int = 0) -> list[Any]:
    """The functions that a value is or holds."""
    if _is_function(value):
        return [value]
    if depth < DEEPEST_VALUE and isinstance(value, (tuple, list, dict)):
        inner = value.values() if isinstance(value, dict) else value
        return [one for item in inner for one in _functions_in(item, depth + 1)]
    return []


def _is_plain(value: Any) -> bool:
    """Is there anything to watch?"""
    return not isinstance(_frozen(value), type)


def _of_library(module: Any) -> bool:
    return str(module).partition(".")[0] in _LIBRARIES
