"""Shapes that are found by running the class itself."""

from __future__ import annotations

import os
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.frontend.guests import Sized  # noqa: E402
from symgrad.interop.torch import adapted  # noqa: E402
from symgrad.interop.torch.attempts import Attempts  # noqa: E402
from symgrad.shapes.fitting import _by_running  # noqa: E402
from symgrad.shapes.tracing import Search  # noqa: E402
from symgrad.shapes.trying import attempt  # noqa: E402

pytestmark = pytest.mark.peers

FUNCTION: Any = torch.autograd.Function


def judged(cls: Any) -> sg.Report:
    return sg.verify(cls, suggest=False, timeout=None)


class Channels(FUNCTION):
    """Axes are named in backward alone, by numbers that only four of them have."""

    factor = 1

    @staticmethod
    def forward(ctx: Any, x: Any, shift_x: Any, scale_x: Any, scale_y: Any) -> Any:
        ctx.save_for_backward(scale_x, scale_y)
        return (x - shift_x) * scale_x / scale_y

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        scale_x, scale_y = ctx.saved_tensors
        gx = cls.factor * g / scale_y.item() * scale_x.item()
        return gx, -gx.sum([0, 2, 3]), None, None


class Grid(FUNCTION):
    """A number and a vector that forward takes as matrices, too, and backward does not."""

    factor = 1

    @staticmethod
    def forward(ctx: Any, x: Any, grid: Any, width: Any) -> Any:
        diff = x[..., None] - grid
        ctx.save_for_backward(diff, width)
        return diff * width

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        diff, width = ctx.saved_tensors
        gx = g.sum(-1).mul(width)
        return gx, -cls.factor * width * g.sum(dim=0).sum(dim=0), (g * diff).sum()


class Doubled(Channels):
    factor = 2


class DoubledGrid(Grid):
    factor = 2


class Steps(FUNCTION):
    """Twelve arguments, of which a few steps depend on each other."""

    factor = 1

    @staticmethod
    def forward(
        ctx: Any, x: Any, weight: Any, bias: Any, phi: Any, eps: Any, fwd: Any, bwd: Any, ema: Any,
        debug: Any, warm: Any, now: Any, mask: Any,
    ) -> Any:  # fmt: skip
        ctx.debug, ctx.bwd = debug, bwd
        _, c, _, _ = x.size()
        var = (mask * mask).mean(dim=0).reshape(1, c, 1, 1)
        z = x / (var + phi + 1).sqrt() + 0 * eps * fwd * now.item() * warm
        ctx.save_for_backward(var, weight, phi, z)
        return weight.reshape(1, c, 1, 1) * z + bias.reshape(1, c, 1, 1) + 0 * ema

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        var, weight, phi, z = ctx.saved_tensors
        _, c, _, _ = g.size()
        gx = cls.factor * g * weight.reshape(1, c, 1, 1) / (var + phi + 1).sqrt()
        return gx, (g * z).sum((0, 2, 3)), g.sum((0, 2, 3)), *[None] * 9


class WrongSteps(Steps):
    factor = 2


class Rows(FUNCTION):
    """Right for a vector alone: ``keepdim`` was forgotten."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x.softmax(-1))
        return x.softmax(-1)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(-1).expand(y.shape))


class Endless(FUNCTION):
    """Does not end for matrices, and ends the process for three axes."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        while x.dim() == 2:
            pass
        if x.dim() == 3:
            os._exit(1)
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


@pytest.mark.parametrize(
    ("right", "wrong", "name"),
    [(Channels, Doubled, "x"), (Grid, DoubledGrid, "grid"), (Steps, WrongSteps, "x")],
)
def test_shapes_for_which_the_class_runs_are_judged(right: Any, wrong: Any, name: str) -> None:
    assert judged(right).inputs[name].verdict is sg.PROVED
    assert judged(wrong).inputs[name].verdict is not sg.PROVED


def test_what_is_found_is_named() -> None:
    report = judged(Channels)
    said = next(
        one.text for one in report.inputs["x"].conditions if "backward fails for" in one.text
    )
    assert "x[n, m, k, l]" in said
    assert "scale_x[]" in said


def test_shapes_that_hide_a_mistake_are_not_taken() -> None:
    search = Search(adapted(Rows), {}, {}, 1)
    found = attempt(search, search.unknowns[0].candidates[:1])
    assert found is not None
    assert not found.fits
    assert _by_running(search, found) is None


def test_how_far_a_call_comes() -> None:
    attempts = Attempts(Grid)

    def reached(*sizes: tuple[int, ...]) -> Any:
        names = ("x", "grid", "width")
        return attempts.reached(
            [(name, Sized(one, "float")) for name, one in zip(names, sizes, strict=True)]
        )

    forward = reached((3, 2), (4,), (5,))
    backward = reached((3, 2), (2, 4), (2, 4))
    both = reached((3, 2), (4,), ())
    assert (forward.stage, backward.stage, both.stage) == (0, 1, 2)
    assert forward.steps < backward.steps < both.steps
    assert both.gradients == {"x": (3, 2), "grid": (4,), "width": ()}


def test_a_call_that_does_not_end_is_cut_off() -> None:
    attempts = Attempts(Endless)
    assert attempts.reached([("x", Sized((2, 2), "float"))]).stage == 0
    assert attempts.reached([("x", Sized((2,), "float"))]).stage == 2
