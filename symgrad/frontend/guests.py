"""Functions of other libraries, as the tracer takes them.

In: a class that another library has a base class for, ``torch.autograd.Function``; a function that
is an object of another library, ``jax.custom_vjp``.  Out: a ``Function`` that does the same, and
the ``Guest`` that its trace runs under.

Nothing here imports another library: where a class of one is met, the library is loaded, and what
adapts its Functions is imported by name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

BASES = {("torch.autograd.function", "Function"): "symgrad.interop.torch"}
"""Base classes, by module and name, and what adapts the classes that derive from them."""
OBJECTS = {("jax._src.custom_derivatives", "custom_vjp"): "symgrad.interop.jax"}
"""Classes, by module and name, and what adapts their objects."""


class Given(NamedTuple):
    """A tensor that a real call is given: nested lists of numbers, and its dtype by name.

    ``complex``: the last axis holds the two parts of complex numbers.
    """

    value: Any
    dtype: str
    complex: bool = False


@dataclass(frozen=True)
class Call:
    """A real call of a Function, and the element of a gradient that is asked about.

    ``arguments``: by position, by name, tensors as ``Given``.  ``asked``: the names of those that
    require a gradient.  ``cotangents``: one for each output, None where none is passed.
    ``at``: the element of the gradient of ``wanted``.  ``meant``: the function that backward is
    declared to be the derivative of, where that is not forward.
    ``beside``: the arguments of another call, which comes first, or ``between`` forward and
    backward.  ``mirror``: the element that changes with ``at``, where the matrix is symmetric.
    ``narrow``: floats have 32 bits, as in the trace, and not 64.
    """

    arguments: Sequence[tuple[str, Any]]
    asked: frozenset[str]
    cotangents: Sequence[Any]
    wanted: str
    at: tuple[int, ...]
    meant: Callable[..., Any] | None = None
    beside: Sequence[tuple[str, Any]] = ()
    between: bool = False
    mirror: tuple[int, ...] | None = None
    narrow: bool = False


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


class Sized(NamedTuple):
    """A tensor that an attempted call is given: of some sizes, with any values.

    ``dtype``: its name; ``float`` for the default one.
    """

    sizes: tuple[int, ...]
    dtype: str


class Reached(NamedTuple):
    """How far an attempted call comes.

    ``stage``: 0 where forward raises, 1 where backward does, 2 where both run.  ``steps``: how many
    steps of the class's own code were made, each counted once.  ``gradients``: their sizes, by the
    names of arguments; None where backward returns none.
    """

    stage: int
    steps: int
    gradients: Mapping[str, tuple[int, ...] | None]


class Guest(Protocol):
    """A library whose tensors the program knows, while one of its Functions is traced.

    ``repairs``: are its Functions written in the words that repairs are written in?  ``library``:
    its name in messages.  ``spawns``: real calls are made by ``measured_all``, which looks after
    processes itself, and not by ``measured`` in a fork.  ``shapes_hint``: how else shapes are
    stated.  ``strided``: do the strides of its tensors depend on those of inputs?
    ``divides_by_zero``: has an integer divided by 0 a value?  ``narrow``: its float
    dtypes of 16 bits.  ``watches_dtypes``: is it noted when the program asks for one?
    ``values``: the dtypes and devices that an argument is judged at that is annotated as one.
    ``removed``: the names of functions that it had once, and what stands in their place.
    """

    repairs: bool
    library: str
    spawns: bool
    shapes_hint: str
    strided: bool
    divides_by_zero: bool
    narrow: tuple[str, ...]
    watches_dtypes: bool
    values: tuple[Any, ...]
    removed: Mapping[str, str]

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

    def worded(self, text: str) -> str:
        """A message that names functions of symgrad, in the words of the library."""
        ...

    def kinds_of(self, name: str) -> Mapping[int | str, str]:
        """By place and name ``switch``, ``axis``, ``count``: what a function's arguments are."""
        ...

    def returned(self, value: Any) -> Any:
        """What forward or backward returned, with the library's own tensors as constants."""
        ...

    def measured(self, original: Any, call: Call) -> Measured:
        """What the class itself gives in a real call.

        Raises NotMeasured, and whatever the user's code raises.
        """
        ...

    def measured_all(self, original: Any, calls: Sequence[Call]) -> list[Measured | str]:
        """What real calls give, each, or why nothing is known of it."""
        ...

    def attempts(self, original: Any) -> Any:
        """What makes calls of the class itself and tells how far each comes: ``reached``."""
        ...

    def completed(self, request: Any, report: Any, rank: int | None) -> Any:
        """The report, with what else its library takes for granted, for so many batch axes."""
        ...


class NotMeasured(Exception):
    """A real call says nothing of the derivative; the text says why."""


def adapter_of(value: Any) -> str | None:
    """The module that adapts a value; None for what is no Function of another library."""
    known, classes = OBJECTS, type(value).__mro__
    if isinstance(value, type):
        known, classes = BASES, value.__mro__[1:]
    found = (known.get((one.__module__, one.__name__)) for one in classes)
    return next(filter(None, found), None)


def shaped(function: Any, specs: Any, values: Mapping[str, Any] | None) -> tuple[Any, Any]:
    """A Function, adapted to the containers that shapes are stated in, and one spec a tensor.

    A class that has ``symgrad_shaped`` takes containers.  Raises SpecError, as ``taken`` does.
    """
    found = taken(function)
    shape = getattr(found, "symgrad_shaped", None)
    return (found, specs) if shape is None else shape(found, specs, values or {})


def taken(function: Any) -> Any:
    """A Function, that of another library adapted; anything else as it is.

    Raises SpecError for one that its own library does not run.
    """
    module = adapter_of(function)
    return function if module is None else importlib.import_module(module).adapted(function)
