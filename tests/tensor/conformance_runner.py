"""One program run with torch and with symgrad under one name, and what came of it compared.

In: a function of a module.  Out: an ``Outcome``: values, printed text, kinds of warnings and error.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from symgrad.errors import SymgradError

BUILTIN = (
    IndexError,
    KeyError,
    NotImplementedError,
    AttributeError,
    TypeError,
    ValueError,
    RuntimeError,
)


@dataclass
class Outcome:
    """What a program did."""

    value: Any
    printed: str
    warned: list[str]
    error: BaseException | None


def outcome(program: Callable[[Any], Any], module: Any) -> Outcome:
    """Run the program with this module."""
    printed = io.StringIO()
    value: Any = None
    error: BaseException | None = None
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        try:
            value = plain(program(module))
        except Exception as raised:
            error = raised
    kinds = sorted({type(one.message).__name__ for one in caught if not _once(str(one.message))})
    return Outcome(value, _words(printed.getvalue()), kinds, error)


def _once(message: str) -> bool:
    """Is it a warning that comes once a process, whichever program is the first?"""
    return message.startswith(
        (
            "Using backward() with create_graph=True",
            "optimizers run on NumPy",
            "indexing with dtype",
        )
    )


def _words(text: str) -> str:
    """Text that names neither library."""
    return re.sub(r"\b(torch|symgrad|sg)\.", "", text)


def plain(value: Any) -> Any:
    """Values of either library as values of none."""
    if hasattr(value, "requires_grad") and hasattr(value, "detach"):
        array = np.asarray(value.detach().numpy())
        return ("tensor", str(array.dtype), array, bool(value.requires_grad))
    if isinstance(value, np.ndarray):
        return ("array", str(value.dtype), value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return _words(str(value))


def same(left: Any, right: Any) -> bool:
    """Are two plain values the same, up to rounding?"""
    if isinstance(left, np.ndarray):
        if left.shape != np.shape(right):
            return False
        loose = {"rtol": 2e-5, "atol": 1e-6} if left.dtype == np.float32 else {"rtol": 1e-10}
        return bool(np.allclose(left, right, equal_nan=True, **loose))
    if type(left) is not type(right):
        return False
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, float):
        return math.isclose(left, right, rel_tol=2e-5) or (left != left and right != right)
    return bool(left == right)


def assert_alike(theirs: Outcome, ours: Outcome, *, same_words: bool) -> None:
    """The same values, text, kinds of warnings, kind of error (and its first words)."""
    if theirs.error is None and ours.error is not None:
        raise ours.error
    assert (theirs.error is None) == (ours.error is None), theirs.error
    if theirs.error is not None:
        kinds = [kind for kind in BUILTIN if isinstance(theirs.error, kind)]
        assert kinds, repr(theirs.error)
        assert isinstance(ours.error, kinds[0]), (repr(theirs.error), repr(ours.error))
        assert isinstance(ours.error, (SymgradError, *_PYTHONS_OWN)), repr(ours.error)
        if same_words:
            assert _start(ours.error) == _start(theirs.error)
    assert theirs.warned == ours.warned
    assert theirs.printed == ours.printed
    assert same(theirs.value, ours.value), (theirs.value, ours.value)


_PYTHONS_OWN = (AttributeError, TypeError)


def _start(error: BaseException | None) -> str:
    """The first 60 characters of the message."""
    text = error.what if isinstance(error, SymgradError) else str(error)
    if type(error) is KeyError:  # whose text is that of its key
        text = str(error.args[0])
    return _words(text)[:60].splitlines()[0]
