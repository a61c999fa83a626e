"""What a program keeps outside of ctx: found before a trace, put back after it.

In: a Function.  Out: its modules, classes, defaults, closures and caches as they were, where a
trace has left something symbolic in them.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator, MutableMapping, MutableSequence, MutableSet
from contextlib import contextmanager
from types import CellType, FunctionType, ModuleType, NoneType
from typing import Any

from symgrad.frontend.classes import real_types
from symgrad.frontend.function import METHODS, class_of, raw_method
from symgrad.frontend.plain_code import is_ours, is_plain
from symgrad.frontend.sizes import SymFloat, SymInt
from symgrad.frontend.tensor import SymbolicTensor

_SYMBOLIC = (SymbolicTensor, SymInt, SymFloat)
# Most globals are of these.  An attribute that the module symgrad lacks is looked up at length.
_STATELESS = frozenset({ModuleType, NoneType, bool, int, float, complex, str, bytes})
_DEPTH = 4
Undo = Callable[[], None]


@contextmanager
def put_back(function: Any) -> Iterator[None]:
    """A block that traces a Function, after which nothing symbolic stays behind in its module.

    In it the module's ``type`` gives the classes of real values.
    """
    if is_plain(function):
        yield
        return
    undo = list(_kept(function))
    methods = [raw_method(class_of(function), name)[0] for name in METHODS]
    modules = {id(one.__globals__): one.__globals__ for one in methods if _is_users(one)}
    try:
        with real_types(modules.values()):
            yield
    finally:
        for one in undo:
            one()


def _kept(function: Any) -> Iterator[Undo]:
    """For each place that a program may keep something in, what puts it back."""
    own = class_of(function)
    seen: set[int] = set()
    methods = [raw_method(own, name)[0] for name in METHODS]
    for one in own.__mro__:
        if (one.__module__ or "").partition(".")[0] != "symgrad":
            yield from _of_class(one, seen)
    for method in methods:
        if _is_users(method):
            yield from _of_function(method, seen)
            yield from _of_module(method.__globals__, seen)


def _is_users(value: Any) -> bool:
    return isinstance(value, FunctionType) and not is_ours(value)


def _of_module(names: dict[str, Any], seen: set[int]) -> Iterator[Undo]:
    if id(names) in seen:
        return
    seen.add(id(names))
    yield _restoring(names, dict(names))
    for name, value in list(names.items()):
        if name != "__builtins__":
            yield from _of_value(value, seen)


def _of_value(value: Any, seen: set[int], depth: int = 2) -> Iterator[Undo]:
    if type(value) in _STATELESS or id(value) in seen or is_ours(value):
        return
    if isinstance(value, FunctionType):
        yield from _of_function(value, seen)
    elif isinstance(value, type):
        yield from _of_class(value, seen)
    elif hasattr(value, "cache_clear"):
        yield functools.partial(_clear, value)
    elif isinstance(value, (MutableMapping, MutableSequence, MutableSet)):
        seen.add(id(value))
        yield from _of_container(value)
        if depth:
            inner = list(value.values()) if isinstance(value, MutableMapping) else list(value)
            for item in inner:
                yield from _of_value(item, seen, depth - 1)
    elif hasattr(value, "__dict__") and type(value).__module__ not in ("builtins", "types"):
        seen.add(id(value))
        if isinstance(vars(value), dict) and not hasattr(value, "__path__"):
            yield _restoring(vars(value), dict(vars(value)))


def _of_container(value: Any) -> Iterator[Undo]:
    if isinstance(value, MutableMapping):
        yield _restoring(value, dict(value))
    elif isinstance(value, MutableSequence):
        yield functools.partial(_refill, value, list(value))
    elif isinstance(value, set):
        yield functools.partial(_reset, value, set(value))


def _of_function(function: FunctionType, seen: set[int]) -> Iterator[Undo]:
    if id(function) in seen:
        return
    seen.add(id(function))
    yield _restoring(function.__dict__, dict(function.__dict__))
    for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield from _of_value(value, seen)
    for cell in function.__closure__ or ():
        yield from _of_cell(cell, seen)
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None:
        yield from _of_value(wrapped, seen)


def _of_cell(cell: CellType, seen: set[int]) -> Iterator[Undo]:
    try:
        value = cell.cell_contents
    except ValueError:  # it is not bound yet
        return
    yield functools.partial(_rebind, cell, value)
    yield from _of_value(value, seen)


def _of_class(own: type, seen: set[int]) -> Iterator[Undo]:
    if id(own) in seen:
        return
    seen.add(id(own))
    before = dict(vars(own))
    yield functools.partial(_restore_class, own, before)
    for value in before.values():
        plain = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        yield from _of_value(plain, seen)


# -- putting back


def is_symbolic(value: Any, depth: int = _DEPTH) -> bool:
    """Is it symbolic, or does it hold something that is?"""
    if isinstance(value, _SYMBOLIC):
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


def _restoring(names: Any, before: dict[Any, Any]) -> Undo:
    return functools.partial(_restore, names, before)


def _restore(names: Any, before: dict[Any, Any]) -> None:
    now = dict(names)
    changed = [key for key, value in now.items() if before.get(key, _restore) is not value]
    if not any(is_symbolic(now[key]) or is_symbolic(key) for key in changed):
        return
    if not all(type(key) is str for key in changed):
        names.clear()
        names.update(before)
        return
    for key in changed:
        if is_symbolic(now[key]):
            del names[key]
            if key in before:
                names[key] = before[key]


def _refill(values: Any, before: list[Any]) -> None:
    if any(is_symbolic(item) for item in values):
        del values[:]
        values.extend(before)


def _reset(values: set[Any], before: set[Any]) -> None:
    if any(is_symbolic(item) for item in values):
        values.clear()
        values.update(before)


def _rebind(cell: CellType, before: Any) -> None:
    if cell.cell_contents is not before and is_symbolic(cell.cell_contents):
        cell.cell_contents = before


def _restore_class(own: type, before: dict[str, Any]) -> None:
    for name, value in dict(vars(own)).items():
        if before.get(name, own) is not value and is_symbolic(value):
            if name in before:
                setattr(own, name, before[name])
            else:
                delattr(own, name)


def _clear(cached: Any) -> None:
    """Forget the results of a function with ``functools.lru_cache`` where one is symbolic."""
    held = gc.get_referents(cached)
    if any(is_symbolic(item) for item in held):
        cached.cache_clear()
