"""Plain arguments and the text of their values.

In: any Python value.  Out: text, in which verdicts name the values that they hold for, and calls
compare the values that they pass.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from types import BuiltinFunctionType, FunctionType
from typing import Any

LONGEST = 120
"""Characters of the text of a value; of a longer text the first half and a digest are shown."""
MOST_BITS = 1000
"""Bits of an integer that is written in decimal; Python refuses to for very long ones."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_AS_WRITTEN = (type(None), bool, float, complex, str, bytes, type(Ellipsis))


class _Required:
    """Stands for the default of a number that has none."""

    def __repr__(self) -> str:
        return ""


REQUIRED = _Required()


@dataclass(frozen=True)
class PlainArgument:
    """An argument that is not a tensor, and its value.

    ``place``: where it stands among the positional arguments, None where it goes by name alone.
    ``number``: the dtype of a number that each call passes, of which ``value`` is the default,
    or REQUIRED; empty where the value is fixed.  ``condition``: what must hold of the number; empty
    for nothing.
    """

    name: str
    value: Any
    place: int | None = None
    number: str = ""
    condition: str = ""

    @property
    def text(self) -> str:
        """The value on one line."""
        return described(self.value)

    @property
    def exact(self) -> bool:
        """Does the text identify the value?"""
        return literal(self.value) is not None


def stated(values: Iterable[tuple[str, str]], presences: Sequence[str] = ()) -> str:
    """`` for alpha = 1.0, mode = 'sum'; for bias absent``, printed after a verdict; may be empty.

    ``presences``: which optional tensors are given and which are absent.
    """
    parts = [", ".join(f"{name} = {text}" for name, text in values), *presences]
    words = "; for ".join(filter(None, parts))
    return f" for {words}" if words else ""


def either(texts: Iterable[str]) -> str:
    """``-1 or 0 or 2``: the texts of values, numbers in their order."""
    found = list(texts)
    with suppress(ValueError):
        found.sort(key=float)
    return " or ".join(found)


def literal(value: Any) -> str | None:
    """A text that no other value has; None where there is none.

    Numbers, strings, None, and tuples, lists, dicts and sets of them have one.
    """
    try:
        return _shortened(_text(value, _no_literal))
    except (_NoLiteral, RecursionError):
        return None


def described(value: Any) -> str:
    """A value on one line, the same in every process: its literal, or its name."""
    try:
        return _shortened(_text(value, _called))
    except RecursionError:
        return _called(value)


def is_same(value: Any, other: Any) -> bool:
    """Are both the same function, class or member of an enumeration, which do not change?"""
    fixed = isinstance(value, (FunctionType, BuiltinFunctionType, type, Enum))
    return fixed and value is other


def is_alike(value: Any, other: Any) -> bool:
    """Are both of one type, and equal?  True is not 1."""
    return type(value) is type(other) and bool(value == other)


class _NoLiteral(Exception):
    """A value that cannot be written down."""


def _no_literal(value: Any) -> str:
    raise _NoLiteral


def _text(value: Any, other: Callable[[Any], str]) -> str:
    """``other``: makes the text of a value without a literal."""
    kind = type(value)
    if kind in _AS_WRITTEN:
        return repr(value)
    if kind is int:
        return repr(value) if value.bit_length() <= MOST_BITS else hex(value)
    if kind is dict:
        pairs = [f"{_text(key, other)}: {_text(one, other)}" for key, one in value.items()]
        return f"{{{', '.join(pairs)}}}"
    if kind is slice:
        parts = [_text(one, other) for one in (value.start, value.stop, value.step)]
        return f"slice({', '.join(parts)})"
    if kind not in (tuple, list, set, frozenset):
        return other(value)
    parts = [_text(one, other) for one in value]
    if kind is list:
        return f"[{', '.join(parts)}]"
    if kind is tuple:
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    return f"{kind.__name__}([{', '.join(sorted(parts))}])"


def _called(value: Any) -> str:
    """The name of a function, a class or a member; else the ``repr``, without addresses."""
    if isinstance(value, Enum) and value.name:
        return f"{type(value).__qualname__}.{value.name}"
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str) and callable(value):
        module = str(getattr(value, "__module__", None) or "_")
        text = name if module.startswith("_") else f"{module}.{name}"  # _: named after a path
    else:
        try:
            text = _ADDRESS.sub("", repr(value))
        except Exception:  # whatever a class of the user's does
            text = f"<{type(value).__qualname__}>"
    line = " ".join(text.split())
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)


def _shortened(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    mark = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]
    return f"{text[: LONGEST // 2]}... ({len(text)} characters, SHA-256 {mark}...)"
