"""Is a program nothing but operations on what it is given?

In: a Function.  Out: whether its code can keep nothing from one call for the next, and asks nothing
that a trace does not see: which object a tensor is, of which class, of which dtype.

The code is read, not its text: what is not known to be harmless is not plain.  Of what is not
plain another call is traced (``symgrad.frontend.calls``); so a mistake here costs time only in one
direction, and the list below errs in that one.
"""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from symgrad.frontend.function import METHODS, class_of, is_instance_style, raw_method
from symgrad.frontend.optimised import asks_optimisation
from symgrad.ir.dtype import DType

_BUILTINS = frozenset(
    getattr(builtins, name)
    for name in (
        "abs", "all", "any", "bool", "dict", "divmod", "enumerate", "filter", "float", "int",
        "isinstance", "len", "list", "map", "max", "min", "next", "pow", "range", "reversed",
        "round", "slice", "sorted", "sum", "tuple", "zip", "AssertionError", "ValueError",
        "TypeError", "RuntimeError", "NotImplementedError", "IndexError",
    )
)  # fmt: skip
ABOUT_DTYPES = frozenset(
    ("dtype", "element_size", "itemsize", "type", "nbytes", "result_type", "finfo", "promote_types",
     "can_cast", "type_as", "iinfo", "get_default_dtype", "issubdtype", "aval", "getattr",
     "str", "repr")
)  # fmt: skip
_REFUSED = frozenset(
    ("STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME", "STORE_NAME", "LOAD_BUILD_CLASS", "IMPORT_NAME",
     "IMPORT_FROM", "MATCH_CLASS", "LOAD_CLASSDEREF", "LOAD_LOCALS", "DELETE_ATTR",
     "LOAD_FROM_DICT_OR_GLOBALS", "LOAD_FROM_DICT_OR_DEREF")
)  # fmt: skip
_SINGLE = (None, True, False, Ellipsis)
_NUMBERS = (bool, int, float, str, bytes, type(None), DType)


@dataclass(frozen=True)
class _Names:
    """What a code object reads from outside.  ``stores``: it stores on its first argument."""

    globals: frozenset[str]
    free: frozenset[str]
    stores: bool


def is_plain(function: Any) -> bool:
    """Is a Function nothing but operations on what it is given?

    It stores nothing on ctx in backward, either: a second call of that would see it.
    """
    if not isinstance(function, type) or is_instance_style(function):
        return False
    if any(isinstance(inspect.getattr_static(function, name), classmethod) for name in METHODS):
        return False  # what it reads of its class may be anything
    backward = getattr(raw_method(function, "backward")[0], "__code__", None)
    written = None if backward is None else _names(backward)
    if written is not None and written.stores:
        return False
    seen: set[int] = set()
    own = class_of(function)
    found = [raw_method(own, name)[0] for name in METHODS if name != "jvp"]
    return all(is_ours(one) or _plain_function(one, seen) for one in found)


def has_plain_jvp(function: Any) -> bool:
    """Is the code of ``jvp`` plain?"""
    return _plain_function(raw_method(class_of(function), "jvp")[0], set())


def is_ours(value: Any) -> bool:
    """Is a class or a function symgrad's own?"""
    return (getattr(value, "__module__", None) or "").partition(".")[0] == "symgrad"


def _plain_function(function: Any, seen: set[int]) -> bool:
    """Is a function plain, and all that it reads from outside?"""
    if not isinstance(function, FunctionType):
        return False
    if id(function) in seen:
        return True
    seen.add(id(function))
    names = _names(function.__code__)
    if names is None or vars(function).keys() - {"once_differentiable"}:
        return False
    if "__name__" in names.globals:
        return False
    if any(asks_optimisation(function.__code__, function.__globals__)):
        return False
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return all(_immutable(one) for one in defaults) and all(
        _plain_value(value, seen) for value in _outside(function, names)
    )


def _outside(function: FunctionType, names: _Names) -> Iterator[Any]:
    """The values that a function reads from its module and from the functions around it."""
    missing = object()
    for name in names.globals:
        yield function.__globals__.get(name, getattr(builtins, name, missing))
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in cells:
        if name in names.free:
            try:
                yield cell.cell_contents
            except ValueError:  # it is not bound yet
                yield missing


def _plain_value(value: Any, seen: set[int]) -> bool:
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] in ("symgrad", "math")
    if isinstance(value, FunctionType):
        return is_ours(value) or _plain_function(value, seen)
    if isinstance(value, BuiltinFunctionType) and value.__module__ == "math":
        return True
    return _immutable(value) or _known_builtin(value)


def _known_builtin(value: Any) -> bool:
    try:
        return value in _BUILTINS
    except (TypeError, ValueError):  # it has no hash
        return False


def _immutable(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_immutable, value))
    return type(value) in _NUMBERS


@functools.lru_cache(maxsize=4096)
def _names(code: CodeType) -> _Names | None:
    """What a code object reads from outside; None where it is not plain."""
    first = code.co_varnames[0] if code.co_argcount else ""
    before: dis.Instruction | None = None
    outer: set[str] = set()
    free: set[str] = set()
    stores = False
    for one in dis.get_instructions(code):
        if one.opname in ("CACHE", "EXTENDED_ARG", "PRECALL", "NOP", "RESUME"):
            continue
        if one.opname in _REFUSED or not _harmless(one, before, first):
            return None
        if one.opname in ("STORE_DEREF", "DELETE_DEREF") and one.argval in code.co_freevars:
            return None
        stores = stores or one.opname == "STORE_ATTR"
        if one.opname == "LOAD_GLOBAL":
            outer.add(one.argval)
        elif one.opname == "LOAD_DEREF" and one.argval in code.co_freevars:
            free.add(one.argval)
        before = one
    for const in code.co_consts:
        if isinstance(const, CodeType):
            inner = _names(const)
            if inner is None:
                return None
            outer |= inner.globals
            free |= inner.free - set(code.co_cellvars)
    return _Names(frozenset(outer), frozenset(free), stores)


def _harmless(one: dis.Instruction, before: dis.Instruction | None, first: str) -> bool:
    """May the instruction stand in plain code?  ``first``: the name of ctx."""
    if one.opname == "IS_OP":
        if before is None or before.opname != "LOAD_CONST":
            return False
        return any(before.argval is value for value in _SINGLE)
    if one.opname == "STORE_ATTR":
        loaded = before.argval if before is not None else None
        return bool(first) and (loaded == first or (isinstance(loaded, tuple) and first in loaded))
    if one.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
        name = str(one.argval)
        return not name.startswith("__") and name not in ABOUT_DTYPES
    return True
