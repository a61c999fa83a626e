"""``addmm`` and its kin: with ``beta=0`` nothing of the input counts, written or not."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg
from symgrad.errors import ShapeError


def lora(right: bool) -> type[sg.Function]:
    """Gradients of a product written into memory that nobody wrote."""

    class Product(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any, scale: float) -> Any:
            ctx.save_for_backward(x, w)
            ctx.scale = scale
            return scale * (x @ w)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            dx, dw = sg.empty_like(x), sg.empty_like(w)
            dx.addmm_(g, w.t(), alpha=ctx.scale, beta=0)
            dw.addmm_(x.t(), g, alpha=ctx.scale, beta=0 if right else 1)
            return dx, dw, None

    return Product


def test_what_is_written_with_beta_0_may_be_unwritten_before() -> None:
    shapes = ("n m", "m k")
    assert str(sg.verify(lora(True), *shapes, static={"scale": 2.0}).verdict) == "PROVED"
    report = sg.verify(lora(False), *shapes, static={"scale": 2.0})
    assert str(report.verdict) == "UNDECIDED"
    assert "nobody wrote" in str(report)


@pytest.mark.parametrize(("name", "shapes"), [
    ("addmm", ("n m", "n k", "k m")), ("baddbmm", ("b n m", "b n k", "b k m")),
    ("addmv", ("n", "n k", "k")), ("addr", ("n m", "n", "m")), ("addmm", ("m", "n k", "k m")),
])  # fmt: skip
def test_the_input_has_no_gradient(name: str, shapes: tuple[str, ...]) -> None:
    class Sum(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(x)
            return getattr(sg, name)(x, a.detach(), b.detach(), beta=0)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return sg.zeros_like(*ctx.saved_tensors), None, None

    constant = {"a": "constant", "b": "constant"}
    assert str(sg.verify(Sum, *shapes, assume=constant).verdict) == "PROVED"


def test_the_input_has_to_fit_all_the_same() -> None:
    with pytest.raises(ShapeError):
        sg.verify(lora_of_wrong_shape(), "n m", "m k")


def lora_of_wrong_shape() -> type[sg.Function]:
    """Memory of another shape."""

    class Wrong(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            return sg.addmm(sg.empty(x.shape[0], w.shape[1] + 1), x, w, beta=0)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return None, None

    return Wrong
