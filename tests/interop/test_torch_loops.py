"""Loops that wait for a value: judged for few rounds, which is printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import ControlFlowError  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function


class Halved(Function):
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


class Added(Function):
    """It starts from zeros: with no round, it gives a constant, which backward forgets."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y, ctx.rounds, left = torch.zeros_like(x), 0, x
        while left.sum() > 1:
            y, left = y + x, left / 2
            ctx.rounds += 1
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * max(ctx.rounds, 1)


class Late(Halved):
    """Wrong with no round, where it gives what depends on its argument."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g / 2**ctx.rounds if ctx.rounds else g * 3


class Iterated(Function):
    """It iterates, and backward is that of what this converges to."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        z = torch.ones_like(x)
        while (z * z - x).abs().max() > 1e-6:
            z = (z + x / z) / 2
        ctx.save_for_backward(z)
        return z

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g / (2 * ctx.saved_tensors[0])


DECLARED = """[functions."Iterated"]
surrogate = "the fixed point of z = (z + x / z) / 2"
assume = { x = "positive" }
"""
GOES_ON = "branches on at least 2 values, one a round of its loop"
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


def test_rounds_in_which_a_constant_is_given_are_a_condition() -> None:
    report = sg.verify(Added, "n", suggest=False)
    assert str(report.verdict) == "PROVED"
    assert any(GOES_ON in one.text for one in report.inputs["x"].conditions)
    assert any("forward gives a constant" in one for one in report.notes)


def test_what_is_proved_for_later_rounds_stands_beside_a_mistake_in_the_first() -> None:
    report = sg.verify(Late, "n", suggest=False)
    assert str(report.verdict) == "REFUTED"
    assert "confirmed in torch" in str(report)
    (found,) = (one for one in report.inputs["x"].conditions if one.kind == "found")
    assert found.text.startswith("PROVED if")
    assert GOES_ON in found.text


def test_the_declaration_of_a_fixed_point_is_named() -> None:
    report = sg.verify(Iterated, "n", assume={"x": "positive"}, suggest=False)
    assert str(report.verdict) != "PROVED"
    assert any('"the fixed point of z = f(z, x)"' in one for one in report.notes)


def test_a_loop_is_judged_against_its_fixed_point(tmp_path: Path) -> None:
    (tmp_path / "symgrad.toml").write_text(DECLARED, encoding="utf-8")
    report = sg.verify(Iterated, "n", suggest=False, config=tmp_path / "symgrad.toml")
    assert str(report.verdict) == "PROVED"
    texts = [one.text for one in report.inputs["x"].conditions]
    assert any(GOES_ON in one for one in texts)
    assert any("forward has converged" in one for one in texts)


def test_there_are_no_kernels_for_few_rounds() -> None:
    with pytest.raises(ControlFlowError, match="kernel"):
        sg.compile(Halved, "f64[n]")


def test_what_always_goes_on_is_refused() -> None:
    with pytest.raises(ControlFlowError, match="more than 3 rounds of a loop"):
        sg.verify(Always, "n", suggest=False)
