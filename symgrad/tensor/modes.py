"""Whether operations are recorded, and the default float dtype.

In: the user's choice.  Out: the same for everything that computes with tensors, per thread.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from symgrad.errors import ControlFlowError
from symgrad.frontend.caller import here
from symgrad.frontend.dtypes import as_dtype
from symgrad.frontend.session import active
from symgrad.ir.dtype import DType, float32
from symgrad.tensor.errors import TensorTypeError


class _State(threading.local):
    grad_enabled = True
    dtype = float32
    lifting = False
    levels: tuple[Any, ...] = ()


state = _State()
"""Of this thread.  ``lifting``: operations on tensors become part of the trace in progress.
``levels``: the derivatives of functions in progress (``functional/level.py``), outermost first."""


def lifted(tensor: Any) -> Any:
    """The input that stands for a tensor in the trace in progress, which lifts tensors."""
    session: Any = active()
    return session.lift(tensor)


def check_readable() -> None:
    """Raises ControlFlowError where a trace would take a tensor's values of today for constants."""
    if state.lifting:
        raise ControlFlowError(
            "the values of a tensor are read while a function of tensors is traced",
            location=here(), hint="compute with the tensor, and read values outside",
        )  # fmt: skip


def is_grad_enabled() -> bool:
    """Are operations recorded?  A trace that watches its program splits on it."""
    session = active()
    known = session.questions if session is not None else None
    if known is not None and state.grad_enabled:
        return known.recording(here())
    return state.grad_enabled


def get_default_dtype() -> DType:
    """The dtype of floats that are given without one."""
    return state.dtype


def set_default_dtype(dtype: Any) -> None:
    """Set the dtype of floats that are given without one.  Raises TensorTypeError."""
    found = as_dtype(dtype)
    if not found.is_float:
        raise TensorTypeError("only floating-point types are supported as the default type")
    state.dtype = found


class _GradMode:
    """A block, or a decorated function, in which recording is switched on or off."""

    mode = True

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """A block; the decorated function when there is one (``@no_grad`` without brackets)."""
        made = super().__new__(cls)
        if callable(function):
            made.__init__()  # type: ignore[misc]
            return made(function)
        return made

    def __init__(self) -> None:
        self._before: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        self._before.append((state.grad_enabled, _traced(self.mode)))
        state.grad_enabled = self.mode

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._restore()

    def _restore(self) -> None:
        state.grad_enabled, before = self._before.pop()
        _traced(before)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, run in such a block."""

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with type(self)._again(self):
                return function(*args, **kwargs)

        return wrapped

    def _again(self) -> _GradMode:
        return type(self)()


def _traced(mode: bool) -> bool:
    """Tell the trace in progress, if any, whether operations are recorded; say what was so far."""
    session = active()
    if session is None:
        return True
    if not mode:
        session.note_detached()
    if session.history is None:
        return True
    before, session.history.recording = session.history.recording, mode
    return before


class no_grad(_GradMode):
    """Nothing is recorded: a block, or a decorator."""

    mode = False


class enable_grad(_GradMode):
    """Operations are recorded: a block, or a decorator."""

    mode = True


class inference_mode(_GradMode):
    """As ``no_grad``; with ``mode=False`` nothing changes."""

    def __new__(cls, mode: Any = True) -> Any:
        """A block; the decorated function when there is one."""
        return super().__new__(cls, mode if callable(mode) else None)

    def __init__(self, mode: Any = True) -> None:
        super().__init__()
        self.mode = state.grad_enabled and not mode

    def _again(self) -> _GradMode:
        return inference_mode(not self.mode)


class set_grad_enabled(_GradMode):
    """Recording as ``mode`` says, from now on; until the end of the block, in one."""

    def __new__(cls, mode: bool) -> Any:
        """Not a decorator without brackets."""
        return object.__new__(cls)

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = bool(mode)
        self._before.append((state.grad_enabled, _traced(self.mode)))
        state.grad_enabled = self.mode

    def __enter__(self) -> None:
        state.grad_enabled = self.mode
        _traced(self.mode)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, run in such a block; the mode outside is what it was."""
        self._restore()
        return super().__call__(function)

    def _again(self) -> _GradMode:
        return set_grad_enabled(self.mode)
