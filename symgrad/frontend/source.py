"""Where a Function stands in the user's files, and its text.

In: a Function's class.  Out: a ``Location``, the source of its methods.

``inspect.getsource`` of a class parses the whole file, which takes longer than a trace; that of a
function does not.
"""

from __future__ import annotations

import inspect
import linecache
import re
import textwrap
from types import CodeType
from typing import Any

from symgrad.errors import Location
from symgrad.frontend.function import Function, raw_method

METHODS = ("forward", "setup_context", "backward", "jvp")


def class_location(found: type[Function]) -> Location | None:
    """The line of the class statement; that of a method where it cannot be found."""
    first: int | None = getattr(found, "__firstlineno__", None)
    codes = [code for name in METHODS if name in vars(found) and (code := _code(found, name))]
    if not codes:
        code = _code(found, "forward")
        return None if code is None else Location(code.co_filename, code.co_firstlineno)
    file, line = codes[0].co_filename, min(code.co_firstlineno for code in codes)
    return Location(file, first or _class_line(file, line, found.__name__), found.__name__)


def _class_line(file: str, line: int, name: str) -> int:
    """The line of ``class name`` above a line of the class's body."""
    statement = re.compile(rf"\s*class\s+{re.escape(name)}\b")
    lines = linecache.getlines(file)
    for number in range(min(line, len(lines)), 0, -1):
        if statement.match(lines[number - 1]):
            return number
    return line


def method_sources(found: type[Function]) -> str:
    """The text of forward, setup_context, backward and jvp, as far as it can be read."""
    texts = []
    for name in METHODS:
        plain, _ = raw_method(found, name)
        if (getattr(plain, "__module__", "") or "").startswith("symgrad.frontend"):
            continue
        try:
            texts.append(textwrap.dedent(inspect.getsource(plain)))
        except (OSError, TypeError):
            continue
    return "\n".join(texts)


def _code(found: type[Function], name: str) -> CodeType | None:
    plain, _ = raw_method(found, name)
    code: Any = getattr(inspect.unwrap(plain), "__code__", None)
    return code if isinstance(code, CodeType) else None
