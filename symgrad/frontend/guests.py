"""Functions of other libraries, as the tracer takes them.

In: a class that another library has a base class for, ``torch.autograd.Function``.  Out: a
``Function`` of the same methods, and the ``Guest`` that its trace runs under.

Nothing here imports another library: where a base class of one is met, the library is loaded, and
what adapts its classes is imported by name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

ADAPTERS = {"torch.autograd.function": "symgrad.interop.torch"}
"""The modules of base classes, and what adapts the classes that derive from them."""


class Given(NamedTuple):
    """A tensor that a real call is given: nested lists of numbers, and its dtype by name."""

    value: Any
    dtype: str


@dataclass(frozen=True)
class Call:
    """A real call of a Function, and the element of a gradient that is asked about.

    ``arguments``: by position, by name, tensors as ``Given``.  ``asked``: the names of those that
    require a gradient.  ``cotangents``: one for each output, None where none is passed.
    ``at``: the element of the gradient of ``wanted``.  ``meant``: the function that backward is
    declared to be the derivative of, where that is not forward.
    """

    arguments: Sequence[tuple[str, Any]]
    asked: frozenset[str]
    cotangents: Sequence[Any]
    wanted: str
    at: tuple[int, ...]
    meant: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Measured:
    """What a library gives for one element of a gradient: by backward, and by other means.

    ``error``: how far apart both may be by rounding and by the steps of difference quotients.
    ``how``: how the derivative was found.  ``dtype``: in which the call ran.
    """

    backward: float
    derivative: float
    error: float
    how: str
    dtype: str


class Guest(Protocol):
    """A library whose tensors the program knows, while one of its Functions is traced."""

    def variant(self, kind: type) -> type:
        """The class to make tensors and numbers of, in the place of a class of the frontend's."""
        ...

    def public(self, *, parameter: bool) -> type:
        """The class that the program knows tensors by."""
        ...

    def context(self, function: Any) -> type | None:
        """The class that the program knows ctx by; None where it may be any."""
        ...

    def shape(self) -> type:
        """The class that the program knows shapes by."""
        ...

    def device(self) -> type:
        """The class that the program knows devices by."""
        ...

    def stand_in(self, value: Any) -> Any:
        """What answers for traced tensors in the place of a class of tensors; None for others."""
        ...

    def running(self, session: Any) -> AbstractContextManager[None]:
        """A block in which the library's functions are those of the trace."""
        ...

    def returned(self, value: Any) -> Any:
        """What forward or backward returned, with the library's own tensors as constants."""
        ...

    def measured(self, original: Any, call: Call) -> Measured:
        """What the class itself gives in a real call.

        Raises NotMeasured, and whatever the user's code raises.
        """
        ...


class NotMeasured(Exception):
    """A real call says nothing of the derivative; the text says why."""


def adapter_of(value: Any) -> str | None:
    """The module that adapts a class; None for what is no Function of another library."""
    if not isinstance(value, type):
        return None
    for base in value.__mro__[1:]:
        if base.__module__ in ADAPTERS and base.__name__ == "Function":
            return ADAPTERS[base.__module__]
    return None


def taken(function: Any) -> Any:
    """A Function, that of another library adapted; anything else as it is.

    Raises SpecError for one that its own library does not run.
    """
    module = adapter_of(function)
    return function if module is None else importlib.import_module(module).adapted(function)
