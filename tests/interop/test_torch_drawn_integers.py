"""Integers, masks and channels that torch draws: judged for all draws."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = [pytest.mark.peers, pytest.mark.slow]
Function: Any = torch.autograd.Function


class Rows(Function):
    """Rows at places that are drawn; ``again``: backward draws others."""

    again = False

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        places = torch.randint(0, x.shape[0], (3,))
        ctx.save_for_backward(places)
        ctx.like = x
        return x[places]

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (places,) = ctx.saved_tensors
        if cls.again:
            places = torch.randint(0, ctx.like.shape[0], (3,))
        return torch.zeros_like(ctx.like).index_add(0, places, g)


class RowsAgain(Rows):
    again = True


class Dropped(Function):
    again = False

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        found, mask = torch.native_dropout(x, 0.25, True)
        ctx.save_for_backward(mask)
        return found

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (mask,) = ctx.saved_tensors
        if cls.again:
            mask = torch.native_dropout(g, 0.25, True)[1]
        return torch.ops.aten.native_dropout_backward(g, mask, 1 / 0.75)


class DroppedAgain(Dropped):
    again = True


class Levels(Function):
    """What is added has no gradient; ``wrong``: as if it were what x is multiplied by."""

    wrong = False

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        levels = torch.randint_like(x, 1, 5)
        ctx.save_for_backward(levels)
        return x / levels + torch.empty_like(x).random_(0, 4)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (levels,) = ctx.saved_tensors
        return g * levels if cls.wrong else g / levels


class LevelsWrong(Levels):
    wrong = True


@pytest.mark.parametrize("cls", [Rows, Dropped, Levels])
def test_the_same_draw_is_the_same_unknown(cls: Any) -> None:
    report = sg.verify(cls, "n m", suggest=False)
    assert report.verdict == sg.PROVED, report


@pytest.mark.parametrize("cls", [RowsAgain, DroppedAgain, LevelsWrong])
def test_another_draw_is_another_unknown(cls: Any) -> None:
    assert sg.verify(cls, "n m", suggest=False).verdict != sg.PROVED


class Channels(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        mask = torch.nn.functional.dropout2d(torch.ones_like(x), 0.5)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (mask,) = ctx.saved_tensors
        return g * mask


def test_whole_channels_are_dropped() -> None:
    assert sg.verify(Channels, "b c h w", suggest=False).verdict == sg.PROVED
