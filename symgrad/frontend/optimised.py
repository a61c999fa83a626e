"""What the code of a program does by ``python -O`` only: ``__debug__`` and ``assert``.

In: a code object.  Out: where its source asks for that, which no bytecode shows.

Python compiles ``__debug__`` into a constant, and leaves asserts out where it is False.  An assert
that only raises is no question: with ``-O`` it raises nothing, and the result is the same.  One
that stores something is one.
"""

from __future__ import annotations

import ast
import dis
import functools
import linecache
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

from symgrad.errors import Location

_DEBUG = "__debug__"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_CHANGING = frozenset(
    ("append", "extend", "insert", "pop", "popitem", "popleft", "appendleft", "remove", "discard",
     "add", "clear", "update", "setdefault", "sort", "reverse", "next", "setattr", "delattr",
     "save_for_backward", "save_for_forward", "mark_dirty", "mark_non_differentiable",
     "set_materialize_grads")
)  # fmt: skip
"""Functions and methods that change what they are given."""
_STORES = ("STORE_ATTR", "STORE_SUBSCR", "STORE_GLOBAL", "STORE_DEREF", "DELETE_")


def asks_optimisation(code: CodeType, space: Mapping[str, Any]) -> Iterator[tuple[str, Location]]:
    """What code does by ``__debug__``, with its value, and the lines.

    ``space``: the globals of the code.
    """
    for what, line in _found(code):
        if what == _DEBUG or what in _CHANGING or _stores(space.get(what)):
            text = f"{_DEBUG} is {__debug__}, as when it was judged"
            if what != _DEBUG:
                text += f" (an assert calls {what}, which python -O leaves out)"
            yield text, Location(code.co_filename, line, code.co_name)
        elif what.endswith("_") and not what.endswith("__"):
            text = f"{_DEBUG} is {__debug__}, as when it was judged (an assert calls {what})"
            yield text, Location(code.co_filename, line, code.co_name)


def _stores(value: Any) -> bool:
    """Does a function of the program store anything outside of its own variables?"""
    if not isinstance(value, FunctionType):
        return False
    return any(one.opname.startswith(_STORES) for one in dis.get_instructions(value.__code__))


@functools.lru_cache(maxsize=4096)
def _found(code: CodeType) -> tuple[tuple[str, int], ...]:
    """``__debug__``, and what asserts call or name, in the source of code and in which line."""
    lines = linecache.getlines(code.co_filename)
    if not lines:
        return ()
    text = "".join(lines)
    if _DEBUG not in text and "assert" not in text:
        return ()
    found = [
        one for function in _functions(text) if _first_line(function) == code.co_firstlineno
        for one in _asked(function)
    ]  # fmt: skip
    return tuple(dict.fromkeys(found))


@functools.lru_cache(maxsize=32)
def _functions(text: str) -> tuple[Any, ...]:
    try:
        tree = ast.parse(text)
    except SyntaxError:  # of another file than the code is of
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS))


def _first_line(function: Any) -> int:
    decorators = getattr(function, "decorator_list", ())
    return int(min([function.lineno, *(one.lineno for one in decorators)]))


def _asked(function: Any) -> Iterator[tuple[str, int]]:
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == _DEBUG:
            yield _DEBUG, node.lineno
        elif isinstance(node, ast.Assert):
            for inner in ast.walk(node.test):
                if isinstance(inner, ast.NamedExpr):
                    yield _DEBUG, inner.lineno
                elif isinstance(inner, ast.Call):
                    yield _called(inner.func), inner.lineno


def _called(function: ast.expr) -> str:
    """The last name of what is called."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
