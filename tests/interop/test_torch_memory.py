"""Memory that tensors exchange: judged where nobody else holds it, refused elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import SymgradError  # noqa: E402

pytestmark = [pytest.mark.peers, pytest.mark.slow]
Function: Any = torch.autograd.Function
OUTSIDE = torch.ones(1)


def viewless(x: Any, requires_grad: bool) -> Any:
    """The same elements in a tensor that is no view."""
    found = torch.empty((1,), dtype=x.dtype, device=x.device, requires_grad=requires_grad)
    found.data = x.data
    return found


class Viewless(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, requires_grad: Any) -> Any:
        return viewless(x, requires_grad)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, None


class ViewlessWrong(Viewless):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * g.sum(), None


class Set(Function):
    wrong = False

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        found = torch.empty(0, dtype=x.dtype)
        found.set_(x.clone())
        return found.mul_(x)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return (1 if cls.wrong else 2) * g * x


class SetWrong(Set):
    wrong = True


class WrittenThrough(Function):
    """What is written into the memory of the input is in the input, which forward does not say."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        viewless(x, False).mul_(2)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * g * x


class OfInput(Viewless):
    @staticmethod
    def forward(ctx: Any, x: Any, requires_grad: Any) -> Any:
        x.data = x.data * 2
        return x * 1


class OfSaved(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.twice = x * 2
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        found = g * ctx.twice
        ctx.twice.data = ctx.twice.data * 2
        return found


class OfCotangent(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        g.data = g.data * 1
        return g


class OfOutside(Viewless):
    @staticmethod
    def forward(ctx: Any, x: Any, requires_grad: Any) -> Any:
        OUTSIDE.data = x.data
        return x * 1


class OfComplex(Function):
    """The real part of the square of a complex number, in exchanged memory."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        z = torch.complex(x, w)
        found = torch.empty_like(z)
        found.data = z * z
        return found.real * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        return 2 * g * x, -2 * g * w


class OfComplexWrong(OfComplex):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        return 2 * g * x, 2 * g * w


class OfReal(OfComplex):
    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        found = torch.empty_like(x)
        found.data = torch.complex(x, w)
        return found.real * 1


def test_the_memory_of_complex_numbers_is_taken_over() -> None:
    assert sg.verify(OfComplex, "n; n").verdict == sg.PROVED
    assert sg.verify(OfComplexWrong, "n; n", suggest=False).verdict == sg.REFUTED


def test_real_memory_is_not_exchanged_with_complex_memory() -> None:
    with pytest.raises(SymgradError, match="exchanges real and complex numbers") as error:
        sg.verify(OfReal, "n; n", suggest=False)
    assert error.value.location is not None


@pytest.mark.parametrize("requires_grad", [True, False])
def test_the_memory_of_the_input_is_taken_over(requires_grad: bool) -> None:
    static = {"requires_grad": requires_grad}
    assert sg.verify(Viewless, "n m", static=static).verdict == sg.PROVED
    assert sg.verify(ViewlessWrong, "n m", static=static, suggest=False).verdict == sg.REFUTED


def test_the_memory_of_a_copy_is_written() -> None:
    assert sg.verify(Set, "n m").verdict == sg.PROVED
    assert sg.verify(SetWrong, "n m", suggest=False).verdict != sg.PROVED


def test_a_write_through_exchanged_memory_reaches_the_input() -> None:
    assert sg.verify(WrittenThrough, "n", suggest=False).verdict != sg.PROVED


@pytest.mark.parametrize("cls", [OfSaved, OfCotangent])
def test_memory_that_the_call_leaves_is_not_exchanged(cls: Any) -> None:
    report = sg.verify(cls, "n", suggest=False)
    assert report.verdict == sg.UNDECIDED
    assert "is exchanged by .data" in report.inputs["x"].reason


@pytest.mark.parametrize("cls", [OfInput, OfOutside])
def test_memory_from_outside_is_not_exchanged(cls: Any) -> None:
    with pytest.raises(SymgradError, match=r"is exchanged by .data|has from outside"):
        sg.verify(cls, "n", static={"requires_grad": False}, suggest=False)
