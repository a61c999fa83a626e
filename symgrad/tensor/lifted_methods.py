"""Methods of symbolic tensors take tensors as arguments, where the trace in progress lifts them.

In: the frontend's symbolic tensor.  Out: the same, with methods that look at their arguments.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import symgrad.tensor.methods  # noqa: F401  (tensors get the methods as they are)
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.tensor.dispatch import as_traced
from symgrad.tensor.modes import state
from symgrad.tensor.tensor import Tensor

_OWN = ("shared", "write", "known_node", "__init__", "__getattr__", "__hash__", "__deepcopy__")


def _lifting(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def method(self: SymbolicTensor, *args: Any, **kwargs: Any) -> Any:
        if state.lifting and (kwargs or any(isinstance(arg, _MAY_HOLD) for arg in args)):
            return call(self, *as_traced(args), **as_traced(kwargs))
        return call(self, *args, **kwargs)

    return method


_MAY_HOLD = (Tensor, tuple, list, dict)


def _attach() -> None:
    for name, found in list(vars(SymbolicTensor).items()):
        hidden = name.startswith("_") and not name.endswith("__")
        if isinstance(found, types.FunctionType) and not hidden and name not in _OWN:
            setattr(SymbolicTensor, name, _lifting(found))


_attach()
