"""Functions from text, for tests that change what a user wrote, and from functions.

In: ``forward`` and ``backward``, or their source.  Out: an ``sg.Function``.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from itertools import count
from typing import Any

import symgrad as sg

_NUMBERS = count()


def function_from(source: str) -> Any:
    """A Function called ``Written`` whose source can be read back, as if it lay in a file."""
    name = f"<written {next(_NUMBERS)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"sg": sg, "__name__": __name__}
    exec(compile(source, name, "exec"), scope)
    names = ("forward", "backward")
    methods: dict[str, Any] = {name: staticmethod(scope[name]) for name in names if name in scope}
    return type("Written", (sg.Function,), {**methods, "__module__": __name__})


def saving_input(
    forward: Callable[[Any], Any], backward: Callable[[Any, Any], Any]
) -> type[sg.Function]:
    """``forward(x)``, with ``backward(g, x)``."""

    class SavingInput(sg.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            return backward(g, x)

    return SavingInput
