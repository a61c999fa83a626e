"""``torch.min`` and ``torch.max`` of two tensors, written into one of them."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers
FUNCTION: Any = torch.autograd.Function


class Clamped(FUNCTION):
    """The input is written in place, and nothing says so."""

    @staticmethod
    def forward(ctx: Any, x: Any, low: Any, high: Any) -> Any:
        torch.min(x, high, out=x)
        torch.max(x, low, out=x)
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, None, None


class Marked(Clamped):
    """It says so."""

    @staticmethod
    def forward(ctx: Any, x: Any, low: Any, high: Any) -> Any:
        ctx.mark_dirty(x)
        return Clamped.forward(ctx, x, low, high)


class Reversed(FUNCTION):
    """What is written is read at other places."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.clone()
        torch.min(y, y.t(), out=y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


@pytest.mark.parametrize(("cls", "verdict"), [(Clamped, "REFUTED"), (Marked, "SURROGATE?")])
def test_the_limits_are_tensors_in_a_real_call(cls: Any, verdict: str) -> None:
    """Torch takes no numbers there: the counterexample is run with tensors."""
    report = sg.verify(cls, suggest=False, timeout=None)
    assert str(report.verdict) == verdict
    assert str(report.inputs["x"].verdict) == "SURROGATE?"
    assert "`x` in place of `x.clamp(" in str(report)
    assert "confirmed in torch: backward gives 1, the derivative is 0" in str(report)


def test_what_is_read_at_other_places_is_undecided() -> None:
    report = sg.verify(Reversed, "n n", suggest=False)
    assert str(report.verdict) == "UNDECIDED"
    assert "in an order of torch's" in " ".join(str(report).split())
