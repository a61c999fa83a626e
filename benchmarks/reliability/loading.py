"""Program text over symgrad, with the text where tracebacks find it."""

from __future__ import annotations

import linecache
from typing import Any

import symgrad as sg


def defined(name: str, text: str, file: str) -> Any:
    """What ``text`` calls ``name``, over symgrad; ``file`` is what tracebacks call the text."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"T": sg, "Base": sg.Function, "__name__": "reliability_program"}
    exec(compile(text, file, "exec"), names)
    return names[name]
