"""What a program only says: texts that it prints, logs, warns of or raises with.

In: the call that asks for a text, or an error.  Out: whether nothing but a message is made of it;
whether it arose while a message was made to raise; and blocks in which no message is heard.

The statement is read from the source, at the place of the instruction: Python 3.11 has that.
"""

from __future__ import annotations

import ast
import bdb
import builtins
import functools
import io
import itertools
import linecache
import logging
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from types import CodeType, ModuleType, TracebackType
from typing import Any

from symgrad.errors import SymgradError
from symgrad.frontend.caller import NOT_THE_PROGRAM, is_guarded, is_in, user_frame
from symgrad.frontend.unready import is_raise

_MAKING = (ast.JoinedStr, ast.FormattedValue, ast.BinOp, ast.Tuple, ast.Constant)
"""Expressions that make a longer text, or hand it on."""
_VALUES = (ast.Name, ast.Attribute, ast.Subscript)
_TEXTS = (str, repr, format)
_LOGGERS = (logging.Logger, logging.RootLogger, logging.LoggerAdapter)
_LOGGING = frozenset(
    ("debug", "info", "warning", "warn", "error", "exception", "critical", "log")
)  # fmt: skip


def only_said() -> bool:
    """Is a text asked for that ends in a message?"""
    frame = user_frame()
    if frame is None:
        return False
    statement, *inner = _statement(frame.f_code, frame.f_lasti) or (None,)
    space = {**vars(builtins), **frame.f_globals, **frame.f_locals}
    said = isinstance(statement, ast.Expr) and bool(inner) and _says(inner[0], space)
    parts = inner[1:-1] if _is_formatted(inner[1:]) else inner[1:]
    return said and all(isinstance(one, _MAKING) or _makes(one, space) for one in parts)


def is_raised(error: BaseException) -> bool:
    """Does the program raise an error on purpose, or did it arise while one was made to raise?

    What arises in a statement that raises anyway has to have nothing around that handles it.
    """
    if isinstance(error, SystemExit):
        return True
    own = [
        (one.tb_frame.f_code, one.tb_lasti) for one in _entries(error.__traceback__)
        if not is_in(one.tb_frame, NOT_THE_PROGRAM)
    ]  # fmt: skip
    if not isinstance(error, SymgradError) and any(is_raise(*place) for place in own):
        return True
    made = next((at for at, place in enumerate(own) if _makes_error(*place)), None)
    return made is not None and not any(is_guarded(*place) for place in own[: made + 1])


def _entries(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _makes_error(code: CodeType, at: int) -> bool:
    statement, *inner = _statement(code, at) or (None,)
    says = isinstance(statement, ast.Assert) and bool(inner) and inner[0] is statement.msg
    return says or isinstance(statement, ast.Raise)


def _statement(code: CodeType, at: int) -> list[ast.AST]:
    """The innermost statement at an instruction, and the expressions around that; or nothing."""
    if sys.version_info < (3, 11):
        return []
    place = next(itertools.islice(code.co_positions(), at // 2, None), None)
    path = [] if place is None or None in place else _path(code.co_filename, *place)
    first = next((at for at in reversed(range(len(path))) if isinstance(path[at], ast.stmt)), None)
    return [] if first is None else path[first:]


def _path(file: str, line: int, end_line: int, column: int, end: int) -> list[ast.AST]:
    """The nodes of the source around a place, the outermost first."""
    node, found = _tree(file), list[ast.AST]()
    while node is not None:
        found.append(node)
        around = (
            one for one in _positioned(node)
            if (one.lineno, one.col_offset) <= (line, column)
            and (one.end_lineno, one.end_col_offset) >= (end_line, end)
        )  # fmt: skip
        node = next(around, None)
    return found


def _positioned(node: ast.AST) -> Iterator[Any]:
    for one in ast.iter_child_nodes(node):
        if hasattr(one, "lineno"):
            yield one
        else:
            yield from _positioned(one)


@functools.lru_cache(maxsize=32)
def _parsed(text: str) -> ast.AST | None:
    try:
        return ast.parse(text)
    except SyntaxError:
        return None


def _tree(file: str) -> ast.AST | None:
    return _parsed("".join(linecache.getlines(file)))


def _says(node: ast.AST, space: Mapping[str, Any]) -> bool:
    """Does a call print, warn or log?"""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        base, name = _named(node.func.value, space), node.func.attr
        logs = base is logging or type(base) in _LOGGERS
        shows = base is not None and base in (sys.stdout, sys.stderr)
        if (logs and name in _LOGGING) or (shows and name == "write"):
            return True
    own = _named(node.func, space)
    given = {one.arg: one.value for one in node.keywords}
    shown = "file" not in given or _named(given["file"], space) in (sys.stdout, sys.stderr)
    return own is warnings.warn or (own is print and shown and None not in given)


def _named(node: ast.AST, space: Mapping[str, Any]) -> Any:
    """What a name is, an attribute of a module or a class, or the logger of a name; else None."""
    if isinstance(node, ast.Name):
        return space.get(node.id)
    if isinstance(node, ast.Attribute):
        base = _named(node.value, space)
        return vars(base).get(node.attr) if isinstance(base, (ModuleType, type)) else None
    made = isinstance(node, ast.Call) and _named(node.func, space) is logging.getLogger
    return logging.root if made else None


def _is_formatted(nodes: Sequence[ast.AST]) -> bool:
    """Is the last of them a value in ``"%s" % (x.shape,)``?  It is where Python makes the text."""
    whole = next((one for one in nodes if isinstance(one, ast.BinOp)), None)
    if whole is None or not isinstance(whole.op, ast.Mod):
        return False
    return isinstance(whole.left, ast.Constant) and isinstance(nodes[-1], _VALUES)


def _makes(node: ast.AST, space: Mapping[str, Any]) -> bool:
    """Does a call make a text?"""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr == "format" and isinstance(node.func.value, ast.Constant)
    return isinstance(node.func, ast.Name) and space.get(node.func.id) in _TEXTS


@contextmanager
def unheard() -> Iterator[None]:
    """A block in which what the program prints, warns of and logs is not heard.

    Nor does it stop for a debugger.
    """
    shown, disabled = warnings.showwarning, logging.root.manager.disable
    stops: Any = bdb.Bdb
    stop = stops.set_trace
    warnings.showwarning = stops.set_trace = _unheard
    logging.disable()
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            yield
    finally:
        warnings.showwarning, stops.set_trace = shown, stop
        logging.disable(disabled)


def _unheard(*args: Any, **kwargs: Any) -> None:
    """Show no warning, and ask for no command."""
