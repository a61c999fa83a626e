"""Gradients of arguments with a default: PyTorch takes them where they are passed as tensors."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.frontend.plain import with_values  # noqa: E402
from symgrad.shapes import requested  # noqa: E402
from tests.interop.test_torch_left_out import Longer, Scaled, Shifted  # noqa: E402

pytestmark = pytest.mark.peers

FUNCTION: Any = torch.autograd.Function
PASSED = "factor is passed as a tensor (backward fails where it is left out)"


class Weighted(FUNCTION):
    """Backward returns a gradient for factor, which no call without it takes."""

    @staticmethod
    def forward(ctx: Any, x: Any, factor: float = 2.0, offset: float = 0.5) -> Any:
        ctx.save_for_backward(x)
        ctx.factor, ctx.offset = factor, offset
        return x * factor * offset

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * ctx.factor * ctx.offset, (g * x).sum() * ctx.offset, None


class WrongInX(Weighted):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return (g * ctx.factor, *Weighted.backward(ctx, g)[1:])


class WrongInFactor(Weighted):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return Weighted.backward(ctx, g)[0], (g * x).sum(), None


class RightForTheDefault(Weighted):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return (g * ctx.factor * 0.5, *Weighted.backward(ctx, g)[1:])


class BehindATest(FUNCTION):
    """The sign of the gradient of bias is wrong for one way."""

    @staticmethod
    def forward(ctx: Any, x: Any, way: str = "up", bias: float = 1.0) -> Any:
        return x + bias if way == "up" else x - bias

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, None, g.sum()


MOST = torch.tensor(2.0**16)


class Spike(FUNCTION):
    """The default is a tensor, and both gradients are those of a surrogate."""

    @staticmethod
    def forward(ctx: Any, x: Any, threshold: float = 1.0, most: Any = MOST) -> Any:
        ctx.save_for_backward(x)
        ctx.threshold = threshold
        count = (x >= threshold) * torch.floor(x / threshold)
        return count - (count - most) * (count > most).float()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        slope = torch.exp(-(x - ctx.threshold).abs()) / ctx.threshold
        return g * slope, -g * slope * x / ctx.threshold, None


class Everywhere(FUNCTION):
    """More gradients than there are arguments."""

    @staticmethod
    def forward(ctx: Any, x: Any, factor: float = 2.0) -> Any:
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * ctx.factor, (g * x).sum(), g


def test_what_has_a_gradient_is_passed() -> None:
    report = sg.verify(Weighted, suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert set(report.inputs) == {"x", "factor"}
    for one in report.inputs.values():
        assert PASSED in map(str, (found.text for found in one.conditions)), str(report)
    assert "for all real offset" in str(report)
    x = torch.tensor([1.5, -2.0], dtype=torch.float64, requires_grad=True)
    factor = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *args: Weighted.apply(*args, 0.5), (x, factor))
    with pytest.raises(RuntimeError, match="incorrect number of gradients"):
        Weighted.apply(x).sum().backward()
    with pytest.raises(RuntimeError, match="different than None"):
        Weighted.apply(x, 3.0).sum().backward()


@pytest.mark.parametrize(
    ("judged", "wrong"),
    [(WrongInX, {"x"}), (WrongInFactor, {"factor"}), (RightForTheDefault, {"x"}),
     (BehindATest, {"bias"})],
)  # fmt: skip
def test_a_mistake_is_one_of_the_gradient(judged: Any, wrong: set[str]) -> None:
    report = sg.verify(judged, suggest=False)
    found = {name for name, one in report.inputs.items() if one.verdict == sg.REFUTED}
    assert found == wrong, str(report)
    assert "incorrect number" not in str(report)


def test_a_surrogate_of_what_is_passed_is_one() -> None:
    report = sg.verify(Spike, suggest=False)
    assert {name: str(one.verdict) for name, one in report.inputs.items()} == {
        "x": "SURROGATE?", "threshold": "SURROGATE?"
    }, str(report)  # fmt: skip
    assert "threshold is passed as a tensor" in str(report)


def test_gradients_of_no_argument_are_refuted() -> None:
    report = sg.verify(Everywhere, suggest=False)
    assert report.verdict == sg.REFUTED
    assert "3 gradients" in " ".join(str(report).split())


@pytest.mark.parametrize("judged", [Scaled, Shifted, Longer])
def test_what_returns_none_needs_no_tensor(judged: Any) -> None:
    assert "passed as a tensor" not in str(sg.verify(judged, suggest=False))


class Summed(FUNCTION):
    """The gradient of b is that of a number; the gradient of x is right for offset = 0.5."""

    @staticmethod
    def forward(ctx: Any, x: Any, b: Any, offset: float = 0.5) -> Any:
        ctx.save_for_backward(x, b)
        ctx.offset = offset
        return x * b * offset

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, b = ctx.saved_tensors
        return g * b * 0.5, (g * x).sum().expand_as(b) * ctx.offset, None


def test_other_values_are_those_of_the_shapes_that_fit_as_well() -> None:
    request = with_values(requested(Summed), {"offset": 3.0})
    assert request.guess is not None
    near = request.guess.fitting
    assert near is not None
    assert {one.name: one.value for one in near.arguments}["offset"] == 3.0
