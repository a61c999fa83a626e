"""What to do about an error that the user's own code raises while it is traced.

In: an exception.  Out: a hint, from what the error is about: what forward saved and set on ctx, the
names that a module or a tensor has, the variables that are None.
"""

from __future__ import annotations

import difflib
import linecache
import re
from collections.abc import Iterable
from functools import lru_cache
from types import FrameType, ModuleType
from typing import Any

from symgrad.errors import SymgradError, counted
from symgrad.frontend.caller import NOT_THE_PROGRAM, is_in
from symgrad.frontend.function import Context, attributes_of, state_of
from symgrad.frontend.session import REFERENCE, active, as_symgrad_error
from symgrad.frontend.tensor import SymbolicTensor

_UNPACKED = re.compile(r"values to unpack \(expected (\d+)")


def advised(error: Exception | SystemExit, stage: str) -> SymgradError:
    """The error as one of symgrad's, with what to do about it where that is known."""
    found = as_symgrad_error(error, stage)
    found.hint = found.hint or hint_for(error, stage)
    return found


def hint_for(error: BaseException, stage: str) -> str:
    """What to do about an exception; empty where nothing more is known than what it says."""
    if isinstance(error, AttributeError) and error.name:
        return _for_attribute(error.obj, error.name)
    if isinstance(error, ValueError) and (found := _UNPACKED.search(str(error))):
        return _for_saved(error, int(found[1]))
    if isinstance(error, TypeError) and "'NoneType'" in str(error) and stage == "backward":
        return _for_none(error)
    return ""


def _for_attribute(value: Any, name: str) -> str:
    """What an object has in the place of an attribute that it lacks."""
    if isinstance(value, Context):
        own = list(attributes_of(value))
        meant = difflib.get_close_matches(name, own, 1)
        known = f"forward sets {listed(f'ctx.{one}' for one in own)}" if own else ""
        said = known or "forward sets no attribute of ctx"
        return f"{said}; did you mean ctx.{meant[0]}?" if meant else f"{said}: set ctx.{name} there"
    if type(value).__name__ == "_OpNamespace":
        return f"import what registers the operation, or {REFERENCE.format('calls it')}"
    if isinstance(value, ModuleType):
        return _removed(name, value.__name__) or near(name, value, f"{value.__name__}.")
    return near_method(name) if isinstance(value, SymbolicTensor) else ""


def near_method(name: str) -> str:
    """``did you mean .sigmoid?`` for a method that tensors lack; empty where none is near."""
    session = active()
    guest = None if session is None else session.guest
    if guest is not None and (said := _removed(name, guest.library)):
        return said
    return near(name, SymbolicTensor if guest is None else guest.public(parameter=False), ".")


def _removed(name: str, library: str) -> str:
    """What stands in the place of a function that a library had once; empty for all else."""
    session = active()
    guest = None if session is None else session.guest
    if guest is None or guest.library != library or name not in guest.removed:
        return ""
    return f"{library} has removed {name}: call {guest.removed[name]}"


@lru_cache
def near(name: str, holder: Any, before: str) -> str:
    """The public name of a module or a class that is nearest to another; empty for none."""
    names = [one for one in dir(holder) if not one.startswith("_")]
    found = difflib.get_close_matches(name, names, 1)
    return f"did you mean {before}{found[0]}?" if found else ""


def _for_saved(error: BaseException, expected: int) -> str:
    """What forward saved, where backward takes ``saved_tensors`` apart into another number."""
    frame, line = _last_frame(error)
    if frame is None:
        return ""
    text = linecache.getline(frame.f_code.co_filename, line)
    ctx = next((one for one in frame.f_locals.values() if isinstance(one, Context)), None)
    if ctx is None or "saved_tensors" not in text:
        return ""
    state = state_of(ctx)
    if not state.saved_at:
        return "forward saves no tensor: call ctx.save_for_backward there"
    *before, last = state.saved_at
    said = f"forward saves {counted(len(state.saved), 'tensor')} (line {last.line})"
    if before:
        earlier = listed(f"line {one.line}" for one in before)
        return f"{said}, in the place of those of {earlier}: save all of them in one call"
    return f"{said}, and backward reads {expected}"


def _for_none(error: BaseException) -> str:
    """Which of backward's own variables may be the None that it computes with."""
    frame, line = _last_frame(error)
    if frame is None:
        return ""
    text = linecache.getline(frame.f_code.co_filename, line)
    words = dict.fromkeys(re.findall(r"(?<![\w.])([^\W\d]\w*)(\.\w+)?", text))
    none = [
        name + part for name, part in words
        if name in frame.f_locals and _is_none(frame.f_locals[name], part[1:])
    ]  # fmt: skip
    return f"{listed(none)} {'are' if none[1:] else 'is'} None here" if none else ""


def _is_none(value: Any, attribute: str) -> bool:
    """Is it None, or the attribute that is set on a ctx?"""
    if not attribute:
        return value is None
    return isinstance(value, Context) and attributes_of(value).get(attribute, 0) is None


def _last_frame(error: BaseException) -> tuple[FrameType | None, int]:
    """The innermost frame of the program that an error passed, and its line."""
    found: tuple[FrameType | None, int] = None, 0
    trace = error.__traceback__
    while trace is not None:
        if not is_in(trace.tb_frame, NOT_THE_PROGRAM):
            found = trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next
    return found


def listed(names: Iterable[str]) -> str:
    """``a, b and c``."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
