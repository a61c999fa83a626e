"""Arguments and results as trees of tuples, lists and dicts, whose leaves are tensors.

In: nested Python values.  Out: their tensors in order, and a key of everything else.  Where it is
asked for, a finite float is a leaf like a tensor: one of no axes, whose value is in no key.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symgrad.frontend.session import active
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.tensor.errors import TensorTypeError
from symgrad.tensor.plans.dispatch import as_tensor
from symgrad.tensor.tensor import Tensor, wrap

Rebuild = Callable[[Sequence[Any]], Any]


class Hole:
    """Where a tensor stood."""


HOLE = Hole()


def flatten(
    value: Any, tensors: list[Tensor], rest: list[Any], numbers: list[int] | None = None
) -> Any:
    """A key of a value: dtypes and shapes of its tensors, the values of its other leaves.

    Its tensors (arrays as constants) are appended to ``tensors``, its other leaves to ``rest``.
    ``numbers``: finite floats are appended to ``tensors``, too, and their places there to this.
    Raises TensorTypeError for a leaf that has no hash.
    """
    kind = type(value)
    if isinstance(value, Tensor):
        tensors.append(value)
        return value._array.dtype.char, value._array.shape
    if kind is tuple or kind is list or isinstance(value, (tuple, list)):
        return kind, tuple([flatten(item, tensors, rest, numbers) for item in value])
    if isinstance(value, dict):
        named = [(name, flatten(value[name], tensors, rest, numbers)) for name in value]
        return kind, tuple(named)
    if isinstance(value, np.ndarray):
        return flatten(as_tensor(value), tensors, rest)
    if numbers is not None and is_number(value):
        numbers.append(len(tensors))
        tensors.append(wrap(np.asarray(value)))
        return kind, None
    rest.append(value)
    if kind is float:
        return kind, value.hex()
    if kind is slice:
        return kind, _of_slice(value)
    try:
        hash(value)
    except TypeError:
        raise TensorTypeError(
            f"an argument of type {kind.__name__} is neither a tensor nor a value with a hash",
            hint="pass tensors in tuples, lists and dicts, and anything else as a hashable value",
        ) from None
    return kind, value


def is_number(value: Any) -> bool:
    """Is it a finite float?"""
    return type(value) is float and math.isfinite(value)


def _of_slice(value: slice) -> Any:
    """A key of a slice, which has no hash itself before Python 3.12."""
    inside: list[Tensor] = []
    key = flatten((value.start, value.stop, value.step), inside, [])
    if inside:
        raise TensorTypeError(
            "an argument is a slice with a tensor for an end", hint="take its int() before the call"
        )
    return key


def each(change: Callable[[Any], Any], value: Any) -> Any:
    """The value with ``change(leaf)`` in place of each leaf, a tensor or anything else."""
    if isinstance(value, (tuple, list, dict)):
        return _mapped(value, functools.partial(each, change))
    return change(value)


def leaves(value: Any) -> list[Any]:
    """The leaves of a value, in order."""
    found: list[Any] = []
    each(found.append, value)
    return found


def leaves_like(structure: Any, value: Any) -> list[Any] | None:
    """The leaves of a value in the order of those of ``structure``; None if it is built otherwise.

    Lists may stand for tuples, and dicts may have another order.
    """
    if isinstance(structure, dict):
        if not isinstance(value, dict) or structure.keys() != value.keys():
            return None
        pairs = [(structure[name], value[name]) for name in structure]
    elif isinstance(structure, (tuple, list)):
        if not isinstance(value, (tuple, list)) or len(structure) != len(value):
            return None
        pairs = list(zip(structure, value, strict=True))
    else:
        return None if isinstance(value, (tuple, list, dict)) else [value]
    found: list[Any] = []
    for part, item in pairs:
        inner = leaves_like(part, item)
        if inner is None:
            return None
        found += inner
    return found


def emptied(value: Any, numbers: bool = False) -> Any:
    """The value with ``HOLE`` in place of each of its tensors, and of its finite floats."""
    if isinstance(value, (Tensor, np.ndarray)) or (numbers and is_number(value)):
        return HOLE
    return _mapped(value, functools.partial(emptied, numbers=numbers))


def filled(value: Any, leaves: Iterator[Any]) -> Any:
    """The value with the next of ``leaves`` in place of each ``HOLE``."""
    if value is HOLE:
        return next(leaves)
    return _mapped(value, lambda item: filled(item, leaves))


def holes(value: Any) -> int:
    """How many tensors stood in a value."""
    if isinstance(value, (tuple, list)):
        return sum(map(holes, value))
    if isinstance(value, dict):
        return sum(map(holes, value.values()))
    return int(value is HOLE)


def results(value: Any, found: list[SymbolicTensor]) -> Rebuild:
    """How a result is built of tensors; its symbolic ones are appended to ``found``."""
    if isinstance(value, Tensor):
        session: Any = active()
        value = session.lift(value)
    if isinstance(value, SymbolicTensor):
        place = len(found)
        found.append(value)
        return lambda tensors: tensors[place]
    if isinstance(value, (tuple, list)):
        parts = [results(item, found) for item in value]
        return lambda tensors: _like(value, [part(tensors) for part in parts])
    if isinstance(value, dict):
        named = [(name, results(item, found)) for name, item in value.items()]
        return lambda tensors: type(value)((name, part(tensors)) for name, part in named)
    return lambda tensors: value


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, (tuple, list)):
        return _like(value, [change(item) for item in value])
    if isinstance(value, dict):
        return type(value)((name, change(item)) for name, item in value.items())
    return value


def _like(value: Any, items: list[Any]) -> Any:
    kind: Any = type(value)
    return kind(*items) if hasattr(kind, "_fields") else kind(items)
