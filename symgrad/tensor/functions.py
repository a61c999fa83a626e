"""The functions ``sg.exp``, ``sg.zeros``, ``sg.where``... on tensors, arrays and numbers.

In: the frontend's table.  Out: ``FUNCTIONS``: the same names; during a trace they are the
frontend's, otherwise they compute.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import symgrad
import symgrad.frontend.functions as frontend
from symgrad.frontend import unsupported
from symgrad.frontend.caller import here
from symgrad.frontend.functions.names import NAMESPACES
from symgrad.frontend.session import active
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.tensor import creation, modes
from symgrad.tensor import selection as _selection  # noqa: F401  (enters its functions)
from symgrad.tensor.creation import CLASSES
from symgrad.tensor.errors import NotATensorError
from symgrad.tensor.plans.dispatch import invoke
from symgrad.tensor.tensor import Tensor

FUNCTIONS: dict[str, Any] = {}
"""The public functions over tensors, by name."""

CREATION = frozenset(
    {"arange", "empty", "eye", "full", "linspace", "meshgrid", "ones", "zeros", "result_type"}
)
"""The operations that take no tensor."""


def _function(name: str, dispatch: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a name: symbolic in a trace, eager otherwise."""
    call = getattr(dispatch, "__wrapped__", dispatch)

    @functools.wraps(call)
    def function(*args: Any, **kwargs: Any) -> Any:
        if active() is not None:
            return dispatch(*args, **kwargs)
        if not args or type(args[0]) is not Tensor:
            _check(name, args, kwargs)
        requires_grad = kwargs.pop("requires_grad", False) if kwargs else False
        result = invoke(name, call, args, kwargs)
        return result.requires_grad_() if requires_grad else result

    function.__name__ = function.__qualname__ = name
    return function


def _check(name: str, args: Any, kwargs: Any) -> None:
    """Raises NotATensorError where none of the arguments is a tensor and one is needed."""
    if name in CREATION:
        return
    for arg in (*args, *kwargs.values()):
        for item in arg if isinstance(arg, (list, tuple)) else (arg,):
            if isinstance(item, (Tensor, SymbolicTensor)):
                return
    kind = type(args[0]).__name__ if args else "nothing"
    raise NotATensorError(
        f"{name}(): argument 'input' (position 1) must be Tensor, not {kind}",
        hint="make one with sg.tensor(...) or sg.from_numpy(array); symbolic tensors are there "
        "while a Function is traced",
    )


def _either(eager: Callable[..., Any], symbolic: Callable[..., Any]) -> Callable[..., Any]:
    """One function outside of traces, another one inside."""

    @functools.wraps(eager)
    def function(*args: Any, **kwargs: Any) -> Any:
        return (eager if active() is None else symbolic)(*args, **kwargs)

    return function


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise unsupported.missing_op(name, here())

    return refuse


def _fill() -> None:
    for name, entry in frontend.FUNCTIONS.items():
        if isinstance(entry, SimpleNamespace) and name not in NAMESPACES:
            inner = {word: _function(f"{name}.{word}", call) for word, call in vars(entry).items()}
            FUNCTIONS[name] = SimpleNamespace(**inner)
        elif hasattr(entry, "__wrapped__"):
            FUNCTIONS[name] = _function(name, entry)
        else:
            FUNCTIONS[name] = entry
    for name, eager in creation.EAGER.items():
        symbolic = frontend.FUNCTIONS.get(name) or _refusing(name)
        FUNCTIONS[name] = _either(eager, symbolic)
    FUNCTIONS.update(CLASSES)
    for name in ("no_grad", "enable_grad", "set_grad_enabled", "inference_mode"):
        FUNCTIONS[name] = getattr(modes, name)


_fill()


def publish(name: str) -> Callable[..., Any]:
    """Make an operation of traces that was added a function of ``sg``."""
    FUNCTIONS[name] = _function(name, frontend.FUNCTIONS[name])
    return FUNCTIONS[name]  # type: ignore[no-any-return]


def retract(name: str) -> None:
    """Take an operation back that was added, here and in traces."""
    vars(symgrad).pop(name, None)
    for table in (FUNCTIONS, frontend.FUNCTIONS):
        table.pop(name, None)


tensor: Callable[..., Any] = FUNCTIONS["tensor"]
"""``sg.tensor``, which has the name of its package: said here for type checkers."""
