"""Loops that wait for a value: judged for few rounds, which is printed."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import ControlFlowError  # noqa: E402

pytestmark = pytest.mark.peers


class Halved(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.rounds = 0
        while x.abs().sum() > 1:
            x = x / 2
            ctx.rounds += 1
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g / 2**ctx.rounds


class Left(Halved):
    """The loop is left in its midst, and ends after ten rounds in any case."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.rounds = 0
        for _ in range(20):
            if x.abs().sum() <= 1:
                break
            x = x / 2
            ctx.rounds += 1
        return x


class Once(Halved):
    """Wrong from the second round on."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g / 2 ** min(ctx.rounds, 1)


class Thrice(Halved):
    """Wrong in rounds that are not judged."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g / 2 ** min(ctx.rounds, 3)


class Always(Halved):
    """It always goes on for more rounds than are judged."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        for factor in range(2, 40):
            x = x * factor if x.sum() > factor else x / factor
        return x


ROUNDS = "branches on at most 4 values, one a round of its loop"


@pytest.mark.parametrize("right", [Halved, Left, Thrice])
def test_a_loop_is_proved_for_few_rounds(right: Any) -> None:
    report = sg.verify(right, "n", suggest=False)
    assert str(report.verdict) == "PROVED"
    assert any(ROUNDS in one.text for one in report.inputs["x"].conditions)


def test_a_mistake_in_these_rounds_is_refuted() -> None:
    report = sg.verify(Once, "n", suggest=False)
    assert str(report.verdict) == "REFUTED"
    assert "confirmed in torch" in str(report)


def test_there_are_no_kernels_for_few_rounds() -> None:
    with pytest.raises(ControlFlowError, match="kernel"):
        sg.compile(Halved, "f64[n]")


def test_what_always_goes_on_is_refused() -> None:
    with pytest.raises(ControlFlowError, match="more than 3 rounds of a loop"):
        sg.verify(Always, "n", suggest=False)
