"""What stands around the trace of a Function of torch: modes, and what torch does not ask about.

In: a trace.  Out: a block in which torch's functions are those of the trace, in this thread.

torch asks a mode before nearly every function.  It does not ask before ``Function.apply``, calls of
scripted functions, and ``is_grad_enabled``: these are replaced in the whole process while a trace
is in progress anywhere, and are torch's own for whoever is not traced.
"""

from __future__ import annotations

import inspect
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from symgrad.frontend.caller import asked_by_symgrad, here, module_of
from symgrad.frontend.function import Function, _apply
from symgrad.frontend.guests import Call, Measured, taken
from symgrad.frontend.questions import questions
from symgrad.frontend.request import Request
from symgrad.frontend.session import Session, active
from symgrad.interop.torch import calls, legacy
from symgrad.interop.torch.attempts import Attempts
from symgrad.interop.torch.constants import inward
from symgrad.interop.torch.dtypes import ours
from symgrad.interop.torch.measuring import measured, uncompiled
from symgrad.interop.torch.removed import REMOVED
from symgrad.interop.torch.signatures import kinds_of
from symgrad.interop.torch.tensors import variant


class _Mode(TorchFunctionMode):
    """Hands every function of torch to the trace."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What the function gives."""
        return calls.call(func, args, kwargs or {})


_NAMED = re.compile(r"\bsg\.(\w+(?:\.\w+)*)")


def _of_torch(match: re.Match[str]) -> str:
    """``torch.where`` for ``sg.where``; what torch has not is symgrad's."""
    found: Any = torch
    for name in match[1].split("."):
        found = getattr(found, name, None)
    return f"{'symgrad' if found is None else 'torch'}.{match[1]}"


class TorchGuest:
    """torch, while one of its Functions is traced."""

    repairs = True
    library = "torch"
    divides_by_zero = False
    spawns = False
    shapes_hint = ""
    strided = True
    narrow: tuple[str, ...] = ("float16", "bfloat16")
    watches_dtypes = True
    values = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.device("cpu"))
    removed: Mapping[str, str] = REMOVED

    def variant(self, kind: type) -> type:
        """The class to make tensors and numbers of."""
        return variant(kind)

    def public(self, *, parameter: bool) -> type:
        """``torch.Tensor`` or ``torch.nn.Parameter``."""
        found: type = torch.nn.Parameter if parameter else torch.Tensor
        return found

    def context(self, function: Any) -> type | None:
        """The class of nodes that torch has made of a Function."""
        return getattr(getattr(function, "symgrad_original", None), "_backward_cls", None)

    def shape(self) -> type:
        """``torch.Size``."""
        found: type = torch.Size
        return found

    def device(self) -> type:
        """``torch.device``."""
        found: type = torch.device
        return found

    def stand_in(self, value: Any) -> Any:
        """What answers for a class of tensors of one dtype, such as ``torch.FloatTensor``."""
        return legacy.stand_in(value)

    @contextmanager
    def running(self, session: Session) -> Iterator[None]:
        """A block in which torch's functions are those of the trace."""
        with ExitStack() as stack:
            session.dtype = ours(torch.get_default_dtype())
            stack.enter_context(_unrecorded())
            stack.enter_context(_patches)
            stack.enter_context(uncompiled())
            stack.enter_context(_Mode())
            yield

    def worded(self, text: str) -> str:
        """The text with torch's functions in the place of symgrad's."""
        return _NAMED.sub(_of_torch, text)

    def kinds_of(self, name: str) -> Mapping[int | str, str]:
        """What the arguments of a function of torch's are, as its signature says."""
        return kinds_of(name)

    def returned(self, value: Any) -> Any:
        """What forward or backward returned, torch's own tensors as constants."""
        return inward(value)

    def measured(self, original: Any, call: Call) -> Measured:
        """What the class itself gives in a real call.  Raises NotMeasured."""
        return measured(original, call)

    def measured_all(self, original: Any, calls: Sequence[Call]) -> list[Measured | str]:
        """No calls at once: each is made in a fork."""
        raise NotImplementedError

    def attempts(self, original: Any) -> Attempts:
        """What makes calls of the class on tensors of some sizes."""
        return Attempts(original)

    def completed(self, request: Request, report: Any, rank: int | None) -> Any:
        """The report: backward is all there is to judge.  A surrogate is said in torch's names."""
        inputs = {
            name: replace(
                one, surrogate=self.worded(one.surrogate),
                surrogate_code=self.worded(one.surrogate_code),
                conditions=self._conditions(one.conditions),
                suggested_under=self._conditions(one.suggested_under),
            )
            for name, one in report.inputs.items()
        }  # fmt: skip
        return replace(report, inputs=inputs)

    def _conditions(self, found: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(replace(one, text=self.worded(one.text)) for one in found)


@contextmanager
def _unrecorded() -> Iterator[None]:
    """A block in which torch records nothing of its own tensors."""
    before = torch._C.is_grad_enabled()
    torch._C._set_grad_enabled(False)
    try:
        yield
    finally:
        torch._C._set_grad_enabled(before)


GUEST = TorchGuest()


def is_traced_here() -> bool:
    """Is a Function of torch traced in this thread?"""
    session = active()
    return session is not None and session.guest is GUEST


# -- what torch does not ask about


class _Patches:
    """The replaced functions of torch's; the last trace to end puts them back."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.undo: list[Callable[[], None]] = []

    def __enter__(self) -> None:
        with self.lock:
            if not self.depth:
                self.undo = [_replaced(*one) for one in _replacements()]
            self.depth += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.depth -= 1
            if not self.depth:
                for one in reversed(self.undo):
                    one()


_patches = _Patches()


def _replaced(owner: Any, name: str, new: Any) -> Callable[[], None]:
    names = vars(owner)
    old = names[name] if name in names else inspect.getattr_static(owner, name)
    setattr(owner, name, new)
    return lambda: setattr(owner, name, old)


def _replacements() -> Iterator[tuple[Any, str, Any]]:
    """What is replaced: where, its name, by what."""
    own_apply = torch.autograd.Function.__dict__["apply"].__func__

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_traced_here():
            return own_apply(cls, *args, **kwargs)
        function: type[Function] = taken(cls)
        return _apply(function, inward(args), inward(kwargs))

    yield torch.autograd.Function, "apply", classmethod(apply)
    scripted = torch._C.ScriptFunction
    own_call = scripted.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        inner = getattr(self, "_torchdynamo_inline", None) if is_traced_here() else None
        return own_call(self, *args, **kwargs) if inner is None else inner(*args, **kwargs)

    yield scripted, "__call__", call
    own_enabled = torch.is_grad_enabled

    def is_grad_enabled() -> bool:
        return _recording() if is_traced_here() else own_enabled()

    yield torch, "is_grad_enabled", is_grad_enabled
    own_device = torch.cuda.current_device

    def current_device() -> int:
        if not is_traced_here() or torch.cuda.is_available():
            return int(own_device())
        return 0  # where there is none, the verdict is for machines that have one

    yield torch.cuda, "current_device", current_device
    yield from legacy.replacements()


def _recording() -> bool:
    """Does torch record here?  Not in forward; in backward, the trace splits on it."""
    session, known = active(), questions()
    if known is not None and not known.backward and known.mode is not None:
        return known.mode
    history = session.history if session is not None else None
    usual = history is not None and history.following
    now = history is not None and history.following and history.recording
    frame = sys._getframe(2)
    if known is None or module_of(frame).startswith("torch.") or asked_by_symgrad(frame):
        return now
    return now if now != usual else known.recording(here())
