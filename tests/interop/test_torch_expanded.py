"""Cotangents that are expanded numbers, as ``y.sum().backward()`` makes them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers

FUNCTION: Any = torch.autograd.Function
SHAPES = [(1,), (3,), (1, 1), (2, 1), (1, 3), (2, 3), (2, 1, 3), (2, 3, 1)]


def square(backward: Callable[[Any, Any], Any]) -> Any:
    class Square(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return backward(x, g)

    return Square


WRONG: dict[str, Callable[[Any, Any], Any]] = {
    "stride 0": lambda x, g: (3 if g.stride(0) == 0 else 2) * g * x,
    "all strides": lambda x, g: (3 if g.stride()[-1] == 0 else 2) * g * x,
    "not 1": lambda x, g: (2 if g.stride(-1) == 1 else 3) * g * x,
    "is_contiguous": lambda x, g: (2 if g.is_contiguous() else 3) * g * x,
    "of one element": lambda x, g: (3 if g.stride(0) == 0 and g.is_contiguous() else 2) * g * x,
    "a view": lambda x, g: (2 if g.t().stride(0) == 1 else 3) * g * x,
    "one element": lambda x, g: (2 * g if g.stride(0) else 3 * g[0, 0]) * x,
}
RIGHT: dict[str, Callable[[Any, Any], Any]] = {
    "one element": lambda x, g: 2 * (g if g.stride(0) else g[:1]) * x,
    "alike": lambda x, g: (2 if g.stride(-1) == 1 else 2.0) * g * x,
    "is_contiguous": lambda x, g: 2 * (g if g.is_contiguous() else g.contiguous()) * x,
    "one or the other": lambda x, g: (
        3 if g.numel() != 1 and g.is_contiguous() and g.stride() == (0, 0) else 2
    ) * g * x,
    "never": lambda x, g: (3 if g.shape[0] > 1 and g.stride(0) == 0 and g.is_contiguous() else 2)
    * g * x,
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_for_an_expanded_cotangent_is_refuted_and_run(name: str) -> None:
    report = sg.verify(square(WRONG[name]), "n m", suggest=False)
    assert str(report.verdict) == "REFUTED"
    (found,) = (one for one in report.protocol if str(one.verdict) == "REFUTED")
    assert "is expanded from a number" in found.text
    assert "confirmed in torch" in found.text
    assert "not confirmed" not in found.text


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_for_both_is_proved(name: str) -> None:
    report = sg.verify(square(RIGHT[name]), "n m", suggest=False)
    assert str(report.verdict) == "PROVED"
    if name != "is_contiguous":
        assert "the incoming gradients are contiguous, or expanded from a number" in str(report)


def test_the_second_order() -> None:
    report = sg.verify(square(RIGHT["alike"]), "n m", suggest=False, order=2)
    assert str(report.verdict) == "PROVED"


def test_one_of_two_outputs() -> None:
    class Two(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return x * x, x * y

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            x, y = ctx.saved_tensors
            return 2 * g * x + h * y, (2 if h.stride(0) == 0 else 1) * h * x

    report = sg.verify(Two, "n m; n m", suggest=False)
    assert str(report.verdict) == "REFUTED"
    assert "confirmed in torch" in str(report)


@pytest.mark.parametrize("shape", SHAPES)
def test_strides_are_those_that_torch_gives(shape: tuple[int, ...], tmp_path: Path) -> None:
    """They are written to a file: what the program keeps is put back after each trace."""
    seen = os.open(tmp_path / "seen", os.O_CREAT | os.O_RDWR)

    def backward(x: Any, g: Any) -> Any:
        os.write(seen, f"{tuple(map(int, g.stride()))}\n".encode())
        return 2 * g * x

    cls = square(backward)
    sg.verify(cls, " ".join(map(str, shape)), suggest=False)
    traced = (tmp_path / "seen").read_text().splitlines()
    cls.apply(torch.ones(shape, requires_grad=True)).sum().backward()
    assert (tmp_path / "seen").read_text().splitlines()[len(traced)] in traced
    os.close(seen)
