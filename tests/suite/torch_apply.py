"""How a Function of the corpus is called over torch, whichever style it is written in.

In: a ``Case`` bound to torch.  Out: a callable of arguments by name.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import torch

from tests.suite.marks import Case


def parameter_names(case: Case) -> list[str]:
    """The names of forward's arguments, without ctx; of an old-style class, __init__'s first."""
    if is_old_style(case.function):
        forward = inspect.signature(case.function.forward).parameters
        return [*_init_names(case.function), *list(forward)[1:]]
    parameters = [
        parameter.name + ("_0" if parameter.kind is parameter.VAR_POSITIONAL else "")
        for parameter in inspect.signature(case.function.forward).parameters.values()
    ]
    return parameters if has_setup_context(case.function) else parameters[1:]


def has_setup_context(function: Any) -> bool:
    """Whether forward takes no ctx."""
    return function.setup_context is not torch.autograd.Function.setup_context


def is_old_style(function: Any) -> bool:
    """Whether forward is an instance method."""
    return inspect.isfunction(inspect.getattr_static(function, "forward"))


def caller(case: Case) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    """What applies the Function to arguments by name and returns its outputs as a tuple."""
    names = parameter_names(case)

    def call(arguments: dict[str, Any]) -> tuple[Any, ...]:
        if is_old_style(case.function):
            outputs = _apply_old_style(case.function, arguments)
        else:
            variadic = [value for name, value in arguments.items() if name not in names]
            ordered = [arguments[name] for name in names if name in arguments]
            outputs = case.function.apply(*ordered, *variadic)
        return outputs if isinstance(outputs, tuple) else (outputs,)

    return call


def _init_names(function: Any) -> list[str]:
    parameters = list(inspect.signature(function.__init__).parameters.values())[1:]
    return [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]


def _apply_old_style(function: Any, arguments: dict[str, Any]) -> Any:
    """Torch has dropped instance methods: an instance of a subclass stands in for ctx."""
    init = _init_names(function)
    settings = [arguments[name] for name in init if name in arguments]
    tensors = [value for name, value in arguments.items() if name not in init]
    plain = dict.fromkeys(("saved_tensors", "saved_variables", "needs_input_grad"), ())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        instance = type(function.__name__, (function,), plain)(*settings)
    saved: list[Any] = []
    instance.save_for_backward = lambda *values: saved.extend(values)

    class Modern(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            outputs = instance.forward(*inputs)
            ctx.save_for_backward(*saved)
            return outputs

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            instance.saved_tensors = instance.saved_variables = ctx.saved_tensors
            instance.needs_input_grad = ctx.needs_input_grad
            return instance.backward(*cotangents)

    apply: Callable[..., Any] = Modern.apply
    return apply(*tensors)
