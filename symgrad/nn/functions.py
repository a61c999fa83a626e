"""The Functions behind ``symgrad.nn``: written by hand, proved to second order.

In: nothing.  Out: the classes, by name; ``sg.verify(ReLU, order=2)`` judges one.  Each stands
beside the operation that it differentiates, in ``symgrad.frontend.functions``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from symgrad.frontend.function import Function
from symgrad.frontend.functions import activations, layers, losses, normalization

_FOUND = {
    name: one
    for module in (activations, layers, losses, normalization)
    for name, one in vars(module).items()
    if isinstance(one, type) and issubclass(one, Function) and one.__module__ == module.__name__
}
__all__ = sorted(_FOUND)

globals().update(_FOUND)
if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
