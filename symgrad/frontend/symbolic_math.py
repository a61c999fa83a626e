"""``math.sqrt(x.shape[-1])`` while a Function is traced.

In: the standard ``math`` module.  Out: for the time of a trace, versions of its functions that
accept symbolic sizes.

``math`` wants floats, and a symbolic size has none.  The functions put in its place call the
original for anything else, so that other code that runs meanwhile sees no difference.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from symgrad.frontend.sizes import Shape, SymFloat, SymInt

_UNARY = {"sqrt": "sqrt", "exp": "exp", "log": "log", "log2": "log2", "log10": "log10",
          "log1p": "log1p", "tanh": "tanh", "sin": "sin", "cos": "cos", "fabs": "abs"}  # fmt: skip
_ORIGINALS: dict[str, Callable[..., Any]] = {
    name: getattr(math, name) for name in (*_UNARY, "pow", "prod")
}
_lock = threading.Lock()
_depth = 0


@contextmanager
def symbolic_math() -> Iterator[None]:
    """A block in which ``math``'s functions take symbolic sizes."""
    global _depth
    with _lock:
        _depth += 1
        if _depth == 1:
            for name, original in _ORIGINALS.items():
                setattr(math, name, _taking_sizes(name, original))
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if not _depth:
                for name, original in _ORIGINALS.items():
                    setattr(math, name, original)


def _taking_sizes(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if name == "prod":
            return _product(original, *args, **kwargs)
        if not any(isinstance(arg, (SymInt, SymFloat)) for arg in args):
            return original(*args, **kwargs)
        if name == "pow":
            return args[0] ** args[1]
        if name == "log" and len(args) == 2:
            return SymFloat("log", (args[0],)) / original(args[1])
        return SymFloat(_UNARY[name], args)

    return call


def _product(original: Callable[..., Any], values: Any, *, start: Any = 1) -> Any:
    if isinstance(values, Shape):
        return values.numel() * start
    items = list(values)
    if not any(isinstance(item, (SymInt, SymFloat)) for item in (*items, start)):
        return original(items, start=start)
    return functools.reduce(lambda total, item: total * item, items, start)
