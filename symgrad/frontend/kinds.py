"""What arguments of operations may be, as their annotations say.

In: an operation, with annotations.  Out: the same, which refuses arguments of other kinds in
torch's words.  ``Tensor`` is a tensor or an array, no number and no tuple.  ``int``, ``float``,
``bool`` and ``str`` may be followed by ``| None``.  ``Any`` is not looked at.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from symgrad.errors import TraceError
from symgrad.frontend.caller import here
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.interpreters import ATTRIBUTE


class OperationTypeError(TraceError, TypeError):
    """Arguments that an operation does not take."""


UNCHECKED = frozenset(("full", "inplace", "reduction"))
"""Flags of which torch takes the truth, and a name that it looks up itself."""


class _Rule(NamedTuple):
    """An argument to look at: its place (None: by name alone), its name, what it may be.

    ``rest``: all arguments from that place on.
    """

    place: int | None
    name: str
    fits: Callable[[Any], bool]
    kind: str
    rest: bool


def is_tensor(value: Any) -> bool:
    """Is it a tensor of any interpreter, or an array?"""
    if isinstance(value, (SymbolicTensor, np.ndarray)):
        return True
    return getattr(type(value), ATTRIBUTE, None) is not None


def _is_int(value: Any) -> bool:
    kind = type(value)
    return kind is int or (
        kind is not bool and not issubclass(kind, np.bool_) and hasattr(kind, "__index__")
    )


def _is_float(value: Any) -> bool:
    return hasattr(type(value), "__float__")


def _is_bool(value: Any) -> bool:
    return value is True or value is False or is_tensor(value)


def _is_str(value: Any) -> bool:
    return isinstance(value, str)


_FITS: dict[str, Callable[[Any], bool]] = {
    "Tensor": is_tensor, "int": _is_int, "float": _is_float, "bool": _is_bool, "str": _is_str,
}  # fmt: skip


def _or_none(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


def _rules(call: Callable[..., Any]) -> list[_Rule]:
    rules = []
    for place, one in enumerate(inspect.signature(call).parameters.values()):
        annotation = str(one.annotation)
        kind = annotation.removesuffix(" | None")
        fits = _FITS.get(kind)
        legacy = annotation == "bool | None"  # of torch, which asks for its truth
        if fits is None or legacy or one.name in UNCHECKED or one.kind is one.VAR_KEYWORD:
            continue
        if kind != annotation:
            fits = _or_none(fits)
        keyword = one.kind is one.KEYWORD_ONLY
        rest = one.kind is one.VAR_POSITIONAL
        rules.append(_Rule(None if keyword else place, one.name, fits, kind, rest))
    return rules


def checked(call: Callable[..., Any]) -> Callable[..., Any]:
    """``call`` itself where its annotations say nothing of its arguments.

    Raises OperationTypeError at a call with an argument of another kind.
    """
    rules = _rules(call)
    if not rules:
        return call

    named = getattr(call, "__name__", "operation")

    @functools.wraps(call)
    def checking(*args: Any, **kwargs: Any) -> Any:
        count = len(args)
        for place, name, fits, kind, rest in rules:
            if rest:
                values: Any = args[place:]
            elif place is not None and place < count:
                values = args[place : place + 1]
            elif name in kwargs:
                values = (kwargs[name],)
            else:
                continue
            for value in values:
                if not fits(value):
                    raise refused(named, name, kind, value)
        return call(*args, **kwargs)

    return checking


def refused(operation: str, name: str, kind: str, value: Any) -> OperationTypeError:
    """The error for an argument of another kind."""
    return OperationTypeError(
        f"{operation}(): argument {name!r} must be {kind}, not {class_name(value)}",
        location=here(), hint=tensor_hint(value) if kind == "Tensor" else "",
    )  # fmt: skip


def class_name(value: Any) -> str:
    """Of a value; with its library where that has tensors of its own."""
    kind = type(value)
    return f"torch.{kind.__name__}" if kind.__module__ == "torch" else kind.__name__


def tensor_hint(value: Any) -> str:
    """How to make a tensor of something else."""
    if isinstance(value, (list, tuple)) and any(map(is_tensor, value)):
        return "unpack it, as in (x,) = ctx.saved_tensors; or make one tensor with sg.stack"
    return "sg.tensor(...) makes a tensor of numbers"
