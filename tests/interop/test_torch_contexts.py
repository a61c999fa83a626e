"""What is said through ctx by assignment, and what torch takes of forward: torch is the oracle.

In: a Function of x with the outputs 2x and 3x.  A program that raises in each call of torch is not
PROVED; one whose assignment does what the method does is judged as with the method.
"""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import ProtocolError  # noqa: E402

pytestmark = pytest.mark.peers

FUNCTION: Any = torch.autograd.Function


class Absent(FUNCTION):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.materialize_grads = False
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        return 2 * g + 3 * h


class AbsentAsked(Absent):
    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        return (0 if g is None else 2 * g) + (0 if h is None else 3 * h)


class Constant(FUNCTION):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 3
        ctx.non_differentiable = (y,)
        return x * 2, y

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        return 2 * g


class Saved(FUNCTION):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.to_save = (x,)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * g * x


class ReadBack(Saved):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g * ctx.to_save[0]


class ListReturned(FUNCTION):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return [x * 2, x * 3]

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        return 2 * g + 3 * h


class DirtyNotReturned(FUNCTION):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g


class MarkedList(Constant):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 3
        ctx.mark_non_differentiable([y])
        return x * 2, y


class InComprehension(FUNCTION):
    @staticmethod
    def forward(ctx: Any, input: Any) -> Any:
        return sum([input * k for k in range(3)])

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 3 * g


class Asks(FUNCTION):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 3 * g * sum([len(input("?")) * k for k in (0,)] or [1])


def gradient(function: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = function.apply(x * 1)
    first = y[0] if isinstance(y, (tuple, list)) else y
    return torch.autograd.grad(first.sum(), x)[0]


@pytest.mark.parametrize("function", [AbsentAsked, Constant, Saved, InComprehension])
def test_an_assignment_is_the_call_of_the_method(function: Any) -> None:
    gradient(function)
    assert str(sg.verify(function, "n").verdict) == "PROVED"


@pytest.mark.parametrize("function", [Absent, ReadBack, Asks])
def test_what_raises_in_torch_is_not_proved(function: Any) -> None:
    with pytest.raises((TypeError, OSError)):
        gradient(function)
    assert str(sg.verify(function, "n").verdict) != "PROVED"


@pytest.mark.parametrize("function", [ListReturned, DirtyNotReturned, MarkedList])
def test_what_torch_refuses_of_forward_is_an_error(function: Any) -> None:
    with pytest.raises(RuntimeError):
        gradient(function)
    with pytest.raises(ProtocolError):
        sg.verify(function, "n")
