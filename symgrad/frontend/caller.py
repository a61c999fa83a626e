"""Whose code calls symgrad: the frames of Python above a call, and the user's line among them.

In: the stack.  Out: the frame that asks, its location, or a warning at its line.
"""

from __future__ import annotations

import builtins
import dis
import functools
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, FrameType

from symgrad.errors import Location

_OURS = (__name__.partition(".")[0] + ".",)
_BENEATH = (
    *_OURS, "torch.", "weakref.", "_weakrefset.", "copy.", "abc.", "functools.", "jax.",
    "importlib.",
)  # fmt: skip
"""Packages between the user's line and ours: these hand on what they are called with."""
_LOOKING = (*_OURS, "inspect.", "functools.", "contextlib.")
_LOADING = (
    "torch.", "torchgen.", "sympy.", "importlib.", "_frozen_importlib.",
    "_frozen_importlib_external.", "linecache.", "warnings.", "dataclasses.", "jax.",
)  # fmt: skip
"""Libraries, and what imports them, that look at frames for themselves."""
_LIBRARIES = (
    "numpy.", "sympy.", "abc.", "functools.", "inspect.", "weakref.", "copy.", "typing.", "jax.",
    "jaxlib.", "opt_einsum.",
)  # fmt: skip
NOT_THE_PROGRAM = (*_OURS, *_LIBRARIES)
_TRACING = "symgrad.frontend.case"
"""The module that calls forward and backward."""
_CACHING = ("einops.",)
"""Libraries that keep results by sizes, and do without where a size has no hash."""
_BETWEEN = ("abc", "symgrad.frontend.conversions", "symgrad.tensor.methods")
"""Modules that ask on behalf of their callers."""


def module_of(frame: FrameType | None) -> str:
    """The name of the module whose code a frame runs."""
    return "" if frame is None else frame.f_globals.get("__name__") or ""


def is_in(frame: FrameType, packages: tuple[str, ...]) -> bool:
    """Does a frame run code of one of these packages?  Each name ends in a dot."""
    return f"{module_of(frame)}.".startswith(packages)


def user_frame(ours: tuple[str, ...] = _BENEATH) -> FrameType | None:
    """The innermost frame that is in none of ``ours``."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_in(frame, ours):
        frame = frame.f_back
    return frame


def may_handle() -> bool:
    """Is what is raised here within a ``try`` or a ``with`` of the program that is traced?"""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and module_of(frame) != _TRACING:
        if not is_in(frame, NOT_THE_PROGRAM) and is_guarded(frame.f_code, frame.f_lasti):
            return True
        frame = frame.f_back
    return False


def is_guarded(code: CodeType, place: int) -> bool:
    """Does an instruction stand where an exception is caught?  Unknown where: anywhere."""
    if sys.version_info < (3, 11):
        return any(one.opname.startswith("SETUP_") for one in dis.get_instructions(code))
    return any(one.start <= place < one.end for one in dis.Bytecode(code).exception_entries)


def importing() -> bool:
    """Does a library ask of itself, as torch does while it imports or registers a part of it?

    What it learns is the same for all calls.  A frame of the program's that is called by a library
    is the program's.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_in(frame, _LOOKING):
        frame = frame.f_back
    return frame is not None and is_in(frame, _LOADING)


def frame_location(frame: FrameType | None) -> Location | None:
    """The line that a frame is at."""
    if frame is None:
        return None
    return Location.of(frame.f_code, frame.f_lasti, frame.f_lineno)


_placed: ContextVar[Location | None] = ContextVar("symgrad_placed", default=None)


@contextmanager
def placed(location: Location | None) -> Iterator[None]:
    """A block that does what stands in another line: one of a program that was traced before."""
    token = _placed.set(location or _placed.get())
    try:
        yield
    finally:
        _placed.reset(token)


def place() -> Location | None:
    """The line of the innermost ``placed``; None outside of all."""
    return _placed.get()


def here() -> Location | None:
    """The user's line that called into symgrad."""
    return _placed.get() or frame_location(user_frame())


def warn_user(message: str) -> None:
    """Warn, at the user's line that called into symgrad."""
    place = here()
    file, line = (place.file, place.line) if place else ("<symgrad>", 0)
    warnings.warn_explicit(message, UserWarning, file, line)


def _asking(frame: FrameType | None) -> FrameType | None:
    while frame is not None and module_of(frame) in _BETWEEN:
        frame = frame.f_back
    return frame


def asker(depth: int = 2) -> FrameType | None:
    """The frame that asks, if it is the program's: not ours, and of no library that we call."""
    frame = _asking(sys._getframe(depth))
    return None if frame is None or is_in(frame, NOT_THE_PROGRAM) else frame


def asks_for_a_class(frame: FrameType) -> bool:
    """Is it the program that asks, and no library on its behalf, as torch's C code does?

    It names what asks, or has a ``case`` of a class.
    """
    code, known = frame.f_code, frame.f_globals
    if is_in(frame, _BENEATH):
        return False
    called = (known.get(name, getattr(builtins, name, None)) for name in code.co_names)
    return "__class__" in code.co_names or isinstance in called or _has_cases(code)


@functools.cache
def _has_cases(code: CodeType) -> bool:
    return any(one.opname == "MATCH_CLASS" for one in dis.get_instructions(code))


def asked_by_a_cache(depth: int = 2) -> bool:
    """Does a library ask that keeps results by sizes, and does without where these have no hash?"""
    frame = _asking(sys._getframe(depth))
    return frame is not None and is_in(frame, _CACHING)


def asked_by_symgrad(frame: FrameType | None) -> bool:
    """Does code of ours ask, directly or through ``isinstance`` with an abstract class?"""
    frame = _asking(frame)
    return frame is not None and is_in(frame, _OURS)
