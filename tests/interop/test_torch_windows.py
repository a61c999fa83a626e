"""Windows that leave a rest of the axis: the same gradient whatever the remainder is."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = [pytest.mark.peers, pytest.mark.slow]

F: Any = torch.nn.functional
FUNCTION: Any = torch.autograd.Function


class Windows(FUNCTION):
    """Every third window over two elements with one between them."""

    first, gap = 0, 2

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.sizes = x.shape[-2:]
        return F.unfold(x, (2, 1), dilation=2, stride=3)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        made = F.fold(g, ctx.sizes, (2, 1), dilation=2, stride=3)
        made[:, :, ctx.sizes[0] - cls.first :] = 0
        return made


class WindowsWithoutTheLast(Windows):
    """Wrong where a window ends at the last row alone."""

    first = 1


def filters(x: Any) -> Any:
    return torch.ones(1, 1, 3, dtype=x.dtype)


class EverySecond(FUNCTION):
    """Every second window over three elements."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return F.conv1d(x, filters(x), stride=2)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return torch.nn.grad.conv1d_input(x.shape, filters(x), g, stride=2)


class EverySecondTurned(EverySecond):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return torch.nn.grad.conv1d_input(x.shape, filters(x), g.flip(2), stride=2)


@pytest.mark.parametrize(
    ("right", "wrong", "shape"),
    [(Windows, WindowsWithoutTheLast, "b c n m"), (EverySecond, EverySecondTurned, "b 1 n")],
)
def test_windows_that_leave_a_rest(right: Any, wrong: Any, shape: str) -> None:
    assert sg.verify(right, shape, suggest=False).verdict is sg.PROVED
    assert sg.verify(wrong, shape, suggest=False).verdict is sg.REFUTED
