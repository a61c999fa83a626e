"""The table of the functions of complex tensors, and the two parts that these compute with.

In: functions under torch's names.  Out: the function of a name; the parts of a tensor or a number,
and a tensor of two parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch

from symgrad.errors import SymgradError, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.complexes import ComplexTensor, part_of, refuse_any_rank
from symgrad.frontend.lift import aligned, result_dtype
from symgrad.frontend.questions import note_limit
from symgrad.frontend.session import current
from symgrad.frontend.table import functions as sg
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.frontend.unsupported import IN_PARTS, missing_op
from symgrad.interop.torch.constants import constant, inward, is_real, leaves, note_kept
from symgrad.interop.torch.dtypes import complex_of

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])
Parts = tuple[Any, Any]
"""The real and the imaginary part, tensors or numbers; None for zeros."""

_OPERATIONS: dict[str, Callable[..., Any]] = {}
MAKERS: set[str] = set()
"""Functions of real tensors that are here, too."""


def refused(what: str, hint: str = IN_PARTS) -> SymgradError:
    """The error for what is not traced of complex numbers."""
    return note_limit(UnsupportedOpError(what, location=here(), hint=hint))


def concerns(name: str, values: Iterable[Any]) -> bool:
    """Is a function of this name, of these arguments, one of complex numbers?"""
    return name in MAKERS or any(map(_is_complex, values))


def _is_complex(value: Any) -> bool:
    if isinstance(value, torch.dtype):
        return bool(value.is_complex)
    native = is_real(value) and bool(value.is_complex())
    return native or isinstance(value, (complex, ComplexTensor))


def operation_of(name: str) -> Callable[..., Any]:
    """The function of a name.  Raises MissingOperationError."""
    refuse_any_rank()
    if name not in _OPERATIONS:
        raise note_limit(missing_op(f"{name.removeprefix('get_')} of complex numbers", here()))
    return _OPERATIONS[name]


def is_known(name: str) -> bool:
    """Is there a function of a name?"""
    return name in _OPERATIONS


def taken(value: Any) -> Any:
    """An argument with torch's own tensors as constants of the trace, in lists, too."""
    if is_real(value) and value.is_complex():
        note_kept(value)
        return ComplexTensor.of(constant(torch.view_as_real(value.detach().resolve_conj())))
    if type(value) in (list, tuple):
        return type(value)(map(taken, value))
    return inward(value)


def operation(*names: str, of_reals: bool = False) -> Callable[[AnyFunction], AnyFunction]:
    """Enter a function under torch's names.  ``of_reals``: torch calls it with real tensors."""

    def enter(function: AnyFunction) -> AnyFunction:
        _OPERATIONS.update(dict.fromkeys(names, function))
        if of_reals:
            MAKERS.update(names)
        return function

    return enter


# -- parts


def parts(value: Any) -> Parts:
    """The real and the imaginary part of a tensor or a number."""
    if isinstance(value, ComplexTensor):
        node = value.pairs.node
        return fresh(part_of(node, 0, current())), fresh(part_of(node, 1, current()))
    if isinstance(value, complex):
        return (None if value.imag and not value.real else value.real), value.imag or None
    return value, None


def paired(real: Any, imaginary: Any, *of: Any) -> ComplexTensor:
    """A new tensor of two parts.  ``of``: what it is computed of, as which it lies in memory."""
    given = [0.0 if one is None else one for one in (real, imaginary)]
    dtype = result_dtype(given)
    dtype = dtype if dtype.is_float else current().dtype
    complex_of(dtype)
    rows = [fresh(node) for node in aligned(given, dtype)]
    pairs = sg.stack(rows, -1)
    if any(one.certain is not None or not one.lies_contiguous for one in _tensors(of)):
        pairs.lies_anyhow()
    return ComplexTensor.of(pairs)


def _tensors(values: Iterable[Any]) -> Iterable[SymbolicTensor]:
    for one in leaves(list(values)):
        if isinstance(one, SymbolicTensor):
            yield one.pairs if isinstance(one, ComplexTensor) else one


def as_complex(value: Any) -> ComplexTensor:
    """A tensor or a number as a tensor of complex numbers."""
    return value if isinstance(value, ComplexTensor) else paired(*parts(value), value)


def each(operation: Callable[[Any], Any], value: Any) -> ComplexTensor:
    """What is done to both parts alike."""
    return paired(*map(operation, parts(value)), value)
