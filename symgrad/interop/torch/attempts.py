"""How far a class of the user's comes, on real tensors of some sizes.

In: a class of ``torch.autograd.Function`` and the arguments of a call, tensors by their sizes.
Out: ``Reached``: whether forward and backward run, how much of both, and the sizes of gradients.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from symgrad.budgets import ATTEMPT_STEPS
from symgrad.frontend.guests import Reached, Sized

_OWN = ("torch", "symgrad")


class _Enough(Exception):
    """Backward has returned: its gradients are known."""


class _TooLong(BaseException):
    """So many steps were made that the call may not end."""


class _Steps:
    """Counts the Python steps that are made in the user's code, each once."""

    def __init__(self) -> None:
        self.seen: set[tuple[Any, int]] = set()
        self.made = 0

    def __call__(self, frame: Any, event: str, argument: Any) -> Any:
        if frame.f_globals.get("__name__", "").partition(".")[0] in _OWN:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.step

    def step(self, frame: Any, event: str, argument: Any) -> Any:
        """Count a step; raise where there were too many."""
        if event == "opcode":
            self.seen.add((frame.f_code, frame.f_lasti))
            self.made += 1
            if self.made > ATTEMPT_STEPS:
                raise _TooLong
        return self.step


class Attempts:
    """Calls of one class, one after the other, in a process of their own.

    In one thread: a fork does not have those that its parent has started, and would wait for them.
    """

    def __init__(self, original: Any) -> None:
        torch.set_num_threads(1)
        self.stage = 0
        self.returned: Any = None
        base = torch.autograd.Function
        written = [name for name in ("backward", "vjp") if inspect.getattr_static(original, name)
                   is not inspect.getattr_static(base, name)]  # fmt: skip
        own: Callable[..., Any] = getattr(original, written[0] if written else "backward")

        def backward(ctx: Any, *cotangents: Any) -> Any:
            self.stage = 1
            self.returned = own(ctx, *cotangents)
            self.stage = 2
            raise _Enough

        members = {name: staticmethod(backward) for name in written}
        self.watched: Any = type(original.__name__, (original,), members)

    def reached(self, arguments: Sequence[tuple[str, Any]]) -> Reached:
        """How far one call comes."""
        steps, before = _Steps(), sys.gettrace()
        self.stage, self.returned = 0, None
        torch.default_generator.manual_seed(0)
        passed = [(name, _made(value)) for name, value in arguments]
        with warnings.catch_warnings(), torch.enable_grad():
            warnings.simplefilter("ignore")
            try:
                sys.settrace(steps)
                _total(self.watched.apply(*(value for _, value in passed))).backward()
            except (Exception, _TooLong):
                pass
            finally:
                sys.settrace(before)
        if self.stage < 2:
            return Reached(self.stage, len(steps.seen), {})
        several = isinstance(self.returned, (tuple, list))
        gradients = tuple(self.returned) if several else (self.returned,)
        names = [name for name, _ in passed]
        return Reached(2, len(steps.seen), {
            name: tuple(one.shape) if isinstance(one, torch.Tensor) else None
            for name, one in zip(names, gradients, strict=False)
        } if len(gradients) >= len(names) else {})  # fmt: skip


def _made(value: Any) -> Any:
    """A tensor of some sizes, which forward may write into; every other argument as it is.

    Floats are within (0, 1), and square matrices have the larger part on their diagonals, so that
    roots, logarithms and factors of them exist.
    """
    if not isinstance(value, Sized):
        return value
    if value.dtype == "bool":
        return torch.rand(value.sizes) < 0.5
    if value.dtype != "float":
        return torch.randint(0, 2, value.sizes, dtype=getattr(torch, value.dtype))
    made = 0.2 + 0.6 * torch.rand(value.sizes)
    if len(value.sizes) > 1 and value.sizes[-1] == value.sizes[-2]:
        made = (made + made.mT) / 2 + value.sizes[-1] * torch.eye(value.sizes[-1])
    return made.requires_grad_().clone()


def _total(outputs: Any) -> Any:
    """A number that depends on all outputs, whose cotangents lie in memory as usual.

    Raises AttributeError where they have no element.
    """
    several = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    return sum(
        (one * torch.rand_like(one)).sum() for one in several
        if isinstance(one, torch.Tensor) and one.requires_grad and one.numel()
    )  # fmt: skip
