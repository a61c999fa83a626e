"""Faults planted in functions of the code generator.

In: a function, a piece of its source, what stands there instead.  Out: the function is changed in
place, as long as the test lasts, wherever it was imported.
"""

from __future__ import annotations

import inspect
import textwrap
from types import CodeType, FunctionType
from typing import Any

import jinja2
import pytest

from symgrad.codegen.environment import environment


def plant(monkeypatch: pytest.MonkeyPatch, place: Any, old: str, new: str) -> None:
    """Put ``new`` where ``old`` stands, once, in a function, a property or a template.

    The code object is exchanged, so that who has imported the function calls the changed one.
    """
    if isinstance(place, str):
        _in_template(monkeypatch, place, old, new)
        return
    function = _function(place)
    text = textwrap.dedent(inspect.getsource(function))
    text = text[text.index("def ") :]
    assert text.count(old) == 1, f"{function.__qualname__} has {text.count(old)} times {old!r}"
    changed = compile(text.replace(old, new), inspect.getfile(function), "exec")
    codes = [one for one in changed.co_consts if isinstance(one, CodeType)]
    (code,) = (one for one in codes if one.co_name == function.__name__)
    monkeypatch.setattr(function, "__code__", code)


def _function(place: Any) -> FunctionType:
    """What is called: of a property its getter, of what remembers its results what it wraps."""
    getter: Any = place.fget if isinstance(place, property) else place
    found = inspect.unwrap(getter)
    assert isinstance(found, FunctionType)
    return found


def _in_template(monkeypatch: pytest.MonkeyPatch, name: str, old: str, new: str) -> None:
    shared = environment()
    loader = shared.loader
    assert loader is not None
    text, _, _ = loader.get_source(shared, name)
    assert text.count(old) == 1, f"{name} has {text.count(old)} times {old!r}"
    changed = jinja2.DictLoader({name: text.replace(old, new)})
    monkeypatch.setattr(shared, "loader", jinja2.ChoiceLoader([changed, loader]))
    monkeypatch.setattr(shared, "cache", {})
