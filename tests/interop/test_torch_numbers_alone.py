"""What is right for numbers alone, and for nothing that has axes, is refuted.

torch raises an error for a gradient that has fewer axes than its argument: it is not expanded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function


def reduced(forward: Callable[[Any], Any], gradient: Callable[[Any, Any], Any]) -> Any:
    """A class of these; ``gradient`` of the incoming gradient and the argument."""

    class Reduced(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return gradient(g, *ctx.saved_tensors)

    return Reduced


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "sum": (lambda x: x.sum(), lambda g, x: g),
    "squares": (lambda x: (x * x).sum(), lambda g, x: 2 * g * x.sum()),
    "mean": (lambda x: x.mean(), lambda g, x: g / x.numel()),
    "last": (lambda x: x.sum(-1), lambda g, x: g),
}


@pytest.mark.parametrize("name", CASES)
def test_a_gradient_without_the_axes_of_its_argument_is_refuted(name: str) -> None:
    function = reduced(*CASES[name])
    with pytest.raises(RuntimeError, match="invalid gradient"):
        function.apply(torch.ones(2, 3, requires_grad=True)).sum().backward()
    report = sg.verify(function, suggest=False)
    assert report.verdict is sg.REFUTED, str(report)
    assert "has shape" in str(report)


@pytest.mark.parametrize("name", CASES)
def test_such_a_gradient_is_right_where_a_number_is_stated(name: str) -> None:
    assert sg.verify(reduced(*CASES[name]), "[]").verdict is sg.PROVED


def test_what_takes_numbers_alone_is_proved_for_these() -> None:
    function = reduced(lambda x: x.view(()).sin(), lambda g, x: g * x.view(()).cos())
    assert sg.verify(function, suggest=False).verdict is sg.PROVED


def test_a_number_beside_a_tensor_is_one() -> None:
    class Scaled(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, scale: Any) -> Any:
            ctx.save_for_backward(x, scale)
            return x * scale

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, scale = ctx.saved_tensors
            return g * scale, (g * x).sum()

    report = sg.verify(Scaled, suggest=False)
    assert report.verdict is sg.PROVED, str(report)
    assert "scale[]" in str(report)
