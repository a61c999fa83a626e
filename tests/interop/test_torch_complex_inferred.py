"""Arguments that are complex, as what is done with them says: nobody states it."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import SymgradError  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function


class Angle(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return torch.atan2(x.imag, x.real)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        g = g / (x.real.square() + x.imag.square())
        return torch.complex(-x.imag * g, x.real * g)


class Pairs(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return 2 * torch.view_as_real(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return torch.view_as_complex(2 * g.contiguous())


class AskedInBackward(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return torch.angle(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return torch.complex(-x.imag * g, x.real * g) / (x.real.square() + x.imag.square())


class Exponential(Function):
    @staticmethod
    def forward(ctx: Any, z: Any) -> Any:
        y = torch.exp(1j * z)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return g * (1j * y).conj()


class OfGradient(Function):
    @staticmethod
    def forward(ctx: Any, z: Any) -> Any:
        return 2 * z

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * torch.complex(g.real, g.imag)


class Product(Function):
    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.save_for_backward(a, b)
        return (a * b.conj()).imag

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        a, b = ctx.saved_tensors
        return 1j * g * b, -1j * g * a


class WrongProduct(Product):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        a, b = ctx.saved_tensors
        return 1j * g * b, 1j * g * a


class OfReal(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.conj() * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * g


RIGHT = (Angle, Pairs, AskedInBackward, Exponential, OfGradient, Product)


@pytest.mark.parametrize("function", RIGHT, ids=lambda one: one.__name__)
def test_an_argument_is_complex_where_a_real_one_is_refused(function: Any) -> None:
    report = sg.verify(function)
    assert report.verdict == sg.PROVED, str(report)
    assert "symgrad inferred complex" in str(report)


def test_a_mistake_of_such_a_class_is_found() -> None:
    report = sg.verify(WrongProduct, suggest=False)
    assert [one.verdict for one in report.inputs.values()] == [sg.PROVED, sg.REFUTED]


def test_what_a_real_argument_takes_stays_real() -> None:
    report = sg.verify(OfReal)
    assert report.verdict == sg.PROVED
    assert "complex x[" not in str(report)


@pytest.mark.parametrize("function", [Angle, Pairs], ids=lambda one: one.__name__)
def test_forward_of_a_stated_real_one_ends_as_in_torch(function: Any) -> None:
    with pytest.raises(RuntimeError) as torch_says:
        function.apply(torch.ones(2, 3))
    with pytest.raises(SymgradError) as found:
        sg.verify(function, "n m")
    assert str(torch_says.value) in str(found.value)
    assert "c64[n m]" in str(found.value)


def test_backward_of_a_stated_real_one_is_refuted() -> None:
    report = sg.verify(AskedInBackward, "n m")
    assert report.verdict == sg.REFUTED
    assert "imag is not implemented for tensors with non-complex dtypes" in str(report)
