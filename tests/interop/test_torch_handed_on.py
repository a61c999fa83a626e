"""Arguments that forward hands on to backward, demands something of, or computes with."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import SpecError  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function


class Projected(Function):
    """By a method of an object."""

    @staticmethod
    def forward(ctx: Any, x: Any, surface: Any) -> Any:
        ctx.surface = surface
        ctx.x = x
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return ctx.surface.project(ctx.x, g), None


class Mistaken(Function):
    """By a method that tensors do not have."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(y)
        return x * y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return y.project(g), None


def test_an_object_is_no_tensor() -> None:
    with pytest.raises(SpecError, match="nothing says what surface is: backward asks it for proj"):
        sg.verify(Projected, suggest=False)
    assert sg.verify(Mistaken, suggest=False).verdict == sg.REFUTED


class Unlike(Function):
    """The identity, for what is not a number, or not another input."""

    other: Any = None

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        if torch.all(x != 1):
            return x * x
        raise ValueError

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * g * x * (x != 1)


class Apart(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        assert (x != y).all()
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return torch.where(x == y, g * 0, g * y), torch.where(x == y, g * 0, g * x)


@pytest.mark.parametrize(("function", "said"), [(Unlike, "x != 1"), (Apart, "x != y")])
def test_the_proof_uses_what_an_input_is_not(function: Any, said: str) -> None:
    report = sg.verify(function, suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert any(one.text.startswith(said) for one in report.conditions)


class Clamped(Function):
    """Straight through a clamp whose end depends on the dtype."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        end = 1.0 - torch.finfo(x.dtype).resolution
        return x.clamp(-end, end)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


def test_a_surrogate_is_one_for_float64_too() -> None:
    assert str(sg.verify(Clamped, suggest=False).verdict) == "SURROGATE?"


class NearOne(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        x = x.clamp(min=1 + 1e-8)
        root = (x * x - 1).sqrt()
        ctx.save_for_backward(root)
        return torch.log(x + root)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (root,) = ctx.saved_tensors
        return g / root


def test_what_backward_gives_is_not_the_middle_of_an_enclosure() -> None:
    found = sg.verify(NearOne, "", suggest=False).inputs["x"]
    assert found.counterexample is not None
    assert found.replayed is not None
    assert found.replayed.backward is not None
    hand, cotangent = float(found.counterexample.hand_text), found.counterexample.hand
    assert hand == pytest.approx(found.replayed.backward, rel=1e-3)
    assert cotangent == pytest.approx(hand, rel=1e-3)


class Dropped(Function):
    """With another formula between 0 and 1 alone."""

    @staticmethod
    def forward(ctx: Any, x: Any, rate: Any) -> Any:
        ctx.scale = 1.0 / (1 - rate)
        return x * ctx.scale if rate > 0 else x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.scale if ctx.scale > 1 else g, None


class DroppedOnce(Dropped):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, None


def test_a_share_is_judged_beside_whole_numbers() -> None:
    assert sg.verify(DroppedOnce, suggest=False).verdict == sg.REFUTED
    report = sg.verify(Dropped, "n", static={"rate": 0.5}, suggest=False)
    assert report.verdict == sg.PROVED, str(report)
