"""Wrong twins of a right Function: its text with one change in backward.

In: ``@twins(Name=("old", "new", "what is wrong"))`` above ``@right(...)``.  Out: classes of these
names in the module of the right one, marked wrong.
"""

from __future__ import annotations

import inspect
import linecache
import sys
import textwrap
from typing import Any

from tests.suite.marks import wrong


def twins(**changes: Any) -> Any:
    """Add a wrong twin for each change; a fourth entry holds more of what is said of it."""

    def decorate(base: Any) -> Any:
        module = sys.modules[base.__module__]
        text = textwrap.dedent(inspect.getsource(base))
        text = text[text.index("\nclass ") + 1 :]
        for name, (old, new, bug, *about) in changes.items():
            made = _class_of(_changed(text, base.__name__, name, old, new), name, vars(module))
            said = about[0] if about else {}
            vars(module)[name] = wrong(base, bug=bug, **said)(made)
        return base

    return decorate


def _changed(text: str, base: str, name: str, old: str, new: str) -> str:
    """The text of the twin; ``old`` stands once in backward."""
    head, middle, backward = text.partition("def backward(")
    if backward.count(old) != 1:
        raise ValueError(f"{name}: {old!r} stands {backward.count(old)} times in backward")
    return head.replace(f"class {base}(", f"class {name}(", 1) + middle + backward.replace(old, new)


def _class_of(text: str, name: str, space: dict[str, Any]) -> Any:
    path = f"<twin {space['__name__']} {name}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    made: dict[str, Any] = {}
    exec(compile(text, path, "exec"), space, made)
    return made[name]
