"""Errors of the user's own code while it is traced.

In: an exception that left forward or backward.  Out: a ``SymgradError`` that says where.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from symgrad.errors import Location, OperationError, ShapeError, SymgradError, TraceError

_TOOLS = ("numpy", "sympy")
_REFUSALS = (ValueError, AssertionError, RuntimeError, IndexError)


def blame(error: BaseException) -> tuple[Location | None, bool]:
    """The innermost line outside symgrad that an exception passed, and whether it arose there.

    What NumPy and SymPy raise arose where they were called, and a name that is not there where it
    was asked for.
    """
    location: Location | None = None
    own = False
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__") or ""
        code = trace.tb_frame.f_code
        root, _, _ = module.partition(".")
        asked_for = root == "symgrad" and code.co_name == "__getattr__"
        if root not in _TOOLS and not asked_for:
            own = root != "symgrad"
            if own and not code.co_filename.startswith("<frozen "):
                location = Location.of(code, trace.tb_lasti, trace.tb_lineno)
        trace = trace.tb_next
    return location, own


def as_symgrad_error(error: Exception, stage: str) -> SymgradError:
    """The error itself where it is ours; otherwise one that quotes it and says where it arose."""
    location, own = blame(error)
    if isinstance(error, SymgradError):
        error.location = error.location or location
        return error
    text = str(error) or type(error).__name__
    kind = TraceError if own else OperationError
    found = kind(f"{stage} raised {type(error).__name__}: {text}", location=location)
    found.__cause__ = error
    return found


@contextmanager
def told(stage: str) -> Iterator[None]:
    """Whatever goes wrong inside leaves as a ``SymgradError``."""
    try:
        yield
    except SymgradError:
        raise
    except Exception as error:
        found = as_symgrad_error(error, stage)
        raise found from found.__cause__


def refuses_sizes(error: SymgradError) -> bool:
    """Does forward not accept the sizes of this case: shapes that do not fit, or its own raise?"""
    if isinstance(error, ShapeError):
        return True
    cause = error.__cause__
    return isinstance(cause, _REFUSALS) and blame(cause)[1]
