"""Where a function found the tensors that it closes over, so that they are found again.

In: a function, the objects it was called with, tensors that a trace of it met.  Out: paths.

A path begins at the function or at a plain argument and goes through closures, global names,
bound objects, attributes, methods, and items of tuples, lists and dicts.
"""

from __future__ import annotations

import inspect
import types
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from symgrad.budgets import MOST_OBJECTS
from symgrad.tensor.tensor import Tensor

Step = tuple[str, Any]
Path = tuple[int, tuple[Step, ...]]
_LEAVES = (str, bytes, int, float, complex, type(None), type, types.ModuleType)


def find_paths(roots: Sequence[Any], wanted: Sequence[Tensor]) -> list[Path | None]:
    """A shortest path from one of ``roots`` to each of the tensors; None where there is none."""
    missing = {id(tensor) for tensor in wanted}
    found: dict[int, Path] = {}
    seen = {id(root) for root in roots}
    todo: deque[tuple[Any, int, tuple[Step, ...]]] = deque()
    todo.extend((root, number, ()) for number, root in enumerate(roots))
    while todo and missing and len(seen) < MOST_OBJECTS:
        value, number, steps = todo.popleft()
        if id(value) in missing:
            found[id(value)] = (number, steps)
            missing.discard(id(value))
        for step, inner in _parts(value):
            if id(inner) not in seen and not isinstance(inner, _LEAVES):
                seen.add(id(inner))
                todo.append((inner, number, (*steps, step)))
    return [found.get(id(tensor)) for tensor in wanted]


def follow(roots: Sequence[Any], path: Path) -> Any:
    """What lies at the end of a path now; None where the path ends before."""
    value = roots[path[0]]
    try:
        for kind, key in path[1]:
            value = _step(value, kind, key)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None
    return value


def _step(value: Any, kind: str, key: Any) -> Any:
    if kind == "attribute":
        return value.__dict__[key]
    if kind == "item":
        return value[key]
    if kind == "cell":
        return value.__closure__[key].cell_contents
    if kind == "global":
        return value.__globals__[key]
    if kind == "method":
        return _plain(inspect.getattr_static(type(value), key))
    if kind == "default":
        return value.__defaults__[key]
    return getattr(value, key)


def _parts(value: Any) -> Iterator[tuple[Step, Any]]:
    """What an object leads to, and by which step."""
    if isinstance(value, Tensor):
        return
    if isinstance(value, (tuple, list)):
        yield from ((("item", place), item) for place, item in enumerate(value))
    elif isinstance(value, dict):
        yield from ((("item", key), item) for key, item in value.items())
    elif isinstance(value, types.MethodType):
        yield ("part", "__self__"), value.__self__
        yield ("part", "__func__"), value.__func__
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value)
    else:
        for name in ("func", "args", "keywords", "__wrapped__"):
            if isinstance(getattr(type(value), name, None), types.MemberDescriptorType):
                yield ("part", name), getattr(value, name)
        yield from ((("attribute", n), item) for n, item in getattr(value, "__dict__", {}).items())
        yield from methods_of(value)


def methods_of(value: Any) -> Iterator[tuple[Step, Any]]:
    """The functions of the user's classes that an object is of."""
    for base in type(value).__mro__:
        if base.__module__.partition(".")[0] in ("builtins", "symgrad"):
            continue
        for name, item in vars(base).items():
            if isinstance(_plain(item), types.FunctionType):
                yield ("method", name), _plain(item)


def _plain(method: Any) -> Any:
    return getattr(method, "__func__", method)


def _of_function(value: types.FunctionType) -> Iterator[tuple[Step, Any]]:
    for place, cell in enumerate(value.__closure__ or ()):
        try:
            yield ("cell", place), cell.cell_contents
        except ValueError:  # the variable has no value yet
            continue
    for name in names_of(value.__code__):
        if name in value.__globals__:
            yield ("global", name), value.__globals__[name]
    for place, item in enumerate(value.__defaults__ or ()):
        yield ("default", place), item
    yield from ((("attribute", name), item) for name, item in value.__dict__.items())


def names_of(code: types.CodeType) -> list[str]:
    """The global names that a function and those written inside it may use."""
    found = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found.extend(names_of(constant))
    return list(dict.fromkeys(found))
