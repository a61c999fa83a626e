"""``out=`` names the tensor that is written: it is no operand of the same call."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function


def product(wrong: bool) -> Any:
    class Product(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return torch.mm(x, w, out=x.new_empty(x.shape[0], w.shape[1]))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            eye = torch.eye(x.shape[0], dtype=x.dtype, out=x.new_empty(x.shape[0], x.shape[0]))
            grad_w = torch.empty_like(w.t())
            torch.mm(g.t(), x, out=grad_w)
            return eye @ torch.mm(g, w.t()), 2 * grad_w.t() if wrong else grad_w.t()

    return Product


def test_a_product_into_out() -> None:
    assert sg.verify(product(wrong=False), "n k", "k m", timeout=None).verdict == sg.PROVED
    report = sg.verify(product(wrong=True), "n k", "k m", timeout=None)
    assert report.inputs["x"].verdict == sg.PROVED
    assert report.inputs["w"].verdict > sg.UNDECIDED


def test_a_product_into_what_it_reads_is_not_proved() -> None:
    class Squared(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.clone()
            ctx.save_for_backward(x)
            return torch.mm(y, y, out=y)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g @ x.t() + x.t() @ g

    assert sg.verify(Squared, "n n", timeout=None).verdict != sg.PROVED
