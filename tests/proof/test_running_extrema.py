"""Running extrema: their gradient goes to the last place where each was reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import symgrad as sg

Back = Callable[..., Any]


def made(name: str, back: Back) -> type[sg.Function]:
    """A Function of x: the running extremum along the last axis, with a backward."""

    class Running(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            values, places = getattr(sg, name)(x, -1)
            ctx.save_for_backward(x, values, places)
            return values

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return back(g, *ctx.saved_tensors)

    return Running


def scattered(g: Any, x: Any, values: Any, places: Any) -> Any:
    return sg.zeros_like(g).scatter_add(-1, places, g)


WRONG: list[Back] = [
    lambda g, x, values, places: g,
    lambda g, x, values, places: g * (x == values),
    lambda g, x, values, places: sg.zeros_like(g).scatter(-1, places, g),
    lambda g, x, values, places: g.gather(-1, places),
    lambda g, x, values, places: sg.zeros_like(g).scatter_add(-1, places.flip(-1), g),
]


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("shape", ["n", "n m"])
def test_its_gradient_is_scattered(name: str, shape: str) -> None:
    report = sg.verify(made(name, scattered), shape)
    assert report.verdict == sg.PROVED, str(report)
    assert any("is reached more than once" in one.text for one in report.inputs["x"].conditions)


@pytest.mark.parametrize("which", range(len(WRONG)))
def test_another_gradient_is_a_mistake(which: int) -> None:
    report = sg.verify(made("cummax", WRONG[which]), "n m", suggest=False)
    assert report.verdict not in (sg.PROVED, sg.UNDECIDED), str(report)


def test_the_gradient_of_the_other_one_is_a_mistake() -> None:
    def other(g: Any, x: Any, values: Any, places: Any) -> Any:
        return scattered(g, x, *sg.cummin(x, -1))

    assert sg.verify(made("cummax", other), "n", suggest=False).verdict == sg.REFUTED
