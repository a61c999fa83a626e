"""``float(x.shape[-1])``, ``int(n / 2)`` and ``len(x)`` of symbolic numbers.

In: a Function and its plain arguments.  Out: a block in which these built-in functions keep a
number symbolic wherever the code that these reach calls them by their names.

Python makes a plain number of whatever ``__float__``, ``__int__`` and ``__len__`` return, so the
calls themselves have to be others.  An instruction says whether a name is loaded for a call:
``isinstance(x, float)`` and ``dtype=float`` go on with the type.
"""

from __future__ import annotations

import builtins
import dis
import functools
import math
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

from symgrad.frontend.constants import known_number
from symgrad.frontend.reach import Reach
from symgrad.frontend.sizes import SymFloat, SymInt, ValuedNumber
from symgrad.frontend.tensor import SymbolicTensor, number_of_rows


def _float(*args: Any) -> Any:
    value: Any = _number(args[0]) if len(args) == 1 else None
    kind = type(value)
    if issubclass(kind, SymInt) or (issubclass(kind, SymFloat) and value.is_whole):
        return value / 1
    return value if issubclass(kind, SymFloat) else float(*args)


def _int(*args: Any, **kwargs: Any) -> Any:
    value: Any = _number(args[0]) if len(args) == 1 and not kwargs else None
    kind = type(value)
    if issubclass(kind, SymInt) or (issubclass(kind, SymFloat) and value.is_whole):
        return value
    if issubclass(kind, SymFloat) and not issubclass(kind, ValuedNumber):
        return math.trunc(value)
    return int(*args, **kwargs)


def _number(value: Any) -> Any:
    """The number that a tensor holds of which nothing else is known; other values as they are."""
    if issubclass(type(value), SymbolicTensor) and known_number(value.node) is None:
        return value.item()
    return value


def _len(*args: Any) -> Any:
    if len(args) == 1 and issubclass(type(args[0]), SymbolicTensor):
        return number_of_rows(args[0])
    return len(*args)


_KEEPING = {"float": _float, "int": _int, "len": _len}
_PREFIX = "symgrad."
for _name, _function in _KEEPING.items():
    setattr(builtins, _PREFIX + _name, _function)  # names that no program can write
_TELLS_CALLS = sys.version_info >= (3, 11)
"""Does the instruction that loads a global say whether it is called?"""
_LARGEST = 255
_lock = threading.Lock()
_changed: dict[int, tuple[CodeType, int]] = {}
"""The own code of functions that have another one, by identity, and for how many traces."""


@contextmanager
def symbolic_conversions(
    function: Any, values: Iterable[Any], known: Reach | None = None
) -> Iterator[None]:
    """A block in which calls of ``float``, ``int`` and ``len`` take symbolic numbers.

    ``values``: the plain arguments of the Function, functions among them.  ``known``: what the
    Function reaches, where that is known.
    """
    reach = Reach()
    for value in filter(callable, values):
        reach.follow(value, "an argument")
    if known is None:
        reach.function(function)
    functions = [*reach.functions, *(known.functions if known is not None else ())]
    with _lock:
        found = [one for one in functions if _TELLS_CALLS and _changed_by_one(one)]
    try:
        yield
    finally:
        with _lock:
            for one in found:
                own, depth = _changed.pop(id(one))
                if depth > 1:
                    _changed[id(one)] = own, depth - 1
                else:
                    one.__code__ = own


def _changed_by_one(function: FunctionType) -> bool:
    """Give a function the code that keeps numbers symbolic, unless it is its own."""
    own, depth = _changed.get(id(function), (function.__code__, 0))
    names = frozenset(_KEEPING.keys() - function.__globals__.keys())
    new = _keeping(own, names, own.co_filename)  # others of the same names are the module's
    if new is own:
        return False
    _changed[id(function)] = own, depth + 1
    function.__code__ = new
    return True


@functools.lru_cache(maxsize=4096)
def _keeping(code: CodeType, names: frozenset[str], file: str) -> CodeType:
    """The code, and that inside of it, with calls that keep numbers symbolic.

    ``file``: that of the code, which is equal to such code of another file.
    """
    consts = tuple(
        _keeping(one, names, file) if isinstance(one, CodeType) else one for one in code.co_consts
    )
    called = [
        one for one in dis.get_instructions(code)
        if one.opname == "LOAD_GLOBAL" and one.argval in names and one.arg is not None
        and one.arg & 1
    ]  # fmt: skip
    if not called:
        same = all(new is old for new, old in zip(consts, code.co_consts, strict=True))
        return code if same else code.replace(co_consts=consts)
    added = tuple(dict.fromkeys(one.argval for one in called))
    instructions = bytearray(code.co_code)
    for one in called:
        place = (len(code.co_names) + added.index(one.argval)) << 1 | 1
        if one.arg is None or max(one.arg, place) > _LARGEST:
            return code  # of hundreds of names
        instructions[one.offset + 1] = place
    return code.replace(
        co_consts=consts, co_code=bytes(instructions),
        co_names=(*code.co_names, *(_PREFIX + name for name in added)),
    )  # fmt: skip
