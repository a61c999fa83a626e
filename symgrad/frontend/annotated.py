"""The plain values that the annotation of an argument names.

In: a Function, a parameter of forward, what its source shows of that.  Out: ``Named``: the members
of an enumeration, what ``Literal`` lists, None of ``Optional``, dtypes and devices; and the plain
types beside them.  Nothing where an annotation says anything else, such as a tensor.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections import abc
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

from symgrad.frontend.evidence import AnyFunction, Evidence, Parameter, evidence_of, parameters
from symgrad.frontend.function import class_of, raw_method
from symgrad.ir.dtype import float32, float64
from symgrad.plain_values import is_alike

_TYPES = (bool, int, float, str)
"""The types of which the values are not listed, but for bool."""
_TRUTHS = (True, False)
_COUNTS = (1, 2)
_OF_TRUTHS = ("flag", "switch", "rare switch", "truth", "truth or none")
"""Evidence that an argument is True or False."""
_OWN = (float32, float64)


@dataclass(frozen=True)
class Named:
    """What an annotation names: ``values``; and ``types``, by name, beside them."""

    values: tuple[Any, ...] = ()
    types: tuple[str, ...] = ()


def named(
    function: AnyFunction, parameter: Parameter, evidence: Evidence = ""
) -> Named | None:  # fmt: skip
    """What an annotation names, or evidence shows; None where neither says that it is plain."""
    forward, _ = raw_method(function, "forward")
    scope = getattr(inspect.unwrap(forward), "__globals__", {})
    if parameter.annotation is Parameter.empty:
        own = [one for one in _of_library(function) if type(one).__name__.lower() == evidence]
        return Named(tuple(own)) if own else None
    try:
        parts = list(_parts(parameter.annotation, scope, _of_library(function)))
    except _Unknown:
        return None
    values = [one for one in parts if not (isinstance(one, type) and one in _TYPES)]
    plain = [one.__name__ for one in _TYPES if any(one is part for part in parts)]
    return Named(_unequal(values), tuple(plain))


def others_of(function: AnyFunction, name: str, default: Any) -> Named:
    """What an argument may be by its annotation, or beside the default, of its type.

    The types are those of which other values are found by what the program asks.
    """
    found = next((named(function, one) for one in parameters(function) if one.name == name), None)
    used = evidence_of(function).get(name, "") if default is None else ""
    if found is None or not (found.values or default is None):
        values = [one for one in _of_library(function) if type(one) is type(default)]
        values += type(default) if isinstance(default, Enum) else []
        values += _COUNTS if used == "count" else ()
        kinds = ("int", "str") if default is None else (type(default).__name__,)
        found = Named(tuple(values), (*kinds, "bool") if used in _OF_TRUTHS else kinds)
    elif default is None and "int" in found.types:
        found = replace(found, values=(*found.values, *_COUNTS))
    return replace(found, values=(*found.values, *(_TRUTHS if "bool" in found.types else ())))


def has_others(function: AnyFunction, value: Any) -> bool:
    """Are others known beside a plain value: a number, a text, a member, a dtype?"""
    plain = value is None or type(value) in _TYPES or isinstance(value, Enum)
    return plain or any(type(one) is type(value) for one in _of_library(function))


def _of_library(function: AnyFunction) -> tuple[Any, ...]:
    """The dtypes and devices that an argument is judged at."""
    guest = class_of(function).symgrad_guest
    return _OWN if guest is None else guest.values


class Items(NamedTuple):
    """What an annotation of a tuple or list says: ``types``, and a ``number`` of items or None.

    ``optional``: or None.
    """

    types: frozenset[Any]
    number: int | None
    optional: bool
    is_tuple: bool = False

    @property
    def are_numbers(self) -> bool:
        """Are they plain numbers?"""
        return self.types <= {bool, int, float}


def items_of(function: AnyFunction, parameter: Parameter) -> Items | None:
    """What an annotation says of the items of a tuple or list; None where it names none."""
    forward, _ = raw_method(function, "forward")
    try:
        found = _evaluated(
            parameter.annotation, getattr(inspect.unwrap(forward), "__globals__", {})
        )
    except _Unknown:
        return None
    parts = typing.get_args(found)
    optional = types.NoneType in parts
    if typing.get_origin(found) in (typing.Union, types.UnionType):
        others = [one for one in parts if one is not types.NoneType]
        found = others[0] if len(others) == 1 else None
    origin, parts = typing.get_origin(found), typing.get_args(found)
    if origin not in (tuple, list, abc.Sequence, abc.Iterable, abc.Collection) or not parts:
        return None
    kinds = [one for one in parts if one is not ...]
    return Items(frozenset(kinds), len(kinds) if kinds == [*parts] and origin is tuple else None,
                 optional, origin is tuple)  # fmt: skip


class _Unknown(Exception):
    """An annotation that names no plain values."""


def _parts(annotation: Any, scope: dict[str, Any], own: tuple[Any, ...]) -> Iterator[Any]:
    """The values, and the plain types, one by one.  Raises _Unknown."""
    found = _evaluated(annotation, scope)
    origin, arguments = typing.get_origin(found), typing.get_args(found)
    if found is None or found is types.NoneType:
        yield None
    elif origin is typing.Literal:
        yield from arguments
    elif origin in (typing.Union, types.UnionType):
        for one in arguments:
            yield from _parts(one, scope, own)
    elif origin is typing.Annotated:
        yield from _parts(arguments[0], scope, own)
    elif not isinstance(found, type):
        raise _Unknown
    elif found in _TYPES:
        yield found
    elif issubclass(found, Enum):
        yield from found
    else:
        values = [one for one in own if type(one) is found]
        if not values:
            raise _Unknown
        yield from values


def _evaluated(annotation: Any, scope: dict[str, Any]) -> Any:
    """What a text stands for in the module.  Raises _Unknown."""
    text = getattr(annotation, "__forward_arg__", annotation)
    if not isinstance(text, str):
        return annotation
    try:
        return eval(text, dict(scope))
    except Exception as error:  # an annotation is not ours to judge
        raise _Unknown from error


def _unequal(values: list[Any]) -> tuple[Any, ...]:
    """Each once: True is not 1."""
    found: list[Any] = []
    for one in values:
        if not any(is_alike(one, other) for other in found):
            found.append(one)
    return tuple(found)
