"""The table of operations: what ``sg.exp``, ``x.exp()`` and ``x.exp_()`` are, each said once.

In: Python functions over symbolic tensors, with the names that torch gives them.
Out: ``FUNCTIONS`` (for ``sg.<name>``) and methods on ``SymbolicTensor``.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from symgrad.errors import ProtocolError, TraceError
from symgrad.frontend.caller import here
from symgrad.frontend.kinds import OperationTypeError, checked
from symgrad.frontend.session import active
from symgrad.frontend.sizes import Shape
from symgrad.frontend.tensor import (
    SelectedShapeError,
    SelectedTensor,
    SymbolicTensor,
    packed,
)
from symgrad.interpreters import interpreter_of

FUNCTIONS: dict[str, Any] = {}
"""The public functions over tensors, by name."""


class OperationValueError(TraceError, ValueError):
    """A value that an operation does not take."""


class OperationAssertionError(TraceError, AssertionError):
    """A value for which torch has an assertion."""


class OperationCallError(TraceError, RuntimeError):
    """Settings that an operation cannot be called with."""


class _Functions:
    def __getattr__(self, name: str) -> Any:
        if name not in FUNCTIONS:
            raise AttributeError(name)
        return FUNCTIONS[name]


functions: Any = _Functions()
"""The public functions as attributes, for Functions that stand beside the operations."""


AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


def operation(
    *names: str,
    method: bool = True,
    function: bool = True,
    inplace: bool = False,
    elementwise: bool = False,
) -> Callable[[AnyFunction], AnyFunction]:
    """Enter a function in the table under ``names`` (its own name when none is given).

    ``method``, ``function``: which of ``x.name()`` and ``sg.name(x)`` there are; ``inplace``:
    also ``x.name_()``, which writes the result into ``x``; ``elementwise``: it treats all
    axes alike.
    """

    def enter(call: AnyFunction) -> AnyFunction:
        if elementwise:
            marked_elementwise(call)
        whole = with_numpy_names(_knowing(call, checked(call)))
        for name in names or (call.__name__,):
            entered = selecting(name, whole)
            if function:
                FUNCTIONS[name] = public(name, entered)
            if method:
                setattr(SymbolicTensor, name, entered)
            if inplace:
                written = in_place(entered, f"{name}_")
                setattr(SymbolicTensor, f"{name}_", written)
                FUNCTIONS.setdefault(f"{name}_", public(f"{name}_", written))
        return call

    return enter


_OF_SELECTED: dict[str, Callable[..., Any]] = {}
ALONG_SELECTED = (
    "softmax", "log_softmax", "logsumexp", "amax", "amin", "max", "min", "argmax", "argmin", "var",
    "std", "cumsum", "cumprod", "sort", "argsort", "topk", "prod",
)  # fmt: skip
"""Operations along axes that compute the same along other axes than that of what is selected."""


def of_selected(*names: str) -> Callable[[AnyFunction], AnyFunction]:
    """Enter the definition of operations for what a mask selects."""

    def enter(call: AnyFunction) -> AnyFunction:
        for name in names:
            _OF_SELECTED[name] = call
        return call

    return enter


def selecting(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """The operation with the definition that it has for what a mask selects.

    Where it needs the number of these, it gets them as tensors with a shape.
    """

    @functools.wraps(call)
    def chosen(*args: Any, **kwargs: Any) -> Any:
        own = bool(args) and isinstance(args[0], SelectedTensor)
        try:
            return _OF_SELECTED.get(name, call)(*args, **kwargs) if own else call(*args, **kwargs)
        except SelectedShapeError as error:
            given, words = packed(args, error), list(kwargs)
            named = packed(list(kwargs.values()), error)
            if given is args and all(map(operator.is_, named, kwargs.values())):
                raise
            return call(*given, **dict(zip(words, named, strict=True)))

    return chosen


def marked_elementwise(call: AnyFunction) -> AnyFunction:
    """Mark what consists of elementwise ops and broadcasting, so that it treats all axes alike."""
    vars(call)["elementwise"] = True
    return call


IGNORED = frozenset(
    ("device", "generator", "layout", "memory_format", "names", "non_blocking", "pin_memory",
     "requires_grad", "size", "sparse_grad")
)  # fmt: skip
"""What ``**ignored`` may hold: it says where memory lies, not what is computed."""


def check_ignored(name: str, ignored: Mapping[str, Any]) -> None:
    """Raises OperationTypeError for an argument that nobody knows."""
    for word in ignored:
        if word not in IGNORED:
            raise OperationTypeError(
                f"{name}() got an unexpected keyword argument {word!r}", location=here()
            )


def _knowing(call: Callable[..., Any], inner: Callable[..., Any]) -> Callable[..., Any]:
    """``inner`` itself unless ``call`` ignores arguments: then unknown ones are refused."""
    own = inspect.signature(call).parameters
    if "ignored" not in own:
        return inner

    @functools.wraps(call)
    def knowing(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            check_ignored(call.__name__, {word: kwargs[word] for word in kwargs.keys() - own})
        return inner(*args, **kwargs)

    return knowing


NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}
"""NumPy's names of arguments, which torch takes too, and torch's own."""


def with_numpy_names(call: Callable[..., Any]) -> Callable[..., Any]:
    """``call`` itself where it has no argument that NumPy names otherwise."""
    own = inspect.signature(call).parameters
    rest = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in own.values())
    given = {
        name: known
        for name, known in NUMPY_NAMES.items()
        if name not in own and (rest or known in own)
    }
    if not given:
        return call

    @functools.wraps(call)
    def renaming(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **(_renamed(kwargs, given) if kwargs else kwargs))

    vars(renaming)["numpy_names"] = given
    return renaming


def renamed(call: Callable[..., Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by the names that the function itself has for them."""
    return _renamed(kwargs, getattr(call, "numpy_names", {}))


def _renamed(kwargs: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in kwargs.items():
        known = names.get(name, name)
        if known in found:
            raise OperationTypeError(f"got both {name!r} and {known!r}", location=here())
        found[known] = value
    return found


def in_place(call: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The method that writes what ``call`` computes into its first argument, and returns that."""

    @functools.wraps(call)
    def written(self: SymbolicTensor, *args: Any, **kwargs: Any) -> SymbolicTensor:
        result = call(self, *args, **kwargs)
        if isinstance(self, SelectedTensor) and isinstance(result, SelectedTensor):
            self.replace(result.storage.node)
        else:
            self.write(result.node)
        return self

    written.__name__ = written.__qualname__ = name
    return written


def operands(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Any]:
    """The arguments; the items of tuples and lists among them."""
    for arg in (*args, *kwargs.values()):
        yield from arg if isinstance(arg, (list, tuple)) and not isinstance(arg, Shape) else (arg,)


def public(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """What ``sg.<name>`` is: an operation of the trace in progress, else of its operands."""

    @functools.wraps(call)
    def dispatch(*args: Any, **kwargs: Any) -> Any:
        session = active()
        if session is not None:
            return session.call(name, call, session.taken(args), session.taken(kwargs))
        interpreter = interpreter_of(operands(args, kwargs))
        if interpreter is None:
            raise ProtocolError(
                f"sg.{name} computes with symbolic tensors, while a Function is traced",
                location=here(),
                hint="call it inside forward or backward; outside, use NumPy",
            )
        return interpreter.operation(name, call, args, kwargs)

    dispatch.__name__ = dispatch.__qualname__ = name
    return dispatch
