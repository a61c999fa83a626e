"""Which lines of generated wrappers were run.

In: calls of compiled ops inside ``watched(op)``.  Out: lines by the text they stand in.

Only code of wrappers is traced, and only during such a call: a wrapper in memory has no file that
a tool for coverage could read.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import CO_OPTIMIZED
from types import CodeType, FrameType
from typing import Any

WATCH = "RELIABILITY_WATCH"
_seen: dict[str, set[int]] = defaultdict(set)
_sources: dict[str, str] = {}


@contextmanager
def watched(op: Any) -> Iterator[None]:
    """Note the lines of the op's wrapper that run, where this is asked for."""
    source = getattr(op, "source", "")
    if not source or not os.environ.get(WATCH):
        yield
        return
    _sources[str(op.module.__file__)] = source
    before = sys.gettrace()
    sys.settrace(_enter)
    try:
        yield
    finally:
        sys.settrace(before)


def _enter(frame: FrameType, event: str, argument: Any) -> Any:
    return _line if frame.f_code.co_filename in _sources else None


def _line(frame: FrameType, event: str, argument: Any) -> Any:
    if event == "line":
        _seen[frame.f_code.co_filename].add(frame.f_lineno)
    return _line


def lines_of(source: str) -> set[int]:
    """The lines that can run inside the functions of a wrapper."""
    found: set[int] = set()
    todo = [
        one for one in compile(source, "<wrapper>", "exec").co_consts if isinstance(one, CodeType)
    ]
    while todo:
        code = todo.pop()
        if code.co_flags & CO_OPTIMIZED:  # a function: the body of a class runs at import
            lines = {line for _, _, line in code.co_lines() if line is not None}
            found |= lines - {code.co_firstlineno}
        todo += [one for one in code.co_consts if isinstance(one, CodeType)]
    return found


def taken() -> list[tuple[str, set[int]]]:
    """The sources watched since the last time, each with the lines that ran."""
    found = [(source, set(_seen[file])) for file, source in _sources.items()]
    _sources.clear()
    _seen.clear()
    return found
