"""What a program compares a plain argument with, and whether it uses it as an axis.

In: a request, the default of a plain argument.  Out: other values that the program
tells apart: the literals that it compares the argument with, the other truth value, the axes of the
tensors.

The argument is traced as a text or an integer that notes what it is asked.  Where nothing says
what an argument is, it is traced as a tensor first, which notes that, too
(``symgrad.frontend.compared``).  What is found is a choice of what to judge, and nothing rests on
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from symgrad.budgets import MOST_ARGUMENT_VALUES
from symgrad.frontend.annotated import others_of
from symgrad.frontend.evidence import REDUCTIONS
from symgrad.frontend.function import METHODS, class_of, raw_method
from symgrad.frontend.request import Request
from symgrad.plain_values import is_alike

Trace = Callable[[Any], Any]
OTHER = "other"
"""A text that programs do not compare with."""
OTHER_NUMBER = 7919
"""An integer that they do not compare with."""


@dataclass
class _Log:
    literals: list[Any] = field(default_factory=list)
    hashed: bool = False
    is_axis: bool = False

    def note(self, other: object, kind: type) -> None:
        if type(other) is kind and other not in self.literals:
            self.literals.append(other)


class AskedText(str):
    """A text that notes what it is compared with."""

    log: _Log

    def __eq__(self, other: object) -> bool:
        self.log.note(other, str)
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        self.log.note(other, str)
        return str.__ne__(self, other)

    def __hash__(self) -> int:
        self.log.hashed = True
        return str.__hash__(self)

    def lower(self) -> AskedText:
        """What notes in the same log."""
        return self._like(str.lower(self))

    def upper(self) -> AskedText:
        """What notes in the same log."""
        return self._like(str.upper(self))

    def strip(self, chars: str | None = None) -> AskedText:
        """What notes in the same log."""
        return self._like(str.strip(self, chars))

    def _like(self, value: str) -> AskedText:
        found = AskedText(value)
        found.log = self.log
        return found


class AskedInteger(int):
    """An integer that notes what it is compared with, and that it is an axis."""

    log: _Log

    def __eq__(self, other: object) -> bool:
        self.log.note(other, int)
        return int.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        self.log.note(other, int)
        return int.__ne__(self, other)

    __hash__ = int.__hash__


def values_of(function: Any, literals: Sequence[Any], kind: type, trace: Trace) -> list[Any]:
    """What an argument may be that nobody stated: texts, or integers, that it is compared with.

    ``literals``: those that are known; None among them where it is a key.  A text that is none of
    them comes last.
    """
    known = [one for one in literals if type(one) is kind]
    log = _Log(list(known), None in literals)
    if kind is int:
        _ask(AskedInteger, [OTHER_NUMBER, *known], log, trace)
        return log.literals
    _ask(AskedText, [OTHER, *known], log, trace)
    found = [*log.literals, *(_keys(function) if log.hashed else [])]
    if set(REDUCTIONS[:2]) & set(found):
        found += REDUCTIONS
    return list(dict.fromkeys([*found, OTHER])) if found else []


def used_as_axis(value: Any) -> None:
    """Note that an integer is an axis."""
    if type(value) is AskedInteger:
        value.log.is_axis = True


def other_values(request: Request, name: str, default: Any, trace: Trace) -> list[Any]:
    """Values beside the default that the annotation names, and that the program tells apart.

    Of these a few.  ``trace``: traces the program with a value.
    """
    stated = others_of(request.function, name, default)
    asked: list[Any] = []
    if "str" in stated.types:
        asked += _texts(request.function, default, trace)
    if "int" in stated.types:
        asked += _integers(request, default, trace)
    asked = [one for one in dict.fromkeys(asked) if one != default][:MOST_ARGUMENT_VALUES]
    return [one for one in (*stated.values, *asked) if not is_alike(one, default)]


def _texts(function: Any, default: str | None, trace: Trace) -> list[str]:
    """Literals; where there is one alone, or none but the default, a text that is no literal."""
    log = _Log()
    _ask(AskedText, [OTHER, *([] if default is None else [default])], log, trace)
    found = list(log.literals)
    if log.hashed:
        found += _keys(function)
    if found and len({*found, default} - {None}) == 1:
        return [*found, OTHER]
    if set(REDUCTIONS[:2]) & set(found):
        found += REDUCTIONS
    return found


def _integers(request: Request, default: int | None, trace: Trace) -> list[int]:
    """Literals; of an axis all axes of the tensor that has the most."""
    log = _Log()
    _ask(AskedInteger, [0 if default is None else default], log, trace)
    found = list(log.literals)
    if log.is_axis:
        rank = max((len(one.spec.dims) for one in request.tensors if one.spec), default=0)
        found += range(-rank, rank)
    return found


def _ask(kind: Any, values: list[Any], log: _Log, trace: Trace) -> None:
    """Trace with values, and with those that they were compared with."""
    for _ in range(MOST_ARGUMENT_VALUES):
        if not values:
            return
        asked = kind(values.pop(0))
        asked.log, known = log, len(log.literals)
        with suppress(Exception):  # whatever the program does with it
            trace(asked)
        values += log.literals[known:]


def _keys(function: Any) -> list[str]:
    """The texts in which a Function may look one up: in tuples and sets of its code, as keys."""
    found: list[str] = []
    own = class_of(function)
    for name in METHODS:
        method = raw_method(own, name)[0]
        code = getattr(method, "__code__", None)
        if code is None:
            continue
        for const in _constants(code):
            if isinstance(const, (tuple, frozenset)):
                found += sorted(one for one in const if type(one) is str)
        for name_ in code.co_names:
            known = getattr(method, "__globals__", {}).get(name_)
            if type(known) is dict:
                found += [one for one in known if type(one) is str]
    return found


def _constants(code: CodeType) -> Iterator[Any]:
    for const in code.co_consts:
        yield const
        if isinstance(const, CodeType):
            yield from _constants(const)
