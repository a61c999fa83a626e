"""Where code asks which object a number is: ``n is 3``, ``x.shape[0] is ctx.rows``.

In: the code that a Function reaches.  Out: the lines that compare numbers by identity, or may.

CPython has one object for each small integer, and may have several for any other number.  A size,
or a plain number that is a symbol of the proof, is another object each time.  ``is`` cannot be
overloaded, so that the instructions are read: what an operand was computed by says whether it is a
number.
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import EnumMeta
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

from symgrad.errors import Location

ASKED = "a number is compared by identity (is), which differs for small and large ones"
SUPPOSED = "no number is compared by identity"
_SIZES = frozenset(("shape", "size", "numel", "nelement", "ndim", "dim", "len", "stride"))
_OF_NUMBERS = _SIZES | {"int", "float", "round", "item", "prod"}
_SUBSCRIPTS = ("BINARY_SUBSCR", "BINARY_SLICE")
_STORES = ("STORE_FAST", "STORE_DEREF", "STORE_ATTR", "STORE_GLOBAL")
_FUNCTIONS = frozenset(("is_", "is_not"))
_NAMED = (*_FUNCTIONS, *(f"operator.{name}" for name in _FUNCTIONS))
_KINDS = (int, float, "int", "float")

Group = Sequence[dis.Instruction]


def parameters_of(function: FunctionType) -> Iterator[str]:
    """The parameters of a function that are numbers by their defaults or annotations."""
    code = function.__code__
    defaults = function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    known = {**dict(zip(names[len(names) - len(defaults) :], defaults, strict=True)),
             **(function.__kwdefaults__ or {})}  # fmt: skip
    yield from (name for name, value in known.items() if _is_number(value))
    yield from (name for name, kind in function.__annotations__.items() if kind in _KINDS)


def compared(
    codes: Sequence[CodeType], spaces: Sequence[Mapping[str, Any]], given: set[str],
    asking: Iterable[str] = (),
) -> Iterator[tuple[str, Location]]:  # fmt: skip
    """What is asked or supposed, and the lines.

    ``given``: the names of parameters that are numbers; ``asking``: other names of ``operator.is_``
    and ``is_not``.
    """
    functions = _FUNCTIONS.union(asking)
    every = [
        (inner, _asking(inner, functions), space)
        for code, space in zip(codes, spaces, strict=True) for inner in _with_inner(code)
    ]  # fmt: skip
    if not any(places for _, places, _ in every):
        return
    names = frozenset(given)
    while found := frozenset().union(*(_stored(code, names) for code, _, _ in every)) - names:
        names |= found
    for code, places, space in every:
        for sides, line in places:
            said = _judged(sides, names, space)
            if said:
                yield said, Location(code.co_filename, line, code.co_name)


@lru_cache(maxsize=1024)
def _asking(
    code: CodeType, functions: frozenset[str]
) -> tuple[tuple[Sequence[Group], int], ...]:  # fmt: skip
    """What computes the operands where a code object compares by identity, with the lines."""
    known, found = _instructions(code), list[tuple[Sequence[Group], int]]()
    for place, (one, line) in enumerate(known):
        if not _asks(one, functions):
            continue
        if one.opname == "IS_OP":
            found.append((_operands([before for before, _ in known[:place]]), line))
        else:
            found.append(([[each] for each, at in known if at == line and each is not one], line))
    return tuple(found)


def _asks(one: dis.Instruction, functions: frozenset[str]) -> bool:
    """Does it compare by identity, or load one of the functions that do, or the name of one?"""
    is_name = one.opname == "LOAD_CONST" and one.argval in _NAMED
    return one.opname == "IS_OP" or is_name or bool(functions & set(_words(one)))


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _with_inner(one)


@lru_cache(maxsize=1024)
def _instructions(code: CodeType) -> tuple[tuple[dis.Instruction, int], ...]:
    """The instructions of a code object, with their lines."""
    found, line = [], code.co_firstlineno
    for one in dis.get_instructions(code):
        line = one.starts_line or line
        found.append((one, line))
    return tuple(found)


def _operands(before: Group) -> list[Group]:
    """What computes the two operands of the instruction behind these, as far as it is straight."""
    groups: list[Group] = []
    end = len(before)
    while len(groups) < 2 and end:
        depth, start = 0, end
        while start and depth < 1:
            start -= 1
            one = before[start]
            depth += dis.stack_effect(one.opcode, one.arg, jump=False)
        groups.append(before[start:end])
        if depth > 1:  # one instruction loads both
            break
        end = start
    return groups


def _judged(sides: Sequence[Group], names: frozenset[str], space: Mapping[str, Any]) -> str:
    """Whether one of two operands is a number, or may be one; empty for neither."""
    if len(sides) == 2 and any(_is_other(side, space) for side in sides):
        return ""
    if any(_is_numeric(side, names, space) for side in sides):
        return ASKED
    return SUPPOSED


def _last(group: Group) -> dis.Instruction | None:
    kept = [one for one in group if one.opname not in ("CACHE", "NOP", "PRECALL", "EXTENDED_ARG")]
    return kept[-1] if kept else None


def _is_other(group: Group, space: Mapping[str, Any]) -> bool:
    """Is it certainly no number: None, a text, a class, a member, what ``type()`` gives?"""
    last = _last(group)
    if last is None:
        return False
    if last.opname == "LOAD_CONST":
        return not _is_number(last.argval)
    if last.opname == "LOAD_GLOBAL":
        return not _is_number(_global(last, space))
    if last.argval == "__class__" or _is_choice(group, space):
        return True
    named = next((one for one in group if one.opname == "LOAD_GLOBAL"), None)
    called = last.opname.startswith("CALL") and named is not None
    return called and named is not None and named.argval == "type"


def _is_choice(group: Group, space: Mapping[str, Any]) -> bool:
    """Is it a member of an enumeration, or a constant of a module: ``Mode.SUM``, ``torch.half``?"""
    known = [one for one in group if one.opname not in ("CACHE", "NOP", "EXTENDED_ARG")]
    if len(known) < 2 or known[0].opname != "LOAD_GLOBAL":
        return False
    value = _global(known[0], space)
    for one in known[1:]:
        if one.opname != "LOAD_ATTR" or not isinstance(one.argval, str):
            return False
        if isinstance(value, EnumMeta):
            value = value.__members__.get(one.argval)
        else:
            value = vars(value).get(one.argval) if isinstance(value, ModuleType) else None
    return value is not None and not _is_number(value)


def _global(one: dis.Instruction, space: Mapping[str, Any]) -> Any:
    return space.get(one.argval, getattr(builtins, one.argval, None))


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_numeric(group: Group, names: frozenset[str], space: Mapping[str, Any]) -> bool:
    """Is it a number, as far as its instructions say?"""
    last = _last(group)
    if last is None:
        return False
    if last.opname in ("LOAD_CONST", "LOAD_SMALL_INT"):
        return _is_number(last.argval)
    if last.opname == "LOAD_GLOBAL":
        return _is_number(_global(last, space))
    words = {word for one in group for word in _words(one)}
    if last.opname.startswith("CALL") or last.opname in _SUBSCRIPTS:
        return bool(words & _OF_NUMBERS)
    if last.opname.startswith(("BINARY", "UNARY")):
        return bool(words & (_OF_NUMBERS | names))
    return bool(set(_words(last)) & (_SIZES | names))


def _words(one: dis.Instruction) -> tuple[str, ...]:
    """The names in an instruction."""
    if not one.opname.startswith("LOAD_") or one.opname == "LOAD_CONST":
        return ()
    found = one.argval if isinstance(one.argval, tuple) else (one.argval,)
    return tuple(word for word in found if isinstance(word, str))


@lru_cache(maxsize=1024)
def _stored(code: CodeType, names: frozenset[str]) -> frozenset[str]:
    """The names of variables and attributes that lines store numbers in."""
    group: list[dis.Instruction] = []
    found: set[str] = set()
    line = 0
    for one, at in _instructions(code):
        if at != line:
            group, line = [], at
        if one.opname.startswith(_STORES) and isinstance(one.argval, str):
            words = {word for each in group for word in _words(each)}
            value = next((each for each in reversed(group) if each.opname == "LOAD_CONST"), None)
            is_constant = value is not None and group[-1] is value and _is_number(value.argval)
            if is_constant or words & (_SIZES | names):
                found.add(one.argval)
        group.append(one)
    return frozenset(found)
