"""Declarations beside a class: what its backward is meant for, what its inputs are.

In: a Function class.  Out: the same class, marked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from symgrad.errors import SpecError
from symgrad.frontend.function import Function, class_of, raw_method

AnyClass = TypeVar("AnyClass", bound=type[Function])
_SURROGATE = "symgrad_surrogate"
_ASSUME = "assume"


def surrogate(function: Callable[..., Any]) -> Callable[[AnyClass], AnyClass]:
    """Declare that backward is the derivative of ``function``, not of forward.

    ``function`` takes what forward takes (but ctx) and returns as many tensors:
    ``@sg.surrogate(lambda x: x)`` for a straight-through estimator, ``lambda x: -0.5 * x`` for a
    reversed gradient.
    """
    if not callable(function):
        raise SpecError("sg.surrogate takes a function of what forward takes")

    def mark(cls: AnyClass) -> AnyClass:
        setattr(cls, _SURROGATE, staticmethod(function))
        return cls

    return mark


def assume(**facts: str) -> Callable[[AnyClass], AnyClass]:
    """Declare facts about inputs beside a class: ``@sg.assume(x="positive", labels="index c")``.

    Every verification takes them for granted and prints them.
    """

    def mark(cls: AnyClass) -> AnyClass:
        setattr(cls, _ASSUME, {**getattr(cls, _ASSUME, {}), **facts})
        return cls

    return mark


def surrogate_of(function: type[Function] | Function) -> type[Function] | None:
    """The declared surrogate as a Function of the same arguments; None where there is none."""
    cls = class_of(function)
    declared = getattr(cls, _SURROGATE, None)
    if declared is None:
        return None
    own, hidden = raw_method(function, "forward")
    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_ONLY)
    parameters = list(inspect.signature(own).parameters.values())[hidden:]
    if parameters and parameters[0].kind is not inspect.Parameter.POSITIONAL_ONLY:
        context = context.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)

    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        return declared(*args, **kwargs)

    forward.__signature__ = inspect.Signature([context, *parameters])  # type: ignore[attr-defined]
    forward.__annotations__ = dict(own.__annotations__)
    name = f"surrogate of {cls.__name__}"
    return type(name, (Function,), {"forward": staticmethod(forward), "__module__": cls.__module__})
