"""A Function with other methods, made of their text.

In: a Function and ``Method`` records.  Out: a Function of the same kind, derived from it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from symgrad.frontend.function import Function, class_of, raw_method
from symgrad.proof.repair import patch
from symgrad.proof.repair.patch import Method

AnyFunction = type[Function] | Function
Note = Callable[[int, dict[str, Any], Any], Any]
_NOTE, _LOCALS = "__symgrad_note__", "__symgrad_locals__"


def changed(
    function: AnyFunction, methods: Mapping[str, Method], note: Note | None = None
) -> AnyFunction | None:
    """The Function with other methods; None where one of them cannot be made.

    ``note``: is given the number of the return statement, the variables and the value whenever
    one of them returns, and returns the value.
    """
    found = class_of(function)
    members: dict[str, Any] = {"__module__": found.__module__, "__doc__": found.__doc__}
    for name, method in methods.items():
        made = _compiled(found, name, method, note)
        if made is None:
            return None
        members[name] = made
    kind: Any = type(found.__name__, (found,), members)
    if isinstance(function, type):
        return kind  # type: ignore[no-any-return]
    instance = object.__new__(kind)
    instance.__dict__.update(function.__dict__)
    return instance  # type: ignore[no-any-return]


def _compiled(found: type[Function], name: str, method: Method, note: Note | None) -> Any:
    """The method as what a class would hold; None where it cannot be made."""
    wrapped = inspect.getattr_static(found, name)
    plain = inspect.unwrap(raw_method(found, name)[0])
    cells = plain.__closure__ or ()
    try:
        closed = dict(
            zip(plain.__code__.co_freevars, (c.cell_contents for c in cells), strict=True)
        )
        names = (_NOTE, _LOCALS) if note is not None else None
        scope: dict[str, Any] = {}
        exec(patch.factory(method, list(closed), names), plain.__globals__, scope)
        extra = {_NOTE: note, _LOCALS: locals} if note is not None else {}
        made = scope["make"](**closed, **extra)
    except Exception:  # decorators and names of the class's body may be out of reach
        return None
    if isinstance(made, (staticmethod, classmethod)):
        return made
    kind = type(wrapped)
    return kind(made) if kind in (staticmethod, classmethod) else made
